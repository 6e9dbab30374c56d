// A step of many sequences whose elements are neighbours, by vectors.
#pragma once

#include <cstdint>

namespace anydml {

struct ScanStep {
  bool multiplies;
  bool exclusive;
  bool streams;  // past the caches (see StreamCopy)
};

// totals[c] becomes the total with from[c], and to[c] the same, or where the step is exclusive what
// totals[c] was. Any NaN is stored as the same one. `from` and `to` may be the same.
void RunScanStep(const ScanStep& step, const float* from, float* to, uint64_t count, float* totals);
void RunScanStep(const ScanStep& step, const uint32_t* from, uint32_t* to, uint64_t count, uint32_t* totals);
void RunScanStep(const ScanStep& step, const uint64_t* from, uint64_t* to, uint64_t count, uint64_t* totals);

}  // namespace anydml
