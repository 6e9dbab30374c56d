// cuda.transposed: sequences whose elements are not contiguous are copied to the temporary resource as rows;
// then the best kernel for rows runs.
#include <algorithm>
#include <memory>

#include "kernel/composite.h"
#include "ops/device/cuda/launch.h"
#include "ops/top_k/cuda/sequences.cuh"

namespace anydml {

namespace {

constexpr int kThreads = 256;
constexpr uint32_t kTile = 64;  // sequences, and elements of each

// A tile per block: lanes are sequences, contiguous in memory, while it is read, and elements while it is
// written.
template <int kBytes>
__global__ void __launch_bounds__(kThreads)
    Transpose(const __grid_constant__ TopKSequences all, UnsignedOf<kBytes>* rows) {
  constexpr uint32_t kPitch = kTile + std::max(1, 4 / kBytes);  // an odd number of banks
  constexpr uint32_t kStep = kThreads / kTile;
  __shared__ UnsignedOf<kBytes> tile[kTile][kPitch];
  const auto tiles = static_cast<uint32_t>((all.count + kTile - 1) / kTile);
  const uint64_t first = uint64_t{blockIdx.x % tiles} * kTile;
  const uint64_t first_element = uint64_t{blockIdx.x / tiles} * kTile;
  const uint32_t lane = threadIdx.x % kTile;
  const uint32_t line = threadIdx.x / kTile;
  if (first + lane < all.count) {
    const CudaSequence<kBytes> sequence(all, first + lane);
#pragma unroll
    for (uint32_t i = 0; i < kTile; i += kStep) {
      const uint64_t element = first_element + line + i;
      if (element < all.n) tile[line + i][lane] = __ldg(sequence.AddressOf(element));
    }
  }
  __syncthreads();
  if (first_element + lane >= all.n) return;
#pragma unroll
  for (uint32_t i = 0; i < kTile; i += kStep) {
    const uint64_t s = first + line + i;
    if (s < all.count) rows[s * all.n + first_element + lane] = tile[lane][line + i];
  }
}

// The same if elements are closer to each other than sequences: lanes are elements.
template <int kBytes>
__global__ void __launch_bounds__(kThreads)
    Gather(const __grid_constant__ TopKSequences all, UnsignedOf<kBytes>* rows) {
  const uint64_t at = uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (at >= all.count * all.n) return;
  rows[at] = __ldg(CudaSequence<kBytes>(all, at / all.n).AddressOf(at % all.n));
}

template <int kBytes>
class TopKTransposed final : public CompositeKernel {
 public:
  TopKTransposed(const TopKSequences& sequences, LoweredOperator of_rows)
      : sequences_(sequences),
        rows_(AddScratch("rows", sequences.count * sequences.n * kBytes)),
        of_rows_(AddPart(of_rows.implementation, std::move(of_rows.kernel))) {}

  Status Run(const KernelArguments& arguments) const override {
    const auto stream = static_cast<cudaStream_t>(arguments.stream);
    const TopKSequences all = Bind(sequences_, arguments);
    const Buffer rows = rows_.In(arguments.temporary);
    auto* const elements = reinterpret_cast<UnsignedOf<kBytes>*>(rows.data);
    const uint32_t rank = all.nest.rank;
    if (rank == 0 || all.nest.loops[rank - 1].strides[kInput] > all.axis[kInput]) {
      Gather<kBytes><<<Quotient(all.count * all.n, kThreads), kThreads, 0, stream>>>(all, elements);
    } else {
      const uint32_t tiles = Quotient(all.count, kTile) * Quotient(all.n, kTile);
      Transpose<kBytes><<<tiles, kThreads, 0, stream>>>(all, elements);
    }
    KernelArguments then = arguments;
    then.inputs = {&rows, 1};
    return RunPart(of_rows_, then);
  }

 private:
  static uint32_t Quotient(uint64_t dividend, uint32_t divisor) {  // rounded up
    return static_cast<uint32_t>((dividend + divisor - 1) / divisor);
  }

  const TopKSequences sequences_;
  const ScratchLayout::Piece rows_;
  const uint32_t of_rows_;
};

// The remaining problem: a dimension per loop over the sequences, then the axis.
TopKProblem ProblemOfRows(const TopKProblem& problem, const TopKSequences& all) {
  TopKProblem rows = problem;
  TensorDesc* const tensors[] = {&rows.input, &rows.value, &rows.index};
  const uint32_t rank = all.nest.rank;
  for (int operand : {kInput, kValue, kIndex}) {
    TensorDesc& tensor = *tensors[operand];
    tensor.rank = rank + 1;
    for (uint32_t d = 0; d < rank; ++d) {
      tensor.sizes[d] = static_cast<uint32_t>(all.nest.loops[d].size);
      tensor.strides[d] = static_cast<uint32_t>(all.nest.loops[d].strides[operand]);
    }
    tensor.sizes[rank] = operand == kInput ? all.n : all.k;
    tensor.strides[rank] = static_cast<uint32_t>(all.axis[operand]);
  }
  rows.axis = rank;
  uint32_t stride = 1;
  for (uint32_t d = rank + 1; d-- > 0; stride *= rows.input.sizes[d]) rows.input.strides[d] = stride;
  return rows;
}

template <int kBytes>
std::unique_ptr<const Kernel> Create(const TopKProblem& problem, const LowerContext& context,
                                     std::string* why_not) {
  const TopKSequences sequences = TopKSequencesOf(problem);
  const uint64_t elements = sequences.count * sequences.n;
  if (sequences.axis[kInput] == 1) {
    *why_not = "the elements of a sequence are neighbours already";
    return nullptr;
  }
  if (elements > 0xFFFFFFFF) {
    *why_not = StrCat(elements, " elements are too many for strides of rows");
    return nullptr;
  }
  if (elements * kBytes > sequences.input_bytes) {
    *why_not = "sequences share elements: the copy would be larger than the input";
    return nullptr;
  }
  LoweredOperator of_rows;
  const Status chosen = ChooseKernel(ProblemOfRows(problem, sequences), context.ForPart(), &of_rows);
  if (!chosen.ok()) {
    *why_not = StrCat("of rows: ", chosen.message());
    return nullptr;
  }
  // These read sequences in place as fast as from a copy.
  if ((of_rows.abilities & kReadsAnyStride) != 0) {
    *why_not = StrCat("rows would be left to ", of_rows.implementation, ", which does not need them");
    return nullptr;
  }
  return std::make_unique<TopKTransposed<kBytes>>(sequences, std::move(of_rows));
}

}  // namespace

std::unique_ptr<const Kernel> CreateTopKCudaTransposed(const TopKProblem& problem,
                                                       const LowerContext& context, std::string* why_not) {
  return DispatchBySize(problem.input.type,
                        [&]<int kBytes>() { return Create<kBytes>(problem, context, why_not); });
}

}  // namespace anydml
