// The convolution graphs that cuDNN gets, the choice of its engines, and error messages for its failures.
// Runs without a GPU: the tests provide the library.
#include "ops/convolution/cuda/cudnn/cudnn_convolution.h"

#include <gtest/gtest.h>

#include "support/fake_cudnn.h"

namespace anydml {
namespace {

using testing::FakeCudnn;
using Numbers = std::vector<int64_t>;

class Cudnn : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(library_, nullptr) << dlerror();
    *library_ = FakeCudnn();
    library_->engines[cudnn::kModeA] = {{.index = 5}};
    // 16 channels of 8x8 by 3x3 into 32, channels last.
    problem_.x = {DataType::kFloat32, {{1, 16, 8, 8}, {1024, 1, 128, 16}}};
    problem_.w = {DataType::kFloat32, {{32, 16, 3, 3}, {144, 1, 48, 16}}};
    problem_.y = {DataType::kFloat32, {{1, 32, 8, 8}, {2048, 1, 256, 32}}};
    problem_.windows.steps = problem_.windows.dilations = problem_.windows.pre_paddings = {1, 1};
    problem_.windows.post_paddings = {1, 2};
  }
  void TearDown() override { EXPECT_EQ(library_->descriptors, 0); }

  void BeHalf() { problem_.x.type = problem_.w.type = problem_.y.type = DataType::kFloat16; }
  std::shared_ptr<const cudnn::Graph> Create() {
    why_not_.clear();
    return CreateCudnnConvolution(problem_, device_, &why_not_);
  }
  static std::string Run(const cudnn::Graph& graph, size_t tensors = 3) {
    const void* const addresses[] = {"x", "w", "y", "bias"};
    return graph.Run(nullptr, std::span(addresses).first(tensors), nullptr);
  }

  FakeCudnn* const library_ = FakeCudnn::Find();
  const int device_ = next_device_++;  // each thread has its own handle
  CudnnProblem problem_;
  std::string why_not_;

 private:
  static inline int next_device_ = 0;
};

TEST_F(Cudnn, IsToldWhatTheConvolutionIs) {
  problem_.windows.steps = {2, 3};
  problem_.windows.dilations = {4, 5};
  const auto graph = Create();
  ASSERT_NE(graph, nullptr) << why_not_;
  EXPECT_EQ(graph->name(), "cuDNN 9.10.2 engine 5");
  EXPECT_EQ(library_->operations, 1);
  EXPECT_EQ(library_->attributes[cudnn::kConvolutionSpatialDimensions], Numbers({2}));
  EXPECT_EQ(library_->attributes[cudnn::kConvolutionStrides], Numbers({2, 3}));
  EXPECT_EQ(library_->attributes[cudnn::kConvolutionDilations], Numbers({4, 5}));
  EXPECT_EQ(library_->attributes[cudnn::kConvolutionPrePaddings], Numbers({1, 1}));
  EXPECT_EQ(library_->attributes[cudnn::kConvolutionPostPaddings], Numbers({1, 2}));
  EXPECT_EQ(Run(*graph), "");
  EXPECT_EQ(library_->executions, 1);
  EXPECT_EQ(library_->addresses.size(), 3u);
}

TEST_F(Cudnn, BiasAndLimitsAreOperationsOfTheGraph) {
  problem_.has_bias = true;
  problem_.limits = SumLimits{0, 6};
  const auto graph = Create();
  ASSERT_NE(graph, nullptr) << why_not_;
  EXPECT_EQ(library_->operations, 3);
  EXPECT_EQ(Run(*graph, 4), "");
  EXPECT_EQ(library_->addresses.size(), 4u);
}

// Engines state their precision as numerical notes.
TEST_F(Cudnn, TakesTheFirstEngineThatIsExactEnough) {
  library_->engines[cudnn::kModeA] = {{.index = 1, .notes = {cudnn::kTensorCore}},
                                      {.index = 2, .notes = {cudnn::kWinograd + 1}},
                                      {.index = 3, .has_plan = false},
                                      {.index = 4, .workspace_bytes = int64_t{1} << 40},
                                      {.index = 5, .notes = {9, 100}, .workspace_bytes = 7},
                                      {.index = 6}};
  const auto graph = Create();
  ASSERT_NE(graph, nullptr) << why_not_;
  EXPECT_EQ(graph->name(), "cuDNN 9.10.2 engine 5");
  EXPECT_EQ(graph->workspace_bytes(), 7u);
  BeHalf();
  const auto half = Create();
  ASSERT_NE(half, nullptr) << why_not_;
  EXPECT_EQ(half->name(), "cuDNN 9.10.2 engine 1");
}

TEST_F(Cudnn, NoEngineReordersSumsOrRoundsThem) {
  BeHalf();
  for (const int note : {cudnn::kReducedPrecisionReduction, cudnn::kFft, cudnn::kNondeterministic,
                         cudnn::kWinograd, cudnn::kWinogradTile13x13}) {
    library_->engines[cudnn::kModeA] = {{.index = 1, .notes = {cudnn::kTensorCore, note}}};
    EXPECT_EQ(Create(), nullptr) << note;
    EXPECT_EQ(why_not_,
              "cuDNN 9.10.2 has no engine for it (1 offered, 1 not exact enough or not deterministic)");
  }
  library_->engines[cudnn::kModeFallback] = {{.index = 8, .notes = {cudnn::kTensorCore}}};
  const auto graph = Create();
  ASSERT_NE(graph, nullptr) << why_not_;
  EXPECT_EQ(graph->name(), "cuDNN 9.10.2 engine 8");
}

TEST_F(Cudnn, TheSameProblemHasOneGraphWhileItIsUsed) {
  auto graph = Create();
  ASSERT_NE(graph, nullptr) << why_not_;
  EXPECT_EQ(Create(), graph);
  problem_.windows.post_paddings = {2, 2};
  EXPECT_NE(Create(), graph);
  problem_.windows.post_paddings = {1, 2};
  graph.reset();
  library_->engines[cudnn::kModeA] = {{.index = 6}};
  graph = Create();
  ASSERT_NE(graph, nullptr) << why_not_;
  EXPECT_EQ(graph->name(), "cuDNN 9.10.2 engine 6");
}

// So that executions do not wait for a concurrent compilation.
TEST_F(Cudnn, GraphsAreExecutedWithAnotherHandleThanTheyAreMadeWith) {
  const auto graph = Create();
  ASSERT_NE(graph, nullptr) << why_not_;
  EXPECT_EQ(library_->with_stream, nullptr);
  EXPECT_EQ(Run(*graph), "");
  EXPECT_NE(library_->maker, nullptr);
  EXPECT_NE(library_->executor, library_->maker);
  EXPECT_EQ(library_->with_stream, library_->executor);
  EXPECT_EQ(library_->handles, 2u);
}

TEST_F(Cudnn, WhatFailsAtCompileTimeIsAReason) {
  const auto expect = [&](const char* reason) {
    EXPECT_EQ(Create(), nullptr);
    EXPECT_EQ(why_not_, reason);
    EXPECT_EQ(library_->descriptors, 0);
  };
  library_->fails_to_start = true;
  expect("cuDNN could not be started: cudnnCreate: CUDNN_STATUS_INTERNAL_ERROR");
  library_->fails_to_start = false;  // it is retried
  library_->attribute_not_set = cudnn::kConvolutionStrides;
  expect(
      "cuDNN refuses it: cudnnBackendSetAttribute (a convolution): CUDNN_STATUS_BAD_PARAM (attribute 103)");
  library_->attribute_not_set = FakeCudnn::kNone;
  library_->kind_not_finalized = cudnn::kOperationGraph;
  expect("cuDNN refuses it: cudnnBackendFinalize (an operation graph): CUDNN_STATUS_NOT_SUPPORTED");
  library_->kind_not_finalized = cudnn::kEngineHeuristics;
  expect(
      "cuDNN 9.10.2 has no engine for it (0 offered, 0 not exact enough or not deterministic; "
      "cudnnBackendFinalize (heuristics): CUDNN_STATUS_NOT_SUPPORTED)");
  library_->kind_not_finalized = cudnn::kExecutionPlan;
  expect(
      "cuDNN 9.10.2 has no engine for it (1 offered, 0 not exact enough or not deterministic; "
      "cudnnBackendFinalize (an execution plan): CUDNN_STATUS_NOT_SUPPORTED)");
  library_->kind_not_finalized = FakeCudnn::kNone;
  library_->kind_not_created = cudnn::kTensor;
  expect("cuDNN refuses it: cudnnBackendCreateDescriptor (a tensor): CUDNN_STATUS_INTERNAL_ERROR");
}

TEST_F(Cudnn, WhatFailsAtExecutionIsASentence) {
  const auto graph = Create();
  ASSERT_NE(graph, nullptr) << why_not_;
  library_->fails_to_execute = true;
  EXPECT_EQ(Run(*graph),
            "cudnnBackendExecute (cuDNN 9.10.2 engine 5): "
            "CUDNN_STATUS_EXECUTION_FAILED");
  library_->kind_not_created = cudnn::kVariantPack;
  EXPECT_EQ(Run(*graph),
            "cudnnBackendCreateDescriptor (a variant pack): "
            "CUDNN_STATUS_INTERNAL_ERROR");
}

}  // namespace
}  // namespace anydml
