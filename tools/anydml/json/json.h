// JSON as model files use it, read by RapidJSON: with // and /* */ comments, trailing commas, NaN and
// Infinity. Objects become trees; arrays stay text and are walked, so that a file of numbers takes no more
// memory than it is long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

// False: that was enough. What it is given is gone afterwards.
using JsonVisit = std::function<bool(const JsonValue&)>;

// The elements of an array, one after the other.
void VisitElements(const JsonValue& array, const JsonVisit& visit);
// What is in an array and the arrays in it, to any depth, as if it were one.
void VisitLeaves(const JsonValue& array, const JsonVisit& visit);

size_t CountElements(const JsonValue& array);

// "the number 3", "an array", ... for sentences.
std::string Describe(const JsonValue& value);

// `name` stands for the file in the sentences that explain a failure: "NAME:LINE:COLUMN: ...". `text` has
// to outlive the value.
Status ParseJson(std::string_view name, std::string_view text, JsonValue* out);

}  // namespace anydml::tools
