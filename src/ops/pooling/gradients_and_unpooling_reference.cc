// The references of gradients and of MAX_UNPOOLING.
#include <cmath>
#include <limits>

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

template <typename T>
float LoadNumber(const std::byte* data, uint64_t element) {
  if constexpr (std::is_same_v<T, Half>) {
    return ToFloat(Load<Half>(data, element));
  } else {
    return Load<float>(data, element);
  }
}

template <typename T>
class Gradient {
 public:
  Gradient(const PoolingGradProblem& problem, const KernelArguments& arguments)
      : p_(problem),
        input_(problem.is_max() ? arguments.inputs[0].data : nullptr),
        windows_(arguments.inputs[problem.is_max() ? 1 : 0].data),
        output_(arguments.outputs[0].data) {}

  void Run() const {
    const auto& axes = p_.shape.axes;
    const Dimensions sizes = {p_.shape.batch, p_.shape.channels, axes[0].input, axes[1].input, axes[2].input};
    ForEachCoordinate(sizes, kPoolingRank, [&](const Dimensions& at) {
      const Coordinates place = {at[0], at[1], at[2], at[3], at[4]};
      float sum = 0;
      for (uint32_t i = FirstWindow(0, place); i < axes[0].windows && Begins(0, i, place); ++i) {
        for (uint32_t j = FirstWindow(1, place); j < axes[1].windows && Begins(1, j, place); ++j) {
          for (uint32_t k = FirstWindow(2, place); k < axes[2].windows && Begins(2, k, place); ++k) {
            const Coordinates window = {at[0], at[1], i, j, k};
            if (HasTap(window, place)) sum += Share(window, place);
          }
        }
      }
      if (std::isnan(sum)) sum = std::numeric_limits<float>::quiet_NaN();
      if constexpr (std::is_same_v<T, Half>) {
        Store(output_, OffsetOf(p_.output_gradient, place), ToHalf(sum));
      } else {
        Store(output_, OffsetOf(p_.output_gradient, place), sum);
      }
    });
  }

 private:
  // Earlier windows end before the place.
  uint32_t FirstWindow(uint32_t d, const Coordinates& place) const {
    const WindowAxis& axis = p_.shape.axes[d];
    const uint64_t at = uint64_t{place[2 + d]} + axis.start, reach = uint64_t{axis.size} * axis.dilation;
    return at < reach ? 0 : static_cast<uint32_t>((at - reach) / axis.stride);
  }
  bool Begins(uint32_t d, uint32_t window, const Coordinates& place) const {
    const WindowAxis& axis = p_.shape.axes[d];
    return uint64_t{window} * axis.stride <= uint64_t{place[2 + d]} + axis.start;
  }
  bool HasTap(const Coordinates& window, const Coordinates& place) const {
    for (uint32_t d = 0; d < kSpatialRank; ++d) {
      const WindowAxis& axis = p_.shape.axes[d];
      const uint64_t begin = uint64_t{window[2 + d]} * axis.stride, at = uint64_t{place[2 + d]} + axis.start;
      if (at < begin || (at - begin) % axis.dilation != 0 || (at - begin) / axis.dilation >= axis.size) {
        return false;
      }
    }
    return true;
  }

  // What a window contributes to one of its places.
  float Share(const Coordinates& window, const Coordinates& place) const {
    const float gradient = LoadNumber<T>(windows_, OffsetOf(p_.input_gradient, window));
    if (p_.is_max()) return Maximum(window) == place ? gradient : 0;
    float taps = 1;
    for (uint32_t d = 0; d < kSpatialRank; ++d) {
      const WindowAxis& axis = p_.shape.axes[d];
      const int64_t begin = int64_t{window[2 + d]} * axis.stride - axis.start;
      uint32_t count = 0;
      for (uint32_t k = 0; k < axis.size; ++k) {
        const int64_t at = begin + int64_t{k} * axis.dilation;
        const bool valid = at >= 0 && at < axis.input;
        count += valid || (p_.include_padding && at < int64_t{axis.input} + axis.end) ? 1 : 0;
      }
      taps *= static_cast<float>(count);
    }
    return gradient / taps;
  }

  Coordinates Maximum(const Coordinates& window) const {
    const auto& axes = p_.shape.axes;
    Coordinates best{};
    float best_value = 0;
    bool any = false;
    const Dimensions taps = {axes[0].size, axes[1].size, axes[2].size};
    ForEachCoordinate(taps, kSpatialRank, [&](const Dimensions& tap) {
      Coordinates place = {window[0], window[1]};
      for (uint32_t d = 0; d < kSpatialRank; ++d) {
        const int64_t at =
            int64_t{window[2 + d]} * axes[d].stride + int64_t{tap[d]} * axes[d].dilation - axes[d].start;
        if (at < 0 || at >= axes[d].input) return;
        place[2 + d] = static_cast<uint32_t>(at);
      }
      const float x = LoadNumber<T>(input_, OffsetOf(p_.input, place));
      const bool positive_zero = x == 0 && best_value == 0 && !std::signbit(x) && std::signbit(best_value);
      const bool greater = std::isnan(x) ? !std::isnan(best_value) : x > best_value || positive_zero;
      if (any && !greater) return;
      any = true;
      best = place;
      best_value = x;
    });
    return best;
  }

  const PoolingGradProblem& p_;
  const std::byte* input_;
  const std::byte* windows_;
  std::byte* output_;
};

class PoolingGradReference final : public Kernel {
 public:
  explicit PoolingGradReference(const PoolingGradProblem& problem) : problem_(problem) {}

  Status Run(const KernelArguments& arguments) const override {
    if (problem_.output_gradient.type == DataType::kFloat16) {
      Gradient<Half>(problem_, arguments).Run();
    } else {
      Gradient<float>(problem_, arguments).Run();
    }
    return {};
  }

 private:
  PoolingGradProblem problem_;
};

class MaxUnpoolingReference final : public Kernel {
 public:
  explicit MaxUnpoolingReference(const MaxUnpoolingProblem& problem) : p_(problem) {}

  Status Run(const KernelArguments& arguments) const override {
    DispatchByWidth(p_.output.type, [&]<typename T>() { Unpool<T>(arguments); });
    return {};
  }

 private:
  template <typename T>
  void Unpool(const KernelArguments& arguments) const {
    const uint64_t elements = ElementCount(p_.output);
    std::byte* const output = arguments.outputs[0].data;
    ForEachCoordinate(p_.output.sizes, p_.output.rank,
                      [&](const Dimensions& at) { Store<T>(output, ElementOffset(p_.output, at), 0); });
    ForEachCoordinate(p_.input.sizes, p_.input.rank, [&](const Dimensions& at) {
      const std::byte* const indices = arguments.inputs[1].data;
      const uint64_t offset = ElementOffset(p_.indices, at);
      const uint64_t index = p_.indices.type == DataType::kUInt64 ? Load<uint64_t>(indices, offset)
                                                                  : Load<uint32_t>(indices, offset);
      if (index >= elements) return;
      Dimensions target{};
      uint64_t rest = index;
      for (uint32_t d = p_.output.rank; d-- > 0;) {
        target[d] = static_cast<uint32_t>(rest % p_.output.sizes[d]);
        rest /= p_.output.sizes[d];
      }
      Store<T>(output, ElementOffset(p_.output, target),
               Load<T>(arguments.inputs[0].data, ElementOffset(p_.input, at)));
    });
  }

  MaxUnpoolingProblem p_;
};

}  // namespace

std::unique_ptr<const Kernel> CreatePoolingGradReference(const PoolingGradProblem& problem,
                                                         const LowerContext&, std::string*) {
  return std::make_unique<PoolingGradReference>(problem);
}

std::unique_ptr<const Kernel> CreateMaxUnpoolingReference(const MaxUnpoolingProblem& problem,
                                                          const LowerContext&, std::string*) {
  return std::make_unique<MaxUnpoolingReference>(problem);
}

}  // namespace anydml
