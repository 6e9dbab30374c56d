#include "ops/scatter/loops.h"

#include <bit>

namespace anydml {
namespace {

// From here on, sharing the work costs less than it saves.
constexpr uint64_t kSharedPositions = 32768;
constexpr uint64_t kSharedTuples = 262144;  // for tuples that are not read with vectors
constexpr uint64_t kSharedBytes = uint64_t{512} << 10;

uint32_t PartCount(const ScatterProblem& p, const ScatterLoops& loops, uint32_t threads) {
  const uint64_t bytes = ElementCount(p.updates) * (BitSize(p.updates.type) / 8);
  const uint64_t enough = loops.packed ? kSharedPositions : kSharedTuples;
  const bool large = Iterations(loops.positions) >= enough || bytes >= kSharedBytes;
  return large ? threads : 1;
}

bool CanBePacked(const ScatterLoops& loops) {
  if (loops.tuple_size > 2) return false;
  uint64_t last = 0;  // the largest offset
  for (uint32_t c = 0; c < loops.tuple_size; ++c) {
    const ScatterLoops::Component& component = loops.tuple[c];
    if (component.size >= uint64_t{1} << 31 || component.index_offset != c) return false;
    last += (component.size - 1) * component.output_stride;
  }
  return loops.tuple_size == 1 || last < uint64_t{1} << 32;
}

// A loop whose iterations never write to the same element (SCATTER_ELEMENTS off the axis)
// and that is long enough for `parts`; loops.positions.rank when there is none.
uint32_t IndependentLoop(const ScatterLoops& loops, uint32_t parts) {
  uint32_t d = 0;
  while (d < loops.positions.rank) {
    const auto& loop = loops.positions.loops[d];
    if (loop.strides[ScatterLoops::kOutput] != 0 && loop.size >= parts) break;
    ++d;
  }
  return d;
}

// Owners get blocks of about 4 KiB, so that no cache line bounces between two of them.
uint32_t KeyShift(const ScatterLoops& loops, DataType type) {
  constexpr uint64_t kBlockBytes = 4096;
  const uint64_t step = loops.tuple_size == 1 ? loops.tuple[0].output_stride : 1;
  const uint64_t keys = kBlockBytes / (BitSize(type) / 8) / std::max<uint64_t>(step, 1);
  return keys <= 1 ? 0 : static_cast<uint32_t>(std::bit_width(keys) - 1);
}

ScatterOwner OwnerOf(uint32_t part, uint32_t parts, uint32_t key_shift) {
  constexpr uint64_t kHashes = uint64_t{1} << 32;
  const uint64_t begin = PartBegin(kHashes, part, parts);
  const uint64_t end = PartBegin(kHashes, part + 1, parts);
  return {key_shift, static_cast<uint32_t>(begin), static_cast<uint32_t>(end - begin - 1)};
}

}  // namespace

std::vector<PositionLoop> PositionLoops(const ScatterProblem& p) {
  std::vector<PositionLoop> loops;
  if (p.kind == ScatterProblem::Kind::kElements) {
    for (uint32_t d = 0; d < p.indices.rank; ++d) {
      loops.push_back({p.indices.sizes[d], p.indices.strides[d], p.updates.strides[d],
                       d == p.axis ? PositionLoop::kNoDimension : d});
    }
    return loops;
  }
  const uint32_t rank = p.output.rank;
  const uint32_t positions = p.indices_dimensions - 1;
  for (uint32_t d = 0; d < positions; ++d) {
    const uint32_t in_indices = rank - 1 - positions + d;
    const uint32_t in_updates = rank - SliceDimensions(p) - positions + d;
    loops.push_back({p.indices.sizes[in_indices], p.indices.strides[in_indices],
                     p.updates.strides[in_updates], PositionLoop::kNoDimension});
  }
  return loops;
}

ScatterLoops MakeScatterLoops(const ScatterProblem& problem) {
  ScatterLoops loops;
  for (const PositionLoop& loop : PositionLoops(problem)) {
    const bool moves = loop.output_dimension != PositionLoop::kNoDimension;
    loops.positions.Append(loop.size, {loop.indices_stride, loop.updates_stride,
                                       moves ? problem.output.strides[loop.output_dimension] : 0});
  }
  LoopNest<2> slice;
  for (uint32_t d = problem.output.rank - SliceDimensions(problem); d < problem.output.rank; ++d) {
    slice.Append(problem.output.sizes[d], {problem.updates.strides[d], problem.output.strides[d]});
  }
  loops.slice = SortedByStride(slice, ScatterLoops::kSliceOutput);
  loops.tuple_size = problem.tuple_size();
  for (uint32_t c = 0; c < loops.tuple_size; ++c) {
    const uint32_t d = problem.target_dimension(c);
    const uint64_t size = problem.output.sizes[d];
    loops.tuple[c] = {size, problem.wraps ? size : 0, problem.output.strides[d],
                      uint64_t{c} * problem.indices.strides[problem.indices.rank - 1]};
  }
  loops.packed = CanBePacked(loops);
  return loops;
}

std::vector<ScatterPart> MakeScatterParts(const ScatterProblem& problem, const ScatterLoops& loops,
                                          uint32_t threads) {
  const uint32_t count = PartCount(problem, loops, threads);
  const ScatterPart whole = {CutNest(loops.positions, 0, 1)[0], CutNest(loops.slice, 0, 1)[0], {}};
  if (count == 1) return {whole};
  std::vector<ScatterPart> parts(count, whole);
  if (const uint32_t loop = IndependentLoop(loops, count); loop < loops.positions.rank) {
    const auto positions = CutNest(loops.positions, loop, count);
    for (uint32_t p = 0; p < count; ++p) parts[p].positions = positions[p];
    return parts;
  }
  // Few slices cannot be distributed evenly: every part takes its piece of each.
  constexpr uint64_t kFewPerPart = 64;
  if (Iterations(loops.positions) < kFewPerPart * count) {
    const auto slices = CutNest(loops.slice, LoopToCut(loops.slice, count), count);
    parts.resize(slices.size());
    for (size_t p = 0; p < slices.size(); ++p) parts[p].slice = slices[p];
    return parts;
  }
  const uint32_t key_shift = KeyShift(loops, problem.output.type);
  for (uint32_t p = 0; p < count; ++p) parts[p].owner = OwnerOf(p, count, key_shift);
  return parts;
}

Dimensions PositionCoordinate(const ScatterProblem& problem, uint64_t number) {
  Dimensions at{};
  uint32_t d = problem.indices.rank;
  if (problem.kind == ScatterProblem::Kind::kNd) --d;  // the last dimension is the tuple
  while (d-- > 0) {
    at[d] = static_cast<uint32_t>(number % problem.indices.sizes[d]);
    number /= problem.indices.sizes[d];
  }
  return at;
}

}  // namespace anydml
