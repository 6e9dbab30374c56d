#include "ops/element/cpu/loops.h"

#include "ops/element/scalar_functions.h"

namespace anydml {
namespace {

template <class Function, int kSources, typename T>
void Loop(const LoopArguments& arguments) {
  const Instruction instruction = *arguments.instruction;
  const auto* const a = static_cast<const T*>(arguments.sources[0]);
  const auto* const b = static_cast<const T*>(arguments.sources[kSources > 1 ? 1 : 0]);
  const auto* const c = static_cast<const T*>(arguments.sources[kSources > 2 ? 2 : 0]);
  auto* const to = static_cast<T*>(arguments.target);
  for (uint64_t i = 0; i < arguments.count; ++i) {
    if constexpr (kSources == 1) {
      to[i] = Function::Call(a[i], instruction);
    } else if constexpr (kSources == 2) {
      to[i] = Function::Call(a[i], b[i], instruction);
    } else {
      to[i] = Function::Call(a[i], b[i], c[i], instruction);
    }
  }
}

template <class Function, int kSources, uint32_t kClasses>
ElementLoop LoopFor(Class type) {
  using namespace element_table;
  if constexpr ((kClasses & F) != 0) {
    if (type == Class::kF32) return &Loop<Function, kSources, float>;
  }
  if constexpr ((kClasses & I) != 0) {
    if (type == Class::kI32) return &Loop<Function, kSources, int32_t>;
  }
  if constexpr ((kClasses & U) != 0) {
    if (type == Class::kU32) return &Loop<Function, kSources, uint32_t>;
  }
  if constexpr ((kClasses & D) != 0) {
    if (type == Class::kF64) return &Loop<Function, kSources, double>;
  }
  if constexpr ((kClasses & L) != 0) {
    if (type == Class::kI64) return &Loop<Function, kSources, int64_t>;
  }
  if constexpr ((kClasses & Q) != 0) {
    if (type == Class::kU64) return &Loop<Function, kSources, uint64_t>;
  }
  return nullptr;
}

ElementLoop FindScalarLoop(ElementFunction function, Class type) {
  using namespace element_table;
  switch (function) {
#define ANYDML_CASE(name, sources, parameters, vector, scalar, ulps) \
  case ElementFunction::k##name:                                     \
    return LoopFor<scalar_functions::name, sources, scalar>(type);
    ANYDML_ELEMENT_FUNCTIONS(ANYDML_CASE)
#undef ANYDML_CASE
    default:
      return nullptr;
  }
}

}  // namespace

ElementLoop FindElementLoop(ElementFunction function, Class type) {
  if ((InfoOf(function).vector_classes & Bit(type)) == 0) return FindScalarLoop(function, type);
  const auto row = [&](ElementFunction first) {
    return static_cast<uint32_t>(function) - static_cast<uint32_t>(first);
  };
  if (function < ElementFunction::kEqual) return FindArithmeticLoop(row(ElementFunction::kAdd), type);
  if (function < ElementFunction::kExp) return FindLogicalLoop(row(ElementFunction::kEqual), type);
  return FindTranscendentalLoop(row(ElementFunction::kExp), type);
}

}  // namespace anydml
