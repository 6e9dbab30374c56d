// Makes text from files safe for messages.
#pragma once

#include <string>
#include <string_view>

namespace anydml::client {

// At most 40 characters, all printable: files may contain any byte, messages should not.
std::string Printable(std::string_view text);

// The whole text; control characters, which a terminal would obey, and bytes that are not UTF-8 become
// escapes: "\\x1B[2J".
std::string ForTerminal(std::string_view text);

// Whether the UTF-8 sequence at the beginning of the text is a control character.
bool StartsWithControl(std::string_view text);

// The length of the UTF-8 sequence at the beginning of the text, which is not empty; 0 if it is invalid.
size_t Utf8Length(std::string_view text);

}  // namespace anydml::client
