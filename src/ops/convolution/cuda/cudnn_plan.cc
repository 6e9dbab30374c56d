#include "ops/convolution/cuda/cudnn_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

namespace anydml {
namespace {

using cudnn::Descriptor;

enum TensorId : int64_t { kX = 1, kW = 2, kY = 3, kBias = 4, kSums = 5, kSumsWithBias = 6 };

constexpr int64_t kByteAlignment = 16;  // that of bindings
constexpr int64_t kMostWorkspaceBytes = int64_t{1} << 28;

int TypeNumber(DataType type) { return type == DataType::kFloat16 ? cudnn::kHalf : cudnn::kFloat; }

// Products of FLOAT32 stay FLOAT32, sums have one order, and one window's numbers do not touch another's sum
// (of Winograd's and Fourier's, an infinity is in all sums of a tile).
bool IsAllowed(int note, bool half) {
  switch (note) {
    case cudnn::kTensorCore:
    case cudnn::kDownConvertInputs:
      return half;
    case cudnn::kReducedPrecisionReduction:
    case cudnn::kFft:
    case cudnn::kNondeterministic:
      return false;
    default:
      return note < cudnn::kWinograd || note > cudnn::kWinogradTile13x13;
  }
}

struct EngineNotes {
  int64_t index = -1;
  bool allowed = false;
};

EngineNotes NotesOf(Descriptor* config, bool half) {
  EngineNotes result;
  Descriptor engine(cudnn::kEngine, "an engine");
  void* address = engine.get();
  config->Get(cudnn::kConfigEngine, cudnn::kTypeDescriptor, 1, &address);
  int notes[32];
  const int64_t count = engine.Get(cudnn::kEngineNumericalNote, cudnn::kTypeNumericalNote, 32, notes);
  engine.Get(cudnn::kEngineGlobalIndex, cudnn::kTypeInt64, 1, &result.index);
  result.allowed = config->error().empty() && engine.error().empty() &&
                   std::all_of(notes, notes + std::min<int64_t>(count, 32),
                               [&](int note) { return IsAllowed(note, half); });
  return result;
}

// Engines with their settings, the one that should be fastest first.
std::vector<std::unique_ptr<Descriptor>> ConfigsOf(const Descriptor& graph, cudnn::HeuristicsModeNumber mode,
                                                   std::string* error) {
  std::vector<std::unique_ptr<Descriptor>> configs;
  Descriptor heuristics(cudnn::kEngineHeuristics, "heuristics");
  heuristics.Set(cudnn::kHeuristicsGraph, graph);
  heuristics.Set(cudnn::kHeuristicsMode, cudnn::kTypeHeuristicsMode, static_cast<int>(mode));
  heuristics.Finalize();
  const int64_t room = heuristics.Get(cudnn::kHeuristicsResults, cudnn::kTypeDescriptor, 0, nullptr);
  std::vector<void*> addresses;
  for (int64_t i = 0; i < room; ++i) {
    configs.push_back(std::make_unique<Descriptor>(cudnn::kEngineConfig, "an engine's configuration"));
    addresses.push_back(configs.back()->get());
  }
  int64_t count = 0;
  if (room > 0) {
    count = heuristics.Get(cudnn::kHeuristicsResults, cudnn::kTypeDescriptor, room, addresses.data());
  }
  if (!heuristics.error().empty()) *error = heuristics.error();
  configs.resize(static_cast<size_t>(std::min(count, room)));
  return configs;
}

}  // namespace

Descriptor* CudnnPlan::Add(cudnn::Kind kind, const char* name) {
  descriptors_.push_back(std::make_unique<Descriptor>(kind, name));
  return descriptors_.back().get();
}

Descriptor* CudnnPlan::AddTensor(const CudnnTensor& tensor, int64_t id) {
  Descriptor* const result = Add(cudnn::kTensor, "a tensor");
  const bool is_virtual = id == kSums || id == kSumsWithBias;
  result->Set(cudnn::kTensorDataType, cudnn::kTypeDataType, TypeNumber(tensor.type));
  result->Set(cudnn::kTensorDimensions, tensor.sizes);
  result->Set(cudnn::kTensorStrides, tensor.strides);
  result->Set(cudnn::kTensorId, cudnn::kTypeInt64, id);
  result->Set(cudnn::kTensorAlignment, cudnn::kTypeInt64, kByteAlignment);
  result->Set(cudnn::kTensorIsVirtual, cudnn::kTypeBoolean, is_virtual);
  result->Finalize();
  return result;
}

Descriptor* CudnnPlan::AddPointwise(cudnn::PointwiseFunction function, const SumLimits* limits,
                                    const Descriptor* from, const Descriptor* with, const Descriptor* to) {
  Descriptor* const what = Add(cudnn::kPointwise, "a pointwise function");
  what->Set(cudnn::kPointwiseMode, cudnn::kTypePointwiseMode, static_cast<int>(function));
  what->Set(cudnn::kPointwiseMathPrecision, cudnn::kTypeDataType, static_cast<int>(cudnn::kFloat));
  if (limits != nullptr) {
    what->Set(cudnn::kPointwiseNanPropagation, cudnn::kTypeNanPropagation, cudnn::kPropagateNan);
    what->Set(cudnn::kPointwiseReluLowerClip, cudnn::kTypeDouble, static_cast<double>(limits->least));
    if (std::isfinite(limits->most)) {
      what->Set(cudnn::kPointwiseReluUpperClip, cudnn::kTypeDouble, static_cast<double>(limits->most));
    }
  }
  what->Finalize();
  Descriptor* const operation = Add(cudnn::kPointwiseOperation, "a pointwise operation");
  operation->Set(cudnn::kPointwiseDescriptor, *what);
  operation->Set(cudnn::kPointwiseX, *from);
  if (with != nullptr) operation->Set(cudnn::kPointwiseB, *with);
  operation->Set(cudnn::kPointwiseY, *to);
  operation->Finalize();
  return operation;
}

bool CudnnPlan::AllWell(std::string* why_not) const {
  for (const auto& descriptor : descriptors_) {
    if (descriptor->error().empty()) continue;
    *why_not = StrCat("cuDNN refuses it: ", descriptor->error());
    return false;
  }
  return true;
}

bool CudnnPlan::Describe(const CudnnProblem& p, std::string* why_not) {
  backward_ = p.backward;
  Descriptor* const convolution = Add(cudnn::kConvolution, "a convolution");
  const auto spatial = static_cast<int64_t>(p.steps.size());
  convolution->Set(cudnn::kConvolutionComputeType, cudnn::kTypeDataType, static_cast<int>(cudnn::kFloat));
  convolution->Set(cudnn::kConvolutionMode, cudnn::kTypeConvolutionMode, cudnn::kCrossCorrelation);
  convolution->Set(cudnn::kConvolutionSpatialDimensions, cudnn::kTypeInt64, spatial);
  convolution->Set(cudnn::kConvolutionStrides, p.steps);
  convolution->Set(cudnn::kConvolutionDilations, p.dilations);
  convolution->Set(cudnn::kConvolutionPrePaddings, p.pre_paddings);
  convolution->Set(cudnn::kConvolutionPostPaddings, p.post_paddings);
  convolution->Finalize();

  Descriptor* const result = AddTensor(p.result(), p.backward ? kX : kY);
  Descriptor* const input = AddTensor(p.backward ? p.y : p.x, p.backward ? kY : kX);
  Descriptor* const filter = AddTensor(p.w, kW);
  CudnnTensor sums = p.result();
  sums.type = DataType::kFloat32;
  Descriptor* const convolved = p.has_bias || p.limits ? AddTensor(sums, kSums) : result;
  Descriptor* const operation = Add(p.backward ? cudnn::kConvolutionBackwardData : cudnn::kConvolutionForward,
                                    "a convolution of tensors");
  const Descriptor* const x = p.backward ? convolved : input;
  const Descriptor* const y = p.backward ? input : convolved;
  operation->Set(p.backward ? cudnn::kBackwardDataConvolution : cudnn::kForwardConvolution, *convolution);
  operation->Set(p.backward ? cudnn::kBackwardDataW : cudnn::kForwardW, *filter);
  operation->Set(p.backward ? cudnn::kBackwardDataDx : cudnn::kForwardX, *x);
  operation->Set(p.backward ? cudnn::kBackwardDataDy : cudnn::kForwardY, *y);
  operation->Set(p.backward ? cudnn::kBackwardDataAlpha : cudnn::kForwardAlpha, cudnn::kTypeFloat, 1.0f);
  operation->Set(p.backward ? cudnn::kBackwardDataBeta : cudnn::kForwardBeta, cudnn::kTypeFloat, 0.0f);
  operation->Finalize();
  std::vector<void*> operations = {operation->get()};

  const Descriptor* last = convolved;
  if (p.has_bias) {
    CudnnTensor bias = {p.w.type, std::vector<int64_t>(p.w.sizes.size(), 1), {}};
    bias.sizes[1] = p.result().sizes[1];
    bias.strides.assign(bias.sizes.size(), bias.sizes[1]);
    bias.strides[1] = 1;
    const Descriptor* const to = p.limits ? AddTensor(sums, kSumsWithBias) : result;
    operations.push_back(AddPointwise(cudnn::kAdd, nullptr, last, AddTensor(bias, kBias), to)->get());
    last = to;
  }
  if (p.limits) {
    operations.push_back(AddPointwise(cudnn::kReluForward, &*p.limits, last, nullptr, result)->get());
  }
  graph_ = Add(cudnn::kOperationGraph, "an operation graph");
  graph_->Set(cudnn::kGraphHandle, cudnn::kTypeHandle, handle_->handle);
  graph_->SetAll(cudnn::kGraphOperations, cudnn::kTypeDescriptor, static_cast<int64_t>(operations.size()),
                 operations.data());
  graph_->Finalize();
  return AllWell(why_not);
}

bool CudnnPlan::Choose(bool half, std::string* why_not) {
  int offered = 0, imprecise = 0;
  std::string last;
  for (const auto mode : {cudnn::kModeA, cudnn::kModeFallback}) {
    for (auto& config : ConfigsOf(*graph_, mode, &last)) {
      ++offered;
      const EngineNotes notes = NotesOf(config.get(), half);
      if (!notes.allowed) {
        ++imprecise;
        continue;
      }
      auto plan = std::make_unique<Descriptor>(cudnn::kExecutionPlan, "an execution plan");
      plan->Set(cudnn::kPlanHandle, cudnn::kTypeHandle, handle_->handle);
      plan->Set(cudnn::kPlanConfig, *config);
      plan->Finalize();
      int64_t bytes = 0;
      plan->Get(cudnn::kPlanWorkspaceSize, cudnn::kTypeInt64, 1, &bytes);
      if (!plan->error().empty()) {
        last = plan->error();
        continue;
      }
      if (bytes < 0 || bytes > kMostWorkspaceBytes) {
        last = StrCat("engine ", notes.index, " wants ", bytes, " bytes");
        continue;
      }
      workspace_bytes_ = static_cast<uint64_t>(bytes);
      engine_ = notes.index;
      config_ = std::move(config);
      plan_ = std::move(plan);
      return true;
    }
  }
  *why_not = StrCat("cuDNN ", cudnn::TheLibrary().version, " has no engine for it (", offered, " offered, ",
                    imprecise, " not exact enough or not deterministic", last.empty() ? "" : "; ", last, ")");
  return false;
}

std::string CudnnProblem::Key() const {
  std::string key = StrCat(backward ? "backward" : "forward", has_bias ? " bias" : "");
  if (limits) {
    key += StrCat(" limits ", std::bit_cast<uint32_t>(limits->least), " ",
                  std::bit_cast<uint32_t>(limits->most));
  }
  const auto add = [&](const char* name, const std::vector<int64_t>& numbers) {
    key += name;
    for (const int64_t number : numbers) key += StrCat(" ", number);
  };
  for (const CudnnTensor* tensor : {&x, &w, &y}) {
    add("; ", {TypeNumber(tensor->type)});
    add(" sizes", tensor->sizes);
    add(" strides", tensor->strides);
  }
  add("; steps", steps);
  add(" dilations", dilations);
  add(" before", pre_paddings);
  add(" after", post_paddings);
  return key;
}

std::shared_ptr<const CudnnPlan> CudnnPlan::Create(const CudnnProblem& problem, int device,
                                                   std::string* why_not) {
  *why_not = cudnn::TheLibrary().why_not;
  if (!why_not->empty()) return nullptr;
  // They stay, as the library does.
  static auto* const plans_mutex = new std::mutex;
  static auto* const plans = new std::map<std::string, std::weak_ptr<const CudnnPlan>>;
  const std::lock_guard plans_lock(*plans_mutex);
  const std::string key = StrCat(device, ": ", problem.Key());
  if (const auto known = plans->find(key); known != plans->end()) {
    if (auto plan = known->second.lock()) return plan;
  }
  std::shared_ptr<CudnnPlan> plan(new CudnnPlan);
  plan->handle_ = cudnn::HandleFor(device, why_not);
  if (plan->handle_ == nullptr) return nullptr;
  // Nobody may set its stream meanwhile.
  const std::lock_guard lock(plan->handle_->mutex);
  if (!plan->Describe(problem, why_not)) return nullptr;
  if (!plan->Choose(problem.w.type == DataType::kFloat16, why_not)) return nullptr;
  std::erase_if(*plans, [](const auto& entry) { return entry.second.expired(); });
  plans->insert_or_assign(key, plan);
  return plan;
}

std::string CudnnPlan::name() const {
  return StrCat("cuDNN ", cudnn::TheLibrary().version, " engine ", engine_);
}

Status CudnnPlan::Run(void* stream, const Memory& memory) const {
  const int64_t ids[] = {backward_ ? kY : kX, kW, backward_ ? kX : kY, kBias};
  const void* const addresses[] = {memory.input, memory.filter, memory.result, memory.bias};
  const int64_t count = memory.bias != nullptr ? 4 : 3;
  Descriptor pack(cudnn::kVariantPack, "a variant pack");
  pack.SetAll(cudnn::kPackIds, cudnn::kTypeInt64, count, ids);
  pack.SetAll(cudnn::kPackAddresses, cudnn::kTypeAddress, count, addresses);
  pack.Set(cudnn::kPackWorkspace, cudnn::kTypeAddress, memory.workspace);
  pack.Finalize();
  std::string error = pack.error();
  if (error.empty()) {
    const std::lock_guard lock(handle_->mutex);
    const cudnn::Library& library = cudnn::TheLibrary();
    int status = library.cudnnSetStream(handle_->handle, stream);
    if (status != cudnn::kSuccess) {
      error = cudnn::Sentence("cudnnSetStream", "", status);
    } else {
      status = library.cudnnBackendExecute(handle_->handle, plan_->get(), pack.get());
      if (status != cudnn::kSuccess) error = cudnn::Sentence("cudnnBackendExecute", name().c_str(), status);
    }
  }
  if (error.empty()) return {};
  return Status(Code::kDriverInternal, StrCat("CONVOLUTION: cuDNN could not run it: ", error));
}

}  // namespace anydml
