// The algorithms in the list (../lower.cc). Each takes every problem of its kind, whether input and output
// are the same memory or not; which one is fastest differs between the two, so most problems use
// cuda.by_memory.
#include <algorithm>

#include "kernel/composite.h"
#include "ops/scatter/cuda/lines.cuh"
#include "ops/scatter/cuda/tiles.cuh"

namespace anydml {
namespace {

using Memory = ScatterProblem::Memory;

// Up to this size, one block is done before several could be started one after the other.
constexpr uint64_t kSmallBytes = uint64_t{32} << 10;
// From this size on, an entry per slot costs little compared to the slice.
constexpr uint64_t kGatherSliceBytes = 64;
// From this number on, updates are sorted by tile before they are written; a hash table of fewer is small.
constexpr uint32_t kFewPositions = uint32_t{1} << 17;
// With more slots than this per position it costs less, in place, to write single slots than to read and
// write all tiles (2^24 slots with 10^6 positions: 54 microseconds by tiles, 91 singly; 2^28 with 2^20: 105
// singly).
constexpr uint64_t kDenseSlots = 32;

class ScatterKernel : public Kernel {
 public:
  explicit ScatterKernel(const ScatterSetup& setup) : setup_(setup) {}
  uint32_t note_count() const override { return 1; }
  std::string Describe(uint32_t, const DataErrorNote& note) const override { return setup_.Describe(note); }

 protected:
  const ScatterSetup setup_;
};

// cuda.small: one block does everything.
class ScatterSmall final : public ScatterKernel {
 public:
  explicit ScatterSmall(const ScatterSetup& setup) : ScatterKernel(setup) {}

  Status Run(const KernelArguments& arguments) const override {
    KernelChain chain(arguments.stream);
    Launch(PlanSmall(setup_, arguments), &chain);
    return {};
  }
};

// cuda.lines: blocks resolve lines of SCATTER_ELEMENTS in shared memory.
class ScatterLines final : public ScatterKernel {
 public:
  ScatterLines(const ScatterSetup& setup, const LinesParameters& lines, const DeviceTraits& device)
      : ScatterKernel(setup), lines_(lines), device_(device) {}

  uint64_t temporary_bytes() const override { return kNoteBytes; }

  Status Run(const KernelArguments& arguments) const override {
    LinesParameters lines = lines_;
    lines.write = setup_.WriteOf(arguments);
    lines.write.claims.first_bad = reinterpret_cast<uint32_t*>(arguments.temporary.data);
    lines.input = setup_.Copies(arguments) ? arguments.inputs[0].data : nullptr;
    const bool listens = lines.write.note != nullptr;
    KernelChain chain(arguments.stream);
    if (listens) {
      Launch(PlanClear({arguments.temporary.data, kNoteBytes / kClearBytes}, device_), &chain);
    }
    LaunchLines(&chain, lines);
    if (listens) LaunchNote(&chain, lines.write);
    return {};
  }

 private:
  static constexpr uint64_t kNoteBytes = kClearBytes;  // first_bad

  const LinesParameters lines_;
  const DeviceTraits device_;
};

// cuda.tiles: updates are sorted by part of the output, then every tile is written once.
class ScatterTiles final : public ScatterKernel {
 public:
  explicit ScatterTiles(const ScatterSetup& setup)
      : ScatterKernel(setup), tiles_(PlanTiles(setup.tuples, Iterations(setup.slot_nest))) {}

  uint64_t temporary_bytes() const override { return TilesTemporaryBytes(tiles_, setup_.element_bytes); }

  Status Run(const KernelArguments& arguments) const override {
    TilesParameters tiles = tiles_;
    tiles.tuples.indices = arguments.inputs[1].data;
    tiles.input = arguments.inputs[0].data;
    tiles.updates = arguments.inputs[2].data;
    tiles.output = arguments.outputs[0].data;
    tiles.note = arguments.note();
    KernelChain chain(arguments.stream);
    LaunchTiles(&chain, setup_.element_bytes, tiles, arguments.temporary.data);
    return {};
  }

 private:
  const TilesParameters tiles_;
};

// cuda.gather: every slot is filled from the update that claimed it, or from the input.
class ScatterGather final : public ScatterKernel {
 public:
  ScatterGather(const ScatterSetup& setup, const DeviceTraits& device)
      : ScatterKernel(setup),
        claims_(ClaimPerSlot(setup)),
        scratch_(claims_, setup.tuples.positions),
        device_(device) {}

  uint64_t temporary_bytes() const override { return scratch_.bytes(); }

  Status Run(const KernelArguments& arguments) const override {
    const ClaimTable claims = scratch_.Place(claims_, arguments.temporary, arguments.note());
    const auto gather = PlanGather(setup_, claims, arguments);
    KernelChain chain(arguments.stream);
    Launch(PlanClear(scratch_.Clear(arguments.temporary), device_), &chain);
    Launch(PlanPrepare(true, gather.parameters.write, CopyOfSlots(setup_, gather.parameters)), &chain);
    Launch(gather, &chain);
    return {};
  }

 private:
  const ClaimTable claims_;
  const ClaimScratch scratch_;
  const DeviceTraits device_;
};

// cuda.claims: claims are made while the input is copied, then the winners are written.
class ScatterClaims final : public ScatterKernel {
 public:
  ScatterClaims(const ScatterSetup& setup, const DeviceTraits& device)
      : ScatterKernel(setup), scratch_(setup.claims, setup.tuples.positions), device_(device) {}

  uint64_t temporary_bytes() const override { return scratch_.bytes(); }

  Status Run(const KernelArguments& arguments) const override {
    WriteParameters write = setup_.WriteOf(arguments);
    write.claims = scratch_.Place(setup_.claims, arguments.temporary, write.note);
    const bool claims = write.claims.kind != ClaimTable::Kind::kNone || write.note != nullptr;
    KernelChain chain(arguments.stream);
    if (claims) Launch(PlanClear(scratch_.Clear(arguments.temporary), device_), &chain);
    if (claims || setup_.Copies(arguments)) {
      Launch(PlanPrepare(claims, write, setup_.CopyOf(arguments)), &chain);
    }
    Launch(PlanWrite(write), &chain);
    return {};
  }

 private:
  const ClaimScratch scratch_;
  const DeviceTraits device_;
};

// cuda.by_memory: the best algorithm if input and output are the same memory, and the best if they are not.
class ScatterByMemory final : public CompositeKernel {
 public:
  ScatterByMemory(LoweredOperator apart, LoweredOperator same)
      : apart_(AddPart(apart.implementation, std::move(apart.kernel))),
        same_(AddPart(StrCat("in place ", same.implementation), std::move(same.kernel))) {}

  Status Run(const KernelArguments& arguments) const override {
    const bool is_same = arguments.inputs[0].data == arguments.outputs[0].data;
    return RunPart(is_same ? same_ : apart_, arguments);
  }

 private:
  const uint32_t apart_;
  const uint32_t same_;
};

// Contiguous in all tensors, and more than an element.
bool SliceIsContiguous(const ScatterProblem& problem) {
  LoopNest<3> slice;
  for (uint32_t d = problem.output.rank - SliceDimensions(problem); d < problem.output.rank; ++d) {
    slice.Append(problem.output.sizes[d],
                 {problem.input.strides[d], problem.updates.strides[d], problem.output.strides[d]});
  }
  return slice.rank == 1 && InnermostIsContiguous(slice);
}

Status ChooseFor(Memory memory, ScatterProblem problem, const LowerContext& context,
                 LoweredOperator* chosen) {
  problem.memory = memory;
  return ChooseKernel(problem, context.ForPart(), chosen);
}

}  // namespace

std::unique_ptr<const Kernel> CreateScatterCudaByMemory(const ScatterProblem& problem,
                                                        const LowerContext& context, std::string* why_not) {
  if (problem.memory != Memory::kUnknown) {
    *why_not = "whether it is in place is known";
    return nullptr;
  }
  if (!SameLayout(problem.input, problem.output)) {
    *why_not = "input and output differ in layout: they are not the same memory";
    return nullptr;
  }
  LoweredOperator apart, same;
  for (const Status& status : {ChooseFor(Memory::kApart, problem, context, &apart),
                               ChooseFor(Memory::kSame, problem, context, &same)}) {
    if (!status.ok()) *why_not = status.message();
  }
  if (apart.implementation == same.implementation) {
    *why_not = StrCat("in place or not, it would be ", apart.implementation);
  }
  if (!why_not->empty()) return nullptr;
  return std::make_unique<ScatterByMemory>(std::move(apart), std::move(same));
}

std::unique_ptr<const Kernel> CreateScatterCudaSmall(const ScatterProblem& problem, const LowerContext&,
                                                     std::string* why_not) {
  const ScatterSetup setup(problem);
  if (setup.tuples.positions <= kSmallPositions) return std::make_unique<ScatterSmall>(setup);
  *why_not = StrCat(setup.tuples.positions, " updates; the memory of a block has room for the claims of ",
                    kSmallPositions);
  return nullptr;
}

std::string ScatterCudaSmallBetterNot(const ScatterProblem& problem, const LowerContext&) {
  const ScatterSetup setup(problem);
  const uint64_t copied = problem.memory == Memory::kSame ? 0 : setup.output_bytes;
  if (std::max(copied, setup.updates_bytes) <= kSmallBytes) return {};
  return StrCat(copied, " bytes to copy and ", setup.updates_bytes, " to update; one block is faster up to ",
                kSmallBytes);
}

std::unique_ptr<const Kernel> CreateScatterCudaLines(const ScatterProblem& problem,
                                                     const LowerContext& context, std::string* why_not) {
  const LinesParameters lines = PlanLines(problem, context.device->multiprocessors);
  if (lines.lines != 0) {
    return std::make_unique<ScatterLines>(ScatterSetup(problem), lines, *context.device);
  }
  *why_not = problem.kind == ScatterProblem::Kind::kElements
                 ? "the lines along the axis, or their updates, are too many for a block"
                 : "there are no lines along an axis in SCATTER_ND";
  return nullptr;
}

std::string ScatterCudaLinesBetterNot(const ScatterProblem& problem, const LowerContext&) {
  if (problem.memory != Memory::kSame) return {};
  if (ScatterSetup(problem).claims.kind == ClaimTable::Kind::kDirect) return {};
  return "few elements are updated in place: only those are written";
}

std::unique_ptr<const Kernel> CreateScatterCudaTiles(const ScatterProblem& problem, const LowerContext&,
                                                     std::string* why_not) {
  const ScatterSetup setup(problem);
  if (setup.slice_nest.rank == 0 && setup.SlotsInOrder(setup.element_bytes)) {
    return std::make_unique<ScatterTiles>(setup);
  }
  *why_not = setup.slice_nest.rank == 0 ? "elements are not neighbours in input and output"
                                        : "slices have more than an element";
  return nullptr;
}

std::string ScatterCudaTilesBetterNot(const ScatterProblem& problem, const LowerContext&) {
  const ScatterSetup setup(problem);
  const uint32_t positions = setup.tuples.positions;
  if (positions <= kFewPositions) {
    return StrCat(positions, " updates; putting them in order pays beyond ", kFewPositions);
  }
  if (problem.memory != Memory::kSame) return {};
  const uint64_t slots = Iterations(setup.slot_nest);
  if (setup.claims.kind != ClaimTable::Kind::kNone && slots / positions < kDenseSlots) return {};
  return StrCat(positions, " updates of ", slots, " elements in place: only those are written");
}

std::unique_ptr<const Kernel> CreateScatterCudaGather(const ScatterProblem& problem,
                                                      const LowerContext& context, std::string* why_not) {
  if (SliceIsContiguous(problem)) {
    return std::make_unique<ScatterGather>(ScatterSetup(problem), *context.device);
  }
  *why_not = "slices are not contiguous, or single elements";
  return nullptr;
}

std::string ScatterCudaGatherBetterNot(const ScatterProblem& problem, const LowerContext&) {
  if (problem.memory == Memory::kSame) return "in place only what is updated need be written";
  const ScatterSetup setup(problem);
  const uint64_t slice_bytes = Iterations(setup.slice_nest) * setup.element_bytes;
  if (slice_bytes >= kGatherSliceBytes) return {};
  return StrCat("slices have ", slice_bytes, " bytes; an entry for each pays from ", kGatherSliceBytes,
                " on");
}

std::unique_ptr<const Kernel> CreateScatterCudaClaims(const ScatterProblem& problem,
                                                      const LowerContext& context, std::string*) {
  return std::make_unique<ScatterClaims>(ScatterSetup(problem), *context.device);
}

}  // namespace anydml
