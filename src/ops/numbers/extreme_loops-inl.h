// Extremes and their positions, of FLOAT32, and of FLOAT16 without conversion (T). Included inside
// reduce_vector_loops.cc's namespace of a SIMD target. Longer than most files: a body for each order of
// loops, which share their vectors of positions.

// The larger (smaller) ones; NaN if either is, with +0 larger than -0.
template <bool kMin>
HWY_INLINE FloatVector ExtremeOf(F32 d, FloatVector a, FloatVector b) {
#if HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64
  (void)d;
  return FloatVector(kMin ? vminq_f32(a.raw, b.raw) : vmaxq_f32(a.raw, b.raw));
#else
  const auto chosen = hn::IfThenElse(kMin ? hn::Lt(a, b) : hn::Gt(a, b), a, b);
  const auto equal = kMin ? hn::Or(a, b) : hn::And(a, b);  // differs from a and b only for zeros
  const auto number = hn::IfThenElse(hn::Eq(a, b), equal, chosen);
  // a NaN in b has been selected already
  return hn::IfThenElse(hn::IsNaN(a), hn::Set(d, lane::kNan), number);
#endif
}

template <bool kMin, typename T>
float ExactExtremeOfRow(const T* HWY_RESTRICT x, uint64_t count, float extreme) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d);
  uint64_t i = 0;
  if (count >= lanes) {
    auto a = hn::Set(d, extreme), b = a, c = a, e = a;
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
      a = ExtremeOf<kMin>(d, a, FloatsAt(d, x + i));
      b = ExtremeOf<kMin>(d, b, FloatsAt(d, x + i + lanes));
      c = ExtremeOf<kMin>(d, c, FloatsAt(d, x + i + 2 * lanes));
      e = ExtremeOf<kMin>(d, e, FloatsAt(d, x + i + 3 * lanes));
    }
    for (; i + lanes <= count; i += lanes) a = ExtremeOf<kMin>(d, a, FloatsAt(d, x + i));
    a = ExtremeOf<kMin>(d, ExtremeOf<kMin>(d, a, b), ExtremeOf<kMin>(d, c, e));
    HWY_ALIGN float each[hn::MaxLanes(d)];
    hn::Store(a, d, each);
    for (uint64_t l = 0; l < lanes; ++l) extreme = reduce::Extreme<kMin>(extreme, each[l]);
  }
  for (; i < count; ++i) extreme = reduce::Extreme<kMin>(extreme, ToFloat(x[i]));
  return extreme;
}

#if HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64
template <bool kMin>
float ExtremeOfRow(const float* HWY_RESTRICT x, uint64_t count, float extreme) {
  return ExactExtremeOfRow<kMin>(x, count, extreme);
}
#else
// Targets differ in their handling of NaNs and zeros. So NaNs are only detected, by a sum of everything, and
// a run that may have one, or whose extreme is a zero, is processed again carefully.
template <bool kMin>
HWY_INLINE FloatVector AnyExtremeOf(FloatVector a, FloatVector b) {
  return kMin ? hn::Min(a, b) : hn::Max(a, b);
}

template <bool kMin>
float ExtremeOfRun(const float* HWY_RESTRICT x, uint64_t count, float extreme) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d), whole = count / (4 * lanes) * (4 * lanes);
  if (whole == 0) return ExactExtremeOfRow<kMin>(x, count, extreme);
  auto a = hn::LoadU(d, x), b = hn::LoadU(d, x + lanes);
  auto c = hn::LoadU(d, x + 2 * lanes), e = hn::LoadU(d, x + 3 * lanes);
  auto a_sum = a, b_sum = b, c_sum = c, e_sum = e;
  for (uint64_t i = 4 * lanes; i < whole; i += 4 * lanes) {
    const auto a_next = hn::LoadU(d, x + i), b_next = hn::LoadU(d, x + i + lanes);
    const auto c_next = hn::LoadU(d, x + i + 2 * lanes), e_next = hn::LoadU(d, x + i + 3 * lanes);
    AskForNext(x + i, 4 * lanes * sizeof(float));
    a = AnyExtremeOf<kMin>(a, a_next);
    b = AnyExtremeOf<kMin>(b, b_next);
    c = AnyExtremeOf<kMin>(c, c_next);
    e = AnyExtremeOf<kMin>(e, e_next);
    a_sum = hn::Add(a_sum, a_next);
    b_sum = hn::Add(b_sum, b_next);
    c_sum = hn::Add(c_sum, c_next);
    e_sum = hn::Add(e_sum, e_next);
  }
  const auto sum = hn::Add(hn::Add(a_sum, b_sum), hn::Add(c_sum, e_sum));
  if (!hn::AllFalse(d, hn::IsNaN(sum))) return ExactExtremeOfRow<kMin>(x, count, extreme);
  a = AnyExtremeOf<kMin>(AnyExtremeOf<kMin>(a, b), AnyExtremeOf<kMin>(c, e));
  const float found = hn::GetLane(kMin ? hn::MinOfLanes(d, a) : hn::MaxOfLanes(d, a));
  if (found == 0) return ExactExtremeOfRow<kMin>(x, count, extreme);
  return ExactExtremeOfRow<kMin>(x + whole, count - whole, reduce::Extreme<kMin>(extreme, found));
}

template <bool kMin>
float ExtremeOfRow(const float* HWY_RESTRICT x, uint64_t count, float extreme) {
  for (uint64_t at = 0; at < count; at += kRun) {
    extreme = ExtremeOfRun<kMin>(x + at, std::min(kRun, count - at), extreme);
  }
  return extreme;
}
#endif

// FLOAT16 as bits: the largest as signed numbers is the maximum if any number is positive, the largest as
// unsigned numbers is the minimum if any is negative, and both reveal NaNs.
struct HalfBounds {
  int16_t positive;
  uint16_t negative;

  // The extreme; or false, if all numbers have the other sign or there is a NaN.
  template <bool kMin>
  bool Get(uint16_t* bits) const {
    *bits = kMin ? negative : static_cast<uint16_t>(positive);
    return positive <= 0x7C00 && negative <= 0xFC00 && (kMin ? negative >= 0x8000 : positive >= 0);
  }
};

// The largest of a vector's 16-bit elements.
#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE T LargestOf(D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) > 8) {
    const hn::Half<D> half;
    return LargestOf(half, hn::Max(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    v = hn::Max(v, hn::CombineShiftRightBytes<8>(d, v, v));
    v = hn::Max(v, hn::CombineShiftRightBytes<4>(d, v, v));
    return hn::GetLane(hn::Max(v, hn::CombineShiftRightBytes<2>(d, v, v)));
  }
}
#else
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE T LargestOf(D d, hn::Vec<D> v) {
  HWY_ALIGN T each[hn::MaxLanes(d)];
  hn::Store(v, d, each);
  return *std::max_element(each, each + hn::Lanes(d));
}
#endif

HalfBounds BoundsOf(const uint16_t* HWY_RESTRICT x, uint64_t count) {
  const hn::ScalableTag<uint16_t> du;
  const hn::RebindToSigned<decltype(du)> di;
  const uint64_t lanes = hn::Lanes(du);
  HalfBounds bounds = {INT16_MIN, 0};
  uint64_t i = 0;
  if (count >= 2 * lanes) {
    auto a = hn::LoadU(du, x), b = hn::LoadU(du, x + lanes);
    auto a_signed = hn::BitCast(di, a), b_signed = hn::BitCast(di, b);
    for (i = 2 * lanes; i + 2 * lanes <= count; i += 2 * lanes) {
      const auto a_next = hn::LoadU(du, x + i), b_next = hn::LoadU(du, x + i + lanes);
      AskForNext(x + i, 2 * lanes * sizeof(uint16_t));
      a = hn::Max(a, a_next);
      b = hn::Max(b, b_next);
      a_signed = hn::Max(a_signed, hn::BitCast(di, a_next));
      b_signed = hn::Max(b_signed, hn::BitCast(di, b_next));
    }
    bounds.negative = LargestOf(du, hn::Max(a, b));
    bounds.positive = LargestOf(di, hn::Max(a_signed, b_signed));
  }
  for (; i < count; ++i) {
    bounds.negative = std::max(bounds.negative, x[i]);
    bounds.positive = std::max(bounds.positive, static_cast<int16_t>(x[i]));
  }
  return bounds;
}

template <bool kMin>
float ExtremeOfRow(const uint16_t* HWY_RESTRICT x, uint64_t count, float extreme) {
  uint16_t bits;
  for (uint64_t at = 0; at < count; at += kRun) {
    const uint64_t length = std::min(kRun, count - at);
    extreme = BoundsOf(x + at, length).Get<kMin>(&bits) ? reduce::Extreme<kMin>(extreme, ToFloat(bits))
                                                        : ExactExtremeOfRow<kMin>(x + at, length, extreme);
  }
  return extreme;
}

template <bool kMin, typename T>
HWY_INLINE void AddRowToExtreme(const void* elements, uint64_t count, const Accumulators& one) {
  float& extreme = static_cast<float*>(one.values)[one.at];
  extreme = ExtremeOfRow<kMin>(static_cast<const T*>(elements), count, extreme);
}

template <bool kMin, typename T>
HWY_INLINE void AddColumnsToExactExtremes(const ReduceTile& tile, float* extremes) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d), whole = tile.columns / lanes * lanes;
  const auto* const elements = static_cast<const T*>(tile.elements);
  ForRows(tile, [&](uint32_t first, auto rows) HWY_ATTR {
    const T* const x = elements + first * tile.row_stride;
    for (uint64_t i = 0; i < whole; i += lanes) {
      auto extreme = hn::LoadU(d, extremes + i);
      for (uint32_t r = 0; r < rows; ++r) {
        extreme = ExtremeOf<kMin>(d, extreme, FloatsAt(d, x + r * tile.row_stride + i));
      }
      hn::StoreU(extreme, d, extremes + i);
    }
  });
  for (uint64_t i = whole; i < tile.columns; ++i) {
    for (uint32_t r = 0; r < tile.rows; ++r) {
      extremes[i] = reduce::Extreme<kMin>(extremes[i], ToFloat(elements[r * tile.row_stride + i]));
    }
  }
}

#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
// For whole vectors. Max and Min return the second operand if one is NaN, and of two zeros: the extremes then
// stay as they are. The result tells whether that may have happened.
template <bool kMin>
HWY_INLINE bool AddColumnsToAnyExtremes(const ReduceTile& tile, uint64_t whole, float* extremes) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d);
  const auto* const elements = static_cast<const float*>(tile.elements);
  auto sum = hn::Zero(d);
  ForRows(tile, [&](uint32_t first, auto rows) HWY_ATTR {
    const float* const x = elements + first * tile.row_stride;
    for (uint64_t i = 0; i < whole; i += lanes) {
      auto extreme = hn::LoadU(d, extremes + i);
      auto vectors = hn::Zero(d);
      for (uint32_t r = 0; r < rows; ++r) {
        const auto next = hn::LoadU(d, x + r * tile.row_stride + i);
        extreme = AnyExtremeOf<kMin>(next, extreme);
        vectors = hn::Add(vectors, next);
      }
      sum = hn::Add(sum, vectors);
      hn::StoreU(extreme, d, extremes + i);
    }
  });
  auto zeros = hn::IsNaN(sum);
  for (uint64_t i = 0; i < whole; i += lanes) {
    zeros = hn::Or(zeros, hn::Eq(hn::LoadU(d, extremes + i), hn::Zero(d)));
  }
  return !hn::AllFalse(d, zeros);
}

template <bool kMin>
HWY_INLINE void AddColumnsToExtremes(const ReduceTile& tile, const Accumulators& all) {
  const uint64_t whole = tile.columns / hn::Lanes(F32()) * hn::Lanes(F32());
  auto* const extremes = static_cast<float*>(all.values) + all.at;
  ReduceTile rest = tile;
  if (!AddColumnsToAnyExtremes<kMin>(tile, whole, extremes)) {
    rest.elements = static_cast<const float*>(tile.elements) + whole;
    rest.columns = static_cast<uint32_t>(tile.columns - whole);
  }
  AddColumnsToExactExtremes<kMin, float>(rest, extremes + (tile.columns - rest.columns));
}
#else
template <bool kMin>
HWY_INLINE void AddColumnsToExtremes(const ReduceTile& tile, const Accumulators& all) {
  AddColumnsToExactExtremes<kMin, float>(tile, static_cast<float*>(all.values) + all.at);
}
#endif

// As ExtremeOfRow, for halves.
template <bool kMin>
HWY_INLINE void AddHalfColumnsToExtremes(const ReduceTile& tile, const Accumulators& all) {
  const hn::ScalableTag<uint16_t> du;
  const hn::RebindToSigned<decltype(du)> di;
  const F32 d;
  const uint64_t lanes = hn::Lanes(du), whole = tile.columns / lanes * lanes;
  const auto* const elements = static_cast<const uint16_t*>(tile.elements);
  auto* const extremes = static_cast<float*>(all.values) + all.at;
  HWY_ALIGN uint16_t negative[kMaxReducedColumns];
  HWY_ALIGN int16_t positive[kMaxReducedColumns];
  std::fill_n(negative, whole, uint16_t{0});
  std::fill_n(positive, whole, int16_t{INT16_MIN});
  ForRows(tile, [&](uint32_t first, auto rows) HWY_ATTR {
    const uint16_t* const x = elements + first * tile.row_stride;
    for (uint64_t i = 0; i < whole; i += lanes) {
      auto largest = hn::Load(du, negative + i);
      auto largest_signed = hn::Load(di, positive + i);
      for (uint32_t r = 0; r < rows; ++r) {
        const auto next = hn::LoadU(du, x + r * tile.row_stride + i);
        largest = hn::Max(largest, next);
        largest_signed = hn::Max(largest_signed, hn::BitCast(di, next));
      }
      hn::Store(largest, du, negative + i);
      hn::Store(largest_signed, di, positive + i);
    }
  });
  uint32_t undecided = 0;
  for (uint64_t i = 0; i < whole; ++i) {
    const bool other = kMin ? negative[i] < 0x8000 : positive[i] < 0;
    undecided |= static_cast<uint32_t>(positive[i] > 0x7C00) | static_cast<uint32_t>(negative[i] > 0xFC00) |
                 static_cast<uint32_t>(other);
  }
  ReduceTile rest = tile;
  if (undecided == 0) {
    const uint16_t* const bits = kMin ? negative : reinterpret_cast<const uint16_t*>(positive);
    for (uint64_t i = 0; i < whole; i += hn::Lanes(d)) {
      hn::StoreU(ExtremeOf<kMin>(d, hn::LoadU(d, extremes + i), FloatsAt(d, bits + i)), d, extremes + i);
    }
    rest.elements = elements + whole;
    rest.columns = static_cast<uint32_t>(tile.columns - whole);
  }
  AddColumnsToExactExtremes<kMin, uint16_t>(rest, extremes + (tile.columns - rest.columns));
}

template <bool kMin, typename T>
HWY_INLINE void AddColumnsToExtremesOf(const ReduceTile& tile, const Accumulators& all) {
  if constexpr (std::is_same_v<T, float>) {
    AddColumnsToExtremes<kMin>(tile, all);
  } else {
    AddHalfColumnsToExtremes<kMin>(tile, all);
  }
}

// Skips vectors without an element equal to `wanted`, from the first (last) one on. Returns the number of
// elements that remain to be searched.
template <bool kLast, class D, typename T = hn::TFromD<D>>
uint64_t SkipOthers(D d, const T* x, uint64_t count, T value) {
  const uint64_t lanes = hn::Lanes(d);
  const auto wanted = hn::Set(d, value);
  // Tests elements from index i on, or up to index i from the end.
  const auto is_at = [&](uint64_t i) HWY_ATTR {
    return hn::Eq(hn::LoadU(d, kLast ? x + count - i - lanes : x + i), wanted);
  };
  uint64_t i = 0;
  // Four vectors at a time, then one.
  const auto has_none = [&]() HWY_ATTR {
    return hn::AllFalse(
        d, hn::Or(hn::Or(is_at(i), is_at(i + lanes)), hn::Or(is_at(i + 2 * lanes), is_at(i + 3 * lanes))));
  };
  while (i + 4 * lanes <= count && has_none()) i += 4 * lanes;
  while (i + lanes <= count && hn::AllFalse(d, is_at(i))) i += lanes;
  return count - i;
}

// The first (last) element equal to `value`; there must be one. Zeros are equal, and so are NaNs, of which
// FLOAT16 has several.
template <bool kLast, typename T>
uint64_t Find(const T* x, uint64_t count, float value) {
  uint64_t left = count;
  if constexpr (std::is_same_v<T, float>) {
    if (!reduce::IsNan(value)) left = SkipOthers<kLast>(F32(), x, count, value);
  } else {
    if (!reduce::IsNan(value) && value != 0) {
      left = SkipOthers<kLast>(hn::ScalableTag<uint16_t>(), x, count, ToHalf(value).bits);
    }
  }
  const auto is_it = [&](uint64_t i) {
    const float number = ToFloat(x[i]);
    return number == value || (reduce::IsNan(number) && reduce::IsNan(value));
  };
  uint64_t i = kLast ? left - 1 : count - left;
  while (!is_it(i)) i += kLast ? -1 : 1;
  return i;
}

// Only runs with a better extreme are searched for its position.
template <bool kMin, bool kLast, typename T>
HWY_INLINE void AddRowToPosition(const void* elements, uint64_t count, uint32_t position,
                                 const Accumulators& one) {
  float& best = static_cast<float*>(one.values)[one.at];
  for (uint64_t at = 0; at < count; at += kPositionRun) {
    const T* const x = static_cast<const T*>(elements) + at;
    const uint64_t length = std::min(kPositionRun, count - at);
    const float extreme = ExtremeOfRow<kMin>(x, length, kMin ? lane::kInfinity : -lane::kInfinity);
    if (!reduce::Replaces<kMin, kLast>(extreme, best)) continue;
    best = extreme;
    static_cast<uint32_t*>(one.seconds)[one.at] =
        position + static_cast<uint32_t>(at + Find<kLast>(x, length, extreme));
  }
}

// Whether x certainly does not replace the best so far, which is a number; see reduce::Replaces.
template <bool kMin, bool kLast>
HWY_INLINE hn::Mask<F32> IsNoBetter(FloatVector x, FloatVector best) {
  if constexpr (kLast) return kMin ? hn::Gt(x, best) : hn::Lt(x, best);
  return kMin ? hn::Ge(x, best) : hn::Le(x, best);
}

template <bool kMin, bool kLast>
HWY_INLINE hn::Mask<F32> Replaced(FloatVector x, FloatVector best) {
  const auto is_number = hn::Eq(best, best);
  const auto may_replace = kLast ? hn::Or(is_number, hn::IsNaN(x)) : is_number;
  return hn::AndNot(IsNoBetter<kMin, kLast>(x, best), may_replace);
}

template <bool kMin, bool kLast, typename T>
HWY_INLINE void AddColumnsToPositions(const ReduceTile& tile, const Accumulators& all) {
  const F32 d;
  const hn::RebindToUnsigned<F32> du;
  const uint64_t lanes = hn::Lanes(d), whole = tile.columns / lanes * lanes;
  const auto* const elements = static_cast<const T*>(tile.elements);
  auto* const bests = static_cast<float*>(all.values) + all.at;
  auto* const positions = static_cast<uint32_t*>(all.seconds) + all.at;
  ForRows(tile, [&](uint32_t first, auto rows) HWY_ATTR {
    const T* const x = elements + first * tile.row_stride;
    for (uint64_t i = 0; i < whole; i += lanes) {
      auto best = hn::LoadU(d, bests + i);
      // Usually none is better.
      auto no_better = IsNoBetter<kMin, kLast>(FloatsAt(d, x + i), best);
      for (uint32_t r = 1; r < rows; ++r) {
        no_better =
            hn::And(no_better, IsNoBetter<kMin, kLast>(FloatsAt(d, x + r * tile.row_stride + i), best));
      }
      if (HWY_LIKELY(hn::AllTrue(d, no_better))) continue;
      auto position = hn::LoadU(du, positions + i);
      for (uint32_t r = 0; r < rows; ++r) {
        const auto candidate = FloatsAt(d, x + r * tile.row_stride + i);
        const auto replaced = Replaced<kMin, kLast>(candidate, best);
        best = hn::IfThenElse(replaced, candidate, best);
        position =
            hn::IfThenElse(hn::RebindMask(du, replaced), hn::Set(du, tile.position + first + r), position);
      }
      hn::StoreU(best, d, bests + i);
      hn::StoreU(position, du, positions + i);
    }
  });
  for (uint64_t i = whole; i < tile.columns; ++i) {
    reduce::Position<kMin, kLast, float> one = {bests[i], positions[i]};
    for (uint32_t r = 0; r < tile.rows; ++r)
      one.Add(ToFloat(elements[r * tile.row_stride + i]), tile.position + r);
    bests[i] = one.value;
    positions[i] = one.second;
  }
}
