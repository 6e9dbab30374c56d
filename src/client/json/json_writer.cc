#include "client/json/json_writer.h"

#include <cstdio>

#include "client/tensor_text.h"
#include "client/text.h"

namespace anydml::client {
void JsonWriter::Separate() {
  if (!first_ && !after_key_) text_ += ',';
  first_ = after_key_ = false;
}

void JsonWriter::Begin(char bracket) {
  Separate();
  text_ += bracket;
  open_.push_back(bracket == '{' ? '}' : ']');
  first_ = true;
}

void JsonWriter::End() {
  if (after_key_) Null();  // the code that should have written the value failed
  text_ += open_.back();
  open_.pop_back();
  first_ = false;
}

JsonWriter& JsonWriter::Key(std::string_view key) {
  Separate();
  Quote(key);
  text_ += ':';
  after_key_ = true;
  return *this;
}

void JsonWriter::Quote(std::string_view text) {
  text_ += '"';
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const char c = text[0];
    if (length == 0) {
      text_ += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      text_ += {'\\', c};
    } else if (c == '\n') {
      text_ += "\\n";
    } else if (StartsWithControl(text)) {
      char escape[8];
      const auto code = static_cast<unsigned char>(text[length - 1]);  // the last byte is the code, also of
                                                                       // two-byte sequences
      std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(code));
      text_ += escape;
    } else {
      text_ += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  text_ += '"';
}

void JsonWriter::String(std::string_view text) {
  Separate();
  Quote(text);
}

void JsonWriter::Number(uint64_t number) {
  Separate();
  text_ += std::to_string(number);
}

void JsonWriter::Real(double number, int digits) {
  Separate();
  char text[32];
  std::snprintf(text, sizeof(text), "%.*g", digits, number);
  text_ += text;
}

void JsonWriter::Bool(bool value) {
  Separate();
  text_ += value ? "true" : "false";
}

void JsonWriter::Null() {
  Separate();
  text_ += "null";
}

void JsonWriter::Strings(std::span<const std::string> texts) {
  BeginArray();
  for (const std::string& text : texts) String(text);
  End();
}

void JsonWriter::TensorShape(const TensorDesc& tensor) {
  Key("dataType").String(Name(tensor.type));
  Key("sizes").BeginArray();
  for (uint32_t i = 0; i < tensor.rank; ++i) Number(tensor.sizes[i]);
  End();
}

void JsonWriter::TensorValues(const TensorDesc& tensor, std::span<const std::byte> data) {
  Key("values");
  Values(tensor, data, 0, 0);
}

void JsonWriter::Values(const TensorDesc& tensor, std::span<const std::byte> data, uint32_t dimension,
                        uint64_t offset) {
  if (dimension == tensor.rank) {
    const std::string element = ElementToString(tensor.type, data.data(), offset);
    const bool is_number = element.find_first_of("n?") == std::string::npos;  // nan, inf
    Separate();
    text_ += is_number ? element : '"' + element + '"';
    return;
  }
  BeginArray();
  for (uint32_t i = 0; i < tensor.sizes[dimension]; ++i) {
    Values(tensor, data, dimension + 1, offset + uint64_t{i} * tensor.strides[dimension]);
  }
  End();
}

}  // namespace anydml::client
