#include "ops/scatter/cuda/kernels.cuh"

namespace anydml {
namespace {

// Copying needs all the threads that a multiprocessor can have.
constexpr uint32_t kBlocksAtOnce = 2048 / kScatterThreads;

// The role of a block of ScatterPrepare: the kinds alternate while there are both, so that no claims remain
// for the end, when nothing would hide their latency.
struct Role {
  bool claims;
  uint64_t number;  // among the blocks of its kind
};
__device__ Role RoleOf(const PrepareParameters& p, uint64_t block) {
  const uint64_t turns = min(p.claim_blocks, p.copy_blocks);
  if (block < 2 * turns) return {block % 2 == 0, block / 2};
  return {p.claim_blocks > turns, block - turns};
}

// Unit `number` of all slices.
struct SliceUnit {
  uint32_t position;
  uint64_t from;  // the unit's place in its slice, in units of the updates
  uint64_t to;    // and of the output
};
__device__ SliceUnit SliceUnitOf(const WriteParameters& p, uint32_t number) {
  if (p.slice_units.divisor() == 1) return {number, 0, 0};
  uint32_t unit;
  const uint32_t position = p.slice_units.Divide(number, &unit);
  if (p.contiguous) return {position, unit, unit};
  uint64_t offsets[2];
  p.slice.OffsetsOf(unit, offsets);
  return {position, offsets[0], offsets[1]};
}

// Writes unit `number`. `ready` is called when all reads of the operator's inputs are in flight, and returns
// when claims and copy are complete.
template <typename Unit, typename Ready>
__device__ void WriteUnit(const WriteParameters& p, const ClaimTable& claims, uint64_t number, Ready ready) {
  if (number >= p.units) return;
  const SliceUnit unit = SliceUnitOf(p, static_cast<uint32_t>(number));
  const ScatterTarget target = ReadTarget(p.tuples, unit.position);
  const Unit value = __ldcs(reinterpret_cast<const Unit*>(p.updates + target.updates) + unit.from);
  ready();
  if (target.in_range && !HasLost(claims, unit.position)) {
    reinterpret_cast<Unit*>(p.output + target.output)[unit.to] = value;
  }
}

__device__ void WriteNoteOnce(const DeviceTuples& tuples, const ClaimTable& claims, DataErrorNote* note) {
  if (note != nullptr && blockIdx.x == 0 && threadIdx.x == 0) {
    WriteNote(tuples, LoadAfterClaims(claims.first_bad), note);
  }
}

__global__ void __launch_bounds__(kScatterThreads) ScatterClear(ClearParameters p) {
  LetNextStart();
  const uint64_t step = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < p.count; i += step) {
    static_cast<uint4*>(p.words)[i] = uint4{0, 0, 0, 0};
  }
}

__global__ void __launch_bounds__(kScatterThreads, kBlocksAtOnce)
    ScatterPrepare(const __grid_constant__ PrepareParameters p) {
  LetNextStart();
  const Role role = RoleOf(p, blockIdx.x);
  if (role.claims) {
    WaitForPrevious();  // for the cleared table; the copy need not wait
    ClaimPosition(p.claims, p.tuples, role.number * kScatterThreads + threadIdx.x);
  } else {
    CopyBlock(p.copy, role.number);
  }
}

template <typename Unit>
__global__ void __launch_bounds__(kScatterThreads) ScatterWrite(const __grid_constant__ WriteParameters p) {
  WriteUnit<Unit>(p, p.claims, uint64_t{blockIdx.x} * kScatterThreads + threadIdx.x,
                  [] { WaitForPrevious(); });
  WriteNoteOnce(p.tuples, p.claims, p.note);
}

__global__ void ScatterNote(const __grid_constant__ WriteParameters p) {
  WaitForPrevious();
  WriteNoteOnce(p.tuples, p.claims, p.note);
}

// Unit `number` of all slots.
template <typename Unit>
__device__ void GatherUnit(const ScatterGatherParameters& p, uint64_t number) {
  if (number >= p.units) return;
  uint32_t unit;
  const uint32_t slot = p.write.slice_units.Divide(static_cast<uint32_t>(number), &unit);
  const uint32_t claim = LoadAfterClaims(&DirectEntries(p.write.claims)[slot]);
  uint64_t at[2];
  p.slots.OffsetsOf(slot, at);
  const std::byte* slice = claim == 0 ? p.input + at[DeviceCopy::kFrom]
                                      : p.write.updates + UpdatesOffset(p.write.tuples, claim - 1);
  const Unit value = __ldcs(reinterpret_cast<const Unit*>(slice) + unit);
  __stcs(reinterpret_cast<Unit*>(p.write.output + at[DeviceCopy::kTo]) + unit, value);
}

// A warp, for 32 positions: writes the slices of those that hold copied slots.
template <typename Unit>
__device__ void WriteCopiedSlots(const ScatterGatherParameters& p, uint64_t position) {
  const WriteParameters& w = p.write;
  ScatterTarget target = {};
  if (position < w.tuples.positions) target = ReadTarget(w.tuples, static_cast<uint32_t>(position));
  WaitForPrevious();
  const bool writes = target.in_range && target.slot < p.copied_slots &&
                      LoadAfterClaims(&DirectEntries(w.claims)[target.slot]) == position + 1;
  for (uint32_t left = __ballot_sync(~0u, writes); left != 0; left &= left - 1) {
    const int lane = __ffs(left) - 1;
    const auto* from = reinterpret_cast<const Unit*>(w.updates + __shfl_sync(~0u, target.updates, lane));
    auto* to = reinterpret_cast<Unit*>(w.output + __shfl_sync(~0u, target.output, lane));
    for (uint32_t i = threadIdx.x % 32; i < w.slice_units.divisor(); i += 32) to[i] = __ldcs(from + i);
  }
}

template <typename Unit>
__global__ void __launch_bounds__(kScatterThreads, kBlocksAtOnce)
    ScatterGather(const __grid_constant__ ScatterGatherParameters p) {
  if (blockIdx.x < p.write_blocks) {
    WriteCopiedSlots<Unit>(p, uint64_t{blockIdx.x} * kScatterThreads + threadIdx.x);
  } else {
    WaitForPrevious();
    const uint64_t copied_units = uint64_t{p.copied_slots} * p.write.slice_units.divisor();
    const uint64_t block = blockIdx.x - p.write_blocks;
    GatherUnit<Unit>(p, copied_units + block * kScatterThreads + threadIdx.x);
  }
  WriteNoteOnce(p.write.tuples, p.write.claims, p.write.note);
}

template <typename Unit>
__global__ void __launch_bounds__(kScatterSmallThreads)
    ScatterSmall(const __grid_constant__ SmallParameters p) {
  __shared__ uint64_t entries[kSmallEntries];
  __shared__ uint32_t lost[kSmallPositions / 32];
  __shared__ uint32_t first_bad;
  ClaimTable claims = p.write.claims;
  claims.entries = entries;
  claims.lost = lost;
  claims.first_bad = &first_bad;
  for (uint32_t i = threadIdx.x; i < claims.count; i += blockDim.x) entries[i] = 0;
  for (uint32_t i = threadIdx.x; i < kSmallPositions / 32; i += blockDim.x) lost[i] = 0;
  if (threadIdx.x == 0) first_bad = 0;
  for (uint64_t block = 0; block * blockDim.x < uint64_t{p.copy.units} + p.copy.tail_bytes; ++block) {
    CopyBlock(p.copy, block);
  }
  __syncthreads();
  for (uint64_t done = 0; done < p.write.tuples.positions; done += blockDim.x) {
    ClaimPosition(claims, p.write.tuples, done + threadIdx.x);
  }
  __syncthreads();
  for (uint64_t done = 0; done < p.write.units; done += blockDim.x) {
    WriteUnit<Unit>(p.write, claims, done + threadIdx.x, [] {});
  }
  WriteNoteOnce(p.write.tuples, claims, p.write.note);
}

}  // namespace

void Launch(const ScatterLaunch<ClearParameters>& launch, KernelChain* chain) {
  static_assert(sizeof(uint4) == kClearBytes);
  chain->Launch(ScatterClear, launch.grid, launch.parameters);
}

void Launch(const ScatterLaunch<PrepareParameters>& launch, KernelChain* chain) {
  chain->Launch(ScatterPrepare, launch.grid, launch.parameters);
}

void Launch(const ScatterLaunch<WriteParameters>& launch, KernelChain* chain) {
  DispatchByUnit(launch.parameters.unit_bytes,
                 [&]<typename Unit>() { chain->Launch(ScatterWrite<Unit>, launch.grid, launch.parameters); });
}

void Launch(const ScatterLaunch<ScatterGatherParameters>& launch, KernelChain* chain) {
  DispatchByUnit(launch.parameters.write.unit_bytes, [&]<typename Unit>() {
    chain->Launch(ScatterGather<Unit>, launch.grid, launch.parameters);
  });
}

void Launch(const ScatterLaunch<SmallParameters>& launch, KernelChain* chain) {
  DispatchByUnit(launch.parameters.write.unit_bytes,
                 [&]<typename Unit>() { chain->Launch(ScatterSmall<Unit>, launch.grid, launch.parameters); });
}

void LaunchNote(KernelChain* chain, const WriteParameters& parameters) {
  chain->Launch(ScatterNote, 1, 1, parameters);
}

}  // namespace anydml
