// Runs the library's kernels, through its public API, for every SIMD target.
#pragma once

#if ANYDML_SHARED_HIGHWAY
#include "support/simd_targets.h"
#endif

namespace anydml::testing {

// Calls body(name) for every SIMD target of this machine, with dispatch limited to it; this works if Highway
// is a shared library, because the library then shares its choice of target. Otherwise calls it once.
template <typename Body>
void OnEveryTarget(Body&& body) {
#if ANYDML_SHARED_HIGHWAY
  for (const auto target : hwy::SupportedAndGeneratedTargets()) {
    WithTarget(target, [&] { body(hwy::TargetName(target)); });
    if (::testing::Test::HasFailure()) break;
  }
#else
  body("default");
#endif
}

}  // namespace anydml::testing
