// Runs planned GPU copies on the host, one thread after the other.
#include "ops/device/copies.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "support/plan_checks.h"

namespace anydml {
namespace {

constexpr uint64_t kFill = 0x0123456789ABCDEF;
using Reads = TransposedCopy::Reads;

// Executes launches on host memory, and counts how often each byte of the output is written.
class Device {
 public:
  Device(size_t input_bytes, size_t output_bytes)
      : input_(Aligned(input_bytes)), output_(Aligned(output_bytes)) {
    for (size_t i = 0; i < input_bytes; ++i) from()[i] = static_cast<std::byte>(1 + i * 7 + i / 251);
    writes.resize(output_bytes);
  }

  void Run(const DeviceCopies& copies) {
    const Buffer in = {from(), 0}, out = {to(), 0};
    KernelArguments arguments;
    arguments.inputs = {&in, 1};
    arguments.outputs = {&out, 1};
    for (uint32_t i = 0; i < copies.launches(); ++i) {
      launches.push_back(copies.Launch(i, arguments, kFill));
      ExpectGrid(launches.back().grid, GpuTraits());
      std::visit([&](const auto& p) { Run(launches.back(), p); }, launches.back().parameters);
    }
  }

  std::byte* from() { return At(input_, from_offset); }
  std::byte* to() { return At(output_, to_offset); }

  size_t from_offset = 0, to_offset = 0;  // counted from a multiple of 16
  std::vector<int> writes;
  std::vector<CopyLaunch> launches;

 private:
  static std::vector<std::byte> Aligned(size_t bytes) { return std::vector<std::byte>(bytes + 32); }
  static std::byte* At(std::vector<std::byte>& memory, size_t offset) {
    const size_t misaligned = AddressOf(memory.data()) % 16;
    return memory.data() + (16 - misaligned) % 16 + offset;
  }

  void Write(std::byte* target, const void* source, uint32_t bytes, uint32_t alignment) {
    ASSERT_EQ(AddressOf(target) % alignment, 0u);
    ASSERT_GE(target, to());
    ASSERT_LE(target + bytes, to() + writes.size());
    std::memcpy(target, source, bytes);
    for (uint32_t b = 0; b < bytes; ++b) ++writes[target - to() + b];
  }

  void Block(const DeviceCopy& copy, const std::byte* from, std::byte* to, uint64_t block,
             const FillPattern& pattern) {
    for (uint32_t thread = 0; thread < kCopyThreads; ++thread) {
      const uint64_t number = block * kCopyThreads + thread;
      const uint32_t bytes = copy.unit_bytes;
      if (number < copy.units) {
        uint64_t at[2] = {number, number};
        if (!copy.contiguous) copy.nest.OffsetsOf(static_cast<uint32_t>(number), at);
        if (from != nullptr) {
          ASSERT_EQ(AddressOf(from) % bytes, 0u);
        }
        Write(to + at[DeviceCopy::kTo] * bytes,
              from != nullptr ? static_cast<const void*>(from + at[DeviceCopy::kFrom] * bytes) : &pattern,
              bytes, bytes);
      }
      if (block == 0 && thread < copy.tail_bytes) {
        const uint64_t at = uint64_t{copy.units} * bytes + thread;
        const auto* const fill = reinterpret_cast<const std::byte*>(&pattern);
        Write(to + at, from != nullptr ? from + at : fill + thread, 1, 1);
      }
    }
  }

  void Run(const CopyLaunch& launch, const OneCopy& p) {
    for (uint64_t b = 0; b < launch.grid.blocks; ++b) Block(p.copy, p.copy.from, p.copy.to, b, p.pattern);
  }
  void Run(const CopyLaunch& launch, const MixedCopies& p) {
    for (uint32_t b = 0; b < launch.grid.blocks; ++b) {
      uint32_t i = 0;
      while (b >= p.ends[i]) ASSERT_LT(++i, kMostMixedCopies);
      Block(p.copies[i], p.copies[i].from, p.copies[i].to, b - (i == 0 ? 0 : p.ends[i - 1]), p.pattern);
    }
  }
  void Run(const CopyLaunch& launch, const SameCopies& p) {
    for (uint32_t b = 0; b < launch.grid.blocks; ++b) {
      uint32_t i;
      const uint32_t block = p.count.Divide(b, &i);
      Block(p.shape, p.from[i], p.to[i], block, p.pattern);
    }
  }
  void Run(const CopyLaunch& launch, const EverySecondCopy& p) {
    const uint32_t size = launch.unit_bytes;
    for (uint64_t number = 0; number < launch.grid.blocks * launch.grid.threads; ++number) {
      if (number >= p.copy.units) continue;
      uint64_t at[2];
      p.copy.nest.OffsetsOf(static_cast<uint32_t>(number), at);
      std::byte unit[kMaxUnitBytes];
      for (uint32_t i = 0; i < kMaxUnitBytes; i += size) {
        std::memcpy(unit + i, p.copy.from + at[DeviceCopy::kFrom] * kMaxUnitBytes + 2 * i, size);
      }
      Write(p.copy.to + at[DeviceCopy::kTo] * kMaxUnitBytes, unit, kMaxUnitBytes, kMaxUnitBytes);
    }
  }
  void Run(const CopyLaunch& launch, const RepeatedCopy& p) {
    for (uint64_t number = 0; number < launch.grid.blocks * launch.grid.threads; ++number) {
      uint32_t unit;
      const uint32_t first = p.units.Divide(static_cast<uint32_t>(number), &unit) * p.per_thread;
      uint64_t at[2], target[1];
      p.nest.OffsetsOf(unit, at);
      for (uint32_t i = first; i < std::min(first + p.per_thread, p.repeats); ++i) {
        p.targets.OffsetsOf(i, target);
        Write(p.to + (at[DeviceCopy::kTo] + target[0]) * launch.unit_bytes,
              p.from + at[DeviceCopy::kFrom] * launch.unit_bytes, launch.unit_bytes, launch.unit_bytes);
      }
    }
  }
  void Run(const CopyLaunch& launch, const TransposedCopy& p) {
    const uint32_t size = launch.unit_bytes;
    const auto [tile_rows, tile_columns] = TransposeTileOf(size);
    EXPECT_LE(tile_rows * tile_columns * size, 16u << 10);
    if (launch.reads != Reads::kElements) {
      EXPECT_EQ(p.rows.strides[DeviceCopy::kFrom], 1u);
      EXPECT_EQ(p.columns.strides[DeviceCopy::kTo], 1u);
      EXPECT_EQ(p.columns.size * size % 16, 0u);
      EXPECT_EQ(p.rows.strides[DeviceCopy::kTo] * size % 16, 0u);
      const uint32_t read = launch.reads == Reads::kVectors ? 16 : 4;
      EXPECT_EQ(p.columns.strides[DeviceCopy::kFrom] * size % read, 0u);
      EXPECT_EQ(p.rows.size * size % read, 0u);
    }
    for (uint32_t block = 0; block < launch.grid.blocks; ++block) {
      uint64_t row_tile, column_tile, at[2];
      p.outer.OffsetsOf(p.order.Find(block, &row_tile, &column_tile), at);
      for (uint64_t r = row_tile * tile_rows; r < std::min((row_tile + 1) * tile_rows, p.rows.size); ++r) {
        const uint64_t end = std::min((column_tile + 1) * tile_columns, p.columns.size);
        for (uint64_t c = column_tile * tile_columns; c < end; ++c) {
          const auto place = [&](int operand) {
            return (at[operand] + r * p.rows.strides[operand] + c * p.columns.strides[operand]) * size;
          };
          Write(p.to + place(DeviceCopy::kTo), p.from + place(DeviceCopy::kFrom), size, size);
        }
      }
    }
  }

  std::vector<std::byte> input_, output_;
};

struct Loop {
  uint64_t size;
  int64_t from, to;
};

PlacedCopy CopyOf(const std::vector<Loop>& loops, PlacedCopy::Source source = PlacedCopy::kInput) {
  PlacedCopy copy;
  copy.source = source;
  for (const Loop& loop : loops) {
    copy.nest.Append(loop.size, {static_cast<uint64_t>(loop.from), static_cast<uint64_t>(loop.to)});
  }
  return copy;
}

// Whether every element arrives where the loops say and is written once, and bytes in between stay unchanged.
void ExpectCopied(Device& device, const std::vector<PlacedCopy>& copies, uint32_t element_bytes) {
  std::vector<int> expected(device.writes.size());
  for (const PlacedCopy& copy : copies) {
    ForEach(copy.nest, [&](const LoopNest<2>::Offsets& at) {
      const int64_t to = (static_cast<int64_t>(at[1]) + copy.to_offset) * element_bytes;
      const int64_t from = (static_cast<int64_t>(at[0]) + copy.from_offset) * element_bytes;
      const void* const source =
          copy.source == PlacedCopy::kFill ? static_cast<const void*>(&kFill) : device.from() + from;
      ASSERT_EQ(std::memcmp(device.to() + to, source, element_bytes), 0) << "element at " << to;
      for (uint32_t b = 0; b < element_bytes; ++b) ++expected[to + b];
    });
  }
  EXPECT_EQ(device.writes, expected);
}

template <typename Parameters>
uint32_t Count(const Device& device) {
  uint32_t count = 0;
  for (const CopyLaunch& launch : device.launches)
    count += std::holds_alternative<Parameters>(launch.parameters);
  return count;
}

TEST(CopyPlan, ContiguousCopiesHaveUnitsAndATail) {
  for (const uint32_t size : {1u, 2u, 4u, 8u}) {
    for (const uint64_t count : {1u, 2u, 15u, 16u, 17u, 4096u, 4099u}) {
      for (const uint32_t offset : {0u, 8u}) {
        Device device(count * size, count * size);
        device.to_offset = offset;
        const std::vector<PlacedCopy> copies = {CopyOf({{count, 1, 1}})};
        device.Run(DeviceCopies(copies, size));
        ExpectCopied(device, copies, size);
        const DeviceCopy& copy = std::get<OneCopy>(device.launches[0].parameters).copy;
        EXPECT_EQ(copy.unit_bytes, offset == 0 ? 16u : 8u);
      }
    }
  }
}

TEST(CopyPlan, RowsWithGapsAndReversedRows) {
  const std::vector<PlacedCopy> padded = {CopyOf({{5, 24, 40}, {16, 1, 1}})};
  Device device(5 * 24 * 4, 5 * 40 * 4);
  device.Run(DeviceCopies(padded, 4));
  ExpectCopied(device, padded, 4);

  std::vector<PlacedCopy> reversed = {CopyOf({{7, 10, 10}, {10, -1, 1}})};
  reversed[0].from_offset = 9;
  Device mirror(70 * 2, 70 * 2);
  mirror.Run(DeviceCopies(reversed, 2));
  ExpectCopied(mirror, reversed, 2);
}

TEST(CopyPlan, Transposes) {
  struct Case {
    uint64_t rows, columns;
  };
  for (const uint32_t size : {1u, 2u, 4u, 8u}) {
    for (const Case& c : {Case{16, 16}, {17, 40}, {128, 128}, {129, 64}, {300, 33}, {64, 1040}, {30, 160}}) {
      const auto rows = static_cast<int64_t>(c.rows), columns = static_cast<int64_t>(c.columns);
      const std::vector<PlacedCopy> copies = {
          CopyOf({{3, rows * columns, rows * columns}, {c.rows, 1, columns}, {c.columns, rows, 1}})};
      Device device(3 * c.rows * c.columns * size, 3 * c.rows * c.columns * size);
      device.Run(DeviceCopies(copies, size));
      ExpectCopied(device, copies, size);
      ASSERT_EQ(Count<TransposedCopy>(device), 1u);
      const bool wide_reads = c.rows * size % 16 == 0, wide_writes = c.columns * size % 16 == 0;
      const bool word_reads = c.rows * size % 4 == 0 && size <= 4;
      EXPECT_EQ(device.launches[0].reads, !wide_writes ? Reads::kElements
                                          : wide_reads ? Reads::kVectors
                                          : word_reads ? Reads::kWords
                                                       : Reads::kElements)
          << size << ": " << c.rows << "x" << c.columns;
    }
  }
}

// Tiles that would be mostly empty are not worth it.
TEST(CopyPlan, NarrowTransposesAreCopiesOfElements) {
  const std::vector<PlacedCopy> copies = {CopyOf({{100, 1, 15}, {15, 100, 1}})};
  Device device(1500 * 4, 1500 * 4);
  device.Run(DeviceCopies(copies, 4));
  ExpectCopied(device, copies, 4);
  EXPECT_EQ(Count<TransposedCopy>(device), 0u);
}

TEST(CopyPlan, EverySecondElement) {
  for (const uint32_t size : {1u, 2u, 4u, 8u}) {
    const std::vector<PlacedCopy> copies = {CopyOf({{6, 64, 32}, {16, 2, 1}})};
    Device device(6 * 64 * size, 6 * 32 * size);
    device.Run(DeviceCopies(copies, size));
    ExpectCopied(device, copies, size);
    EXPECT_EQ(Count<EverySecondCopy>(device), 1u) << size;
    // Addresses at which units are not aligned.
    Device apart(6 * 64 * size, 6 * 32 * size);
    apart.to_offset = 8;
    apart.Run(DeviceCopies(copies, size));
    ExpectCopied(apart, copies, size);
    EXPECT_EQ(Count<EverySecondCopy>(apart), 0u) << size;
  }
}

TEST(CopyPlan, RepeatedSources) {
  for (const uint64_t repeats : {2u, 7u, 5000u}) {
    const std::vector<PlacedCopy> copies = {CopyOf({{repeats, 0, 96}, {3, 32, 32}, {32, 1, 1}})};
    Device device(96 * 2, repeats * 96 * 2);
    device.Run(DeviceCopies(copies, 2));
    ExpectCopied(device, copies, 2);
    EXPECT_EQ(Count<RepeatedCopy>(device), 1u);
  }
}

TEST(CopyPlan, ManyCopiesAreFewLaunches) {
  std::vector<PlacedCopy> same, mixed;
  for (int64_t i = 0; i < 500; ++i) {
    same.push_back(
        CopyOf({{3, 5000, 5000}, {10, 1, 1}}, i % 9 == 0 ? PlacedCopy::kFill : PlacedCopy::kInput));
    // A fill uses its target's loops for both operands.
    same.back().from_offset = same.back().to_offset = i * 10;
  }
  Device device(15000 * 4, 15000 * 4);
  device.Run(DeviceCopies(same, 4));
  ExpectCopied(device, same, 4);
  EXPECT_EQ(device.launches.size(), 3u);
  EXPECT_EQ(Count<SameCopies>(device), 3u);

  for (uint64_t i = 0; i < 30; ++i) {
    mixed.push_back(CopyOf({{i + 1, 1, 1}}, i % 3 == 0 ? PlacedCopy::kFill : PlacedCopy::kInput));
    mixed.back().from_offset = mixed.back().to_offset = static_cast<int64_t>(i * 32);
  }
  Device other(30 * 32 * 8, 30 * 32 * 8);
  other.Run(DeviceCopies(mixed, 8));
  ExpectCopied(other, mixed, 8);
  EXPECT_EQ(other.launches.size(), 3u);
  EXPECT_EQ(Count<MixedCopies>(other), 3u);
}

// Plans only: the 2^32 - 1 elements of a tensor must not overflow 32 bits.
TEST(CopyPlan, LargestTensors) {
  const Buffer memory = {};
  KernelArguments arguments;
  arguments.inputs = arguments.outputs = {&memory, 1};
  const uint64_t most = 0xFFFFFFFF;
  const DeviceCopies bytes({CopyOf({{most, 1, 1}})}, 8);
  const CopyLaunch launch = bytes.Launch(0, arguments, 0);
  const DeviceCopy& copy = std::get<OneCopy>(launch.parameters).copy;
  EXPECT_EQ(uint64_t{copy.units} * copy.unit_bytes + copy.tail_bytes, most * 8);
  ExpectThreadFor(uint64_t{copy.units} + 1, launch.grid, GpuTraits());

  const DeviceCopies transposed({CopyOf({{65535, 1, 65536}, {65536, 65535, 1}})}, 1);
  const CopyLaunch tiles = transposed.Launch(0, arguments, 0);
  EXPECT_EQ(tiles.grid.blocks, uint64_t{512} * 512);
  uint64_t row, column;
  const auto& order = std::get<TransposedCopy>(tiles.parameters).order;
  EXPECT_EQ(order.Find(512 * 512 - 1, &row, &column), 0u);
  EXPECT_EQ(row, 511u);
  EXPECT_EQ(column, 511u);

  const DeviceCopies repeated({CopyOf({{most / 5, 0, 5}, {5, 1, 1}})}, 4);
  const CopyLaunch many = repeated.Launch(0, arguments, 0);
  const auto& p = std::get<RepeatedCopy>(many.parameters);
  EXPECT_EQ(uint64_t{p.repeats} * p.units.divisor() * many.unit_bytes, most / 5 * 5 * 4);
  ExpectGrid(many.grid, GpuTraits());
}

}  // namespace
}  // namespace anydml
