// Transposes small matrices in registers: vectors of 16 bytes, which every machine has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace anydml {

template <typename T>
struct Lanes {
  static constexpr size_t kCount = 16 / sizeof(T);
  typedef T Vector __attribute__((vector_size(16)));

  static Vector Load(const T* from) {
    Vector v;
    std::memcpy(&v, from, sizeof(v));
    return v;
  }
  static void Store(Vector v, T* to) { std::memcpy(to, &v, sizeof(v)); }

  // The lower or upper halves of a and b, lane by lane.
  template <bool kUpper>
  static Vector Zip(Vector a, Vector b) {
    return Shuffle<kUpper>(a, b, std::make_index_sequence<kCount>());
  }

 private:
  template <bool kUpper, size_t... kLane>
  static Vector Shuffle(Vector a, Vector b, std::index_sequence<kLane...>) {
    constexpr size_t kFirst = kUpper ? kCount / 2 : 0;
#ifdef __clang__
    return __builtin_shufflevector(a, b, (kFirst + kLane / 2 + kLane % 2 * kCount)...);
#else
    return __builtin_shuffle(a, b, Vector{static_cast<T>(kFirst + kLane / 2 + kLane % 2 * kCount)...});
#endif
  }
};

// Lanes::kCount rows of as many elements. Interleaving the rows of the two halves log2(kCount) times
// transposes the matrix. The steps are written out, because the compiler keeps vectors in memory unless loops
// are unrolled.
template <typename T>
class Square {
 public:
  static inline __attribute__((always_inline)) void Transpose(const T* from, ptrdiff_t from_stride, T* to,
                                                              ptrdiff_t to_stride) {
    Vector v[kCount];
    [&]<size_t... kRow>(std::index_sequence<kRow...>) __attribute__((always_inline)) {
      ((v[kRow] = L::Load(from + static_cast<ptrdiff_t>(kRow) * from_stride)), ...);
    }
    (Rows());
    ZipRows<kCount>(v);
    [&]<size_t... kRow>(std::index_sequence<kRow...>) __attribute__((always_inline)) {
      (L::Store(v[kRow], to + static_cast<ptrdiff_t>(kRow) * to_stride), ...);
    }
    (Rows());
  }

 private:
  using L = Lanes<T>;
  using Vector = typename L::Vector;
  static constexpr size_t kCount = L::kCount;
  using Rows = std::make_index_sequence<kCount>;

  template <size_t kLeft>
  static inline __attribute__((always_inline)) void ZipRows(Vector (&v)[kCount]) {
    if constexpr (kLeft > 1) {
      Vector zipped[kCount];
      [&]<size_t... kRow>(std::index_sequence<kRow...>) __attribute__((always_inline)) {
        ((zipped[kRow] = L::template Zip<kRow % 2 != 0>(v[kRow / 2], v[kRow / 2 + kCount / 2])), ...);
      }
      (Rows());
      ZipRows<kLeft / 2>(zipped);
      [&]<size_t... kRow>(std::index_sequence<kRow...>) __attribute__((always_inline)) {
        ((v[kRow] = zipped[kRow]), ...);
      }
      (Rows());
    }
  }
};

// to[r * to_stride + c] = from[c * from_stride + r]. Neither need be aligned.
template <typename T>
void TransposeTile(const T* from, ptrdiff_t from_stride, T* to, ptrdiff_t to_stride, ptrdiff_t rows,
                   ptrdiff_t columns) {
  constexpr ptrdiff_t kCount = Lanes<T>::kCount;
  const ptrdiff_t whole_rows = rows - rows % kCount, whole_columns = columns - columns % kCount;
  for (ptrdiff_t c = 0; c < whole_columns; c += kCount) {
    for (ptrdiff_t r = 0; r < whole_rows; r += kCount) {
      Square<T>::Transpose(from + c * from_stride + r, from_stride, to + r * to_stride + c, to_stride);
    }
    for (ptrdiff_t r = whole_rows; r < rows; ++r) {
      for (ptrdiff_t i = c; i < c + kCount; ++i) {
        std::memcpy(to + r * to_stride + i, from + i * from_stride + r, sizeof(T));
      }
    }
  }
  for (ptrdiff_t c = whole_columns; c < columns; ++c) {
    for (ptrdiff_t r = 0; r < rows; ++r) {
      std::memcpy(to + r * to_stride + c, from + c * from_stride + r, sizeof(T));
    }
  }
}

}  // namespace anydml
