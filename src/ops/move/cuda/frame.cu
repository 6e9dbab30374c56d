// PADDING with a constant and a contiguous output: a thread writes 16 bytes of the output, from the input or
// the constant. (As separate copies, the thin slabs around the input would write partial sectors, long before
// or after the rest of them.)
#include <algorithm>
#include <cstring>

#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/device/cuda/units.cuh"
#include "ops/device/nest.h"
#include "ops/move/problem.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kShortestRow = 16;  // then what a thread writes is in two rows at most

// A loop of the output. If `at - start` is below `inner`, there is an element of the input.
struct FrameLoop {
  uint32_t size = 1;
  uint32_t inner = 1;
  uint32_t start = 0;
  uint64_t stride = 0;  // in the input
};

struct DeviceLoop {
  FastDivisor size;
  uint32_t inner = 1;
  uint32_t start = 0;
  uint64_t stride = 0;

  DeviceLoop() = default;
  explicit DeviceLoop(const FrameLoop& loop)
      : size(loop.size), inner(loop.inner), start(loop.start), stride(loop.stride) {}
};

struct Parameters {
  const void* from = nullptr;
  void* to = nullptr;
  bool is_aligned = false;  // `to` is aligned to 16 bytes
  uint64_t fill = 0;
  uint32_t elements = 0;
  uint32_t rank = 0;  // of the loops around rows
  DeviceLoop loops[kMaxDimensions];
  DeviceLoop row;
};

// The source of a row of the output; null if it is all constant.
template <typename T>
__device__ const T* SourceOfRow(const Parameters& p, uint32_t row) {
  uint64_t offset = 0;
  bool is_inside = true;
  for (uint32_t d = p.rank; d-- > 0;) {
    uint32_t at = row;
    if (d > 0) row = p.loops[d].size.Divide(row, &at);
    const uint32_t inner = at - p.loops[d].start;
    is_inside = is_inside && inner < p.loops[d].inner;
    offset += inner * p.loops[d].stride;
  }
  return is_inside ? static_cast<const T*>(p.from) + offset : nullptr;
}

template <typename T>
__global__ void __launch_bounds__(kThreads) FrameKernel(const __grid_constant__ Parameters p) {
  constexpr uint32_t kCount = kMaxUnitBytes / sizeof(T);
  const uint64_t begin = (uint64_t{blockIdx.x} * kThreads + threadIdx.x) * kCount;
  if (begin >= p.elements) return;
  const auto first = static_cast<uint32_t>(begin);
  const uint32_t count = min(kCount, p.elements - first);
  const uint32_t length = p.row.size.divisor();
  uint32_t column;
  const uint32_t row = p.row.size.Divide(first, &column);
  const T* const here = SourceOfRow<T>(p, row);
  const T* const next = column + count > length ? SourceOfRow<T>(p, row + 1) : nullptr;
  struct alignas(kMaxUnitBytes) {
    T elements[kCount];
  } unit;
#pragma unroll
  for (uint32_t k = 0; k < kCount; ++k) {
    const bool is_here = column + k < length;
    const T* const source = is_here ? here : next;
    const uint32_t inner = column + k - (is_here ? 0 : length) - p.row.start;
    unit.elements[k] = static_cast<T>(p.fill);
    if (k < count && source != nullptr && inner < p.row.inner) {
      unit.elements[k] = source[inner * p.row.stride];
    }
  }
  T* const to = static_cast<T*>(p.to) + first;
  if (p.is_aligned && count == kCount) {
    uint4 bytes;
    memcpy(&bytes, &unit, sizeof(bytes));
    *reinterpret_cast<uint4*>(to) = bytes;
    return;
  }
#pragma unroll
  for (uint32_t k = 0; k < kCount; ++k) {
    if (k < count) to[k] = unit.elements[k];
  }
}

// The same if rows of the input are contiguous, too, in bytes: a block has a chunk of the output in shared
// memory. It fills the chunk with the constant, copies aligned units of the input to their places, and writes
// units.
constexpr uint32_t kChunkBytes = 8 << 10;
constexpr uint32_t kShortestBytes = 64;  // of a row of the output
constexpr uint32_t kMostRows = kChunkBytes / kShortestBytes + 2;

struct ChunkParameters {
  const std::byte* from = nullptr;
  uint64_t from_bytes = 0;  // from the input's first byte to its last
  std::byte* to = nullptr;
  uint4 fill = {};
  uint64_t bytes = 0;                // of the output
  uint32_t length = 1;               // of a row of the output
  uint32_t start = 0;                // the input's first byte in it
  uint32_t inner = 0;                // of a row of the input
  FastDivisor units;                 // that may contain parts of a chunk's row
  uint32_t rank = 0;                 // of the loops around rows
  DeviceLoop loops[kMaxDimensions];  // strides in bytes
};

// Bytes [begin, end) of a chunk, and the source of the first one.
struct ChunkRow {
  uint64_t from;
  int32_t begin, end;
};

__device__ ChunkRow FindRow(const ChunkParameters& p, uint64_t chunk_begin, int32_t chunk_bytes,
                            uint32_t row) {
  const auto data_begin =
      static_cast<int32_t>(static_cast<int64_t>(uint64_t{row} * p.length + p.start - chunk_begin));
  uint64_t offset = 0;
  bool is_inside = true;
  for (uint32_t d = p.rank; d-- > 0;) {
    uint32_t at = row;
    if (d > 0) row = p.loops[d].size.Divide(row, &at);
    const uint32_t inner = at - p.loops[d].start;
    is_inside = is_inside && inner < p.loops[d].inner;
    offset += inner * p.loops[d].stride;
  }
  const int32_t begin = max(data_begin, 0);
  const int32_t end = min(data_begin + static_cast<int32_t>(p.inner), chunk_bytes);
  if (!is_inside || begin >= end) return {0, 0, 0};
  return {reinterpret_cast<uint64_t>(p.from) + offset + static_cast<uint32_t>(begin - data_begin), begin,
          end};
}

// A unit of the input and its place in the chunk; bytes outside [begin, end) do not belong to this row.
struct ChunkUnit {
  uint4 unit;
  int32_t to = 0, begin = 0, end = 0;

  __device__ ChunkUnit(const ChunkParameters& p, const ChunkRow& row, uint32_t number)
      : unit{}, begin(row.begin), end(row.end) {
    const auto before = static_cast<uint32_t>(row.from % 16);
    to = begin + static_cast<int32_t>(number * 16) - static_cast<int32_t>(before);
    if (to >= end) return;
    const uint64_t from = row.from - before + uint64_t{number} * 16;
    const auto input = reinterpret_cast<uint64_t>(p.from);
    if (from >= input && from + 16 <= input + p.from_bytes) {
      unit = __ldcs(reinterpret_cast<const uint4*>(from));
    } else {
      unit = LoadBytes(from);
    }
  }

  // Memory before the input's first byte and after its last one may not be readable.
  __device__ uint4 LoadBytes(uint64_t from) const {
    uint64_t low = 0, high = 0;
#pragma unroll 1
    for (uint32_t b = 0; b < 16; ++b) {
      const int32_t at = to + static_cast<int32_t>(b);
      if (at < begin || at >= end) continue;
      const uint64_t byte = reinterpret_cast<const uint8_t*>(from)[b];
      (b < 8 ? low : high) |= byte << (b % 8 * 8);
    }
    return {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32), static_cast<uint32_t>(high),
            static_cast<uint32_t>(high >> 32)};
  }

  __device__ void Put(std::byte* chunk) const {
    if (to >= end) return;
    const uint32_t words[4] = {unit.x, unit.y, unit.z, unit.w};
    const auto byte = [&](uint32_t b) {
      chunk[to + static_cast<int32_t>(b)] = static_cast<std::byte>(words[b / 4] >> (b % 4 * 8));
    };
    if (to < begin || to + 16 > end) {
#pragma unroll
      for (uint32_t b = 0; b < 16; ++b) {
        const int32_t at = to + static_cast<int32_t>(b);
        if (at >= begin && at < end) byte(b);
      }
      return;
    }
    const uint32_t odd = to % 4;
    auto* const target = reinterpret_cast<uint32_t*>(chunk + to - odd);
    if (odd == 0) {
#pragma unroll
      for (uint32_t w = 0; w < 4; ++w) target[w] = words[w];
      return;
    }
#pragma unroll
    for (uint32_t w = 1; w < 4; ++w) target[w] = __funnelshift_r(words[w - 1], words[w], 32 - odd * 8);
    if (odd == 2) {
      reinterpret_cast<uint16_t*>(target)[1] = static_cast<uint16_t>(words[0]);
      reinterpret_cast<uint16_t*>(target)[8] = static_cast<uint16_t>(words[3] >> 16);
      return;
    }
#pragma unroll
    for (uint32_t b = 0; b < 3; ++b) {
      if (b < 4 - odd) byte(b);
      if (b < odd) byte(15 - b);
    }
  }
};

__global__ void __launch_bounds__(kThreads) FrameChunksKernel(const __grid_constant__ ChunkParameters p) {
  __shared__ uint4 units[kChunkBytes / sizeof(uint4)];
  __shared__ ChunkRow rows[kMostRows];
  const uint64_t chunk_begin = uint64_t{blockIdx.x} * kChunkBytes;
  const auto chunk_bytes = static_cast<int32_t>(min(uint64_t{kChunkBytes}, p.bytes - chunk_begin));
  const uint64_t first_row = chunk_begin / p.length;
  const auto skipped = static_cast<uint32_t>(chunk_begin - first_row * p.length);
  const uint32_t row_count = (skipped + static_cast<uint32_t>(chunk_bytes) - 1) / p.length + 1;
  if (threadIdx.x < row_count) {
    rows[threadIdx.x] = FindRow(p, chunk_begin, chunk_bytes, static_cast<uint32_t>(first_row) + threadIdx.x);
  }
  for (uint32_t i = threadIdx.x; i < kChunkBytes / sizeof(uint4); i += kThreads) units[i] = p.fill;
  __syncthreads();
  auto* const chunk = reinterpret_cast<std::byte*>(units);
  const uint32_t tasks = row_count * p.units.divisor();
  constexpr uint32_t kAtOnce = 3;
  for (uint32_t first = threadIdx.x; first < tasks; first += kAtOnce * kThreads) {
    const auto load = [&](uint32_t task) {
      uint32_t number = 0;
      const uint32_t row = p.units.Divide(task, &number);
      return ChunkUnit(p, row < row_count ? rows[row] : ChunkRow{0, 0, 0}, number);
    };
    const ChunkUnit loaded[kAtOnce] = {load(first), load(first + kThreads), load(first + 2 * kThreads)};
#pragma unroll
    for (const ChunkUnit& unit : loaded) unit.Put(chunk);
  }
  __syncthreads();
  for (int32_t at = threadIdx.x * 16; at < chunk_bytes; at += kThreads * 16) {
    std::byte* const to = p.to + chunk_begin + at;
    if (at + 16 <= chunk_bytes) {
      *reinterpret_cast<uint4*>(to) = units[at / 16];
      continue;
    }
    for (int32_t b = 0; at + b < chunk_bytes; ++b) to[b] = chunk[at + b];
  }
}

// Dimensions from the outermost; those without a frame that continue the enclosing one are merged with it.
template <typename Desc>
std::vector<FrameLoop> LoopsOf(const Desc& desc) {
  std::vector<FrameLoop> loops;
  for (uint32_t d = 0; d < desc.output.rank; ++d) {
    const uint32_t size = desc.output.sizes[d], inner = desc.input.sizes[d];
    const uint64_t stride = desc.input.strides[d];
    if (size == 1) continue;
    if (!loops.empty() && size == inner && loops.back().stride == inner * stride) {
      FrameLoop& last = loops.back();
      last = {last.size * size, last.inner * inner, last.start * size, stride};
    } else {
      loops.push_back({size, inner, desc.start_padding[d], stride});
    }
  }
  return loops;
}

bool IsPacked(const TensorDesc& tensor) {
  uint64_t expected = 1;
  for (uint32_t d = tensor.rank; d-- > 0; expected *= tensor.sizes[d]) {
    if (tensor.sizes[d] != 1 && tensor.strides[d] != expected) return false;
  }
  return true;
}

class FrameCuda final : public Kernel {
 public:
  FrameCuda(const MoveProblem& problem, const std::vector<FrameLoop>& loops, uint64_t elements)
      : element_bytes_(BitSize(problem.type) / 8) {
    common_.fill = problem.fill;
    common_.elements = static_cast<uint32_t>(elements);
    common_.rank = static_cast<uint32_t>(loops.size() - 1);
    for (uint32_t d = 0; d < common_.rank; ++d) common_.loops[d] = DeviceLoop(loops[d]);
    common_.row = DeviceLoop(loops.back());
    FindChunks(loops, elements);
  }

  Status Run(const KernelArguments& arguments) const override {
    Parameters p = common_;
    p.from = arguments.inputs[0].data;
    p.to = arguments.outputs[0].data;
    p.is_aligned = AddressOf(p.to) % kMaxUnitBytes == 0;
    if (has_chunks_ && p.is_aligned) {
      ChunkParameters chunks = chunks_;
      chunks.from = arguments.inputs[0].data;
      chunks.to = arguments.outputs[0].data;
      KernelChain(arguments.stream)
          .Launch(FrameChunksKernel, (chunks.bytes + kChunkBytes - 1) / kChunkBytes, kThreads, chunks);
      return {};
    }
    const uint64_t per_block = uint64_t{kThreads} * (kMaxUnitBytes / element_bytes_);
    const uint64_t blocks = (p.elements + per_block - 1) / per_block;
    DispatchByUnit(element_bytes_, [&]<typename T>() {
      if constexpr (sizeof(T) <= 8) {
        KernelChain(arguments.stream).Launch(FrameKernel<T>, blocks, kThreads, p);
      }
    });
    return {};
  }

 private:
  void FindChunks(const std::vector<FrameLoop>& loops, uint64_t elements) {
    const FrameLoop& row = loops.back();
    const uint64_t length = uint64_t{row.size} * element_bytes_;
    has_chunks_ = row.stride == 1 && length >= kShortestBytes && length < uint64_t{1} << 30;
    if (!has_chunks_) return;
    chunks_.bytes = elements * element_bytes_;
    chunks_.length = static_cast<uint32_t>(length);
    chunks_.start = row.start * element_bytes_;
    chunks_.inner = row.inner * element_bytes_;
    chunks_.units = FastDivisor(std::min(chunks_.inner, kChunkBytes) / kMaxUnitBytes + 2);
    chunks_.rank = common_.rank;
    uint64_t last = 0;
    for (const FrameLoop& loop : loops) last += (loop.inner - 1) * loop.stride;
    chunks_.from_bytes = (last + 1) * element_bytes_;
    for (uint32_t d = 0; d < chunks_.rank; ++d) {
      chunks_.loops[d] = common_.loops[d];
      chunks_.loops[d].stride *= element_bytes_;
    }
    std::byte bytes[sizeof(uint4)];
    for (uint32_t i = 0; i < sizeof(bytes); i += element_bytes_) {
      std::memcpy(bytes + i, &common_.fill, element_bytes_);
    }
    std::memcpy(&chunks_.fill, bytes, sizeof(chunks_.fill));
  }

  uint32_t element_bytes_;
  Parameters common_;  // without addresses
  bool has_chunks_ = false;
  ChunkParameters chunks_;  // without addresses
};

template <typename Desc>
std::unique_ptr<const Kernel> CreateFrame(const MoveProblem& problem, const Desc& desc,
                                          std::string* why_not) {
  const std::vector<FrameLoop> loops = LoopsOf(desc);
  if (desc.padding_mode != PaddingMode::kConstant) {
    *why_not = "the padding is no constant";
  } else if (!IsPacked(desc.output)) {
    *why_not = "the output has gaps";
  } else if (loops.empty() || loops.back().size < kShortestRow) {
    *why_not = StrCat("rows are shorter than ", kShortestRow, " elements");
  } else {
    return std::make_unique<FrameCuda>(problem, loops, ElementCount(desc.output));
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<const Kernel> CreateFrameCuda(const MoveProblem& problem, const LowerContext&,
                                              std::string* why_not) {
  switch (static_cast<OperatorType>(problem.desc.schema->type)) {
    case OperatorType::kPadding:
      return CreateFrame(problem, PaddingDesc::From(problem.desc), why_not);
    case OperatorType::kPadding1:
      return CreateFrame(problem, Padding1Desc::From(problem.desc), why_not);
    default:
      *why_not = "nothing is padded";
      return nullptr;
  }
}

}  // namespace anydml
