#include "anydml/cli/quantity.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/status.h"

namespace anydml::client {
namespace {

// The largest unit of which there is at least one, or the smallest.
template <size_t kCount>
std::string WithUnit(double value, const char* const (&units)[kCount]) {
  size_t unit = 0;
  // 999.5 and more would need four digits.
  while (unit + 1 < kCount && value >= 999.5) {
    value /= 1000;
    ++unit;
  }
  return FormatNumber(value) + units[unit];
}

}  // namespace

std::string FormatNumber(double number) {
  char text[48];
  if (number != 0 && !(std::abs(number) >= 1e-3 && std::abs(number) < 1e6)) {
    std::snprintf(text, sizeof(text), "%.3g", number);
    return text;
  }
  const int digits = number == 0 ? 1 : static_cast<int>(std::floor(std::log10(std::abs(number)))) + 1;
  std::snprintf(text, sizeof(text), "%.*f", std::clamp(3 - digits, 0, 5), number);
  std::string result = text;
  if (result.find('.') == std::string::npos) return result;
  result.erase(result.find_last_not_of('0') + 1);
  if (result.back() == '.') result.pop_back();
  return result;
}

std::string FormatSeconds(double seconds, const char* micro) {
  const std::string microseconds = StrCat(" ", micro, "s");
  const char* const units[] = {" ns", microseconds.c_str(), " ms", " s"};
  return WithUnit(seconds * 1e9, units);
}

std::string FormatBytes(double bytes) {
  constexpr const char* kUnits[] = {" B", " kB", " MB", " GB", " TB"};
  return WithUnit(bytes, kUnits);
}

std::string FormatCount(double count) {
  char text[32];
  if (count < 1e4) {
    std::snprintf(text, sizeof(text), "%.6g", count);
    return text;
  }
  const double unit = count < 1e6 ? 1e3 : count < 1e9 ? 1e6 : 1e9;
  std::snprintf(text, sizeof(text), "%.4g%s", count / unit, count < 1e6 ? "k" : count < 1e9 ? "M" : "G");
  return text;
}

}  // namespace anydml::client
