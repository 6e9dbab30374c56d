#include "onnx/run/trace.h"

#include <algorithm>
#include <cstring>

#include "onnx/host/host.h"

namespace anydml::onnx {
namespace {

// Chains of shape arithmetic are short; a hostile one would exhaust the stack.
constexpr int kMaxChain = 200;
// Shapes, axes and conditions are small; pinned ones are compared in every run.
constexpr size_t kMaxPinnedBytes = size_t{64} << 10;

Status About(const Program& program, size_t node, const Status& status) {
  const char* const prefix = status.code() == Code::kUnsupported ? "unsupported: " : "";
  return Status(status.code(), StrCat(prefix, Title(program.nodes()[node]), ": ", status.message()));
}

bool SameElements(const Tensor& a, const Tensor& b) {
  return a.type == b.type && a.shape == b.shape && a.data.size() == b.data.size() &&
         (a.data.empty() || std::memcmp(a.data.data(), b.data.data(), a.data.size()) == 0);
}

}  // namespace

bool IsSequenceOperator(const std::string& type) {
  return type.find("Sequence") != std::string::npos ? type != "ReverseSequence"
                                                    : type.starts_with("Optional");
}

bool IsHostNode(const ProgramNode& node) {
  if (!node.bodies.empty() || IsSequenceOperator(node.proto->type)) return true;
  const OperatorRow* const row = FindOperator(node.proto->domain, node.proto->type);
  return row != nullptr && row->on_host;
}

bool Part::Fits(const FindOutside& outside) const {
  for (const Expected& value : expected) {
    const std::optional<OutsideValue> given = outside(value.id);
    if (!given || given->type != value.type || given->shape != value.shape) return false;
  }
  for (const auto& [id, tensor] : pinned) {
    const std::optional<OutsideValue> given = outside(id);
    if (!given || given->host == nullptr || !SameElements(*given->host, tensor)) return false;
  }
  return true;
}

Tracer::Tracer(const Program& program, OperatorMaker* maker, FindOutside outside)
    : program_(program), maker_(*maker), outside_(std::move(outside)), values_(program.values().size()) {}

TraceValue* Tracer::Value(ValueId id) {
  TraceValue& value = values_[id];
  if (value.known) return &value;
  if (const Tensor* const initializer = program_.values()[id].initializer; initializer != nullptr) {
    value = {true, initializer->type, initializer->shape, {}, *initializer};
    return &value;
  }
  const std::optional<OutsideValue> given = outside_(id);
  if (!given) return nullptr;
  expected_[id] = {id, given->type, given->shape};
  value = {true, given->type, given->shape, {}, std::nullopt};
  if (ElementCount(given->shape) == 0) {
    value.constant = MakeTensor(given->type, given->shape, std::vector<std::byte>());
  } else {
    value.source = builder_->Input(id);
  }
  return &value;
}

void Tracer::PinElements(ValueId id, std::optional<Tensor>* out) {
  const std::optional<OutsideValue> given = outside_(id);
  if (given->host == nullptr || given->host->data.size() > kMaxPinnedBytes) return;
  // A copy, because the caller's memory may be reused later.
  const Tensor& host = *given->host;
  pinned_[id] = MakeTensor(host.type, host.shape, std::vector<std::byte>(host.data.begin(), host.data.end()));
  elements_[id] = pinned_[id];
  *out = pinned_[id];
}

Status Tracer::Elements(ValueId id, int depth, std::optional<Tensor>* out) {
  TraceValue* const value = Value(id);
  if (value == nullptr) return {};
  if (value->constant) {
    *out = *value->constant;
    return {};
  }
  if (const auto found = elements_.find(id); found != elements_.end()) {
    *out = found->second;
    return {};
  }
  elements_[id] = std::nullopt;
  if (expected_.contains(id)) {
    PinElements(id, out);
    return {};
  }
  const size_t producer = program_.values()[id].producer;
  if (const auto captured = captured_.find(id); captured != captured_.end()) {
    ANYDML_RETURN_IF_ERROR(around_->Elements(captured->second, depth + 1, out));
    elements_[id] = *out;
    return {};
  }
  if (producer == kNever || producer < begin_ || depth > kMaxChain ||
      ElementCount(value->shape) > kMaxHostElements) {
    return {};
  }
  const ProgramNode& node = program_.nodes()[producer];
  const OperatorRow* const row = FindOperator(node.proto->domain, node.proto->type);
  if (row == nullptr || (row->evaluate == nullptr && !row->forwards)) return {};
  // If the graph can compute it anyway, do not look at its elements and depend on them.
  if (host::LeavesFloats(row->evaluate)) {
    const TraceValue* const first = Value(node.inputs[0]);
    if (first != nullptr && (first->type == ElementType::kFloat || first->type == ElementType::kFloat16))
      return {};
  }
  std::vector<std::optional<Tensor>> inputs(node.inputs.size());
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kAbsent || (row->forwards && i > 0)) continue;
    ANYDML_RETURN_IF_ERROR(Elements(node.inputs[i], depth + 1, &inputs[i]));
    if (!inputs[i]) return {};
  }
  if (row->forwards) {
    inputs[0]->shape = value->shape;
    elements_[id] = inputs[0];
  } else {
    std::vector<Tensor> outputs;
    const Status status = Evaluate(producer, *row, inputs, &outputs);
    if (status.code() == Code::kUnsupported) return {};  // the graph computes it
    ANYDML_RETURN_IF_ERROR(status);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kAbsent) elements_[node.outputs[i]] = outputs[i];
    }
  }
  *out = elements_[id];
  return {};
}

Status Tracer::Evaluate(size_t index, const OperatorRow& row,
                        const std::vector<std::optional<Tensor>>& inputs, std::vector<Tensor>* outputs) {
  std::vector<const Tensor*> pointers;
  for (const std::optional<Tensor>& input : inputs) pointers.push_back(input ? &*input : nullptr);
  HostCall call(program_.nodes()[index], std::move(pointers));
  ANYDML_RETURN_IF_ERROR(EvaluateNode(row, call));
  *outputs = std::move(call.outputs);
  return {};
}

Status Tracer::Lower(size_t index, const OperatorRow& row, Part* part) {
  const ProgramNode& node = program_.nodes()[index];
  std::vector<const TraceValue*> inputs;
  std::vector<std::optional<Tensor>> host(node.inputs.size());
  bool constant = true;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId id = node.inputs[i];
    inputs.push_back(id == kAbsent ? nullptr : Value(id));
    if (id == kAbsent) continue;
    if (inputs[i] == nullptr)
      return InvalidArgument("\"", program_.values()[id].name.substr(0, 80), "\" is not there");
    constant &= inputs[i]->constant.has_value();
    if (i >= 32 || (row.host_inputs >> i & 1) == 0) continue;
    ANYDML_RETURN_IF_ERROR(Elements(id, 0, &host[i]));
    if (!host[i]) part->read_back.push_back(id);
  }
  if (!part->read_back.empty()) return {};

  if (constant) {
    Status status;
    if (EvaluateConstants(index, row, inputs, &status)) return status;
    bool done = false;
    ANYDML_RETURN_IF_ERROR(Fold(index, row, inputs, host, &done));
    if (done) return {};
  }
  builder_->SetOrigin(node.proto->name.empty() ? node.proto->type : node.proto->name);
  Lowering lowering(node, row, builder_.get(), std::move(inputs), std::move(host));
  const Status status = LowerNode(row, lowering);
  if (status.code() == Code::kUnsupported) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {  // of types that DirectML lacks
      if (node.inputs[i] == kAbsent) continue;
      const ElementType type = Value(node.inputs[i])->type;
      if (DmlType(type) == DataType::kUnknown) return Unsupported("input ", i, " of ", Name(type));
    }
  }
  ANYDML_RETURN_IF_ERROR(status);
  return TakeResults(index, lowering.TakeResults());
}

Status Tracer::TakeResults(size_t index, std::vector<TraceValue> results) {
  const ProgramNode& node = program_.nodes()[index];
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kAbsent) continue;
    if (!results[i].known) return Unsupported("output ", i, " is not computed");
    if (!ElementCount(results[i].shape))
      return InvalidArgument("a result of ", ShapeToString(results[i].shape), " is too large");
    values_[node.outputs[i]] = std::move(results[i]);
  }
  return {};
}

Status Tracer::TraceNode(size_t index, Part* part, Step* step) {
  const ProgramNode& node = program_.nodes()[index];
  const OperatorRow* const row = FindOperator(node.proto->domain, node.proto->type);
  if (row == nullptr) return Unsupported(WhyUnknown(node.proto->domain));
  ANYDML_RETURN_IF_ERROR(CheckInputs(node, *row));
  ANYDML_RETURN_IF_ERROR(Lower(index, *row, part));
  *step = part->read_back.empty() ? Step::kDone : Step::kNeedsElements;
  return {};
}

bool Tracer::CanEvaluate(const ProgramNode& node) const {
  const OperatorRow* const row = FindOperator(node.proto->domain, node.proto->type);
  return row != nullptr && row->evaluate != nullptr;
}

bool Tracer::IsForHost(const ProgramNode& node) {
  const OperatorRow* const row = FindOperator(node.proto->domain, node.proto->type);
  if (row != nullptr && row->random) return true;
  if (IsHostNode(node)) return IsSequenceOperator(node.proto->type) || !IsConstant(node);
  return std::any_of(node.inputs.begin(), node.inputs.end(), [this](ValueId id) {
    if (id == kAbsent || values_[id].known) return false;
    const std::optional<OutsideValue> given = outside_(id);
    return given && !given->is_tensor;
  });
}

bool Tracer::IsConstant(const ProgramNode& node) {
  return node.bodies.empty() && std::all_of(node.inputs.begin(), node.inputs.end(), [this](ValueId id) {
           const TraceValue* const value = id == kAbsent ? nullptr : Value(id);
           return id == kAbsent || (value != nullptr && value->constant);
         });
}

Status Tracer::Trace(size_t begin, Part* part) {
  builder_ = std::make_shared<GraphBuilder>(&maker_);
  begin_ = begin;
  part->begin = part->end = begin;
  for (size_t i = begin; i < program_.nodes().size(); ++i) {
    bool inlined = false;
    ANYDML_RETURN_IF_ERROR(InlineIf(i, &inlined));
    if (!inlined) {
      if (IsForHost(program_.nodes()[i])) break;
      Step step = Step::kDone;
      const Status status = TraceNode(i, part, &step);
      // A type that DirectML lacks (usually double): the host computes it, if it can.
      if (status.code() == Code::kUnsupported && CanEvaluate(program_.nodes()[i])) {
        part->refused = status.message();
        break;
      }
      if (!status.ok()) return About(program_, i, status);
      if (step == Step::kNeedsElements) break;
    }
    part->end = i + 1;
    if (progress_) progress_(part->end);
  }
  Finish(part);
  return {};
}

// Node by node, in the model's order. Values that are views of each other count once.
uint64_t Tracer::MostLiveBytes(const Part& part) const {
  struct Life {
    uint64_t bytes = 0;
    size_t last_use = 0;
  };
  std::map<Source, Life> lives;
  std::map<size_t, uint64_t> ends;
  uint64_t live = 0, most = 0;
  for (size_t i = part.begin; i < part.end; ++i) {
    for (const ValueId id : program_.nodes()[i].outputs) {
      if (id == kAbsent || values_[id].source.kind != Source::Kind::kNode) continue;
      Life& life = lives[values_[id].source];
      life.bytes = std::max(life.bytes, PackedBytes(values_[id].type, values_[id].shape).value_or(0));
      life.last_use = std::max(life.last_use, std::min(program_.values()[id].last_use, part.end));
    }
  }
  for (const auto& [source, life] : lives) ends[life.last_use] += life.bytes;
  std::map<Source, bool> begun;
  for (size_t i = part.begin; i < part.end; ++i) {
    for (const ValueId id : program_.nodes()[i].outputs) {
      if (id == kAbsent || values_[id].source.kind != Source::Kind::kNode) continue;
      if (begun.try_emplace(values_[id].source, true).second) live += lives[values_[id].source].bytes;
    }
    most = std::max(most, live);
    if (const auto end = ends.find(i); end != ends.end()) live -= end->second;
  }
  return most;
}

void Tracer::Finish(Part* part) {
  std::map<Source, size_t> outputs;
  for (size_t i = part->begin; i < part->end; ++i) {
    for (const ValueId id : program_.nodes()[i].outputs) {
      if (id == kAbsent || program_.values()[id].last_use < part->end) continue;
      const TraceValue& value = values_[id];
      Part::Result result{id, value.type, value.shape, kNever, kAbsent, value.constant};
      if (value.source.kind == Source::Kind::kNode) {
        const auto [found, added] = outputs.try_emplace(value.source, part->graph_outputs.size());
        if (added) part->graph_outputs.push_back(value.source);
        result.graph_output = found->second;
      } else if (value.source.kind == Source::Kind::kInput) {
        result.same_as = builder_->ValueOf(value.source);
      }
      part->results.push_back(std::move(result));
    }
  }
  part->live_bytes = MostLiveBytes(*part);
  for (const auto& [id, value] : expected_) part->expected.push_back(value);
  for (const auto& [id, tensor] : pinned_) part->pinned.emplace_back(id, tensor);
  part->builder = std::move(builder_);
}

}  // namespace anydml::onnx
