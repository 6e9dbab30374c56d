#include "client/text.h"

#include <algorithm>
#include <cstdio>

namespace anydml::client {

std::string Printable(std::string_view text) {
  std::string result(text.substr(0, 40));
  for (char& c : result) {
    if (c < ' ' || c > '~') c = '?';
  }
  return result;
}

bool StartsWithControl(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  // Also U+0080 to U+009F, because terminals treat U+009B as "ESC [".
  return lead < ' ' || lead == 0x7F || (lead == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0);
}

std::string ForTerminal(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    size_t length = Utf8Length(text);
    if (length > 0 && !StartsWithControl(text)) {
      result += text.substr(0, length);
    } else {
      length = std::max<size_t>(length, 1);
      for (const char c : text.substr(0, length)) {
        char escape[8];
        std::snprintf(escape, sizeof(escape), "\\x%02X",
                      static_cast<unsigned>(static_cast<unsigned char>(c)));
        result += escape;
      }
    }
    text.remove_prefix(length);
  }
  return result;
}

size_t Utf8Length(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 2) return 0;
  }
  // Overlong, surrogates, beyond U+10FFFF.
  const bool wrong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F) ||
                     (lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F);
  return wrong ? 0 : length;
}

}  // namespace anydml::client
