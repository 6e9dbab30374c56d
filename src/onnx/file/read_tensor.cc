#include "onnx/file/read_tensor.h"

#include <charconv>
#include <cstring>

#include "onnx/file/check_model.h"

namespace anydml::onnx {
namespace {

// The fields of a TensorProto; a file sets those for its data type.
struct TensorFields {
  std::string name;
  int64_t type_number = 0;
  ElementType type = ElementType::kUndefined;
  Shape dims;
  bool has_raw = false;
  Bytes raw;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<int64_t> int32s, int64s, uint64s;
  uint64_t strings = 0;
  bool external = false;
  std::string location;
  uint64_t offset = 0;
  uint64_t length = UINT64_MAX;  // up to the end of the file
};

Status ParseNumber(const std::string& key, const std::string& text, uint64_t* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  if (error == std::errc() && end == text.data() + text.size()) return {};
  return InvalidArgument("external_data: ", key, " is \"", text.substr(0, 40), "\"; a number is allowed");
}

Status ParseExternalEntry(Bytes message, TensorFields* out) {
  WireReader reader(message);
  std::string key, value;
  while (reader.Next()) {
    if (reader.field() == 1) key = reader.String();
    if (reader.field() == 2) value = reader.String();
  }
  ANYDML_RETURN_IF_ERROR(reader.status());
  if (key == "location") out->location = value;
  if (key == "offset") return ParseNumber(key, value, &out->offset);
  if (key == "length") return ParseNumber(key, value, &out->length);
  return {};
}

Status ParseFields(Bytes message, TensorFields* out) {
  WireReader reader(message);
  while (reader.Next()) {
    switch (reader.field()) {
      case 1:
        reader.Ints(&out->dims);
        break;
      case 2:
        out->type_number = reader.Int();
        break;
      case 3:
        return InvalidArgument("it is a segment of a tensor, which nothing writes");
      case 4:
        reader.Floats(&out->floats);
        break;
      case 5:
        reader.Ints(&out->int32s);
        break;
      case 6:
        reader.Message();
        ++out->strings;
        break;
      case 7:
        reader.Ints(&out->int64s);
        break;
      case 8:
        out->name = reader.String();
        break;
      case 9:
        out->raw = reader.Message();
        out->has_raw = true;
        break;
      case 10:
        reader.Doubles(&out->doubles);
        break;
      case 11:
        reader.Ints(&out->uint64s);
        break;
      case 13:
        ANYDML_RETURN_IF_ERROR(ParseExternalEntry(reader.Message(), out));
        break;
      case 14:
        out->external = reader.Int() == 1;
        break;
      default:
        break;
    }
  }
  return reader.status();
}

Status CheckLength(const TensorFields& fields, uint64_t given, uint64_t needed, const char* unit) {
  if (given == needed) return {};
  return InvalidArgument("it has ", given, unit, "; ", ShapeToString(fields.dims), " elements of ",
                         Name(fields.type), " need ", needed);
}

Status TakeExternal(const TensorFields& fields, ExternalFiles* external, uint64_t bytes, Tensor* out) {
  if (external == nullptr) return InvalidArgument("its data is in another file, which cannot be read here");
  Blob file;
  ANYDML_RETURN_IF_ERROR(external->Open(fields.location, &file));
  if (fields.offset > file.bytes.size()) {
    return InvalidArgument("its data begins at byte ", fields.offset, " of ", fields.location, ", which has ",
                           file.bytes.size());
  }
  const uint64_t rest = file.bytes.size() - fields.offset;
  const uint64_t length = fields.length == UINT64_MAX ? bytes : fields.length;
  ANYDML_RETURN_IF_ERROR(CheckLength(fields, length, bytes, " bytes in its file"));
  if (length > rest) {
    return InvalidArgument("its data ends after byte ", file.bytes.size(), ", the last of ", fields.location);
  }
  out->data = file.bytes.subspan(fields.offset, length);
  out->owner = file.owner;
  out->mapped = file.mapped;
  return {};
}

// The numbers of int32_data and uint64_data, which contain several types.
Status TakeInts(const TensorFields& fields, const std::vector<int64_t>& values, uint64_t count, Tensor* out) {
  if (BitsOf(fields.type) == 4) {  // a value for each byte, with two elements
    ANYDML_RETURN_IF_ERROR(CheckLength(fields, values.size(), (count + 1) / 2, " numbers"));
    std::vector<std::byte> bytes;
    for (const int64_t value : values) bytes.push_back(static_cast<std::byte>(value & 0xFF));
    *out = MakeTensor(fields.type, fields.dims, std::move(bytes));
    return {};
  }
  ANYDML_RETURN_IF_ERROR(CheckLength(fields, values.size(), count, " numbers"));
  // FLOAT16 and BFLOAT16 are given as bits.
  const bool bits = fields.type == ElementType::kFloat16 || fields.type == ElementType::kBFloat16;
  *out = FromInts(bits ? ElementType::kUInt16 : fields.type, fields.dims, values);
  out->type = fields.type;
  return {};
}

Status TakeNumbers(const TensorFields& fields, uint64_t count, Tensor* out) {
  switch (fields.type) {
    case ElementType::kFloat:
    case ElementType::kComplex64:
    case ElementType::kDouble:
    case ElementType::kComplex128: {
      const bool narrow = fields.type == ElementType::kFloat || fields.type == ElementType::kComplex64;
      const bool pairs = fields.type == ElementType::kComplex64 || fields.type == ElementType::kComplex128;
      const uint64_t given = narrow ? fields.floats.size() : fields.doubles.size();
      ANYDML_RETURN_IF_ERROR(CheckLength(fields, given, pairs ? 2 * count : count, " numbers"));
      const Bytes bytes =
          narrow ? std::as_bytes(std::span(fields.floats)) : std::as_bytes(std::span(fields.doubles));
      *out = MakeTensor(fields.type, fields.dims, std::vector<std::byte>(bytes.begin(), bytes.end()));
      return {};
    }
    case ElementType::kInt64:
      return TakeInts(fields, fields.int64s, count, out);
    case ElementType::kUInt32:
    case ElementType::kUInt64:
      return TakeInts(fields, fields.uint64s, count, out);
    default:
      return TakeInts(fields, fields.int32s, count, out);
  }
}

}  // namespace

Status ParseTensor(Bytes message, const Blob& file, ExternalFiles* external, std::string* name, Tensor* out) {
  TensorFields fields;
  const Status parsed = ParseFields(message, &fields);
  *name = fields.name;
  ANYDML_RETURN_IF_ERROR(parsed);
  ANYDML_RETURN_IF_ERROR(CheckElementType(fields.type_number, &fields.type));
  if (fields.type == ElementType::kUndefined) return InvalidArgument("it has no element type");
  out->type = fields.type;
  out->shape = fields.dims;
  if (fields.type == ElementType::kString) return {};  // its users refuse it
  const std::optional<uint64_t> bytes = PackedBytes(fields.type, fields.dims);
  if (!bytes) {
    if (BitsOf(fields.type) == 0) return {};  // its users refuse it
    return InvalidArgument("its sizes are ", ShapeToString(fields.dims), ", which no tensor has");
  }
  if (fields.external) return TakeExternal(fields, external, *bytes, out);
  if (!fields.has_raw) return TakeNumbers(fields, static_cast<uint64_t>(*ElementCount(fields.dims)), out);
  ANYDML_RETURN_IF_ERROR(CheckLength(fields, fields.raw.size(), *bytes, " bytes"));
  out->data = fields.raw;
  out->owner = file.owner;
  out->mapped = file.mapped;
  return {};
}

Status ReadTensor(const Blob& file, Tensor* out) {
  std::string name;
  return ParseTensor(file.bytes, file, nullptr, &name, out);
}

}  // namespace anydml::onnx
