#include "anydml/json_writer.h"

#include <cstdio>

#include "common/tensor_text.h"

namespace anydml::tools {
namespace {

// The length of the UTF-8 sequence that the text starts with; 0 when it is none.
size_t Utf8Length(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 2) return 0;
  }
  // Longer than needed, surrogates, beyond U+10FFFF.
  const bool wrong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F) ||
                     (lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F);
  return wrong ? 0 : length;
}

}  // namespace

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
  if (after_key_) Null();  // whoever was to write the value failed
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
    } else if (length == 1 && c < ' ') {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(c));
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

void JsonWriter::Real(double number) {
  Separate();
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", number);
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
    const std::string element =
        ElementToString(tensor.type, data.data() + offset * (BitSize(tensor.type) / 8));
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

}  // namespace anydml::tools
