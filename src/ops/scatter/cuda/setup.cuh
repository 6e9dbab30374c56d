// What the algorithms of scatter on a device have in common: the problem as a device takes it, and the
// parameters of their kernels.
#pragma once

#include "kernel/scratch_layout.h"
#include "ops/scatter/cuda/kernels.cuh"
#include "ops/scatter/plan.h"

namespace anydml {

// Where a table of claims lies in the temporary resource.
struct ClaimScratch {
  ClaimScratch(const ClaimTable& claims, uint32_t positions);

  // `claims` in `memory`. Without a note nobody wants to know what is out of range.
  ClaimTable Place(ClaimTable claims, const Buffer& memory, const DataErrorNote* note) const;

  // All of it is cleared before the first claim, in words of 16 bytes.
  uint64_t bytes() const { return SaturatingAlignUp(layout.bytes(), sizeof(uint4)); }
  ClearParameters Clear(const Buffer& memory) const {
    return {reinterpret_cast<uint4*>(memory.data), bytes() / sizeof(uint4)};
  }

  ScratchLayout layout;  // before its pieces
  ScratchLayout::Piece first_bad, lost, entries;
};

struct ScatterSetup {
  explicit ScatterSetup(const ScatterProblem& problem);

  // Slots lie one behind the other, in input and output, in the order of their numbers.
  bool SlotsInOrder(uint64_t slice_bytes) const;

  // False where input and output are the same memory.
  bool Copies(const KernelArguments& arguments) const {
    return !(may_be_same && arguments.inputs[0].data == arguments.outputs[0].data);
  }

  DeviceCopy CopyOf(const KernelArguments& arguments) const;
  // Without claims.
  WriteParameters WriteOf(const KernelArguments& arguments) const;
  // The largest unit that divides `bytes`, and the slices in such units.
  void SetUnit(uint64_t bytes, WriteParameters* write) const;

  std::string Describe(const DataErrorNote& note) const {
    return DescribeBadTuple(problem, note.values, PositionCoordinate(problem, note.position));
  }

  const ScatterProblem problem;
  const uint32_t element_bytes;
  const bool may_be_same;  // input and output have the same layout
  const DeviceTuples tuples;
  const LoopNest<2> copy_nest;
  const LoopNest<2> slice_nest;  // updates and output
  const LoopNest<2> slot_nest;   // input and output, in bytes
  const ClaimTable claims;
  const uint64_t output_bytes;
  const uint64_t updates_bytes;

 private:
  // All distances between slices, in bytes, or-ed together.
  uint64_t TupleStrides() const;
};

}  // namespace anydml
