// For files whose functions Highway compiles for every SIMD target, or which are compiled once if there is no
// Highway: ANYDML_EXPORT_BEST(Function) where Highway has HWY_EXPORT, then ANYDML_BEST(Function)(arguments).
#pragma once

#if ANYDML_HAVE_HIGHWAY
#define ANYDML_EXPORT_BEST(function) HWY_EXPORT(function)
#define ANYDML_BEST(function) HWY_DYNAMIC_DISPATCH(function)
#else
#define ANYDML_EXPORT_BEST(function) static_assert(true)
#define ANYDML_BEST(function) function
#endif
