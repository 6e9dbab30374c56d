#include "client/describe/field_values.h"

#include <charconv>
#include <cstring>
#include <vector>

#include "base/half.h"
#include "client/exit_status.h"
#include "client/suggest.h"

namespace anydml::client {
namespace {

// Null if the text is a number of the type, otherwise what is wrong with it.
template <typename T>
const char* NumberProblem(std::string_view text, T* value) {
  const char* end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, *value);
  if (result.ec == std::errc() && result.ptr == end && !text.empty()) return nullptr;
  if (std::is_unsigned_v<T> && text.starts_with('-')) return "is negative, which the type does not allow";
  if (result.ec == std::errc::result_out_of_range && result.ptr == end) return "is out of range";
  return "is not a number of this type";
}

Status NumberError(const FieldSchema& field, std::string_view text, const char* problem) {
  if (problem == nullptr) return {};
  return UsageError(field.name, "=", text, ": '", text, "' ", problem, " (", FieldTypeName(field), ")");
}

template <typename T>
Status ParseNumber(const FieldSchema& field, std::string_view text, T* value) {
  return NumberError(field, text, NumberProblem(text, value));
}

// "[1,2]", "1,2"; "[]" is an empty array.
std::vector<std::string_view> SplitList(std::string_view text) {
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  std::vector<std::string_view> items;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    items.push_back(item);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) items.push_back({});  // a trailing comma gives an empty, hence invalid, item
  }
  return items;
}

template <typename T>
Status ParseArray(const FieldSchema& field, std::string_view text, FieldValue* value) {
  std::vector<T> numbers;
  for (const std::string_view item : SplitList(text)) {
    T number{};
    ANYDML_RETURN_IF_ERROR(ParseNumber(field, item, &number));
    numbers.push_back(number);
  }
  *value = std::move(numbers);
  return {};
}

template <typename T>
Status ParseSingle(const FieldSchema& field, std::string_view text, FieldValue* value) {
  T number{};
  ANYDML_RETURN_IF_ERROR(ParseNumber(field, text, &number));
  *value = number;
  return {};
}

template <typename T>
Status ParsePair(const FieldSchema& field, std::string_view text, const char* names, T* first, T* second) {
  const std::vector<std::string_view> items = SplitList(text);
  if (items.size() != 2) return UsageError(field.name, "=", text, ": two numbers are needed: ", names);
  ANYDML_RETURN_IF_ERROR(ParseNumber(field, items[0], first));
  return ParseNumber(field, items[1], second);
}

Status ParseBool(const FieldSchema& field, std::string_view text, FieldValue* value) {
  if (text == "1" || EqualIgnoringCase(text, "true")) {
    *value = uint32_t{1};
  } else if (text == "0" || EqualIgnoringCase(text, "false")) {
    *value = uint32_t{0};
  } else {
    return UsageError(field.name, "=", text, ": must be true or false");
  }
  return {};
}

Status ParseEnum(const FieldSchema& field, std::string_view text, FieldValue* value) {
  uint32_t member = 0;
  if (const Status status = ParseEnumMember(*field.enumeration, text, &member); !status.ok()) {
    return UsageError(field.name, "=", text, ": ", status.message());
  }
  *value = member;
  return {};
}

template <typename T>
const char* StoreElement(std::string_view text, Scalar* scalar) {
  T number{};
  const char* problem = NumberProblem(text, &number);
  std::memcpy(scalar->bytes.data(), &number, sizeof(number));
  return problem;
}

// As a byte.
template <typename T>
const char* StoreFourBits(std::string_view text, T low, T high, Scalar* scalar) {
  const char* problem = StoreElement<T>(text, scalar);
  T number{};
  std::memcpy(&number, scalar->bytes.data(), sizeof(number));
  return problem != nullptr || (number >= low && number <= high) ? problem : "is out of range";
}

}  // namespace

Status ParseFieldValue(const FieldSchema& field, std::string_view text, DataType scalar_type,
                       FieldValue* value) {
  switch (field.type) {
    case FieldType::kUInt:
      return ParseSingle<uint32_t>(field, text, value);
    case FieldType::kInt:
      return ParseSingle<int32_t>(field, text, value);
    case FieldType::kFloat:
      return ParseSingle<float>(field, text, value);
    case FieldType::kBool:
      return ParseBool(field, text, value);
    case FieldType::kEnum:
      return ParseEnum(field, text, value);
    case FieldType::kUIntArray:
      return ParseArray<uint32_t>(field, text, value);
    case FieldType::kIntArray:
      return ParseArray<int32_t>(field, text, value);
    case FieldType::kFloatArray:
      return ParseArray<float>(field, text, value);
    case FieldType::kScaleBias: {
      ScaleBias pair{};
      ANYDML_RETURN_IF_ERROR(ParsePair(field, text, "Scale,Bias", &pair.scale, &pair.bias));
      *value = pair;
      return {};
    }
    case FieldType::kSize2D: {
      Size2D pair{};
      ANYDML_RETURN_IF_ERROR(ParsePair(field, text, "Width,Height", &pair.width, &pair.height));
      *value = pair;
      return {};
    }
    case FieldType::kScalarUnion: {
      Scalar scalar{};
      ANYDML_RETURN_IF_ERROR(NumberError(field, text, ParseElement(text, scalar_type, &scalar)));
      *value = scalar;
      return {};
    }
    case FieldType::kTensor:
    case FieldType::kTensorArray:
    case FieldType::kOperatorDesc:
    case FieldType::kOperatorDescArray:
      break;
  }
  return UsageError(field.name, "=", text, ": is no attribute of one value (", FieldTypeName(field), ")");
}

const char* ParseElement(std::string_view text, DataType type, Scalar* scalar) {
  switch (type) {
    case DataType::kFloat64:
      return StoreElement<double>(text, scalar);
    case DataType::kFloat32:
      return StoreElement<float>(text, scalar);
    case DataType::kFloat16: {
      float number = 0;
      const char* problem = NumberProblem(text, &number);
      const Half half = ToHalf(number);
      std::memcpy(scalar->bytes.data(), &half, sizeof(half));
      return problem;
    }
    case DataType::kUInt64:
      return StoreElement<uint64_t>(text, scalar);
    case DataType::kUInt32:
      return StoreElement<uint32_t>(text, scalar);
    case DataType::kUInt16:
      return StoreElement<uint16_t>(text, scalar);
    case DataType::kUInt8:
      return StoreElement<uint8_t>(text, scalar);
    case DataType::kUInt4:
      return StoreFourBits<uint8_t>(text, 0, 15, scalar);
    case DataType::kInt64:
      return StoreElement<int64_t>(text, scalar);
    case DataType::kInt32:
      return StoreElement<int32_t>(text, scalar);
    case DataType::kInt16:
      return StoreElement<int16_t>(text, scalar);
    case DataType::kInt8:
      return StoreElement<int8_t>(text, scalar);
    case DataType::kInt4:
      return StoreFourBits<int8_t>(text, -8, 7, scalar);
    case DataType::kUnknown:
      break;
  }
  return "has no known data type; give that first";
}

Status ParseEnumMember(const EnumSchema& enumeration, std::string_view text, uint32_t* value) {
  std::vector<std::string_view> short_names;
  std::string list;
  for (const EnumMember& member : enumeration.members) {
    short_names.push_back(ShortName(enumeration, member));
    if (EqualIgnoringCase(text, member.name) || EqualIgnoringCase(text, short_names.back())) {
      *value = member.value;
      return {};
    }
    list += StrCat(list.empty() ? "" : ", ", short_names.back());
  }
  return UsageError("not a member of ", enumeration.name, " (", list, ")", DidYouMean(text, short_names));
}

DataType ParseDataType(std::string_view text) {
  constexpr std::string_view kPrefix = "DML_TENSOR_DATA_TYPE_";
  if (text.starts_with(kPrefix)) text.remove_prefix(kPrefix.size());
  for (uint32_t i = 1; i < kDataTypeCount; ++i) {
    if (EqualIgnoringCase(text, Name(static_cast<DataType>(i)))) return static_cast<DataType>(i);
  }
  return DataType::kUnknown;
}

std::string_view ShortName(const EnumSchema& enumeration, const EnumMember& member) {
  std::string_view prefix = enumeration.name;
  if (prefix.ends_with("_FLAGS")) prefix.remove_suffix(1);  // the members are DML_TENSOR_FLAG_...
  std::string_view name = member.name;
  if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  if (name.starts_with('_')) name.remove_prefix(1);
  return name;
}

std::string FieldTypeName(const FieldSchema& field) {
  constexpr const char* kNames[] = {"tensor",     "tensors",      "UINT",       "INT",       "FLOAT",
                                    "BOOL",       "enum",         "UINT array", "INT array", "FLOAT array",
                                    "Scale,Bias", "Width,Height", "scalar",     "operator",  "operators"};
  const std::string name = kNames[static_cast<size_t>(field.type)];
  return field.type == FieldType::kEnum ? StrCat(name, " ", field.enumeration->name) : name;
}

}  // namespace anydml::client
