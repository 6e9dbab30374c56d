// Executes a GPU's gather plans on the host, one thread after the other.
#include "ops/gather/plan.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "ops/device/units.h"
#include "support/plan_checks.h"

namespace anydml {
namespace {

using Kind = GatherProblem::Kind;
using Kernel = GatherPlan::Kernel;

GatherProblem AxisProblem(DataType type, const std::vector<uint32_t>& input,
                          const std::vector<uint32_t>& indices, const std::vector<uint32_t>& output,
                          uint32_t axis, uint32_t indices_dimensions) {
  GatherProblem problem;
  problem.kind = Kind::kAxis;
  problem.input = PlanTensor(type, input);
  problem.indices = PlanTensor(DataType::kInt32, indices);
  problem.output = PlanTensor(type, output);
  problem.wraps = true;
  problem.axis = axis;
  problem.indices_dimensions = indices_dimensions;
  return problem;
}

int64_t IndexAt(const GatherTuples& tuples, uint64_t at) {
  EXPECT_FALSE(tuples.indices.wide);
  int32_t index;
  std::memcpy(&index, tuples.indices.data + at * sizeof(index), sizeof(index));
  return index;
}

uint64_t SourceOf(const GatherTuples& tuples, uint64_t at, bool* in_range) {
  uint64_t source = 0;
  for (uint32_t c = 0; c < tuples.tuple_size; ++c) {
    const GatherLoops::Component& component = tuples.tuple[c];
    const int64_t value = IndexAt(tuples, at + component.index_offset);
    source += ResolveIndex(component, value, true, in_range) * component.input_stride;
  }
  return source;
}

// A byte per byte of the output: how often it was written.
class Device {
 public:
  explicit Device(const GatherProblem& problem)
      : input(problem.input.total_bytes),
        indices(ElementCount(problem.indices)),
        output(problem.output.total_bytes),
        writes(problem.output.total_bytes) {
    for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<std::byte>(i * 7 + i / 251);
  }

  void Run(const GatherPlan& plan, uint64_t addresses = 0) {
    GatherLaunch launch = LaunchOf(plan, addresses);
    launch.parameters.tuples.indices.data = reinterpret_cast<const std::byte*>(indices.data());
    for (uint64_t thread = 0; thread < launch.grid.blocks * launch.grid.threads; ++thread) {
      if (plan.kernel == Kernel::kUnits) {
        Unit(launch, thread);
      } else {
        Piece(launch, thread);
      }
    }
  }

  std::vector<std::byte> input;
  std::vector<int32_t> indices;
  std::vector<std::byte> output;
  std::vector<int> writes;

 private:
  void Copy(uint64_t from, uint64_t to, uint32_t bytes) {
    ASSERT_EQ(from % bytes, 0u);
    ASSERT_EQ(to % bytes, 0u);
    ASSERT_LE(from + bytes, input.size());
    ASSERT_LE(to + bytes, output.size());
    std::memcpy(output.data() + to, input.data() + from, bytes);
    for (uint32_t i = 0; i < bytes; ++i) ++writes[to + i];
  }

  void Unit(const GatherLaunch& launch, uint64_t thread) {
    const GatherParameters& p = launch.parameters;
    if (thread >= p.count) return;
    uint64_t at[3];
    bool in_range = true;
    p.nest.OffsetsOf(static_cast<uint32_t>(thread), at);
    Copy(at[GatherLoops::kInput] + SourceOf(p.tuples, at[GatherLoops::kIndices], &in_range),
         at[GatherLoops::kOutput], launch.unit_bytes);
  }

  void Piece(const GatherLaunch& launch, uint64_t thread) {
    const GatherParameters& p = launch.parameters;
    if (thread / kGatherLanes >= p.count) return;
    uint32_t piece;
    const uint32_t row = p.pieces.Divide(static_cast<uint32_t>(thread / kGatherLanes), &piece);
    uint64_t at[3];
    bool in_range = true;
    p.nest.OffsetsOf(row, at);
    const uint64_t from = at[GatherLoops::kInput] + SourceOf(p.tuples, at[GatherLoops::kIndices], &in_range);
    const uint64_t first = uint64_t{piece} * kGatherPieceUnits + thread % kGatherLanes;
    for (uint32_t i = 0; i < kGatherUnitsPerThread; ++i) {
      const uint64_t unit = first + uint64_t{i} * kGatherLanes;
      if (unit >= p.row_units) continue;
      Copy(from + unit * launch.unit_bytes, at[GatherLoops::kOutput] + unit * launch.unit_bytes,
           launch.unit_bytes);
    }
  }
};

// Gathers rows {count, length} from `rows`, along the first dimension.
GatherProblem RowsProblem(DataType type, uint32_t rows, uint32_t count, uint32_t length) {
  return AxisProblem(type, {rows, length}, {1, count}, {count, length}, 0, 1);
}

void ExpectRows(const GatherProblem& problem, Kernel kernel, uint64_t addresses) {
  const uint32_t rows = problem.input.sizes[0], length = problem.output.sizes[1];
  const uint64_t row_bytes = uint64_t{length} * (BitSize(problem.output.type) / 8);
  Device device(problem);
  for (size_t i = 0; i < device.indices.size(); ++i) {
    device.indices[i] =
        static_cast<int32_t>((i * 5 + 3) % rows) - (i % 3 == 0 ? static_cast<int32_t>(rows) : 0);
  }
  device.Run(MakeGatherPlan(problem, kernel, GpuTraits()), addresses);
  for (size_t i = 0; i < device.indices.size(); ++i) {
    const uint64_t row = (i * 5 + 3) % rows;
    ASSERT_EQ(
        std::memcmp(device.output.data() + i * row_bytes, device.input.data() + row * row_bytes, row_bytes),
        0)
        << "row " << i << " of " << length;
  }
  for (uint64_t b = 0; b < device.indices.size() * row_bytes; ++b) ASSERT_EQ(device.writes[b], 1) << b;
}

TEST(GatherPlan, EveryByteIsWrittenOnce) {
  for (const DataType type : {DataType::kUInt8, DataType::kFloat16, DataType::kFloat32, DataType::kFloat64}) {
    for (const uint32_t length : {1u, 2u, 3u, 15u, 16u, 64u, 127u, 128u, 512u, 1023u, 2048u, 2064u}) {
      for (const uint64_t addresses : {uint64_t{0}, uint64_t{8}}) {
        const GatherProblem problem = RowsProblem(type, 7, 11, length);
        ExpectRows(problem, Kernel::kUnits, addresses);
        if (GatherRowBytes(problem) >= kGatherRowBytes) ExpectRows(problem, Kernel::kRows, addresses);
      }
    }
  }
}

TEST(GatherPlan, UnitsDivideRowsStridesAndAddresses) {
  const auto unit = [](const GatherProblem& problem, uint64_t addresses) {
    return LaunchOf(MakeGatherPlan(problem, Kernel::kUnits, GpuTraits()), addresses).unit_bytes;
  };
  EXPECT_EQ(unit(RowsProblem(DataType::kFloat32, 4, 4, 64), 0), 16u);
  EXPECT_EQ(unit(RowsProblem(DataType::kFloat32, 4, 4, 64), 0x1008), 8u);
  EXPECT_EQ(unit(RowsProblem(DataType::kFloat32, 4, 4, 62), 0), 8u);
  EXPECT_EQ(unit(RowsProblem(DataType::kUInt8, 4, 4, 63), 0), 1u);
  GatherProblem padded = RowsProblem(DataType::kFloat32, 4, 4, 64);
  padded.input.strides[0] = 65;
  EXPECT_EQ(unit(padded, 0), 4u);
  // Element by element: neighbours come from different tuples.
  const GatherProblem elements = AxisProblem(DataType::kFloat16, {1, 64}, {1, 64}, {1, 64}, 1, 1);
  EXPECT_EQ(unit(elements, 0), 2u);
}

TEST(GatherPlan, RowsAreOfOneTuple) {
  EXPECT_EQ(GatherRowBytes(RowsProblem(DataType::kFloat32, 4, 4, 100)), 400u);
  EXPECT_EQ(GatherRowBytes(AxisProblem(DataType::kFloat32, {1, 64}, {1, 64}, {1, 64}, 1, 1)), 0u);
  GatherProblem apart = RowsProblem(DataType::kFloat32, 4, 4, 100);
  apart.output.strides[1] = 2;
  EXPECT_EQ(GatherRowBytes(apart), 0u);
}

TEST(GatherPlan, IndicesOutOfRangeAreClamped) {
  const GatherProblem problem = RowsProblem(DataType::kFloat32, 4, 6, 128);
  Device device(problem);
  device.indices = {0, 3, 4, -4, -5, 1 << 30};
  device.Run(MakeGatherPlan(problem, Kernel::kRows, GpuTraits()));
  const int expected[] = {0, 3, 3, 0, 0, 3};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(std::memcmp(device.output.data() + i * 512, device.input.data() + expected[i] * 512, 512), 0)
        << i;
  }
}

// The largest tensors must not overflow 32 bits.
TEST(GatherPlan, LargestTensors) {
  const DeviceTraits gpu = GpuTraits();
  for (const uint32_t length : {1u << 11, 1u << 20, (1u << 31) - 1024}) {
    const uint32_t count = 0xFFFFFFFFu / length;
    const GatherProblem problem = RowsProblem(DataType::kFloat64, 3, count, length);
    const uint64_t bytes = uint64_t{count} * length * 8;
    const GatherLaunch units = LaunchOf(MakeGatherPlan(problem, Kernel::kUnits, gpu), 0);
    EXPECT_EQ(uint64_t{units.parameters.count} * units.unit_bytes, bytes);
    ExpectThreadFor(units.parameters.count, units.grid, gpu);
    const GatherLaunch rows = LaunchOf(MakeGatherPlan(problem, Kernel::kRows, gpu), 0);
    EXPECT_EQ(uint64_t{rows.parameters.row_units} * rows.unit_bytes, uint64_t{length} * 8);
    EXPECT_EQ(rows.parameters.count, count * rows.parameters.pieces.divisor());
    ExpectThreadFor(uint64_t{rows.parameters.count} * kGatherLanes, rows.grid, gpu);
    // The last row, beyond 32 bits, is read from the right offset.
    uint64_t at[3];
    rows.parameters.nest.OffsetsOf(count - 1, at);
    EXPECT_EQ(at[GatherLoops::kOutput], uint64_t{count - 1} * length * 8);
  }
}

TEST(GatherPlan, TheNoteKeepsTheDeviceBusyAndNoMore) {
  const DeviceTraits gpu = GpuTraits(/*multiprocessors=*/4);
  const GatherPlan few = MakeGatherPlan(RowsProblem(DataType::kFloat32, 4, 300, 1), Kernel::kUnits, gpu);
  EXPECT_EQ(few.note.count, 300u);
  ExpectThreadFor(300, few.note_grid, gpu);
  const GatherPlan many = MakeGatherPlan(RowsProblem(DataType::kFloat32, 4, 1 << 20, 1), Kernel::kUnits, gpu);
  EXPECT_EQ(many.note.count, 1u << 20);
  EXPECT_EQ(many.note_grid.blocks, 32u);
  EXPECT_GE(many.temporary_bytes, sizeof(uint32_t));
}

}  // namespace
}  // namespace anydml
