#include "ops/numbers/element_loops.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/half.h"
#include "ops/element/scalar_functions.h"
#include "ops/numbers/default_nans.h"
#include "ops/numbers/load_store.h"

namespace anydml {
namespace {

template <class Function, int kSources, typename T>
void Loop(const LoopPiece& piece) {
  const Instruction instruction = *piece.instruction;
  const auto* const a = reinterpret_cast<const T*>(piece.sources[0]);
  const auto* const b = reinterpret_cast<const T*>(piece.sources[1]);
  const auto* const c = reinterpret_cast<const T*>(piece.sources[2]);
  auto* const to = reinterpret_cast<T*>(piece.target);
  for (uint64_t i = 0; i < piece.count; ++i) {
    if constexpr (kSources == 1) {
      to[i] = Function::Call(a[i], instruction);
    } else if constexpr (kSources == 2) {
      to[i] = Function::Call(a[i], b[i], instruction);
    } else {
      to[i] = Function::Call(a[i], b[i], c[i], instruction);
    }
  }
}

using Run = void (*)(const LoopPiece& piece);

template <class Function, int kSources, uint32_t kClasses>
Run LoopFor(Class type) {
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

Run FindScalarLoop(ElementFunction function, Class type) {
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

std::optional<HalfFunction> HalfFunctionOf(ElementFunction function) {
  switch (function) {
    case ElementFunction::kAdd:
      return HalfFunction::kAdd;
    case ElementFunction::kSubtract:
      return HalfFunction::kSubtract;
    case ElementFunction::kMultiply:
      return HalfFunction::kMultiply;
    case ElementFunction::kMaximum:
      return HalfFunction::kMaximum;
    case ElementFunction::kMinimum:
      return HalfFunction::kMinimum;
    case ElementFunction::kClip:
      return HalfFunction::kClip;
    case ElementFunction::kRelu:
      return HalfFunction::kRelu;
    case ElementFunction::kEqual:
      return HalfFunction::kEqual;
    case ElementFunction::kGreater:
      return HalfFunction::kGreater;
    case ElementFunction::kLess:
      return HalfFunction::kLess;
    case ElementFunction::kGreaterOrEqual:
      return HalfFunction::kGreaterOrEqual;
    case ElementFunction::kLessOrEqual:
      return HalfFunction::kLessOrEqual;
    default:
      return {};
  }
}

ElementLoop FindElementLoop(ElementFunction function, Class type) {
  const ElementFunctionInfo& info = InfoOf(function);
  const auto row = [&](ElementFunction first) {
    return static_cast<uint32_t>(function) - static_cast<uint32_t>(first);
  };
  ElementLoop loop;
  if ((info.vector_classes & Bit(type)) == 0) {
    loop.run = FindScalarLoop(function, type);
  } else if (function < ElementFunction::kEqual) {
    loop = FindArithmeticLoop(row(ElementFunction::kAdd), type);
  } else if (function < ElementFunction::kExp) {
    loop = FindLogicalLoop(row(ElementFunction::kEqual), type);
  } else {
    loop = FindTranscendentalLoop(row(ElementFunction::kExp), type);
  }
  loop.sources = info.sources;
  const auto of_halves = HalfFunctionOf(function);
  if (loop.converts && type == Class::kF32 && of_halves) {
    loop.of_halves = FindHalfLoop(*of_halves, loop.granule);
  }
  return loop;
}

std::optional<Storage> SourceStorage(DataType type, Class to) {
  if (SameBytes(type, to) && !IsWide(to)) return Storage::kRegister;
  if (type == DataType::kFloat16 && to == Class::kF32) return Storage::kHalf;
  return {};
}

std::optional<Storage> TargetStorage(const Instruction& function, DataType type) {
  const bool is_logic =
      function.function >= ElementFunction::kEqual && function.function < ElementFunction::kExp;
  const bool is_byte = type == DataType::kUInt8 || type == DataType::kInt8;
  if (is_logic && is_byte) return Storage::kByte;
  const auto storage = SourceStorage(type, function.to);
  if (function.type != Class::kF32 && storage == Storage::kHalf) return {};
  return storage;
}

namespace {

// The largest granule: two vectors of 2048 bits.
constexpr uint32_t kMaxGranule = 128;

struct Words {
  alignas(64) std::array<uint32_t, kMaxGranule> words;
};

uint32_t BytesOf(Storage storage) {
  return storage == Storage::kByte ? 1 : storage == Storage::kHalf ? 2 : 4;
}

// The word with which a granule of a uniform source is filled.
uint32_t UniformWord(const LoopSource& source, const std::byte* data, bool as_halves) {
  uint32_t word = 0;
  std::memcpy(&word, data, BytesOf(source.storage));
  if (as_halves) return word << 16 | word;
  return source.storage == Storage::kHalf
             ? std::bit_cast<uint32_t>(ToFloat(Half{static_cast<uint16_t>(word)}))
             : word;
}

// Whether the FLOAT16 loop applies.
bool AreHalves(const ElementLoop& loop, const LoopArguments& arguments) {
  const Storage target =
      arguments.instruction->function >= ElementFunction::kEqual ? Storage::kByte : Storage::kHalf;
  if (loop.of_halves == nullptr || arguments.target.storage != target) return false;
  return std::all_of(arguments.sources, arguments.sources + loop.sources,
                     [](const LoopSource& source) { return source.storage == Storage::kHalf; });
}

// Whether the loop without NaN tests applies: enough elements that switching the processor's mode pays.
bool IsBare(const ElementLoop& loop, const LoopArguments& arguments) {
  constexpr uint64_t kLeast = 512;
  if (loop.run_bare == nullptr || arguments.rows * arguments.count < kLeast) return false;
  if (arguments.instruction->function != ElementFunction::kCanonical) return true;
  // A move is no operation, but a conversion is.
  return arguments.sources[0].storage == Storage::kHalf || arguments.target.storage == Storage::kHalf;
}

// Copies in pieces of a fixed size, the last of which may overlap the one before.
template <uint64_t kPiece>
inline void CopyPieces(std::byte* to, const std::byte* from, uint64_t bytes) {
  for (uint64_t at = 0; at + kPiece < bytes; at += kPiece) std::memcpy(to + at, from + at, kPiece);
  std::memcpy(to + bytes - kPiece, from + bytes - kPiece, kPiece);
}

// Without a call: a dispatch of 8 elements does hardly anything else.
inline void CopyFew(std::byte* to, const std::byte* from, uint64_t bytes) {
  if (bytes >= 16) return CopyPieces<16>(to, from, bytes);
  if (bytes >= 4) return CopyPieces<4>(to, from, bytes);
  CopyPieces<1>(to, from, bytes);
}

// The last elements, fewer than a granule, go through a buffer of a whole granule.
void RunRest(const ElementLoop& loop, PieceLoop run, LoopPiece piece, uint64_t left) {
  Words rest[4];
  for (int s = 0; s < loop.sources; ++s) {
    if (piece.steps[s] == 0) continue;
    auto* const words = reinterpret_cast<std::byte*>(rest[s].words.data());
    for (uint32_t at = 0; at < loop.granule * sizeof(uint32_t); at += 8) std::memset(words + at, 0, 8);
    CopyFew(words, piece.sources[s], left * piece.steps[s]);
    piece.sources[s] = words;
  }
  std::byte* const target = piece.target;
  piece.target = reinterpret_cast<std::byte*>(rest[3].words.data());
  piece.streams = false;
  piece.count = loop.granule;
  run(piece);
  CopyFew(target, piece.target, left * BytesOf(piece.target_storage));
}

// Runs all rows at once, unless a source has one number per row.
bool RunRows(const ElementLoop& loop, PieceLoop run, const LoopArguments& arguments, LoopPiece* piece) {
  if (std::any_of(arguments.sources, arguments.sources + loop.sources,
                  [](const LoopSource& source) { return source.uniform; })) {
    return false;
  }
  for (int s = 0; s < loop.sources; ++s) {
    const LoopSource& source = arguments.sources[s];
    piece->sources[s] = static_cast<const std::byte*>(source.data);
    piece->steps[s] = BytesOf(source.storage);
    piece->halves[s] = source.storage == Storage::kHalf;
    piece->row_steps[s] = source.row_stride;
  }
  piece->target = static_cast<std::byte*>(arguments.target.data);
  piece->target_row_step = arguments.target.row_stride;
  piece->rows = arguments.rows;
  piece->count = arguments.count;
  run(*piece);
  return true;
}

}  // namespace

void RunLoop(const ElementLoop& loop, const LoopArguments& arguments) {
  LoopPiece piece = {};
  piece.instruction = arguments.instruction;
  piece.target_storage = arguments.target.storage;
  piece.streams = arguments.target.streams;
  Words uniform[3];
  const bool as_halves = AreHalves(loop, arguments), bare = !as_halves && IsBare(loop, arguments);
  // Pass the piece by reference: a copy would be read before its stores reach a cache, behind the streaming
  // stores of earlier rows.
  const PieceLoop run = as_halves ? loop.of_halves : bare ? loop.run_bare : loop.run;
  const DefaultNans nans(bare);
  if (as_halves) {
    piece.low = FloatParameter(*arguments.instruction, 0);
    piece.high = FloatParameter(*arguments.instruction, 1);
  }
  piece.rows = 1;
  for (int s = 0; s < loop.sources; ++s)
    piece.repeats[s] = arguments.rows > 1 && arguments.sources[s].row_stride == 0;
  const uint64_t left = arguments.count & (loop.granule - 1);
  if (left == 0 && loop.converts && RunRows(loop, run, arguments, &piece)) return;
  for (uint64_t row = 0; row < arguments.rows; ++row) {
    for (int s = 0; s < loop.sources; ++s) {
      const LoopSource& source = arguments.sources[s];
      piece.sources[s] = static_cast<const std::byte*>(source.data) + row * source.row_stride;
      piece.steps[s] = BytesOf(source.storage);
      piece.halves[s] = source.storage == Storage::kHalf;
      if (!source.uniform) continue;
      // Filled once if it is the same for all rows: the first row may be overwritten by the output.
      if (row == 0 || source.row_stride != 0) {
        std::fill_n(uniform[s].words.data(), loop.granule, UniformWord(source, piece.sources[s], as_halves));
      }
      piece.sources[s] = reinterpret_cast<const std::byte*>(uniform[s].words.data());
      piece.steps[s] = 0;
      piece.halves[s] = false;
    }
    piece.target = static_cast<std::byte*>(arguments.target.data) + row * arguments.target.row_stride;
    piece.count = arguments.count - left;
    if (piece.count > 0) run(piece);
    if (left == 0) continue;
    for (int s = 0; s < loop.sources; ++s) piece.sources[s] += piece.count * piece.steps[s];
    piece.target += piece.count * BytesOf(piece.target_storage);
    RunRest(loop, run, piece, left);
  }
}

}  // namespace anydml
