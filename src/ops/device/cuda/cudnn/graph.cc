#include "ops/device/cuda/cudnn/graph.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "base/status.h"

namespace anydml::cudnn {
namespace {

constexpr int64_t kByteAlignment = 16;  // alignment of bindings
constexpr int64_t kMostWorkspaceBytes = int64_t{1} << 28;

}  // namespace

Graph::Shape Graph::Shape::Packed(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * sizes[i + 1];
  return {sizes, strides};
}

std::string Graph::Shape::Key() const {
  std::string key = "sizes";
  for (const int64_t size : sizes) key += StrCat(" ", size);
  key += " strides";
  for (const int64_t stride : strides) key += StrCat(" ", stride);
  return key;
}

Descriptor* Graph::Add(Kind kind, const char* name) {
  descriptors_.push_back(std::make_unique<Descriptor>(kind, name));
  return descriptors_.back().get();
}

Graph::Tensor Graph::AddTensor(DataTypeNumber type, const Shape& shape, Place place) {
  Descriptor* const result = Add(kTensor, "a tensor");
  const int64_t id = ++last_id_;
  result->Set(kTensorDataType, kTypeDataType, static_cast<int>(type));
  result->Set(kTensorDimensions, shape.sizes);
  result->Set(kTensorStrides, shape.strides);
  result->Set(kTensorId, kTypeInt64, id);
  result->Set(kTensorAlignment, kTypeInt64, kByteAlignment);
  if (place == Place::kBetween) result->Set(kTensorIsVirtual, kTypeBoolean, true);
  if (place == Place::kValue) result->Set(kTensorIsByValue, kTypeBoolean, true);
  result->Finalize();
  if (place != Place::kBetween) ids_.push_back(id);
  return result;
}

Graph::Tensor Graph::AddTensor(DataTypeNumber type, const Shape& shape) {
  return AddTensor(type, shape, Place::kMemory);
}

Graph::Tensor Graph::AddValue(DataTypeNumber type, size_t rank) {
  const std::vector<int64_t> ones(rank, 1);
  return AddTensor(type, {ones, ones}, Place::kValue);
}

Graph::Tensor Graph::AddBetween(DataTypeNumber type, const Shape& shape) {
  return AddTensor(type, shape, Place::kBetween);
}

Descriptor* Graph::AddFunction(PointwiseFunction function) {
  Descriptor* const what = Add(kPointwise, "a pointwise function");
  what->Set(kPointwiseMode, kTypePointwiseMode, static_cast<int>(function));
  what->Set(kPointwiseMathPrecision, kTypeDataType, static_cast<int>(kFloat));
  return what;
}

void Graph::AddPointwise(Descriptor* function, Tensor x, Tensor b, Tensor y) {
  function->Finalize();
  Descriptor* const operation = Add(kPointwiseOperation, "a pointwise operation");
  operation->Set(kPointwiseDescriptor, *function);
  operation->Set(kPointwiseX, *x);
  if (b != nullptr) operation->Set(kPointwiseB, *b);
  operation->Set(kPointwiseY, *y);
  operation->Finalize();
  operations_.push_back(operation->get());
}

void Graph::AddPointwise(PointwiseFunction function, Tensor x, Tensor b, Tensor y) {
  AddPointwise(AddFunction(function), x, b, y);
}

void Graph::AddLimits(float least, float most, Tensor x, Tensor y) {
  Descriptor* const function = AddFunction(kReluForward);
  function->Set(kPointwiseNanPropagation, kTypeNanPropagation, kPropagateNan);
  function->Set(kPointwiseReluLowerClip, kTypeDouble, static_cast<double>(least));
  if (std::isfinite(most)) function->Set(kPointwiseReluUpperClip, kTypeDouble, static_cast<double>(most));
  AddPointwise(function, x, nullptr, y);
}

void Graph::AddReduction(ReductionFunctionNumber function, Tensor x, Tensor y) {
  Descriptor* const what = Add(kReduction, "a reduction");
  what->Set(kReductionComputeType, kTypeDataType, static_cast<int>(kFloat));
  what->Set(kReductionFunction, kTypeReductionFunction, static_cast<int>(function));
  what->Finalize();
  Descriptor* const operation = Add(kReductionOperation, "a reduction of tensors");
  operation->Set(kReductionDescriptor, *what);
  operation->Set(kReductionX, *x);
  operation->Set(kReductionY, *y);
  operation->Finalize();
  operations_.push_back(operation->get());
}

void Graph::AddMatmul(Tensor a, Tensor b, Tensor c) {
  Descriptor* const what = Add(kMatmul, "a product");
  what->Set(kMatmulComputeType, kTypeDataType, static_cast<int>(kFloat));
  what->Finalize();
  Descriptor* const operation = Add(kMatmulOperation, "a product of tensors");
  operation->Set(kMatmulA, *a);
  operation->Set(kMatmulB, *b);
  operation->Set(kMatmulC, *c);
  operation->Set(kMatmulDescriptor, *what);
  operation->Finalize();
  operations_.push_back(operation->get());
}

const Descriptor* Graph::AddWindows(const Windows& windows) {
  Descriptor* const what = Add(kConvolution, "a convolution");
  what->Set(kConvolutionComputeType, kTypeDataType, static_cast<int>(kFloat));
  what->Set(kConvolutionMode, kTypeConvolutionMode, kCrossCorrelation);
  what->Set(kConvolutionSpatialDimensions, kTypeInt64, static_cast<int64_t>(windows.steps.size()));
  what->Set(kConvolutionStrides, windows.steps);
  what->Set(kConvolutionDilations, windows.dilations);
  what->Set(kConvolutionPrePaddings, windows.pre_paddings);
  what->Set(kConvolutionPostPaddings, windows.post_paddings);
  what->Finalize();
  return what;
}

void Graph::AddConvolution(const Windows& windows, Tensor x, Tensor w, Tensor y) {
  const Descriptor* const what = AddWindows(windows);
  Descriptor* const operation = Add(kConvolutionForward, "a convolution of tensors");
  operation->Set(kForwardConvolution, *what);
  operation->Set(kForwardW, *w);
  operation->Set(kForwardX, *x);
  operation->Set(kForwardY, *y);
  operation->Set(kForwardAlpha, kTypeFloat, 1.0f);
  operation->Set(kForwardBeta, kTypeFloat, 0.0f);
  operation->Finalize();
  operations_.push_back(operation->get());
}

void Graph::AddConvolutionGradient(const Windows& windows, Tensor x, Tensor w, Tensor y) {
  const Descriptor* const what = AddWindows(windows);
  Descriptor* const operation = Add(kConvolutionBackwardData, "a convolution's gradient");
  operation->Set(kBackwardDataConvolution, *what);
  operation->Set(kBackwardDataW, *w);
  operation->Set(kBackwardDataDx, *x);
  operation->Set(kBackwardDataDy, *y);
  operation->Set(kBackwardDataAlpha, kTypeFloat, 1.0f);
  operation->Set(kBackwardDataBeta, kTypeFloat, 0.0f);
  operation->Finalize();
  operations_.push_back(operation->get());
}

bool Graph::Finish(std::string* why_not) {
  graph_ = Add(kOperationGraph, "an operation graph");
  graph_->Set(kGraphHandle, kTypeHandle, handles_->maker);
  graph_->SetAll(kGraphOperations, kTypeDescriptor, static_cast<int64_t>(operations_.size()),
                 operations_.data());
  // The operations' descriptors report errors more precisely than the graph.
  for (const auto& descriptor : descriptors_) {
    if (descriptor.get() == graph_) graph_->Finalize();
    if (descriptor->error().empty()) continue;
    *why_not = StrCat("cuDNN refuses it: ", descriptor->error());
    return false;
  }
  return true;
}

// Engine configurations, the presumably fastest first.
std::vector<std::unique_ptr<Descriptor>> Graph::Configs(HeuristicsModeNumber mode, std::string* error) const {
  std::vector<std::unique_ptr<Descriptor>> configs;
  Descriptor heuristics(kEngineHeuristics, "heuristics");
  heuristics.Set(kHeuristicsGraph, *graph_);
  heuristics.Set(kHeuristicsMode, kTypeHeuristicsMode, static_cast<int>(mode));
  heuristics.Finalize();
  const int64_t room = heuristics.Get(kHeuristicsResults, kTypeDescriptor, 0, nullptr);
  std::vector<void*> addresses;
  for (int64_t i = 0; i < room; ++i) {
    configs.push_back(std::make_unique<Descriptor>(kEngineConfig, "an engine's configuration"));
    addresses.push_back(configs.back()->get());
  }
  int64_t count = 0;
  if (room > 0) count = heuristics.Get(kHeuristicsResults, kTypeDescriptor, room, addresses.data());
  if (!heuristics.error().empty()) *error = heuristics.error();
  configs.resize(static_cast<size_t>(std::min(count, room)));
  return configs;
}

bool Graph::TakeEngine(std::unique_ptr<Descriptor> config, int64_t engine, std::string* error) {
  auto plan = std::make_unique<Descriptor>(kExecutionPlan, "an execution plan");
  plan->Set(kPlanHandle, kTypeHandle, handles_->maker);
  plan->Set(kPlanConfig, *config);
  plan->Finalize();
  int64_t bytes = 0;
  plan->Get(kPlanWorkspaceSize, kTypeInt64, 1, &bytes);
  *error = plan->error();
  if (error->empty() && (bytes < 0 || bytes > kMostWorkspaceBytes)) {
    *error = StrCat("engine ", engine, " wants ", bytes, " bytes");
  }
  if (!error->empty()) return false;
  workspace_bytes_ = static_cast<uint64_t>(bytes);
  engine_ = engine;
  config_ = std::move(config);
  plan_ = std::move(plan);
  return true;
}

bool Graph::Choose(bool (*is_allowed)(int note), std::string* why_not) {
  if (!Finish(why_not)) return false;
  int offered = 0, imprecise = 0;
  std::string last;
  for (const auto mode : {kModeA, kModeFallback}) {
    for (auto& config : Configs(mode, &last)) {
      ++offered;
      Descriptor engine(kEngine, "an engine");
      void* address = engine.get();
      config->Get(kConfigEngine, kTypeDescriptor, 1, &address);
      int notes[32];
      const int64_t count = engine.Get(kEngineNumericalNote, kTypeNumericalNote, 32, notes);
      int64_t index = -1;
      engine.Get(kEngineGlobalIndex, kTypeInt64, 1, &index);
      if (!config->error().empty() || !engine.error().empty() ||
          !std::all_of(notes, notes + std::min<int64_t>(count, 32), is_allowed)) {
        ++imprecise;
        continue;
      }
      if (TakeEngine(std::move(config), index, &last)) return true;
    }
  }
  *why_not = StrCat("cuDNN ", TheLibrary().version, " has no engine for it (", offered, " offered, ",
                    imprecise, " not exact enough or not deterministic", last.empty() ? "" : "; ", last, ")");
  return false;
}

std::string Graph::name() const { return StrCat("cuDNN ", TheLibrary().version, " engine ", engine_); }

std::string Graph::Run(void* stream, std::span<const void* const> addresses, void* workspace) const {
  Descriptor pack(kVariantPack, "a variant pack");
  pack.Set(kPackIds, ids_);
  pack.SetAll(kPackAddresses, kTypeAddress, static_cast<int64_t>(addresses.size()), addresses.data());
  pack.Set(kPackWorkspace, kTypeAddress, workspace);
  pack.Finalize();
  if (!pack.error().empty()) return pack.error();
  const std::lock_guard lock(handles_->executor_mutex);
  const Library& library = TheLibrary();
  int status = library.cudnnSetStream(handles_->executor, stream);
  if (status != kSuccess) return Sentence("cudnnSetStream", "", status);
  status = library.cudnnBackendExecute(handles_->executor, plan_->get(), pack.get());
  return status == kSuccess ? "" : Sentence("cudnnBackendExecute", name().c_str(), status);
}

std::shared_ptr<const Graph> FindOrCreate(const std::string& key, int device,
                                          const std::function<void(Graph*)>& describe,
                                          bool (*is_allowed)(int note), std::string* why_not) {
  *why_not = TheLibrary().why_not;
  if (!why_not->empty()) return nullptr;
  // Never destroyed, as the library is not. The mutex also protects the handles that build plans.
  static auto* const mutex = new std::mutex;
  static auto* const graphs = new std::map<std::string, std::weak_ptr<const Graph>>;
  const std::lock_guard lock(*mutex);
  const std::string key_of_device = StrCat(device, ": ", key);
  if (const auto known = graphs->find(key_of_device); known != graphs->end()) {
    if (auto graph = known->second.lock()) return graph;
  }
  Handles* const handles = HandlesFor(device, why_not);
  if (handles == nullptr) return nullptr;
  auto graph = std::make_shared<Graph>(handles);
  describe(graph.get());
  if (!graph->Choose(is_allowed, why_not)) return nullptr;
  std::erase_if(*graphs, [](const auto& entry) { return entry.second.expired(); });
  graphs->insert_or_assign(key_of_device, graph);
  return graph;
}

}  // namespace anydml::cudnn
