// Operators that change a tensor's shape but not its bytes, or that only look at its shape.
#include <algorithm>

#include "onnx/host/host.h"
#include "onnx/lower/compose.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

Status Identity(Lowering& n) {
  n.Forward(0, 0, n.shape(0));
  return {};
}

Status Reshape(Lowering& n) {
  const std::vector<int64_t> wanted = n.version() < 5 ? n.Ints("shape") : n.HostInts(1);
  Shape shape;
  ANYDML_RETURN_IF_ERROR(ResolveReshape(n.shape(0), wanted, n.Int("allowzero", 0) != 0, &shape));
  n.Forward(0, 0, std::move(shape));
  return {};
}

Status Flatten(Lowering& n) {
  const auto rank = static_cast<int64_t>(n.rank(0));
  const int64_t given = n.Int("axis", 1);
  if (given < -rank || given > rank) return InvalidArgument("axis is ", given, "; the input has rank ", rank);
  const std::span<const int64_t> all(n.shape(0));
  const auto axis = static_cast<size_t>(given < 0 ? given + rank : given);
  n.Forward(0, 0, {ElementCount(all.first(axis)).value_or(0), ElementCount(all.subspan(axis)).value_or(0)});
  return {};
}

Status Squeeze(Lowering& n) {
  const std::vector<int64_t> given = n.version() < 13 ? n.Ints("axes") : n.HostInts(1);
  const bool all = given.empty() && !n.Has(1);
  std::vector<uint32_t> axes;
  ANYDML_RETURN_IF_ERROR(ResolveAxes(given, n.rank(0), &axes));
  Shape shape;
  for (uint32_t i = 0; i < n.rank(0); ++i) {
    const bool named = std::binary_search(axes.begin(), axes.end(), i);
    if (named && n.shape(0)[i] != 1) return InvalidArgument("dimension ", i, " has size ", n.shape(0)[i]);
    if (!named && !(all && n.shape(0)[i] == 1)) shape.push_back(n.shape(0)[i]);
  }
  n.Forward(0, 0, std::move(shape));
  return {};
}

Status Unsqueeze(Lowering& n) {
  const std::vector<int64_t> given = n.version() < 13 ? n.Ints("axes") : n.HostInts(1);
  const size_t rank = n.rank(0) + given.size();
  std::vector<uint32_t> axes;
  ANYDML_RETURN_IF_ERROR(ResolveAxes(given, rank, &axes));
  Shape shape;
  auto next = n.shape(0).begin();
  for (uint32_t i = 0; i < rank; ++i) {
    shape.push_back(std::binary_search(axes.begin(), axes.end(), i) ? 1 : *next++);
  }
  n.Forward(0, 0, std::move(shape));
  return {};
}

Status LowerShape(Lowering& n) {
  const auto rank = static_cast<int64_t>(n.rank(0));
  const auto place = [rank](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t start = place(std::max(n.Int("start", 0), -rank));
  const int64_t end = place(std::max(n.Int("end", rank), -rank));
  const std::span<const int64_t> all(n.shape(0));
  const std::span<const int64_t> part =
      all.subspan(static_cast<size_t>(start), static_cast<size_t>(std::max<int64_t>(0, end - start)));
  n.Return(0, Int64Tensor({static_cast<int64_t>(part.size())}, part));
  return {};
}

Status LowerSize(Lowering& n) {
  const int64_t count = ElementCount(n.shape(0)).value_or(0);
  n.Return(0, Int64Tensor({}, {&count, 1}));
  return {};
}

Status Constant(Lowering& n) {
  const NodeProto& node = n.proto();
  if (const Tensor* const tensor = n.TensorOf("value"); tensor != nullptr) {
    if (BitsOf(tensor->type) == 0) return Unsupported(Name(tensor->type));
    n.Return(0, *tensor);
    return {};
  }
  if (node.Find("value_int") != nullptr) {
    const int64_t value = n.Int("value_int", 0);
    n.Return(0, Int64Tensor({}, {&value, 1}));
  } else if (node.Find("value_ints") != nullptr) {
    const std::vector<int64_t> values = n.Ints("value_ints");
    n.Return(0, Int64Tensor({static_cast<int64_t>(values.size())}, values));
  } else if (node.Find("value_float") != nullptr) {
    const double value = n.Float("value_float", 0);
    n.Return(0, FromDoubles(ElementType::kFloat, {}, {&value, 1}));
  } else if (node.Find("value_floats") != nullptr) {
    const std::vector<float> floats = n.Floats("value_floats");
    const std::vector<double> values(floats.begin(), floats.end());
    n.Return(0, FromDoubles(ElementType::kFloat, {static_cast<int64_t>(values.size())}, values));
  } else {
    return Unsupported("strings and sparse values");
  }
  return {};
}

constexpr OperatorRow kShapeRows[] = {
    {.domain = kOnnx,
     .name = "Identity",
     .min_inputs = 1,
     .max_inputs = 1,
     .lower = Identity,
     .forwards = true},
    {.domain = kOnnx,
     .name = "Reshape",
     .min_inputs = 1,
     .max_inputs = 2,
     .host_inputs = 2,
     .lower = Reshape,
     .forwards = true},
    {.domain = kOnnx,
     .name = "Flatten",
     .min_inputs = 1,
     .max_inputs = 1,
     .lower = Flatten,
     .forwards = true},
    {.domain = kOnnx,
     .name = "Squeeze",
     .min_inputs = 1,
     .max_inputs = 2,
     .host_inputs = 2,
     .lower = Squeeze,
     .forwards = true},
    {.domain = kOnnx,
     .name = "Unsqueeze",
     .min_inputs = 1,
     .max_inputs = 2,
     .host_inputs = 2,
     .lower = Unsqueeze,
     .forwards = true},
    {kOnnx, "Shape", 1, 1, 0, LowerShape, nullptr},
    {kOnnx, "Size", 1, 1, 0, LowerSize, nullptr},
    {kOnnx, "Constant", 0, 0, 0, Constant, nullptr},
};

}  // namespace

std::span<const OperatorRow> ShapeOperators() { return kShapeRows; }

}  // namespace anydml::onnx
