#include "onnx/run/runner.h"

#include <algorithm>
#include <utility>

namespace anydml::onnx {
namespace {

// How many sets of sizes are kept for a place in a program; two if their weights take more memory than this.
constexpr size_t kMaxParts = 8;
constexpr uint64_t kMaxKeptBytes = uint64_t{1} << 30;
// How many of them may depend on a condition's value; with more, the host decides.
constexpr size_t kMaxPinned = 4;

class SessionMaker final : public OperatorMaker {
 public:
  explicit SessionMaker(client::Session* session) : session_(*session) {}
  Status Make(const DML_OPERATOR_DESC& desc, Microsoft::WRL::ComPtr<IDMLOperator>* out) override {
    return session_.CreateOperator(desc, out);
  }
  bool has_constant_nodes() const override { return session_.feature_level() >= DML_FEATURE_LEVEL_6_2; }

 private:
  client::Session& session_;
};

}  // namespace

ProgramRunner::ProgramRunner(const Program& program, client::Session* session, DML_EXECUTION_FLAGS flags)
    : program_(program), session_(*session), flags_(flags), maker_(std::make_unique<SessionMaker>(session)) {}

RuntimeValue* ProgramRunner::ValueOf(ValueId id) {
  RuntimeValue& value = values_[id];
  if (const Tensor* const initializer = program_.values()[id].initializer;
      initializer != nullptr && !value.exists()) {
    value = RuntimeValue::Of(*initializer);
  }
  return &value;
}

RuntimeValue RuntimeValue::Of(Tensor tensor) {
  RuntimeValue value;
  value.kind = Kind::kTensor;
  value.type = tensor.type;
  value.shape = tensor.shape;
  value.host = std::move(tensor);
  return value;
}

RuntimeValue RuntimeValue::Sequence(std::vector<RuntimeValue> elements) {
  RuntimeValue value;
  value.kind = Kind::kSequence;
  value.elements = std::move(elements);
  return value;
}

Status ProgramRunner::EnsureHost(RuntimeValue* value) {
  if (value->kind != RuntimeValue::Kind::kTensor)
    return InvalidArgument("a tensor is needed, and there is none");
  if (value->host) return {};
  client::HostBuffer bytes;
  ANYDML_RETURN_IF_ERROR(session_.Read(value->device.Get(), &bytes));
  bytes.resize(PackedBytes(value->type, value->shape).value_or(0));
  value->host = MakeTensor(value->type, value->shape, std::move(bytes));
  return {};
}

Status ProgramRunner::EnsureDevice(RuntimeValue* value) {
  if (value->device) return {};
  const std::span<const std::byte> data = value->host->data;
  const uint64_t bytes = BufferBytes(value->type, value->shape);
  if (data.size() == bytes) return session_.Upload(data, &value->device);
  std::vector<std::byte> padded(data.begin(), data.end());
  padded.resize(bytes);
  return session_.Upload(padded, &value->device);
}

Status ProgramRunner::Compile(const CompiledGraphs* other, CompiledPart* part) {
  if (part->part.graph_outputs.empty()) return {};
  ANYDML_RETURN_IF_ERROR(
      part->graphs.Create(part->part.builder.get(), part->part.graph_outputs, other, &session_, flags_));
  part->part.builder.reset();
  if (explain_) explain_(part->graphs.explanation());
  return {};
}

std::vector<uint64_t> ProgramRunner::InputBytes(const CompiledPart& part) const {
  std::vector<uint64_t> bytes;
  for (const ValueId id : part.graphs.inputs())
    bytes.push_back(BufferBytes(values_[id].type, values_[id].shape));
  return bytes;
}

Status ProgramRunner::TracePart(size_t begin, const FindOutside& outside, bool pin_conditions, Part* part) {
  Tracer tracer(program_, maker_.get(), outside);
  tracer.set_progress(progress_);
  tracer.set_pin_conditions(pin_conditions);
  tracer.set_fold([this](GraphBuilder* builder, std::span<const Source> outputs,
                         std::vector<std::vector<std::byte>>* bytes) {
    CompiledGraphs graphs;
    ANYDML_RETURN_IF_ERROR(graphs.Create(builder, outputs, nullptr, &session_, flags_));
    std::vector<CompiledGraphs::Buffer> slots(graphs.slot_bytes().size());
    for (size_t i = 0; i < slots.size(); ++i)
      ANYDML_RETURN_IF_ERROR(session_.Allocate(graphs.slot_bytes()[i], &slots[i]));
    CompiledGraphs::Buffer temporary;
    ANYDML_RETURN_IF_ERROR(graphs.Record({}, {}, slots, &temporary, &session_));
    std::string data_error;
    ANYDML_RETURN_IF_ERROR(session_.Execute(&data_error));
    if (!data_error.empty()) return Status(Code::kInvalidArgument, data_error);
    bytes->resize(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i)
      ANYDML_RETURN_IF_ERROR(session_.Read(slots[i].Get(), &(*bytes)[i]));
    return Status();
  });
  return tracer.Trace(begin, part);
}

Status ProgramRunner::FindPart(size_t begin, CompiledPart** out) {
  const FindOutside outside = [this](ValueId id) -> std::optional<OutsideValue> {
    const RuntimeValue& value = values_[id];
    if (!value.exists()) return std::nullopt;
    const bool is_tensor = value.kind == RuntimeValue::Kind::kTensor;
    return OutsideValue{value.type, value.shape, value.host ? &*value.host : nullptr, is_tensor};
  };
  Parts& parts = parts_[begin];
  const auto found =
      std::find_if(parts.begin(), parts.end(), [&](const auto& part) { return part->part.Fits(outside); });
  if (found != parts.end()) {
    parts.splice(parts.begin(), parts, found);
    *out = parts.front().get();
    return {};
  }
  auto part = std::make_unique<CompiledPart>();
  ANYDML_RETURN_IF_ERROR(
      TracePart(begin, outside, around_ == nullptr && parts.size() < kMaxPinned, &part->part));
  ANYDML_RETURN_IF_ERROR(Compile(parts.empty() ? nullptr : &parts.front()->graphs, part.get()));
  if (part->part.begin == part->part.end) {
    // Elements must be read first, or the host must compute: the part will differ for the same sizes later.
    empty_part_ = std::move(part);
    *out = empty_part_.get();
    return {};
  }
  parts.push_front(std::move(part));
  uint64_t kept = 0;
  for (const auto& each : parts) kept += each->graphs.persistent_bytes();
  for (; parts.size() > kMaxParts || (parts.size() > 2 && kept > kMaxKeptBytes); parts.pop_back())
    kept -= parts.back()->graphs.persistent_bytes();
  *out = parts.front().get();
  return {};
}

Status ProgramRunner::RunPart(const CompiledPart& part) {
  std::vector<Microsoft::WRL::ComPtr<ID3D12Resource>> inputs, slots(part.graphs.slot_bytes().size());
  if (!part.graphs.empty()) {
    for (const ValueId id : part.graphs.inputs()) {
      ANYDML_RETURN_IF_ERROR(EnsureDevice(&values_[id]));
      inputs.push_back(values_[id].device);
    }
    for (size_t i = 0; i < slots.size(); ++i)
      ANYDML_RETURN_IF_ERROR(session_.Allocate(part.graphs.slot_bytes()[i], &slots[i]));
    CompiledGraphs::Buffer temporary;
    ANYDML_RETURN_IF_ERROR(part.graphs.Record(inputs, InputBytes(part), slots, &temporary, &session_));
    std::string data_error;
    ANYDML_RETURN_IF_ERROR(session_.Execute(&data_error));
    if (!data_error.empty()) return Status(Code::kInvalidArgument, data_error);
  }
  TakeResults(part, slots);
  return {};
}

// Bodies of loops are not, because an iteration's results are the next one's inputs.
bool ProgramRunner::IsWhole(const CompiledPart& part) const {
  return !session_.debug() && !part.graphs.empty() && part.part.begin == 0 &&
         part.part.end == program_.nodes().size() && part.part.read_back.empty() &&
         program_.captures().empty();
}

Status ProgramRunner::RunPrepared(CompiledPart* part) {
  const std::vector<ValueId>& inputs = part->graphs.inputs();
  const bool on_host =
      std::all_of(inputs.begin(), inputs.end(), [this](ValueId id) { return values_[id].host.has_value(); });
  if (!on_host) return RunPart(*part);
  const size_t outputs = part->part.graph_outputs.size();
  if (!part->prepared || part->prepared->timed() != timed_) {
    ANYDML_RETURN_IF_ERROR(
        PreparedRun::Create(&session_, part->graphs, InputBytes(*part), outputs, timed_, &part->prepared));
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    ANYDML_RETURN_IF_ERROR(part->prepared->SetInput(i, values_[inputs[i]].host->data));
  ANYDML_RETURN_IF_ERROR(part->prepared->Execute());
  if (timed_) ANYDML_RETURN_IF_ERROR(part->prepared->DeviceSeconds(&device_seconds_.emplace()));
  TakeResults(*part, std::vector<Microsoft::WRL::ComPtr<ID3D12Resource>>(outputs));
  for (const Part::Result& result : part->part.results) {
    if (result.graph_output == kNever) continue;
    values_[result.id].host = part->prepared->TakeOutput(result.graph_output, result.type, result.shape);
  }
  return {};
}

void ProgramRunner::TakeResults(const CompiledPart& part,
                                const std::vector<Microsoft::WRL::ComPtr<ID3D12Resource>>& buffers) {
  for (const Part::Result& result : part.part.results) {
    RuntimeValue value;
    if (result.same_as != kAbsent) value = values_[result.same_as];
    if (result.graph_output != kNever) value.device = buffers[result.graph_output];
    if (result.constant) value.host = result.constant;
    value.kind = RuntimeValue::Kind::kTensor;
    value.type = result.type;
    value.shape = result.shape;
    if (value.host) {
      value.host->type = result.type;
      value.host->shape = result.shape;
    }
    values_[result.id] = std::move(value);
  }
}

// Frees everything that no later node reads.
void ProgramRunner::Forget(size_t node) {
  for (size_t id = 0; id < values_.size(); ++id) {
    if (program_.values()[id].last_use < node) values_[id] = {};
  }
}

// Frees the values that a program of a single part made of its inputs: a model has thousands of other values.
void ProgramRunner::ForgetWhole(const Part& part) {
  for (const ValueId id : program_.inputs()) values_[id] = {};
  for (const ValueId id : program_.outputs()) values_[id] = {};
  for (const Part::Result& result : part.results) values_[result.id] = {};
  values_are_empty_ = true;
}

Status ProgramRunner::Run(std::vector<RuntimeValue> inputs, std::vector<RuntimeValue> captured,
                          std::vector<RuntimeValue>* outputs) {
  if (!std::exchange(values_are_empty_, false)) values_.assign(program_.values().size(), {});
  device_seconds_.reset();
  iterations_ = 0;
  const Part* whole = nullptr;  // the only part that made values
  bool read_back = false;
  for (size_t i = 0; i < inputs.size(); ++i) values_[program_.inputs()[i]] = std::move(inputs[i]);
  for (size_t i = 0; i < captured.size(); ++i) values_[program_.captures()[i].inner] = std::move(captured[i]);
  for (size_t at = 0; at < program_.nodes().size();) {
    if (IsHostNode(program_.nodes()[at])) {
      ANYDML_RETURN_IF_ERROR(RunHostNode(at));
      Forget(++at);
      continue;
    }
    CompiledPart* part = nullptr;
    ANYDML_RETURN_IF_ERROR(FindPart(at, &part));
    at = part->part.end;
    if (IsWhole(*part)) {
      ANYDML_RETURN_IF_ERROR(RunPrepared(part));
      whole = read_back ? nullptr : &part->part;
      break;
    }
    ANYDML_RETURN_IF_ERROR(RunPart(*part));
    if (!part->part.read_back.empty()) {
      read_back = true;
      bool progress = part->part.begin < part->part.end;
      for (const ValueId id : part->part.read_back) {
        progress |= !ValueOf(id)->host;
        ANYDML_RETURN_IF_ERROR(EnsureHost(ValueOf(id)));
      }
      if (!progress) return Status(Code::kFail, StrCat(program_.Describe(at), " cannot be compiled"));
    } else if (at < program_.nodes().size()) {
      ANYDML_RETURN_IF_ERROR(RunHostNode(at, part->part.refused));
      ++at;
    }
    Forget(at);
  }
  for (const ValueId id : program_.outputs()) outputs->push_back(*ValueOf(id));
  whole != nullptr ? ForgetWhole(*whole) : values_.clear();
  return {};
}

}  // namespace anydml::onnx
