// How a command ends: a Status, which main turns into an exit code and a sentence.
#pragma once

#include "base/status.h"

namespace anydml::tools {

// Not an HRESULT: the command was not understood, nothing was tried.
inline constexpr Code kBadUsage = static_cast<Code>(2);

// Ctrl-C, where a command ends by itself then. As shells call a program that the signal ended.
inline constexpr Code kInterrupted = static_cast<Code>(130);

template <typename... Args>
Status UsageError(const Args&... args) {
  return Status(kBadUsage, StrCat(args...));
}

// 0 done, 1 failed, 2 bad usage, 3 not supported by this version or adapter, 130 interrupted. What a feature
// level refuses has failed: DirectML does not tell it from another wrong argument. (Of an ONNX model it is
// an operator that is not supported.)
inline int ExitCode(const Status& status) {
  if (status.ok()) return 0;
  if (status.code() == kBadUsage) return 2;
  if (status.code() == kInterrupted) return 130;
  return status.code() == Code::kUnsupported ? 3 : 1;
}

}  // namespace anydml::tools
