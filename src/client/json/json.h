// JSON as in model files, read by RapidJSON: with // and /* */ comments, trailing commas, NaN and Infinity.
// Objects become trees; arrays stay text and are visited element by element, so that a file of numbers takes
// no more memory than its length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace anydml::client {

struct JsonValue {
  enum class Kind : uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  uint32_t line = 0;  // position of the first character; both count from 1, columns in bytes
  uint32_t column = 0;
  // A string's characters; "true" or "false"; a number as written, so that it is converted by code that knows
  // its type, and neither 64-bit integers nor digits are lost.
  std::string text;
  std::string_view list;            // an array as written: a part of the parsed text
  std::vector<JsonValue> elements;  // the values of an object
  std::vector<std::string> keys;    // one per element, all different
};

// Returns false to stop. The value exists only during the call.
using JsonVisit = std::function<bool(const JsonValue&)>;

// Visits the elements of an array, one after the other.
void VisitElements(const JsonValue& array, const JsonVisit& visit);
// Visits what is in an array and its nested arrays, as if it were one.
void VisitLeaves(const JsonValue& array, const JsonVisit& visit);

size_t CountElements(const JsonValue& array);

// "the number 3", "an array", ... for sentences.
std::string Describe(const JsonValue& value);

// `name` is the file's name in error messages: "NAME:LINE:COLUMN: ...". `text` must outlive the value.
Status ParseJson(std::string_view name, std::string_view text, JsonValue* out);

}  // namespace anydml::client
