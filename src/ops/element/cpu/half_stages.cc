// This file is compiled for Armv8.2 with FLOAT16 arithmetic, or for AVX-512 with it: it must not contain
// anything that the linker could share with other files.
#include "ops/element/cpu/stages.h"
#include "ops/numbers/half_arithmetic.h"

#if ANYDML_HALF_VECTORS
namespace anydml {
namespace {

// As in stages.cc, but offsets are for elements of 2 bytes.
#define ANYDML_BLOCK v0, v1, v2, v3, v4, v5, v6, v7
#define ANYDML_BLOCK_ARGUMENTS \
  Halves v0, Halves v1, Halves v2, Halves v3, Halves v4, Halves v5, Halves v6, Halves v7
#define ANYDML_EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
using RunStage = void (*)(const Stage* stage, const StageOperand* operands, uint64_t offset,
                          ANYDML_BLOCK_ARGUMENTS);
#define ANYDML_NEXT \
  return reinterpret_cast<RunStage>(stage[1].code)(stage + 1, operands, offset, ANYDML_BLOCK)

constexpr uint64_t kVectorBytes = kLanes * sizeof(uint16_t);
static_assert(8 * kLanes <= kMaxStageBlock);

ANYDML_HALF_BODY std::byte* At(const StageOperand& operand, uint64_t offset) {
  return operand.data + (offset & operand.mask);
}

template <HalfFunction kFunction>
constexpr bool kHasOne = kFunction == HalfFunction::kClip || kFunction == HalfFunction::kRelu;

template <HalfFunction kFunction>
ANYDML_HALF_BODY Halves CallStage(Halves a, const std::byte* second, uint64_t at, Halves low, Halves high) {
  const Halves b = kHasOne<kFunction> ? a : Load(second + at);
  switch (kFunction) {
    case HalfFunction::kAdd:
      return Sum(a, b);
    case HalfFunction::kSubtract:
      return Difference(a, b);
    case HalfFunction::kMultiply:
      return Product(a, b);
    case HalfFunction::kMaximum:
      return Maximum(a, b);
    case HalfFunction::kMinimum:
      return Minimum(a, b);
    case HalfFunction::kClip:
      return AtMost(AtLeast(a, low), high);
    default:
      return AtLeast(a, All(0));
  }
}

template <HalfFunction kFunction>
void Compute(const Stage* stage, const StageOperand* operands, uint64_t offset, ANYDML_BLOCK_ARGUMENTS) {
  const std::byte* const b = kHasOne<kFunction> ? nullptr : At(operands[stage->operands[0]], offset);
  const Halves low = All(stage->low), high = All(stage->high);
#define ANYDML_DO(i) v##i = CallStage<kFunction>(v##i, b, (i)*kVectorBytes, low, high);
  ANYDML_EACH(ANYDML_DO)
#undef ANYDML_DO
  ANYDML_NEXT;
}

void LoadStage(const Stage* stage, const StageOperand* operands, uint64_t offset, ANYDML_BLOCK_ARGUMENTS) {
  const std::byte* const from = At(operands[stage->operands[0]], offset);
#define ANYDML_DO(i) v##i = Load(from + (i)*kVectorBytes);
  ANYDML_EACH(ANYDML_DO)
#undef ANYDML_DO
  ANYDML_NEXT;
}

void StoreStage(const Stage* stage, const StageOperand* operands, uint64_t offset, ANYDML_BLOCK_ARGUMENTS) {
  const StageOperand target = operands[stage->operands[0]];
  std::byte* const to = At(target, offset);
#define ANYDML_DO(i) Store(v##i, target.streams, to + (i)*kVectorBytes);
  ANYDML_EACH(ANYDML_DO)
#undef ANYDML_DO
  ANYDML_NEXT;
}

void CanonicalStage(const Stage* stage, const StageOperand* operands, uint64_t offset,
                    ANYDML_BLOCK_ARGUMENTS) {
#define ANYDML_DO(i) v##i = OneNan(v##i);
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
  const Halves zero = All(0);
  const auto run = reinterpret_cast<RunStage>(first->code);
  for (uint64_t offset = 0; blocks != 0; --blocks, offset += 8 * kVectorBytes) {
    AskAhead(operands, ahead, offset, 8 * kVectorBytes);
    run(first, operands, offset, zero, zero, zero, zero, zero, zero, zero, zero);
  }
}

StageCode CodeOf(RunStage run) { return reinterpret_cast<StageCode>(run); }

}  // namespace

// Until the processor is known to have these instructions, this function must not do anything for which the
// compiler could use them.
const StageSet* FindHalfStages() {
  static const bool has_them = HasHalfVectors();
  if (!has_them) return nullptr;
  static const StageSet set = {.block = 8 * kLanes,
                               .run = &RunStages,
                               .load = CodeOf(&LoadStage),
                               .store = CodeOf(&StoreStage),
                               .canonical = CodeOf(&CanonicalStage),
                               .limit = CodeOf(&Compute<HalfFunction::kClip>),
                               .end = CodeOf(&EndStage)};
  return &set;
}

StageCode FindHalfStage(HalfFunction function) {
  switch (function) {
#define ANYDML_HALF_CASE(name) \
  case HalfFunction::name:     \
    return CodeOf(&Compute<HalfFunction::name>);
    ANYDML_HALF_CASE(kAdd)
    ANYDML_HALF_CASE(kSubtract)
    ANYDML_HALF_CASE(kMultiply)
    ANYDML_HALF_CASE(kMaximum)
    ANYDML_HALF_CASE(kMinimum)
    ANYDML_HALF_CASE(kClip)
    ANYDML_HALF_CASE(kRelu)
#undef ANYDML_HALF_CASE
    default:
      return nullptr;
  }
}

}  // namespace anydml

#else

namespace anydml {
const StageSet* FindHalfStages() { return nullptr; }
StageCode FindHalfStage(HalfFunction) { return nullptr; }
}  // namespace anydml
#endif
