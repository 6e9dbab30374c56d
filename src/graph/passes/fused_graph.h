// Shared by the tests of fusion: graphs whose results with passes equal those without, to the byte, with
// fewer kernels.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "graph/passes/graph_under_test.h"
#include "support/operator_runner.h"

namespace anydml::testing {

inline size_t CountKernels(const Result& result) {
  return 1 + static_cast<size_t>(std::count(result.made_of.begin(), result.made_of.end(), ','));
}

// The result with all passes, which leave `kernels` kernels.
inline Result ExpectSame(const GraphUnderTest& test, size_t kernels) {
  const Result want = RunGraph(test, "all");
  Result got = RunGraph(test, "");
  EXPECT_EQ(got.outputs, want.outputs) << got.explanation;
  EXPECT_EQ(CountKernels(got), kernels) << got.explanation;
  return got;
}

template <typename T>
Bytes BytesOf(const std::vector<T>& elements) {
  Bytes bytes(elements.size() * sizeof(T));
  std::memcpy(bytes.data(), elements.data(), bytes.size());
  bytes.resize((bytes.size() + 3) / 4 * 4);
  return bytes;
}

inline OperatorDesc Unary(const char* name, const TensorDesc& input, const TensorDesc& output) {
  return MakeDesc(name, {{"InputTensor", input}, {"OutputTensor", output}});
}
inline OperatorDesc Binary(const char* name, const TensorDesc& a, const TensorDesc& b,
                           const TensorDesc& output) {
  return MakeDesc(name, {{"ATensor", a}, {"BTensor", b}, {"OutputTensor", output}});
}

}  // namespace anydml::testing
