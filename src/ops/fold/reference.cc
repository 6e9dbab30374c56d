#include <cmath>
#include <limits>

#include "base/dispatch.h"
#include "base/half.h"
#include "ops/common/coordinates.h"
#include "ops/fold/problem.h"

namespace anydml {
namespace {

// The row-major index of a tap or window, from its coordinates.
uint64_t NumberOf(const Dimensions& at, const Dimensions& sizes, uint32_t rank) {
  uint64_t number = 0;
  for (uint32_t d = 0; d < rank; ++d) number = number * sizes[d] + at[d];
  return number;
}

class FoldReference final : public Kernel {
 public:
  explicit FoldReference(const FoldProblem& problem) : p_(problem) {
    for (uint32_t d = 0; d < p_.rank; ++d) {
      taps_[d] = p_.axes[d].size;
      windows_[d] = p_.axes[d].windows;
      places_[d] = p_.axes[d].input;
    }
  }

  Status Run(const KernelArguments& arguments) const override {
    const std::byte* const input = arguments.inputs[0].data;
    std::byte* const output = arguments.outputs[0].data;
    if (p_.unfold) {
      DispatchByWidth(p_.type, [&]<typename T>() { Unfold<T>(input, output); });
    } else if (p_.type == DataType::kFloat16) {
      Fold<Half, float>(input, output);
    } else if (p_.type == DataType::kFloat32) {
      Fold<float, float>(input, output);
    } else if (p_.type == DataType::kFloat64) {
      Fold<double, double>(input, output);
    } else {
      DispatchByWidth(p_.type, [&]<typename T>() { Fold<T, uint64_t>(input, output); });
    }
    return {};
  }

 private:
  uint64_t ColumnOffset(uint32_t n, uint32_t c, const Dimensions& tap, const Dimensions& window) const {
    const uint64_t row = c * p_.Taps() + NumberOf(tap, taps_, p_.rank);
    return n * p_.column_strides[0] + row * p_.column_strides[1] +
           NumberOf(window, windows_, p_.rank) * p_.column_strides[2];
  }
  uint64_t ImageOffset(uint32_t n, uint32_t c, const Dimensions& place) const {
    uint64_t offset = n * p_.image_strides[0] + c * p_.image_strides[1];
    for (uint32_t d = 0; d < p_.rank; ++d) offset += place[d] * p_.image_strides[2 + d];
    return offset;
  }

  template <typename Body>
  void ForEachChannel(Body&& body) const {
    for (uint32_t n = 0; n < p_.batch; ++n) {
      for (uint32_t c = 0; c < p_.channels; ++c) body(n, c);
    }
  }

  template <typename T>
  void Unfold(const std::byte* input, std::byte* output) const {
    ForEachChannel([&](uint32_t n, uint32_t c) {
      ForEachCoordinate(taps_, p_.rank, [&](const Dimensions& tap) {
        ForEachCoordinate(windows_, p_.rank, [&](const Dimensions& window) {
          bool valid = true;
          Dimensions place{};
          for (uint32_t d = 0; d < p_.rank; ++d) {
            const WindowAxis& axis = p_.axes[d];
            const uint64_t at = uint64_t{window[d]} * axis.stride + uint64_t{tap[d]} * axis.dilation;
            valid = valid && at >= axis.start && at - axis.start < axis.input;
            place[d] = static_cast<uint32_t>(at - axis.start);
          }
          const T element = valid ? Load<T>(input, ImageOffset(n, c, place)) : T{0};
          Store(output, ColumnOffset(n, c, tap, window), element);
        });
      });
    });
  }

  template <typename T, typename Number>
  void Fold(const std::byte* input, std::byte* output) const {
    ForEachChannel([&](uint32_t n, uint32_t c) {
      ForEachCoordinate(places_, p_.rank, [&](const Dimensions& place) {
        Number sum = 0;
        ForEachCoordinate(taps_, p_.rank, [&](const Dimensions& tap) {
          bool valid = true;
          Dimensions window{};
          for (uint32_t d = 0; d < p_.rank; ++d) {
            const WindowAxis& axis = p_.axes[d];
            const int64_t begin = int64_t{place[d]} + axis.start - int64_t{tap[d]} * axis.dilation;
            valid = valid && begin >= 0 && begin % axis.stride == 0 && begin / axis.stride < axis.windows;
            window[d] = static_cast<uint32_t>(begin / axis.stride);
          }
          if (!valid) return;
          const T element = Load<T>(input, ColumnOffset(n, c, tap, window));
          if constexpr (std::is_same_v<T, Half>) {
            sum += ToFloat(element);
          } else {
            sum += element;
          }
        });
        Store(output, ImageOffset(n, c, place), Rounded<T>(sum));
      });
    });
  }

  template <typename T, typename Number>
  static T Rounded(Number sum) {
    if constexpr (std::is_floating_point_v<Number>) {
      if (std::isnan(sum)) sum = std::numeric_limits<Number>::quiet_NaN();
    }
    if constexpr (std::is_same_v<T, Half>) {
      return ToHalf(sum);
    } else {
      return static_cast<T>(sum);
    }
  }

  FoldProblem p_;
  Dimensions taps_{}, windows_{}, places_{};
};

}  // namespace

std::unique_ptr<const Kernel> CreateFoldReference(const FoldProblem& problem, const LowerContext&,
                                                  std::string*) {
  return std::make_unique<FoldReference>(problem);
}

}  // namespace anydml
