#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/half.h"
#include "ops/common/coordinates.h"
#include "ops/resample/problem.h"

namespace anydml {
namespace {

struct Tap {
  uint32_t index;
  float weight;
};
using TapLists = std::vector<std::vector<Tap>>;

uint32_t Clamped(float whole, uint32_t size) {
  if (whole < 0) return 0;
  return whole >= 0x1p32f ? size - 1 : std::min(size - 1, static_cast<uint32_t>(whole));
}

std::vector<Tap> Triangle(const ResampleAxis& axis, float x) {
  std::vector<Tap> taps;
  float sum = 0;
  for (uint32_t i = 0; i < axis.from; ++i) {
    const float height = 1 - std::abs(static_cast<float>(i) - x) * axis.scale;
    if (!(height > 0)) continue;
    taps.push_back({i, height});
    sum += height;
  }
  if (taps.empty()) return {{Clamped(std::floor(x), axis.from), 1}};
  for (Tap& tap : taps) tap.weight = tap.weight / sum;
  return taps;
}

std::vector<Tap> TapsAt(const ResampleAxis& axis, uint32_t number) {
  const float x = (static_cast<float>(number) - axis.output_offset) / axis.scale - axis.input_offset;
  switch (axis.rule) {
    case ResampleRule::kSame:
      return {{std::min(number, axis.from - 1), 1}};
    case ResampleRule::kHalfUp:
      return {{Clamped(std::floor(x + 0.5f), axis.from), 1}};
    case ResampleRule::kFloor:
      return {{Clamped(std::floor(x), axis.from), 1}};
    case ResampleRule::kCeil:
      return {{Clamped(std::ceil(x), axis.from), 1}};
    case ResampleRule::kTriangle:
      return Triangle(axis, x);
    case ResampleRule::kLinear:
      break;
  }
  const uint32_t first = Clamped(std::floor(x), axis.from), second = Clamped(std::floor(x) + 1, axis.from);
  const float weight = x - std::floor(x);
  if (first == second || weight == 0) return {{first, 1}};
  return {{first, 1 - weight}, {second, weight}};
}

// What number `index` of the target takes.
std::vector<Tap> ListAt(const ResampleAxis& axis, bool gradient, uint32_t index) {
  if (!gradient) return TapsAt(axis, index);
  std::vector<Tap> takers;
  for (uint32_t number = 0; number < axis.to; ++number) {
    for (const Tap& tap : TapsAt(axis, number)) {
      if (tap.index == index) takers.push_back({number, tap.weight});
    }
  }
  return takers;
}

// For every number of the target; empty if that would take too much memory.
TapLists ListsOf(const ResampleAxis& axis, bool gradient) {
  constexpr uint64_t kMost = 1 << 16, kMostTaps = 1 << 26;
  if (axis.from > kMost || axis.to > kMost) return {};
  if (axis.rule == ResampleRule::kTriangle && uint64_t{axis.from} * axis.to > kMostTaps) return {};
  TapLists forward, backward(axis.from);
  for (uint32_t number = 0; number < axis.to; ++number) {
    forward.push_back(TapsAt(axis, number));
    for (const Tap& tap : forward.back()) backward[tap.index].push_back({number, tap.weight});
  }
  return gradient ? backward : forward;
}

float Canonical(float x) { return std::isnan(x) ? std::numeric_limits<float>::quiet_NaN() : x; }

class ResampleReference final : public Kernel {
 public:
  explicit ResampleReference(const ResampleProblem& problem) : problem_(problem) {
    for (uint32_t d = 0; d < problem.rank; ++d) {
      lists_.push_back(ListsOf(problem.axes[d], problem.gradient));
      sizes_[d] = problem.gradient ? problem.axes[d].from : problem.axes[d].to;
    }
  }

  Status Run(const KernelArguments& arguments) const override {
    const std::byte* const source = arguments.inputs[0].data;
    std::byte* const target = arguments.outputs[0].data;
    ForEachCoordinate(sizes_, problem_.rank, [&](const Dimensions& at) {
      uint64_t to = 0;
      for (uint32_t d = 0; d < problem_.rank; ++d) to += uint64_t{at[d]} * problem_.axes[d].target_stride;
      if (IsNearest(problem_)) {
        Move(source, Nearest(at), target, to);
      } else {
        Put(target, to, Sum(source, at, 0, 0));
      }
    });
    return {};
  }

 private:
  std::vector<Tap> TapsOf(uint32_t d, uint32_t index) const {
    return lists_[d].empty() ? ListAt(problem_.axes[d], problem_.gradient, index) : lists_[d][index];
  }

  uint64_t Nearest(const Dimensions& at) const {
    uint64_t from = 0;
    for (uint32_t d = 0; d < problem_.rank; ++d) {
      from += uint64_t{TapsOf(d, at[d])[0].index} * problem_.axes[d].source_stride;
    }
    return from;
  }

  void Move(const std::byte* source, uint64_t from, std::byte* target, uint64_t to) const {
    const size_t width = BitSize(problem_.type) / 8;
    std::memcpy(target + to * width, source + from * width, width);
  }

  // The sum over dimension `d` and later ones.
  float Sum(const std::byte* source, const Dimensions& at, uint32_t d, uint64_t offset) const {
    if (d == problem_.rank) return Get(source, offset);
    float sum = 0;
    bool first = true;
    for (const Tap& tap : TapsOf(d, at[d])) {
      const float inner =
          Sum(source, at, d + 1, offset + uint64_t{tap.index} * problem_.axes[d].source_stride);
      sum = first ? inner * tap.weight : sum + inner * tap.weight;
      first = false;
    }
    return sum;
  }

  float Get(const std::byte* source, uint64_t offset) const {
    switch (problem_.type) {
      case DataType::kFloat16:
        return ToFloat(Load<Half>(source, offset));
      case DataType::kInt8:
        return Load<int8_t>(source, offset);
      case DataType::kUInt8:
        return Load<uint8_t>(source, offset);
      default:
        return Load<float>(source, offset);
    }
  }

  void Put(std::byte* target, uint64_t offset, float value) const {
    switch (problem_.type) {
      case DataType::kFloat16:
        return Store(target, offset, ToHalf(Canonical(value)));
      case DataType::kInt8:
        return Store(target, offset, static_cast<int8_t>(std::clamp(std::nearbyint(value), -128.0f, 127.0f)));
      case DataType::kUInt8:
        return Store(target, offset, static_cast<uint8_t>(std::clamp(std::nearbyint(value), 0.0f, 255.0f)));
      default:
        return Store(target, offset, Canonical(value));
    }
  }

  ResampleProblem problem_;
  std::vector<TapLists> lists_;
  Dimensions sizes_{};  // of the target
};

}  // namespace

std::unique_ptr<const Kernel> CreateResampleReference(const ResampleProblem& problem, const LowerContext&,
                                                      std::string*) {
  return std::make_unique<ResampleReference>(problem);
}

}  // namespace anydml
