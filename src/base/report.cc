#include "base/report.h"

#include <cstdio>
#include <cstdlib>

namespace anydml {
namespace {

thread_local std::string last_error;

bool DebugRequested() {
  static const bool requested = [] {
    const char* value = std::getenv("ANYDML_DEBUG");
    return value != nullptr && value[0] == '1';
  }();
  return requested;
}

}  // namespace

void ReportError(const std::string& message, bool to_stderr) noexcept {
  try {
    last_error = message;
  } catch (...) {
    last_error.clear();  // no memory for the sentence: the code still tells
  }
  // One call per line, so that lines of several threads do not mix.
  if (to_stderr || DebugRequested()) std::fprintf(stderr, "[DIRECTML ERROR]: %s\n", message.c_str());
}

const char* LastErrorMessage() noexcept { return last_error.c_str(); }

void ClearLastErrorMessage() noexcept { last_error.clear(); }

}  // namespace anydml
