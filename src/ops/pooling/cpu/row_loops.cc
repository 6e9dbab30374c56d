#include "ops/pooling/cpu/row_loops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/half.h"
#include "ops/pooling/problem.h"

#if ANYDML_HAVE_HIGHWAY
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/pooling/cpu/row_loops.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace anydml::pooling {
namespace HWY_NAMESPACE {
namespace {
#include "ops/pooling/cpu/row_vectors-inl.h"
// The remainder after the vectors.
#include "ops/pooling/cpu/row_loops-inl.h"
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace anydml::pooling
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anydml::pooling {

namespace {
HWY_EXPORT(MaxLoopsFor);
HWY_EXPORT(SumLoopsFor);
}  // namespace

MaxLoops FindMaxLoops(DataType type) { return HWY_DYNAMIC_DISPATCH(MaxLoopsFor)(type); }
SumLoops FindSumLoops() { return HWY_DYNAMIC_DISPATCH(SumLoopsFor)(); }

}  // namespace anydml::pooling
#endif

#else

namespace anydml::pooling {
namespace {
#include "ops/pooling/cpu/row_vectors-inl.h"
// The remainder after the vectors.
#include "ops/pooling/cpu/row_loops-inl.h"
}  // namespace

MaxLoops FindMaxLoops(DataType type) { return MaxLoopsFor(type); }
SumLoops FindSumLoops() { return SumLoopsFor(); }

}  // namespace anydml::pooling

#endif
