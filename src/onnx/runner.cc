#include "onnx/runner.h"

#include <algorithm>

namespace anydml::onnx {
namespace {

// How many sets of sizes are kept for a place in a program.
constexpr size_t kMaxParts = 8;
// What the CPU's kernels expect of buffers at most; others are copied.
constexpr uintptr_t kAlignment = 16;

class SessionMaker final : public OperatorMaker {
 public:
  explicit SessionMaker(tools::Session* session) : session_(*session) {}
  Status Make(const DML_OPERATOR_DESC& desc, Microsoft::WRL::ComPtr<IDMLOperator>* out) override {
    return session_.CreateOperator(desc, out);
  }

 private:
  tools::Session& session_;
};

uint64_t BufferBytes(ElementType type, const Shape& shape) {
  return (PackedBytes(type, shape).value_or(0) + 3) / 4 * 4;
}

}  // namespace

ProgramRunner::ProgramRunner(const Program& program, tools::Session* session)
    : program_(program), session_(*session), shares_memory_(session->adapter().id == "cpu") {}

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
  tools::HostBuffer bytes;
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

// On the CPU weights are read where the file is mapped: only what initialisation makes of them takes memory.
Status ProgramRunner::WeightBuffer(const Tensor& tensor, Microsoft::WRL::ComPtr<ID3D12Resource>* out) {
  RuntimeValue value = RuntimeValue::Of(tensor);
  if (shares_memory_ && reinterpret_cast<uintptr_t>(tensor.data.data()) % kAlignment == 0) {
    auto* const memory = const_cast<std::byte*>(tensor.data.data());  // initialisation only reads
    ANYDML_RETURN_IF_ERROR(session_.Wrap(memory, tensor.data.size(), &value.device));
  } else {
    ANYDML_RETURN_IF_ERROR(EnsureDevice(&value));
  }
  *out = value.device;
  return {};
}

Status ProgramRunner::Compile(CompiledPart* part) {
  if (part->part.graph_outputs.empty()) return {};
  GraphBuilder::Description description;
  part->part.builder->Describe(part->part.graph_outputs, &description);
  std::vector<DML_BUFFER_BINDING> owned(description.inputs.size());
  std::vector<Microsoft::WRL::ComPtr<ID3D12Resource>> weights(owned.size());
  bool any_owned = false;
  for (size_t i = 0; i < description.inputs.size(); ++i) {
    part->inputs.push_back(description.inputs[i].value);
    const Tensor* const weight = description.inputs[i].constant;
    if (weight == nullptr) continue;
    ANYDML_RETURN_IF_ERROR(WeightBuffer(*weight, &weights[i]));
    owned[i] = {weights[i].Get(), 0, BufferBytes(weight->type, weight->shape)};
    any_owned = true;
  }
  if (!any_owned) owned.clear();
  ANYDML_RETURN_IF_ERROR(
      session_.CompileGraph(description.desc, DML_EXECUTION_FLAG_NONE, &part->compiled.emplace()));
  ANYDML_RETURN_IF_ERROR(session_.Initialize(owned, &*part->compiled));
  part->output_bytes.resize(part->part.graph_outputs.size());
  for (const Part::Result& result : part->part.results) {
    if (result.graph_output != kNever)
      part->output_bytes[result.graph_output] = BufferBytes(result.type, result.shape);
  }
  std::string data_error;
  ANYDML_RETURN_IF_ERROR(session_.Execute(&data_error));  // initialises, and lets go of the weights
  part->part.builder.reset();  // operators, and constants that initialisation reads where they are
  return {};
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
  SessionMaker maker(&session_);
  Tracer tracer(program_, &maker, outside);
  tracer.set_progress(progress_);
  ANYDML_RETURN_IF_ERROR(tracer.Trace(begin, &part->part));
  ANYDML_RETURN_IF_ERROR(Compile(part.get()));
  if (part->part.begin == part->part.end) {
    // Elements are to be read first, or the host has to do it: the same sizes will be something else then.
    empty_part_ = std::move(part);
    *out = empty_part_.get();
    return {};
  }
  if (parts.size() == kMaxParts) parts.pop_back();
  parts.push_front(std::move(part));
  *out = parts.front().get();
  return {};
}

Status ProgramRunner::RunPart(const CompiledPart& part) {
  std::vector<Microsoft::WRL::ComPtr<ID3D12Resource>> buffers(part.output_bytes.size());
  if (part.compiled) {
    std::vector<DML_BUFFER_BINDING> inputs(part.inputs.size()), outputs(buffers.size());
    for (size_t i = 0; i < part.inputs.size(); ++i) {
      if (part.inputs[i] == kAbsent) continue;
      RuntimeValue& value = values_[part.inputs[i]];
      ANYDML_RETURN_IF_ERROR(EnsureDevice(&value));
      inputs[i] = {value.device.Get(), 0, BufferBytes(value.type, value.shape)};
    }
    for (size_t i = 0; i < buffers.size(); ++i) {
      ANYDML_RETURN_IF_ERROR(session_.Allocate(part.output_bytes[i], &buffers[i]));
      outputs[i] = {buffers[i].Get(), 0, part.output_bytes[i]};
    }
    ANYDML_RETURN_IF_ERROR(session_.Record(*part.compiled, inputs, outputs));
    std::string data_error;
    ANYDML_RETURN_IF_ERROR(session_.Execute(&data_error));
    if (!data_error.empty()) return Status(Code::kInvalidArgument, data_error);
  }
  TakeResults(part, buffers);
  return {};
}

// Bodies of loops are not: an iteration's results are the next one's inputs.
bool ProgramRunner::IsWhole(const CompiledPart& part) const {
  return !session_.debug() && part.compiled && part.part.begin == 0 &&
         part.part.end == program_.nodes().size() && part.part.read_back.empty() &&
         program_.captures().empty();
}

Status ProgramRunner::RunPrepared(CompiledPart* part) {
  std::vector<uint64_t> input_bytes;
  for (const ValueId id : part->inputs) {
    if (id != kAbsent && !values_[id].host) return RunPart(*part);
    input_bytes.push_back(id == kAbsent ? 0 : BufferBytes(values_[id].type, values_[id].shape));
  }
  if (!part->prepared) {
    ANYDML_RETURN_IF_ERROR(
        PreparedRun::Create(&session_, *part->compiled, input_bytes, part->output_bytes, &part->prepared));
  }
  for (size_t i = 0; i < part->inputs.size(); ++i) {
    if (part->inputs[i] == kAbsent) continue;
    const std::span<const std::byte> data = values_[part->inputs[i]].host->data;
    std::copy(data.begin(), data.end(), part->prepared->input(i).begin());
  }
  ANYDML_RETURN_IF_ERROR(part->prepared->Execute());
  TakeResults(*part, std::vector<Microsoft::WRL::ComPtr<ID3D12Resource>>(part->output_bytes.size()));
  for (const Part::Result& result : part->part.results) {
    if (result.graph_output == kNever) continue;
    const std::span<const std::byte> data =
        part->prepared->output(result.graph_output).first(PackedBytes(result.type, result.shape).value_or(0));
    values_[result.id].host =
        MakeTensor(result.type, result.shape, std::vector<std::byte>(data.begin(), data.end()));
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

// Everything that no node after this one reads.
void ProgramRunner::Forget(size_t node) {
  for (size_t id = 0; id < values_.size(); ++id) {
    if (program_.values()[id].last_use < node) values_[id] = {};
  }
}

Status ProgramRunner::Run(std::vector<RuntimeValue> inputs, std::vector<RuntimeValue> captured,
                          std::vector<RuntimeValue>* outputs) {
  values_.assign(program_.values().size(), {});
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
    ANYDML_RETURN_IF_ERROR(IsWhole(*part) ? RunPrepared(part) : RunPart(*part));
    at = part->part.end;
    if (!part->part.read_back.empty()) {
      bool progress = part->part.begin < part->part.end;
      for (const ValueId id : part->part.read_back) {
        progress |= !ValueOf(id)->host;
        ANYDML_RETURN_IF_ERROR(EnsureHost(ValueOf(id)));
      }
      if (!progress) return Status(Code::kFail, StrCat(program_.Describe(at), " cannot be compiled"));
    } else if (at < program_.nodes().size()) {
      ANYDML_RETURN_IF_ERROR(RunHostNode(at));
      ++at;
    }
    Forget(at);
  }
  for (const ValueId id : program_.outputs()) outputs->push_back(*ValueOf(id));
  values_.clear();
  return {};
}

}  // namespace anydml::onnx
