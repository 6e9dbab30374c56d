#include "ops/common/cuda_copies.cuh"

#include <algorithm>
#include <cstring>

#include "ops/common/cuda_transpose.cuh"

namespace anydml {
namespace {

enum Operand { kFrom = DeviceCopy::kFrom, kTo = DeviceCopy::kTo };
constexpr uint32_t kThreads = 256;
// So that the parameters of a launch are at most 4 KiB.
constexpr uint32_t kMostMixed = 12, kMostSame = 224;

// A copy, or a fill where `from` is null.
template <typename Unit>
__device__ void FillUnit(const DeviceCopy& copy, std::byte* to, uint64_t number, uint4 pattern) {
  if (number >= copy.units) return;
  uint64_t offsets[2] = {number, number};
  if (!copy.contiguous) copy.nest.OffsetsOf(static_cast<uint32_t>(number), offsets);
  Unit unit;
  memcpy(&unit, &pattern, sizeof(Unit));
  reinterpret_cast<Unit*>(to)[offsets[kTo]] = unit;
}

__device__ void CopyOrFillBlock(const DeviceCopy& copy, const std::byte* from, std::byte* to, uint64_t block,
                                uint4 pattern) {
  if (from != nullptr) return MapBlock<uint8_t>(copy, from, to, block, KeepBits{});
  DispatchByUnit(copy.unit_bytes, [&]<typename Unit>() {
    FillUnit<Unit>(copy, to, block * blockDim.x + threadIdx.x, pattern);
  });
  if (block == 0 && threadIdx.x < copy.tail_bytes) {
    // Of a word of the pattern: units and elements are powers of two.
    const uint32_t words[4] = {pattern.x, pattern.y, pattern.z, pattern.w};
    to[uint64_t{copy.units} * copy.unit_bytes + threadIdx.x] =
        static_cast<std::byte>(words[threadIdx.x / 4] >> (threadIdx.x % 4 * 8));
  }
}

struct OneCopy {
  uint4 pattern;
  DeviceCopy copy;
};

__global__ void __launch_bounds__(kThreads) CopyOneKernel(const __grid_constant__ OneCopy p) {
  WaitForPrevious();
  LetNextStart();
  CopyOrFillBlock(p.copy, p.copy.from, p.copy.to, blockIdx.x, p.pattern);
}

struct MixedCopies {
  uint4 pattern;
  uint32_t ends[kMostMixed];  // where the blocks of a copy end
  DeviceCopy copies[kMostMixed];
};

__global__ void __launch_bounds__(kThreads) CopyMixedKernel(const __grid_constant__ MixedCopies p) {
  WaitForPrevious();
  LetNextStart();
  uint32_t i = 0;
  while (blockIdx.x >= p.ends[i]) ++i;
  const DeviceCopy& copy = p.copies[i];
  CopyOrFillBlock(copy, copy.from, copy.to, blockIdx.x - (i == 0 ? 0 : p.ends[i - 1]), p.pattern);
}

struct SameCopies {
  uint4 pattern;
  DeviceCopy shape;
  FastDivisor count;
  const std::byte* from[kMostSame];
  std::byte* to[kMostSame];
};

// Blocks of different copies take turns: where copies go through the same memory, it is in the cache.
__global__ void __launch_bounds__(kThreads) CopySameKernel(const __grid_constant__ SameCopies p) {
  WaitForPrevious();
  LetNextStart();
  uint32_t i;
  const uint32_t block = p.count.Divide(blockIdx.x, &i);
  CopyOrFillBlock(p.shape, p.from[i], p.to[i], block, p.pattern);
}

// Every second element of a row, sixteen bytes of them per thread.
template <typename T>
__global__ void __launch_bounds__(kThreads) CopyEverySecondKernel(const __grid_constant__ DeviceCopy copy) {
  WaitForPrevious();
  LetNextStart();
  const uint64_t number = uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (number >= copy.units) return;
  uint64_t offsets[2];
  copy.nest.OffsetsOf(static_cast<uint32_t>(number), offsets);
  // What is skipped beside the last element is in the same sixteen bytes as that.
  const uint4* const from = reinterpret_cast<const uint4*>(copy.from) + offsets[kFrom];
  const uint4 both[2] = {__ldcs(from), __ldcs(from + 1)};
  constexpr uint32_t kCount = kMaxUnitBytes / sizeof(T);
  struct alignas(kMaxUnitBytes) {
    T elements[2 * kCount];
  } read;
  struct alignas(kMaxUnitBytes) {
    T elements[kCount];
  } kept;
  memcpy(&read, both, sizeof(read));
#pragma unroll
  for (uint32_t i = 0; i < kCount; ++i) kept.elements[i] = read.elements[2 * i];
  uint4 unit;
  memcpy(&unit, &kept, sizeof(unit));
  reinterpret_cast<uint4*>(copy.to)[offsets[kTo]] = unit;
}

// A copy whose source is repeated: a thread reads a unit once for several targets.
struct RepeatedCopy {
  const std::byte* from;
  std::byte* to;
  FastDivisor units;    // of the source
  uint32_t repeats;     // targets of a unit
  uint32_t per_thread;  // of them
  DeviceNest<2> nest;   // in units
  DeviceNest<1> targets;
};

template <typename Unit>
__global__ void __launch_bounds__(kThreads) CopyRepeatedKernel(const __grid_constant__ RepeatedCopy p) {
  WaitForPrevious();
  LetNextStart();
  const uint64_t number = uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  uint32_t unit_number;
  const uint32_t first = p.units.Divide(static_cast<uint32_t>(number), &unit_number) * p.per_thread;
  if (number > ~0u || first >= p.repeats) return;
  uint64_t offsets[2];
  p.nest.OffsetsOf(unit_number, offsets);
  const Unit unit = reinterpret_cast<const Unit*>(p.from)[offsets[kFrom]];
  Unit* const to = reinterpret_cast<Unit*>(p.to) + offsets[kTo];
  const uint32_t end = min(first + p.per_thread, p.repeats);
  for (uint32_t i = first; i < end; ++i) {
    uint64_t target[1];
    p.targets.OffsetsOf(i, target);
    to[target[0]] = unit;
  }
}

static_assert(sizeof(MixedCopies) <= 4096 && sizeof(SameCopies) <= 4096);

uint64_t Magnitude(uint64_t stride) { return static_cast<int64_t>(stride) < 0 ? 0 - stride : stride; }

bool SameNest(const LoopNest<2>& a, const LoopNest<2>& b) {
  if (a.rank != b.rank) return false;
  return std::equal(a.loops.begin(), a.loops.begin() + a.rank, b.loops.begin(),
                    [](const auto& x, const auto& y) { return x.size == y.size && x.strides == y.strides; });
}

// What nothing is read for has no strides to read it by: those of the target, as they coalesce best.
LoopNest<2> FillNest(const LoopNest<2>& nest) {
  LoopNest<2> fill;
  for (uint32_t d = 0; d < nest.rank; ++d) {
    fill.Append(nest.loops[d].size, {nest.loops[d].strides[kTo], nest.loops[d].strides[kTo]});
  }
  return fill;
}

uint4 PatternOf(uint64_t element, uint32_t element_bytes) {
  std::byte bytes[sizeof(uint4)];
  for (uint32_t i = 0; i < sizeof(bytes); i += element_bytes) std::memcpy(bytes + i, &element, element_bytes);
  uint4 pattern;
  std::memcpy(&pattern, bytes, sizeof(pattern));
  return pattern;
}

}  // namespace

DeviceCopies::DeviceCopies(std::vector<PlacedCopy> copies, uint32_t element_bytes)
    : element_bytes_(element_bytes), copies_(std::move(copies)) {
  for (PlacedCopy& copy : copies_) {
    if (copy.source == PlacedCopy::kFill) copy.nest = FillNest(copy.nest);
  }
  for (uint32_t begin = 0; begin < copies_.size();) {
    uint32_t end = begin + 1;
    while (end < copies_.size() && SameNest(copies_[begin].nest, copies_[end].nest)) ++end;
    AddGroup(begin, end);
    begin = end;
  }
}

// Copies with the same loops.
void DeviceCopies::AddGroup(uint32_t begin, uint32_t end) {
  constexpr uint32_t kFewSame = 4;
  if (end - begin <= kFewSame) {
    for (uint32_t i = begin; i < end; ++i) {
      if (AddTransposed(i) || AddEverySecond(i) || AddRepeated(i)) continue;
      Group* const last = groups_.empty() ? nullptr : &groups_.back();
      if (last != nullptr && last->way == Way::kMixed && last->end == i && i - last->begin < kMostMixed) {
        last->end = i + 1;
      } else {
        groups_.push_back({Way::kMixed, i, i + 1});
      }
    }
    return;
  }
  for (uint32_t i = begin; i < end; i += kMostSame) {
    groups_.push_back({Way::kSame, i, std::min(i + kMostSame, end)});
  }
}

bool DeviceCopies::AddTransposed(uint32_t number) {
  const LoopNest<2>& nest = copies_[number].nest;
  LoopNest<2> outer = nest;
  const auto columns = TakeInnermost(&outer);
  uint32_t across = outer.rank;
  for (uint32_t d = 0; d < outer.rank; ++d) {
    const uint64_t stride = Magnitude(outer.loops[d].strides[kFrom]);
    if (stride == 0 || stride >= Magnitude(columns.strides[kFrom])) continue;
    if (across == outer.rank || stride < Magnitude(outer.loops[across].strides[kFrom])) across = d;
  }
  // Tiles that are mostly empty would cost more than they save.
  constexpr uint64_t kLeast = 16;
  if (across == outer.rank || columns.size < kLeast || outer.loops[across].size < kLeast) return false;
  Group group = {Way::kTransposed, number, number + 1};
  TransposedCopy& copy = group.transposed;
  copy.rows = outer.loops[across];
  copy.columns = columns;
  std::copy(outer.loops.begin() + across + 1, outer.loops.begin() + outer.rank, outer.loops.begin() + across);
  --outer.rank;
  copy.outer = DeviceNest<2>(outer);
  if (copy.rows.strides[kFrom] == 1 && columns.strides[kTo] == 1) {
    uint64_t read = copy.rows.size | columns.strides[kFrom], written = columns.size | copy.rows.strides[kTo];
    for (uint32_t d = 0; d < outer.rank; ++d) {
      read |= outer.loops[d].strides[kFrom];
      written |= outer.loops[d].strides[kTo];
    }
    group.from_unit = LargestUnit(read * element_bytes_);
    group.to_unit = LargestUnit(written * element_bytes_);
  }
  groups_.push_back(group);
  return true;
}

// Rows of whole units, on both sides.
bool DeviceCopies::AddEverySecond(uint32_t number) {
  const LoopNest<2>& nest = copies_[number].nest;
  if (nest.rank == 0 || copies_[number].source == PlacedCopy::kFill) return false;
  const auto& row = nest.loops[nest.rank - 1];
  if (row.strides[kFrom] != 2 || row.strides[kTo] != 1) return false;
  uint64_t elements = row.size;
  for (uint32_t d = 0; d + 1 < nest.rank; ++d) {
    elements |= nest.loops[d].strides[kFrom] | nest.loops[d].strides[kTo];
  }
  if (LargestUnit(elements * element_bytes_) != kMaxUnitBytes) return false;
  groups_.push_back({Way::kEverySecond, number, number + 1});
  return true;
}

// Rows of neighbours, of which the source has fewer. Of several copies such are small, and go with the
// others.
bool DeviceCopies::AddRepeated(uint32_t number) {
  const LoopNest<2>& nest = copies_[number].nest;
  if (copies_.size() > 1 || copies_[number].source == PlacedCopy::kFill || !InnermostIsContiguous(nest)) {
    return false;
  }
  const auto* const end = nest.loops.data() + nest.rank;
  if (std::none_of(nest.loops.data(), end, [](const auto& loop) { return loop.strides[kFrom] == 0; })) {
    return false;
  }
  groups_.push_back({Way::kRepeated, number, number + 1});
  return true;
}

const std::byte* DeviceCopies::FromOf(const PlacedCopy& copy, const KernelArguments& arguments) const {
  if (copy.source == PlacedCopy::kFill) return nullptr;
  const std::byte* const data = copy.source == PlacedCopy::kInput ? arguments.inputs[copy.from].data
                                                                  : arguments.outputs[copy.from].data;
  return data + copy.from_offset * int64_t{element_bytes_};
}

std::byte* DeviceCopies::ToOf(const PlacedCopy& copy, const KernelArguments& arguments) const {
  return arguments.outputs[copy.to].data + copy.to_offset * int64_t{element_bytes_};
}

void DeviceCopies::LaunchMixed(KernelChain* chain, const KernelArguments& arguments, const Group& group,
                               uint4 pattern) const {
  const auto device_copy = [&](uint32_t i) {
    return MakeDeviceCopy(copies_[i].nest, element_bytes_, FromOf(copies_[i], arguments),
                          ToOf(copies_[i], arguments));
  };
  if (group.end - group.begin == 1) {
    const OneCopy one = {pattern, device_copy(group.begin)};
    return chain->Launch(CopyOneKernel, CopyBlocks(one.copy, kThreads), kThreads, one);
  }
  MixedCopies mixed = {};
  mixed.pattern = pattern;
  uint64_t blocks = 0;
  for (uint32_t i = group.begin; i < group.end; ++i) {
    DeviceCopy& copy = mixed.copies[i - group.begin];
    copy = device_copy(i);
    blocks += CopyBlocks(copy, kThreads);
    mixed.ends[i - group.begin] = static_cast<uint32_t>(blocks);
  }
  chain->Launch(CopyMixedKernel, blocks, kThreads, mixed);
}

void DeviceCopies::LaunchSame(KernelChain* chain, const KernelArguments& arguments, const Group& group,
                              uint4 pattern) const {
  SameCopies same = {};
  same.pattern = pattern;
  uint64_t addresses = 0;
  for (uint32_t i = group.begin; i < group.end; ++i) {
    const std::byte* const from = same.from[i - group.begin] = FromOf(copies_[i], arguments);
    std::byte* const to = same.to[i - group.begin] = ToOf(copies_[i], arguments);
    addresses |= AddressOf(from) | AddressOf(to);
  }
  same.count = FastDivisor(group.end - group.begin);
  same.shape = MakeDeviceCopy(copies_[group.begin].nest, element_bytes_, addresses);
  const uint64_t blocks = CopyBlocks(same.shape, kThreads) * (group.end - group.begin);
  chain->Launch(CopySameKernel, blocks, kThreads, same);
}

void DeviceCopies::LaunchTransposed(KernelChain* chain, const KernelArguments& arguments,
                                    const Group& group) const {
  TransposedCopy copy = group.transposed;
  copy.from = FromOf(copies_[group.begin], arguments);
  copy.to = ToOf(copies_[group.begin], arguments);
  const uint32_t from_unit = std::min(group.from_unit, LargestUnit(AddressOf(copy.from)));
  const uint32_t to_unit = std::min(group.to_unit, LargestUnit(AddressOf(copy.to)));
  const uint64_t outer = Iterations(copies_[group.begin].nest) / copy.rows.size / copy.columns.size;
  const auto launch = [&](void (*kernel)(TransposedCopy), uint64_t rows, uint64_t columns, uint32_t threads) {
    copy.order = TileOrder((copy.rows.size + rows - 1) / rows, (copy.columns.size + columns - 1) / columns);
    chain->Launch(kernel, outer * copy.order.tiles(), threads, copy);
  };
  DispatchByUnit(element_bytes_, [&]<typename T>() {
    if constexpr (sizeof(T) <= 8) {
      constexpr uint32_t kRows = kTransposeRows<T>, kColumns = kTransposeColumns<T>;
      constexpr uint32_t kTileThreads = VectorTile<T>::kThreads;
      using enum TransposeReads;
      if (to_unit == kMaxUnitBytes && from_unit == kMaxUnitBytes) {
        return launch(TransposeVectorsKernel<T, kVectors>, kRows, kColumns, kTileThreads);
      }
      if constexpr (sizeof(T) <= 4) {
        if (to_unit == kMaxUnitBytes && from_unit >= 4) {
          return launch(TransposeVectorsKernel<T, kWords>, kRows, kColumns, kTileThreads);
        }
      }
      launch(TransposeKernel<T>, kRows, kColumns, kTransposeThreads);
    }
  });
}

// False where addresses do not allow it.
bool DeviceCopies::LaunchEverySecond(KernelChain* chain, const KernelArguments& arguments,
                                     const Group& group) const {
  DeviceCopy copy;
  copy.from = FromOf(copies_[group.begin], arguments);
  copy.to = ToOf(copies_[group.begin], arguments);
  if (LargestUnit(AddressOf(copy.from) | AddressOf(copy.to)) != kMaxUnitBytes) return false;
  const LoopNest<2> in_units = InUnits(copies_[group.begin].nest, kMaxUnitBytes / element_bytes_);
  copy.units = static_cast<uint32_t>(Iterations(in_units));
  copy.nest = DeviceNest<2>(in_units);
  DispatchByUnit(element_bytes_, [&]<typename T>() {
    if constexpr (sizeof(T) <= 8) {
      chain->Launch(CopyEverySecondKernel<T>, CopyBlocks(copy, kThreads), kThreads, copy);
    }
  });
  return true;
}

void DeviceCopies::LaunchRepeated(KernelChain* chain, const KernelArguments& arguments,
                                  const Group& group) const {
  const LoopNest<2>& nest = copies_[group.begin].nest;
  RepeatedCopy copy = {};
  copy.from = FromOf(copies_[group.begin], arguments);
  copy.to = ToOf(copies_[group.begin], arguments);
  const uint32_t unit_bytes =
      LargestUnit(AddressOf(copy.from) | AddressOf(copy.to) | UnitConstraints(nest, element_bytes_));
  const LoopNest<2> in_units = InUnits(nest, unit_bytes / element_bytes_);
  LoopNest<2> once;
  LoopNest<1> targets;
  for (uint32_t d = 0; d < in_units.rank; ++d) {
    const auto& loop = in_units.loops[d];
    if (loop.strides[kFrom] == 0) {
      targets.Append(loop.size, {loop.strides[kTo]});
    } else {
      once.Append(loop.size, loop.strides);
    }
  }
  copy.units = FastDivisor(static_cast<uint32_t>(Iterations(once)));
  copy.repeats = static_cast<uint32_t>(Iterations(targets));
  copy.nest = DeviceNest<2>(once);
  copy.targets = DeviceNest<1>(targets);
  // More of a thread save reads, as long as there are threads enough.
  constexpr uint64_t kEnough = 1 << 17, kMost = 16;
  const uint64_t all = Iterations(in_units);
  copy.per_thread =
      static_cast<uint32_t>(std::clamp<uint64_t>(all / kEnough, 1, std::min<uint64_t>(kMost, copy.repeats)));
  const uint64_t parts = (copy.repeats + copy.per_thread - 1) / copy.per_thread;
  const uint64_t blocks = (copy.units.divisor() * parts + kThreads - 1) / kThreads;
  DispatchByUnit(unit_bytes,
                 [&]<typename Unit>() { chain->Launch(CopyRepeatedKernel<Unit>, blocks, kThreads, copy); });
}

void DeviceCopies::Launch(KernelChain* chain, const KernelArguments& arguments, uint64_t fill) const {
  const uint4 pattern = PatternOf(fill, element_bytes_);
  for (const Group& group : groups_) {
    switch (group.way) {
      case Way::kMixed:
        LaunchMixed(chain, arguments, group, pattern);
        break;
      case Way::kSame:
        LaunchSame(chain, arguments, group, pattern);
        break;
      case Way::kTransposed:
        LaunchTransposed(chain, arguments, group);
        break;
      case Way::kEverySecond:
        if (!LaunchEverySecond(chain, arguments, group)) LaunchMixed(chain, arguments, group, pattern);
        break;
      case Way::kRepeated:
        LaunchRepeated(chain, arguments, group);
    }
  }
}

}  // namespace anydml
