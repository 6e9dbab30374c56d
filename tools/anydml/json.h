// JSON as model files use it: with // and /* */ comments and trailing commas.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace anydml::tools {

struct JsonValue {
  enum class Kind : uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  uint32_t line = 0;  // where it starts; both count from 1, columns in bytes
  uint32_t column = 0;
  // A string's characters; "true" or "false"; a number as it is written, so that whoever
  // knows its type converts it, and neither 64-bit integers nor digits are lost.
  std::string text;
  std::vector<JsonValue> elements;  // of an array, or the values of an object
  std::vector<std::string> keys;    // of an object, one per element, all different
};

// "the number 3", "an array", ... for sentences.
std::string Describe(const JsonValue& value);

// `name` stands for the file in the sentences that explain a failure: "NAME:LINE:COLUMN: ...".
Status ParseJson(std::string_view name, std::string_view text, JsonValue* out);

}  // namespace anydml::tools
