#include "ops/device/cuda/indices.cuh"
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/device/cuda/units.cuh"
#include "ops/gather/plan.h"

namespace anydml {
namespace {

static_assert(kGatherLanes == 32);  // a warp per piece: its neighbours' reads are together

// In bytes.
__device__ uint64_t SourceOf(const GatherTuples& tuples, uint64_t at, bool* in_range) {
  uint64_t offset = 0;
  for (uint32_t c = 0; c < tuples.tuple_size; ++c) {
    const GatherLoops::Component& component = tuples.tuple[c];
    const int64_t value = LoadIndex(tuples.indices, at + component.index_offset);
    offset += ResolveIndex(component, value, tuples.indices.is_signed, in_range) * component.input_stride;
  }
  return offset;
}

template <typename Unit>
__global__ void __launch_bounds__(kGatherThreads) GatherUnits(const __grid_constant__ GatherParameters p) {
  const uint64_t number = uint64_t{blockIdx.x} * kGatherThreads + threadIdx.x;
  if (number >= p.count) return;
  uint64_t at[3];
  p.nest.OffsetsOf(static_cast<uint32_t>(number), at);
  bool ignored = true;
  const uint64_t from = at[GatherLoops::kInput] + SourceOf(p.tuples, at[GatherLoops::kIndices], &ignored);
  *reinterpret_cast<Unit*>(p.output + at[GatherLoops::kOutput]) =
      __ldg(reinterpret_cast<const Unit*>(p.input + from));
}

template <typename Unit>
__global__ void __launch_bounds__(kGatherThreads) GatherRows(const __grid_constant__ GatherParameters p) {
  const uint64_t warp = (uint64_t{blockIdx.x} * kGatherThreads + threadIdx.x) / kGatherLanes;
  if (warp >= p.count) return;
  uint32_t piece;
  const uint32_t row = p.pieces.Divide(static_cast<uint32_t>(warp), &piece);
  uint64_t at[3];
  p.nest.OffsetsOf(row, at);
  bool ignored = true;
  const uint64_t source = at[GatherLoops::kInput] + SourceOf(p.tuples, at[GatherLoops::kIndices], &ignored);
  const auto* from = reinterpret_cast<const Unit*>(p.input + source);
  auto* to = reinterpret_cast<Unit*>(p.output + at[GatherLoops::kOutput]);
  const uint32_t first = piece * kGatherPieceUnits + threadIdx.x % kGatherLanes;
  Unit units[kGatherUnitsPerThread];
#pragma unroll
  for (uint32_t i = 0; i < kGatherUnitsPerThread; ++i) {
    if (first + i * kGatherLanes < p.row_units) units[i] = __ldg(from + first + i * kGatherLanes);
  }
#pragma unroll
  for (uint32_t i = 0; i < kGatherUnitsPerThread; ++i) {
    if (first + i * kGatherLanes < p.row_units) __stcs(to + first + i * kGatherLanes, units[i]);
  }
}

__global__ void __launch_bounds__(kGatherThreads)
    FindFirstBad(const __grid_constant__ GatherNoteParameters p) {
  const uint64_t step = uint64_t{gridDim.x} * kGatherThreads;
  for (uint64_t i = uint64_t{blockIdx.x} * kGatherThreads + threadIdx.x; i < p.count; i += step) {
    uint64_t at[1];
    p.nest.OffsetsOf(static_cast<uint32_t>(i), at);
    bool in_range = true;
    SourceOf(p.tuples, at[0], &in_range);
    if (in_range) continue;
    atomicMax(p.first_bad, ~static_cast<uint32_t>(i));
    return;  // later ones do not matter
  }
}

__global__ void WriteNote(const __grid_constant__ GatherNoteParameters p) {
  WaitForPrevious();
  if (*p.first_bad == 0) return;
  const uint32_t position = ~*p.first_bad;
  uint64_t at[1];
  p.nest.OffsetsOf(position, at);
  for (uint32_t c = 0; c < p.tuples.tuple_size; ++c) {
    p.note->values[c] = LoadIndex(p.tuples.indices, at[0] + p.tuples.tuple[c].index_offset);
  }
  p.note->position = position;
  __threadfence_system();
}

class GatherCuda final : public Kernel {
 public:
  GatherCuda(const GatherProblem& problem, GatherPlan plan) : problem_(problem), plan_(std::move(plan)) {}

  uint64_t temporary_bytes() const override { return plan_.temporary_bytes; }
  uint32_t note_count() const override { return 1; }
  std::string Describe(uint32_t, const DataErrorNote& note) const override {
    return DescribeBadIndex(problem_, note.values, TupleCoordinate(problem_, note.position));
  }

  Status Run(const KernelArguments& arguments) const override {
    const std::byte* const input = arguments.inputs[0].data;
    std::byte* const output = arguments.outputs[0].data;
    GatherLaunch launch = LaunchOf(plan_, AddressOf(input) | AddressOf(output));
    launch.parameters.tuples.indices.data = arguments.inputs[1].data;
    launch.parameters.input = input;
    launch.parameters.output = output;
    KernelChain chain(arguments.stream);
    DispatchByUnit(launch.unit_bytes, [&]<typename Unit>() {
      const bool by_rows = plan_.kernel == GatherPlan::Kernel::kRows;
      chain.Launch(by_rows ? GatherRows<Unit> : GatherUnits<Unit>, launch.grid, launch.parameters);
    });
    if (arguments.note() != nullptr) LaunchNote(arguments);
    return {};
  }

 private:
  void LaunchNote(const KernelArguments& arguments) const {
    GatherNoteParameters p = plan_.note;
    p.tuples.indices.data = arguments.inputs[1].data;
    p.first_bad = reinterpret_cast<uint32_t*>(arguments.temporary.data);
    p.note = arguments.note();
    cudaMemsetAsync(p.first_bad, 0, sizeof(uint32_t), static_cast<cudaStream_t>(arguments.stream));
    KernelChain chain(arguments.stream);
    chain.Launch(FindFirstBad, plan_.note_grid, p);
    chain.Launch(WriteNote, 1, 1, p);
  }

  GatherProblem problem_;
  GatherPlan plan_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateGatherCudaUnits(const GatherProblem& problem, const LowerContext& context,
                                                    std::string*) {
  return std::make_unique<GatherCuda>(problem,
                                      MakeGatherPlan(problem, GatherPlan::Kernel::kUnits, *context.device));
}

std::unique_ptr<const Kernel> CreateGatherCudaRows(const GatherProblem& problem, const LowerContext& context,
                                                   std::string* why_not) {
  const uint64_t row_bytes = GatherRowBytes(problem);
  if (row_bytes < kGatherRowBytes) {
    *why_not = StrCat("neighbours of one tuple are ", row_bytes, " bytes, fewer than ", kGatherRowBytes);
    return nullptr;
  }
  return std::make_unique<GatherCuda>(problem,
                                      MakeGatherPlan(problem, GatherPlan::Kernel::kRows, *context.device));
}

}  // namespace anydml
