#include "anydml/onnx/onnx_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "client/exit_status.h"
#include "client/values/random_values.h"

namespace anydml::client {
namespace {

// From any strides to packed.
std::vector<std::byte> Packed(const NpyArray& array) {
  const TensorDesc& tensor = array.tensor;
  const size_t width = BitSize(tensor.type) / 8;
  std::vector<std::byte> bytes(ElementCount(tensor) * width);
  std::vector<uint32_t> at(tensor.rank, 0);
  for (size_t i = 0; i < bytes.size(); i += width) {
    uint64_t offset = 0;
    for (uint32_t d = 0; d < tensor.rank; ++d) offset += uint64_t{at[d]} * tensor.strides[d];
    std::memcpy(bytes.data() + i, array.data.data() + offset * width, width);
    for (uint32_t d = tensor.rank; d-- > 0 && ++at[d] == tensor.sizes[d];) at[d] = 0;
  }
  return bytes;
}

// The type that a file implies if the model leaves it open.
onnx::ElementType TypeOf(DataType type) {
  for (int32_t i = 1; i <= 13; ++i) {
    const auto candidate = static_cast<onnx::ElementType>(i);
    if (candidate != onnx::ElementType::kBool && onnx::DmlType(candidate) == type) return candidate;
  }
  return onnx::ElementType::kUndefined;
}

Status ParseShape(const std::string& text, onnx::Shape* out) {
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (at != end) {
    int64_t size = 0;
    const auto [next, error] = std::from_chars(at, end, size);
    const bool goes_on = error == std::errc() && next != end && *next == 'x' && next + 1 != end;
    if (error != std::errc() || size < 0 || size > int64_t{UINT32_MAX} || (next != end && !goes_on)) {
      return UsageError("'", text, "' are no sizes (1x3x224x224)");
    }
    out->push_back(size);
    at = next == end ? end : next + 1;
  }
  return {};
}

}  // namespace

Status CheckCanBeGiven(const onnx::Signature& signature) {
  const DataType type = onnx::DmlType(signature.type);
  const bool tensor = signature.kind == onnx::ValueKind::kTensor;
  if (tensor && type != DataType::kUnknown && BitSize(type) >= 8) return {};
  return onnx::Unsupported("input \"", signature.name, "\" is ", tensor ? "of " : "no tensor",
                           tensor ? onnx::Name(signature.type) : "", ", which cannot be given here");
}

Status ToOnnxTensor(const NpyArray& array, const onnx::Signature& signature, onnx::Tensor* out) {
  if (BitSize(array.tensor.type) < 8) return UsageError("elements of four bits cannot be given");
  const bool same_to_dml = onnx::DmlType(signature.type) == array.tensor.type;
  const onnx::ElementType type = same_to_dml ? signature.type : TypeOf(array.tensor.type);
  onnx::Shape shape(array.tensor.sizes.begin(), array.tensor.sizes.begin() + array.tensor.rank);
  const bool scalar = signature.has_shape ? signature.shape.empty() : array.scalar;
  if (scalar && shape == onnx::Shape{1}) shape.clear();
  *out = onnx::MakeTensor(type, shape, Packed(array));
  return {};
}

Status ParseShapes(const std::string& text, std::map<std::string, onnx::Shape>* out) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string one = text.substr(at, end - at);
    const size_t equals = one.rfind('=');
    if (equals == std::string::npos)
      return UsageError("--shapes: '", one, "' is not of the form NAME=1x3x224x224");
    ANYDML_RETURN_IF_ERROR(ParseShape(one.substr(equals + 1), &(*out)[one.substr(0, equals)]));
    at = end + 1;
  }
  return {};
}

Status UnknownName(const char* kind, const std::string& name, const std::vector<onnx::Signature>& known) {
  std::string names;
  for (const onnx::Signature& signature : known) names += StrCat(names.empty() ? "" : ", ", signature.name);
  return UsageError("the model has no ", kind, " \"", name, "\"; it has ", names.empty() ? "none" : names);
}

Status CheckShapeNames(const std::map<std::string, onnx::Shape>& shapes,
                       const std::vector<onnx::Signature>& inputs) {
  for (const auto& [name, shape] : shapes) {
    const bool known = std::any_of(inputs.begin(), inputs.end(),
                                   [&wanted = name](const auto& input) { return input.name == wanted; });
    if (!known) return UnknownName("input", name, inputs);
  }
  return {};
}

Status RandomTensor(const onnx::Signature& signature, const std::map<std::string, onnx::Shape>& shapes,
                    uint64_t seed, onnx::Tensor* out) {
  const auto given = shapes.find(signature.name);
  const onnx::Shape shape = given != shapes.end() ? given->second : signature.shape;
  const bool open = given == shapes.end() &&
                    (!signature.has_shape || std::find(shape.begin(), shape.end(), -1) != shape.end());
  const std::optional<uint64_t> bytes = onnx::PackedBytes(signature.type, shape);
  const DataType type = onnx::DmlType(signature.type);
  if (open || !bytes) {
    return UsageError("input \"", signature.name, "\" is not given; ", signature.name,
                      "=FILE.npy gives it, --shapes ", signature.name, "=1x2x3 makes it random");
  }
  RandomValues values;
  values.seed = seed;
  std::vector<std::byte> data;
  values.Append(type, *bytes / (BitSize(type) / 8), &data);
  *out = onnx::MakeTensor(signature.type, shape, std::move(data));
  return {};
}

TensorDesc DescOf(const onnx::Tensor& tensor) {
  const bool shown = tensor.shape.size() <= kMaxDimensions && tensor.count() > 0 && BitsOf(tensor.type) >= 8;
  const DataType type = onnx::DmlType(tensor.type);
  if (!shown || type == DataType::kUnknown) return {};
  Dimensions sizes{1};
  std::copy(tensor.shape.begin(), tensor.shape.end(), sizes.begin());
  return PackedTensor(type, sizes.data(), std::max(1u, static_cast<uint32_t>(tensor.shape.size())));
}

std::string Describe(const onnx::Tensor& tensor) {
  return StrCat(onnx::ShapeToString(tensor.shape), " of ", onnx::Name(tensor.type));
}

std::string Difference(const onnx::Tensor& actual, const onnx::Tensor& expected, const Tolerance& tolerance) {
  if (actual.type != expected.type || actual.shape != expected.shape) {
    return StrCat("it is ", Describe(actual), "; expected is ", Describe(expected));
  }
  const std::vector<double> a = onnx::ToDoubles(actual), b = onnx::ToDoubles(expected);
  if (a.size() != b.size() || (a.empty() && actual.count() > 0)) return "it cannot be compared";
  const bool exact = !onnx::IsFloat(actual.type);
  for (size_t i = 0; i < a.size(); ++i) {
    const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    if (same || (!exact && std::abs(a[i] - b[i]) <= tolerance.absolute + tolerance.relative * std::abs(b[i])))
      continue;
    return StrCat("element ", i, " is ", a[i], "; expected is ", b[i]);
  }
  return "";
}

}  // namespace anydml::client
