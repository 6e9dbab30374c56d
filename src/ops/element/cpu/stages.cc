#include "ops/element/cpu/stages.h"

#if ANYDML_HAVE_HIGHWAY
#include <limits>
#include <type_traits>

#include "ops/element/program.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/element/cpu/stages.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "ops/numbers/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
#undef ANYDML_BODY
#define ANYDML_BODY HWY_INLINE
#undef ANYDML_KEEPS_NANS
#define ANYDML_KEEPS_NANS

namespace fn {
namespace math = anydml::HWY_NAMESPACE;
#include "ops/element/functions-inl.h"
}  // namespace fn

#include "ops/numbers/clip_vectors-inl.h"
#include "ops/numbers/half_vectors-inl.h"
#include "ops/numbers/store_pairs-inl.h"

// A block is eight vectors of bits, the number that all calling conventions pass in registers.
using Floats = hn::ScalableTag<float>;
using Bits = hn::Vec<Floats>;
#undef ANYDML_BLOCK
#undef ANYDML_BLOCK_ARGUMENTS
#undef ANYDML_EACH
#undef ANYDML_NEXT
#define ANYDML_BLOCK v0, v1, v2, v3, v4, v5, v6, v7
#define ANYDML_BLOCK_ARGUMENTS Bits v0, Bits v1, Bits v2, Bits v3, Bits v4, Bits v5, Bits v6, Bits v7
#define ANYDML_EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
// `offset` is in bytes, for elements of 4 bytes.
using Run = void (*)(const Stage* stage, const StageOperand* operands, uint64_t offset,
                     ANYDML_BLOCK_ARGUMENTS);
#define ANYDML_NEXT return reinterpret_cast<Run>(stage[1].code)(stage + 1, operands, offset, ANYDML_BLOCK)

HWY_INLINE std::byte* At(const StageOperand& operand, uint64_t offset) {
  return operand.data + (offset & operand.mask);
}

template <class Function, int kSources, typename T>
HWY_INLINE Bits Call(Bits x, const T* second, const T* third, size_t at, const Instruction& instruction) {
  const hn::ScalableTag<T> d;
  const auto a = hn::BitCast(d, x);
  if constexpr (kSources == 1) {
    return hn::BitCast(Floats(), Function::Call(d, a, instruction));
  } else if constexpr (kSources == 2) {
    return hn::BitCast(Floats(), Function::Call(d, a, hn::LoadU(d, second + at), instruction));
  } else {
    const auto b = hn::LoadU(d, second + at);
    return hn::BitCast(Floats(), Function::Call(d, a, b, hn::LoadU(d, third + at), instruction));
  }
}

template <class Function, int kSources, typename T>
void Compute(const Stage* stage, const StageOperand* operands, uint64_t offset, ANYDML_BLOCK_ARGUMENTS) {
  const size_t n = hn::Lanes(Floats());
  const T *b = nullptr, *c = nullptr;
  if constexpr (kSources >= 2) b = reinterpret_cast<const T*>(At(operands[stage->operands[0]], offset));
  if constexpr (kSources >= 3) c = reinterpret_cast<const T*>(At(operands[stage->operands[1]], offset));
  const Instruction& instruction = *stage->instruction;
#define ANYDML_DO(i) v##i = Call<Function, kSources, T>(v##i, b, c, (i)*n, instruction);
  ANYDML_EACH(ANYDML_DO)
#undef ANYDML_DO
  ANYDML_NEXT;
}

void LoadStage(const Stage* stage, const StageOperand* operands, uint64_t offset, ANYDML_BLOCK_ARGUMENTS) {
  const Floats d;
  const auto* const from = reinterpret_cast<const float*>(At(operands[stage->operands[0]], offset));
#define ANYDML_DO(i) v##i = hn::LoadU(d, from + (i)*hn::Lanes(d));
  ANYDML_EACH(ANYDML_DO)
#undef ANYDML_DO
  ANYDML_NEXT;
}

HWY_INLINE void StorePair(const StageOperand& target, uint64_t offset, size_t at, Bits first, Bits second) {
  const Floats d;
  if (target.storage == Storage::kHalf) {
    auto* const to = reinterpret_cast<uint16_t*>(At(target, offset / 2));
    return WriteHalves(d, first, second, target.streams, to + at * hn::Lanes(d));
  }
  auto* const to = reinterpret_cast<float*>(At(target, offset)) + at * hn::Lanes(d);
  if (target.streams) return StreamPair(d, first, second, to);
  hn::StoreU(first, d, to);
  hn::StoreU(second, d, to + hn::Lanes(d));
}

void StoreStage(const Stage* stage, const StageOperand* operands, uint64_t offset, ANYDML_BLOCK_ARGUMENTS) {
  const StageOperand target = operands[stage->operands[0]];
  StorePair(target, offset, 0, v0, v1);
  StorePair(target, offset, 2, v2, v3);
  StorePair(target, offset, 4, v4, v5);
  StorePair(target, offset, 6, v6, v7);
  ANYDML_NEXT;
}

void CanonicalStage(const Stage* stage, const StageOperand* operands, uint64_t offset,
                    ANYDML_BLOCK_ARGUMENTS) {
#define ANYDML_DO(i) v##i = fn::math::Canonical(Floats(), v##i);
  ANYDML_EACH(ANYDML_DO)
#undef ANYDML_DO
  ANYDML_NEXT;
}

// For limits that satisfy CompareAsLimits: the upper one is not 0, the lower one not -0. x86 returns the
// second operand if one is NaN or both are zeros.
#undef ANYDML_SECOND_OF_ZEROS
#define ANYDML_SECOND_OF_ZEROS HWY_ARCH_X86&& HWY_TARGET != HWY_SCALAR&& HWY_TARGET != HWY_EMU128
HWY_INLINE Bits LimitAbove(Bits x, Bits high) {
#if ANYDML_SECOND_OF_ZEROS
  return hn::Min(high, x);
#else
  return AtMost(x, high);
#endif
}
// `zero` is -0, or +0 if `low` is.
HWY_INLINE Bits LimitBelow(Bits x, Bits low, [[maybe_unused]] Bits zero) {
#if ANYDML_SECOND_OF_ZEROS && HWY_TARGET > HWY_AVX3  // where blending by a mask is slower
  return hn::Add(hn::Max(low, x), zero);
#else
  return AtLeast(x, low);
#endif
}

void LimitStage(const Stage* stage, const StageOperand* operands, uint64_t offset, ANYDML_BLOCK_ARGUMENTS) {
  const Bits low = hn::Set(Floats(), stage->low), high = hn::Set(Floats(), stage->high);
  const Bits zero = hn::Set(Floats(), stage->low == 0 ? 0.0f : -0.0f);
#define ANYDML_DO(i) v##i = LimitAbove(LimitBelow(v##i, low, zero), high);
  ANYDML_EACH(ANYDML_DO)
#undef ANYDML_DO
  ANYDML_NEXT;
}

void EndStage(const Stage*, const StageOperand*, uint64_t, ANYDML_BLOCK_ARGUMENTS) {
#define ANYDML_DO(i) (void)v##i;
  ANYDML_EACH(ANYDML_DO)
#undef ANYDML_DO
}

void RunStages(const Stage* first, const StageOperand* operands, uint32_t ahead, uint64_t blocks) {
  const Bits zero = hn::Zero(Floats());
  const auto run = reinterpret_cast<Run>(first->code);
  const uint64_t bytes = 8 * hn::Lanes(Floats()) * sizeof(float);
  for (uint64_t offset = 0; blocks != 0; --blocks, offset += bytes) {
    AskAhead(operands, ahead, offset, bytes);
    run(first, operands, offset, zero, zero, zero, zero, zero, zero, zero, zero);
  }
}

// Bodies that are faster than the functions' because they need not canonicalise NaNs.
struct ReluOfFloats {
  template <class D, class V>
  static HWY_INLINE V Call(D d, V a, const Instruction&) {
#if HWY_TARGET == HWY_NEON
    return AtLeast(a, hn::Zero(d));
#else
    return hn::IfThenZeroElse(hn::Le(a, hn::Zero(d)), a);
#endif
  }
};
struct RoundFloats {
  template <class D, class V>
  static HWY_INLINE V Call(D d, V a, [[maybe_unused]] const Instruction& instruction) {
#if ANYDML_CONVERTS_HALVES
    return hn::PromoteTo(d, hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), a));
#else
    return fn::RoundToHalf::Call(d, a, instruction);
#endif
  }
};
template <class Function>
struct OfFloats {
  using Body = Function;
};
template <>
struct OfFloats<fn::Relu> {
  using Body = ReluOfFloats;
};
template <>
struct OfFloats<fn::RoundToHalf> {
  using Body = RoundFloats;
};

template <class Function>
constexpr bool kIsLong =
    std::is_same_v<Function, fn::ModulusTruncate> || std::is_same_v<Function, fn::ModulusFloor>;

template <class Function, int kSources, uint32_t kClasses, Class kClass, typename T>
StageCode StageFor() {
  if constexpr ((kClasses & Bit(kClass)) == 0 || kIsLong<Function>) {
    return nullptr;
  } else {
    return reinterpret_cast<StageCode>(&Compute<Function, kSources, T>);
  }
}

// Instantiates a row of a function.h table as the stages of its classes.
#undef ANYDML_STAGES
#define ANYDML_STAGES(name, sources, parameters, vector, scalar, ulps)                                       \
  case ElementFunction::k##name:                                                                             \
    return type == Class::kF32   ? StageFor<OfFloats<fn::name>::Body, sources, vector, Class::kF32, float>() \
           : type == Class::kI32 ? StageFor<fn::name, sources, vector, Class::kI32, int32_t>()               \
           : type == Class::kU32 ? StageFor<fn::name, sources, vector, Class::kU32, uint32_t>()              \
                                 : nullptr;
StageCode FindInTables(ElementFunction function, Class type) {
  using namespace element_table;
  switch (function) {
    ANYDML_ARITHMETIC_FUNCTIONS(ANYDML_STAGES)
    ANYDML_LOGICAL_FUNCTIONS(ANYDML_STAGES)
    default:
      return nullptr;
  }
}

const StageSet* SetOfStages() {
  const auto code = [](Run run) { return reinterpret_cast<StageCode>(run); };
  static const StageSet set = {.block = static_cast<uint32_t>(8 * hn::Lanes(Floats())),
                               .run = &RunStages,
                               .load = code(&LoadStage),
                               .store = code(&StoreStage),
                               .canonical = code(&CanonicalStage),
                               .round = code(&Compute<RoundFloats, 1, float>),
                               .limit = code(&LimitStage),
                               .end = code(&EndStage)};
  return &set;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anydml {
namespace {
HWY_EXPORT(FindInTables);
HWY_EXPORT(SetOfStages);
}  // namespace

const StageSet* FindStages() { return HWY_DYNAMIC_DISPATCH(SetOfStages)(); }

StageCode FindStage(ElementFunction function, Class type) {
  return HWY_DYNAMIC_DISPATCH(FindInTables)(function, type);
}
}  // namespace anydml
#endif

#else  // without Highway

namespace anydml {
const StageSet* FindStages() { return nullptr; }
StageCode FindStage(ElementFunction, Class) { return nullptr; }
}  // namespace anydml
#endif
