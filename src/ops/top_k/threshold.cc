// Packed sequences: a threshold that at least K elements are likely (or certain) to
// reach is found first; then one pass at the speed of memory collects what reaches it.
#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "base/status.h"
#include "ops/top_k/row_scan.h"
#include "ops/top_k/typed_kernel.h"

namespace anydml {
namespace {

// Up to here a sequence is looked at twice: the second time it comes from the L1 cache.
constexpr uint32_t kTwoPassElements = 8192;

// The K-th best of G groups' best elements is a bound that K elements reach. With G of
// 3 K or more it is tight: hardly more elements reach it.
constexpr uint32_t kGroupsPerPlace = 3;

constexpr uint32_t kMaxSample = 4096;

// From here on the candidates are sorted by radix. The place of the switch is a guess.
constexpr uint64_t kRadixElements = 4096;

// Places for candidates: twice K, so that throwing the worse half away when they are
// full costs little per element, and what one step of ScanRow may add.
uint64_t Places(uint32_t k) { return 2 * uint64_t{k} + 2 * kScanSlack; }

uint32_t SampleSize(uint32_t n) {
  const auto size = static_cast<uint32_t>(2 * std::sqrt(static_cast<double>(n)));
  return std::min(size, kMaxSample);
}

// A key that slightly more than K elements are expected to reach, from elements at equal
// distances: neighbours would tell less (and mislead in a sorted sequence).
template <typename T>
uint32_t SampledThreshold(const Sequence<T>& sequence, uint32_t n, uint32_t k, uint32_t* sample) {
  const uint32_t size = SampleSize(n);
  const uint32_t step = n / size;
  for (uint32_t i = 0; i < size; ++i) sample[i] = sequence.KeyAt(i * step);
  // Three standard deviations beyond the expected rank; too few hits cost a second scan.
  const double expected = static_cast<double>(k) * size / n;
  const auto rank = static_cast<uint32_t>(expected + 3 * std::sqrt(expected) + 3);
  if (rank >= size) return 0;
  std::nth_element(sample, sample + rank, sample + size, std::greater<>());
  return sample[rank];
}

// A key that K elements certainly reach; false when there are too few groups.
template <typename T>
bool GroupThreshold(const Sequence<T>& sequence, uint32_t n, uint32_t k, uint32_t* threshold) {
  if (n > kTwoPassElements || k * kGroupsPerPlace > kMaxGroups) return false;
  uint32_t bests[kMaxGroups];
  const uint32_t groups = GroupBests<T>(sequence.data, n, sequence.flip == 0, bests);
  if (k * kGroupsPerPlace > groups) return false;
  std::nth_element(bests, bests + (k - 1), bests + groups, std::greater<>());
  *threshold = bests[k - 1];
  return true;
}

// Best first by key; candidates with equal keys keep their order.
void RadixSort(NarrowCandidate* candidates, uint64_t count, NarrowCandidate* other) {
  constexpr int kBits = 11;
  constexpr uint32_t kDigits = 1u << kBits;
  constexpr int kPasses = 3;
  uint32_t offsets[kPasses][kDigits] = {};
  const auto digit = [](NarrowCandidate candidate, int pass) {
    return (~candidate.key() >> (pass * kBits)) & (kDigits - 1);
  };
  for (uint64_t i = 0; i < count; ++i) {
    for (int pass = 0; pass < kPasses; ++pass) ++offsets[pass][digit(candidates[i], pass)];
  }
  NarrowCandidate* from = candidates;
  NarrowCandidate* to = other;
  for (int pass = 0; pass < kPasses; ++pass) {
    uint32_t sum = 0;
    for (uint32_t& offset : offsets[pass]) sum += std::exchange(offset, sum);
    for (uint64_t i = 0; i < count; ++i) to[offsets[pass][digit(from[i], pass)]++] = from[i];
    std::swap(from, to);
  }
  static_assert(kPasses % 2 == 1, "the result lies in `other`");
}

struct ThresholdSelect {
  static uint64_t Candidates(const TopKProblem& problem) {
    const uint64_t places = Places(problem.k());
    return problem.k() >= kRadixElements / 2 ? 2 * places : places;
  }

  template <typename T, typename Cand>
  static void Run(const Sequence<T>& sequence, uint32_t n, uint32_t k, Cand* best) {
    if constexpr (sizeof(T) <= 4) {
      uint32_t threshold = 0;
      if (!GroupThreshold(sequence, n, k, &threshold)) {
        threshold = SampledThreshold(sequence, n, k, reinterpret_cast<uint32_t*>(best));
      }
      bool ordered = true;  // candidates by ascending index
      Cand* last = Collect(sequence, n, k, threshold, best, &ordered);
      if (last - best < static_cast<std::ptrdiff_t>(k)) last = Collect(sequence, n, k, 0, best, &ordered);
      Finish(best, static_cast<uint64_t>(last - best), k, ordered);
    }
  }

 private:
  // All elements that reach `threshold`, or, if those are too many, the best K and some.
  template <typename T, typename Cand>
  static Cand* Collect(const Sequence<T>& sequence, uint32_t n, uint32_t k, uint32_t threshold, Cand* best,
                       bool* ordered) {
    const bool largest = sequence.flip == 0;
    const uint32_t best_key = largest ? static_cast<UnsignedOf<sizeof(T)>>(~0u) : ~0u;
    Cand* const end = best + Places(k);
    ScanEnd scan = {0, best};
    while (true) {
      scan = ScanRow<T>(sequence.data, scan.position, n, threshold, largest, scan.last, end);
      if (scan.position == n) return scan.last;
      std::nth_element(best, best + (k - 1), scan.last, Better<Cand>);
      *ordered = false;
      scan.last = best + k;
      // K candidates are there; only a strictly better key displaces one of them.
      const uint32_t worst = best[k - 1].key();
      if (worst == best_key) return scan.last;
      threshold = worst + 1;
    }
  }

  template <typename Cand>
  static void Finish(Cand* best, uint64_t count, uint32_t k, bool ordered) {
    if (ordered && count >= kRadixElements && k >= kRadixElements / 2) {
      Cand* const other = best + Places(k);
      RadixSort(best, count, other);
      std::copy_n(other, k, best);
      return;
    }
    if (count > k) std::nth_element(best, best + (k - 1), best + count, Better<Cand>);
    std::sort(best, best + k, Better<Cand>);
  }
};

}  // namespace

std::unique_ptr<const Kernel> CreateTopKThreshold(const TopKProblem& problem, std::string* why_not) {
  if (BitSize(problem.input.type) > 32) {
    *why_not = StrCat("elements of ", BitSize(problem.input.type), " bits; it takes up to 32");
    return nullptr;
  }
  if (problem.input.strides[problem.axis] != 1) {
    *why_not = StrCat("the stride of InputTensor along Axis is ", problem.input.strides[problem.axis],
                      "; it takes packed sequences");
    return nullptr;
  }
  const uint32_t n = problem.n();
  const uint32_t k = problem.k();
  if (n < kShortestRow || k > n / 4) {
    *why_not = StrCat("K is ", k, " of ", n, " elements; it takes sequences of ", kShortestRow,
                      " or more and K up to a quarter");
    return nullptr;
  }
  return CreateTopKTyped<ThresholdSelect>(problem);
}

}  // namespace anydml
