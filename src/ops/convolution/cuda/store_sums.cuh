// Stores the sums of a tile, with bias, limits and the tail, through shared memory, so that contiguous
// elements are stored together.
#pragma once

#include "ops/convolution/cuda/window_product.cuh"
#include "ops/device/cuda/cluster.cuh"

namespace anydml {

__device__ __forceinline__ void PutNumber(float x, float* to) { *to = x; }
__device__ __forceinline__ void PutNumber(float x, __half* to) { *to = __float2half_rn(x); }

__device__ __forceinline__ float NumberOf(float x) { return x; }
__device__ __forceinline__ float NumberOf(__half x) { return __half2float(x); }

// Makes NaNs canonical.
__device__ __forceinline__ float WithOneNan(float x, float) {
  return isnan(x) ? __uint_as_float(0x7FC00000) : x;
}
__device__ __forceinline__ __half WithOneNan(float x, __half) {
  return isnan(x) ? __ushort_as_half(0x7E00) : __float2half_rn(x);
}

// For a column of the tile; all except the bias are the tail's.
struct ColumnNumbers {
  float bias = 0, mean = 0, factor = 0, shift = 0;

  // If there is a normalisation.
  template <typename T>
  __device__ __forceinline__ void LoadTail(const WindowTail& tail, uint64_t channel) {
    const auto load = [&](uint32_t i) {
      return NumberOf(static_cast<const T*>(tail.numbers[i])[channel * tail.strides[i]]);
    };
    mean = load(0);
    factor = load(2) / sqrtf(load(1) + tail.epsilon);
    shift = load(3);
  }
};

// A rounded result, normalised.
template <typename Out>
__device__ __forceinline__ Out NormalizeSum(const WindowTail& tail, const ColumnNumbers& numbers, Out sum) {
  const float x = (NumberOf(sum) - numbers.mean) * numbers.factor + numbers.shift;
  return WithOneNan(tail.limits.Of(x), Out());
}

template <typename Out>
__device__ __forceinline__ Out AddToSum(const WindowTail& tail, Out sum, Out added) {
  return WithOneNan(tail.sum_limits.Of(NumberOf(sum) + NumberOf(added)), Out());
}

// For a thread's column: loaded before the steps, to hide the latency.
template <typename T, uint32_t kColumns, class Product>
__device__ __forceinline__ ColumnNumbers NumbersOf(const Product& p, const WindowPlace& place) {
  ColumnNumbers numbers;
  const uint32_t column = place.column + threadIdx.x;
  if (threadIdx.x >= kColumns || column >= p.columns) return numbers;
  const uint64_t channel = uint64_t{place.group} * p.columns + column;
  if (p.bias != nullptr) numbers.bias = NumberOf(static_cast<const T*>(p.bias)[channel * p.bias_stride]);
  if constexpr (Product::kIsGeneral) {
    if (p.tail.numbers[0] != nullptr) numbers.LoadTail<T>(p.tail, channel);
  }
  return numbers;
}

// A sum after bias, limits and normalisation, before anything is added.
template <typename Out, class Product, class Table>
__device__ __forceinline__ Out FinishSum(const Product& p, const Table& table, uint32_t column, float sum) {
  Out result;
  PutNumber(p.limits.Of(sum + table.bias[column]), &result);
  if constexpr (Product::kIsGeneral) {
    if (p.tail.numbers[0] == nullptr) return result;
    return NormalizeSum(p.tail, {0, table.mean[column], table.factor[column], table.shift[column]}, result);
  }
  return result;
}

template <typename Out, uint32_t kRows, uint32_t kColumns>
struct WindowSums {
  static constexpr uint32_t kPad = 16 / sizeof(Out);
  Out* shared;
  bool by_channels;

  __device__ Out* At(uint32_t row, uint32_t column) const {
    return shared + (by_channels ? row * (kColumns + kPad) + column : column * (kRows + kPad) + row);
  }
};

template <uint32_t kRows, uint32_t kColumns>
constexpr uint32_t WindowSumsBytes() {
  constexpr uint32_t kByRows = kRows * (kColumns + 4), kByColumns = kColumns * (kRows + 4);
  return (kByRows > kByColumns ? kByRows : kByColumns) * sizeof(float);
}

// Sums go through shared memory, so that contiguous elements are stored together.
template <typename Out, uint32_t kRows, uint32_t kColumns, uint32_t kThreads, class Product, class Table,
          class ForSums>
__device__ __forceinline__ void StoreSumsAs(const Product& p, const WindowPlace& place, const Table& table,
                                            void* shared, const ForSums& for_sums) {
  const WindowSums<Out, kRows, kColumns> sums = {static_cast<Out*>(shared), p.stores_by_channels};
  for_sums([&](uint32_t row, uint32_t column, float sum) {
    *sums.At(row, column) = FinishSum<Out>(p, table, column, sum);
  });
  __syncthreads();
  DispatchByUnit(p.unit_bytes, [&]<typename Unit>() {
    if constexpr (sizeof(Unit) >= sizeof(Out)) {
      constexpr uint32_t kSome = sizeof(Unit) / sizeof(Out);
      const uint32_t per_line = (p.stores_by_channels ? kColumns : kRows) / kSome;
      for (uint32_t i = threadIdx.x; i < kRows * kColumns / kSome; i += kThreads) {
        const uint32_t line = i / per_line, along = i % per_line * kSome;
        const uint32_t row = p.stores_by_channels ? line : along,
                       column = p.stores_by_channels ? along : line;
        if (place.row + row >= place.end || place.column + column >= p.columns) continue;
        const uint64_t target = table.targets[row] + (place.column + column) * p.target.channel;
        Out* const from = sums.At(row, column);
        if constexpr (Product::kIsGeneral) {
          if (table.targets[row] == kNowhere) continue;
          if (p.tail.added != nullptr) {
            const Unit unit = *reinterpret_cast<const Unit*>(static_cast<const Out*>(p.tail.added) + target);
            const Out* const added = reinterpret_cast<const Out*>(&unit);
#pragma unroll
            for (uint32_t e = 0; e < kSome; ++e) from[e] = AddToSum(p.tail, from[e], added[e]);
          }
        }
        *reinterpret_cast<Unit*>(static_cast<Out*>(p.output) + target) = *reinterpret_cast<const Unit*>(from);
      }
    }
  });
}

// Loads from the block of that rank, at the same place as here.
__device__ __forceinline__ float4 LoadFromBlock(uint32_t rank, const float* here) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(here));
  uint32_t there;
  float4 x;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
               : "r"(there)
               : "memory");
  return x;
}

// The blocks of a cluster leave their sums in shared memory; each adds a share of them, in the order of the
// parts, and stores it.
template <typename Out, uint32_t kRows, uint32_t kColumns, uint32_t kThreads, class Product, class Table>
__device__ __forceinline__ void StoreClusterShare(const Product& p, const WindowPlace& place,
                                                  const Table& table,
                                                  const WindowSums<float, kRows, kColumns>& sums) {
  constexpr uint32_t kSome = 4;
  const uint32_t blocks = p.cluster.divisor(), per_line = (p.stores_by_channels ? kColumns : kRows) / kSome;
  uint32_t rank;
  p.cluster.Divide(blockIdx.x, &rank);
  for (uint32_t i = rank * kThreads + threadIdx.x; i < kRows * kColumns / kSome; i += blocks * kThreads) {
    const uint32_t line = i / per_line, along = i % per_line * kSome;
    const uint32_t row = p.stores_by_channels ? line : along, column = p.stores_by_channels ? along : line;
    if (place.row + row >= place.end || place.column + column >= p.columns) continue;
    float total[kSome] = {};
    for (uint32_t block = 0; block < blocks; ++block) {
      const float4 x = LoadFromBlock(block, sums.At(row, column));
      total[0] += x.x;
      total[1] += x.y;
      total[2] += x.z;
      total[3] += x.w;
    }
    struct alignas(kSome * sizeof(Out)) {
      Out numbers[kSome];
    } result;
    const uint32_t down = p.stores_by_channels ? 0 : 1, right = 1 - down;
#pragma unroll
    for (uint32_t e = 0; e < kSome; ++e) {
      result.numbers[e] = FinishSum<Out>(p, table, column + e * right, total[e]);
    }
    const auto exists = [&](uint32_t e) {
      return place.row + row + e * down < place.end && place.column + column + e * right < p.columns;
    };
    if constexpr (Product::kIsGeneral) {
      if (p.tail.added != nullptr) {
        const Out* const added =
            static_cast<const Out*>(p.tail.added) + (place.column + column) * p.target.channel;
#pragma unroll
        for (uint32_t e = 0; e < kSome; ++e) {
          if (!exists(e)) break;
          result.numbers[e] = AddToSum(p.tail, result.numbers[e],
                                       added[table.targets[row + e * down] + e * right * p.target.channel]);
        }
      }
    }
    Out* const output = static_cast<Out*>(p.output) + (place.column + column) * p.target.channel;
    if (p.unit_bytes >= sizeof(result)) {
      if (Product::kIsGeneral && table.targets[row] == kNowhere) continue;
      *reinterpret_cast<decltype(result)*>(output + table.targets[row]) = result;
      continue;
    }
#pragma unroll
    for (uint32_t e = 0; e < kSome; ++e) {
      if (!exists(e)) break;
      const uint64_t target = table.targets[row + e * down];
      if (Product::kIsGeneral && target == kNowhere) continue;
      output[target + e * right * p.target.channel] = result.numbers[e];
    }
  }
}

template <uint32_t kRows, uint32_t kColumns, uint32_t kThreads, class Product, class Table, class ForSums>
__device__ __forceinline__ void StoreClusterSums(const Product& p, const WindowPlace& place,
                                                 const Table& table, void* shared, const ForSums& for_sums) {
  const WindowSums<float, kRows, kColumns> sums = {static_cast<float*>(shared), p.stores_by_channels};
  for_sums([&](uint32_t row, uint32_t column, float sum) { *sums.At(row, column) = sum; });
  SyncCluster();
  if (p.is_half_target) {
    StoreClusterShare<__half, kRows, kColumns, kThreads>(p, place, table, sums);
  } else {
    StoreClusterShare<float, kRows, kColumns, kThreads>(p, place, table, sums);
  }
  SyncCluster();  // no block may end while its memory is being read
}

// `for_sums(put)` calls put(row, column, sum) for all of the thread's sums. `numbers`: of its column.
template <uint32_t kRows, uint32_t kColumns, uint32_t kThreads, class Product, class Table, class ForSums>
__device__ __forceinline__ void StoreSums(const Product& p, const WindowPlace& place,
                                          const ColumnNumbers& numbers, Table* table, void* shared,
                                          const ForSums& for_sums) {
  static_assert(kColumns <= kThreads);
  if (threadIdx.x < kColumns) {
    table->bias[threadIdx.x] = numbers.bias;
    if constexpr (Product::kIsGeneral) {
      table->mean[threadIdx.x] = numbers.mean;
      table->factor[threadIdx.x] = numbers.factor;
      table->shift[threadIdx.x] = numbers.shift;
    }
  }
  __syncthreads();
  if (p.cluster.divisor() > 1) {
    StoreClusterSums<kRows, kColumns, kThreads>(p, place, *table, shared, for_sums);
  } else if (p.is_half_target) {
    StoreSumsAs<__half, kRows, kColumns, kThreads>(p, place, *table, shared, for_sums);
  } else {
    StoreSumsAs<float, kRows, kColumns, kThreads>(p, place, *table, shared, for_sums);
  }
}

}  // namespace anydml
