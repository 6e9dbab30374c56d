// Loops over elements for the functions that have a body in Highway's vocabulary. Text inside a namespace
// where `hn` and `fn` (the bodies) are names.

template <class Function, int kSources, class D, typename T>
ANYDML_BODY void ApplyVector(D d, const T* a, const T* b, const T* c, T* to, const Instruction& instruction) {
  if constexpr (kSources == 1) {
    hn::StoreU(Function::Call(d, hn::LoadU(d, a), instruction), d, to);
  } else if constexpr (kSources == 2) {
    hn::StoreU(Function::Call(d, hn::LoadU(d, a), hn::LoadU(d, b), instruction), d, to);
  } else {
    hn::StoreU(Function::Call(d, hn::LoadU(d, a), hn::LoadU(d, b), hn::LoadU(d, c), instruction), d, to);
  }
}

template <class Function, int kSources, typename T>
void Loop(const LoopArguments& arguments) {
  const hn::ScalableTag<T> d;
  const Instruction& instruction = *arguments.instruction;
  const uint64_t lanes = hn::Lanes(d);
  const auto* const a = static_cast<const T*>(arguments.sources[0]);
  const auto* const b = static_cast<const T*>(arguments.sources[kSources > 1 ? 1 : 0]);
  const auto* const c = static_cast<const T*>(arguments.sources[kSources > 2 ? 2 : 0]);
  auto* const to = static_cast<T*>(arguments.target);
  uint64_t i = 0;
  for (; i + lanes <= arguments.count; i += lanes) {
    ApplyVector<Function, kSources>(d, a + i, b + i, c + i, to + i, instruction);
  }
  if (i == arguments.count) return;
  // The last elements, which are fewer than a vector has, go through memory of a whole one.
  T rest[3][hn::MaxLanes(hn::ScalableTag<T>())] = {};
  const size_t bytes = (arguments.count - i) * sizeof(T);
  std::memcpy(rest[0], a + i, bytes);
  if constexpr (kSources > 1) std::memcpy(rest[1], b + i, bytes);
  if constexpr (kSources > 2) std::memcpy(rest[2], c + i, bytes);
  ApplyVector<Function, kSources>(d, rest[0], rest[1], rest[2], rest[0], instruction);
  std::memcpy(to + i, rest[0], bytes);
}

template <class Function, int kSources, uint32_t kClasses, Class kClass, typename T>
constexpr ElementLoop LoopFor() {
  if constexpr ((kClasses & Bit(kClass)) != 0) {
    return &Loop<Function, kSources, T>;
  } else {
    return nullptr;
  }
}

// A row of a table of function.h as the loops of its classes.
#define ANYDML_LOOPS(name, sources, parameters, vector, scalar, ulps) \
  {LoopFor<fn::name, sources, vector, Class::kF32, float>(),          \
   LoopFor<fn::name, sources, vector, Class::kI32, int32_t>(),        \
   LoopFor<fn::name, sources, vector, Class::kU32, uint32_t>()},

ElementLoop FindInGroup(uint32_t row, uint32_t type) {
  using namespace element_table;
  static constexpr ElementLoop kLoops[][3] = {ANYDML_GROUP(ANYDML_LOOPS)};
  return kLoops[row][type];
}

#undef ANYDML_LOOPS
