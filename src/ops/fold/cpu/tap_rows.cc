// Row by row along the last dimension, where neighbouring windows have neighbouring taps.
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/dispatch.h"
#include "base/half.h"
#include "kernel/scratch_layout.h"
#include "ops/common/nest_parts.h"
#include "ops/fold/problem.h"

namespace anydml {
namespace {

using Coordinates = std::array<uint32_t, kMaxFoldRank>;

// The next coordinate in row-major order; false after the last one.
template <typename SizeOf>
bool Advance(Coordinates* at, uint32_t rank, SizeOf&& size_of) {
  for (uint32_t d = rank; d-- > 0;) {
    if (++(*at)[d] < size_of(d)) return true;
    (*at)[d] = 0;
  }
  return false;
}

template <typename SizeOf>
Coordinates CoordinatesOf(uint64_t number, uint32_t rank, SizeOf&& size_of) {
  Coordinates at{};
  for (uint32_t d = rank; d-- > 0;) {
    at[d] = static_cast<uint32_t>(number % size_of(d));
    number /= size_of(d);
  }
  return at;
}

template <typename T>
void CopyRun(const T* from, uint64_t from_stride, T* to, uint64_t to_stride, uint32_t count) {
  if (from_stride == 1 && to_stride == 1) {
    std::memcpy(to, from, count * sizeof(T));
  } else if (to_stride == 1) {
    for (uint32_t i = 0; i < count; ++i) to[i] = from[i * from_stride];
  } else {
    for (uint32_t i = 0; i < count; ++i) to[i * to_stride] = from[i * from_stride];
  }
}

template <typename T>
void ZeroRun(T* to, uint64_t stride, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) to[i * stride] = 0;
}

template <typename Number, typename T>
void AddRun(const T* from, uint64_t from_stride, Number* to, uint64_t to_stride, uint32_t count) {
  const auto number = [](T x) {
    if constexpr (std::is_same_v<T, Half>) {
      return ToFloat(x);
    } else {
      return static_cast<Number>(x);
    }
  };
  if (from_stride == 1 && to_stride == 1) {
    for (uint32_t i = 0; i < count; ++i) to[i] = static_cast<Number>(to[i] + number(from[i]));
  } else {
    for (uint32_t i = 0; i < count; ++i) {
      Number& sum = to[i * to_stride];
      sum = static_cast<Number>(sum + number(from[i * from_stride]));
    }
  }
}

template <typename T, typename Number>
T Rounded(Number sum) {
  if constexpr (std::is_floating_point_v<Number>) {
    // NOLINTNEXTLINE(misc-redundant-expression): only NaN differs from itself
    if (sum != sum) sum = std::numeric_limits<Number>::quiet_NaN();
  }
  if constexpr (std::is_same_v<T, Half>) {
    return ToHalf(sum);
  } else {
    return static_cast<T>(sum);
  }
}

class FoldRows final : public Kernel {
 public:
  FoldRows(const FoldProblem& problem, const LowerContext& context)
      : p_(problem), last_(problem.axes[problem.rank - 1]), outer_(problem.rank - 1) {
    const uint64_t columns = uint64_t{p_.batch} * p_.channels * p_.Taps() * p_.Windows();
    const uint64_t bytes = (columns + p_.ImageElements()) * BitSize(p_.type) / 8;
    units_ = p_.unfold ? columns / p_.Windows() : p_.ImageElements() / last_.input;
    parts_ = static_cast<uint32_t>(std::min<uint64_t>(units_, PartsForBytes(bytes, context.threads)));
    if (!p_.unfold) sums_ = scratch_.Add("sums", parts_ * RowBytes());
  }

  Status Run(const KernelArguments& arguments) const override {
    ParallelFor(arguments.executor, parts_, [&](uint32_t part) {
      const uint64_t begin = PartBegin(units_, part, parts_), end = PartBegin(units_, part + 1, parts_);
      if (p_.unfold) {
        DispatchByWidth(p_.type, [&]<typename T>() {
          for (uint64_t unit = begin; unit < end; ++unit) UnfoldRow<T>(arguments, unit);
        });
        return;
      }
      std::byte* const sums = sums_.In(arguments.temporary).data + part * RowBytes();
      const auto fold = [&]<typename T, typename Number>() {
        for (uint64_t unit = begin; unit < end; ++unit) {
          FoldRow<T>(arguments, unit, reinterpret_cast<Number*>(sums));
        }
      };
      switch (p_.type) {
        case DataType::kFloat16:
          return fold.template operator()<Half, float>();
        case DataType::kFloat32:
          return fold.template operator()<float, float>();
        case DataType::kFloat64:
          return fold.template operator()<double, double>();
        default:
          DispatchByWidth(p_.type, [&]<typename T>() { fold.template operator()<T, T>(); });
      }
    });
    return {};
  }

  uint64_t temporary_bytes() const override { return scratch_.bytes(); }

 private:
  uint64_t RowBytes() const { return SaturatingAlignUp(uint64_t{last_.input} * sizeof(double), 64); }

  // A tap of a channel: a row of the columns, which has an element per window.
  template <typename T>
  void UnfoldRow(const KernelArguments& arguments, uint64_t unit) const {
    const uint64_t taps = p_.Taps(), rows = p_.channels * taps, n = unit / rows, row = unit % rows;
    const Coordinates tap = CoordinatesOf(row % taps, p_.rank, [&](uint32_t d) { return p_.axes[d].size; });
    const T* const image = reinterpret_cast<const T*>(arguments.inputs[0].data) + n * p_.image_strides[0] +
                           row / taps * p_.image_strides[1];
    const uint64_t step = p_.column_strides[2];
    T* to = reinterpret_cast<T*>(arguments.outputs[0].data) + n * p_.column_strides[0] +
            row * p_.column_strides[1];
    const WindowRange valid = WindowsWithValidTap(last_, tap[outer_]);
    const uint64_t image_stride = p_.image_strides[2 + outer_];
    Coordinates window{};
    do {
      uint64_t offset = 0;
      bool in_image = valid.begin < valid.end;
      for (uint32_t d = 0; d < outer_ && in_image; ++d) {
        const int64_t place = PlaceOf(p_.axes[d], window[d], tap[d]);
        in_image = place >= 0 && place < p_.axes[d].input;
        offset += static_cast<uint64_t>(place) * p_.image_strides[2 + d];
      }
      if (in_image) {
        const auto place = static_cast<uint64_t>(PlaceOf(last_, valid.begin, tap[outer_]));
        ZeroRun(to, step, valid.begin);
        CopyRun(image + offset + place * image_stride, last_.stride * image_stride, to + valid.begin * step,
                step, valid.count());
        ZeroRun(to + valid.end * step, step, last_.windows - valid.end);
      } else {
        ZeroRun(to, step, last_.windows);
      }
      to += last_.windows * step;
    } while (Advance(&window, outer_, [&](uint32_t d) { return p_.axes[d].windows; }));
  }

  // A row of the image.
  template <typename T, typename Number>
  void FoldRow(const KernelArguments& arguments, uint64_t unit, Number* sums) const {
    const Coordinates place = CoordinatesOf(unit, outer_, [&](uint32_t d) { return p_.axes[d].input; });
    for (uint32_t d = 0; d < outer_; ++d) unit /= p_.axes[d].input;
    const uint64_t n = unit / p_.channels, c = unit % p_.channels;
    std::fill_n(sums, last_.input, Number{0});
    const T* column = reinterpret_cast<const T*>(arguments.inputs[0].data) + n * p_.column_strides[0] +
                      c * p_.Taps() * p_.column_strides[1];
    Coordinates tap{};
    do {
      uint64_t window = 0;  // its index in row-major order
      bool exists = true;
      for (uint32_t d = 0; d < outer_ && exists; ++d) {
        const uint32_t found = WindowWithTapAt(p_.axes[d], tap[d], place[d]);
        exists = found < p_.axes[d].windows;
        window = window * p_.axes[d].windows + found;
      }
      if (exists) AddTaps(column + window * last_.windows * p_.column_strides[2], sums);
      column += last_.size * p_.column_strides[1];
    } while (Advance(&tap, outer_, [&](uint32_t d) { return p_.axes[d].size; }));
    uint64_t offset = n * p_.image_strides[0] + c * p_.image_strides[1];
    for (uint32_t d = 0; d < outer_; ++d) offset += place[d] * p_.image_strides[2 + d];
    T* const to = reinterpret_cast<T*>(arguments.outputs[0].data) + offset;
    for (uint32_t i = 0; i < last_.input; ++i) to[i * p_.image_strides[2 + outer_]] = Rounded<T>(sums[i]);
  }

  // All taps along the last dimension.
  template <typename T, typename Number>
  void AddTaps(const T* column, Number* sums) const {
    for (uint32_t k = 0; k < last_.size; ++k, column += p_.column_strides[1]) {
      const WindowRange valid = WindowsWithValidTap(last_, k);
      if (valid.begin >= valid.end) continue;
      AddRun(column + valid.begin * p_.column_strides[2], p_.column_strides[2],
             sums + PlaceOf(last_, valid.begin, k), last_.stride, valid.count());
    }
  }

  FoldProblem p_;
  WindowAxis last_;
  uint32_t outer_;  // dimensions before the last one
  uint64_t units_;
  uint32_t parts_;
  ScratchLayout scratch_;
  ScratchLayout::Piece sums_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateFoldRows(const FoldProblem& problem, const LowerContext& context,
                                             std::string*) {
  return std::make_unique<FoldRows>(problem, context);
}

}  // namespace anydml
