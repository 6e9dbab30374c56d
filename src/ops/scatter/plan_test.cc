// Executes a GPU's scatter plan on the host, one thread after the other.
#include "ops/scatter/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>
#include <vector>

#include "ops/device/units.h"
#include "support/plan_checks.h"

namespace anydml {
namespace {

using Kind = ScatterProblem::Kind;
using Sizes = std::vector<uint32_t>;

// SCATTER_ND of slices: `indices` {positions, tuple_size}.
ScatterProblem NdProblem(DataType type, const Sizes& output, uint32_t positions, uint32_t tuple_size) {
  ScatterProblem problem;
  problem.kind = Kind::kNd;
  problem.input = problem.output = PlanTensor(type, output);
  const auto rank = static_cast<uint32_t>(output.size());
  Sizes updates(rank, 1), indices(rank, 1);
  indices[rank - 2] = positions;
  indices[rank - 1] = tuple_size;
  std::copy(output.begin() + tuple_size, output.end(), updates.begin() + tuple_size);
  updates[tuple_size - 1] = positions;
  problem.indices = PlanTensor(DataType::kInt32, indices);
  problem.updates = PlanTensor(type, updates);
  problem.input_dimensions = rank;
  problem.indices_dimensions = 2;
  return problem;
}

ScatterProblem ElementsProblem(DataType type, const Sizes& output, const Sizes& indices, uint32_t axis) {
  ScatterProblem problem;
  problem.kind = Kind::kElements;
  problem.input = problem.output = PlanTensor(type, output);
  problem.indices = PlanTensor(DataType::kInt32, indices);
  problem.updates = PlanTensor(type, indices);
  problem.axis = axis;
  return problem;
}

struct alignas(16) Memory16 {
  std::byte bytes[16];
};

class Device {
 public:
  explicit Device(const ScatterProblem& problem) : setup(problem) {
    const uint64_t element = setup.element_bytes;
    Fill(ElementCount(problem.input) * element, 1, &input_);
    Fill(ElementCount(problem.updates) * element, 2, &updates_);
    Fill(ElementCount(problem.output) * element, 3, &output_);
    std::mt19937 random(7);
    indices_.resize(ElementCount(problem.indices));
    for (size_t i = 0; i < indices_.size(); ++i) {
      const uint32_t c = problem.kind == Kind::kNd ? static_cast<uint32_t>(i % problem.tuple_size()) : 0;
      const uint32_t size = problem.output.sizes[problem.target_dimension(c)];
      indices_[i] = static_cast<int32_t>(random() % (size + (i % 7 == 0 ? 1 : 0)));  // some out of range
    }
    in_[0] = {Data(input_), 0};
    in_[1] = {reinterpret_cast<std::byte*>(indices_.data()), 0};
    in_[2] = {Data(updates_), 0};
    out_ = {Data(output_), 0};
    arguments.inputs = in_;
    arguments.outputs = {&out_, 1};
  }

  // The expected result: the last position in row-major order wins.
  std::vector<std::byte> Expected() const {
    std::vector<std::byte> expected(in_[0].data, in_[0].data + setup.output_bytes);
    const uint64_t element = setup.element_bytes;
    for (uint32_t position = 0; position < setup.tuples.positions; ++position) {
      uint64_t target, from;
      if (!Find(position, &target, &from, nullptr)) continue;
      ForEach(setup.slice_nest, [&](const LoopNest<2>::Offsets& at) {
        std::memcpy(expected.data() + target + at[1] * element, in_[2].data + from + at[0] * element,
                    element);
      });
    }
    return expected;
  }

  // The position that holds each slot, plus one. Checks that the launch's blocks copy and claim everything
  // once.
  std::vector<uint32_t> Prepare(const ScatterLaunch<PrepareParameters>& launch) {
    const PrepareParameters& p = launch.parameters;
    ExpectGrid(launch.grid, GpuTraits());
    EXPECT_EQ(p.claim_blocks + p.copy_blocks, launch.grid.blocks);
    std::vector<uint32_t> holders(Iterations(setup.slot_nest));
    for (uint64_t t = 0; t < p.claim_blocks * launch.grid.threads && t < p.tuples.positions; ++t) {
      uint64_t target, from;
      uint32_t slot;
      if (Find(static_cast<uint32_t>(t), &target, &from, &slot))
        holders.at(slot) = static_cast<uint32_t>(t) + 1;
    }
    EXPECT_GE(p.claim_blocks == 0 ? p.tuples.positions : p.claim_blocks * launch.grid.threads,
              p.tuples.positions);
    Copy(p.copy, p.copy_blocks * launch.grid.threads);
    return holders;
  }

  void Copy(const DeviceCopy& copy, uint64_t threads) {
    ASSERT_TRUE(copy.units + uint64_t{copy.tail_bytes > 0} <= threads);
    for (uint64_t t = 0; t < copy.units; ++t) {
      uint64_t at[2] = {t, t};
      if (!copy.contiguous) copy.nest.OffsetsOf(static_cast<uint32_t>(t), at);
      std::memcpy(copy.to + at[1] * copy.unit_bytes, copy.from + at[0] * copy.unit_bytes, copy.unit_bytes);
    }
    const uint64_t end = uint64_t{copy.units} * copy.unit_bytes;
    if (copy.tail_bytes > 0) std::memcpy(copy.to + end, copy.from + end, copy.tail_bytes);
  }

  // Every unit of every position in `held`.
  template <typename Held>
  void Write(const WriteParameters& p, uint64_t threads, Held held) {
    ASSERT_GE(threads, p.units);
    ASSERT_EQ(p.units, p.tuples.positions * p.slice_units.divisor());
    for (uint32_t number = 0; number < p.units; ++number) {
      uint32_t unit, slot;
      const uint32_t position = p.slice_units.Divide(number, &unit);
      uint64_t at[2] = {unit, unit}, target, from;
      if (!p.contiguous) p.slice.OffsetsOf(unit, at);
      if (!Find(position, &target, &from, &slot) || !held(position, slot)) continue;
      ASSERT_EQ(AddressOf(p.output + target) % p.unit_bytes, 0u);
      ASSERT_EQ(AddressOf(p.updates + from) % p.unit_bytes, 0u);
      std::memcpy(p.output + target + at[1] * p.unit_bytes, p.updates + from + at[0] * p.unit_bytes,
                  p.unit_bytes);
    }
  }

  void FillSlots(const ScatterLaunch<ScatterGatherParameters>& launch, const std::vector<uint32_t>& holders) {
    const ScatterGatherParameters& p = launch.parameters;
    const uint32_t slice_units = p.write.slice_units.divisor();
    const uint64_t first = uint64_t{p.copied_slots} * slice_units;
    ASSERT_GE((launch.grid.blocks - p.write_blocks) * launch.grid.threads, p.units - first);
    if (p.write_blocks > 0) {
      ASSERT_GE(p.write_blocks * launch.grid.threads, p.write.tuples.positions);
      Write(p.write, ~uint64_t{0}, [&](uint32_t position, uint32_t slot) {
        return slot < p.copied_slots && holders[slot] == position + 1;
      });
    }
    for (uint64_t number = first; number < p.units; ++number) {
      uint32_t unit;
      const uint32_t slot = p.write.slice_units.Divide(static_cast<uint32_t>(number), &unit);
      uint64_t at[2], updates[4];
      p.slots.OffsetsOf(slot, at);
      if (holders[slot] != 0) p.write.tuples.nest.OffsetsOf(holders[slot] - 1, updates);
      const std::byte* const from =
          holders[slot] == 0 ? p.input + at[0] : p.write.updates + updates[DeviceTuples::kUpdates];
      std::memcpy(p.write.output + at[1] + uint64_t{unit} * p.write.unit_bytes,
                  from + uint64_t{unit} * p.write.unit_bytes, p.write.unit_bytes);
    }
  }

  void ExpectResult(const std::vector<std::byte>& expected) {
    EXPECT_EQ(std::memcmp(out_.data, expected.data(), expected.size()), 0);
  }

  ScatterSetup setup;
  KernelArguments arguments;

 private:
  static void Fill(uint64_t bytes, uint32_t seed, std::vector<Memory16>* memory) {
    memory->resize(bytes / 16 + 1);
    for (uint64_t i = 0; i < bytes; ++i)
      Data(*memory)[i] = static_cast<std::byte>(i * 13 * seed + i / 256 + seed);
  }
  static std::byte* Data(std::vector<Memory16>& memory) { return memory.data()->bytes; }

  bool Find(uint32_t position, uint64_t* target, uint64_t* from, uint32_t* slot) const {
    uint64_t at[4];
    setup.tuples.nest.OffsetsOf(position, at);
    *from = at[DeviceTuples::kUpdates];
    *target = at[DeviceTuples::kOutput];
    uint64_t number = at[DeviceTuples::kSlot];
    for (uint32_t c = 0; c < setup.tuples.tuple_size; ++c) {
      const DeviceTuples::Component& component = setup.tuples.tuple[c];
      const auto index = static_cast<uint64_t>(indices_[at[DeviceTuples::kIndices] + component.index_offset]);
      if (index >= component.size) return false;
      *target += index * component.output_stride;
      number += index * component.slot_stride;
    }
    if (slot != nullptr) *slot = static_cast<uint32_t>(number);
    return true;
  }

  std::vector<Memory16> input_, updates_, output_;
  std::vector<int32_t> indices_;
  Buffer in_[3], out_;
};

std::vector<ScatterProblem> Problems() {
  std::vector<ScatterProblem> problems;
  for (const DataType type : {DataType::kUInt8, DataType::kFloat32, DataType::kInt64}) {
    problems.push_back(NdProblem(type, {50, 24}, 70, 1));
    problems.push_back(NdProblem(type, {50, 24}, 300, 2));
    problems.push_back(NdProblem(type, {9, 7, 33}, 40, 2));
    problems.push_back(NdProblem(type, {3000, 16}, 20, 1));
    problems.push_back(ElementsProblem(type, {30, 40}, {20, 40}, 0));
    problems.push_back(ElementsProblem(type, {30, 40}, {30, 55}, 1));
    problems.push_back(ElementsProblem(type, {40000, 1}, {9, 1}, 0));
  }
  return problems;
}

TEST(ScatterPlan, ByClaims) {
  for (const ScatterProblem& problem : Problems()) {
    Device device(problem);
    const WriteParameters write = device.setup.WriteOf(device.arguments);
    const DeviceCopy copy = device.setup.CopyOf(device.arguments);
    const auto holders = device.Prepare(PlanPrepare(true, write, copy));
    const auto launch = PlanWrite(write);
    device.Write(launch.parameters, launch.grid.blocks * launch.grid.threads,
                 [&](uint32_t position, uint32_t slot) { return holders[slot] == position + 1; });
    device.ExpectResult(device.Expected());
  }
}

TEST(ScatterPlan, BySlots) {
  for (const ScatterProblem& problem : Problems()) {
    Device device(problem);
    if (device.setup.slice_nest.rank > 1) continue;
    const auto launch = PlanGather(device.setup, ClaimPerSlot(device.setup), device.arguments);
    ExpectGrid(launch.grid, GpuTraits());
    const DeviceCopy copy = CopyOfSlots(device.setup, launch.parameters);
    const auto holders = device.Prepare(PlanPrepare(true, launch.parameters.write, copy));
    device.FillSlots(launch, holders);
    device.ExpectResult(device.Expected());
  }
}

TEST(ScatterPlan, ClaimsFitIntoTheirMemory) {
  for (const ScatterProblem& problem : Problems()) {
    const ScatterSetup setup(problem);
    for (const ClaimTable& claims : {setup.claims, ClaimPerSlot(setup)}) {
      const ClaimScratch scratch(claims, setup.tuples.positions);
      if (claims.kind == ClaimTable::Kind::kHashed) {
        EXPECT_TRUE(std::has_single_bit(claims.count));
        EXPECT_GE(claims.count, 2 * setup.tuples.positions);
      } else if (claims.kind == ClaimTable::Kind::kDirect) {
        EXPECT_EQ(claims.count, Iterations(setup.slot_nest));
      }
      EXPECT_GE(scratch.entries.bytes, claims.count * claims.entry_bytes());
      EXPECT_GE(scratch.lost.bytes * 8, setup.tuples.positions);
      EXPECT_GE(scratch.bytes(), scratch.entries.offset + scratch.entries.bytes);
      EXPECT_EQ(scratch.bytes() % kClearBytes, 0u);
      const auto clear = PlanClear(scratch.Clear({}), GpuTraits(1));
      EXPECT_EQ(clear.parameters.count * kClearBytes, scratch.bytes());
      ExpectGrid(clear.grid, GpuTraits(1));
      EXPECT_LE(clear.grid.blocks, 4u);
    }
  }
}

TEST(ScatterPlan, SmallOnesFitIntoABlock) {
  Device device(NdProblem(DataType::kFloat32, {100000, 2}, kSmallPositions, 1));
  const auto small = PlanSmall(device.setup, device.arguments);
  EXPECT_EQ(small.grid.blocks, 1u);
  EXPECT_LE(small.grid.threads, kScatterSmallThreads);
  EXPECT_EQ(small.grid.threads % 32, 0u);
  EXPECT_LE(small.parameters.write.claims.count, kSmallEntries);
  EXPECT_GE(small.parameters.write.claims.count, 2 * kSmallPositions);
  Device tiny(NdProblem(DataType::kFloat32, {3, 1}, 2, 1));
  EXPECT_EQ(PlanSmall(tiny.setup, tiny.arguments).grid.threads, 32u);
}

// In place nothing is copied; tensors with different layouts never share memory.
TEST(ScatterPlan, InPlace) {
  Device device(NdProblem(DataType::kFloat32, {50, 24}, 70, 1));
  const Buffer same[] = {device.arguments.outputs[0], device.arguments.inputs[1], device.arguments.inputs[2]};
  device.arguments.inputs = same;
  EXPECT_FALSE(device.setup.Copies(device.arguments));
  EXPECT_EQ(device.setup.CopyOf(device.arguments).units, 0u);
  const auto prepare =
      PlanPrepare(true, device.setup.WriteOf(device.arguments), device.setup.CopyOf(device.arguments));
  EXPECT_EQ(prepare.parameters.copy_blocks, 0u);
}

TEST(ScatterPlan, LargestTensors) {
  const Buffer buffers[3] = {};
  KernelArguments arguments;
  arguments.inputs = buffers;
  arguments.outputs = {buffers, 1};
  const ScatterSetup setup(NdProblem(DataType::kInt64, {65535, 65537}, 65535, 1));
  EXPECT_EQ(setup.output_bytes, uint64_t{0xFFFFFFFF} * 8);
  const WriteParameters write = setup.WriteOf(arguments);
  EXPECT_EQ(uint64_t{write.units} * write.unit_bytes, setup.updates_bytes);
  ExpectThreadFor(write.units, PlanWrite(write).grid, GpuTraits());
  const ScatterSetup scalars(NdProblem(DataType::kUInt8, {0xFFFFFFFF, 1}, 1000, 1));
  EXPECT_EQ(scalars.claims.kind, ClaimTable::Kind::kHashed);
  const ClaimScratch all(ClaimPerSlot(scalars), 1000);
  EXPECT_GE(all.bytes(), uint64_t{0xFFFFFFFF} * 4);
}

}  // namespace
}  // namespace anydml
