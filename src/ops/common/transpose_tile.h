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

// Lanes::kCount rows of as many elements. Zipping rows of the halves log2(kCount) times transposes.
template <typename T>
void TransposeSquare(const T* from, ptrdiff_t from_stride, T* to, ptrdiff_t to_stride) {
  using L = Lanes<T>;
  constexpr size_t kCount = L::kCount;
  typename L::Vector a[kCount], b[kCount];
  for (size_t i = 0; i < kCount; ++i) a[i] = L::Load(from + static_cast<ptrdiff_t>(i) * from_stride);
  for (size_t step = 1; step < kCount; step *= 2) {
    for (size_t i = 0; i < kCount / 2; ++i) {
      b[2 * i] = L::template Zip<false>(a[i], a[i + kCount / 2]);
      b[2 * i + 1] = L::template Zip<true>(a[i], a[i + kCount / 2]);
    }
    for (size_t i = 0; i < kCount; ++i) a[i] = b[i];
  }
  for (size_t i = 0; i < kCount; ++i) L::Store(a[i], to + static_cast<ptrdiff_t>(i) * to_stride);
}

// to[r * to_stride + c] = from[c * from_stride + r].
template <typename T>
void TransposeTile(const T* from, ptrdiff_t from_stride, T* to, ptrdiff_t to_stride, ptrdiff_t rows,
                   ptrdiff_t columns) {
  constexpr ptrdiff_t kCount = Lanes<T>::kCount;
  const ptrdiff_t whole_rows = rows - rows % kCount, whole_columns = columns - columns % kCount;
  for (ptrdiff_t c = 0; c < whole_columns; c += kCount) {
    for (ptrdiff_t r = 0; r < whole_rows; r += kCount) {
      TransposeSquare(from + c * from_stride + r, from_stride, to + r * to_stride + c, to_stride);
    }
    for (ptrdiff_t r = whole_rows; r < rows; ++r) {
      for (ptrdiff_t i = c; i < c + kCount; ++i) to[r * to_stride + i] = from[i * from_stride + r];
    }
  }
  for (ptrdiff_t c = whole_columns; c < columns; ++c) {
    for (ptrdiff_t r = 0; r < rows; ++r) to[r * to_stride + c] = from[c * from_stride + r];
  }
}

}  // namespace anydml
