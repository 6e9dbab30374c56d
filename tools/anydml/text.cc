#include "anydml/text.h"

namespace anydml::tools {

std::string Printable(std::string_view text) {
  std::string result(text.substr(0, 40));
  for (char& c : result) {
    if (c < ' ' || c > '~') c = '?';
  }
  return result;
}

}  // namespace anydml::tools
