// Operators run as a program runs them: described by C structs, through DirectML's objects, and on
// the CPU in memory that ends where it says.
#pragma once

#include <string>
#include <vector>

#include "ops/operator.h"
#include "support/cases.h"
#include "support/dml_harness.h"

namespace anydml::testing {

struct ApiResult {
  std::string implementation;         // empty: the one that was asked for does not fit
  std::vector<Bytes> outputs;         // kGap before the run
  std::vector<std::string> messages;  // of the device's info queue, which is empty afterwards
};

// The backend under test: ANYDML_TEST_BACKEND, or "cpu". And its implementations of an operator.
std::string BackendUnderTest();
std::vector<std::string> ImplementationsUnderTest(const Operator& op);

// From now on new devices have the debug layer, under which kernels say what is wrong with the data.
void EnableDebugLayer();

// Compiles, initialises and dispatches; with the implementation of this name, or any. On the CPU the
// buffers lie between guard pages (GuardedBuffer): a byte outside of them is a crash. An input or a
// guard that was written to is a failure.
ApiResult RunThroughApi(test::DmlHarness& harness, const Case& problem,
                        const std::string& implementation = {});

}  // namespace anydml::testing
