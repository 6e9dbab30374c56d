// Pooling: windows over the last two or three dimensions of {N, C, (D,) H, W}, in any layout.
//
// The rules, the same in every kernel:
// - padding is never a maximum; of equal elements the first in row-major order counts. NaN is larger than
//   everything else, and +0 than -0. A window without a valid tap gives the lowest number, and index 0;
// - indices count the elements of the whole logical input;
// - sums are FLOAT32 and start at +0. Each column of a window, which is its taps at one position of the last
//   dimension, is summed in row-major order; then the columns are: up to kColumnsInARow one after the other;
//   otherwise column k in lane k % kSumLanes, then the upper half of the lanes is added to the lower one,
//   until one lane is left.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ops/common/window.h"
#include "ops/element/problem.h"
#include "ops/implementation_list.h"
#include "ops/operator.h"
#include "schema/tensor_desc.h"

namespace anydml {

inline constexpr uint32_t kPoolingRank = 5;     // N, C, D, H, W; with two spatial dimensions the depth is 1
inline constexpr uint32_t kSpatialRank = 3;     // D, H, W
inline constexpr uint32_t kColumnsInARow = 16;  // of a window
inline constexpr uint32_t kSumLanes = 32;

struct PoolingTensor {
  DataType type = DataType::kUnknown;  // kUnknown: the tensor is absent
  std::array<uint64_t, kPoolingRank> strides{};

  bool present() const { return type != DataType::kUnknown; }
};

struct PoolingShape {
  uint32_t batch = 1;
  uint32_t channels = 1;
  std::array<WindowAxis, kSpatialRank> axes{};

  uint64_t Windows() const {
    return uint64_t{batch} * channels * axes[0].windows * axes[1].windows * axes[2].windows;
  }
  uint64_t Inputs() const {
    return uint64_t{batch} * channels * axes[0].input * axes[1].input * axes[2].input;
  }
};

enum class PoolingFunction : uint32_t { kMax, kAverage, kLp, kQuantizedAverage };

struct PoolingProblem {
  static constexpr std::string_view kFamily = "pooling";

  PoolingFunction function = PoolingFunction::kMax;
  PoolingShape shape = {};
  PoolingTensor input = {};
  PoolingTensor output = {};
  PoolingTensor indices = {};    // kMax
  bool include_padding = false;  // in the number by which averages are divided
  uint32_t p = 2;                // kLp
  // kQuantizedAverage: one for all channels (stride 0) or one per channel. Inputs 1 to 4 of the operator.
  enum Parameter { kInputScale, kInputZeroPoint, kOutputScale, kOutputZeroPoint, kParameters };
  std::array<uint64_t, kParameters> parameter_strides{};
  std::array<bool, kParameters> has_parameter{};
};

Exactness PoolingBound(const PoolingProblem& problem);

// The gradient of an average or of a maximum. For each element of the output gradient, starting at +0, the
// windows that have a tap there are added in row-major order.
struct PoolingGradProblem {
  static constexpr std::string_view kFamily = "pooling_grad";

  PoolingShape shape = {};
  PoolingTensor input = {};            // kUnknown: an average
  PoolingTensor input_gradient = {};   // of the windows
  PoolingTensor output_gradient = {};  // of the input
  bool include_padding = false;

  bool is_max() const { return input.present(); }
};

// Output: zeros, except for elements of the input at the positions in the logical output that indices give.
// The latest in row-major order wins; positions out of range are dropped.
struct MaxUnpoolingProblem {
  static constexpr std::string_view kFamily = "max_unpooling";

  TensorDesc input;
  TensorDesc indices;
  TensorDesc output;
  ElementProblem copy;  // from a packed tensor to the output
};

// The divisor of a window's sum in one dimension of an average.
constexpr uint32_t DivisorTaps(const WindowAxis& axis, uint32_t window, bool include_padding) {
  return include_padding ? TapsWithPadding(axis, window) : ValidTaps(axis, window).count();
}

std::span<const Operator> PoolingOperators();
std::span<const OperatorType> PoolingOperatorTypes();

CreateFunction<PoolingProblem> CreatePoolingReference;
CreateFunction<PoolingGradProblem> CreatePoolingGradReference;
CreateFunction<MaxUnpoolingProblem> CreateMaxUnpoolingReference;

}  // namespace anydml
