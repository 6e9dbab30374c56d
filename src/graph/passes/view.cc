#include "graph/passes/view.h"

#include <algorithm>
#include <limits>

namespace anydml {
namespace {

// An offset is written as a number whose digits count iterations of a tensor's loops: one unit of a digit is
// `here` bytes in one value and `there` bytes in the other.
struct Digit {
  int64_t size;
  int64_t here;
  int64_t there;
};

constexpr int64_t kLimit = std::numeric_limits<int64_t>::max() / 32;

bool Multiply(int64_t a, int64_t b, int64_t* product) {
  return !__builtin_mul_overflow(a, b, product) && *product <= kLimit && *product >= -kLimit;
}

// Largest first; empty if a smaller digit would carry into a larger one. Digits that carry alike in both
// values are joined.
std::optional<std::vector<Digit>> DigitsOf(const Places& here, const Places& there) {
  std::vector<Digit> digits;
  for (size_t i = 0; i < here.loops.size(); ++i) {
    if (here.loops[i].size == 1) continue;
    if (here.loops[i].stride <= 0) return std::nullopt;
    digits.push_back({static_cast<int64_t>(here.loops[i].size), here.loops[i].stride, there.loops[i].stride});
  }
  if (here.element_bytes > 1) digits.push_back({static_cast<int64_t>(here.element_bytes), 1, 1});
  std::stable_sort(digits.begin(), digits.end(),
                   [](const Digit& a, const Digit& b) { return a.here > b.here; });
  std::vector<Digit> merged;
  for (const Digit& digit : digits) {
    int64_t span_here, span_there;
    if (!Multiply(digit.size, digit.here, &span_here) || !Multiply(digit.size, digit.there, &span_there)) {
      return std::nullopt;
    }
    if (merged.empty()) {
      merged.push_back(digit);
      continue;
    }
    Digit& last = merged.back();
    if (last.here < span_here) return std::nullopt;
    if (last.here == span_here && last.there == span_there) {
      last = {last.size * digit.size, digit.here, digit.there};
    } else {
      merged.push_back(digit);
    }
  }
  return merged;
}

// Translates offsets from one value to the other, as long as no digit of their sum overflows.
class Translation {
 public:
  explicit Translation(std::vector<Digit> digits) : digits_(std::move(digits)), reached_(digits_.size()) {}

  // The translated offset of a step that is added up to `times` times.
  std::optional<int64_t> Offset(int64_t offset, uint64_t times) {
    if (offset < 0) return std::nullopt;
    int64_t result = 0;
    for (size_t i = 0; i < digits_.size(); ++i) {
      const Digit& digit = digits_[i];
      const int64_t count = offset / digit.here;
      offset %= digit.here;
      if (count == 0) continue;
      const int64_t room = (digit.size - 1 - reached_[i]) / count;
      if (times > static_cast<uint64_t>(room)) return std::nullopt;
      reached_[i] += count * static_cast<int64_t>(times);
      result += count * digit.there;
    }
    if (offset != 0) return std::nullopt;
    return result;
  }

 private:
  std::vector<Digit> digits_;
  std::vector<int64_t> reached_;
};

}  // namespace

bool IsPacked(const TensorDesc& tensor) {
  uint64_t expected = 1;
  for (uint32_t d = tensor.rank; d-- > 0; expected *= tensor.sizes[d]) {
    if (tensor.sizes[d] > 1 && tensor.strides[d] != expected) return false;
  }
  return true;
}

Places PlacesOf(const TensorDesc& tensor, uint64_t offset) {
  Places places;
  places.offset = static_cast<int64_t>(offset);
  places.element_bytes = BitSize(tensor.type) / 8;
  for (uint32_t d = 0; d < tensor.rank; ++d) {
    places.loops.push_back({tensor.sizes[d], static_cast<int64_t>(tensor.strides[d] * places.element_bytes)});
  }
  return places;
}

Places PlacesOf(const ElementProblem& problem, const ElementOperand& operand, uint64_t offset) {
  Places places;
  places.offset = static_cast<int64_t>(offset);
  places.element_bytes = BitSize(operand.type) / 8;
  for (uint32_t d = 0; d < problem.rank; ++d) {
    places.loops.push_back(
        {problem.sizes[d], static_cast<int64_t>(operand.strides[d] * places.element_bytes)});
  }
  return places;
}

bool SetPlaces(const Places& places, TensorDesc* tensor, uint64_t* offset) {
  const auto bytes = static_cast<int64_t>(BitSize(tensor->type) / 8);
  if (bytes == 0 || places.offset < 0 || places.offset % bytes != 0) return false;
  for (uint32_t d = 0; d < tensor->rank; ++d) {
    if (places.loops[d].size == 1) continue;
    const int64_t stride = places.loops[d].stride;
    if (stride < 0 || stride % bytes != 0 || stride / bytes > std::numeric_limits<uint32_t>::max()) {
      return false;
    }
    tensor->strides[d] = static_cast<uint32_t>(stride / bytes);
  }
  tensor->total_bytes = MinimumTotalBytes(*tensor);
  tensor->alignment = 0;
  *offset = static_cast<uint64_t>(places.offset);
  return true;
}

bool SetPlaces(const Places& places, ElementOperand* operand, uint64_t* offset) {
  const auto bytes = static_cast<int64_t>(BitSize(operand->type) / 8);
  if (bytes == 0 || places.offset < 0 || places.offset % bytes != 0) return false;
  for (size_t d = 0; d < places.loops.size(); ++d) {
    if (places.loops[d].size == 1) continue;
    const int64_t stride = places.loops[d].stride;
    if (stride < 0 || stride % bytes != 0) return false;
    operand->strides[d] = static_cast<uint64_t>(stride / bytes);
  }
  *offset = static_cast<uint64_t>(places.offset);
  return true;
}

std::optional<Places> Transfer(const Places& here, const Places& there, const Places& user) {
  if (here.element_bytes == 0 || user.element_bytes == 0) return std::nullopt;
  auto digits = DigitsOf(here, there);
  if (!digits.has_value()) return std::nullopt;
  Translation translation(*std::move(digits));
  const auto start = translation.Offset(user.offset - here.offset, 1);
  if (!start.has_value()) return std::nullopt;
  Places result = user;
  result.offset = there.offset + *start;
  for (Places::Loop& loop : result.loops) {
    if (loop.size == 1) continue;
    const auto stride = translation.Offset(loop.stride, loop.size - 1);
    if (!stride.has_value()) return std::nullopt;
    loop.stride = *stride;
  }
  // the bytes of an element stay together
  if (user.element_bytes > 1 && translation.Offset(1, user.element_bytes - 1) != 1) return std::nullopt;
  return result;
}

}  // namespace anydml
