// The innermost part of a matrix product: a tile of the output that stays in vector registers.
#pragma once

#include <cstdint>

namespace anydml {

inline constexpr uint32_t kMaxTileRows = 8;
inline constexpr uint32_t kMaxTileColumns = 3 * 64;  // vectors of 2048 bits

struct MicroKernel {
  uint32_t rows;     // of a tile
  uint32_t columns;  // whole vectors
  uint32_t lanes;    // of a vector
  // What will be read next may be asked for meanwhile: a line with each step, `step` bytes apart.
  struct Ahead {
    const void* first;
    uint64_t step;
  };
  // to[i][j] = (to[i][j] +) the sum over `steps` of a[step][i] * b[step][j]. Steps of `a` are `rows` apart,
  // those of `b` b_stride, rows of `to` to_stride.
  using Run = void(const float* a, const float* b, uint64_t b_stride, uint64_t steps, float* to,
                   uint64_t to_stride, bool accumulate, const Ahead& ahead);
  Run* run;
  Run* narrow[2];  // of the first vector, or the first two, of the columns, where there are more
  // Of bytes: a word of a panel, in place of a float, is four steps of INT8, and a sum is INT32.
  bool bytes = false;
  // Rows of A where they lie: their steps are neighbours, rows are `stride` apart.
  struct Rows {
    const float* first;
    uint64_t stride;
  };
  // As `run`, of such rows. in_place[r - 1][v - 1] is that of r rows and v vectors; null where there are
  // none.
  using RunInPlace = void(const Rows& a, const float* b, uint64_t b_stride, uint64_t steps, float* to,
                          uint64_t to_stride, bool accumulate, const Ahead& ahead);
  RunInPlace* in_place[kMaxTileRows][3] = {};
  // That of twice `rows` and one vector; null where there is none. Rows a page apart have no room in a cache.
  RunInPlace* tall = nullptr;
  // Steps of B where they lie: their elements, FLOAT32 or FLOAT16, are neighbours, steps are `stride`
  // elements apart.
  struct Steps {
    const void* first;
    uint64_t stride;
  };
  // As in_place of all rows, whose steps are a_step apart. B is put to `panel` meanwhile, as FLOAT32, steps
  // `columns` apart. packing[h][v - 1] is that of v vectors, of FLOAT16 where h is 1; null where there are
  // none. Those of FLOAT32 come with AVX-512: steps that are pages apart push each other out of the caches
  // that other processors have.
  using RunPacking = void(const Rows& a, uint64_t a_step, const Steps& b, uint64_t steps, float* panel,
                          float* to, uint64_t to_stride, bool accumulate, const Ahead& ahead);
  RunPacking* packing[2][3] = {};
};

// For this processor.
const MicroKernel& GemmMicroKernel();

}  // namespace anydml
