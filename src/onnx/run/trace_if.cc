// Branches of If with a known condition: their nodes become nodes of the enclosing graph.
#include "onnx/run/trace.h"

namespace anydml::onnx {

Status Tracer::InlineIf(size_t index, bool* done) {
  const ProgramNode& node = program_.nodes()[index];
  if (node.proto->type != "If" || !node.proto->domain.empty()) return {};
  if (node.inputs.size() != 1 || node.inputs[0] == kAbsent) return {};
  const TraceValue* const value = Value(node.inputs[0]);
  if (value == nullptr || (!value->constant && !pin_conditions_)) return {};
  // Elements on which the condition depends remain pinned only if that is useful.
  auto pinned = pinned_;
  auto elements = elements_;
  Status status = InlineBranch(node.inputs[0], index, done);
  if (*done || !status.ok()) return status;
  pinned_ = std::move(pinned);
  elements_ = std::move(elements);
  return {};
}

Status Tracer::InlineBranch(ValueId of, size_t index, bool* done) {
  const ProgramNode& node = program_.nodes()[index];
  std::optional<Tensor> condition;
  ANYDML_RETURN_IF_ERROR(Elements(of, 0, &condition));
  const std::vector<int64_t> numbers = condition ? ToInts(*condition) : std::vector<int64_t>();
  if (numbers.size() != 1) return {};
  const auto branch = node.bodies.find(numbers[0] != 0 ? "then_branch" : "else_branch");
  if (branch == node.bodies.end() || branch->second->outputs().size() < node.outputs.size()) return {};
  std::vector<TraceValue> results;
  ANYDML_RETURN_IF_ERROR(InlineBody(*branch->second, &results, done));
  if (*done) return TakeResults(index, std::move(results));
  return {};
}

// Errors in a body occur again when the host runs it, and are reported then.
Status Tracer::InlineBody(const Program& body, std::vector<TraceValue>* results, bool* done) {
  Tracer inner(body, &maker_, [](ValueId) { return std::nullopt; });
  inner.around_ = this;
  inner.builder_ = builder_;
  inner.fold_ = fold_;
  inner.folded_bytes_ = folded_bytes_;
  inner.pin_conditions_ = pin_conditions_;
  for (const Capture& capture : body.captures()) {
    const std::optional<OutsideValue> given = outside_(capture.outer);
    const TraceValue* const value = given && !given->is_tensor ? nullptr : Value(capture.outer);
    if (value == nullptr) return {};
    inner.values_[capture.inner] = *value;
    inner.captured_[capture.inner] = capture.outer;
  }
  for (size_t i = 0; i < body.nodes().size(); ++i) {
    bool inlined = false;
    ANYDML_RETURN_IF_ERROR(inner.InlineIf(i, &inlined));
    if (inlined) continue;
    Part unused;
    Step step = Step::kDone;
    if (inner.IsForHost(body.nodes()[i])) return {};
    if (!inner.TraceNode(i, &unused, &step).ok() || step != Step::kDone) return {};
  }
  for (const ValueId id : body.outputs()) {
    const TraceValue* const value = inner.Value(id);
    if (value == nullptr) return {};
    results->push_back(*value);
  }
  folded_bytes_ = inner.folded_bytes_;
  *done = true;
  return {};
}

}  // namespace anydml::onnx
