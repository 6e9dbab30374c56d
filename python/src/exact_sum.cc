#include "exact_sum.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace anydml::python {
namespace {

// A number is a signed mantissa of 24 bits times 2^(shift - 149), with a shift of 0 to 253. Bin b takes those
// with shifts of 16 * b and up, in units of 2^(16 * b - 149): 40 bits, so that 2^22 of them fit.
constexpr uint32_t kBinBits = 4, kBins = 16;
constexpr size_t kRun = size_t{1} << 22, kShort = 64;

struct Bins {
  int64_t sums[kBins] = {};
};

void AddNumber(float number, Bins* bins, float* special) {
  const auto bits = std::bit_cast<uint32_t>(number);
  const uint32_t exponent = (bits >> 23) & 0xFF;
  if (exponent == 0xFF) {
    *special += number;
    return;
  }
  const uint32_t is_normal = exponent != 0 ? 1 : 0;
  const uint32_t shift = exponent - is_normal;
  const auto mantissa = static_cast<int64_t>((bits & 0x7FFFFF) | (is_normal << 23));
  const int64_t sign = -static_cast<int64_t>(bits >> 31);
  bins->sums[shift >> kBinBits] += ((mantissa ^ sign) - sign) * (int64_t{1} << (shift & (kBins - 1)));
}

void AddBin(int64_t sum, uint32_t bin, std::span<int64_t> digits) {
  constexpr int64_t kMask = (int64_t{1} << kExactSumDigitBits) - 1;
  const uint32_t bit = bin << kBinBits;
  __extension__ using Wide = __int128;
  Wide rest = static_cast<Wide>(sum) * (Wide{1} << (bit % kExactSumDigitBits));
  size_t digit = bit / kExactSumDigitBits;
  for (; rest > kMask || rest < -kMask; ++digit) {
    digits[digit] += static_cast<int64_t>(rest & kMask);
    rest >>= kExactSumDigitBits;
  }
  digits[digit] += static_cast<int64_t>(rest);
}

// Neighbours often fall in the same bin: with one set of bins, each addition would wait for the previous one.
template <uint32_t kLanes>
void AddRun(std::span<const float> run, std::span<int64_t> digits, float* special) {
  Bins lanes[kLanes];
  size_t i = 0;
  for (; i + kLanes <= run.size(); i += kLanes) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) AddNumber(run[i + lane], &lanes[lane], special);
  }
  for (; i < run.size(); ++i) AddNumber(run[i], &lanes[0], special);
  for (uint32_t bin = 0; bin < kBins; ++bin) {
    int64_t sum = 0;
    for (const Bins& lane : lanes) sum += lane.sums[bin];
    if (sum != 0) AddBin(sum, bin, digits);
  }
}

}  // namespace

float AddExactly(std::span<const float> numbers, std::span<int64_t> digits) {
  float special = 0;
  if (numbers.size() < kShort) {
    AddRun<1>(numbers, digits, &special);
    return special;
  }
  while (!numbers.empty()) {
    const std::span<const float> run = numbers.first(std::min(kRun, numbers.size()));
    numbers = numbers.subspan(run.size());
    AddRun<4>(run, digits, &special);
  }
  return special;
}

}  // namespace anydml::python
