// Loops over elements for the functions that have a body in Highway's vocabulary. Text inside a namespace
// where `hn`, `fn` (the bodies) and Bare are names, and LoadHalves, WriteHalves, WriteBytes and their like.
//
// Vectors are taken in pairs: how they are read and written is asked once for both, and a pair of halves is
// a whole vector, which can be stored past the caches.

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

// Asks for what a pair takes of a source some iterations on: where results are few, or take long, reading is
// what takes the time, and machines look no further than a page. `kCache`: 3 is the first, 2 the second.
template <int kCache = 3>
ANYDML_BODY void AskAhead(const std::byte* from) {
#if defined(__x86_64__)
  __builtin_prefetch(from + 4096, 0, kCache);
  __builtin_prefetch(from + 4096 + 64, 0, kCache);
#else
  (void)from;
#endif
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

// Whether four vectors at a time are faster.
template <class Function, class D>
inline constexpr bool kHasFours = std::is_same_v<Function, fn::Exp>&& fn::math::kFused&& hn::MaxLanes(D()) >=
                                  4;

// Two vectors of e^x, of normal numbers or of any.
template <bool kNormal, class D, class V>
ANYDML_BODY void WriteExps(D d, V first, V second, bool streams, float* to) {
  auto* const bytes = reinterpret_cast<std::byte*>(to);
  if constexpr (kNormal) {
    first = fn::math::NormalExp(d, first);
    WritePair(d, first, fn::math::NormalExp(d, second), Storage::kRegister, streams, bytes);
  } else {
    first = fn::OneNan(d, fn::math::Exp(d, first));
    WritePair(d, first, fn::OneNan(d, fn::math::Exp(d, second)), Storage::kRegister, streams, bytes);
  }
}

// Elements of a row from FLOAT32 to FLOAT32, as far as these are four vectors; how many.
template <class D>
ANYDML_BODY uint64_t ExpFours(D d, const float* from, uint64_t count, bool streams, float* to) {
  const uint64_t lanes = hn::Lanes(d);
  uint64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes, from += 4 * lanes, to += 4 * lanes) {
    const auto x0 = hn::LoadU(d, from), x1 = hn::LoadU(d, from + lanes);
    const auto x2 = hn::LoadU(d, from + 2 * lanes), x3 = hn::LoadU(d, from + 3 * lanes);
    if (streams) {
      AskAhead(reinterpret_cast<const std::byte*>(from));
      AskAhead(reinterpret_cast<const std::byte*>(from + 2 * lanes));
    }
    if (fn::math::HaveNormalExp(d, x0, x1, x2, x3)) {
      WriteExps<true>(d, x0, x1, streams, to);
      WriteExps<true>(d, x2, x3, streams, to + 2 * lanes);
    } else {
      WriteExps<false>(d, x0, x1, streams, to);
      WriteExps<false>(d, x2, x3, streams, to + 2 * lanes);
    }
  }
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

// Elements of a row to bytes, as far as these are four vectors; how many.
template <class Function, int kSources, class D>
ANYDML_BODY uint64_t ByteFours(D d, const std::byte* a, uint64_t a_step, const std::byte* b, uint64_t b_step,
                               const Instruction& instruction, uint64_t count, bool streams, std::byte* to) {
  const uint64_t fours = 4 * hn::Lanes(d);
  uint64_t i = 0;
  for (; i + fours <= count; i += fours, a += 2 * a_step, b += 2 * b_step) {
    hn::Vec<D> v0, v1, v2, v3;
    CallTwice<Function, kSources>(d, a, b, instruction, v0, v1);
    CallTwice<Function, kSources>(d, a + a_step, b + b_step, instruction, v2, v3);
    if (streams) {
      AskAhead<2>(a);
      AskAhead<2>(a + a_step);
      if constexpr (kSources == 2) {
        AskAhead<2>(b);
        AskAhead<2>(b + b_step);
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
  // Copies: what is stored might be the arguments, for all that a compiler knows.
  const Instruction instruction = *piece.instruction;
  const uint64_t a_step = pair * piece.steps[0], b_step = pair * piece.steps[1],
                 c_step = pair * piece.steps[2];
  const bool a_halves = piece.halves[0], b_halves = piece.halves[1], c_halves = piece.halves[2];
  const Storage storage = piece.target_storage;
  const uint64_t to_step = pair * kStorageBytes[static_cast<uint32_t>(storage)];
  const bool streams = piece.streams;
  const std::byte *a = piece.sources[0], *b = piece.sources[1], *c = piece.sources[2];
  std::byte* to = piece.target;
  for (uint64_t row = 1;; ++row) {
    uint64_t left = piece.count;
    if constexpr (kHasFours<Function, decltype(d)>) {
      if (!a_halves && a_step != 0 && storage == Storage::kRegister) {
        const uint64_t done =
            ExpFours(d, reinterpret_cast<const float*>(a), left, streams, reinterpret_cast<float*>(to));
        left -= done, a += done * sizeof(float), to += done * sizeof(float);
      }
    }
    if constexpr (kHasByteFours && kSources <= 2) {
      if (storage == Storage::kByte && !a_halves && !b_halves) {
        const uint64_t done =
            ByteFours<Function, kSources>(d, a, a_step, b, b_step, instruction, left, streams, to);
        left -= done, a += done / pair * a_step, b += done / pair * b_step, to += done;
      }
    }
    for (; left != 0; left -= pair) {
      V a0, a1;
      ReadPair(d, a, a_halves, a0, a1);
      if constexpr (ANYDML_GROUP_ASKS_AHEAD) {
        if (streams) {
          AskAhead(a);
          if constexpr (kSources >= 2) AskAhead(b);
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

// A row of a table of function.h as the loops of its classes.
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
