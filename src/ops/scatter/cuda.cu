#include <algorithm>
#include <bit>

#include "ops/module.h"
#include "ops/scatter/cuda_kernels.cuh"
#include "ops/scatter/plan.h"

namespace anydml {
namespace {

// Up to here one block is done before several could be started one after the other.
constexpr uint64_t kSmallBytes = uint64_t{32} << 10;
// From here on an entry per slot costs little beside the slice.
constexpr uint64_t kGatherSliceBytes = 64;

// What temporary memory begins with; the table of claims comes behind it.
constexpr uint64_t kHeaderBytes = 16;

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
  const bool few = positions * 4 < slots;
  claims.kind = few ? ClaimTable::Kind::kHashed : ClaimTable::Kind::kDirect;
  claims.count = static_cast<uint32_t>(few ? std::bit_ceil(positions * 2) : slots);
  return claims;
}

uint64_t ClaimBytes(const ClaimTable& claims) {
  return kHeaderBytes + (uint64_t{claims.count} * sizeof(uint32_t) + 15) / 16 * 16;
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
        updates_bytes_(tuples_.positions * Iterations(slice_nest_) * element_bytes_) {
    PlanGather();
  }

  uint64_t temporary_bytes() const override {
    const bool all_small = IsSmall(output_bytes_);
    return all_small ? 0 : std::max(ClaimBytes(claims_), gathers_ ? ClaimBytes(gather_claims_) : 0);
  }

  bool notes_data_errors() const override { return true; }
  std::string Describe(const DataErrorNote& note) const override {
    return DescribeBadTuple(problem_, note.values, PositionCoordinate(problem_, note.position));
  }

  void Run(const KernelArguments& arguments) const override {
    KernelChain chain(arguments.stream);
    const std::byte* input = arguments.inputs[0].data;
    std::byte* output = arguments.outputs[0].data;
    const bool copies = !(in_place_ && input == output);
    if (IsSmall(copies ? output_bytes_ : 0)) {
      SmallParameters small = {CopyOf(input, output, copies), WriteOf(arguments)};
      small.write.claims = SmallClaims();
      LaunchSmall(&chain, small);
    } else if (copies && gathers_) {
      const GatherParameters gather = GatherOf(arguments);
      Clear(arguments, gather.claims, &chain);
      LaunchPrepare(&chain, true, {gather.tuples, gather.claims, {}, 0, 0});
      LaunchGather(&chain, gather);
    } else {
      const WriteParameters write = WriteOf(arguments);
      const bool claims = write.claims.kind != ClaimTable::Kind::kNone || write.note != nullptr;
      if (claims) Clear(arguments, write.claims, &chain);
      if (claims || copies) {
        LaunchPrepare(&chain, claims,
                      {write.tuples, write.claims, CopyOf(input, output, copies), 0, 0});
      }
      LaunchWrite(&chain, write);
    }
  }

 private:
  bool IsSmall(uint64_t copied_bytes) const {
    return tuples_.positions <= kSmallPositions && updates_bytes_ <= kSmallBytes &&
           copied_bytes <= kSmallBytes;
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
    gather_claims_.kind = ClaimTable::Kind::kDirect;
    gather_claims_.count = static_cast<uint32_t>(Iterations(slot_nest_));
  }

  DeviceCopy CopyOf(const std::byte* input, std::byte* output, bool copies) const {
    return copies ? MakeDeviceCopy(copy_nest_, element_bytes_, input, output) : DeviceCopy{};
  }

  DeviceTuples TuplesOf(const KernelArguments& arguments) const {
    DeviceTuples tuples = tuples_;
    tuples.indices = arguments.inputs[1].data;
    return tuples;
  }

  static ClaimTable Placed(ClaimTable claims, const KernelArguments& arguments) {
    std::byte* memory = arguments.temporary.data;
    claims.first_bad = arguments.note == nullptr ? nullptr : reinterpret_cast<uint32_t*>(memory);
    claims.entries = reinterpret_cast<uint32_t*>(memory + kHeaderBytes);
    return claims;
  }

  // A table that fits into the memory of a block.
  ClaimTable SmallClaims() const {
    if (claims_.count <= kSmallEntries) return claims_;
    return {ClaimTable::Kind::kHashed, std::bit_ceil(tuples_.positions * 2)};
  }

  static void Clear(const KernelArguments& arguments, const ClaimTable& claims, KernelChain* chain) {
    LaunchClear(chain, {reinterpret_cast<uint4*>(arguments.temporary.data), ClaimBytes(claims) / 16});
  }

  WriteParameters WriteOf(const KernelArguments& arguments) const {
    WriteParameters write = {};
    write.tuples = TuplesOf(arguments);
    write.claims = Placed(claims_, arguments);
    write.updates = arguments.inputs[2].data;
    write.output = arguments.outputs[0].data;
    write.note = arguments.note;
    write.unit_bytes = LargestUnit(AddressOf(write.updates) | AddressOf(write.output) | TupleStrides() |
                                   UnitConstraints(slice_nest_, element_bytes_));
    const LoopNest<2> in_units = InUnits(slice_nest_, write.unit_bytes / element_bytes_);
    write.slice_units = FastDivisor(static_cast<uint32_t>(Iterations(in_units)));
    write.contiguous = in_units.rank <= 1 && InnermostIsContiguous(in_units);
    write.slice = DeviceNest<2>(in_units);
    write.units = tuples_.positions * write.slice_units.divisor();
    return write;
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
    gather.tuples = TuplesOf(arguments);
    gather.claims = Placed(gather_claims_, arguments);
    gather.input = arguments.inputs[0].data;
    gather.updates = arguments.inputs[2].data;
    gather.output = arguments.outputs[0].data;
    gather.note = arguments.note;
    const uint64_t slice_bytes = Iterations(slice_nest_) * element_bytes_;
    uint64_t distances = TupleStrides() | slice_bytes;
    for (uint32_t d = 0; d < slot_nest_.rank; ++d) distances |= slot_nest_.loops[d].strides[DeviceCopy::kFrom];
    gather.unit_bytes = LargestUnit(AddressOf(gather.input) | AddressOf(gather.updates) |
                                    AddressOf(gather.output) | distances);
    gather.slice_units = FastDivisor(static_cast<uint32_t>(slice_bytes / gather.unit_bytes));
    gather.slots = DeviceNest<2>(slot_nest_);
    gather.units = gather_claims_.count * gather.slice_units.divisor();
    return gather;
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

  bool gathers_ = false;
  LoopNest<2> slot_nest_;  // input and output, in bytes
  ClaimTable gather_claims_;
};

}  // namespace

ANYDML_MODULE_EXPORT const Kernel* AnyDmlCreateScatterCuda(const ScatterProblem& problem, std::string*) {
  return new ScatterCuda(problem);
}

}  // namespace anydml
