// Nodes with constant inputs: computed once, while a model is compiled.
#include <algorithm>

#include "onnx/run/trace.h"

namespace anydml::onnx {
namespace {

// The limit of folded tensors, which the host keeps until they are packed; and the growth allowed relative to
// the inputs: eight bits may become a float.
constexpr uint64_t kMaxFoldedBytes = uint64_t{1} << 30;
constexpr uint64_t kMaxGrowth = 4;

}  // namespace

bool Tracer::EvaluateConstants(size_t index, const OperatorRow& row,
                               const std::vector<const TraceValue*>& inputs, Status* status) {
  const ProgramNode& node = program_.nodes()[index];
  int64_t elements = 0;
  std::vector<std::optional<Tensor>> tensors(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    elements += ElementCount(inputs[i]->shape).value_or(kMaxHostElements);
    tensors[i] = inputs[i]->constant;
  }
  if (row.evaluate == nullptr || elements > kMaxHostElements) return false;
  std::vector<Tensor> outputs;
  *status = Evaluate(index, row, tensors, &outputs);
  // What the host does not do (a type, a large result), DirectML may do.
  if (status->code() == Code::kUnsupported) return false;
  for (size_t i = 0; status->ok() && i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kAbsent) continue;
    values_[node.outputs[i]] = {true, outputs[i].type, outputs[i].shape, {}, outputs[i]};
  }
  return true;
}

Status Tracer::Fold(size_t index, const OperatorRow& row, const std::vector<const TraceValue*>& inputs,
                    const std::vector<std::optional<Tensor>>& host, bool* done) {
  const ProgramNode& node = program_.nodes()[index];
  uint64_t read = 0, written = 0;
  for (const TraceValue* const input : inputs) read += input != nullptr ? input->constant->data.size() : 0;
  if (!fold_ || read == 0) return {};
  GraphBuilder builder(&maker_);
  builder.SetOrigin(node.proto->type);
  Lowering lowering(node, row, &builder, inputs, host);
  ANYDML_RETURN_IF_ERROR(LowerNode(row, lowering));
  std::vector<TraceValue> results = lowering.TakeResults();
  std::vector<Source> sources;
  for (const TraceValue& result : results) {
    if (result.source.kind != Source::Kind::kNode) continue;
    written += PackedBytes(result.type, result.shape).value_or(kMaxFoldedBytes);
    sources.push_back(result.source);
  }
  // A broadcast element should stay one, with a stride of 0.
  if (written > kMaxGrowth * read || folded_bytes_ + written > kMaxFoldedBytes) return {};
  std::sort(sources.begin(), sources.end());
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  std::vector<std::vector<std::byte>> bytes;
  if (!sources.empty()) ANYDML_RETURN_IF_ERROR(fold_(&builder, sources, &bytes));
  for (TraceValue& result : results) {
    if (result.source.kind != Source::Kind::kNode) continue;
    const auto at = std::lower_bound(sources.begin(), sources.end(), result.source) - sources.begin();
    std::vector<std::byte> own = bytes[static_cast<size_t>(at)];
    own.resize(PackedBytes(result.type, result.shape).value_or(0));
    result.constant = MakeTensor(result.type, result.shape, std::move(own));
    result.source = {};
  }
  folded_bytes_ += written;
  *done = true;
  return TakeResults(index, std::move(results));
}

}  // namespace anydml::onnx
