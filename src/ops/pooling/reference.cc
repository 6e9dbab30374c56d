#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/dispatch.h"
#include "base/half.h"
#include "ops/common/coordinates.h"
#include "ops/pooling/problem.h"

namespace anydml {
namespace {

using Coordinates = std::array<uint32_t, kPoolingRank>;

uint64_t OffsetOf(const PoolingTensor& tensor, const Coordinates& at) {
  uint64_t offset = 0;
  for (uint32_t d = 0; d < kPoolingRank; ++d) offset += at[d] * tensor.strides[d];
  return offset;
}

template <typename Body>
void ForEachWindow(const PoolingShape& shape, Body&& body) {
  const Dimensions sizes = {shape.batch, shape.channels, shape.axes[0].windows, shape.axes[1].windows,
                            shape.axes[2].windows};
  ForEachCoordinate(sizes, kPoolingRank, [&](const Dimensions& at) {
    body(Coordinates{at[0], at[1], at[2], at[3], at[4]});
  });
}

// Calls body(where) for the valid taps of window `at` in columns [begin, end), in row-major order. Windows
// may be much larger than the part of the input that they cover.
template <typename Body>
void ForEachTap(const PoolingShape& shape, const Coordinates& at, uint32_t begin, uint32_t end, Body&& body) {
  const auto& axes = shape.axes;
  const auto place = [&](uint32_t axis, uint32_t tap) {
    return static_cast<uint32_t>(PlaceOf(axes[axis], at[2 + axis], tap));
  };
  const WindowRange planes = ValidTaps(axes[0], at[2]), rows = ValidTaps(axes[1], at[3]),
                    columns = ValidTaps(axes[2], at[4]);
  for (uint32_t i = planes.begin; i < planes.end; ++i) {
    for (uint32_t j = rows.begin; j < rows.end; ++j) {
      for (uint32_t k = std::max(begin, columns.begin); k < std::min(end, columns.end); ++k) {
        body(Coordinates{at[0], at[1], place(0, i), place(1, j), place(2, k)});
      }
    }
  }
}

// ---- Maxima

template <typename T>
auto NumberOf(T x) {
  if constexpr (std::is_same_v<T, Half>) {
    return ToFloat(x);
  } else {
    return x;
  }
}

template <typename T>
bool IsGreater(T a, T b) {
  const auto x = NumberOf(a), y = NumberOf(b);
  if constexpr (std::is_floating_point_v<decltype(x)>) {
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && !std::isnan(y);
    if (x == 0 && y == 0) return std::signbit(y) && !std::signbit(x);
  }
  return x > y;
}

template <typename T>
T Lowest() {
  if constexpr (std::is_same_v<T, Half>) {
    return ToHalf(-std::numeric_limits<float>::infinity());
  } else if constexpr (std::is_floating_point_v<T>) {
    return -std::numeric_limits<T>::infinity();
  } else {
    return std::numeric_limits<T>::lowest();
  }
}

template <typename T>
void MaxPooling(const PoolingProblem& p, const KernelArguments& arguments) {
  const auto& axes = p.shape.axes;
  ForEachWindow(p.shape, [&](const Coordinates& at) {
    T best = Lowest<T>();
    bool any = false;
    uint64_t index = 0;
    ForEachTap(p.shape, at, 0, axes[2].size, [&](const Coordinates& where) {
      const T x = Load<T>(arguments.inputs[0].data, OffsetOf(p.input, where));
      if (any && !IsGreater(x, best)) return;
      any = true;
      best = x;
      index = uint64_t{where[0]} * p.shape.channels + where[1];
      for (uint32_t d = 0; d < kSpatialRank; ++d) index = index * axes[d].input + where[2 + d];
    });
    if (p.output.present()) Store(arguments.outputs[0].data, OffsetOf(p.output, at), best);
    if (p.indices.type == DataType::kUInt64) {
      Store<uint64_t>(arguments.outputs[1].data, OffsetOf(p.indices, at), index);
    } else if (p.indices.present()) {
      Store<uint32_t>(arguments.outputs[1].data, OffsetOf(p.indices, at), static_cast<uint32_t>(index));
    }
  });
}

// ---- Sums

float LoadNumber(DataType type, const std::byte* data, uint64_t element) {
  switch (type) {
    case DataType::kFloat16:
      return ToFloat(Load<Half>(data, element));
    case DataType::kInt8:
      return Load<int8_t>(data, element);
    case DataType::kUInt8:
      return Load<uint8_t>(data, element);
    default:
      return Load<float>(data, element);
  }
}

void StoreNumber(DataType type, std::byte* data, uint64_t element, float number) {
  if (std::isnan(number)) number = std::numeric_limits<float>::quiet_NaN();
  switch (type) {
    case DataType::kFloat16:
      return Store(data, element, ToHalf(number));
    case DataType::kInt8:
    case DataType::kUInt8:
      return Store(data, element, static_cast<uint8_t>(static_cast<int32_t>(number)));
    default:
      return Store(data, element, number);
  }
}

class SumPooling {
 public:
  SumPooling(const PoolingProblem& problem, const KernelArguments& arguments)
      : p_(problem), arguments_(arguments) {}

  void Run() {
    ForEachWindow(p_.shape, [&](const Coordinates& at) {
      uint64_t valid = 0;
      const float sum = Sum(at, &valid);
      StoreNumber(p_.output.type, arguments_.outputs[0].data, OffsetOf(p_.output, at),
                  Result(sum, valid, at));
    });
  }

 private:
  float Sum(const Coordinates& at, uint64_t* valid) const {
    float lanes[kSumLanes] = {};
    const uint32_t columns = p_.shape.axes[2].size;
    const WindowRange seen = ValidTaps(p_.shape.axes[2], at[4]);
    for (uint32_t k = seen.begin; k < seen.end; ++k) {
      float column = 0;
      ForEachTap(p_.shape, at, k, k + 1, [&](const Coordinates& where) {
        column += Term(where);
        ++*valid;
      });
      lanes[columns <= kColumnsInARow ? 0 : k % kSumLanes] += column;
    }
    for (uint32_t half = kSumLanes / 2; half > 0; half /= 2) {
      for (uint32_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    }
    return lanes[0];
  }

  float Parameter(PoolingProblem::Parameter which, DataType type, uint32_t channel) const {
    if (!p_.has_parameter[which]) return 0;
    return LoadNumber(type, arguments_.inputs[1 + which].data, channel * p_.parameter_strides[which]);
  }

  float Term(const Coordinates& where) const {
    const float x = LoadNumber(p_.input.type, arguments_.inputs[0].data, OffsetOf(p_.input, where));
    if (p_.function == PoolingFunction::kQuantizedAverage) {
      return x - Parameter(PoolingProblem::kInputZeroPoint, p_.input.type, where[1]);
    }
    if (p_.function == PoolingFunction::kAverage) return x;
    return static_cast<float>(std::pow(std::abs(double{x}), p_.p));
  }

  uint64_t TapsInPadding(const Coordinates& at) const {
    uint64_t taps = 1;
    for (uint32_t d = 0; d < kSpatialRank; ++d) taps *= TapsWithPadding(p_.shape.axes[d], at[2 + d]);
    return taps;
  }

  float Result(float sum, uint64_t valid, const Coordinates& at) const {
    if (p_.function == PoolingFunction::kLp) {
      if (p_.p == 1) return sum;
      return p_.p == 2 ? std::sqrt(sum) : static_cast<float>(std::pow(double{sum}, 1.0 / p_.p));
    }
    const auto taps = static_cast<float>(p_.include_padding ? TapsInPadding(at) : valid);
    if (p_.function == PoolingFunction::kAverage) return valid == 0 ? 0 : sum / taps;
    const uint32_t channel = at[1];
    const float scaled = sum * Parameter(PoolingProblem::kInputScale, DataType::kFloat32, channel);
    const float mean = valid == 0 ? 0 : scaled / taps;
    const float quotient = mean / Parameter(PoolingProblem::kOutputScale, DataType::kFloat32, channel);
    const float whole = std::isnan(quotient) ? 0 : std::nearbyint(quotient);
    const float zero_point = Parameter(PoolingProblem::kOutputZeroPoint, p_.output.type, channel);
    const float low = p_.output.type == DataType::kInt8 ? -128 : 0;
    return std::clamp(whole + zero_point, low, low + 255);
  }

  const PoolingProblem& p_;
  const KernelArguments& arguments_;
};

class PoolingReference final : public Kernel {
 public:
  explicit PoolingReference(const PoolingProblem& problem) : problem_(problem) {}

  Status Run(const KernelArguments& arguments) const override {
    if (problem_.function == PoolingFunction::kMax) {
      DispatchByType(problem_.input.type, [&]<typename T>() { MaxPooling<T>(problem_, arguments); });
    } else {
      SumPooling(problem_, arguments).Run();
    }
    return {};
  }

 private:
  PoolingProblem problem_;
};

}  // namespace

std::unique_ptr<const Kernel> CreatePoolingReference(const PoolingProblem& problem, const LowerContext&,
                                                     std::string*) {
  return std::make_unique<PoolingReference>(problem);
}

}  // namespace anydml
