#include "ops/scan/plan.h"

#include <algorithm>

#include "ops/device/units.h"

namespace anydml {
namespace {

// Blocks go on with further sequences.
constexpr uint64_t kMaxScanBlocks = uint64_t{1} << 30;
constexpr uint64_t kMaxParts = 1024;
// Parts of all sequences, per multiprocessor.
constexpr uint64_t kPartsAtOnce = 8;

// Whether rows can be read and written 16 bytes at a time, if addresses allow it.
bool RowsOfUnits(const ScanLoops& loops, uint64_t element_bytes) {
  if (loops.along.strides != LoopNest<2>::Offsets{1, 1}) return false;
  uint64_t bytes = loops.along.size * element_bytes;
  for (uint32_t d = 0; d < loops.sequences.rank; ++d) {
    for (const uint64_t stride : loops.sequences.loops[d].strides) bytes |= stride * element_bytes;
  }
  return bytes % kMaxUnitBytes == 0;
}

// So many parts that every multiprocessor has some, each of at least a few tiles.
void CutIntoParts(const DeviceTraits& device, ScanPlan* plan) {
  ScanParameters& p = plan->parameters;
  const uint64_t shares = kPartsAtOnce * device.multiprocessors / p.sequences;
  const uint64_t even = CeilDivide(p.length, std::clamp<uint64_t>(shares, 2, kMaxParts));
  const uint64_t part = CeilDivide(even, kScanPartMultiple) * kScanPartMultiple;
  p.part_length = static_cast<uint32_t>(std::min<uint64_t>(part, p.length));
  p.parts = (p.length - 1) / p.part_length + 1;
  plan->grid = {uint64_t{p.parts} * p.sequences, kScanRowThreads};
  plan->temporary_bytes = plan->grid.blocks * sizeof(uint64_t);
}

}  // namespace

ScanPlan MakeScanPlan(const ScanProblem& problem, ScanKernel kernel, const DeviceTraits& device) {
  const ScanLoops loops = MakeScanLoops(problem);
  ScanPlan plan;
  plan.kernel = kernel;
  ScanParameters& p = plan.parameters;
  p.exclusive = problem.exclusive;
  p.reverse = problem.reverse;
  p.length = static_cast<uint32_t>(loops.along.size);
  p.sequences = static_cast<uint32_t>(Iterations(loops.sequences));
  p.input_stride = loops.along.strides[ScanLoops::kInput];
  p.output_stride = loops.along.strides[ScanLoops::kOutput];
  p.nest = DeviceNest<2>(loops.sequences);
  switch (kernel) {
    case ScanKernel::kColumns:
      plan.grid = {std::min(CeilDivide(p.sequences, kScanColumns), kMaxScanBlocks),
                   kScanColumns * kScanColumnWarps};
      return plan;
    case ScanKernel::kSplit:
      CutIntoParts(device, &plan);
      break;
    default:
      plan.grid = {std::min<uint64_t>(p.sequences, kMaxScanBlocks),
                   p.length <= kScanShort ? kScanLanes : kScanRowThreads};
  }
  plan.rows_of_units = RowsOfUnits(loops, BitSize(problem.output.type) / 8);
  return plan;
}

}  // namespace anydml
