#include "ops/attention/steps.h"

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "ops/attention/cuda/join.h"
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/device/cuda/softmax_rows.cuh"

namespace anydml {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint64_t kMostBlocks = uint64_t{1} << 20;

__device__ float ToNumber(float x) { return x; }
__device__ float ToNumber(__half x) { return __half2float(x); }

// Makes NaNs canonical.
__device__ float WithOneNan(float x) { return isnan(x) ? __uint_as_float(0x7FC00000u) : x; }
__device__ void PutNumber(float x, float* to) { *to = x; }
__device__ void PutNumber(float x, __half* to) {
  *to = isnan(x) ? __ushort_as_half(0x7E00) : __float2half_rn(x);
}

struct JoinParameters {
  AttentionJoin join;
  AttentionJoinMemory memory;
  uint64_t rows;           // of all heads
  uint32_t element_bytes;  // for CopyRows
  uint32_t units;          // of 16 bytes in a row
};

template <typename T>
__device__ void JoinElement(const JoinParameters& p, const AttentionRowPlace& place, uint64_t b, uint64_t h,
                            uint64_t r, uint64_t c, uint64_t copy_at) {
  const AttentionJoin& join = p.join;
  if (place.source == AttentionRowSource::kNone) {
    if (!join.has_copy) return;
    if (join.copy_is_half) {
      reinterpret_cast<uint16_t*>(p.memory.copy)[copy_at] = 0;
    } else {
      reinterpret_cast<float*>(p.memory.copy)[copy_at] = 0;
    }
    return;
  }
  const bool is_past = place.source == AttentionRowSource::kPast;
  const AttentionView& view = is_past ? join.past_view : join.fresh_view;
  const T element =
      reinterpret_cast<const T*>(is_past ? p.memory.past : p.memory.fresh)[view.At(b, h, place.row, c)];
  T* const present = reinterpret_cast<T*>(p.memory.present) + join.present.At(b, h, r, c);
  if (!is_past && join.bias.exists) {
    const T bias = reinterpret_cast<const T*>(p.memory.bias)[join.bias.At(b, h, 0, c)];
    const float sum = WithOneNan(__fadd_rn(ToNumber(element), ToNumber(bias)));
    if (join.present.exists) PutNumber(sum, present);
    if (join.has_copy) reinterpret_cast<float*>(p.memory.copy)[copy_at] = sum;
    return;
  }
  if (join.present.exists && !(is_past && join.lengths.exists)) *present = element;
  if (!join.has_copy) return;
  if (join.copy_is_half) {
    reinterpret_cast<T*>(p.memory.copy)[copy_at] = element;
  } else {
    reinterpret_cast<float*>(p.memory.copy)[copy_at] = ToNumber(element);
  }
}

// A warp per row.
template <typename T>
__global__ void __launch_bounds__(kThreads) JoinRows(const __grid_constant__ JoinParameters p) {
  const AttentionJoin& join = p.join;
  const uint64_t step = uint64_t{gridDim.x} * (kThreads / 32);
  for (uint64_t number = (uint64_t{blockIdx.x} * kThreads + threadIdx.x) / 32; number < p.rows;
       number += step) {
    const uint64_t head = number / join.rows;
    const uint64_t r = number - head * join.rows;
    const uint64_t b = head / join.heads;
    const uint64_t h = head - b * join.heads;
    const AttentionRowPlace place = PlaceOf(join, p.memory.lengths, b, r);
    for (uint64_t c = threadIdx.x % 32; c < join.columns; c += 32) {
      JoinElement<T>(p, place, b, h, r, c, number * join.columns + c);
    }
  }
}

// Rows that are only copied, in units of 16 bytes, of which there are fewer than 2^32.
__global__ void __launch_bounds__(kThreads) CopyRows(const __grid_constant__ JoinParameters p) {
  const AttentionJoin& join = p.join;
  const auto rows = static_cast<uint32_t>(join.rows), heads = static_cast<uint32_t>(join.heads);
  const uint64_t all = p.rows * p.units, step = uint64_t{gridDim.x} * kThreads;
  WaitForPrevious();
  LetNextStart();
  for (uint64_t i = uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < all; i += step) {
    const uint32_t number = static_cast<uint32_t>(i) / p.units, unit = static_cast<uint32_t>(i) % p.units;
    const uint32_t head = number / rows, r = number % rows, b = head / heads, h = head % heads;
    const AttentionRowPlace place = PlaceOf(join, p.memory.lengths, b, r);
    uint4 bits = {};
    if (place.source != AttentionRowSource::kNone) {
      const bool is_past = place.source == AttentionRowSource::kPast;
      const AttentionView& view = is_past ? join.past_view : join.fresh_view;
      const std::byte* const row =
          (is_past ? p.memory.past : p.memory.fresh) + view.At(b, h, place.row) * p.element_bytes;
      bits = reinterpret_cast<const uint4*>(row)[unit];
    }
    reinterpret_cast<uint4*>(p.memory.copy)[i] = bits;
  }
}

// Whether CopyRows can do it; sets its parameters.
bool IsCopyOfUnits(bool is_half, JoinParameters* p) {
  constexpr uint64_t kUnitBytes = 16, kMostUnits = uint64_t{1} << 32;
  const AttentionJoin& join = p->join;
  p->element_bytes = is_half ? 2 : 4;
  const uint64_t elements = kUnitBytes / p->element_bytes;
  const auto has_units = [&](const AttentionView& view) {
    return !view.exists ||
           (view.column == 1 && (view.offset | view.batch | view.head | view.row) % elements == 0);
  };
  if (!join.has_copy || join.copy_is_half != is_half || join.present.exists || join.bias.exists) return false;
  if (join.columns % elements != 0 || !has_units(join.past_view) || !has_units(join.fresh_view)) return false;
  p->units = static_cast<uint32_t>(join.columns / elements);
  return join.columns / elements < kMostUnits && p->rows < kMostUnits / p->units;
}

struct WeighParameters {
  AttentionWeights weights;
  AttentionWeightsMemory memory;
  float* logits;
  uint64_t rows;
};

// What the mask adds to the logits of one query.
class HiddenKeys {
 public:
  __device__ HiddenKeys(const WeighParameters& p, uint64_t b, uint64_t h, uint64_t q, uint64_t keys)
      : query_(static_cast<int64_t>(q)), value_(p.weights.mask.value) {
    const AttentionMask& mask = p.weights.mask;
    if (!mask.view.exists) return;
    if (mask.type == MultiheadAttentionMaskType::kBoolean) {
      shown_ = p.memory.mask + mask.view.At(b, h, q);
      stride_ = mask.view.column;
      bool any = false;
      for (uint64_t k = threadIdx.x; k < keys; k += kThreads) any = any || shown_[k * stride_] != 0;
      hides_ = __syncthreads_or(any) != 0;
    } else {
      window_ = WindowOf(mask, p.memory.mask, b, p.weights.batch);
      hides_ = window_.ShowsAny(query_, static_cast<int64_t>(keys));
    }
  }

  __device__ float operator()(uint64_t k) const {
    if (!hides_) return 0;
    const bool shows =
        shown_ != nullptr ? shown_[k * stride_] != 0 : window_.Shows(query_, static_cast<int64_t>(k));
    return shows ? 0 : value_;
  }

 private:
  int64_t query_;
  float value_;
  bool hides_ = false;  // some keys, but not all
  const int32_t* shown_ = nullptr;
  uint64_t stride_ = 0;
  AttentionWindow window_;
};

// A warp per row without a mask, with up to 32 * kNumbers keys, which stay in registers: read once, written
// once.
template <typename T, uint32_t kNumbers>
__global__ void __launch_bounds__(kThreads) WeighShortRows(const __grid_constant__ WeighParameters p) {
  const AttentionWeights& weights = p.weights;
  const uint32_t lane = threadIdx.x % 32;
  const uint64_t step = uint64_t{gridDim.x} * (kThreads / 32);
  WaitForPrevious();
  for (uint64_t number = (uint64_t{blockIdx.x} * kThreads + threadIdx.x) / 32; number < p.rows;
       number += step) {
    const uint64_t head = number / weights.queries;
    const uint64_t q = number - head * weights.queries;
    const uint64_t b = head / weights.heads;
    const uint64_t h = head - b * weights.heads;
    float* const x = p.logits + number * weights.keys;
    const auto all = static_cast<uint32_t>(weights.keys);
    const auto keys = static_cast<uint32_t>(KeysOf(weights, p.memory.lengths, b, q));
    const bool has_bias = weights.position_bias.exists;
    const T* const bias =
        reinterpret_cast<const T*>(p.memory.position_bias) + weights.position_bias.At(b, h, q);
    float numbers[kNumbers];
#pragma unroll
    for (uint32_t i = 0; i < kNumbers; ++i) {
      const uint32_t k = i * 32 + lane;
      numbers[i] = k < keys ? x[k] : softmax::Larger::kNone;
    }
    float max = softmax::Larger::kNone;
#pragma unroll
    for (uint32_t i = 0; i < kNumbers; ++i) {
      const uint32_t k = i * 32 + lane;
      if (has_bias && k < keys) {
        numbers[i] = __fadd_rn(numbers[i], ToNumber(bias[k * weights.position_bias.column]));
      }
      max = softmax::Larger()(max, numbers[i]);
    }
    max = softmax::MergeWarp<softmax::Larger>(max);
    float sum = 0;
#pragma unroll
    for (uint32_t i = 0; i < kNumbers; ++i) {
      if (i * 32 + lane >= keys) continue;
      numbers[i] = softmax::PowerOf<float>(__fsub_rn(numbers[i], max));
      sum = __fadd_rn(sum, numbers[i]);
    }
    const float factor = __fdiv_rn(1.0f, softmax::MergeWarp<softmax::Total>(sum));
#pragma unroll
    for (uint32_t i = 0; i < kNumbers; ++i) {
      const uint32_t k = i * 32 + lane;
      if (k < all) x[k] = k < keys ? __fmul_rn(numbers[i], factor) : 0.0f;
    }
  }
}

// A block per row.
template <typename T>
__global__ void __launch_bounds__(kThreads) WeighRows(const __grid_constant__ WeighParameters p) {
  __shared__ float maxima[32], sums[32];
  const AttentionWeights& weights = p.weights;
  for (uint64_t number = blockIdx.x; number < p.rows; number += gridDim.x) {
    const uint64_t head = number / weights.queries;
    const uint64_t q = number - head * weights.queries;
    const uint64_t b = head / weights.heads;
    const uint64_t h = head - b * weights.heads;
    float* const x = p.logits + number * weights.keys;
    const uint64_t keys = KeysOf(weights, p.memory.lengths, b, q);
    const HiddenKeys hidden(p, b, h, q, keys);
    const T* const bias = reinterpret_cast<const T*>(p.memory.position_bias);
    const uint64_t bias_at = weights.position_bias.At(b, h, q);
    float max = softmax::Larger::kNone;
    for (uint64_t k = threadIdx.x; k < keys; k += kThreads) {
      float logit = x[k];
      if (weights.position_bias.exists) {
        logit = __fadd_rn(logit, ToNumber(bias[bias_at + k * weights.position_bias.column]));
      }
      logit = __fadd_rn(logit, hidden(k));
      x[k] = logit;
      max = softmax::Larger()(max, logit);
    }
    max = softmax::MergeRow<softmax::Larger>(max, kThreads, maxima);
    float sum = 0;
    for (uint64_t k = threadIdx.x; k < keys; k += kThreads) {
      const float power = softmax::PowerOf<float>(__fsub_rn(x[k], max));
      x[k] = power;
      sum = __fadd_rn(sum, power);
    }
    const float factor = __fdiv_rn(1.0f, softmax::MergeRow<softmax::Total>(sum, kThreads, sums));
    for (uint64_t k = threadIdx.x; k < keys; k += kThreads) x[k] = __fmul_rn(x[k], factor);
    for (uint64_t k = keys + threadIdx.x; k < weights.keys; k += kThreads) x[k] = 0;
    __syncthreads();  // before shared memory is reused for the next row
  }
}

struct UnseenParameters {
  AttentionWeights weights;
  AttentionWeightsMemory memory;
  const float* numbers;  // weights of all keys
  const float* values;
  AttentionView value, output;
  void* output_data;
  uint64_t columns, group, elements;
};

// A thread per element of the output.
template <typename T>
__global__ void __launch_bounds__(kThreads) ReplaceNans(const __grid_constant__ UnseenParameters p) {
  const uint64_t step = uint64_t{gridDim.x} * kThreads;
  for (uint64_t i = uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < p.elements; i += step) {
    const uint64_t row = i / p.columns, c = i - row * p.columns;
    const uint64_t head = row / p.weights.queries, q = row - head * p.weights.queries;
    const uint64_t b = head / p.weights.heads, h = head - b * p.weights.heads;
    T* const to = static_cast<T*>(p.output_data) + p.output.At(b, h, q, c);
    if (!isnan(ToNumber(*to))) continue;
    const float* const values = p.values + p.value.At(b, h / p.group, 0, c);
    const uint64_t keys = KeysOf(p.weights, p.memory.lengths, b, q);
    float sum = 0;
    for (uint64_t k = 0; k < keys; ++k) {
      sum = __fmaf_rn(p.numbers[row * p.weights.keys + k], values[k * p.value.row], sum);
    }
    PutNumber(WithOneNan(sum), to);
  }
}

class AttentionStepsCuda final : public AttentionSteps {
 public:
  AttentionStepsCuda(const AttentionProblem& problem, const LowerContext&)
      : AttentionSteps(problem, /*for_libraries=*/true) {}

 private:
  void Join(const AttentionJoin& join, const AttentionJoinMemory& memory,
            const KernelArguments& arguments) const override {
    JoinOnDevice(join, memory, is_half(), arguments.stream);
  }

  void Weigh(float* logits, const AttentionWeightsMemory& memory,
             const KernelArguments& arguments) const override {
    const WeighParameters p = {weights(), memory, logits, weights().Rows()};
    const auto short_rows = is_half() ? ShortRows<__half>(p) : ShortRows<float>(p);
    if (short_rows != nullptr) {
      const uint64_t blocks = std::min((p.rows + kThreads / 32 - 1) / (kThreads / 32), kMostBlocks);
      KernelChain(arguments.stream, /*all_wait=*/true).Launch(short_rows, blocks, kThreads, p);
      return;
    }
    KernelChain(arguments.stream)
        .Launch(is_half() ? WeighRows<__half> : WeighRows<float>, std::min(p.rows, kMostBlocks), kThreads, p);
  }

  void LeaveOutUnseen(const float* numbers, const AttentionWeightsMemory& memory,
                      const KernelArguments& arguments) const override {
    UnseenParameters p = {.weights = weights(), .memory = memory, .numbers = numbers};
    p.values = reinterpret_cast<const float*>(BufferOf(value(), arguments).data);
    p.value = value().view;
    p.output = problem().output;
    p.output_data = arguments.outputs[0].data;
    p.columns = problem().value.columns;
    p.group = problem().group;
    p.elements = weights().Rows() * p.columns;
    KernelChain(arguments.stream)
        .Launch(is_half() ? ReplaceNans<__half> : ReplaceNans<float>,
                std::min((p.elements + kThreads - 1) / kThreads, kMostBlocks), kThreads, p);
  }

  // Null if rows are long or there is a mask.
  template <typename T>
  static auto ShortRows(const WeighParameters& p) -> void (*)(WeighParameters) {
    if (p.weights.mask.view.exists) return nullptr;
    return p.weights.keys <= 128    ? WeighShortRows<T, 4>
           : p.weights.keys <= 256  ? WeighShortRows<T, 8>
           : p.weights.keys <= 512  ? WeighShortRows<T, 16>
           : p.weights.keys <= 1024 ? WeighShortRows<T, 32>
                                    : nullptr;
  }
};

}  // namespace

void JoinOnDevice(const AttentionJoin& join, const AttentionJoinMemory& memory, bool is_half, void* stream) {
  JoinParameters p = {join, memory, join.AllRows(), 0, 0};
  if (IsCopyOfUnits(is_half, &p)) {
    const uint64_t copying = std::min((p.rows * p.units + kThreads - 1) / kThreads, kMostBlocks);
    KernelChain(stream, /*all_wait=*/true).Launch(CopyRows, copying, kThreads, p);
    return;
  }
  const uint64_t blocks = std::min((p.rows + kThreads / 32 - 1) / (kThreads / 32), kMostBlocks);
  KernelChain(stream).Launch(is_half ? JoinRows<__half> : JoinRows<float>, blocks, kThreads, p);
}

std::unique_ptr<const Kernel> CreateAttentionStepsCuda(const AttentionProblem& problem,
                                                       const LowerContext& context, std::string* why_not) {
  return CreateAttentionSteps<AttentionStepsCuda>(problem, context, why_not);
}

}  // namespace anydml
