// The innermost tiles of products, for every SIMD target. Longer than most files: Highway compiles the file
// once per target, and a second file would repeat the frame around the tiles.
#include "ops/product/micro_kernel.h"

#if ANYDML_HAVE_HIGHWAY
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/product/micro_kernel.cc"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

// A tile uses most vector registers: 8 rows of 3 vectors with 32 registers, 6 of 2 with 16. Vectors of
// unknown length cannot be array elements, so each has a name: row i, columns 0 to 2.
#undef ANYDML_GEMM_WIDE
#undef ANYDML_GEMM_ROWS
#if HWY_ARCH_ARM || HWY_TARGET <= HWY_AVX3
#define ANYDML_GEMM_WIDE 1
#define ANYDML_GEMM_ROWS(V) V(0) V(1) V(2) V(3) V(4) V(5) V(6) V(7)
#else
#define ANYDML_GEMM_WIDE 0
#define ANYDML_GEMM_ROWS(V) V(0) V(1) V(2) V(3) V(4) V(5)
#endif

// The element of row i. NEON multiplies by a lane; broadcasting each number would occupy the units that
// multiply.
#undef ANYDML_OF_ROW
#if HWY_TARGET == HWY_NEON
#define ANYDML_OF_ROW(i) hn::Broadcast<(i) % 4>((i) < 4 ? a0 : a1)
#else
#define ANYDML_OF_ROW(i) hn::Set(d, a[i])
#endif

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;

#include "ops/numbers/half_vectors-inl.h"

constexpr uint32_t kRows = ANYDML_GEMM_WIDE ? 8 : 6;
constexpr uint32_t kVectors = ANYDML_GEMM_WIDE ? 3 : 2;
constexpr size_t kLine = 16;  // floats per cache line

template <class D, class V>
HWY_INLINE void Put(D d, V value, float* to, bool accumulate) {
  hn::StoreU(accumulate ? hn::Add(hn::LoadU(d, to), value) : value, d, to);
}

// Prefetches the sums to add to, which come from a distant cache and are needed last. For sums that are only
// written, x86 needs no prefetch.
HWY_INLINE void AskForSums(const float* to, uint64_t to_stride, uint32_t rows, size_t columns,
                           bool accumulate) {
  if (HWY_ARCH_X86 && !accumulate) return;
  for (uint32_t i = 0; i < rows; ++i, to += to_stride) {
    for (size_t j = 0; j < columns; j += kLine) hwy::Prefetch(to + j);
    hwy::Prefetch(to + columns - 1);
  }
}

// Prefetches into L2. Arm's processors prefetch this by themselves.
HWY_INLINE void AskFor(const std::byte* next) {
  if (HWY_ARCH_X86) __builtin_prefetch(next, /*rw=*/0, /*locality=*/2);
}

#define ANYDML_ZERO(i) auto c##i##0 = hn::Zero(d), c##i##1 = c##i##0, c##i##2 = c##i##0;
#define ANYDML_STEP(i)                                   \
  {                                                      \
    const auto x = ANYDML_OF_ROW(i);                     \
    c##i##0 = hn::MulAdd(x, b0, c##i##0);                \
    if (kUsed > 1) c##i##1 = hn::MulAdd(x, b1, c##i##1); \
    if (kUsed > 2) c##i##2 = hn::MulAdd(x, b2, c##i##2); \
  }
#define ANYDML_PUT(i)                                                     \
  Put(d, c##i##0, to + (i)*to_stride, accumulate);                        \
  if (kUsed > 1) Put(d, c##i##1, to + (i)*to_stride + lanes, accumulate); \
  if (kUsed > 2) Put(d, c##i##2, to + (i)*to_stride + 2 * lanes, accumulate);

// Loads the first kUsed vectors.
template <uint32_t kUsed>
void Run(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, uint64_t b_stride, uint64_t steps,
         float* HWY_RESTRICT to, uint64_t to_stride, bool accumulate, const MicroKernel::Ahead& ahead) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  AskForSums(to, to_stride, kRows, kUsed * lanes, accumulate);
  ANYDML_GEMM_ROWS(ANYDML_ZERO)
  const auto* next = static_cast<const std::byte*>(ahead.first);
  for (uint64_t step = 0; step < steps; ++step) {
    AskFor(next);
    const auto b0 = hn::LoadU(d, b);
    const auto b1 = kUsed > 1 ? hn::LoadU(d, b + lanes) : b0;
    const auto b2 = kUsed > 2 ? hn::LoadU(d, b + 2 * lanes) : b0;
#if HWY_TARGET == HWY_NEON
    const auto a0 = hn::LoadU(d, a), a1 = hn::LoadU(d, a + 4);
#endif
    ANYDML_GEMM_ROWS(ANYDML_STEP)
    a += kRows;
    b += b_stride;
    next += ahead.step;
  }
  ANYDML_GEMM_ROWS(ANYDML_PUT)
}

#if HWY_ARCH_X86
#undef ANYDML_OF_ROW
#undef ANYDML_STEP
#undef ANYDML_PUT
// Three rows per pointer: x86 addresses are a register plus once or twice another one.
#define ANYDML_OF_ROW(i) hn::Set(d, ((i) < 3 ? a0 : (i) < 6 ? a3 : a6)[(i) % 3 * a_stride])
#define ANYDML_STEP(i)                                   \
  if ((i) < kUsedRows) {                                 \
    const auto x = ANYDML_OF_ROW(i);                     \
    c##i##0 = hn::MulAdd(x, b0, c##i##0);                \
    if (kUsed > 1) c##i##1 = hn::MulAdd(x, b1, c##i##1); \
    if (kUsed > 2) c##i##2 = hn::MulAdd(x, b2, c##i##2); \
  }
#define ANYDML_PUT(i)                                                           \
  if ((i) < kUsedRows) {                                                        \
    Put(d, c##i##0, to + (i)*to_stride, accumulate);                            \
    if (kUsed > 1) Put(d, c##i##1, to + (i)*to_stride + lanes, accumulate);     \
    if (kUsed > 2) Put(d, c##i##2, to + (i)*to_stride + 2 * lanes, accumulate); \
  }

template <uint32_t kUsedRows, uint32_t kUsed, bool kPacks, typename From>
HWY_INLINE void RunRows(const MicroKernel::Rows& a, uint64_t a_step, const From* HWY_RESTRICT b,
                        uint64_t b_stride, uint64_t steps, float* HWY_RESTRICT panel, float* HWY_RESTRICT to,
                        uint64_t to_stride, bool accumulate, const MicroKernel::Ahead& ahead) {
  const D d;
  const uint64_t a_stride = a.stride, next_step = ahead.step;
  const size_t lanes = hn::Lanes(d);
  AskForSums(to, to_stride, kUsedRows, kUsed * lanes, accumulate);
  ANYDML_GEMM_ROWS(ANYDML_ZERO)
  const float* HWY_RESTRICT a0 = a.first;
  const float* HWY_RESTRICT a3 = a0 + (kUsedRows > 3 ? 3 * a_stride : 0);
  const float* HWY_RESTRICT a6 = a3 + (kUsedRows > 6 ? 3 * a_stride : 0);
  const auto* next = static_cast<const std::byte*>(ahead.first);
  for (uint64_t step = 0; step < steps; ++step) {
    AskFor(next);
    const auto b0 = LoadNumbers(d, b);
    const auto b1 = kUsed > 1 ? LoadNumbers(d, b + lanes) : b0;
    const auto b2 = kUsed > 2 ? LoadNumbers(d, b + 2 * lanes) : b0;
    if (kPacks) {
      hn::StoreU(b0, d, panel);
      if (kUsed > 1) hn::StoreU(b1, d, panel + lanes);
      if (kUsed > 2) hn::StoreU(b2, d, panel + 2 * lanes);
      panel += kVectors * lanes;
    }
    ANYDML_GEMM_ROWS(ANYDML_STEP)
    a0 += a_step, a3 += a_step, a6 += a_step;
    b += b_stride;
    next += next_step;
  }
  ANYDML_GEMM_ROWS(ANYDML_PUT)
}

#if HWY_TARGET <= HWY_AVX3
constexpr ptrdiff_t kSteps = 4;

#include "ops/numbers/add_product-inl.h"

// A whole tile of a panel, kSteps at a time: one pointer per row, one index for all rows, and one prefetch
// for all of the steps if the data are close together. Instructions other than multiply-adds compete with
// these for issue slots.
#define ANYDML_ROW(i) const float* HWY_RESTRICT const a##i = a.first + (i)*a.stride + whole;
#define ANYDML_PRODUCTS(i)                       \
  {                                              \
    const auto x = hn::Set(d, a##i[at + kStep]); \
    AddProduct(x, b0, c##i##0);                  \
    AddProduct(x, b1, c##i##1);                  \
    AddProduct(x, b2, c##i##2);                  \
  }
#define ANYDML_PANEL_STEP(step)                            \
  {                                                        \
    constexpr ptrdiff_t kStep = step;                      \
    if (kAsksOften || kStep == 0) {                        \
      AskFor(next);                                        \
      next += kAsksOften ? next_step : kSteps * next_step; \
    }                                                      \
    const float* const from = b + kStep * kWidth;          \
    const auto b0 = hn::LoadU(d, from);                    \
    const auto b1 = hn::LoadU(d, from + kLanes);           \
    const auto b2 = hn::LoadU(d, from + 2 * kLanes);       \
    ANYDML_GEMM_ROWS(ANYDML_PRODUCTS)                      \
  }
template <bool kAsksOften>
void RunWhole(const MicroKernel::Rows& a, const float* HWY_RESTRICT b, uint64_t steps, float* HWY_RESTRICT to,
              uint64_t to_stride, bool accumulate, const MicroKernel::Ahead& ahead) {
  const D d;
  constexpr size_t kLanes = hn::MaxLanes(D()), kWidth = kVectors * kLanes, lanes = kLanes;
  constexpr uint32_t kUsedRows = kRows, kUsed = kVectors;
  AskForSums(to, to_stride, kRows, kWidth, accumulate);
  ANYDML_GEMM_ROWS(ANYDML_ZERO)
  const auto whole = static_cast<ptrdiff_t>(steps / kSteps * kSteps);
  ANYDML_GEMM_ROWS(ANYDML_ROW)
  const auto* next = static_cast<const std::byte*>(ahead.first);
  const uint64_t next_step = ahead.step;
  ptrdiff_t at = -whole;
  for (; at != 0; at += kSteps, b += kSteps * kWidth) {
    ANYDML_PANEL_STEP(0)
    ANYDML_PANEL_STEP(1)
    ANYDML_PANEL_STEP(2)
    ANYDML_PANEL_STEP(3)
  }
  for (auto rest = steps % kSteps; rest != 0; --rest, ++at, b += kWidth) ANYDML_PANEL_STEP(0)
  ANYDML_GEMM_ROWS(ANYDML_PUT)
}
#undef ANYDML_ROW
#undef ANYDML_PRODUCTS
#undef ANYDML_PANEL_STEP

// Twice as many rows of one vector, because with fewer sums the additions would wait for each other. Three
// rows per pointer; multiply-adds take numbers directly from memory.
#define ANYDML_TALL_ROWS(V) \
  V(0) V(1) V(2) V(3) V(4) V(5) V(6) V(7) V(8) V(9) V(10) V(11) V(12) V(13) V(14) V(15)
#define ANYDML_TALL_ZERO(i) auto c##i = hn::Zero(d);
#define ANYDML_TALL_PRODUCT(i)          \
  asm("vfmadd231ps %2%{1to16%}, %1, %0" \
      : "+v"(c##i.raw)                  \
      : "v"(b0.raw), "m"(rows[(i) / 3][(i) % 3 * a_stride]));
#define ANYDML_TALL_PUT(i) Put(d, c##i, to + (i)*to_stride, accumulate);
void RunTall(const MicroKernel::Rows& a, const float* HWY_RESTRICT b, uint64_t b_stride, uint64_t steps,
             float* HWY_RESTRICT to, uint64_t to_stride, bool accumulate, const MicroKernel::Ahead& ahead) {
  static_assert(hn::MaxLanes(D()) == 16 && 2 * kRows == 16);
  const D d;
  const uint64_t a_stride = a.stride;
  AskForSums(to, to_stride, 2 * kRows, hn::MaxLanes(d), accumulate);
  ANYDML_TALL_ROWS(ANYDML_TALL_ZERO)
  const float* rows[6];
  for (uint64_t i = 0; i < 6; ++i) rows[i] = a.first + 3 * i * a_stride;
  const auto* next = static_cast<const std::byte*>(ahead.first);
  for (uint64_t step = 0; step < steps; ++step) {
    AskFor(next);
    const auto b0 = hn::LoadU(d, b);
    ANYDML_TALL_ROWS(ANYDML_TALL_PRODUCT)
    for (const float*& row : rows) ++row;
    b += b_stride;
    next += ahead.step;
  }
  ANYDML_TALL_ROWS(ANYDML_TALL_PUT)
}
#undef ANYDML_TALL_ROWS
#undef ANYDML_TALL_ZERO
#undef ANYDML_TALL_PRODUCT
#undef ANYDML_TALL_PUT

// The same for steps of B in place, which are copied to `panel`. They are far apart, so each is prefetched;
// registers suffice for two steps at a time.
#define ANYDML_ROW(i) const float* HWY_RESTRICT const a##i = a.first + (i)*a.stride + whole;
#define ANYDML_PRODUCTS(i)                         \
  {                                                \
    const auto x = hn::Set(d, a##i[at + kOfStep]); \
    AddProduct(x, b0, c##i##0);                    \
    AddProduct(x, b1, c##i##1);                    \
    AddProduct(x, b2, c##i##2);                    \
  }
#define ANYDML_PACKING_STEP(step)                   \
  {                                                 \
    constexpr ptrdiff_t kOfStep = (step)*kOfA;      \
    AskFor(next);                                   \
    next += next_step;                              \
    const auto b0 = LoadNumbers(d, b);              \
    const auto b1 = LoadNumbers(d, b + kLanes);     \
    const auto b2 = LoadNumbers(d, b + 2 * kLanes); \
    float* const row = panel + (step)*kWidth;       \
    hn::StoreU(b0, d, row);                         \
    hn::StoreU(b1, d, row + kLanes);                \
    hn::StoreU(b2, d, row + 2 * kLanes);            \
    b += b_stride;                                  \
    ANYDML_GEMM_ROWS(ANYDML_PRODUCTS)               \
  }
constexpr ptrdiff_t kPackingSteps = 2;

// kOfA: the distance between A's steps.
template <ptrdiff_t kOfA, typename From>
void RunWholePacking(const MicroKernel::Rows& a, const From* HWY_RESTRICT b, uint64_t b_stride,
                     uint64_t steps, float* HWY_RESTRICT panel, float* HWY_RESTRICT to, uint64_t to_stride,
                     bool accumulate, const MicroKernel::Ahead& ahead) {
  const D d;
  constexpr size_t kLanes = hn::MaxLanes(D()), kWidth = kVectors * kLanes, lanes = kLanes;
  constexpr uint32_t kUsedRows = kRows, kUsed = kVectors;
  AskForSums(to, to_stride, kRows, kWidth, accumulate);
  ANYDML_GEMM_ROWS(ANYDML_ZERO)
  const auto whole = static_cast<ptrdiff_t>(steps / kPackingSteps * kPackingSteps) * kOfA;
  ANYDML_GEMM_ROWS(ANYDML_ROW)
  const auto* next = static_cast<const std::byte*>(ahead.first);
  const uint64_t next_step = ahead.step;
  ptrdiff_t at = -whole;
  for (; at != 0; at += kPackingSteps * kOfA, panel += kPackingSteps * kWidth) {
    ANYDML_PACKING_STEP(0)
    ANYDML_PACKING_STEP(1)
  }
  if (steps % kPackingSteps != 0) ANYDML_PACKING_STEP(0)
  ANYDML_GEMM_ROWS(ANYDML_PUT)
}
#undef ANYDML_ROW
#undef ANYDML_PRODUCTS
#undef ANYDML_PACKING_STEP
#endif

template <uint32_t kUsedRows, uint32_t kUsed>
void RunInPlace(const MicroKernel::Rows& a, const float* b, uint64_t b_stride, uint64_t steps, float* to,
                uint64_t to_stride, bool accumulate, const MicroKernel::Ahead& ahead) {
#if HWY_TARGET <= HWY_AVX3
  if constexpr (kUsedRows == kRows && kUsed == kVectors) {
    if (b_stride == kVectors * hn::MaxLanes(D())) {
      const bool asks_often = ahead.step * kSteps > kLine * sizeof(float);
      (asks_often ? RunWhole<true> : RunWhole<false>)(a, b, steps, to, to_stride, accumulate, ahead);
      return;
    }
  }
#endif
  RunRows<kUsedRows, kUsed, false>(a, 1, b, b_stride, steps, nullptr, to, to_stride, accumulate, ahead);
}

template <uint32_t kUsedRows>
void FindInPlace(MicroKernel* kernel) {
  auto& of_rows = kernel->in_place[kUsedRows - 1];
  of_rows[0] = &RunInPlace<kUsedRows, 1>;
  of_rows[1] = &RunInPlace<kUsedRows, 2>;
  of_rows[kVectors - 1] = &RunInPlace<kUsedRows, kVectors>;
  if constexpr (kUsedRows < kRows) FindInPlace<kUsedRows + 1>(kernel);
}

#if HWY_TARGET <= HWY_AVX2
template <uint32_t kUsed, typename From>
void RunPacking(const MicroKernel::Rows& a, uint64_t a_step, const MicroKernel::Steps& b, uint64_t steps,
                float* panel, float* to, uint64_t to_stride, bool accumulate,
                const MicroKernel::Ahead& ahead) {
#if HWY_TARGET <= HWY_AVX3
  if constexpr (kUsed == kVectors) {
    const auto run = a_step == 1 ? &RunWholePacking<1, From> : &RunWholePacking<kRows, From>;
    run(a, static_cast<const From*>(b.first), b.stride, steps, panel, to, to_stride, accumulate, ahead);
    return;
  }
#endif
  RunRows<kRows, kUsed, true>(a, a_step, static_cast<const From*>(b.first), b.stride, steps, panel, to,
                              to_stride, accumulate, ahead);
}

template <typename From>
void FindPacking(MicroKernel::RunPacking* (&of_type)[3]) {
  of_type[0] = &RunPacking<1, From>;
  of_type[1] = &RunPacking<2, From>;
  of_type[kVectors - 1] = &RunPacking<kVectors, From>;
}
#endif
#endif
#undef ANYDML_ZERO
#undef ANYDML_STEP
#undef ANYDML_PUT

MicroKernel Find() {
  const auto lanes = static_cast<uint32_t>(hn::Lanes(D()));
  MicroKernel kernel = {kRows, kVectors * lanes, lanes, &Run<kVectors>, {&Run<1>, &Run<2>}};
#if HWY_ARCH_X86
  FindInPlace<1>(&kernel);
#if HWY_TARGET <= HWY_AVX3
  FindPacking<float>(kernel.packing[0]);
  kernel.tall = &RunTall;
#endif
#if HWY_TARGET <= HWY_AVX2
  FindPacking<uint16_t>(kernel.packing[1]);
#endif
#endif
  return kernel;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anydml {
namespace {
HWY_EXPORT(Find);
}  // namespace

const MicroKernel& GemmMicroKernel() {
  static const MicroKernel kernel = HWY_DYNAMIC_DISPATCH(Find)();
  return kernel;
}
}  // namespace anydml
#endif

#else  // without Highway

namespace anydml {
namespace {

constexpr uint32_t kRows = 4, kColumns = 8;

void Run(const float* a, const float* b, uint64_t b_stride, uint64_t steps, float* to, uint64_t to_stride,
         bool accumulate, const MicroKernel::Ahead& /*ahead*/) {
  float sums[kRows][kColumns] = {};
  for (uint64_t step = 0; step < steps; ++step, a += kRows, b += b_stride) {
    for (uint32_t i = 0; i < kRows; ++i) {
      for (uint32_t j = 0; j < kColumns; ++j) sums[i][j] += a[i] * b[j];
    }
  }
  for (uint32_t i = 0; i < kRows; ++i) {
    for (uint32_t j = 0; j < kColumns; ++j) {
      float& target = to[i * to_stride + j];
      target = accumulate ? target + sums[i][j] : sums[i][j];
    }
  }
}

}  // namespace

const MicroKernel& GemmMicroKernel() {
  static constexpr MicroKernel kKernel = {kRows, kColumns, kColumns, &Run, {}};
  return kKernel;
}

}  // namespace anydml
#endif
