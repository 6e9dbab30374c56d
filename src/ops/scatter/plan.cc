#include "ops/scatter/plan.h"

#include <algorithm>
#include <bit>

#include "ops/device/units.h"

namespace anydml {
namespace {

// How much can be copied while claims are made: some 5 microseconds at 4 TB/s, read and written. For 64 MiB
// with 16384 rows: 39 microseconds; 43 with 16 MiB and 47 with 24, because more of the copy is overwritten.
constexpr uint64_t kCopiedMeanwhile = uint64_t{10} << 20;
// Blocks of a multiprocessor that clear: as fast as the cache takes it.
constexpr uint64_t kClearBlocks = 4;
// Up to this number a table may have more entries, for shorter searches, and still stay in the cache.
constexpr uint64_t kFewClaims = uint64_t{1} << 17;

// Duplicates need at least two positions that differ only in their tuples.
bool MayCollide(const ScatterProblem& problem) {
  for (const PositionLoop& loop : PositionLoops(problem)) {
    if (loop.output_dimension == PositionLoop::kNoDimension && loop.size > 1) return true;
  }
  return false;
}

ClaimTable ChooseClaims(const ScatterProblem& problem, uint64_t positions) {
  ClaimTable claims;
  if (!MayCollide(problem)) return claims;
  const uint64_t slots = SlotCount(problem);
  if (positions * 4 < slots) {
    claims.kind = ClaimTable::Kind::kHashed;
    claims.count = static_cast<uint32_t>(std::bit_ceil(positions * (positions <= kFewClaims ? 4 : 2)));
  } else {
    claims.kind = ClaimTable::Kind::kDirect;
    claims.count = static_cast<uint32_t>(slots);
  }
  return claims;
}

LoopNest<2> SlotNest(const ScatterProblem& problem, uint64_t element_bytes) {
  LoopNest<2> nest;
  for (uint32_t d = 0; d < problem.output.rank - SliceDimensions(problem); ++d) {
    nest.Append(problem.output.sizes[d],
                {problem.input.strides[d] * element_bytes, problem.output.strides[d] * element_bytes});
  }
  return nest;
}

// The dimensions of the output along which slots are numbered: all except those of a slice.
uint32_t SlotDimensions(const ScatterProblem& problem) {
  return problem.output.rank - SliceDimensions(problem);
}

// The distance between slots of neighbours along each dimension.
Dimensions SlotStrides(const ScatterProblem& problem) {
  Dimensions strides{};
  uint32_t stride = 1;
  for (uint32_t d = SlotDimensions(problem); d-- > 0; stride *= problem.output.sizes[d]) strides[d] = stride;
  return strides;
}

}  // namespace

uint64_t SlotCount(const ScatterProblem& problem) {
  uint64_t count = 1;
  for (uint32_t d = 0; d < SlotDimensions(problem); ++d) count *= problem.output.sizes[d];
  return count;
}

DeviceTuples MakeDeviceTuples(const ScatterProblem& problem) {
  const uint64_t element_bytes = BitSize(problem.output.type) / 8;
  const DataType type = problem.indices.type;
  const Dimensions slot_strides = SlotStrides(problem);
  const ScatterLoops plan = MakeScatterLoops(problem);
  DeviceTuples tuples;
  tuples.wide = BitSize(type) == 64;
  tuples.is_signed = type == DataType::kInt32 || type == DataType::kInt64;
  tuples.tuple_size = plan.tuple_size;
  for (uint32_t c = 0; c < plan.tuple_size; ++c) {
    const ScatterLoops::Component& component = plan.tuple[c];
    tuples.tuple[c] = {component.size, component.wrap, component.output_stride * element_bytes,
                       component.index_offset, slot_strides[problem.target_dimension(c)]};
  }
  LoopNest<4> nest;
  for (const PositionLoop& loop : PositionLoops(problem)) {
    uint64_t output_stride = 0, slot_stride = 0;
    if (loop.output_dimension != PositionLoop::kNoDimension) {
      output_stride = problem.output.strides[loop.output_dimension] * element_bytes;
      slot_stride = slot_strides[loop.output_dimension];
    }
    nest.Append(loop.size,
                {loop.indices_stride, loop.updates_stride * element_bytes, output_stride, slot_stride});
  }
  tuples.nest = DeviceNest<4>(nest);
  tuples.positions = static_cast<uint32_t>(Iterations(nest));
  return tuples;
}

ClaimScratch::ClaimScratch(const ClaimTable& claims, uint32_t positions)
    : first_bad(layout.Add("first bad", sizeof(uint32_t))),
      lost(layout.Add("lost", LostWords(positions) * sizeof(uint32_t))),
      entries(layout.Add("entries", claims.count * claims.entry_bytes())) {}

ClaimTable ClaimScratch::Place(ClaimTable claims, const Buffer& memory, const DataErrorNote* note) const {
  claims.first_bad = note != nullptr ? first_bad.In<uint32_t>(memory) : nullptr;
  claims.lost = lost.In<uint32_t>(memory);
  claims.entries = entries.In<void>(memory);
  return claims;
}

ScatterSetup::ScatterSetup(const ScatterProblem& p)
    : problem(p),
      element_bytes(BitSize(p.output.type) / 8),
      may_be_same(SameLayout(p.input, p.output)),
      tuples(MakeDeviceTuples(p)),
      copy_nest(CopyNest(p.input, p.output)),
      slice_nest(MakeScatterLoops(p).slice),
      slot_nest(SlotNest(p, element_bytes)),
      claims(ChooseClaims(p, tuples.positions)),
      output_bytes(ElementCount(p.output) * element_bytes),
      updates_bytes(tuples.positions * Iterations(slice_nest) * element_bytes) {}

bool ScatterSetup::SlotsInOrder(uint64_t slice_bytes) const {
  return slot_nest.rank == 1 && slot_nest.loops[0].strides == LoopNest<2>::Offsets{slice_bytes, slice_bytes};
}

DeviceCopy ScatterSetup::CopyOf(const KernelArguments& arguments) const {
  if (!Copies(arguments)) return {};
  return MakeDeviceCopy(copy_nest, element_bytes, arguments.inputs[0].data, arguments.outputs[0].data);
}

WriteParameters ScatterSetup::WriteOf(const KernelArguments& arguments) const {
  WriteParameters write = {};
  write.tuples = tuples;
  write.tuples.indices = arguments.inputs[1].data;
  write.updates = arguments.inputs[2].data;
  write.output = arguments.outputs[0].data;
  write.note = arguments.note();
  SetUnit(AddressOf(write.updates) | AddressOf(write.output) | TupleStrides() |
              UnitConstraints(slice_nest, element_bytes),
          &write);
  return write;
}

void ScatterSetup::SetUnit(uint64_t bytes, WriteParameters* parameters) const {
  WriteParameters& write = *parameters;
  write.unit_bytes = LargestUnit(bytes);
  const LoopNest<2> in_units = InUnits(slice_nest, write.unit_bytes / element_bytes);
  write.slice_units = FastDivisor(static_cast<uint32_t>(Iterations(in_units)));
  write.contiguous = in_units.rank <= 1 && InnermostIsContiguous(in_units);
  write.slice = DeviceNest<2>(in_units);
  write.units = tuples.positions * write.slice_units.divisor();
}

uint64_t ScatterSetup::TupleStrides() const {
  uint64_t bytes = 0;
  for (uint32_t d = 0; d < tuples.nest.rank; ++d) {
    const auto& strides = tuples.nest.loops[d].strides;
    bytes |= strides[DeviceTuples::kUpdates] | strides[DeviceTuples::kOutput];
  }
  for (uint32_t c = 0; c < tuples.tuple_size; ++c) bytes |= tuples.tuple[c].output_stride;
  return bytes;
}

ClaimTable ClaimPerSlot(const ScatterSetup& setup) {
  return {ClaimTable::Kind::kDirect, static_cast<uint32_t>(Iterations(setup.slot_nest))};
}

ScatterLaunch<ClearParameters> PlanClear(const ClearParameters& clear, const DeviceTraits& device) {
  Grid grid = GridOf(clear.count, kScatterThreads);
  grid.blocks = std::min(grid.blocks, kClearBlocks * device.multiprocessors);
  return {grid, clear};
}

ScatterLaunch<PrepareParameters> PlanPrepare(bool claims, const WriteParameters& write,
                                             const DeviceCopy& copy) {
  const uint64_t claim_blocks = claims ? CeilDivide(write.tuples.positions, kScatterThreads) : 0;
  const uint64_t copy_blocks = CopyBlocks(copy, kScatterThreads);
  return {{claim_blocks + copy_blocks, kScatterThreads},
          {write.tuples, write.claims, copy, claim_blocks, copy_blocks}};
}

ScatterLaunch<WriteParameters> PlanWrite(const WriteParameters& write) {
  return {GridOf(write.units, kScatterThreads), write};
}

ScatterLaunch<ScatterGatherParameters> PlanGather(const ScatterSetup& setup, const ClaimTable& claims,
                                                  const KernelArguments& arguments) {
  ScatterGatherParameters gather = {};
  gather.write = setup.WriteOf(arguments);
  gather.write.claims = claims;
  gather.write.claims.lost = nullptr;  // the table itself is queried
  gather.input = arguments.inputs[0].data;
  uint64_t distances = AddressOf(gather.input) | gather.write.unit_bytes;
  for (uint32_t d = 0; d < setup.slot_nest.rank; ++d) {
    distances |= setup.slot_nest.loops[d].strides[DeviceCopy::kFrom];
  }
  setup.SetUnit(distances, &gather.write);
  gather.slots = DeviceNest<2>(setup.slot_nest);
  const uint32_t slice_units = gather.write.slice_units.divisor();
  gather.units = claims.count * slice_units;
  const uint64_t slice_bytes = uint64_t{slice_units} * gather.write.unit_bytes;
  const uint64_t slots = kCopiedMeanwhile / slice_bytes;
  gather.copied_slots = setup.SlotsInOrder(slice_bytes)
                            ? static_cast<uint32_t>(std::min<uint64_t>(slots, claims.count / 2))
                            : 0;
  const uint64_t copied_units = uint64_t{gather.copied_slots} * slice_units;
  gather.write_blocks = copied_units == 0 ? 0 : CeilDivide(gather.write.tuples.positions, kScatterThreads);
  return {{gather.write_blocks + CeilDivide(gather.units - copied_units, kScatterThreads), kScatterThreads},
          gather};
}

DeviceCopy CopyOfSlots(const ScatterSetup& setup, const ScatterGatherParameters& gather) {
  if (gather.copied_slots == 0) return {};
  LoopNest<2> nest;
  nest.Append(gather.copied_slots * Iterations(setup.slice_nest), {1, 1});
  return MakeDeviceCopy(nest, setup.element_bytes, gather.input, gather.write.output);
}

ScatterLaunch<SmallParameters> PlanSmall(const ScatterSetup& setup, const KernelArguments& arguments) {
  SmallParameters small = {setup.CopyOf(arguments), setup.WriteOf(arguments)};
  small.write.claims = setup.claims.count <= kSmallEntries
                           ? setup.claims
                           : ClaimTable{ClaimTable::Kind::kHashed, kSmallEntries};
  const uint32_t most = std::max(small.copy.units, small.write.units);
  const uint32_t threads = std::clamp((most + 31) / 32 * 32, 32u, kScatterSmallThreads);
  return {{1, threads}, small};
}

}  // namespace anydml
