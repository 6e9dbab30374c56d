// Loops over elements for the functions with a body in Highway's vocabulary. Included inside a namespace that
// defines `hn`, `fn` (the bodies), Bare, LoadHalves, WriteHalves, WriteBytes and the like.
//
// Vectors are processed in pairs: one test of the storage serves both, and a pair of results as halves is a
// whole vector, which can be streamed.

template <class D, class V>
ANYDML_BODY void ReadPair(D d, const std::byte* from, bool halves, V& first, V& second) {
  using T = hn::TFromD<D>;
  if constexpr (std::is_same_v<T, float>) {
    if (halves) {
      const auto* const elements = reinterpret_cast<const uint16_t*>(from);
      first = LoadHalves(d, elements);
      second = LoadHalves(d, elements + hn::Lanes(d));
      return;
    }
  }
  const auto* const elements = reinterpret_cast<const T*>(from);
  first = hn::LoadU(d, elements);
  second = hn::LoadU(d, elements + hn::Lanes(d));
}

// Prefetches the next elements of a source, `ahead` bytes on: in loops with little output, or much work per
// element, reading is the bottleneck, and hardware prefetchers stop at the end of a page. `kCache`: 3 is L1,
// 2 is L2.
template <int kCache = 3>
ANYDML_BODY void AskAhead(const std::byte* from, uint64_t ahead) {
#if defined(__x86_64__)
  __builtin_prefetch(from + ahead, 0, kCache);
  __builtin_prefetch(from + ahead + 64, 0, kCache);
#else
  (void)from, (void)ahead;
#endif
}

// The prefetch distance: a page, in whole rows if these are shorter and possibly not contiguous, as in a
// tile. A repeated row is not prefetched: it is in the cache, and prefetching unmapped memory after its end
// is slow. A sum of 4096 rows of FLOAT16 with one row of 8 KiB took 10 ms on a Xeon with it, and 6.5 without.
ANYDML_BODY uint64_t AheadOf(const LoopPiece& piece, int source) {
  constexpr uint64_t kPage = 4096;
  const uint64_t row_bytes = piece.count * piece.steps[source];
  if (row_bytes == 0 || piece.repeats[source]) return 0;
  if (piece.rows == 1 || row_bytes >= kPage) return kPage;
  return kPage / row_bytes * piece.row_steps[source];
}

template <class D, class V>
ANYDML_BODY void WritePair(D d, V first, V second, Storage storage, bool streams, std::byte* to) {
  using T = hn::TFromD<D>;
  if constexpr (ANYDML_GROUP_STORES_BYTES) {
    if (storage == Storage::kByte) {
      return WriteBytes(d, first, second, streams, reinterpret_cast<uint8_t*>(to));
    }
  } else if constexpr (std::is_same_v<T, float>) {
    if (storage == Storage::kHalf) {
      return WriteHalves(d, first, second, streams, reinterpret_cast<uint16_t*>(to));
    }
  }
  auto* const elements = reinterpret_cast<T*>(to);
  if (streams) return StreamPair(d, first, second, elements);
  hn::StoreU(first, d, elements);
  hn::StoreU(second, d, elements + hn::Lanes(d));
}

inline constexpr uint32_t kStorageBytes[] = {4, 2, 1};

// Whether four vectors at a time are faster: while one waits for a result, the others proceed.
template <class Function, class D>
inline constexpr bool kHasFours = kInFours<Function> || (!std::is_void_v<typename Usual<Function>::Body> &&
                                                         fn::math::kFused && hn::MaxLanes(D()) >= 4);
// Whether that also holds for FLOAT16.
#if defined(__aarch64__)
inline constexpr bool kHasFoursOfHalves = true;
#else
inline constexpr bool kHasFoursOfHalves = false;
#endif

template <class Function, int kSources, class D, class V>
ANYDML_BODY V CallUsual(D d, V a, [[maybe_unused]] V b, [[maybe_unused]] const Instruction& instruction) {
  using Body = typename Usual<Function>::Body;
  if constexpr (std::is_void_v<Body>) {
    return Function::Call(d, a, instruction);
  } else if constexpr (kSources == 2) {
    return Body::Call(d, a, b);
  } else {
    return Body::Call(d, a);
  }
}

// The state of a loop: `a` and `b` are sources, steps are those of a pair.
struct LoopPlace {
  const std::byte *a, *b;
  uint64_t a_step, b_step;
  uint64_t a_ahead;
  bool a_halves, b_halves;
  std::byte* to;
  uint64_t to_step;
  Storage storage;
  bool streams;
};

// Processes the elements of a row four vectors at a time, with the body for usual numbers if there is one;
// returns their number.
template <class Function, int kSources, class D>
ANYDML_BODY uint64_t RunFours(D d, const Instruction& instruction, uint64_t count, LoopPlace& place) {
  using V = hn::Vec<D>;
  using Body = typename Usual<Function>::Body;
  const uint64_t fours = 4 * hn::Lanes(d);
  LoopPlace p = place;
  uint64_t i = 0;
  for (; i + fours <= count; i += fours) {
    V a0, a1, a2, a3;
    ReadPair(d, p.a, p.a_halves, a0, a1);
    ReadPair(d, p.a + p.a_step, p.a_halves, a2, a3);
    V b0 = a0, b1 = a1, b2 = a2, b3 = a3;
    if constexpr (kSources == 2) {
      ReadPair(d, p.b, p.b_halves, b0, b1);
      ReadPair(d, p.b + p.b_step, p.b_halves, b2, b3);
    }
    if (p.streams) {
      AskAhead(p.a, p.a_ahead);
      AskAhead(p.a + p.a_step, p.a_ahead);
    }
    if constexpr (!std::is_void_v<Body>) {
      if (!Body::Are(d, a0, a1, a2, a3)) break;
      if constexpr (kSources == 2) {
        if (!Body::AreSecond(d, b0, b1, b2, b3)) break;
      }
    }
    const V y0 = CallUsual<Function, kSources>(d, a0, b0, instruction);
    const V y1 = CallUsual<Function, kSources>(d, a1, b1, instruction);
    // Functions of two sources leave no registers for four results, nor do x86's 16: the first pair is then
    // stored before the second is computed, and the branch in WritePair keeps the two apart.
    constexpr bool kApart = kSources == 2 || !kHasFoursOfHalves;
    if constexpr (kApart) WritePair(d, y0, y1, p.storage, p.streams, p.to);
    const V y2 = CallUsual<Function, kSources>(d, a2, b2, instruction);
    const V y3 = CallUsual<Function, kSources>(d, a3, b3, instruction);
    if constexpr (!kApart) WritePair(d, y0, y1, p.storage, p.streams, p.to);
    WritePair(d, y2, y3, p.storage, p.streams, p.to + p.to_step);
    p.a += 2 * p.a_step, p.b += 2 * p.b_step, p.to += 2 * p.to_step;
  }
  place.a = p.a, place.b = p.b, place.to = p.to;
  return i;
}

// Results of two vectors of each source, which are not FLOAT16.
template <class Function, int kSources, class D, class V>
ANYDML_BODY void CallTwice(D d, const std::byte* a, [[maybe_unused]] const std::byte* b,
                           const Instruction& instruction, V& first, V& second) {
  V a0, a1;
  ReadPair(d, a, false, a0, a1);
  if constexpr (kSources == 1) {
    first = Function::Call(d, a0, instruction);
    second = Function::Call(d, a1, instruction);
  } else {
    V b0, b1;
    ReadPair(d, b, false, b0, b1);
    first = Function::Call(d, a0, b0, instruction);
    second = Function::Call(d, a1, b1, instruction);
  }
}

// Stores elements of a row as bytes, four vectors at a time; returns their number.
template <class Function, int kSources, class D>
ANYDML_BODY uint64_t ByteFours(D d, const std::byte* a, uint64_t a_step, uint64_t a_ahead, const std::byte* b,
                               uint64_t b_step, uint64_t b_ahead, const Instruction& instruction,
                               uint64_t count, bool streams, std::byte* to) {
  const uint64_t fours = 4 * hn::Lanes(d);
  uint64_t i = 0;
  for (; i + fours <= count; i += fours, a += 2 * a_step, b += 2 * b_step) {
    hn::Vec<D> v0, v1, v2, v3;
    CallTwice<Function, kSources>(d, a, b, instruction, v0, v1);
    CallTwice<Function, kSources>(d, a + a_step, b + b_step, instruction, v2, v3);
    if (streams) {
      AskAhead<2>(a, a_ahead);
      AskAhead<2>(a + a_step, a_ahead);
      if constexpr (kSources == 2) {
        AskAhead<2>(b, b_ahead);
        AskAhead<2>(b + b_step, b_ahead);
      }
    }
    WriteBytes(d, v0, v1, v2, v3, streams, reinterpret_cast<uint8_t*>(to + i));
  }
  return i;
}

template <class Function, int kSources, typename T>
void Loop(const LoopPiece& piece) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const uint64_t pair = 2 * hn::Lanes(d);
  // Copies, because stores might alias the arguments as far as the compiler knows.
  const Instruction instruction = *piece.instruction;
  const uint64_t a_step = pair * piece.steps[0], b_step = pair * piece.steps[1],
                 c_step = pair * piece.steps[2];
  const bool a_halves = piece.halves[0], b_halves = piece.halves[1], c_halves = piece.halves[2];
  const Storage storage = piece.target_storage;
  const uint64_t to_step = pair * kStorageBytes[static_cast<uint32_t>(storage)];
  const bool streams = piece.streams;
  [[maybe_unused]] const uint64_t a_ahead = AheadOf(piece, 0), b_ahead = AheadOf(piece, 1);
  const std::byte *a = piece.sources[0], *b = piece.sources[1], *c = piece.sources[2];
  std::byte* to = piece.target;
  for (uint64_t row = 1;; ++row) {
    uint64_t left = piece.count;
    if constexpr (kHasByteFours && kSources <= 2) {
      if (storage == Storage::kByte && !a_halves && !b_halves) {
        const uint64_t done = ByteFours<Function, kSources>(d, a, a_step, a_ahead, b, b_step, b_ahead,
                                                            instruction, left, streams, to);
        left -= done, a += done / pair * a_step, b += done / pair * b_step, to += done;
      }
    }
    while (left != 0) {
      uint64_t pairs = left;  // elements before the next four vectors
      if constexpr (kHasFours<Function, decltype(d)>) {
        // FLOAT32 to FLOAT32 only, or any storage.
        constexpr bool kAny = kHasFoursOfHalves;
        if (kAny || (!a_halves && a_step != 0 && storage == Storage::kRegister)) {
          constexpr uint32_t kBytes = sizeof(float);
          LoopPlace place = {.a = a,
                             .b = b,
                             .a_step = kAny ? a_step : pair * kBytes,
                             .b_step = b_step,
                             .a_ahead = a_ahead,
                             .a_halves = kAny && a_halves,
                             .b_halves = kAny && b_halves,
                             .to = to,
                             .to_step = kAny ? to_step : pair * kBytes,
                             .storage = kAny ? storage : Storage::kRegister,
                             .streams = streams};
          left -= RunFours<Function, kSources>(d, instruction, left, place);
          a = place.a, b = place.b, to = place.to;
          pairs = std::min(left, 2 * pair);
        }
      }
      left -= pairs;
      for (; pairs != 0; pairs -= pair) {
        V a0, a1;
        ReadPair(d, a, a_halves, a0, a1);
        if constexpr (ANYDML_GROUP_ASKS_AHEAD) {
          if (streams) {
            AskAhead(a, a_ahead);
            if constexpr (kSources >= 2) AskAhead(b, b_ahead);
          }
        }
        a += a_step;
        if constexpr (kSources == 1) {
          const V first = Function::Call(d, a0, instruction);
          WritePair(d, first, Function::Call(d, a1, instruction), storage, streams, to);
        } else {
          V b0, b1;
          ReadPair(d, b, b_halves, b0, b1);
          b += b_step;
          if constexpr (kSources == 2) {
            const V first = Function::Call(d, a0, b0, instruction);
            WritePair(d, first, Function::Call(d, a1, b1, instruction), storage, streams, to);
          } else {
            V c0, c1;
            ReadPair(d, c, c_halves, c0, c1);
            c += c_step;
            const V first = Function::Call(d, a0, b0, c0, instruction);
            WritePair(d, first, Function::Call(d, a1, b1, c1, instruction), storage, streams, to);
          }
        }
        to += to_step;
      }
    }
    if (row >= piece.rows) return;
    a = piece.sources[0] + row * piece.row_steps[0];
    b = piece.sources[1] + row * piece.row_steps[1];
    c = piece.sources[2] + row * piece.row_steps[2];
    to = piece.target + row * piece.target_row_step;
  }
}

template <class Function, int kSources, uint32_t kClasses, Class kClass, typename T>
constexpr auto LoopFor() -> void (*)(const LoopPiece&) {
  if constexpr ((kClasses & Bit(kClass)) != 0) {
    return &Loop<Function, kSources, T>;
  } else {
    return nullptr;
  }
}

template <class Function, int kSources>
constexpr auto BareLoopFor() -> void (*)(const LoopPiece&) {
  using Body = typename Bare<Function>::Body;
  if constexpr (std::is_void_v<Body>) {
    return nullptr;
  } else {
    return &Loop<Body, kSources, float>;
  }
}

// Instantiates a row of a function.h table as the loops of its classes.
#define ANYDML_LOOPS(name, sources, parameters, vector, scalar, ulps) \
  {LoopFor<fn::name, sources, vector, Class::kF32, float>(),          \
   LoopFor<fn::name, sources, vector, Class::kI32, int32_t>(),        \
   LoopFor<fn::name, sources, vector, Class::kU32, uint32_t>()},
#define ANYDML_BARE_LOOPS(name, sources, ...) BareLoopFor<fn::name, sources>(),

ElementLoop FindInGroup(uint32_t row, uint32_t type) {
  using namespace element_table;
  static constexpr void (*kLoops[][3])(const LoopPiece&) = {ANYDML_GROUP(ANYDML_LOOPS)};
  static constexpr void (*kBareLoops[])(const LoopPiece&) = {ANYDML_GROUP(ANYDML_BARE_LOOPS)};
  return {.run = kLoops[row][type],
          .run_bare = type == static_cast<uint32_t>(Class::kF32) ? kBareLoops[row] : nullptr,
          .granule = static_cast<uint32_t>(2 * hn::Lanes(hn::ScalableTag<float>())),
          .converts = true};
}

#undef ANYDML_LOOPS
#undef ANYDML_BARE_LOOPS
