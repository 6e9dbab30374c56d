#include "anydml/cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/status.h"

namespace anydml::client {
namespace {

constexpr size_t kBar = 20, kColumns = 79;

bool IsTerminal() {
  const char* terminal = std::getenv("TERM");
  return terminal != nullptr && std::string_view(terminal) != "dumb" && isatty(STDERR_FILENO) == 1;
}

}  // namespace

Progress::Progress(size_t total) : total_(std::max<size_t>(total, 1)), visible_(IsTerminal()) {}

void Progress::Show(size_t done, const std::string& doing) {
  if (!visible_) return;
  const size_t filled = std::min(done * kBar / total_, kBar);
  const std::string line = StrCat("[", std::string(filled, '#'), std::string(kBar - filled, '.'), "] ", done,
                                  "/", total_, " ", doing);
  // Returns to the first column and erases the rest of the previous line.
  std::fprintf(stderr, "\r%s\033[K", line.substr(0, kColumns).c_str());
  std::fflush(stderr);
}

void Progress::Clear() {
  if (!visible_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

}  // namespace anydml::client
