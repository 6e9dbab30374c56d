// Plan of a GPU scatter: blocks and parameters. Plain data, the same for every GPU backend; the backend adds
// addresses and launches.
//
// Every position claims the slot that its tuple names. The latest position keeps the slot; the others lose
// it. The launches, in order:
// - kClear clears the claims.
// - kPrepare makes the claims and copies the input at the same time: blocks of both kinds alternate.
// - kWrite writes the slices of positions that kept their slots. If slices are contiguous, kGather replaces
//   it and fills every slot from the update that holds it or from the input.
// kSmall does everything in one block, with claims in shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernel/device_traits.h"
#include "kernel/kernel.h"
#include "kernel/scratch_layout.h"
#include "ops/device/copy.h"
#include "ops/device/grid.h"
#include "ops/device/nest.h"
#include "ops/scatter/loops.h"
#include "ops/scatter/problem.h"

namespace anydml {

inline constexpr uint32_t kScatterThreads = 256;
inline constexpr uint32_t kScatterSmallThreads = 1024;  // of kSmall, at most
// The maximum numbers of claims and of positions for kSmall.
inline constexpr uint32_t kSmallEntries = 4096;
inline constexpr uint32_t kSmallPositions = kSmallEntries / 2;
// The unit of clearing.
inline constexpr uint64_t kClearBytes = 16;

// Slots are the possible targets of slices, in row-major order: two positions have the same target exactly if
// they have the same slot. (A tensor has fewer than 2^32 elements, so numbers of positions and slots have 32
// bits.)
struct DeviceTuples {
  struct Component {
    uint64_t size;           // of the addressed dimension
    uint64_t wrap;           // added to negative indices: the size, or 0 if these are out of range
    uint64_t output_stride;  // of the addressed dimension, in bytes
    uint64_t index_offset;   // from component 0, in indices
    uint32_t slot_stride;
  };

  const std::byte* indices = nullptr;
  bool wide = false;  // indices have 64 bits
  bool is_signed = false;
  uint32_t tuple_size = 1;
  uint32_t positions = 0;
  Component tuple[kMaxDimensions] = {};

  // Row-major. Updates and output in bytes, indices in indices.
  enum Operand { kIndices, kUpdates, kOutput, kSlot };
  DeviceNest<4> nest;
};

DeviceTuples MakeDeviceTuples(const ScatterProblem& problem);

// The number of slots.
uint64_t SlotCount(const ScatterProblem& problem);

// All memory must be 0 before the first claim. A claim is a position plus one.
struct ClaimTable {
  enum class Kind {
    kNone,    // no two positions have the same target
    kDirect,  // an entry per slot: the claim
    kHashed,  // open addressing, for few positions and many slots: slot and claim. Stays in the cache.
  };

  Kind kind = Kind::kNone;
  uint32_t count = 0;             // of entries; for kHashed a power of two, at least twice the positions
  void* entries = nullptr;        // uint32_t, or for kHashed uint64_t
  uint32_t* lost = nullptr;       // a bit per position; null if only entries are needed
  uint32_t* first_bad = nullptr;  // the complement of the first position out of range; null if not requested

  uint64_t entry_bytes() const { return kind == Kind::kHashed ? sizeof(uint64_t) : sizeof(uint32_t); }
};

inline uint64_t LostWords(uint64_t positions) { return (positions + 31) / 32; }

struct ClearParameters {
  void* words;  // of kClearBytes: all of the claims
  uint64_t count;
};

// Claims and the copy of the input are independent; claims wait for the cache and the copy for memory, so
// blocks of both kinds run side by side.
struct PrepareParameters {
  DeviceTuples tuples;
  ClaimTable claims;
  DeviceCopy copy;
  uint64_t claim_blocks;
  uint64_t copy_blocks;
};

// Every position that kept its slot writes its slice, in units.
struct WriteParameters {
  DeviceTuples tuples;
  ClaimTable claims;
  const std::byte* updates;
  std::byte* output;
  DataErrorNote* note;
  uint32_t unit_bytes;
  FastDivisor slice_units;
  bool contiguous;  // slices are contiguous, in updates and output
  DeviceNest<2> slice;
  uint32_t units;  // of all slices
};

// For contiguous slices: every slot takes its slice from the update that holds it, or from the input, so that
// nothing is read or written twice. The first slots were already copied while claims were made; their updates
// are written separately.
struct ScatterGatherParameters {
  WriteParameters write;  // claims are kDirect
  const std::byte* input;
  DeviceNest<2> slots;    // input and output, in bytes
  uint32_t units;         // of all slots
  uint32_t copied_slots;  // the first slots
  uint64_t write_blocks;  // that write the updates of the first slots; the blocks after them fill slots
};

struct SmallParameters {
  DeviceCopy copy;
  WriteParameters write;  // claims.entries and so on are the block's
};

template <typename Parameters>
struct ScatterLaunch {
  Grid grid;
  Parameters parameters;
};

// The location of a table of claims in the temporary resource.
struct ClaimScratch {
  ClaimScratch(const ClaimTable& claims, uint32_t positions);

  // `claims` in `memory`. With a null note, indices out of range are not reported.
  ClaimTable Place(ClaimTable claims, const Buffer& memory, const DataErrorNote* note) const;

  // All of it is cleared before the first claim, in words of 16 bytes.
  uint64_t bytes() const { return SaturatingAlignUp(layout.bytes(), kClearBytes); }
  ClearParameters Clear(const Buffer& memory) const { return {memory.data, bytes() / kClearBytes}; }

  ScratchLayout layout;  // before its pieces
  ScratchLayout::Piece first_bad, lost, entries;
};

// The part that all ways to scatter share.
struct ScatterSetup {
  explicit ScatterSetup(const ScatterProblem& problem);

  // Slots are contiguous in input and output, in the order of their numbers.
  bool SlotsInOrder(uint64_t slice_bytes) const;

  // False if input and output are the same memory.
  bool Copies(const KernelArguments& arguments) const {
    return !(may_be_same && arguments.inputs[0].data == arguments.outputs[0].data);
  }

  DeviceCopy CopyOf(const KernelArguments& arguments) const;
  // Without claims.
  WriteParameters WriteOf(const KernelArguments& arguments) const;
  // Sets the largest unit that divides `bytes`, and the number of such units per slice.
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
  // All strides between slices, in bytes, or-ed together.
  uint64_t TupleStrides() const;
};

ScatterLaunch<ClearParameters> PlanClear(const ClearParameters& clear, const DeviceTraits& device);
// Without `claims` it only copies.
ScatterLaunch<PrepareParameters> PlanPrepare(bool claims, const WriteParameters& write,
                                             const DeviceCopy& copy);
ScatterLaunch<WriteParameters> PlanWrite(const WriteParameters& write);
ScatterLaunch<ScatterGatherParameters> PlanGather(const ScatterSetup& setup, const ClaimTable& claims,
                                                  const KernelArguments& arguments);
// The updates of the slots that `gather` leaves out.
DeviceCopy CopyOfSlots(const ScatterSetup& setup, const ScatterGatherParameters& gather);
ScatterLaunch<SmallParameters> PlanSmall(const ScatterSetup& setup, const KernelArguments& arguments);

// An entry per slot.
ClaimTable ClaimPerSlot(const ScatterSetup& setup);

}  // namespace anydml
