// One step of many sequences with contiguous elements, vectorised.
#pragma once

#include <cstdint>

namespace anydml {

struct ScanStep {
  bool multiplies;
  bool exclusive;
  bool streams;  // with non-temporal stores (see StreamCopy)
};

// totals[c] is combined with from[c], and to[c] becomes the new total or, if the step is exclusive, the old
// one. NaNs are stored as canonical ones. `from` and `to` may be the same.
void RunScanStep(const ScanStep& step, const float* from, float* to, uint64_t count, float* totals);
void RunScanStep(const ScanStep& step, const uint32_t* from, uint32_t* to, uint64_t count, uint32_t* totals);
void RunScanStep(const ScanStep& step, const uint64_t* from, uint64_t* to, uint64_t count, uint64_t* totals);

}  // namespace anydml
