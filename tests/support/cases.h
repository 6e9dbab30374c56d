// The cases of all families of operators: one list for tests, fuzzers, determinism and load.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "schema/schema.h"
#include "support/case_maker.h"

namespace anydml::testing {

struct CaseFamily {
  const char* name;
  std::span<const OperatorType> operators;
  // A valid problem of one of the operators, at the latest feature level.
  Case (*make)(OperatorType type, CaseMaker& make);
};

// family::<name>::Cases() is defined in <name>_cases.cc of its folder.
#define ANYDML_FAMILY(name) \
  namespace family::name {  \
  CaseFamily Cases();       \
  }
#include "ops/case_families.generated.h"
#undef ANYDML_FAMILY

std::span<const CaseFamily> AllCaseFamilies();

// From random decisions, the same for the same seed. `least`: minimum number of elements of the largest
// tensors.
Case MakeCase(const CaseFamily& family, OperatorType type, uint64_t seed, uint32_t least = 0);

// Calls body(case) with cases of all operators of the family in turn, each operator at least once, until
// TestSeconds(seconds) are over or a test has failed. Reports the number of cases and, after a failure, how
// to repeat it.
void ForCases(const CaseFamily& family, double seconds, const std::function<void(const Case&)>& body);

// "CAST INT8{2,3} -> FLOAT32{2,3} in place"
std::string Describe(const Case& problem);

}  // namespace anydml::testing
