// The innermost part of a matrix product: a tile of the output that stays in vector registers.
#pragma once

#include <cstdint>

namespace anydml {

inline constexpr uint32_t kMaxTileRows = 8;
inline constexpr uint32_t kMaxTileColumns = 3 * 64;  // vectors of 2048 bits

struct MicroKernel {
  uint32_t rows;     // rows of a tile
  uint32_t columns;  // columns of a tile: whole vectors
  uint32_t lanes;    // per vector
  // Data to prefetch during the tile: a cache line with each step, `step` bytes apart.
  struct Ahead {
    const void* first;
    uint64_t step;
  };
  // to[i][j] = (to[i][j] +) the sum over `steps` of a[step][i] * b[step][j]. Steps of `a` are `rows` apart,
  // those of `b` b_stride, rows of `to` to_stride.
  using Run = void(const float* a, const float* b, uint64_t b_stride, uint64_t steps, float* to,
                   uint64_t to_stride, bool accumulate, const Ahead& ahead);
  Run* run;
  Run* narrow[2];  // for only the first vector, or the first two, of the columns, if there are more
  // For bytes: a word of a panel, instead of a float, contains four steps of INT8, and a sum is INT32.
  bool bytes = false;
  // Rows of A in place: steps are contiguous, rows are `stride` apart.
  struct Rows {
    const float* first;
    uint64_t stride;
  };
  // As `run`, for such rows. in_place[r - 1][v - 1] is for r rows and v vectors; null if there is none.
  using RunInPlace = void(const Rows& a, const float* b, uint64_t b_stride, uint64_t steps, float* to,
                          uint64_t to_stride, bool accumulate, const Ahead& ahead);
  RunInPlace* in_place[kMaxTileRows][3] = {};
  // For twice `rows` and one vector; null if there is none. Rows that are pages apart would conflict in a
  // cache.
  RunInPlace* tall = nullptr;
  // Steps of B in place: elements, FLOAT32 or FLOAT16, are contiguous, steps are `stride` elements apart.
  struct Steps {
    const void* first;
    uint64_t stride;
  };
  // As in_place with all rows, whose steps are a_step apart. It also packs B to `panel`, as FLOAT32 with
  // steps `columns` apart. packing[h][v - 1] is for v vectors, of FLOAT16 if h is 1; null if there is none.
  // Those for FLOAT32 exist with AVX-512 only: in other processors' caches, steps that are pages apart evict
  // each other.
  using RunPacking = void(const Rows& a, uint64_t a_step, const Steps& b, uint64_t steps, float* panel,
                          float* to, uint64_t to_stride, bool accumulate, const Ahead& ahead);
  RunPacking* packing[2][3] = {};
};

// The kernel for this processor.
const MicroKernel& GemmMicroKernel();

}  // namespace anydml
