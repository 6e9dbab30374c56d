// Merges nodes that follow a product, a convolution or a normalisation into it, as fields of its description:
// an added tensor becomes CTensor or BiasTensor, an activation the FusedActivation and, on a CPU, CLIP the
// limits of a quantised convolution. Sums are then rounded to FLOAT16 after the merged operation instead of
// before; without the flag that allows this, only RELU and CLIP are merged, for which the result is the same.
// The pass "fuse" handles element-wise operators.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <variant>

#include "base/half.h"
#include "graph/passes/passes.h"
#include "graph/passes/view.h"
#include "schema/descriptions.generated.h"
#include "schema/validate.h"

namespace anydml {
namespace {

OperatorType TypeOf(const OperatorDesc& desc) { return static_cast<OperatorType>(desc.schema->type); }

FieldValue* FieldOf(OperatorDesc& desc, const char* name) {
  const int field = FindField(*desc.schema, name);
  return field < 0 ? nullptr : &desc.fields[static_cast<size_t>(field)];
}
bool IsAbsent(const FieldValue& value) {
  const auto* const fused = std::get_if<std::shared_ptr<const OperatorDesc>>(&value);
  return std::holds_alternative<std::monostate>(value) || (fused != nullptr && *fused == nullptr);
}

float NumberOf(const Scalar& scalar, DataType type) {
  if (type == DataType::kFloat16) {
    uint16_t bits;
    std::memcpy(&bits, scalar.bytes.data(), sizeof(bits));
    return ToFloat(Half{bits});
  }
  float number;
  std::memcpy(&number, scalar.bytes.data(), sizeof(number));
  return number;
}

// The activation as a field of another description: without tensors. Of a floating-point type.
OperatorDesc AsFused(const OperatorDesc& activation) {
  OperatorDesc fused = activation;
  if (TypeOf(activation) == OperatorType::kElementWiseClip1) {
    // Equivalent to CLIP, and only CLIP may be fused.
    const auto clip = ElementWiseClip1Desc::From(activation);
    fused.schema = FindOperator(OperatorType::kElementWiseClip);
    fused.fields.resize(fused.schema->fields.size());
    *FieldOf(fused, "Min") = NumberOf(clip.min, clip.input.type);
    *FieldOf(fused, "Max") = NumberOf(clip.max, clip.input.type);
  }
  for (size_t i = 0; i < fused.fields.size(); ++i) {
    if (fused.schema->fields[i].kind != FieldKind::kAttribute) fused.fields[i] = std::monostate();
  }
  return fused;
}

// Whether rounding to FLOAT16 before it and after it gives the same: its limits must be FLOAT16 numbers.
bool CommutesWithRounding(const OperatorDesc& fused) {
  if (TypeOf(fused) == OperatorType::kActivationRelu) return true;
  if (TypeOf(fused) != OperatorType::kElementWiseClip) return false;
  const float min = std::get<float>(fused.fields[static_cast<size_t>(FindField(*fused.schema, "Min"))]);
  const float max = std::get<float>(fused.fields[static_cast<size_t>(FindField(*fused.schema, "Max"))]);
  return min <= max && ToFloat(ToHalf(min)) == min && ToFloat(ToHalf(max)) == max;
}

// Makes `writer` the tensor to write instead: the reader sees writer's elements as `read` and turns them into
// `result`. False if no tensor does. Layouts stay the same, because the kernel was chosen for them.
bool WriteInstead(const TensorDesc& read, const TensorDesc& result, TensorDesc* writer) {
  if (read.type != writer->type || result.type != writer->type) return false;
  if (SameLayout(read, *writer) && SameLayout(result, *writer)) {
    *writer = result;
    return true;
  }
  // Packed tensors with other dimensions but the same order of elements.
  if (!IsPacked(read) || !IsPacked(*writer) || !IsPacked(result)) return false;
  if (ElementCount(read) != ElementCount(*writer) || ElementCount(result) != ElementCount(*writer))
    return false;
  writer->total_bytes = result.total_bytes;
  writer->alignment = result.alignment;
  return true;
}

// Rewrites `added`, which is added to a tensor, with the dimensions of `other`, which has the same elements
// in the same order: either a packed tensor of as many elements, or one row for all. False if it is neither.
bool SeeAs(const TensorDesc& other, const TensorDesc& added, TensorDesc* seen) {
  *seen = added;
  if (added.rank == other.rank &&
      std::equal(added.sizes.begin(), added.sizes.begin() + added.rank, other.sizes.begin())) {
    return true;
  }
  if (ElementCount(added) != ElementCount(other)) return false;
  const uint32_t last = other.rank - 1;
  seen->rank = other.rank;
  seen->sizes = other.sizes;
  seen->strides = {};
  if (IsPacked(added)) {
    SetPackedStrides(seen);
    return true;
  }
  if (added.sizes[added.rank - 1] != other.sizes[last]) return false;
  for (uint32_t d = 0; d + 1 < added.rank; ++d) {
    if (added.sizes[d] > 1 && added.strides[d] != 0) return false;
  }
  seen->strides[last] = added.strides[added.rank - 1];
  return true;
}

constexpr uint32_t kAllowHalfPrecision = 1;  // DML_EXECUTION_FLAG_ALLOW_HALF_PRECISION_COMPUTATION

class Absorbing {
 public:
  Absorbing(const LowerContext& context, Graph* graph)
      : unit_bytes_(context.device->unit_bytes),
        rounds_late_((context.execution_flags & kAllowHalfPrecision) != 0),
        graph_(*graph),
        uses_(FindUses(*graph)) {}

  void Run() {
    // A merged node moves to its reader's index, where the loop visits it again.
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) Absorb(i);
    RemoveEmptyNodes(&graph_);
  }

 private:
  void Absorb(uint32_t node);
  // Merges the reader's work into `host`; false if that is impossible.
  bool TakeActivation(const GraphNode& reader, GraphNode* host) const;
  bool TakeAddition(const GraphNode& reader, GraphNode* host) const;
  bool TakeLimits(const GraphNode& reader, GraphNode* host) const;
  bool AddMatrix(const TensorDesc& added, OperatorDesc* desc) const;
  bool AddBias(const TensorDesc& added, OperatorDesc* desc) const;

  const uint32_t unit_bytes_;
  const bool rounds_late_;  // intermediate results need not be rounded to FLOAT16
  Graph& graph_;
  const std::vector<GraphUse> uses_;
};

bool IsValid(const GraphOperator& op) {
  return ValidateOperatorDesc(op.desc, kLatestFeatureLevel).ok() &&
         op.op->check(op.desc, kLatestFeatureLevel).ok();
}

void Absorbing::Absorb(uint32_t number) {
  GraphNode& node = graph_.nodes[number];
  if (node.op() == nullptr || IsElementWise(node.op()->desc) || node.outputs.empty()) return;
  // Moved to its reader's index, the node would run too late for readers of its other outputs.
  const auto is_present = [](const GraphOperand& operand) { return operand.present(); };
  if (std::count_if(node.outputs.begin(), node.outputs.end(), is_present) != 1) return;
  const GraphOperand output = node.outputs[0];
  if (!output.present() || graph_.values[output.value].home != GraphValue::Home::kTemporary) return;
  const GraphUse& use = uses_[output.value];
  if (use.writers.size() != 1 || use.readers.size() != 1 || use.readers[0] < number) return;
  GraphNode& reader = graph_.nodes[use.readers[0]];
  if (reader.op() == nullptr || reader.outputs.size() != 1) return;
  // A part of a larger value: kernels that write in units need outputs aligned as DirectML's tensors are.
  if (unit_bytes_ > 1 && reader.outputs[0].offset != output.offset) return;
  const auto reads = [&](const GraphOperand& operand) { return operand.value == output.value; };
  if (std::count_if(reader.inputs.begin(), reader.inputs.end(), reads) != 1) return;
  if (std::find_if(reader.inputs.begin(), reader.inputs.end(), reads)->offset != output.offset) return;
  GraphNode host = node;
  if (!TakeActivation(reader, &host) && !TakeAddition(reader, &host) && !TakeLimits(reader, &host)) return;
  if (!IsValid(*host.op())) return;
  host.outputs[0] = reader.outputs[0];
  graph_.log.push_back(StrCat("activation: ", reader.name, " is done by ", node.name));
  host.name = StrCat(node.name, " + ", reader.name);
  // At the reader's index, everything that the merged node reads has been written.
  reader = std::move(host);
  node.inputs.clear();
  node.outputs.clear();
}

bool Absorbing::TakeActivation(const GraphNode& reader, GraphNode* host) const {
  const OperatorDesc& activation = reader.op()->desc;
  OperatorDesc& desc = host->op()->desc;
  FieldValue* const fused = FieldOf(desc, "FusedActivation");
  FieldValue* const output = FieldOf(desc, "OutputTensor");
  if (!IsElementWise(activation) || activation.inputs().size() != 1 || fused == nullptr ||
      !IsAbsent(*fused) || output == nullptr) {
    return false;
  }
  auto& written = std::get<TensorDesc>(*output);
  if (desc.outputs()[0] != &written) return false;
  if (written.type != DataType::kFloat32 && written.type != DataType::kFloat16) return false;
  if (!WriteInstead(*activation.inputs()[0], *activation.outputs()[0], &written)) return false;
  OperatorDesc work = AsFused(activation);
  if (written.type != DataType::kFloat32 && !rounds_late_ && !CommutesWithRounding(work)) return false;
  *fused = std::make_shared<const OperatorDesc>(std::move(work));
  return true;
}

bool Absorbing::TakeAddition(const GraphNode& reader, GraphNode* host) const {
  const OperatorDesc& addition = reader.op()->desc;
  const bool has_activation = TypeOf(addition) == OperatorType::kElementWiseAdd1;
  if (!has_activation && TypeOf(addition) != OperatorType::kElementWiseAdd) return false;
  OperatorDesc& desc = host->op()->desc;
  const bool is_product = TypeOf(desc) == OperatorType::kGemm;
  if (!is_product && TypeOf(desc) != OperatorType::kConvolution) return false;
  FieldValue& fused = *FieldOf(desc, "FusedActivation");
  if (!IsAbsent(fused)) return false;
  const size_t from_host = reader.inputs[0].value == host->outputs[0].value ? 0 : 1;
  const auto tensors = addition.inputs();
  // A bias is read in units, while an ADD reads any view.
  if (reader.inputs[1 - from_host].offset % unit_bytes_ != 0) return false;
  const TensorDesc& added = *tensors[1 - from_host];
  const TensorDesc& result = *addition.outputs()[0];
  auto& written = std::get<TensorDesc>(*FieldOf(desc, "OutputTensor"));
  if (written.type != DataType::kFloat32 && !rounds_late_) return false;
  if (added.type != written.type) return false;
  TensorDesc seen;
  if (!SeeAs(written, added, &seen) || !WriteInstead(*tensors[from_host], result, &written)) return false;
  if (is_product ? !AddMatrix(seen, &desc) : !AddBias(seen, &desc)) return false;
  if (has_activation)
    fused = addition.fields[static_cast<size_t>(FindField(*addition.schema, "FusedActivation"))];
  host->inputs.resize(std::max<size_t>(host->inputs.size(), 3));
  host->inputs[2] = reader.inputs[1 - from_host];
  return true;
}

// CLIP1 of a convolution's bytes.
bool Absorbing::TakeLimits(const GraphNode& reader, GraphNode* host) const {
  GraphOperator& op = *host->op();
  if (op.limits || TypeOf(op.desc) != OperatorType::kQuantizedLinearConvolution ||
      TypeOf(reader.op()->desc) != OperatorType::kElementWiseClip1) {
    return false;
  }
  const auto clip = ElementWiseClip1Desc::From(reader.op()->desc);
  const auto limit = [&](const Scalar& scalar) {
    const auto byte = static_cast<uint8_t>(scalar.bytes[0]);
    return clip.input.type == DataType::kInt8 ? static_cast<int8_t>(byte) : int32_t{byte};
  };
  const ByteLimits limits = {limit(clip.min), limit(clip.max)};
  auto& written = std::get<TensorDesc>(*FieldOf(op.desc, "OutputTensor"));
  if (clip.scale_bias || limits.low > 0 || limits.high < 0 ||
      !WriteInstead(clip.input, clip.output, &written))
    return false;
  op.limits = limits;
  return true;
}

bool Absorbing::AddMatrix(const TensorDesc& added, OperatorDesc* desc) const {
  FieldValue& matrix = *FieldOf(*desc, "CTensor");
  if (!IsAbsent(matrix)) return false;
  matrix = added;
  *FieldOf(*desc, "Beta") = 1.0f;
  return true;
}

// One number per channel.
bool Absorbing::AddBias(const TensorDesc& added, OperatorDesc* desc) const {
  FieldValue& bias = *FieldOf(*desc, "BiasTensor");
  if (!IsAbsent(bias)) return false;
  TensorDesc channels = added;
  for (uint32_t d = 0; d < added.rank; ++d) {
    if (d == 1) continue;
    if (added.sizes[d] > 1 && added.strides[d] != 0) return false;
    channels.sizes[d] = 1;
  }
  bias = channels;
  return true;
}

}  // namespace

Status FuseActivations(const LowerContext& context, Graph* graph) {
  Absorbing(context, graph).Run();
  return {};
}

}  // namespace anydml
