// What the tests of plans for GPUs (ops/*/plan_test.cc) share.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernel/device_traits.h"
#include "ops/device/grid.h"
#include "schema/tensor_desc.h"

namespace anydml {

// A large GPU and a small one.
inline DeviceTraits GpuTraits(uint32_t multiprocessors = 132, uint64_t shared_bytes = uint64_t{227} << 10) {
  DeviceTraits device;
  device.backend = "test";
  device.is_host = false;
  device.unit_bytes = 16;
  device.multiprocessors = multiprocessors;
  device.shared_bytes_per_block = shared_bytes;
  device.l2_bytes = uint64_t{4} << 20;
  return device;
}

inline TensorDesc PlanTensor(DataType type, const std::vector<uint32_t>& sizes) {
  return PackedTensor(type, sizes.data(), static_cast<uint32_t>(sizes.size()));
}

// Blocks that every GPU can launch.
inline void ExpectGrid(const Grid& grid, const DeviceTraits& device) {
  EXPECT_GE(grid.blocks, 1u);
  EXPECT_LE(grid.blocks, kMaxBlocks);
  EXPECT_GE(grid.threads, 1u);
  EXPECT_LE(grid.threads, 1024u);
  EXPECT_LE(grid.shared_bytes, device.shared_bytes_per_block);
}

// Such blocks, with a thread for each of `count`, and none without work.
inline void ExpectThreadFor(uint64_t count, const Grid& grid, const DeviceTraits& device) {
  ExpectGrid(grid, device);
  EXPECT_GE(grid.blocks * grid.threads, count);
  EXPECT_LT((grid.blocks - 1) * grid.threads, count);
}

}  // namespace anydml
