// JSON as model files use it: with // and /* */ comments and trailing commas. Objects become trees;
// arrays stay text and are walked, so that a file of numbers takes no more memory than it is long.
#pragma once

#include <cstddef>
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
  std::string_view list;            // an array as it is written: a part of the text that was parsed
  std::vector<JsonValue> elements;  // the values of an object
  std::vector<std::string> keys;    // one per element, all different
};

// A place in a text.
struct JsonCursor {
  std::string_view text;
  size_t position = 0;
  uint32_t line = 1;
  ptrdiff_t line_start = 0;  // before the text where that begins in the middle of a line
};

// The elements of an array, one after the other.
class JsonElements {
 public:
  explicit JsonElements(const JsonValue& array);
  // False at the end.
  bool Next(JsonValue* element);

 private:
  JsonCursor cursor_;
};

// What is in an array and the arrays in it, to any depth, as if it were one.
class JsonLeaves {
 public:
  explicit JsonLeaves(const JsonValue& array);
  bool Next(JsonValue* leaf);

 private:
  JsonCursor cursor_;
};

size_t CountElements(const JsonValue& array);

// "the number 3", "an array", ... for sentences.
std::string Describe(const JsonValue& value);

// `name` stands for the file in the sentences that explain a failure: "NAME:LINE:COLUMN: ...". `text` has
// to outlive the value.
Status ParseJson(std::string_view name, std::string_view text, JsonValue* out);

}  // namespace anydml::tools
