// Sums of bytes over all steps, in place.
#include <algorithm>

#include "ops/common/transpose_tile.h"
#include "ops/integer_product/cpu/quads.h"

namespace anydml {
namespace {

using ByteLanes = Lanes<uint8_t>;
using ShortLanes = Lanes<uint16_t>;

constexpr uint64_t kMostOfShort = 256;  // whose sum fits into 16 bits
constexpr uint64_t kSumsTogether = 512;

// Adds 16 bytes, each with some bits flipped, to 16 sums.
struct ShortSums {
  ShortLanes::Vector low = {}, high = {};

  void Add(const uint8_t* from, ByteLanes::Vector flips) {
    const ByteLanes::Vector bytes = ByteLanes::Load(from) ^ flips, zero = {};
    low += reinterpret_cast<ShortLanes::Vector>(ByteLanes::Zip<false>(bytes, zero));
    high += reinterpret_cast<ShortLanes::Vector>(ByteLanes::Zip<true>(bytes, zero));
  }
};

uint32_t SumOfBytes(const uint8_t* row, uint64_t count, uint8_t flip) {
  const ByteLanes::Vector flips = ByteLanes::Vector{} + flip;
  uint32_t sum = 0;
  uint64_t i = 0;
  while (i + ByteLanes::kCount <= count) {
    ShortSums sums;
    const uint64_t end = std::min(count, i + kMostOfShort * ByteLanes::kCount);
    for (; i + ByteLanes::kCount <= end; i += ByteLanes::kCount) sums.Add(row + i, flips);
    for (uint64_t lane = 0; lane < ShortLanes::kCount; ++lane)
      sum += uint32_t{sums.low[lane]} + sums.high[lane];
  }
  for (; i < count; ++i) sum += row[i] ^ flip;
  return sum;
}

// For up to kSumsTogether columns; rows are `stride` apart.
void AddUpRows(const uint8_t* from, uint64_t stride, uint64_t rows, uint64_t count, uint8_t flip,
               uint32_t* to) {
  constexpr uint64_t kRows = 4;  // at a time
  const ByteLanes::Vector flips = ByteLanes::Vector{} + flip;
  const uint64_t whole = count / ByteLanes::kCount * ByteLanes::kCount;
  std::fill_n(to, count, 0u);
  for (uint64_t done = 0; done < rows; done += kMostOfShort) {
    const uint64_t end = std::min(rows, done + kMostOfShort);
    alignas(64) uint16_t shorts[kSumsTogether] = {};
    for (uint64_t r = done; r < end; r += kRows) {
      for (uint64_t j = 0; j < whole; j += ByteLanes::kCount) {
        ShortSums sums = {ShortLanes::Load(shorts + j), ShortLanes::Load(shorts + j + ShortLanes::kCount)};
        for (uint64_t i = r; i < std::min(end, r + kRows); ++i) sums.Add(from + i * stride + j, flips);
        ShortLanes::Store(sums.low, shorts + j);
        ShortLanes::Store(sums.high, shorts + j + ShortLanes::kCount);
      }
    }
    for (uint64_t j = 0; j < whole; ++j) to[j] += shorts[j];
    for (uint64_t r = done; r < end; ++r) {
      for (uint64_t j = whole; j < count; ++j) to[j] += from[r * stride + j] ^ flip;
    }
  }
}

}  // namespace

// Signed bytes are summed with an offset of 128.
void FilterQuads::AddUp(uint64_t first, uint64_t count, int32_t* sums) const {
  const uint64_t steps = shape_.Steps();
  for (uint64_t i = 0; i < count; ++i) {
    const auto* const row =
        reinterpret_cast<const uint8_t*>(data_) + (first + i) * shape_.filter.output_channel;
    const uint32_t sum = SumOfBytes(row, steps, flip_ ^ 0x80);
    sums[i] = static_cast<int32_t>(sum - static_cast<uint32_t>(128 * steps));
  }
}

void WindowQuads::AddUp(uint64_t first, uint64_t count, int32_t* sums) const {
  const uint64_t steps = shape_.Steps(), channel = shape_.input.channel;
  const uint8_t flip = kUnsignedColumns ? flip_ : flip_ ^ 0x80;
  const uint32_t above = kUnsignedColumns ? 0 : static_cast<uint32_t>(128 * steps);
  for (uint64_t done = 0; done < count; done += kSumsTogether) {
    const uint64_t some = std::min(kSumsTogether, count - done);
    auto* const to = reinterpret_cast<uint32_t*>(sums + done);
    AddUpRows(reinterpret_cast<const uint8_t*>(data_) + first + done, channel, steps, some, flip, to);
    for (uint64_t j = 0; j < some; ++j) to[j] -= above;
  }
}

}  // namespace anydml
