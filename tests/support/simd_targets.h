// The SIMD targets of Highway that this machine can run. Needs hwy::hwy.
#pragma once

#include <gtest/gtest.h>
#include <hwy/highway.h>

namespace anydml::testing {

// Runs `body` with dispatch limited to `target`.
template <typename Body>
void WithTarget(int64_t target, Body&& body) {
  SCOPED_TRACE(hwy::TargetName(target));
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  body();
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// Once per target.
template <typename Body>
void ForEachTarget(Body&& body) {
  for (const auto target : hwy::SupportedAndGeneratedTargets()) {
    WithTarget(target, body);
    if (::testing::Test::HasFailure()) break;
  }
}

}  // namespace anydml::testing
