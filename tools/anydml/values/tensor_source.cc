#include "anydml/values/tensor_source.h"

#include <charconv>
#include <cstring>

#include "anydml/model/model_parts.h"
#include "client/describe/field_values.h"
#include "client/exit_status.h"
#include "client/packed_elements.h"
#include "client/text.h"
#include "client/values/element_number.h"
#include "client/values/input_file.h"
#include "client/values/random_values.h"

namespace anydml::client {
namespace {

constexpr std::string_view kRandom = "random:";

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

Status ReadType(std::string_view text, DataType* type) {
  *type = ParseDataType(text);
  if (*type != DataType::kUnknown) return {};
  return UsageError("'", Printable(text), "' is no data type (float32, int64, uint8, ...)");
}

// The sizes of nested lists, from the first list of each level.
Status ReadShape(const JsonNode& literal, Emptiness emptiness, std::vector<uint32_t>* sizes) {
  JsonValue value = literal.value();
  while (value.kind == JsonValue::Kind::kArray) {
    const size_t size = CountElements(value);
    if (size == 0 && emptiness == Emptiness::kRefused)
      return literal.Error("an empty list; tensors cannot be empty");
    if (sizes->size() == kMaxDimensions) {
      return literal.Error("lists are nested more than ", kMaxDimensions, " deep");
    }
    sizes->push_back(static_cast<uint32_t>(size));
    JsonValue first;  // unset for an empty list
    VisitElements(value, [&first](const JsonValue& element) {
      first = element;
      return false;
    });
    value = std::move(first);
  }
  return {};
}

Status CheckShape(const JsonNode& node, std::span<const uint32_t> sizes) {
  const bool is_list = node.kind() == JsonNode::Kind::kArray;
  if (is_list == sizes.empty()) {
    return node.Error("a ", is_list ? "list" : "number", " where the first of its level is a ",
                      is_list ? "number" : "list");
  }
  if (!is_list) return {};
  if (const size_t size = CountElements(node.value()); size != sizes[0]) {
    return node.Error("a list of ", size, " where the first of its level has ", sizes[0]);
  }
  return node.ForEach([sizes](const JsonNode& element) { return CheckShape(element, sizes.subspan(1)); });
}

Status ReadLiteral(std::string_view field, std::string_view text, const TensorUse& use, NpyArray* out) {
  const size_t end = text.rfind(']');
  if (end == std::string_view::npos) return UsageError("there is no ']'");
  const std::string_view suffix = text.substr(end + 1);
  DataType type = use.type;
  if (!suffix.empty()) {
    if (!suffix.starts_with(':')) return UsageError("':' and a data type have to follow the last ']'");
    ANYDML_RETURN_IF_ERROR(ReadType(suffix.substr(1), &type));
  }
  JsonValue value;
  const std::string name(field);
  ANYDML_RETURN_IF_ERROR(ParseJson(name, text.substr(0, end + 1), &value));
  const JsonNode literal(name, value);
  std::vector<uint32_t> sizes;
  ANYDML_RETURN_IF_ERROR(ReadShape(literal, use.emptiness, &sizes));
  ANYDML_RETURN_IF_ERROR(CheckShape(literal, sizes));
  out->tensor = PackedTensor(type, sizes.data(), static_cast<uint32_t>(sizes.size()));
  ANYDML_RETURN_IF_ERROR(AppendElements(literal, type, &out->data));
  Pack(type, &out->data);
  return {};
}

// "8x1000"
Status ReadSizes(const std::string& text, Emptiness emptiness, std::vector<uint32_t>* sizes) {
  const uint32_t least = emptiness == Emptiness::kAllowed ? 0 : 1;
  uint64_t count = 1;
  for (const std::string& part : Split(text, 'x')) {
    const char* const end = part.data() + part.size();
    uint32_t& size = sizes->emplace_back();
    const std::from_chars_result result = std::from_chars(part.data(), end, size);
    const bool is_size = result.ec == std::errc() && result.ptr == end && size >= least;
    if (!is_size || sizes->size() > kMaxDimensions || __builtin_mul_overflow(count, size, &count) ||
        count > UINT32_MAX) {
      return UsageError("'", Printable(text), "' are no sizes: 1 to ", kMaxDimensions, " numbers from ",
                        least, " on, such as 8x1000, that make fewer than 2^32 elements");
    }
  }
  return {};
}

Status ReadSetting(const std::string& text, DataType type, RandomValues* random) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
  if (name != "seed" && name != "min" && name != "max") {
    return UsageError("'", Printable(text), "' is none of seed=, min= and max=");
  }
  Scalar scalar{};
  const DataType value_type = name == "seed" ? DataType::kUInt64 : type;
  if (const char* problem = ParseElement(value, value_type, &scalar)) {
    return UsageError(name, "=", Printable(value), ": '", Printable(value), "' ", problem, " (",
                      Name(value_type), ")");
  }
  if (name == "seed") {
    std::memcpy(&random->seed, scalar.bytes.data(), sizeof(random->seed));
  } else {
    (name == "min" ? random->low : random->high) = ScalarToDouble(type, scalar);
  }
  return {};
}

Status ReadRandom(std::string_view text, const TensorUse& use, NpyArray* out) {
  const std::vector<std::string> parts = Split(text, ':');
  std::vector<uint32_t> sizes;
  ANYDML_RETURN_IF_ERROR(ReadSizes(parts[0], use.emptiness, &sizes));
  DataType type = use.type;
  size_t next = 1;
  if (parts.size() > 1 && parts[1].find('=') == std::string::npos) {
    ANYDML_RETURN_IF_ERROR(ReadType(parts[next++], &type));
  }
  RandomValues random;
  for (; next < parts.size(); ++next) ANYDML_RETURN_IF_ERROR(ReadSetting(parts[next], type, &random));
  if (const char* problem = random.Problem(type)) return UsageError(problem);
  out->tensor = PackedTensor(type, sizes.data(), static_cast<uint32_t>(sizes.size()));
  if (out->tensor.total_bytes > LargestBuffer()) {
    return UsageError("more than a quarter of this machine's memory (", LargestBuffer(), " bytes)");
  }
  random.Append(type, ElementCount(out->tensor), &out->data);
  Pack(type, &out->data);
  return {};
}

bool LooksLikeSizes(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789x") == std::string_view::npos;
}

}  // namespace

Status ReadTensorSource(std::string_view field, const std::string& text, NpyArray* out,
                        const TensorUse& use) {
  const bool literal = text.starts_with('['), random = text.starts_with(kRandom);
  if (text.empty()) return UsageError(field, "=: a .npy file, a literal or random: is missing");
  if (!literal && !random) {
    const size_t colon = text.rfind(':');
    const DataType type = colon == std::string::npos
                              ? DataType::kUnknown
                              : ParseDataType(std::string_view(text).substr(colon + 1));
    return type == DataType::kUnknown ? ReadNpy(text, out, use.emptiness)
                                      : ReadNpyAs(text.substr(0, colon), type, out, use.emptiness);
  }
  out->data.clear();
  const Status status = literal ? ReadLiteral(field, text, use, out)
                                : ReadRandom(std::string_view(text).substr(kRandom.size()), use, out);
  if (!status.ok()) return UsageError(field, "=", Printable(text), ": ", status.message());
  out->data.resize(out->tensor.total_bytes);
  return {};
}

Status ParseOutputTarget(std::string_view field, const std::string& text, OutputTarget* out) {
  *out = {text, {}};
  std::vector<uint32_t> sizes;
  DataType type = DataType::kUnknown;
  for (size_t colon = text.rfind(':'); colon != std::string::npos; colon = out->path.rfind(':')) {
    const std::string last = out->path.substr(colon + 1);
    const DataType named = ParseDataType(last);
    if (named != DataType::kUnknown && type == DataType::kUnknown && sizes.empty()) {
      type = named;
    } else if (sizes.empty() && LooksLikeSizes(last)) {
      const Status status = ReadSizes(last, Emptiness::kRefused, &sizes);
      if (!status.ok()) return UsageError(field, "=", Printable(text), ": ", status.message());
    } else if (colon > 0 && !std::string_view(out->path).substr(0, colon).ends_with(".npy")) {
      break;  // a colon may be part of a file's name, but not after its extension
    } else {
      return UsageError(field, "=", Printable(text), ": '", Printable(last),
                        "' is no data type, nor sizes (2x3) before one");
    }
    out->path.resize(colon);
  }
  out->tensor = PackedTensor(type, sizes.data(), static_cast<uint32_t>(sizes.size()));
  return {};
}

std::vector<std::string> SplitTensors(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    if (c == ',' && depth == 0) {
      parts.emplace_back();
      continue;
    }
    if (c == '[') ++depth;
    if (c == ']' && depth > 0) --depth;
    parts.back() += c;
  }
  return parts;
}

}  // namespace anydml::client
