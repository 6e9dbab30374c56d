// Colours, for terminals only.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace anydml::client {

enum class Style { kBold, kRed, kGreen, kYellow };

// Colours `text` if `stream` is a terminal, unless NO_COLOR is set (https://no-color.org) or TERM is dumb.
std::string Paint(std::FILE* stream, Style style, std::string_view text);

}  // namespace anydml::client
