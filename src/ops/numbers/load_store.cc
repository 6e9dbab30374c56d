#include "ops/numbers/load_store.h"

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>

#include "base/dispatch.h"
#include "base/half.h"
#include "ops/common/transpose_block.h"
#include "ops/common/transpose_tile.h"
#include "ops/numbers/convert_rows.h"
#include "ops/numbers/math/narrow.h"
#include "ops/numbers/math/saturate.h"

namespace anydml {
namespace {

template <typename T>
constexpr bool kIsHalf = std::is_same_v<T, Half>;

// An element as a number of class C.
template <typename C, typename T>
C FromElement(T x) {
  if constexpr (kIsHalf<T>) {
    return static_cast<C>(ToFloat(x));
  } else {
    return static_cast<C>(x);
  }
}

template <typename T, typename C>
T ToElement(C x) {
  if constexpr (kIsHalf<T>) {
    return RoundToHalf(x);
  } else if constexpr (std::is_integral_v<T> && std::is_floating_point_v<C>) {
    return Saturate<T>(x);
  } else {
    return static_cast<T>(x);
  }
}

template <typename T, typename C>
void ConvertRow(const T* from, C* to, uint64_t count) {
  if constexpr (kIsHalf<T> && std::is_same_v<C, float>) {
    HalvesToFloats(reinterpret_cast<const uint16_t*>(from), to, count);
  } else if constexpr (std::is_integral_v<T> && sizeof(T) < 4 && std::is_integral_v<C> && sizeof(C) == 4) {
    ToWords(from, reinterpret_cast<uint32_t*>(to), count);
  } else {
    for (uint64_t i = 0; i < count; ++i) to[i] = FromElement<C>(from[i]);
  }
}

template <typename C, typename T>
void ConvertRowBack(const C* from, T* to, uint64_t count) {
  if constexpr (kIsHalf<T> && std::is_same_v<C, float>) {
    FloatsToHalves(from, reinterpret_cast<uint16_t*>(to), count);
  } else if constexpr (std::is_integral_v<T> && sizeof(T) <= 4 && !std::is_same_v<T, uint32_t> &&
                       std::is_same_v<C, float>) {
    FloatsToIntegers(from, to, count);
  } else if constexpr (std::is_integral_v<T> && sizeof(T) < 4 && std::is_integral_v<C> && sizeof(C) == 4) {
    FromWords(reinterpret_cast<const uint32_t*>(from), reinterpret_cast<std::make_unsigned_t<T>*>(to), count);
  } else {
    for (uint64_t i = 0; i < count; ++i) to[i] = ToElement<T>(from[i]);
  }
}

// Whether the block is contiguous along columns rather than rows: walking it that way reads each line once.
bool IsAcross(const Block& block) { return block.row_stride < block.column_stride && block.row_stride != 0; }

uint64_t RegisterStride(const Block& block) {
  return block.register_stride == 0 ? block.columns : block.register_stride;
}

// to[r * to_stride + c] = from[c * stride + r].
template <typename T>
void Turn(const T* from, uint64_t stride, uint64_t rows, uint64_t columns, T* to, uint64_t to_stride,
          bool goes_on) {
  using Bits = std::conditional_t<
      sizeof(T) == 1, uint8_t,
      std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
  const auto* const source = reinterpret_cast<const Bits*>(from);
  auto* const target = reinterpret_cast<Bits*>(to);
  if constexpr (sizeof(T) == 2 || sizeof(T) == 4) {
    TransposeBlock(source, static_cast<int64_t>(stride), rows, columns, target,
                   static_cast<int64_t>(to_stride), goes_on ? TransposeTo::kTiles : TransposeTo::kTile);
  } else {
    TransposeTile(source, static_cast<ptrdiff_t>(stride), target, static_cast<ptrdiff_t>(to_stride),
                  static_cast<ptrdiff_t>(rows), static_cast<ptrdiff_t>(columns));
  }
}

template <uint64_t kTurnedBytes, typename T, typename C>
[[gnu::noinline]] bool TurnThenConvert(const T* from, const Block& block, C* to) {
  alignas(64) std::array<T, kTurnedBytes / sizeof(T)> turned;
  const uint64_t most_rows = turned.size() / block.columns;
  if (most_rows == 0) return false;
  for (uint64_t r = 0; r < block.rows; r += most_rows) {
    const uint64_t rows = std::min(most_rows, block.rows - r);
    Turn(from + r, block.column_stride, rows, block.columns, turned.data(), block.columns, block.goes_on);
    for (uint64_t i = 0; i < rows; ++i) {
      ConvertRow(turned.data() + i * block.columns, to + (r + i) * RegisterStride(block), block.columns);
    }
  }
  return true;
}

// For a block whose columns are contiguous: transposes in the order that suits memory, then converts row by
// row. False if the buffer is too small for a row. Small blocks use a small buffer, since a short run may be
// on an application's stack.
template <typename T, typename C>
bool TurnAndConvert(const T* from, const Block& block, C* to) {
  if constexpr (sizeof(T) == sizeof(C) && std::is_integral_v<T> == std::is_integral_v<C>) {
    Turn(from, block.column_stride, block.rows, block.columns, reinterpret_cast<T*>(to),
         RegisterStride(block), block.goes_on);
    return true;
  } else {
    constexpr uint64_t kFewBytes = 16 << 10, kBytes = 64 << 10;
    const bool few = block.rows * block.columns * sizeof(T) <= kFewBytes;
    return few ? TurnThenConvert<kFewBytes>(from, block, to) : TurnThenConvert<kBytes>(from, block, to);
  }
}

template <typename T, typename C>
void Load(const void* tensor, const Block& block, void* to) {
  const T* const from = static_cast<const T*>(tensor) + block.offset;
  C* const target = static_cast<C*>(to);
  const uint64_t stride = block.column_stride, to_stride = RegisterStride(block);
  if (block.rows > 1 && block.row_stride == 1 && stride > 1 && TurnAndConvert(from, block, target)) return;
  if (block.rows > 1 && IsAcross(block)) {
    for (uint64_t c = 0; c < block.columns; ++c) {
      const T* const column = from + c * stride;
      for (uint64_t r = 0; r < block.rows; ++r) {
        target[r * to_stride + c] = FromElement<C>(column[r * block.row_stride]);
      }
    }
    return;
  }
  for (uint64_t r = 0; r < block.rows; ++r) {
    const T* const row = from + r * block.row_stride;
    C* const line = target + r * to_stride;
    if (stride == 1) {
      ConvertRow(row, line, block.columns);
    } else if (stride == 0) {
      std::fill_n(line, block.columns, FromElement<C>(*row));
    } else {
      for (uint64_t c = 0; c < block.columns; ++c) line[c] = FromElement<C>(row[c * stride]);
    }
  }
}

template <typename C, typename T>
void Store(const void* from, const Block& block, void* tensor) {
  T* const to = static_cast<T*>(tensor) + block.offset;
  const C* const source = static_cast<const C*>(from);
  for (uint64_t r = 0; r < block.rows; ++r) {
    T* const row = to + r * block.row_stride;
    const C* const line = source + r * block.columns;
    if (block.column_stride == 1) {
      ConvertRowBack(line, row, block.columns);
    } else {
      for (uint64_t c = 0; c < block.columns; ++c) row[c * block.column_stride] = ToElement<T>(line[c]);
    }
  }
}

// 4-bit elements: the even ones are in the low halves of bytes.
template <bool kSigned, typename C>
void Load4Bits(const void* tensor, const Block& block, void* to) {
  const auto* const bytes = static_cast<const uint8_t*>(tensor);
  for (uint64_t r = 0; r < block.rows; ++r) {
    C* target = static_cast<C*>(to) + r * RegisterStride(block);
    for (uint64_t c = 0; c < block.columns; ++c) {
      const uint64_t at = block.offset + r * block.row_stride + c * block.column_stride;
      *target++ = static_cast<C>(Get4Bits(bytes[at / 2], at % 2, kSigned));
    }
  }
}

template <bool kSigned, typename C>
void Store4Bits(const void* from, const Block& block, void* tensor) {
  auto* const bytes = static_cast<uint8_t*>(tensor);
  const C* source = static_cast<const C*>(from);
  for (uint64_t r = 0; r < block.rows; ++r) {
    for (uint64_t c = 0; c < block.columns; ++c) {
      const uint64_t at = block.offset + r * block.row_stride + c * block.column_stride;
      const auto element = static_cast<uint32_t>(SaturateTo4Bits(*source++, kSigned));
      bytes[at / 2] = Put4Bits(bytes[at / 2], at % 2, element);
    }
  }
}

template <typename F>
auto ForClass(Class c, F&& f) {
  switch (c) {
    case Class::kI32:
      return f.template operator()<int32_t>();
    case Class::kU32:
      return f.template operator()<uint32_t>();
    case Class::kF64:
      return f.template operator()<double>();
    case Class::kI64:
      return f.template operator()<int64_t>();
    case Class::kU64:
      return f.template operator()<uint64_t>();
    default:
      return f.template operator()<float>();
  }
}

// Floating-point elements in integer registers: as bits, like unsigned elements.
template <typename T, typename C>
constexpr bool kNeeded = std::is_floating_point_v<C> || std::is_integral_v<T>;

// Also in place: a wider result must not overwrite elements that are still to be read.
template <typename From, typename To>
void ConvertElements(const From* in, To* out, DataType range, uint64_t count) {
  const auto convert = [&](uint64_t i) {
    if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
      out[i] = static_cast<To>(SaturatedBits(in[i], range));
    } else {
      out[i] = static_cast<To>(in[i]);
    }
  };
  if (sizeof(To) > sizeof(From)) {
    for (uint64_t i = count; i-- > 0;) convert(i);
  } else {
    for (uint64_t i = 0; i < count; ++i) convert(i);
  }
}

}  // namespace

LoadBlock FindLoad(DataType from, Class to) {
  return ForClass(to, [&]<typename C>() -> LoadBlock {
    if (from == DataType::kUInt4) return &Load4Bits<false, C>;
    if (from == DataType::kInt4) return &Load4Bits<true, C>;
    return DispatchByType(from, []<typename T>() -> LoadBlock {
      if constexpr (kNeeded<T, C>) {
        return &Load<T, C>;
      } else {
        return nullptr;
      }
    });
  });
}

StoreBlock FindStore(Class from, DataType to) {
  return ForClass(from, [&]<typename C>() -> StoreBlock {
    if constexpr (std::is_floating_point_v<C>) {
      if (to == DataType::kUInt4) return &Store4Bits<false, C>;
      if (to == DataType::kInt4) return &Store4Bits<true, C>;
    }
    return DispatchByType(to, []<typename T>() -> StoreBlock {
      if constexpr (kNeeded<T, C>) {
        return &Store<C, T>;
      } else {
        return nullptr;
      }
    });
  });
}

void ConvertRegister(Class from, Class to, DataType range, const void* source, void* target, uint64_t count) {
  ForClass(from, [&]<typename From>() {
    ForClass(to, [&]<typename To>() {
      ConvertElements(static_cast<const From*>(source), static_cast<To*>(target), range, count);
    });
  });
}

bool SameBytes(DataType type, Class c) {
  switch (c) {
    case Class::kF32:
      return type == DataType::kFloat32;
    case Class::kF64:
      return type == DataType::kFloat64;
    case Class::kI32:
    case Class::kU32:
      return type == DataType::kInt32 || type == DataType::kUInt32;
    default:
      return type == DataType::kInt64 || type == DataType::kUInt64;
  }
}

}  // namespace anydml
