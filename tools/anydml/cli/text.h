// Text from files in sentences for people.
#pragma once

#include <string>
#include <string_view>

namespace anydml::tools {

// Files may hold any byte; a sentence should not. At most 40 characters.
std::string Printable(std::string_view text);

// The whole text with its control characters, which a terminal would obey, and bytes that are not UTF-8
// written as escapes: "\\x1B[2J".
std::string ForTerminal(std::string_view text);

// Whether the UTF-8 sequence that the text starts with is a control character.
bool StartsWithControl(std::string_view text);

// The length of the UTF-8 sequence that the text, which is not empty, starts with; 0 when it is none.
size_t Utf8Length(std::string_view text);

}  // namespace anydml::tools
