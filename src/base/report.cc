#include "base/report.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace anydml {
namespace {

// It needs no destructor, so that calls that fail in destructors of static and thread-local objects can use
// it.
constinit thread_local char last_error[4096] = {};

// Read at load, because another thread may change the environment later.
const bool debug_requested = [] {
  const char* value = std::getenv("ANYDML_DEBUG");
  return value != nullptr && value[0] == '1';
}();

bool ContinuesCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }  // of UTF-8

void Keep(std::string_view message) {
  constexpr std::string_view kCut = "...";
  std::string_view end = "";  // not null: memcpy requires a valid address even for 0 bytes
  if (message.size() >= sizeof(last_error)) {
    size_t length = sizeof(last_error) - 1 - kCut.size();
    while (length > 0 && ContinuesCharacter(message[length])) --length;
    message = message.substr(0, length);
    end = kCut;
  }
  std::memcpy(last_error, message.data(), message.size());
  std::memcpy(last_error + message.size(), end.data(), end.size());
  last_error[message.size() + end.size()] = 0;
}

}  // namespace

bool DebugRequested() noexcept { return debug_requested; }

void ReportError(const std::string& message, bool to_stderr) noexcept {
  Keep(message);
  // One call per line, so that lines of several threads do not mix.
  if (to_stderr || DebugRequested()) std::fprintf(stderr, "[DIRECTML ERROR]: %s\n", message.c_str());
}

const char* LastErrorMessage() noexcept { return last_error; }

void ClearLastErrorMessage() noexcept { last_error[0] = 0; }

}  // namespace anydml
