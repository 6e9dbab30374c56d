// What the library's kernels are run on, through its public API.
#pragma once

#if ANYDML_SHARED_HIGHWAY
#include "support/simd_targets.h"
#endif

namespace anydml::testing {

// Calls body(name) for every SIMD target of this machine, to which dispatch is held meanwhile: the
// library shares Highway's choice where Highway is a shared library. Otherwise once.
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
