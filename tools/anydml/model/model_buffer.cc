// Resources: buffers and their initial values.
#include <algorithm>
#include <cstring>

#include "anydml/model/model_parts.h"
#include "base/half.h"
#include "client/describe/field_values.h"
#include "client/packed_elements.h"
#include "client/text.h"
#include "client/values/element_number.h"
#include "client/values/input_file.h"
#include "client/values/npy.h"
#include "client/values/random_values.h"

namespace anydml::client {
namespace {

// Before they are packed.
uint32_t ElementBytes(DataType type) { return BitSize(Unpacked(type)) / 8; }

// Enough room that Place need not move the elements.
uint64_t PaddedBytes(DataType type, uint64_t count) { return count * ElementBytes(type) + 3; }

void Append(const Scalar& scalar, DataType type, std::vector<std::byte>* bytes) {
  const auto* element = reinterpret_cast<const std::byte*>(scalar.bytes.data());
  bytes->insert(bytes->end(), element, element + ElementBytes(type));
}

Status ReadElement(const JsonNode& node, DataType type, Scalar* scalar) {
  std::string_view text;
  ANYDML_RETURN_IF_ERROR(node.GetNumberText(&text));
  const char* problem = ParseElement(text, type, scalar);
  return problem == nullptr ? Status()
                            : node.Error("'", Printable(text), "' ", problem, " (", Name(type), ")");
}

Status ReadRequiredElement(const JsonNode& node, std::string_view key, DataType type, Scalar* scalar) {
  std::optional<JsonNode> element;
  ANYDML_RETURN_IF_ERROR(node.Require(key, &element));
  return ReadElement(*element, type, scalar);
}

Status ReadCount(const JsonNode& node, DataType type, uint32_t* count) {
  ANYDML_RETURN_IF_ERROR(node.GetRequired("valueCount", count));
  if (*count == 0) return node.Error("valueCount is 0; it must be at least 1");
  if (uint64_t{*count} * ElementBytes(type) <= LargestBuffer()) return {};
  return node.Error("valueCount ", *count, " of ", Name(type),
                    " is more than a quarter of this machine's memory");
}

Status ReadConstant(const JsonNode& node, DataType type, std::vector<std::byte>* bytes) {
  constexpr std::string_view kKeys[] = {"value", "valueCount"};
  ANYDML_RETURN_IF_ERROR(node.ExpectKeys(kKeys));
  uint32_t count = 0;
  Scalar value{};
  ANYDML_RETURN_IF_ERROR(ReadCount(node, type, &count));
  ANYDML_RETURN_IF_ERROR(ReadRequiredElement(node, "value", type, &value));
  bytes->reserve(PaddedBytes(type, count));
  for (uint32_t i = 0; i < count; ++i) Append(value, type, bytes);
  return {};
}

template <typename T>
T Load(const Scalar& scalar) {
  T value;
  std::memcpy(&value, scalar.bytes.data(), sizeof(value));
  return value;
}

// value += delta. Integers wrap: unsigned arithmetic of the same width.
template <typename T>
void AddTo(Scalar* value, const Scalar& delta) {
  const T sum = static_cast<T>(Load<T>(*value) + Load<T>(delta));
  std::memcpy(value->bytes.data(), &sum, sizeof(sum));
}

void WrapFourBits(DataType type, Scalar* value) {
  const auto byte = static_cast<std::byte>(value->bytes[0]);
  value->bytes[0] = static_cast<uint8_t>(FourBits(type, &byte, 0));
}

void AddTo(DataType type, Scalar* value, const Scalar& delta) {
  if (type == DataType::kFloat64) return AddTo<double>(value, delta);
  if (type == DataType::kFloat32) return AddTo<float>(value, delta);
  if (type == DataType::kFloat16) {
    const Half sum = ToHalf(ToFloat(Load<Half>(*value)) + ToFloat(Load<Half>(delta)));
    std::memcpy(value->bytes.data(), &sum, sizeof(sum));
    return;
  }
  switch (BitSize(Unpacked(type))) {
    case 8:
      AddTo<uint8_t>(value, delta);
      if (IsFourBits(type)) WrapFourBits(type, value);
      return;
    case 16:
      return AddTo<uint16_t>(value, delta);
    case 32:
      return AddTo<uint32_t>(value, delta);
    default:
      return AddTo<uint64_t>(value, delta);
  }
}

Status ReadSequence(const JsonNode& node, DataType type, std::vector<std::byte>* bytes) {
  constexpr std::string_view kKeys[] = {"valueStart", "valueDelta", "valueCount"};
  ANYDML_RETURN_IF_ERROR(node.ExpectKeys(kKeys));
  uint32_t count = 0;
  Scalar value{}, delta{};
  ANYDML_RETURN_IF_ERROR(ReadCount(node, type, &count));
  ANYDML_RETURN_IF_ERROR(ReadRequiredElement(node, "valueStart", type, &value));
  ANYDML_RETURN_IF_ERROR(ReadRequiredElement(node, "valueDelta", type, &delta));
  bytes->reserve(PaddedBytes(type, count));
  for (uint32_t i = 0; i < count; ++i) {
    Append(value, type, bytes);
    AddTo(type, &value, delta);
  }
  return {};
}

// The bounds are read as elements, so that they fit the type.
Status ReadBound(const JsonNode& node, std::string_view key, DataType type, double* bound) {
  const std::optional<JsonNode> given = node.Find(key);
  if (!given) return {};
  Scalar scalar{};
  ANYDML_RETURN_IF_ERROR(ReadElement(*given, type, &scalar));
  *bound = ScalarToDouble(type, scalar);
  return {};
}

Status ReadRandom(const JsonNode& node, DataType type, std::vector<std::byte>* bytes) {
  constexpr std::string_view kKeys[] = {"randomSeed", "valueMin", "valueMax", "valueCount"};
  ANYDML_RETURN_IF_ERROR(node.ExpectKeys(kKeys));
  uint32_t count = 0;
  RandomValues random;
  ANYDML_RETURN_IF_ERROR(ReadCount(node, type, &count));
  ANYDML_RETURN_IF_ERROR(node.GetRequired("randomSeed", &random.seed));
  ANYDML_RETURN_IF_ERROR(ReadBound(node, "valueMin", type, &random.low));
  ANYDML_RETURN_IF_ERROR(ReadBound(node, "valueMax", type, &random.high));
  if (const char* problem = random.Problem(type)) return node.Error(problem);
  random.Append(type, count, bytes);
  return {};
}

// {"type": ..., "value": ...} each.
Status ReadMixedList(const JsonNode& node, std::vector<std::byte>* bytes) {
  return node.ForEach([bytes](const JsonNode& element) -> Status {
    constexpr std::string_view kKeys[] = {"name", "type", "value"};
    ANYDML_RETURN_IF_ERROR(element.ExpectKeys(kKeys));
    std::optional<JsonNode> type_node;
    ANYDML_RETURN_IF_ERROR(element.Require("type", &type_node));
    DataType type = DataType::kUnknown;
    ANYDML_RETURN_IF_ERROR(ReadDataType(*type_node, &type));
    if (type == DataType::kUnknown || IsFourBits(type)) {
      return type_node->Error("an element of a list of several types needs one of 8 bits or more");
    }
    Scalar value{};
    ANYDML_RETURN_IF_ERROR(ReadRequiredElement(element, "value", type, &value));
    Append(value, type, bytes);
    return {};
  });
}

Status ReadSource(const JsonNode& node, const ModelFolder& folder, ModelBuffer* out) {
  constexpr std::string_view kKeys[] = {"sourcePath"};
  ANYDML_RETURN_IF_ERROR(node.ExpectKeys(kKeys));
  std::optional<JsonNode> source_node;
  ANYDML_RETURN_IF_ERROR(node.Require("sourcePath", &source_node));
  InputPath path;
  ANYDML_RETURN_IF_ERROR(ResolveSource(*source_node, folder, &path));
  const std::string& source = source_node->value().text;
  if (HasExtension(path.path, ".npy")) {
    const DataType wanted = out->type;
    ANYDML_RETURN_IF_ERROR(node.At(ReadPackedNpy(path, &out->type, &out->sizes, &out->bytes)));
    if (wanted == DataType::kUnknown || wanted == out->type) return {};
    return node.Error("'", Printable(source), "' has ", Name(out->type),
                      " elements, but initialValuesDataType is ", Name(wanted));
  }
  if (IsImage(path.path)) {
    return node.At(Status(Code::kUnsupported, StrCat("'", Printable(source), "': images are not supported")));
  }
  if (out->type == DataType::kUnknown) return node.Error("a raw file needs initialValuesDataType");
  const uint32_t bits = BitSize(out->type);
  const uint64_t largest = std::min(LargestBuffer(), uint64_t{UINT32_MAX} * bits / 8);
  ANYDML_RETURN_IF_ERROR(node.At(ReadFile(path, largest, &out->bytes)));
  if (!out->bytes.empty() && out->bytes.size() * 8 % bits == 0) {
    out->sizes = {static_cast<uint32_t>(out->bytes.size() * 8 / bits)};
    return {};
  }
  return node.Error("'", Printable(source), "' has ", out->bytes.size(), " bytes; that is no number of ",
                    Name(out->type), " elements");
}

Status ReadValues(const JsonNode& node, const ModelFolder& folder, ModelBuffer* out) {
  if (node.kind() == JsonNode::Kind::kArray) {
    ANYDML_RETURN_IF_ERROR(out->type == DataType::kUnknown ? ReadMixedList(node, &out->bytes)
                                                           : AppendElements(node, out->type, &out->bytes));
    return out->bytes.empty() ? node.Error("an empty list; a buffer needs at least one value") : Status();
  }
  if (node.kind() == JsonNode::Kind::kString && node.value().text == "deferred") {
    return node.At(
        Status(Code::kUnsupported, "deferred buffers are for ONNX models, which are not supported"));
  }
  ANYDML_RETURN_IF_ERROR(node.Expect(JsonNode::Kind::kObject, "an array or an object"));
  if (node.Find("sourcePath")) return ReadSource(node, folder, out);
  if (out->type == DataType::kUnknown) return node.Error("needs initialValuesDataType beside it");
  if (node.Find("value")) return ReadConstant(node, out->type, &out->bytes);
  if (node.Find("valueStart")) return ReadSequence(node, out->type, &out->bytes);
  if (node.Find("randomSeed")) return ReadRandom(node, out->type, &out->bytes);
  return node.Error(
      "needs valueCount with value, with valueStart and valueDelta or with randomSeed; or sourcePath");
}

// Puts values to their place in a buffer of the requested size.
Status Place(const JsonNode& node, uint64_t before, ModelBuffer* out) {
  constexpr uint64_t kAlignment = 4;  // of every DirectML tensor
  out->values_bytes = out->bytes.size();
  uint64_t size = out->values_bytes;
  ANYDML_RETURN_IF_ERROR(node.GetOptional("initialValuesOffsetInBytes", &out->values_offset));
  ANYDML_RETURN_IF_ERROR(node.GetOptional("sizeInBytes", &size));
  const uint64_t limit = LargestBuffer();
  if (size > limit || out->values_offset > limit || before > limit - size) {
    return node.Error(before == 0 ? "" : StrCat("with the ", before, " bytes of the buffers before it "),
                      "more than a quarter of this machine's memory (", limit, " bytes)");
  }
  if (size < out->values_offset + out->values_bytes) {
    return node.Error("sizeInBytes is ", size, " but ", out->values_bytes, " bytes of values at offset ",
                      out->values_offset, " need ", out->values_offset + out->values_bytes);
  }
  out->bytes.insert(out->bytes.begin(), out->values_offset, std::byte{0});
  out->bytes.resize((size + kAlignment - 1) / kAlignment * kAlignment);
  return {};
}

}  // namespace

Status ReadDataType(const JsonNode& node, DataType* type) {
  std::string text;
  ANYDML_RETURN_IF_ERROR(node.Get(&text));
  uint32_t value = 0;
  ANYDML_RETURN_IF_ERROR(node.At(ParseEnumMember(*FindEnum("DML_TENSOR_DATA_TYPE"), text, &value)));
  *type = static_cast<DataType>(value);
  return {};
}

Status AppendElements(const JsonNode& node, DataType type, std::vector<std::byte>* bytes) {
  // An element and its separator take at least two characters.
  bytes->reserve(bytes->size() + PaddedBytes(type, node.value().list.size() / 2 + 1));
  return node.ForEachLeaf([type, bytes](const JsonNode& leaf) -> Status {
    Scalar scalar{};
    ANYDML_RETURN_IF_ERROR(ReadElement(leaf, type, &scalar));
    Append(scalar, type, bytes);
    return {};
  });
}

namespace {

void CopyRowMajor(NpyArray* array, std::vector<std::byte>* bytes) {
  const TensorDesc& tensor = array->tensor;
  const size_t element_bytes = BitSize(tensor.type) / 8;
  const uint64_t count = ElementCount(tensor);
  if (SameLayout(tensor, PackedTensor(tensor.type, tensor.sizes.data(), tensor.rank))) {
    *bytes = std::move(array->data);
    bytes->resize(count * element_bytes);
    return;
  }
  bytes->resize(count * element_bytes);
  Dimensions position{};
  for (uint64_t i = 0, offset = 0; i < count; ++i) {
    std::memcpy(bytes->data() + i * element_bytes, array->data.data() + offset * element_bytes,
                element_bytes);
    for (uint32_t d = tensor.rank; d-- > 0;) {
      offset += tensor.strides[d];
      if (++position[d] < tensor.sizes[d]) break;
      offset -= uint64_t{tensor.strides[d]} * tensor.sizes[d];
      position[d] = 0;
    }
  }
}

}  // namespace

Status ReadPackedNpy(const InputPath& path, DataType* type, std::vector<uint32_t>* sizes,
                     std::vector<std::byte>* bytes) {
  NpyArray array;
  ANYDML_RETURN_IF_ERROR(ReadNpy(path, &array));
  const TensorDesc& tensor = array.tensor;
  sizes->assign(tensor.sizes.begin(), tensor.sizes.begin() + tensor.rank);
  CopyRowMajor(&array, bytes);
  if (IsFourBits(*type) && tensor.type == Unpacked(*type)) return PackFourBits(path.path, *type, bytes);
  *type = tensor.type;
  return {};
}

Status ReadExpectedElements(const JsonNode& node, const ModelBuffer& buffer, std::vector<std::byte>* bytes) {
  ANYDML_RETURN_IF_ERROR(AppendElements(node, buffer.type, bytes));
  const uint64_t count = bytes->size() / ElementBytes(buffer.type);
  if (count != buffer.value_count()) {
    return node.Error(count, " values are expected, but '", Printable(buffer.name), "' has ",
                      buffer.value_count());
  }
  Pack(buffer.type, bytes);
  return {};
}

Status ReadModelBuffer(const JsonNode& node, const ModelFolder& folder, uint64_t before, ModelBuffer* out) {
  constexpr std::string_view kKeys[] = {"initialValues", "initialValuesDataType",
                                        "sizeInBytes",   "initialValuesOffsetInBytes",
                                        "resampleSize",  "resampleMode"};
  ANYDML_RETURN_IF_ERROR(node.ExpectKeys(kKeys));
  for (const char* key : {"resampleSize", "resampleMode"}) {
    if (const std::optional<JsonNode> image = node.Find(key)) {
      return image->At(Status(Code::kUnsupported, "images are not supported"));
    }
  }
  if (const std::optional<JsonNode> type = node.Find("initialValuesDataType")) {
    ANYDML_RETURN_IF_ERROR(ReadDataType(*type, &out->type));
  }
  std::optional<JsonNode> values;
  ANYDML_RETURN_IF_ERROR(node.Require("initialValues", &values));
  ANYDML_RETURN_IF_ERROR(ReadValues(*values, folder, out));
  if (out->sizes.empty() && out->type != DataType::kUnknown) {  // those from a file are known and packed
    out->sizes = {static_cast<uint32_t>(out->bytes.size() / ElementBytes(out->type))};
    Pack(out->type, &out->bytes);
  }
  return Place(node, before, out);
}

}  // namespace anydml::client
