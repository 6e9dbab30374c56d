// Runs operators as a program does: described by C structs, through DirectML's objects, and on the CPU in
// memory between guard pages.
#pragma once

#include <string>
#include <vector>

#include "ops/operator.h"
#include "support/cases.h"
#include "support/dml_harness.h"

namespace anydml::testing {

struct ApiResult {
  std::string implementation;         // empty: the requested one does not fit
  std::vector<Bytes> outputs;         // kGap before the run
  std::vector<std::string> messages;  // from the device's info queue, which is then empty
};

// The backend under test: ANYDML_TEST_BACKEND, or "cpu"; and its implementations of an operator.
std::string BackendUnderTest();
std::vector<std::string> ImplementationsUnderTest(const Operator& op);

// New devices have the debug layer from now on, under which kernels report errors in the data.
void EnableDebugLayer();

// Compiles, initialises and dispatches; with the implementation of this name, or any. On the CPU the buffers
// are between guard pages (GuardedBuffer): an access outside them crashes. Writing to an input or a guard is
// a failure.
ApiResult RunThroughApi(test::DmlHarness& harness, const Case& problem,
                        const std::string& implementation = {});

}  // namespace anydml::testing
