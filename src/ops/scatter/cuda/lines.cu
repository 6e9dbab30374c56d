#include "ops/scatter/cuda/lines.cuh"

namespace anydml {
namespace {

constexpr uint32_t kLineThreads = 256;
constexpr uint32_t kEntries = 8192;      // claims per block, 32 KiB
constexpr uint32_t kMaxAtOnce = 128;     // lines
constexpr uint32_t kMaxUpdates = 65536;  // that one block reads
constexpr uint32_t kBusyBlocks = 6;      // per multiprocessor
// Across the axis, threads walk from line to line: with fewer, much of every sector would be wasted.
constexpr uint32_t kMinAcross = 8;

// A place in a block's lines.
struct Place {
  uint32_t line;
  uint32_t at;  // along the axis
};

// Place `number` of lines of `length`, in the order of memory.
__device__ Place PlaceOf(const LinesParameters& p, const FastDivisor& length, uint32_t number) {
  Place place;
  if (p.along) {
    place.line = length.Divide(number, &place.at);
  } else {
    place.at = p.at_once.Divide(number, &place.line);
  }
  return place;
}

// The position in row-major order of the indices.
__device__ uint32_t PositionOf(const LinesParameters& p, uint32_t line, uint32_t at) {
  uint32_t behind;
  const uint32_t before = p.behind.Divide(line, &behind);
  return (before * p.updates.divisor() + at) * p.behind.divisor() + behind;
}

// First elements of a block's lines.
using Starts = uint64_t[kMaxAtOnce][4];

__device__ void ClaimLines(const LinesParameters& p, uint32_t first_line, uint32_t lines,
                           const Starts& starts, uint32_t* claims) {
  const DeviceTuples::Component& component = p.write.tuples.tuple[0];
  const uint32_t places = p.at_once.divisor() * p.updates.divisor();
  for (uint32_t base = 0; base < places; base += kLineThreads) {  // all lanes of a warp stay together
    const uint32_t number = base + threadIdx.x;
    const Place place = PlaceOf(p, p.updates, number);
    const bool exists = number < places && place.line < lines;
    bool in_range = false;
    if (exists) {
      const int64_t value = LoadIndex(p.write.tuples, starts[place.line][LinesParameters::kIndices] +
                                                          place.at * p.strides[LinesParameters::kIndices]);
      const uint64_t index = static_cast<uint64_t>(value) + (value < 0 ? component.wrap : 0);
      in_range = index < component.size;
      if (in_range) {
        atomicMax(&claims[place.line * p.size.divisor() + static_cast<uint32_t>(index)], place.at + 1);
      }
    }
    if (p.write.note != nullptr) {
      KeepFirstBad(exists && !in_range, PositionOf(p, first_line + place.line, place.at),
                   p.write.claims.first_bad);
    }
  }
}

template <typename Element>
__device__ void WriteLines(const LinesParameters& p, uint32_t lines, const Starts& starts,
                           const uint32_t* claims) {
  constexpr uint32_t kPerThread = 8;
  const uint32_t places = p.at_once.divisor() * p.size.divisor();
  for (uint32_t base = threadIdx.x; base < places; base += kLineThreads * kPerThread) {
    Element values[kPerThread];
    Element* targets[kPerThread];
#pragma unroll
    for (uint32_t i = 0; i < kPerThread; ++i) {
      const uint32_t number = base + i * kLineThreads;
      const Place place = PlaceOf(p, p.size, number);
      targets[i] = nullptr;
      if (number >= places || place.line >= lines) continue;
      const uint64_t(&start)[4] = starts[place.line];
      const uint32_t claim = claims[place.line * p.size.divisor() + place.at];
      if (claim == 0 && p.input == nullptr) continue;
      const std::byte* source = claim == 0 ? p.input + start[LinesParameters::kInput] +
                                                 place.at * p.strides[LinesParameters::kInput]
                                           : p.write.updates + start[LinesParameters::kUpdates] +
                                                 (claim - 1) * p.strides[LinesParameters::kUpdates];
      values[i] = *reinterpret_cast<const Element*>(source);
      targets[i] = reinterpret_cast<Element*>(p.write.output + start[LinesParameters::kOutput] +
                                              place.at * p.strides[LinesParameters::kOutput]);
    }
#pragma unroll
    for (uint32_t i = 0; i < kPerThread; ++i) {
      if (targets[i] != nullptr) __stcs(targets[i], values[i]);
    }
  }
}

template <typename Element>
__global__ void __launch_bounds__(kLineThreads) ScatterLines(const __grid_constant__ LinesParameters p) {
  __shared__ uint32_t claims[kEntries];
  __shared__ Starts starts;
  const uint32_t first_line = blockIdx.x * p.at_once.divisor();
  const uint32_t lines = min(p.at_once.divisor(), p.lines - first_line);
  for (uint32_t i = threadIdx.x; i < lines * p.size.divisor(); i += kLineThreads) claims[i] = 0;
  if (threadIdx.x < lines) p.starts.OffsetsOf(first_line + threadIdx.x, starts[threadIdx.x]);
  WaitForPrevious();
  __syncthreads();
  ClaimLines(p, first_line, lines, starts, claims);
  __syncthreads();
  WriteLines<Element>(p, lines, starts, claims);
}

}  // namespace

LinesParameters PlanLines(const ScatterProblem& problem, uint32_t multiprocessors) {
  LinesParameters p = {};
  if (problem.kind != ScatterProblem::Kind::kElements) return p;
  const uint64_t element_bytes = BitSize(problem.output.type) / 8;
  const auto strides_along = [&](uint32_t d) -> LoopNest<4>::Offsets {
    return {problem.input.strides[d] * element_bytes, problem.indices.strides[d],
            problem.updates.strides[d] * element_bytes, problem.output.strides[d] * element_bytes};
  };
  const uint32_t axis = problem.axis;
  LoopNest<4> nest;
  uint32_t behind = 1;
  for (uint32_t d = 0; d < problem.output.rank; ++d) {
    if (d == axis) continue;
    nest.Append(problem.output.sizes[d], strides_along(d));
    if (d > axis) behind *= problem.output.sizes[d];
  }
  const auto along_axis = strides_along(axis);
  std::copy(along_axis.begin(), along_axis.end(), p.strides);
  p.along = nest.rank == 0 || along_axis[LinesParameters::kOutput] <=
                                  nest.loops[nest.rank - 1].strides[LinesParameters::kOutput];
  const uint32_t size = problem.output.sizes[axis];
  const auto lines = static_cast<uint32_t>(Iterations(nest));
  const uint32_t updates = problem.indices.sizes[axis];
  const uint32_t least = p.along ? 1 : kMinAcross;
  const uint32_t most = std::min({kEntries / size, kMaxAtOnce, lines});
  if (most < least || uint64_t{least} * updates > kMaxUpdates) return p;
  // The fewest that keep the device busy.
  const uint32_t at_once = std::clamp(lines / (multiprocessors * kBusyBlocks), least,
                                      std::min(most, std::max<uint32_t>(least, kMaxUpdates / updates)));
  p.lines = lines;
  p.at_once = FastDivisor(at_once);
  p.size = FastDivisor(size);
  p.updates = FastDivisor(updates);
  p.behind = FastDivisor(behind);
  p.starts = DeviceNest<4>(nest);
  return p;
}

void LaunchLines(KernelChain* chain, const LinesParameters& parameters) {
  const uint64_t at_once = parameters.at_once.divisor();
  DispatchByUnit(parameters.write.unit_bytes, [&]<typename Unit>() {
    if constexpr (sizeof(Unit) <= sizeof(uint64_t)) {
      chain->Launch(ScatterLines<Unit>, (parameters.lines + at_once - 1) / at_once, kLineThreads, parameters);
    }
  });
}

}  // namespace anydml
