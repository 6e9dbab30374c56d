// "did you mean": the nearest of several names.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace anydml::tools {

// Empty when none is near. Case does not matter. Long names and those after the first thousand are left out.
std::string_view Nearest(std::string_view name, std::span<const std::string_view> candidates);

// "; did you mean NEAREST?" or nothing.
std::string DidYouMean(std::string_view name, std::span<const std::string_view> candidates);

bool EqualIgnoringCase(std::string_view a, std::string_view b);

}  // namespace anydml::tools
