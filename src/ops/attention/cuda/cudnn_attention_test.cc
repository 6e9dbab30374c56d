// The attention graphs that cuDNN gets, the choice of its engines, and error messages for its failures. Runs
// without a GPU: the tests provide the library.
#include "ops/attention/cuda/cudnn_attention.h"

#include <gtest/gtest.h>

#include "support/fake_cudnn.h"

namespace anydml {
namespace {

using testing::FakeCudnn;
using Numbers = std::vector<int64_t>;

class CudnnAttention : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(library_, nullptr) << dlerror();
    *library_ = FakeCudnn();
    library_->engines[cudnn::kModeA] = {{.index = 5, .notes = {cudnn::kTensorCore}}};
    // One batch of 4 heads, in pairs that share keys and values; rows contain all heads.
    problem_.type = DataType::kFloat16;
    problem_.heads = 4;
    problem_.group = 2;
    problem_.queries = 3;
    problem_.keys = 2048;
    problem_.key.columns = 64;
    problem_.value.columns = 32;
    problem_.query = {.exists = true, .head = 64, .row = 256};
    key_ = {.exists = true, .head = 64, .row = 128};
    value_ = {.exists = true, .head = 32, .row = 64};
    problem_.output = {.exists = true, .head = 32, .row = 128};
  }
  void TearDown() override { EXPECT_EQ(library_->descriptors, 0); }

  std::shared_ptr<const cudnn::Graph> Create() {
    why_not_.clear();
    return CreateCudnnAttention(problem_, key_, value_, device_, &why_not_);
  }
  static std::string Run(const cudnn::Graph& graph) {
    const void* const addresses[] = {"query", "key", "value", "scale", "output"};
    return graph.Run(nullptr, addresses, nullptr);
  }

  FakeCudnn* const library_ = FakeCudnn::Find();
  const int device_ = next_device_++;  // each thread has its own handle
  AttentionProblem problem_;
  AttentionView key_, value_;
  std::string why_not_;

 private:
  static inline int next_device_ = 1000;
};

TEST_F(CudnnAttention, IsAGraphOfOperations) {
  const auto graph = Create();
  ASSERT_NE(graph, nullptr) << why_not_;
  EXPECT_EQ(graph->name(), "cuDNN 9.10.2 engine 5");
  EXPECT_EQ(library_->operations, 10);
  EXPECT_EQ(Run(*graph), "");
  EXPECT_EQ(library_->executions, 1);
  EXPECT_EQ(library_->addresses.size(), 5u);
  EXPECT_EQ(library_->attributes[cudnn::kPackIds], Numbers({1, 2, 3, 4, 5}));
}

// Dimensions of size 1 have a stride beyond all others.
TEST_F(CudnnAttention, KeysAreTransposedByTheirStrides) {
  const auto graph = Create();
  ASSERT_NE(graph, nullptr) << why_not_;
  ASSERT_EQ(library_->tensors.size(), 14u);
  EXPECT_EQ(library_->tensors[0], std::pair(Numbers({1, 4, 3, 64}), Numbers({768, 64, 256, 1})));
  EXPECT_EQ(library_->tensors[1], std::pair(Numbers({1, 2, 64, 2048}), Numbers({262144, 64, 1, 128})));
  EXPECT_EQ(library_->tensors[2], std::pair(Numbers({1, 2, 2048, 32}), Numbers({131072, 32, 64, 1})));
  EXPECT_EQ(library_->tensors[3], std::pair(Numbers({1, 1, 1, 1}), Numbers({1, 1, 1, 1})));
  EXPECT_EQ(library_->tensors[4], std::pair(Numbers({1, 4, 3, 32}), Numbers({384, 32, 128, 1})));
  EXPECT_EQ(library_->tensors[5], std::pair(Numbers({1, 4, 3, 2048}), Numbers({24576, 6144, 2048, 1})));
}

TEST_F(CudnnAttention, TheSameProblemHasOneGraphWhileItIsUsed) {
  const auto graph = Create();
  ASSERT_NE(graph, nullptr) << why_not_;
  EXPECT_EQ(Create(), graph);
  value_.row = 128;
  EXPECT_NE(Create(), graph);
}

TEST_F(CudnnAttention, SumsHaveOneOrderAndFloat32) {
  library_->engines[cudnn::kModeA] = {{.index = 1, .notes = {cudnn::kTensorCore, cudnn::kNondeterministic}},
                                      {.index = 2, .notes = {cudnn::kReducedPrecisionReduction}},
                                      {.index = 3, .has_plan = false},
                                      {.index = 4, .workspace_bytes = int64_t{1} << 40},
                                      {.index = 6, .notes = {cudnn::kTensorCore}, .workspace_bytes = 7}};
  const auto graph = Create();
  ASSERT_NE(graph, nullptr) << why_not_;
  EXPECT_EQ(graph->name(), "cuDNN 9.10.2 engine 6");
  EXPECT_EQ(graph->workspace_bytes(), 7u);
}

TEST_F(CudnnAttention, WhatFailsAtCompileTimeIsAReason) {
  const auto expect = [&](const char* reason) {
    EXPECT_EQ(Create(), nullptr);
    EXPECT_EQ(why_not_, reason);
    EXPECT_EQ(library_->descriptors, 0);
  };
  library_->fails_to_start = true;
  expect("cuDNN could not be started: cudnnCreate: CUDNN_STATUS_INTERNAL_ERROR");
  library_->fails_to_start = false;
  library_->attribute_not_set = cudnn::kReductionFunction;
  expect("cuDNN refuses it: cudnnBackendSetAttribute (a reduction): CUDNN_STATUS_BAD_PARAM (attribute 1600)");
  library_->attribute_not_set = FakeCudnn::kNone;
  library_->kind_not_finalized = cudnn::kOperationGraph;
  expect("cuDNN refuses it: cudnnBackendFinalize (an operation graph): CUDNN_STATUS_NOT_SUPPORTED");
  library_->kind_not_finalized = cudnn::kExecutionPlan;
  expect(
      "cuDNN 9.10.2 has no engine for it (1 offered, 0 not exact enough or not deterministic; "
      "cudnnBackendFinalize (an execution plan): CUDNN_STATUS_NOT_SUPPORTED)");
}

TEST_F(CudnnAttention, WhatFailsAtExecutionIsASentence) {
  const auto graph = Create();
  ASSERT_NE(graph, nullptr) << why_not_;
  library_->fails_to_execute = true;
  EXPECT_EQ(Run(*graph), "cudnnBackendExecute (cuDNN 9.10.2 engine 5): CUDNN_STATUS_EXECUTION_FAILED");
}

}  // namespace
}  // namespace anydml
