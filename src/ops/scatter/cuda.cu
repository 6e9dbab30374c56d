#include <algorithm>
#include <bit>

#include "ops/scatter/cuda_kernels.cuh"
#include "ops/scatter/cuda_lines.cuh"
#include "ops/scatter/cuda_tiles.cuh"
#include "ops/scatter/plan.h"

namespace anydml {
namespace {

// Up to here one block is done before several could be started one after the other.
constexpr uint64_t kSmallBytes = uint64_t{32} << 10;
// From here on an entry per slot costs little beside the slice.
constexpr uint64_t kGatherSliceBytes = 64;
// What can be copied while claims are made: some 5 microseconds at 4 TB/s, read and written. Of
// 64 MiB with 16384 rows: 39 microseconds; 43 with 16 MiB and 47 with 24, of which more is replaced.
constexpr uint64_t kCopiedMeanwhile = uint64_t{10} << 20;

// From here on updates are put in order by tile before they are written; a hash table of
// fewer is small.
constexpr uint32_t kFewPositions = uint32_t{1} << 17;

// With more slots than this for each position it costs less, in place, to write those alone than
// to read and write all tiles (2^24 slots with 10^6 positions: 54 microseconds by tiles, 91 alone;
// 2^28 with 2^20: 105 alone).
constexpr uint64_t kDenseSlots = 32;

constexpr uint64_t kAlignment = 16;
uint64_t Aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

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
    // The emptier the shorter are searches, as long as the table stays in the cache.
    claims.count = static_cast<uint32_t>(std::bit_ceil(positions * (positions <= kFewPositions ? 4 : 2)));
  } else {
    claims.kind = ClaimTable::Kind::kDirect;
    claims.count = static_cast<uint32_t>(slots);
  }
  return claims;
}

// Puts the parts of `claims` into `memory`; returns where they end.
std::byte* PlaceClaims(uint32_t positions, std::byte* memory, ClaimTable* claims) {
  claims->first_bad = reinterpret_cast<uint32_t*>(memory);
  memory += kAlignment;
  claims->lost = reinterpret_cast<uint32_t*>(memory);
  memory += Aligned(LostWords(positions) * sizeof(uint32_t));
  claims->entries = memory;
  return memory + Aligned(claims->count * claims->entry_bytes());
}

class ScatterCuda final : public Kernel {
 public:
  explicit ScatterCuda(const ScatterProblem& problem)
      : problem_(problem),
        element_bytes_(BitSize(problem.output.type) / 8),
        in_place_(SameLayout(problem.input, problem.output)),
        tuples_(MakeDeviceTuples(problem)),
        copy_nest_(CopyNest(problem.input, problem.output)),
        slice_nest_(MakeScatterPlan(problem).slice),
        claims_(ChooseClaims(problem, tuples_.positions)),
        output_bytes_(ElementCount(problem.output) * element_bytes_),
        updates_bytes_(tuples_.positions * Iterations(slice_nest_) * element_bytes_),
        lines_(PlanLines(problem)) {
    PlanGather();
  }

  uint64_t temporary_bytes() const override {
    if (IsSmall(output_bytes_)) return 0;
    // Lines are the way then, in place or not.
    if (lines_.lines != 0 && claims_.kind == ClaimTable::Kind::kDirect) return kAlignment;
    return std::max({ClaimBytes(claims_), gathers_ ? ClaimBytes(gather_claims_) : 0,
                     tiles_ ? TilesTemporaryBytes(tiles_plan_, element_bytes_) : 0});
  }

  uint32_t note_count() const override { return 1; }
  std::string Describe(uint32_t, const DataErrorNote& note) const override {
    return DescribeBadTuple(problem_, note.values, PositionCoordinate(problem_, note.position));
  }

  Status Run(const KernelArguments& arguments) const override {
    KernelChain chain(arguments.stream);
    const std::byte* input = arguments.inputs[0].data;
    std::byte* output = arguments.outputs[0].data;
    const bool copies = !(in_place_ && input == output);
    if (IsSmall(copies ? output_bytes_ : 0)) {
      SmallParameters small = {CopyOf(input, output, copies), WriteOf(arguments)};
      small.write.claims = SmallClaims();
      LaunchSmall(&chain, small);
    } else if (lines_.lines != 0 && (copies || claims_.kind == ClaimTable::Kind::kDirect)) {
      RunLines(arguments, copies, &chain);
    } else if (tiles_ && (copies || DenseTiles()) &&
               LargestUnit(AddressOf(input) | AddressOf(output)) == kMaxUnitBytes) {
      RunTiles(arguments, &chain);
    } else if (copies && gathers_) {
      const GatherParameters gather = GatherOf(arguments);
      Clear(arguments, gather.write.claims, &chain);
      LaunchPrepare(&chain, true, {gather.write.tuples, gather.write.claims, CopyOfSlots(gather), 0, 0});
      LaunchGather(&chain, gather);
    } else {
      const WriteParameters write = WriteOf(arguments);
      const bool claims = write.claims.kind != ClaimTable::Kind::kNone || write.note != nullptr;
      if (claims) Clear(arguments, write.claims, &chain);
      if (claims || copies) {
        LaunchPrepare(&chain, claims, {write.tuples, write.claims, CopyOf(input, output, copies), 0, 0});
      }
      LaunchWrite(&chain, write);
    }
    return {};
  }

 private:
  bool IsSmall(uint64_t copied_bytes) const {
    return tuples_.positions <= kSmallPositions && updates_bytes_ <= kSmallBytes &&
           copied_bytes <= kSmallBytes;
  }

  void RunLines(const KernelArguments& arguments, bool copies, KernelChain* chain) const {
    LinesParameters lines = lines_;
    lines.write = WriteOf(arguments);
    lines.input = copies ? arguments.inputs[0].data : nullptr;
    const bool listens = arguments.note() != nullptr;
    if (listens) LaunchClear(chain, {reinterpret_cast<uint4*>(arguments.temporary.data), 1});
    LaunchLines(chain, lines);
    if (listens) LaunchNote(chain, lines.write);
  }

  bool DenseTiles() const {
    return claims_.kind != ClaimTable::Kind::kNone && tiles_plan_.slots / tuples_.positions < kDenseSlots;
  }

  void RunTiles(const KernelArguments& arguments, KernelChain* chain) const {
    TilesParameters tiles = tiles_plan_;
    tiles.tuples.indices = arguments.inputs[1].data;
    tiles.input = arguments.inputs[0].data;
    tiles.updates = arguments.inputs[2].data;
    tiles.output = arguments.outputs[0].data;
    tiles.note = arguments.note();
    LaunchTiles(chain, element_bytes_, tiles, arguments.temporary.data);
  }

  // Slots lie one behind the other, in input and output, in the order of their numbers.
  bool SlotsInOrder(uint64_t slice_bytes) const {
    return slot_nest_.rank == 1 &&
           slot_nest_.loops[0].strides == LoopNest<2>::Offsets{slice_bytes, slice_bytes};
  }

  // Slices that are contiguous wherever they are, and slots in the order of their numbers.
  void PlanGather() {
    const uint32_t rank = problem_.output.rank;
    const uint32_t slice_dimensions = SliceDimensions(problem_);
    LoopNest<3> slice;
    for (uint32_t d = rank - slice_dimensions; d < rank; ++d) {
      slice.Append(problem_.output.sizes[d],
                   {problem_.input.strides[d], problem_.updates.strides[d], problem_.output.strides[d]});
    }
    for (uint32_t d = 0; d < rank - slice_dimensions; ++d) {
      slot_nest_.Append(problem_.output.sizes[d], {uint64_t{problem_.input.strides[d]} * element_bytes_,
                                                   uint64_t{problem_.output.strides[d]} * element_bytes_});
    }
    gathers_ = slice.rank == 1 && InnermostIsContiguous(slice) &&
               slice.loops[0].size * element_bytes_ >= kGatherSliceBytes;
    tiles_ = slice_nest_.rank == 0 && SlotsInOrder(element_bytes_) && tuples_.positions > kFewPositions;
    if (tiles_) tiles_plan_ = PlanTiles(tuples_, Iterations(slot_nest_));
    gather_claims_.kind = ClaimTable::Kind::kDirect;
    gather_claims_.count = static_cast<uint32_t>(Iterations(slot_nest_));
  }

  DeviceCopy CopyOf(const std::byte* input, std::byte* output, bool copies) const {
    return copies ? MakeDeviceCopy(copy_nest_, element_bytes_, input, output) : DeviceCopy{};
  }

  uint64_t ClaimBytes(ClaimTable claims) const {
    return AddressOf(PlaceClaims(tuples_.positions, nullptr, &claims));
  }

  ClaimTable Placed(ClaimTable claims, const KernelArguments& arguments) const {
    PlaceClaims(tuples_.positions, arguments.temporary.data, &claims);
    if (arguments.note() == nullptr) claims.first_bad = nullptr;
    return claims;
  }

  // A table that fits into the memory of a block.
  ClaimTable SmallClaims() const {
    if (claims_.count <= kSmallEntries) return claims_;
    return {ClaimTable::Kind::kHashed, kSmallEntries};
  }

  void Clear(const KernelArguments& arguments, const ClaimTable& claims, KernelChain* chain) const {
    LaunchClear(chain,
                {reinterpret_cast<uint4*>(arguments.temporary.data), ClaimBytes(claims) / sizeof(uint4)});
  }

  WriteParameters WriteOf(const KernelArguments& arguments) const {
    WriteParameters write = {};
    write.tuples = tuples_;
    write.tuples.indices = arguments.inputs[1].data;
    write.claims = Placed(claims_, arguments);
    write.updates = arguments.inputs[2].data;
    write.output = arguments.outputs[0].data;
    write.note = arguments.note();
    SetUnit(AddressOf(write.updates) | AddressOf(write.output) | TupleStrides() |
                UnitConstraints(slice_nest_, element_bytes_),
            &write);
    return write;
  }

  // The largest unit that divides `bytes`, and the slices in such units.
  void SetUnit(uint64_t bytes, WriteParameters* parameters) const {
    WriteParameters& write = *parameters;
    write.unit_bytes = LargestUnit(bytes);
    const LoopNest<2> in_units = InUnits(slice_nest_, write.unit_bytes / element_bytes_);
    write.slice_units = FastDivisor(static_cast<uint32_t>(Iterations(in_units)));
    write.contiguous = in_units.rank <= 1 && InnermostIsContiguous(in_units);
    write.slice = DeviceNest<2>(in_units);
    write.units = tuples_.positions * write.slice_units.divisor();
  }

  // All distances between slices, in bytes, or-ed together.
  uint64_t TupleStrides() const {
    uint64_t bytes = 0;
    for (uint32_t d = 0; d < tuples_.nest.rank; ++d) {
      const auto& strides = tuples_.nest.loops[d].strides;
      bytes |= strides[DeviceTuples::kUpdates] | strides[DeviceTuples::kOutput];
    }
    for (uint32_t c = 0; c < tuples_.tuple_size; ++c) bytes |= tuples_.tuple[c].output_stride;
    return bytes;
  }

  GatherParameters GatherOf(const KernelArguments& arguments) const {
    GatherParameters gather = {};
    gather.write = WriteOf(arguments);
    gather.write.claims = Placed(gather_claims_, arguments);
    gather.write.claims.lost = nullptr;  // whoever wants to know asks the table
    gather.input = arguments.inputs[0].data;
    uint64_t distances = AddressOf(gather.input) | gather.write.unit_bytes;
    for (uint32_t d = 0; d < slot_nest_.rank; ++d)
      distances |= slot_nest_.loops[d].strides[DeviceCopy::kFrom];
    SetUnit(distances, &gather.write);
    gather.slots = DeviceNest<2>(slot_nest_);
    const uint32_t slice_units = gather.write.slice_units.divisor();
    gather.units = gather_claims_.count * slice_units;
    const uint64_t slice_bytes = uint64_t{slice_units} * gather.write.unit_bytes;
    const uint64_t slots = kCopiedMeanwhile / slice_bytes;
    gather.copied_slots = SlotsInOrder(slice_bytes)
                              ? static_cast<uint32_t>(std::min<uint64_t>(slots, gather_claims_.count / 2))
                              : 0;
    return gather;
  }

  // Of those that `gather` leaves out.
  DeviceCopy CopyOfSlots(const GatherParameters& gather) const {
    if (gather.copied_slots == 0) return {};
    LoopNest<2> nest;
    nest.Append(gather.copied_slots * Iterations(slice_nest_), {1, 1});
    return MakeDeviceCopy(nest, element_bytes_, gather.input, gather.write.output);
  }

  const ScatterProblem problem_;
  const uint32_t element_bytes_;
  const bool in_place_;  // when input and output are the same memory
  const DeviceTuples tuples_;
  const LoopNest<2> copy_nest_;
  const LoopNest<2> slice_nest_;
  const ClaimTable claims_;
  const uint64_t output_bytes_;
  const uint64_t updates_bytes_;
  const LinesParameters lines_;  // without lines where they do not fit

  bool tiles_ = false;
  TilesParameters tiles_plan_ = {};
  bool gathers_ = false;
  LoopNest<2> slot_nest_;  // input and output, in bytes
  ClaimTable gather_claims_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateScatterCuda(const ScatterProblem& problem, const LowerContext&,
                                                std::string*) {
  return std::make_unique<ScatterCuda>(problem);
}

}  // namespace anydml
