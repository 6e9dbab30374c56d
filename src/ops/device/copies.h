// Many copies and fills on a GPU in few launches. They are planned once, and launched with each run's
// buffers. Plain data, the same for every GPU backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "kernel/kernel.h"
#include "ops/device/copy.h"
#include "ops/device/grid.h"
#include "ops/device/tiles.h"

namespace anydml {

// A copy and the buffers that it uses. Loops are in the order of the target's addresses. Strides of the
// source may be negative, as two's complement.
struct PlacedCopy {
  enum Source { kInput, kOutput, kFill };
  Source source = kInput;
  uint32_t from = 0;        // input or output index
  uint32_t to = 0;          // output index
  int64_t from_offset = 0;  // of the first element, in elements
  int64_t to_offset = 0;
  LoopNest<2> nest;
};

inline constexpr uint32_t kCopyThreads = 256;
// Limits that keep a launch's parameters below 4 KiB.
inline constexpr uint32_t kMostMixedCopies = 12, kMostSameCopies = 224;

// Sixteen bytes of elements to fill with.
struct alignas(16) FillPattern {
  uint32_t words[4];
};

// The parameters of each kernel. Where `from` is null the pattern is written.

// The blocks of one copy.
struct OneCopy {
  FillPattern pattern;
  DeviceCopy copy;
};

// Several copies, one after the other.
struct MixedCopies {
  FillPattern pattern;
  uint32_t ends[kMostMixedCopies];  // prefix sums of the copies' block counts
  DeviceCopy copies[kMostMixedCopies];
};

// Copies with the same loops. Blocks of different copies alternate, so that copies that read the same memory
// find it in the cache.
struct SameCopies {
  FillPattern pattern;
  DeviceCopy shape;
  FastDivisor count;
  const std::byte* from[kMostSameCopies];
  std::byte* to[kMostSameCopies];
};
static_assert(sizeof(MixedCopies) <= 4096 && sizeof(SameCopies) <= 4096);

// Copies every second element of a row: a thread reads two units of kMaxUnitBytes and writes one.
struct EverySecondCopy {
  DeviceCopy copy;
};

// A copy with a broadcast source: a thread reads a unit once and writes it to several targets.
struct RepeatedCopy {
  const std::byte* from;
  std::byte* to;
  FastDivisor units;    // of the source
  uint32_t repeats;     // targets per unit
  uint32_t per_thread;  // targets per thread
  DeviceNest<2> nest;   // in units
  DeviceNest<1> targets;
};

// A copy through tiles: source and target are contiguous along different loops.
struct TransposedCopy {
  // What a thread reads at one time: elements (any strides), vectors of 16 bytes, or words of 4 bytes. For
  // vectors and words, neighbours have a stride of 1 on both sides, and 16 bytes are written at one time.
  enum class Reads : uint8_t { kElements, kWords, kVectors };

  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  LoopNest<2>::Loop rows;     // the loop along which the source is contiguous
  LoopNest<2>::Loop columns;  // the loop along which the target is contiguous
  TileOrder order;            // of TransposeTileOf
  DeviceNest<2> outer;
};

struct CopyLaunch {
  Grid grid;
  uint32_t unit_bytes = 1;  // RepeatedCopy: of a unit; EverySecondCopy, TransposedCopy: of an element
  TransposedCopy::Reads reads = TransposedCopy::Reads::kElements;
  std::variant<OneCopy, MixedCopies, SameCopies, EverySecondCopy, RepeatedCopy, TransposedCopy> parameters;
};

class DeviceCopies {
 public:
  // The copies are independent.
  DeviceCopies(std::vector<PlacedCopy> copies, uint32_t element_bytes);

  // The launches may run in any order.
  uint32_t launches() const { return static_cast<uint32_t>(groups_.size()); }
  // `fill`: the bits of an element for kFill.
  CopyLaunch Launch(uint32_t number, const KernelArguments& arguments, uint64_t fill) const;

 private:
  enum class Way : uint8_t { kMixed, kSame, kTransposed, kEverySecond, kRepeated };

  // Copies [begin, end), which share a launch.
  struct Group {
    Way way;
    uint32_t begin, end;
    TransposedCopy transposed = {};
    // For kTransposed: the largest power of two that divides all offsets, as far as sizes and strides
    // determine it.
    uint32_t from_unit = 1, to_unit = 1;  // bytes
  };

  void AddGroup(uint32_t begin, uint32_t end);
  bool AddTransposed(uint32_t number);
  bool AddEverySecond(uint32_t number);
  bool AddRepeated(uint32_t number);
  CopyLaunch LaunchMixed(const KernelArguments& arguments, const Group& group, FillPattern pattern) const;
  CopyLaunch LaunchSame(const KernelArguments& arguments, const Group& group, FillPattern pattern) const;
  CopyLaunch LaunchTransposed(const KernelArguments& arguments, const Group& group) const;
  CopyLaunch LaunchEverySecond(const KernelArguments& arguments, const Group& group) const;
  CopyLaunch LaunchRepeated(const KernelArguments& arguments, const Group& group) const;

  const std::byte* FromOf(const PlacedCopy& copy, const KernelArguments& arguments) const;
  std::byte* ToOf(const PlacedCopy& copy, const KernelArguments& arguments) const;

  uint32_t element_bytes_;
  std::vector<PlacedCopy> copies_;
  std::vector<Group> groups_;
};

}  // namespace anydml
