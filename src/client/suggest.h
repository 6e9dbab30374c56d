// "did you mean": finds the most similar of several names.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace anydml::client {

// Empty if none is similar. Ignores case, long names, and names after the first thousand.
std::string_view Nearest(std::string_view name, std::span<const std::string_view> candidates);

// "; did you mean NEAREST?" or empty.
std::string DidYouMean(std::string_view name, std::span<const std::string_view> candidates);

bool EqualIgnoringCase(std::string_view a, std::string_view b);

}  // namespace anydml::client
