// Every family's list of implementations: what a backend's module exports of the operators. A new
// family has a line here and one in operator_table.cc.
#pragma once

#include <span>
#include <string_view>

#include "ops/implementation_list.h"

namespace anydml {

struct AttentionProblem;
struct BatchNormProblem;
struct ConvolutionProblem;
struct DynamicQuantizeProblem;
struct ElementProblem;
struct FoldProblem;
struct GatherProblem;
struct GemmProblem;
struct GemmSoftmaxProblem;
struct GenerateProblem;
struct IntegerProductProblem;
struct LrnProblem;
struct MaxUnpoolingProblem;
struct MomentsProblem;
struct MoveProblem;
struct MvnProblem;
struct NonzeroProblem;
struct OneHotProblem;
struct PoolingGradProblem;
struct PoolingProblem;
struct RandomProblem;
struct RecurrentProblem;
struct ReduceProblem;
struct ResampleProblem;
struct ReverseProblem;
struct RoiProblem;
struct ScanProblem;
struct ScatterProblem;
struct SoftmaxProblem;
struct TopKProblem;
struct ValueScaleProblem;
struct WindowSumsProblem;

struct OperatorTable {
  std::span<const Implementation<AttentionProblem>> attention;
  std::span<const Implementation<BatchNormProblem>> batchnorm;
  std::span<const Implementation<ConvolutionProblem>> convolution;
  std::span<const Implementation<DynamicQuantizeProblem>> dynamic_quantize;
  std::span<const Implementation<ElementProblem>> element;
  std::span<const Implementation<FoldProblem>> fold;
  std::span<const Implementation<GatherProblem>> gather;
  std::span<const Implementation<GemmProblem>> gemm;
  std::span<const Implementation<GemmSoftmaxProblem>> gemm_softmax;
  std::span<const Implementation<GenerateProblem>> generate;
  std::span<const Implementation<IntegerProductProblem>> integer_product;
  std::span<const Implementation<LrnProblem>> lrn;
  std::span<const Implementation<MaxUnpoolingProblem>> max_unpooling;
  std::span<const Implementation<MomentsProblem>> moments;
  std::span<const Implementation<MoveProblem>> move;
  std::span<const Implementation<MvnProblem>> mvn;
  std::span<const Implementation<NonzeroProblem>> nonzero;
  std::span<const Implementation<OneHotProblem>> one_hot;
  std::span<const Implementation<PoolingProblem>> pooling;
  std::span<const Implementation<PoolingGradProblem>> pooling_grad;
  std::span<const Implementation<RandomProblem>> random;
  std::span<const Implementation<RecurrentProblem>> recurrent;
  std::span<const Implementation<ReduceProblem>> reduce;
  std::span<const Implementation<ResampleProblem>> resample;
  std::span<const Implementation<ReverseProblem>> reverse;
  std::span<const Implementation<RoiProblem>> roi;
  std::span<const Implementation<ScanProblem>> scan;
  std::span<const Implementation<ScatterProblem>> scatter;
  std::span<const Implementation<SoftmaxProblem>> softmax;
  std::span<const Implementation<TopKProblem>> top_k;
  std::span<const Implementation<ValueScaleProblem>> value_scale;
  std::span<const Implementation<WindowSumsProblem>> window_sums;
};

// The table of the library or module that calls this.
const OperatorTable& OwnOperatorTable();

// The table to lower from for a backend: its module's, or our own.
const OperatorTable& OperatorTableOf(std::string_view backend);

}  // namespace anydml
