// The bodies of the element functions, by class.
#pragma once

#include "ops/element/lane_functions.h"
#include "ops/element/scalar_functions.h"

// Functions that are called rather than inlined.
#ifdef __CUDACC__
#define ANYDML_CALLED __host__ __device__ __noinline__
#else
#define ANYDML_CALLED
#endif

namespace anydml::element_cuda {

namespace detail {
template <Class kClass>
struct NumberOf;
template <>
struct NumberOf<Class::kF32> {
  using Type = float;
};
template <>
struct NumberOf<Class::kI32> {
  using Type = int32_t;
};
template <>
struct NumberOf<Class::kU32> {
  using Type = uint32_t;
};
template <>
struct NumberOf<Class::kF64> {
  using Type = double;
};
template <>
struct NumberOf<Class::kI64> {
  using Type = int64_t;
};
template <>
struct NumberOf<Class::kU64> {
  using Type = uint64_t;
};
}  // namespace detail
template <Class kClass>
using Number = typename detail::NumberOf<kClass>::Type;

// A row of the table; the class bits tell whether Lane or Scalar has the body.
template <ElementFunction kFunction_, typename Lane, typename Scalar, uint32_t kSources_,
          uint32_t kLaneClasses, uint32_t kScalarClasses>
struct FunctionRow {
  static constexpr ElementFunction kFunction = kFunction_;
  static constexpr uint32_t kSources = kSources_;
  static constexpr bool Has(Class c) { return ((kLaneClasses | kScalarClasses) & Bit(c)) != 0; }

  template <Class kClass>
  static ANYDML_LANE Number<kClass> Call(Number<kClass> a, Number<kClass> b, Number<kClass> c,
                                         const Instruction& instruction) {
    if constexpr ((kLaneClasses & Bit(kClass)) != 0) {
      const lane::Tag<Number<kClass>> d;
      if constexpr (kSources == 1) {
        return Lane::Call(d, a, instruction);
      } else if constexpr (kSources == 2) {
        return Lane::Call(d, a, b, instruction);
      } else {
        return Lane::Call(d, a, b, c, instruction);
      }
    } else {
      if constexpr (kSources == 1) {
        return Scalar::Call(a, instruction);
      } else if constexpr (kSources == 2) {
        return Scalar::Call(a, b, instruction);
      } else {
        return Scalar::Call(a, b, c, instruction);
      }
    }
  }
};

// One type per row.
namespace rows {
using namespace element_table;
#define ANYDML_ROW(name, sources, parameters, vector, scalar, ulps)                                         \
  using name = FunctionRow<ElementFunction::k##name, lane_functions::name, scalar_functions::name, sources, \
                           (vector), (scalar)>;
ANYDML_ELEMENT_FUNCTIONS(ANYDML_ROW)
#undef ANYDML_ROW
}  // namespace rows

}  // namespace anydml::element_cuda
