#include "anydml/cli/style.h"

#include <unistd.h>

#include <cstdlib>

#include "base/status.h"

namespace anydml::client {
namespace {

bool TakesColors(std::FILE* stream) {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* terminal = std::getenv("TERM");
  if (terminal == nullptr || std::string_view(terminal) == "dumb") return false;
  return isatty(fileno(stream)) == 1;
}

}  // namespace

std::string Paint(std::FILE* stream, Style style, std::string_view text) {
  if (!TakesColors(stream)) return std::string(text);
  constexpr const char* kCodes[] = {"1", "31", "32", "33"};
  return StrCat("\033[", kCodes[static_cast<size_t>(style)], "m", text, "\033[0m");
}

}  // namespace anydml::client
