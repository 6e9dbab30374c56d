#include "onnx/lower/lowering.h"

namespace anydml::onnx {

const Tensor* Lowering::Host(size_t input) const {
  return input < host_.size() && host_[input] ? &*host_[input] : IfConstant(input);
}

const Tensor* Lowering::IfConstant(size_t input) const {
  return Has(input) && inputs_[input]->constant ? &*inputs_[input]->constant : nullptr;
}

std::vector<int64_t> Lowering::HostInts(size_t input) const {
  const Tensor* const tensor = Host(input);
  return tensor != nullptr ? ToInts(*tensor) : std::vector<int64_t>();
}

std::vector<double> Lowering::HostDoubles(size_t input) const {
  const Tensor* const tensor = Host(input);
  return tensor != nullptr ? ToDoubles(*tensor) : std::vector<double>();
}

View Lowering::Constant(const Tensor& tensor) {
  View view = PackedView(DmlType(tensor.type), tensor.shape);
  if (!view.empty()) view.source = graph_.Constant(tensor);
  return view;
}

View Lowering::In(size_t input) {
  const TraceValue& value = *inputs_[input];
  if (value.source.kind == Source::Kind::kNone) return Constant(*value.constant);
  View view = PackedView(DmlType(value.type), value.shape);
  view.source = value.source;
  return view;
}

void Lowering::Return(size_t output, const View& view, ElementType type, Shape shape) {
  if (output >= results_.size()) return;
  if (view.source.kind == Source::Kind::kNone) {  // nothing was added for a tensor without elements
    if (!view.empty())
      return;  // nor for the operator's other outputs: they are not
               // computed
    Return(output, MakeTensor(type, std::move(shape), std::vector<std::byte>()));
    return;
  }
  results_[output] = {true, type, std::move(shape), view.source, std::nullopt};
  if (view.source.kind == Source::Kind::kConstant) {
    Tensor constant = graph_.constants()[view.source.index];
    constant.type = type;
    constant.shape = results_[output].shape;
    results_[output].source = {};
    results_[output].constant = std::move(constant);
  }
}

void Lowering::Return(size_t output, Tensor constant) {
  if (output >= results_.size()) return;
  TraceValue& result = results_[output];
  result = {true, constant.type, constant.shape, {}, std::nullopt};
  result.constant = std::move(constant);
}

void Lowering::Forward(size_t output, size_t input, Shape shape) {
  if (output >= results_.size()) return;
  TraceValue& result = results_[output];
  result = *inputs_[input];
  result.shape = std::move(shape);
  if (result.constant) result.constant->shape = result.shape;
}

Status LowerNode(const OperatorRow& row, Lowering& node) {
  Status status = row.lower(node);
  return node.attribute_kinds().ok() ? status : node.attribute_kinds();
}

Status EvaluateNode(const OperatorRow& row, HostCall& call) {
  Status status = row.evaluate(call);
  return call.attribute_kinds().ok() ? status : call.attribute_kinds();
}

Status CheckInputs(const ProgramNode& node, const OperatorRow& row) {
  const bool any_number = row.max_inputs == 255;
  size_t given = node.inputs.size();
  while (given > 0 && node.inputs[given - 1] == kAbsent) --given;
  if (given < row.min_inputs || (!any_number && given > row.max_inputs)) {
    return InvalidArgument("it has ", given, " inputs; ", int{row.min_inputs}, " to ",
                           any_number ? "any number" : StrCat(int{row.max_inputs}), " are allowed");
  }
  for (size_t i = 0; i < (any_number ? node.inputs.size() : row.min_inputs); ++i) {
    if (node.inputs[i] == kAbsent) return InvalidArgument("input ", i, " is left out");
  }
  return node.outputs.empty() ? InvalidArgument("it has no outputs") : Status();
}

}  // namespace anydml::onnx
