// The operators on random valid shapes, types, layouts and contents: every implementation, on any SIMD
// target, must give the reference's results, as closely as it declares, and its error messages.
#include "fuzz.h"

#include <gtest/gtest.h>

#include "support/cases.h"
#if ANYDML_HAVE_HIGHWAY
#include "support/simd_targets.h"
#endif

namespace anydml::fuzz {
namespace {

void Run(ByteSource source) {
  // The test helpers' checks report, then end the process.
  ::testing::GTEST_FLAG(break_on_failure) = true;
#if ANYDML_HAVE_HIGHWAY
  // One target per input: checking all targets takes five times as long and covers as much.
  const auto target = source.Any(hwy::SupportedAndGeneratedTargets());
#else
  source.Byte();  // so that an input means the same problem everywhere
#endif
  const testing::CaseFamily family = source.Any(testing::AllCaseFamilies());
  const OperatorType type = source.Any(family.operators);
  testing::CaseMaker make(source);
  const testing::Case problem = family.make(type, make);
  SCOPED_TRACE(testing::Describe(problem));
  const auto check = [&] { testing::ExpectAllAgree(problem.desc, problem.inputs, problem.in_place); };
#if ANYDML_HAVE_HIGHWAY
  testing::WithTarget(target, check);
#else
  check();
#endif
}

}  // namespace
}  // namespace anydml::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  anydml::fuzz::Run({data, size});
  return 0;
}
