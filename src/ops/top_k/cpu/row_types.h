// The element types of rows, for the functions that exist once per type and SIMD target.
#pragma once

#include "base/half.h"

#define ANYDML_FOR_EACH_ROW_TYPE(X) \
  X(F64, double)                    \
  X(F32, float)                     \
  X(F16, Half)                      \
  X(U64, uint64_t)                  \
  X(U32, uint32_t)                  \
  X(U16, uint16_t) X(U8, uint8_t) X(I64, int64_t) X(I32, int32_t) X(I16, int16_t) X(I8, int8_t)
