// Text from files in sentences for people.
#pragma once

#include <string>
#include <string_view>

namespace anydml::tools {

// Files may hold any byte; a sentence should not. At most 40 characters.
std::string Printable(std::string_view text);

// The length of the UTF-8 sequence that the text, which is not empty, starts with; 0 when it is none.
size_t Utf8Length(std::string_view text);

}  // namespace anydml::tools
