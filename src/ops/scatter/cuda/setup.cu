#include "ops/scatter/cuda/setup.cuh"

#include <bit>

namespace anydml {
namespace {

// Up to here a table can have more entries, so that searches are shorter, and stay in the cache.
constexpr uint64_t kFewClaims = uint64_t{1} << 17;

// Duplicates need at least two positions that differ in nothing but their tuples.
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

}  // namespace

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
      slice_nest(MakeScatterPlan(p).slice),
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

}  // namespace anydml
