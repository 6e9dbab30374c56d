#include "ops/device/copies.h"

#include <algorithm>
#include <cstring>

namespace anydml {
namespace {

enum Operand { kFrom = DeviceCopy::kFrom, kTo = DeviceCopy::kTo };

uint64_t Magnitude(uint64_t stride) { return static_cast<int64_t>(stride) < 0 ? 0 - stride : stride; }

bool SameNest(const LoopNest<2>& a, const LoopNest<2>& b) {
  if (a.rank != b.rank) return false;
  return std::equal(a.loops.begin(), a.loops.begin() + a.rank, b.loops.begin(),
                    [](const auto& x, const auto& y) { return x.size == y.size && x.strides == y.strides; });
}

// A fill has no source; it gets the target's strides, which coalesce best.
LoopNest<2> FillNest(const LoopNest<2>& nest) {
  LoopNest<2> fill;
  for (uint32_t d = 0; d < nest.rank; ++d) {
    fill.Append(nest.loops[d].size, {nest.loops[d].strides[kTo], nest.loops[d].strides[kTo]});
  }
  return fill;
}

FillPattern PatternOf(uint64_t element, uint32_t element_bytes) {
  std::byte bytes[sizeof(FillPattern)];
  for (uint32_t i = 0; i < sizeof(bytes); i += element_bytes) std::memcpy(bytes + i, &element, element_bytes);
  FillPattern pattern;
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

// Adds copies with the same loops.
void DeviceCopies::AddGroup(uint32_t begin, uint32_t end) {
  constexpr uint32_t kFewSame = 4;
  if (end - begin <= kFewSame) {
    for (uint32_t i = begin; i < end; ++i) {
      if (AddTransposed(i) || AddEverySecond(i) || AddRepeated(i)) continue;
      Group* const last = groups_.empty() ? nullptr : &groups_.back();
      if (last != nullptr && last->way == Way::kMixed && last->end == i &&
          i - last->begin < kMostMixedCopies) {
        last->end = i + 1;
      } else {
        groups_.push_back({Way::kMixed, i, i + 1});
      }
    }
    return;
  }
  for (uint32_t i = begin; i < end; i += kMostSameCopies) {
    groups_.push_back({Way::kSame, i, std::min(i + kMostSameCopies, end)});
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
  // Tiles that are mostly empty cost more than they save.
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

// For rows of whole units on both sides.
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

// For contiguous rows in which the source has fewer elements. Among several copies such ones are small and
// join the others' launch.
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

CopyLaunch DeviceCopies::LaunchMixed(const KernelArguments& arguments, const Group& group,
                                     FillPattern pattern) const {
  const auto device_copy = [&](uint32_t i) {
    return MakeDeviceCopy(copies_[i].nest, element_bytes_, FromOf(copies_[i], arguments),
                          ToOf(copies_[i], arguments));
  };
  CopyLaunch launch;
  if (group.end - group.begin == 1) {
    const OneCopy one = {pattern, device_copy(group.begin)};
    launch.grid = {CopyBlocks(one.copy, kCopyThreads), kCopyThreads};
    launch.parameters = one;
    return launch;
  }
  MixedCopies& mixed = launch.parameters.emplace<MixedCopies>();
  mixed.pattern = pattern;
  uint64_t blocks = 0;
  for (uint32_t i = group.begin; i < group.end; ++i) {
    DeviceCopy& copy = mixed.copies[i - group.begin];
    copy = device_copy(i);
    blocks += CopyBlocks(copy, kCopyThreads);
    mixed.ends[i - group.begin] = static_cast<uint32_t>(blocks);
  }
  launch.grid = {blocks, kCopyThreads};
  return launch;
}

CopyLaunch DeviceCopies::LaunchSame(const KernelArguments& arguments, const Group& group,
                                    FillPattern pattern) const {
  CopyLaunch launch;
  SameCopies& same = launch.parameters.emplace<SameCopies>();
  same.pattern = pattern;
  uint64_t addresses = 0;
  for (uint32_t i = group.begin; i < group.end; ++i) {
    const std::byte* const from = same.from[i - group.begin] = FromOf(copies_[i], arguments);
    std::byte* const to = same.to[i - group.begin] = ToOf(copies_[i], arguments);
    addresses |= AddressOf(from) | AddressOf(to);
  }
  same.count = FastDivisor(group.end - group.begin);
  same.shape = MakeDeviceCopy(copies_[group.begin].nest, element_bytes_, addresses);
  launch.grid = {CopyBlocks(same.shape, kCopyThreads) * (group.end - group.begin), kCopyThreads};
  return launch;
}

CopyLaunch DeviceCopies::LaunchTransposed(const KernelArguments& arguments, const Group& group) const {
  using Reads = TransposedCopy::Reads;
  TransposedCopy copy = group.transposed;
  copy.from = FromOf(copies_[group.begin], arguments);
  copy.to = ToOf(copies_[group.begin], arguments);
  const uint32_t from_unit = std::min(group.from_unit, LargestUnit(AddressOf(copy.from)));
  const uint32_t to_unit = std::min(group.to_unit, LargestUnit(AddressOf(copy.to)));
  const auto [rows, columns] = TransposeTileOf(element_bytes_);
  copy.order = TileOrder(CeilDivide(copy.rows.size, rows), CeilDivide(copy.columns.size, columns));
  const uint64_t outer = Iterations(copies_[group.begin].nest) / copy.rows.size / copy.columns.size;
  CopyLaunch launch;
  launch.grid = {outer * copy.order.tiles(), kTransposeThreads};
  launch.unit_bytes = element_bytes_;
  if (to_unit == kMaxUnitBytes && from_unit == kMaxUnitBytes) {
    launch.reads = Reads::kVectors;
  } else if (element_bytes_ <= 4 && to_unit == kMaxUnitBytes && from_unit >= 4) {
    launch.reads = Reads::kWords;
  }
  launch.parameters = copy;
  return launch;
}

CopyLaunch DeviceCopies::LaunchEverySecond(const KernelArguments& arguments, const Group& group) const {
  CopyLaunch launch;
  DeviceCopy& copy = launch.parameters.emplace<EverySecondCopy>().copy;
  copy.from = FromOf(copies_[group.begin], arguments);
  copy.to = ToOf(copies_[group.begin], arguments);
  const LoopNest<2> in_units = InUnits(copies_[group.begin].nest, kMaxUnitBytes / element_bytes_);
  copy.units = static_cast<uint32_t>(Iterations(in_units));
  copy.nest = DeviceNest<2>(in_units);
  launch.unit_bytes = element_bytes_;
  launch.grid = {CopyBlocks(copy, kCopyThreads), kCopyThreads};
  return launch;
}

CopyLaunch DeviceCopies::LaunchRepeated(const KernelArguments& arguments, const Group& group) const {
  const LoopNest<2>& nest = copies_[group.begin].nest;
  CopyLaunch launch;
  RepeatedCopy& copy = launch.parameters.emplace<RepeatedCopy>();
  copy.from = FromOf(copies_[group.begin], arguments);
  copy.to = ToOf(copies_[group.begin], arguments);
  launch.unit_bytes =
      LargestUnit(AddressOf(copy.from) | AddressOf(copy.to) | UnitConstraints(nest, element_bytes_));
  const LoopNest<2> in_units = InUnits(nest, launch.unit_bytes / element_bytes_);
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
  // More targets per thread save reads, as long as there are enough threads.
  constexpr uint64_t kEnough = 1 << 17, kMost = 16;
  const uint64_t all = Iterations(in_units);
  copy.per_thread =
      static_cast<uint32_t>(std::clamp<uint64_t>(all / kEnough, 1, std::min<uint64_t>(kMost, copy.repeats)));
  launch.grid = GridOf(copy.units.divisor() * CeilDivide(copy.repeats, copy.per_thread), kCopyThreads);
  return launch;
}

CopyLaunch DeviceCopies::Launch(uint32_t number, const KernelArguments& arguments, uint64_t fill) const {
  const Group& group = groups_[number];
  const FillPattern pattern = PatternOf(fill, element_bytes_);
  const auto addresses_in_units = [&] {
    const PlacedCopy& copy = copies_[group.begin];
    return LargestUnit(AddressOf(FromOf(copy, arguments)) | AddressOf(ToOf(copy, arguments))) ==
           kMaxUnitBytes;
  };
  switch (group.way) {
    case Way::kSame:
      return LaunchSame(arguments, group, pattern);
    case Way::kTransposed:
      return LaunchTransposed(arguments, group);
    case Way::kRepeated:
      return LaunchRepeated(arguments, group);
    case Way::kEverySecond:
      if (addresses_in_units()) return LaunchEverySecond(arguments, group);
      [[fallthrough]];
    default:
      return LaunchMixed(arguments, group, pattern);
  }
}

}  // namespace anydml
