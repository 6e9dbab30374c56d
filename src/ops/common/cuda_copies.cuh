// Any number of copies on a device, in few launches: planned once, and run with the buffers of a run.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/kernel.h"
#include "ops/common/cuda_chain.cuh"
#include "ops/common/cuda_copy.cuh"
#include "ops/common/cuda_tiles.cuh"

namespace anydml {

// A copy with its place among the buffers of a run. Loops are in the order of the target's addresses; strides
// of the source may be negative, as their two's complement.
struct PlacedCopy {
  enum Source { kInput, kOutput, kFill };
  Source source = kInput;
  uint32_t from = 0;        // which input or output
  uint32_t to = 0;          // which output
  int64_t from_offset = 0;  // of the first element, in elements
  int64_t to_offset = 0;
  LoopNest<2> nest;
};

// Elements in tiles, where the source's neighbours are in another loop than the target's.
struct TransposedCopy {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  LoopNest<2>::Loop rows;     // with the source's neighbours
  LoopNest<2>::Loop columns;  // with the target's
  TileOrder order;            // as large as the kernel has them
  DeviceNest<2> outer;
};

class DeviceCopies {
 public:
  // They are independent of each other.
  DeviceCopies(std::vector<PlacedCopy> copies, uint32_t element_bytes);

  // `fill`: the bits of an element of kFill.
  void Launch(KernelChain* chain, const KernelArguments& arguments, uint64_t fill) const;

 private:
  enum class Way : uint8_t { kMixed, kSame, kTransposed, kEverySecond, kRepeated };

  // Copies [begin, end), that are launched together.
  struct Group {
    Way way;
    uint32_t begin, end;
    TransposedCopy transposed = {};
    // Of kTransposed: what divides all that is read and written, as far as strides and sizes decide.
    uint32_t from_unit = 1, to_unit = 1;  // bytes
  };

  void AddGroup(uint32_t begin, uint32_t end);
  bool AddTransposed(uint32_t number);
  bool AddEverySecond(uint32_t number);
  bool AddRepeated(uint32_t number);
  void LaunchMixed(KernelChain* chain, const KernelArguments& arguments, const Group& group,
                   uint4 pattern) const;
  void LaunchSame(KernelChain* chain, const KernelArguments& arguments, const Group& group,
                  uint4 pattern) const;
  void LaunchTransposed(KernelChain* chain, const KernelArguments& arguments, const Group& group) const;
  bool LaunchEverySecond(KernelChain* chain, const KernelArguments& arguments, const Group& group) const;
  void LaunchRepeated(KernelChain* chain, const KernelArguments& arguments, const Group& group) const;

  const std::byte* FromOf(const PlacedCopy& copy, const KernelArguments& arguments) const;
  std::byte* ToOf(const PlacedCopy& copy, const KernelArguments& arguments) const;

  uint32_t element_bytes_;
  std::vector<PlacedCopy> copies_;
  std::vector<Group> groups_;
};

}  // namespace anydml
