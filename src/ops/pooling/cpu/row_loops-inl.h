// The loops' bodies, included inside a namespace for one SIMD target.

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
  // Converts sign and magnitude to an integer, and back.
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
    nan |= static_cast<Flag>(E::IsNan(a[i]));
    nan |= static_cast<Flag>(E::IsNan(b[i]));
    nan |= static_cast<Flag>(E::IsNan(c[i]));
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

template <typename T>
bool MaxPlane(const void* plane, uint64_t count, void* best) {
  using E = Element<T>;
  const auto* const x = static_cast<const T*>(plane);
  typename E::Key largest = E::KeyOf(x[0]);
  bool nan = false;
  uint64_t done = 0;
  if constexpr (kIsFloat<T>) done = VectorMaxOfPlane(x, count, &largest, &nan);
  for (uint64_t i = done; i < count; ++i) {
    largest = Larger(largest, E::KeyOf(x[i]));
    nan |= E::IsNan(x[i]);
  }
  *static_cast<typename E::Key*>(best) = largest;
  return nan;
}

// Strides of 1 and 2 are compile-time constants; 0 stands for any.
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
constexpr MaxLoops kMaxLoops = {&MaxRows<T>, &MaxPlane<T>, &MaxColumns<T>, &MaxFinish<T>};

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

SumLoops SumLoopsFor() {
  return {&SumRows, &VectorColumnsOfRows, &SumColumns, &SumWide, &SumPlane, &Divide, &Powers, &Roots};
}
