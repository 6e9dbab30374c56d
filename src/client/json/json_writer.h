// Writes the tool's JSON: one line, members in the order of addition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schema/tensor_desc.h"

namespace anydml::client {

class JsonWriter {
 public:
  void BeginObject() { Begin('{'); }
  void BeginArray() { Begin('['); }
  void End();  // closes the innermost object or array
  size_t depth() const { return open_.size(); }

  // In an object, before each value.
  JsonWriter& Key(std::string_view key);

  // Bytes that are not UTF-8 (file names may contain any) become U+FFFD.
  void String(std::string_view text);
  void Number(uint64_t number);
  void Real(double number, int digits = 6);  // finite
  void Bool(bool value);
  void Null();
  void Strings(std::span<const std::string> texts);

  // "dataType", "sizes" and, nested like the tensor, "values": members of the open object. Numbers that JSON
  // lacks are "nan", "inf" or "-inf".
  void TensorShape(const TensorDesc& tensor);
  void TensorValues(const TensorDesc& tensor, std::span<const std::byte> data);

  const std::string& text() const { return text_; }

 private:
  void Begin(char bracket);
  void Separate();
  void Quote(std::string_view text);
  void Values(const TensorDesc& tensor, std::span<const std::byte> data, uint32_t dimension, uint64_t offset);

  std::string text_;
  std::vector<char> open_;  // closing brackets of what is open
  bool first_ = true;       // nothing has been written since the innermost one was opened
  bool after_key_ = false;
};

}  // namespace anydml::client
