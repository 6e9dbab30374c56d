// The loops' bodies: text inside a namespace, for one SIMD target.

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <typename T>
struct Element {
  using Key = T;
  static Key KeyOf(T x) { return x; }
  static T ElementOf(Key key) { return key; }
  static bool IsNan(T) { return false; }
  static constexpr bool kHasZeros = false;
};

template <>
struct Element<float> {
  using Key = float;
  static float KeyOf(float x) { return x; }
  static float ElementOf(float key) { return key; }
  static bool IsNan(float x) { return x != x; }  // NOLINT(misc-redundant-expression)
  static constexpr bool kHasZeros = true;
};

template <>
struct Element<Half> {
  using Key = int16_t;
  // Sign and magnitude to a number; and back.
  static int16_t Flip(int16_t x) { return static_cast<int16_t>(x ^ ((x >> 15) & 0x7FFF)); }
  static int16_t KeyOf(Half x) { return Flip(static_cast<int16_t>(x.bits)); }
  static Half ElementOf(int16_t key) { return {static_cast<uint16_t>(Flip(key))}; }
  static bool IsNan(Half x) { return (x.bits & 0x7FFF) > 0x7C00; }
  static constexpr bool kHasZeros = false;
};

template <typename Key>
Key Larger(Key a, Key b) {
  return a > b ? a : b;
}

// ---- By vectors: as many elements as make whole ones. Returns how many.

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
  auto sum = hn::Zero(d);  // is NaN if an element is, or if there are infinities of both signs, which is rare
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

// Elements i * kStride, i below the number of lanes. With a stride of 2 one element more is read.
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

// As MaxOfColumns, for three of them.
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

// The columns' sums of rows that follow each other, as vectors of four, of which the last may overlap the one
// before.
template <uint32_t kVectors>
void ColumnsOfPlane(const float* plane, uint64_t rows, uint32_t width, float* columns) {
  const hn::FixedTag<float, 4> d;
  const uint32_t last = width - 4;
  auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;  // the last of them for the last columns
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
#else
template <bool kFirst, typename T, typename Key>
uint64_t VectorMaxOfRows(const T*, const T*, const T*, uint64_t, Key*, bool*) {
  return 0;
}
template <uint64_t kStride, typename Key>
uint64_t VectorMaxOfColumns(const Key*, const Key*, const Key*, uint64_t, bool, Key*) {
  return 0;
}
uint64_t VectorSumOfPairs(const float*, const float*, uint64_t, bool, float*) { return 0; }
uint64_t VectorDivide(float*, const float*, float, uint64_t) { return 0; }
bool VectorColumnsOfPlane(const float*, uint64_t, uint32_t, float*) { return false; }
#endif

template <typename T>
constexpr bool kIsFloat = std::is_same_v<T, float> || std::is_same_v<T, Half>;

template <typename T, bool kFirst>
bool MaxOfRows(const T* __restrict a, const T* __restrict b, const T* __restrict c, uint64_t count,
               typename Element<T>::Key* __restrict best) {
  using E = Element<T>;
  using Flag =
      std::make_unsigned_t<std::conditional_t<std::is_same_v<T, float>, int32_t,
                                              std::conditional_t<std::is_same_v<T, Half>, int16_t, T>>>;
  bool vectors_nan = false;
  uint64_t done = 0;
  if constexpr (kIsFloat<T>) done = VectorMaxOfRows<kFirst>(a, b, c, count, best, &vectors_nan);
  Flag nan = vectors_nan ? 1 : 0;
  for (uint64_t i = done; i < count; ++i) {
    const auto pair = Larger(E::KeyOf(a[i]), E::KeyOf(b[i]));
    const auto three = Larger(pair, E::KeyOf(c[i]));
    best[i] = kFirst ? three : Larger(best[i], three);
    nan |= static_cast<Flag>(E::IsNan(a[i]) | E::IsNan(b[i]) | E::IsNan(c[i]));
  }
  return nan != 0;
}

template <typename T>
bool MaxRows(const void* const (&rows)[kRowsAtOnce], uint64_t count, bool first, void* best) {
  using Key = typename Element<T>::Key;
  const auto* const a = static_cast<const T*>(rows[0]);
  const auto* const b = static_cast<const T*>(rows[1]);
  const auto* const c = static_cast<const T*>(rows[2]);
  return first ? MaxOfRows<T, true>(a, b, c, count, static_cast<Key*>(best))
               : MaxOfRows<T, false>(a, b, c, count, static_cast<Key*>(best));
}

// Strides of 1 and 2 are known when the loop is compiled; 0 stands for any.
template <uint64_t kStride, typename Key>
void MaxOfColumns(const Key* __restrict a, const Key* __restrict b, const Key* __restrict c,
                  uint64_t any_stride, uint64_t count, bool first, Key* __restrict out) {
  const uint64_t stride = kStride == 0 ? any_stride : kStride;
  uint64_t done = 0;
  if constexpr (kStride != 0 && (std::is_same_v<Key, float> || std::is_same_v<Key, int16_t>)) {
    done = VectorMaxOfColumns<kStride>(a, b, c, count, first, out);
  }
  if (first) {
    for (uint64_t i = done; i < count; ++i) {
      out[i] = Larger(Larger(a[i * stride], b[i * stride]), c[i * stride]);
    }
  } else {
    for (uint64_t i = done; i < count; ++i) {
      out[i] = Larger(out[i], Larger(Larger(a[i * stride], b[i * stride]), c[i * stride]));
    }
  }
}

template <typename T>
void MaxColumns(const void* const (&columns)[kRowsAtOnce], uint64_t stride, uint64_t count, bool first,
                void* out) {
  using Key = typename Element<T>::Key;
  const auto* const a = static_cast<const Key*>(columns[0]);
  const auto* const b = static_cast<const Key*>(columns[1]);
  const auto* const c = static_cast<const Key*>(columns[2]);
  auto* const to = static_cast<Key*>(out);
  switch (stride) {
    case 1:
      return MaxOfColumns<1>(a, b, c, stride, count, first, to);
    case 2:
      return MaxOfColumns<2>(a, b, c, stride, count, first, to);
    default:
      return MaxOfColumns<0>(a, b, c, stride, count, first, to);
  }
}

template <typename T>
bool MaxFinish(void* keys, uint64_t count) {
  using E = Element<T>;
  if constexpr (E::kHasZeros) {
    const auto* const numbers = static_cast<const float*>(keys);
    uint32_t found = 0;
    for (uint64_t i = 0; i < count; ++i) {
      found |= static_cast<uint32_t>(std::bit_cast<uint32_t>(numbers[i]) == 0x80000000u);
    }
    return found != 0;
  } else if constexpr (!std::is_same_v<T, typename E::Key>) {
    auto* const flipped = static_cast<typename E::Key*>(keys);
    for (uint64_t i = 0; i < count; ++i) {
      flipped[i] = static_cast<typename E::Key>(E::ElementOf(flipped[i]).bits);
    }
  }
  return false;
}

template <uint32_t kUsed, uint64_t kStride>
void SumOf(const float* __restrict a, const float* __restrict b, const float* __restrict c,
           uint64_t any_stride, uint64_t count, bool first, float* __restrict sums) {
  const uint64_t stride = kStride == 0 ? any_stride : kStride;
  const auto add = [&](float sum, uint64_t i) {
    sum += a[i * stride];
    if constexpr (kUsed > 1) sum += b[i * stride];
    if constexpr (kUsed > 2) sum += c[i * stride];
    return sum;
  };
  uint64_t done = 0;
  if constexpr (kUsed == 3 && kStride == 2) {
    if (b == a + 1) done = VectorSumOfPairs(a, c, count, first, sums);
  }
  if (first) {
    for (uint64_t i = done; i < count; ++i) sums[i] = add(0.0f, i);
  } else {
    for (uint64_t i = done; i < count; ++i) sums[i] = add(sums[i], i);
  }
}

template <uint64_t kStride>
void SumStrided(const float* const (&from)[kRowsAtOnce], uint32_t used, uint64_t stride, uint64_t count,
                bool first, float* sums) {
  switch (used) {
    case 1:
      return SumOf<1, kStride>(from[0], from[0], from[0], stride, count, first, sums);
    case 2:
      return SumOf<2, kStride>(from[0], from[1], from[1], stride, count, first, sums);
    default:
      return SumOf<3, kStride>(from[0], from[1], from[2], stride, count, first, sums);
  }
}

void SumRows(const float* const (&rows)[kRowsAtOnce], uint32_t used, uint64_t count, bool first,
             float* sums) {
  SumStrided<1>(rows, used, 1, count, first, sums);
}

void SumColumns(const float* const (&columns)[kRowsAtOnce], uint32_t used, uint64_t stride, uint64_t count,
                bool first, float* sums) {
  switch (stride) {
    case 1:
      return SumStrided<1>(columns, used, stride, count, first, sums);
    case 2:
      return SumStrided<2>(columns, used, stride, count, first, sums);
    default:
      return SumStrided<0>(columns, used, stride, count, first, sums);
  }
}

float SumWide(const float* columns, uint64_t step, uint32_t count) {
  float lanes[kSumLanes] = {};
  uint32_t k = 0;
  if (step == 1) {
    for (; k + kSumLanes <= count; k += kSumLanes) {
      for (uint32_t i = 0; i < kSumLanes; ++i) lanes[i] += columns[k + i];
    }
  }
  for (; k < count; ++k) lanes[k % kSumLanes] += columns[k * step];
  for (uint32_t half = kSumLanes / 2; half > 0; half /= 2) {
    for (uint32_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

float SumPlane(const float* plane, uint64_t rows, uint32_t width) {
  float columns[kColumnsInARow] = {};
  if (!VectorColumnsOfPlane(plane, rows, width, columns)) {
    for (uint64_t r = 0; r < rows; ++r, plane += width) {
      for (uint32_t k = 0; k < width; ++k) columns[k] += plane[k];
    }
  }
  float sum = 0;
  for (uint32_t k = 0; k < width; ++k) sum += columns[k];
  return sum;
}

void Divide(float* __restrict sums, const float* __restrict divisors, float factor, uint64_t count) {
  for (uint64_t i = VectorDivide(sums, divisors, factor, count); i < count; ++i) {
    const float divisor = divisors[i] * factor;
    const float mean = sums[i] / (divisor == 0 ? 1 : divisor);
    sums[i] = mean == mean ? mean : kNan;  // NOLINT(misc-redundant-expression)
  }
}

void Powers(float* x, uint32_t p, uint64_t count) {
  if (p == 1) {
    for (uint64_t i = 0; i < count; ++i) x[i] = x[i] < 0 ? -x[i] : x[i];
  } else {
    for (uint64_t i = 0; i < count; ++i) x[i] = x[i] * x[i];
  }
}

void Roots(float* x, uint32_t p, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    const float root = p == 1 ? x[i] : sqrtf(x[i]);
    x[i] = root == root ? root : kNan;  // NOLINT(misc-redundant-expression)
  }
}

template <typename T>
constexpr MaxLoops kMaxLoops = {&MaxRows<T>, &MaxColumns<T>, &MaxFinish<T>};

MaxLoops MaxLoopsFor(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return kMaxLoops<float>;
    case DataType::kFloat16:
      return kMaxLoops<Half>;
    case DataType::kInt8:
      return kMaxLoops<int8_t>;
    case DataType::kUInt8:
      return kMaxLoops<uint8_t>;
    case DataType::kInt16:
      return kMaxLoops<int16_t>;
    case DataType::kUInt16:
      return kMaxLoops<uint16_t>;
    case DataType::kInt32:
      return kMaxLoops<int32_t>;
    case DataType::kUInt32:
      return kMaxLoops<uint32_t>;
    default:
      return {};
  }
}

SumLoops SumLoopsFor() { return {&SumRows, &SumColumns, &SumWide, &SumPlane, &Divide, &Powers, &Roots}; }
