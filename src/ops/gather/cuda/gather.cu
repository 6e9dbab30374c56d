#include <algorithm>

#include "ops/common/cuda_chain.cuh"
#include "ops/common/cuda_indices.cuh"
#include "ops/common/cuda_nest.cuh"
#include "ops/common/cuda_units.cuh"
#include "ops/gather/plan.h"

namespace anydml {
namespace {

constexpr uint32_t kThreads = 256;
// A warp's piece of a row: so many units are on their way for each thread.
constexpr uint32_t kUnitsPerThread = 4;
constexpr uint32_t kUnitsPerWarp = 32 * kUnitsPerThread;
// Shorter rows would leave most of a warp idle.
constexpr uint64_t kRowBytes = 512;

struct DeviceTuples {
  DeviceIndices indices;
  uint32_t tuple_size = 1;
  GatherPlan::Component tuple[kMaxDimensions];  // strides in bytes
};

struct Parameters {
  DeviceTuples tuples;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  DeviceNest<3> nest;  // output and input in bytes, indices in indices
  uint32_t count = 0;  // of the nest's iterations, times pieces
  // cuda.rows: the nest is over rows, which consist of so many units, in so many pieces.
  uint32_t row_units = 0;
  FastDivisor pieces;
};

struct NoteParameters {
  DeviceTuples tuples;
  DeviceNest<1> nest;
  uint32_t count;
  uint32_t* first_bad;  // the complement, so that cleared memory means that there is none
  DataErrorNote* note;
};

// In bytes.
__device__ uint64_t SourceOf(const DeviceTuples& tuples, uint64_t at, bool* in_range) {
  uint64_t offset = 0;
  for (uint32_t c = 0; c < tuples.tuple_size; ++c) {
    const GatherPlan::Component& component = tuples.tuple[c];
    const int64_t value = tuples.indices.Load(at + component.index_offset);
    offset += ResolveIndex(component, value, tuples.indices.is_signed, in_range) * component.input_stride;
  }
  return offset;
}

template <typename Unit>
__global__ void __launch_bounds__(kThreads) GatherUnits(const __grid_constant__ Parameters p) {
  const uint64_t number = uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (number >= p.count) return;
  uint64_t at[3];
  p.nest.OffsetsOf(static_cast<uint32_t>(number), at);
  bool ignored = true;
  const uint64_t from = at[GatherPlan::kInput] + SourceOf(p.tuples, at[GatherPlan::kIndices], &ignored);
  *reinterpret_cast<Unit*>(p.output + at[GatherPlan::kOutput]) =
      __ldg(reinterpret_cast<const Unit*>(p.input + from));
}

template <typename Unit>
__global__ void __launch_bounds__(kThreads) GatherRows(const __grid_constant__ Parameters p) {
  const uint64_t warp = (uint64_t{blockIdx.x} * kThreads + threadIdx.x) / 32;
  if (warp >= p.count) return;
  uint32_t piece;
  const uint32_t row = p.pieces.Divide(static_cast<uint32_t>(warp), &piece);
  uint64_t at[3];
  p.nest.OffsetsOf(row, at);
  bool ignored = true;
  const uint64_t source = at[GatherPlan::kInput] + SourceOf(p.tuples, at[GatherPlan::kIndices], &ignored);
  const auto* from = reinterpret_cast<const Unit*>(p.input + source);
  auto* to = reinterpret_cast<Unit*>(p.output + at[GatherPlan::kOutput]);
  const uint32_t first = piece * kUnitsPerWarp + threadIdx.x % 32;
  Unit units[kUnitsPerThread];
#pragma unroll
  for (uint32_t i = 0; i < kUnitsPerThread; ++i) {
    if (first + i * 32 < p.row_units) units[i] = __ldg(from + first + i * 32);
  }
#pragma unroll
  for (uint32_t i = 0; i < kUnitsPerThread; ++i) {
    if (first + i * 32 < p.row_units) __stcs(to + first + i * 32, units[i]);
  }
}

__global__ void __launch_bounds__(kThreads) FindFirstBad(const __grid_constant__ NoteParameters p) {
  const uint64_t step = uint64_t{gridDim.x} * kThreads;
  for (uint64_t i = uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < p.count; i += step) {
    uint64_t at[1];
    p.nest.OffsetsOf(static_cast<uint32_t>(i), at);
    bool in_range = true;
    SourceOf(p.tuples, at[0], &in_range);
    if (in_range) continue;
    atomicMax(p.first_bad, ~static_cast<uint32_t>(i));
    return;  // those that follow are behind it
  }
}

__global__ void WriteNote(const __grid_constant__ NoteParameters p) {
  WaitForPrevious();
  if (*p.first_bad == 0) return;
  const uint32_t position = ~*p.first_bad;
  uint64_t at[1];
  p.nest.OffsetsOf(position, at);
  for (uint32_t c = 0; c < p.tuples.tuple_size; ++c) {
    p.note->values[c] = p.tuples.indices.Load(at[0] + p.tuples.tuple[c].index_offset);
  }
  p.note->position = position;
  __threadfence_system();
}

LoopNest<3> InBytes(LoopNest<3> nest, uint64_t element_bytes) {
  for (uint32_t d = 0; d < nest.rank; ++d) {
    nest.loops[d].strides[GatherPlan::kOutput] *= element_bytes;
    nest.loops[d].strides[GatherPlan::kInput] *= element_bytes;
  }
  return nest;
}

class GatherKernel : public Kernel {
 public:
  GatherKernel(const GatherProblem& problem, const LowerContext& context)
      : problem_(problem),
        element_bytes_(BitSize(problem.output.type) / 8),
        plan_(MakeGatherPlan(problem)),
        nest_(InBytes(plan_.elements, element_bytes_)),
        multiprocessors_(context.device->multiprocessors) {
    tuples_.indices = DeviceIndices(problem.indices.type);
    tuples_.tuple_size = plan_.tuple_size;
    std::copy_n(plan_.tuple, plan_.tuple_size, tuples_.tuple);
    for (GatherPlan::Component& component : tuples_.tuple) component.input_stride *= element_bytes_;
  }

  uint64_t temporary_bytes() const override { return sizeof(uint4); }
  uint32_t note_count() const override { return 1; }
  std::string Describe(uint32_t, const DataErrorNote& note) const override {
    return DescribeBadIndex(problem_, note.values, TupleCoordinate(problem_, note.position));
  }

  // Whether neighbours in the innermost loop are neighbours in memory, too, and of one tuple.
  static bool HasRows(const GatherPlan& plan) {
    return plan.elements.rank > 0 &&
           plan.elements.loops[plan.elements.rank - 1].strides == LoopNest<3>::Offsets{1, 1, 0};
  }

  Status Run(const KernelArguments& arguments) const override {
    Parameters p;
    p.tuples = tuples_;
    p.tuples.indices.data = arguments.inputs[1].data;
    p.input = arguments.inputs[0].data;
    p.output = arguments.outputs[0].data;
    Launch(p, UnitBytes(p), arguments);
    if (arguments.note() != nullptr) LaunchNote(p.tuples, arguments);
    return {};
  }

 protected:
  virtual void Launch(Parameters p, uint32_t unit_bytes, const KernelArguments& arguments) const = 0;

  uint64_t element_bytes() const { return element_bytes_; }
  const LoopNest<3>& nest() const { return nest_; }

 private:
  uint32_t UnitBytes(const Parameters& p) const {
    if (!HasRows(plan_)) return static_cast<uint32_t>(element_bytes_);
    uint64_t bytes = AddressOf(p.input) | AddressOf(p.output);
    bytes |= nest_.loops[nest_.rank - 1].size * element_bytes_;
    for (uint32_t d = 0; d + 1 < nest_.rank; ++d) {
      bytes |= nest_.loops[d].strides[GatherPlan::kOutput] | nest_.loops[d].strides[GatherPlan::kInput];
    }
    for (uint32_t c = 0; c < plan_.tuple_size; ++c) bytes |= tuples_.tuple[c].input_stride;
    return LargestUnit(bytes);
  }

  void LaunchNote(const DeviceTuples& tuples, const KernelArguments& arguments) const {
    NoteParameters p = {tuples, DeviceNest<1>(plan_.tuples), static_cast<uint32_t>(Iterations(plan_.tuples)),
                        reinterpret_cast<uint32_t*>(arguments.temporary.data), arguments.note()};
    cudaMemsetAsync(p.first_bad, 0, sizeof(uint32_t), static_cast<cudaStream_t>(arguments.stream));
    KernelChain chain(arguments.stream);
    const uint64_t blocks = (uint64_t{p.count} + kThreads - 1) / kThreads;
    chain.Launch(FindFirstBad, std::min<uint64_t>(blocks, uint64_t{8} * multiprocessors_), kThreads, p);
    chain.Launch(WriteNote, 1, 1, p);
  }

  GatherProblem problem_;
  uint64_t element_bytes_;
  GatherPlan plan_;
  LoopNest<3> nest_;
  uint32_t multiprocessors_;
  DeviceTuples tuples_;
};

// A thread per unit of the output.
class GatherUnitsKernel final : public GatherKernel {
 public:
  using GatherKernel::GatherKernel;

 private:
  void Launch(Parameters p, uint32_t unit_bytes, const KernelArguments& arguments) const override {
    LoopNest<3> in_units = nest();
    if (unit_bytes > element_bytes()) {
      auto& inner = in_units.loops[in_units.rank - 1];
      inner.size = inner.size * element_bytes() / unit_bytes;
      inner.strides = {unit_bytes, unit_bytes, 0};
    }
    p.nest = DeviceNest<3>(in_units);
    p.count = static_cast<uint32_t>(Iterations(in_units));
    KernelChain chain(arguments.stream);
    DispatchByUnit(unit_bytes, [&]<typename Unit>() {
      chain.Launch(GatherUnits<Unit>, (uint64_t{p.count} + kThreads - 1) / kThreads, kThreads, p);
    });
  }
};

// A warp per piece of a row.
class GatherRowsKernel final : public GatherKernel {
 public:
  using GatherKernel::GatherKernel;

 private:
  void Launch(Parameters p, uint32_t unit_bytes, const KernelArguments& arguments) const override {
    LoopNest<3> rows = nest();
    const auto inner = TakeInnermost(&rows);
    p.nest = DeviceNest<3>(rows);
    p.row_units = static_cast<uint32_t>(inner.size * element_bytes() / unit_bytes);
    const uint32_t pieces = (p.row_units - 1) / kUnitsPerWarp + 1;
    p.pieces = FastDivisor(pieces);
    p.count = static_cast<uint32_t>(Iterations(rows) * pieces);
    KernelChain chain(arguments.stream);
    DispatchByUnit(unit_bytes, [&]<typename Unit>() {
      chain.Launch(GatherRows<Unit>, (uint64_t{p.count} * 32 + kThreads - 1) / kThreads, kThreads, p);
    });
  }
};

}  // namespace

std::unique_ptr<const Kernel> CreateGatherCudaUnits(const GatherProblem& problem, const LowerContext& context,
                                                    std::string*) {
  return std::make_unique<GatherUnitsKernel>(problem, context);
}

std::unique_ptr<const Kernel> CreateGatherCudaRows(const GatherProblem& problem, const LowerContext& context,
                                                   std::string* why_not) {
  const GatherPlan plan = MakeGatherPlan(problem);
  const uint64_t row_bytes = GatherKernel::HasRows(plan) ? plan.elements.loops[plan.elements.rank - 1].size *
                                                               (BitSize(problem.output.type) / 8)
                                                         : 0;
  if (row_bytes < kRowBytes) {
    *why_not = StrCat("neighbours of one tuple are ", row_bytes, " bytes, fewer than ", kRowBytes);
    return nullptr;
  }
  return std::make_unique<GatherRowsKernel>(problem, context);
}

}  // namespace anydml
