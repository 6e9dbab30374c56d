// The vectorised part of row_loops-inl.h: processes as many elements as fill whole vectors and returns their
// number. Included inside a namespace, for one SIMD target.

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

#if ANYDML_HAVE_HIGHWAY && HWY_TARGET != HWY_SCALAR
namespace hn = hwy::HWY_NAMESPACE;

template <bool kFirst, class D, class V>
HWY_INLINE void KeepLarger(D d, V larger, hwy::HWY_NAMESPACE::TFromD<D>* best) {
  hn::StoreU(kFirst ? larger : hn::Max(hn::LoadU(d, best), larger), d, best);
}

template <bool kFirst>
uint64_t VectorMaxOfRows(const float* a, const float* b, const float* c, uint64_t count, float* best,
                         bool* any_nan) {
  const hn::ScalableTag<float> d;
  const uint64_t lanes = hn::Lanes(d);
  auto sum = hn::Zero(d);  // NaN if an element is, or if there are infinities of both signs, which is rare
  uint64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto x = hn::LoadU(d, a + i), y = hn::LoadU(d, b + i), z = hn::LoadU(d, c + i);
    sum = hn::Add(sum, hn::Add(hn::Add(x, y), z));
    KeepLarger<kFirst>(d, hn::Max(hn::Max(x, y), z), best + i);
  }
  *any_nan = !hn::AllFalse(d, hn::IsNaN(sum));
  return i;
}

template <class D, class V>
HWY_INLINE V KeysOfHalves(D d, V bits) {
  return hn::Xor(bits, hn::And(hn::ShiftRight<15>(bits), hn::Set(d, 0x7FFF)));
}

template <bool kFirst>
uint64_t VectorMaxOfRows(const Half* a, const Half* b, const Half* c, uint64_t count, int16_t* best,
                         bool* any_nan) {
  const hn::ScalableTag<int16_t> d;
  const uint64_t lanes = hn::Lanes(d);
  const auto magnitude = hn::Set(d, 0x7FFF);
  auto largest = hn::Zero(d);
  uint64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto x = hn::LoadU(d, reinterpret_cast<const int16_t*>(a + i));
    const auto y = hn::LoadU(d, reinterpret_cast<const int16_t*>(b + i));
    const auto z = hn::LoadU(d, reinterpret_cast<const int16_t*>(c + i));
    largest = hn::Max(largest, hn::Max(hn::And(x, magnitude), hn::And(y, magnitude)));
    largest = hn::Max(largest, hn::And(z, magnitude));
    const auto pair = hn::Max(KeysOfHalves(d, x), KeysOfHalves(d, y));
    KeepLarger<kFirst>(d, hn::Max(pair, KeysOfHalves(d, z)), best + i);
  }
  *any_nan = !hn::AllFalse(d, hn::Gt(largest, hn::Set(d, 0x7C00)));
  return i;
}

// The prefetch distance for a plane, because hardware prefetch does not follow from one plane to the next.
template <typename T>
HWY_INLINE void AskForNext(const T* x, uint64_t bytes) {
  constexpr uint64_t kBytesAhead = 4096;
  const auto* const next = reinterpret_cast<const char*>(x) + kBytesAhead;
  for (uint64_t at = 0; at < bytes; at += 64) __builtin_prefetch(next + at);
}

// The largest of a contiguous plane of at least a vector; returns how much was processed: all, or nothing.
// The last vector may overlap the one before.
uint64_t VectorMaxOfPlane(const float* x, uint64_t count, float* best, bool* any_nan) {
  const hn::ScalableTag<float> d;
  const uint64_t lanes = hn::Lanes(d), step = 4 * lanes;
  if (count < lanes) return 0;
  auto a = hn::LoadU(d, x + count - lanes), b = a, c = a, e = a;
  auto a_sum = a, b_sum = hn::Zero(d);  // see VectorMaxOfRows
  uint64_t i = 0;
  for (; i + step <= count; i += step) {
    const auto x0 = hn::LoadU(d, x + i), x1 = hn::LoadU(d, x + i + lanes);
    const auto x2 = hn::LoadU(d, x + i + 2 * lanes), x3 = hn::LoadU(d, x + i + 3 * lanes);
    AskForNext(x + i, step * sizeof(float));
    a = hn::Max(a, x0);
    b = hn::Max(b, x1);
    c = hn::Max(c, x2);
    e = hn::Max(e, x3);
    a_sum = hn::Add(a_sum, hn::Add(x0, x1));
    b_sum = hn::Add(b_sum, hn::Add(x2, x3));
  }
  for (; i + lanes <= count; i += lanes) {
    const auto next = hn::LoadU(d, x + i);
    a = hn::Max(a, next);
    a_sum = hn::Add(a_sum, next);
  }
  *best = hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(a, b), hn::Max(c, e))));
  *any_nan = !hn::AllFalse(d, hn::IsNaN(hn::Add(a_sum, b_sum)));
  return count;
}

// For FLOAT16, the largest as signed numbers is the maximum if any number is positive; together with the
// largest as unsigned numbers it reveals NaNs. If none is positive, the maximum is the smallest as signed
// numbers.
uint64_t VectorMaxOfPlane(const Half* halves, uint64_t count, int16_t* best, bool* any_nan) {
  const hn::ScalableTag<int16_t> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const uint64_t lanes = hn::Lanes(d), step = 4 * lanes;
  if (count < lanes) return 0;
  const auto* const x = reinterpret_cast<const int16_t*>(halves);
  auto a = hn::LoadU(d, x + count - lanes), b = a;
  auto a_bits = hn::BitCast(du, a), b_bits = a_bits;
  uint64_t i = 0;
  for (; i + step <= count; i += step) {
    const auto x0 = hn::LoadU(d, x + i), x1 = hn::LoadU(d, x + i + lanes);
    const auto x2 = hn::LoadU(d, x + i + 2 * lanes), x3 = hn::LoadU(d, x + i + 3 * lanes);
    AskForNext(x + i, step * sizeof(int16_t));
    a = hn::Max(a, hn::Max(x0, x1));
    b = hn::Max(b, hn::Max(x2, x3));
    a_bits = hn::Max(a_bits, hn::Max(hn::BitCast(du, x0), hn::BitCast(du, x1)));
    b_bits = hn::Max(b_bits, hn::Max(hn::BitCast(du, x2), hn::BitCast(du, x3)));
  }
  for (; i + lanes <= count; i += lanes) {
    const auto next = hn::LoadU(d, x + i);
    a = hn::Max(a, next);
    a_bits = hn::Max(a_bits, hn::BitCast(du, next));
  }
  HWY_ALIGN int16_t each[hn::MaxLanes(d)];
  hn::Store(hn::Max(a, b), d, each);
  int16_t largest = *std::max_element(each, each + lanes);
  *any_nan = largest > 0x7C00 || !hn::AllFalse(du, hn::Gt(hn::Max(a_bits, b_bits), hn::Set(du, 0xFC00)));
  if (largest < 0) {
    for (uint64_t k = 0; k < count; ++k) largest = std::min(largest, x[k]);
    largest = static_cast<int16_t>(largest ^ 0x7FFF);  // its key
  }
  *best = largest;
  return count;
}

// Elements i * kStride for i below the number of lanes. With a stride of 2 one more element is read.
template <uint64_t kStride, class D>
HWY_INLINE hn::Vec<D> LoadStrided(D d, const hn::TFromD<D>* from) {
  if constexpr (kStride == 1) {
    return hn::LoadU(d, from);
  } else {
    hn::Vec<D> even, odd;
    hn::LoadInterleaved2(d, from, even, odd);
    return even;
  }
}

template <uint64_t kStride, typename Key>
uint64_t VectorMaxOfColumns(const Key* a, const Key* b, const Key* c, uint64_t count, bool first, Key* out) {
  const hn::ScalableTag<Key> d;
  const uint64_t lanes = hn::Lanes(d);
  uint64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::Vec<decltype(d)> x, y;
    if (kStride == 2 && b == a + 1) {
      hn::LoadInterleaved2(d, a + i * kStride, x, y);
    } else {
      x = LoadStrided<kStride>(d, a + i * kStride);
      y = LoadStrided<kStride>(d, b + i * kStride);
    }
    const auto larger = hn::Max(hn::Max(x, y), LoadStrided<kStride>(d, c + i * kStride));
    hn::StoreU(first ? larger : hn::Max(hn::LoadU(d, out + i), larger), d, out + i);
  }
  return i;
}

// As MaxOfColumns, for three columns.
uint64_t VectorSumOfPairs(const float* a, const float* c, uint64_t count, bool first, float* sums) {
  const hn::ScalableTag<float> d;
  const uint64_t lanes = hn::Lanes(d);
  uint64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::Vec<decltype(d)> x, y;
    hn::LoadInterleaved2(d, a + 2 * i, x, y);
    const auto sum = first ? hn::Zero(d) : hn::LoadU(d, sums + i);
    hn::StoreU(hn::Add(hn::Add(hn::Add(sum, x), y), LoadStrided<2>(d, c + 2 * i)), d, sums + i);
  }
  return i;
}

uint64_t VectorDivide(float* sums, const float* divisors, float factor, uint64_t count) {
  const hn::ScalableTag<float> d;
  const uint64_t lanes = hn::Lanes(d);
  const auto factors = hn::Set(d, factor), one = hn::Set(d, 1.0f), nan = hn::Set(d, kNan);
  uint64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto taps = hn::Mul(hn::LoadU(d, divisors + i), factors);
    // Without a tap, the sum is 0, too.
    const auto mean = hn::Div(hn::LoadU(d, sums + i), hn::Max(taps, one));
    hn::StoreU(hn::IfThenElse(hn::IsNaN(mean), nan, mean), d, sums + i);
  }
  return i;
}

// The columns' sums over consecutive rows, as vectors of four, the last of which may overlap the one before.
template <uint32_t kVectors>
void ColumnsOfPlane(const float* plane, uint64_t rows, uint32_t width, float* columns) {
  const hn::FixedTag<float, 4> d;
  const uint32_t last = width - 4;
  auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;  // the last one is for the last columns
  for (uint64_t r = 0; r < rows; ++r, plane += width) {
    sum0 = hn::Add(sum0, hn::LoadU(d, plane));
    if constexpr (kVectors > 2) sum1 = hn::Add(sum1, hn::LoadU(d, plane + 4));
    if constexpr (kVectors > 3) sum2 = hn::Add(sum2, hn::LoadU(d, plane + 8));
    sum3 = hn::Add(sum3, hn::LoadU(d, plane + last));
  }
  hn::StoreU(sum0, d, columns);
  if constexpr (kVectors > 2) hn::StoreU(sum1, d, columns + 4);
  if constexpr (kVectors > 3) hn::StoreU(sum2, d, columns + 8);
  hn::StoreU(sum3, d, columns + last);
}

bool VectorColumnsOfPlane(const float* plane, uint64_t rows, uint32_t width, float* columns) {
  switch ((width + 3) / 4) {
    case 2:
      ColumnsOfPlane<2>(plane, rows, width, columns);
      return true;
    case 3:
      ColumnsOfPlane<3>(plane, rows, width, columns);
      return true;
    case 4:
      ColumnsOfPlane<4>(plane, rows, width, columns);
      return true;
    default:
      return false;
  }
}

#if HWY_ARCH_X86
// The columns of a plane whose rows have this many vectors, and possibly more elements, which the last vector
// covers.
template <size_t kVectors>
HWY_INLINE void ColumnsOfVectors(const float* plane, uint64_t rows, uint64_t width, float* columns) {
  const hn::ScalableTag<float> d;
  hn::Vec<decltype(d)> sums[kVectors];
  uint64_t at[kVectors];
  for (size_t v = 0; v < kVectors; ++v) {
    sums[v] = hn::Zero(d);
    at[v] = v + 1 < kVectors ? v * hn::Lanes(d) : width - hn::Lanes(d);
  }
  for (uint64_t r = 0; r < rows; ++r, plane += width) {
    for (size_t v = 0; v < kVectors; ++v) sums[v] = hn::Add(sums[v], hn::LoadU(d, plane + at[v]));
    AskForNext(plane, kVectors * hn::Lanes(d) * sizeof(float));
  }
  for (size_t v = 0; v < kVectors; ++v) hn::StoreU(sums[v], d, columns + at[v]);
}

bool VectorColumnsOfRows(const float* plane, uint64_t rows, uint64_t width, float* columns) {
  const uint64_t lanes = hn::Lanes(hn::ScalableTag<float>());
  switch ((width + lanes - 1) / lanes) {
    case 2:
      return ColumnsOfVectors<2>(plane, rows, width, columns), true;
    case 3:
      return ColumnsOfVectors<3>(plane, rows, width, columns), true;
    case 4:
      return ColumnsOfVectors<4>(plane, rows, width, columns), true;
    case 5:
      return ColumnsOfVectors<5>(plane, rows, width, columns), true;
    case 6:
      return ColumnsOfVectors<6>(plane, rows, width, columns), true;
    case 7:
      return ColumnsOfVectors<7>(plane, rows, width, columns), true;
    case 8:
      return ColumnsOfVectors<8>(plane, rows, width, columns), true;
    default:
      return false;
  }
}
#else
bool VectorColumnsOfRows(const float*, uint64_t, uint64_t, float*) { return false; }
#endif
#else
template <bool kFirst, typename T, typename Key>
uint64_t VectorMaxOfRows(const T*, const T*, const T*, uint64_t, Key*, bool*) {
  return 0;
}
template <typename T, typename Key>
uint64_t VectorMaxOfPlane(const T*, uint64_t, Key*, bool*) {
  return 0;
}
template <uint64_t kStride, typename Key>
uint64_t VectorMaxOfColumns(const Key*, const Key*, const Key*, uint64_t, bool, Key*) {
  return 0;
}
uint64_t VectorSumOfPairs(const float*, const float*, uint64_t, bool, float*) { return 0; }
uint64_t VectorDivide(float*, const float*, float, uint64_t) { return 0; }
bool VectorColumnsOfPlane(const float*, uint64_t, uint32_t, float*) { return false; }
bool VectorColumnsOfRows(const float*, uint64_t, uint64_t, float*) { return false; }
#endif
