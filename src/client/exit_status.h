// The result of a command: a Status, which main turns into an exit code and a message.
#pragma once

#include "base/status.h"

namespace anydml::client {

// Not an HRESULT: the command line is wrong, nothing was tried.
inline constexpr Code kBadUsage = static_cast<Code>(2);

// Ctrl-C, if a command then ends by itself. The exit code that shells report for a program ended by that
// signal.
inline constexpr Code kInterrupted = static_cast<Code>(130);

template <typename... Args>
Status UsageError(const Args&... args) {
  return Status(kBadUsage, StrCat(args...));
}

// 0 done, 1 failed, 2 bad usage, 3 not supported by this version or adapter, 130 interrupted. What a feature
// level refuses has failed, because DirectML does not distinguish it from other wrong arguments. (For an ONNX
// model, 3 is an unsupported operator.)
inline int ExitCode(const Status& status) {
  if (status.ok()) return 0;
  if (status.code() == kBadUsage) return 2;
  if (status.code() == kInterrupted) return 130;
  return status.code() == Code::kUnsupported ? 3 : 1;
}

}  // namespace anydml::client
