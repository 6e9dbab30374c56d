// Text from files in sentences for people.
#pragma once

#include <string>
#include <string_view>

namespace anydml::tools {

// Files may hold any byte; a sentence should not. At most 40 characters.
std::string Printable(std::string_view text);

}  // namespace anydml::tools
