#include "ops/scatter/cuda_kernels.cuh"

namespace anydml {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kSmallThreads = 1024;
constexpr uint32_t kWritesPerThread = 4;

// What block number `block` of ScatterPrepare is for: the kinds take turns while there are both,
// so that no claims are left for the end, when nothing is there to hide their latencies.
struct Role {
  bool claims;
  uint64_t number;  // among the blocks of its kind
};
__device__ Role RoleOf(const PrepareParameters& p, uint64_t block) {
  const uint64_t turns = min(p.claim_blocks, p.copy_blocks);
  if (block < 2 * turns) return {block % 2 == 0, block / 2};
  return {p.claim_blocks > turns, block - turns};
}

// Unit number `number` of all slices.
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

// Units first, first + blockDim.x, ... `ready` is called when all reads of the operator's
// inputs are under way and returns when claims and copy are complete.
template <typename Unit, typename Ready>
__device__ void WriteBlock(const WriteParameters& p, const ClaimTable& claims, uint64_t first, Ready ready) {
  ScatterTarget targets[kWritesPerThread];
  uint32_t positions[kWritesPerThread];
  Unit values[kWritesPerThread];
#pragma unroll
  for (uint32_t i = 0; i < kWritesPerThread; ++i) {
    const uint64_t number = first + i * blockDim.x;
    targets[i].in_range = false;
    if (number >= p.units) continue;
    const SliceUnit unit = SliceUnitOf(p, static_cast<uint32_t>(number));
    positions[i] = unit.position;
    targets[i] = ReadTarget(p.tuples, unit.position);
    targets[i].output += unit.to * sizeof(Unit);
    values[i] = __ldcs(reinterpret_cast<const Unit*>(p.updates + targets[i].updates) + unit.from);
  }
  ready();
#pragma unroll
  for (uint32_t i = 0; i < kWritesPerThread; ++i) {
    targets[i].in_range =
        targets[i].in_range && targets[i].slot < p.slot_limit && !HasLost(claims, positions[i]);
  }
#pragma unroll
  for (uint32_t i = 0; i < kWritesPerThread; ++i) {
    if (targets[i].in_range) *reinterpret_cast<Unit*>(p.output + targets[i].output) = values[i];
  }
}

__device__ void WriteNoteOnce(const DeviceTuples& tuples, const ClaimTable& claims, DataErrorNote* note) {
  if (note != nullptr && blockIdx.x == 0 && threadIdx.x == 0) {
    WriteNote(tuples, LoadAfterClaims(claims.first_bad), note);
  }
}

__global__ void __launch_bounds__(kThreads) ScatterClear(ClearParameters p) {
  LetNextStart();
  const uint64_t step = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < p.count; i += step) {
    p.words[i] = uint4{0, 0, 0, 0};
  }
}

__global__ void __launch_bounds__(kThreads)
    ScatterPrepare(const __grid_constant__ PrepareParameters p) {
  LetNextStart();
  const Role role = RoleOf(p, blockIdx.x);
  if (role.claims) {
    WaitForPrevious();  // for the cleared table; the copy need not
    ClaimBlock(p.claims, p.tuples, role.number * kThreads * kClaimsPerThread);
  } else {
    CopyBlock(p.copy, role.number);
  }
}

template <typename Unit>
__global__ void __launch_bounds__(kThreads) ScatterWrite(const __grid_constant__ WriteParameters p) {
  const uint64_t first = uint64_t{blockIdx.x} * kThreads * kWritesPerThread + threadIdx.x;
  WriteBlock<Unit>(p, p.claims, first, [] { WaitForPrevious(); });
  WriteNoteOnce(p.tuples, p.claims, p.note);
}

__global__ void ScatterNote(const __grid_constant__ WriteParameters p) {
  WaitForPrevious();
  WriteNoteOnce(p.tuples, p.claims, p.note);
}

// The units of slots from `first` on, kThreads apart.
template <typename Unit>
__device__ void GatherBlock(const GatherParameters& p, uint64_t first) {
  const Unit* sources[kWritesPerThread];
  uint64_t targets[kWritesPerThread];
#pragma unroll
  for (uint32_t i = 0; i < kWritesPerThread; ++i) {
    const uint64_t number = first + i * kThreads;
    if (number >= p.units) continue;
    uint32_t unit;
    const uint32_t slot = p.write.slice_units.Divide(static_cast<uint32_t>(number), &unit);
    const uint32_t claim = LoadAfterClaims(&DirectEntries(p.write.claims)[slot]);
    uint64_t at[2];
    p.slots.OffsetsOf(slot, at);
    const std::byte* slice = claim == 0 ? p.input + at[DeviceCopy::kFrom]
                                        : p.write.updates + UpdatesOffset(p.write.tuples, claim - 1);
    sources[i] = reinterpret_cast<const Unit*>(slice) + unit;
    targets[i] = at[DeviceCopy::kTo] + unit * sizeof(Unit);
  }
  Unit values[kWritesPerThread];
#pragma unroll
  for (uint32_t i = 0; i < kWritesPerThread; ++i) {
    if (first + i * kThreads < p.units) values[i] = __ldcs(sources[i]);
  }
#pragma unroll
  for (uint32_t i = 0; i < kWritesPerThread; ++i) {
    if (first + i * kThreads < p.units) {
      __stcs(reinterpret_cast<Unit*>(p.write.output + targets[i]), values[i]);
    }
  }
}

template <typename Unit>
__global__ void __launch_bounds__(kThreads) ScatterGather(const __grid_constant__ GatherParameters p) {
  if (blockIdx.x < p.write_blocks) {
    const uint64_t first = uint64_t{blockIdx.x} * kThreads * kWritesPerThread + threadIdx.x;
    WriteBlock<Unit>(p.write, p.write.claims, first, [] { WaitForPrevious(); });
  } else {
    WaitForPrevious();
    const uint64_t first = uint64_t{p.write.slot_limit} * p.write.slice_units.divisor();
    const uint64_t block = blockIdx.x - p.write_blocks;
    GatherBlock<Unit>(p, first + block * kThreads * kWritesPerThread + threadIdx.x);
  }
  WriteNoteOnce(p.write.tuples, p.write.claims, p.write.note);
}

template <typename Unit>
__global__ void __launch_bounds__(kSmallThreads) ScatterSmall(const __grid_constant__ SmallParameters p) {
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
  const uint32_t units_at_a_time = blockDim.x * kCopyUnitsPerThread;
  for (uint64_t done = 0; done < uint64_t{p.copy.units} + p.copy.tail_bytes; done += units_at_a_time) {
    CopyBlock(p.copy, done / units_at_a_time);
  }
  __syncthreads();
  for (uint64_t done = 0; done < p.write.tuples.positions; done += blockDim.x * kClaimsPerThread) {
    ClaimBlock(claims, p.write.tuples, done);
  }
  __syncthreads();
  for (uint64_t done = 0; done < p.write.units; done += blockDim.x * kWritesPerThread) {
    WriteBlock<Unit>(p.write, claims, done + threadIdx.x, [] {});
  }
  WriteNoteOnce(p.write.tuples, claims, p.write.note);
}

uint64_t BlocksFor(uint64_t items, uint32_t items_per_thread) {
  const uint64_t per_block = uint64_t{kThreads} * items_per_thread;
  return (items + per_block - 1) / per_block;
}

}  // namespace

void LaunchClear(KernelChain* chain, const ClearParameters& parameters) {
  constexpr uint64_t kEnough = 132 * 4;  // to write as fast as the cache takes it
  chain->Launch(ScatterClear, std::min(BlocksFor(parameters.count, 1), kEnough), kThreads, parameters);
}

void LaunchPrepare(KernelChain* chain, bool claims, PrepareParameters parameters) {
  parameters.claim_blocks = claims ? BlocksFor(parameters.tuples.positions, kClaimsPerThread) : 0;
  parameters.copy_blocks = CopyBlocks(parameters.copy, kThreads);
  chain->Launch(ScatterPrepare, parameters.claim_blocks + parameters.copy_blocks, kThreads, parameters);
}

void LaunchWrite(KernelChain* chain, const WriteParameters& parameters) {
  DispatchByUnit(parameters.unit_bytes, [&]<typename Unit>() {
    chain->Launch(ScatterWrite<Unit>, BlocksFor(parameters.units, kWritesPerThread), kThreads, parameters);
  });
}

void LaunchNote(KernelChain* chain, const WriteParameters& parameters) {
  chain->Launch(ScatterNote, 1, 1, parameters);
}

void LaunchGather(KernelChain* chain, GatherParameters parameters) {
  const WriteParameters& write = parameters.write;
  const uint64_t copied_units = uint64_t{write.slot_limit} * write.slice_units.divisor();
  parameters.write_blocks = copied_units == 0 ? 0 : BlocksFor(write.units, kWritesPerThread);
  const uint64_t blocks =
      parameters.write_blocks + BlocksFor(parameters.units - copied_units, kWritesPerThread);
  DispatchByUnit(write.unit_bytes, [&]<typename Unit>() {
    chain->Launch(ScatterGather<Unit>, blocks, kThreads, parameters);
  });
}

void LaunchSmall(KernelChain* chain, const SmallParameters& parameters) {
  const uint32_t most = std::max(parameters.copy.units, parameters.write.units);
  const uint32_t threads = std::clamp((most + 31) / 32 * 32, 32u, kSmallThreads);
  DispatchByUnit(parameters.write.unit_bytes,
                 [&]<typename Unit>() { chain->Launch(ScatterSmall<Unit>, 1, threads, parameters); });
}

}  // namespace anydml
