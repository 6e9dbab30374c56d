// Runs one instruction over many elements, directly from and to memory, whose elements may be narrower than
// registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "ops/element/program.h"
#include "ops/numbers/half_loops.h"
#include "ops/numbers/loop_piece.h"

namespace anydml {

using PieceLoop = void (*)(const LoopPiece& piece);

struct ElementLoop {
  PieceLoop run = nullptr;
  PieceLoop run_bare = nullptr;  // for FLOAT32 with DefaultNans in scope; may be null
  uint32_t granule = 1;          // a power of two
  int sources = 0;               // of the function
  bool converts = false;         // takes storage other than kRegister, and sources with a step of 0
  HalfLoop of_halves =
      nullptr;  // instead of `run` if everything is FLOAT16, except results of logic, which are bytes
};

// For functions that have a body for the class.
ElementLoop FindElementLoop(ElementFunction function, Class type);

// The FLOAT16 function with the same results, if there is one.
std::optional<HalfFunction> HalfFunctionOf(ElementFunction function);

// The storage as which converting loops read elements of a type into a register of a class, or write a
// function's result; empty if they cannot.
std::optional<Storage> SourceStorage(DataType type, Class to);
std::optional<Storage> TargetStorage(const Instruction& function, DataType type);

// The arguments of a loop: rows of `count` contiguous elements.
struct LoopSource {
  const void* data = nullptr;
  Storage storage = Storage::kRegister;
  bool uniform = false;     // the first element applies to a whole row
  uint64_t row_stride = 0;  // in bytes
};
struct LoopTarget {
  void* data = nullptr;
  Storage storage = Storage::kRegister;
  bool streams = false;
  uint64_t row_stride = 0;
};
struct LoopArguments {
  LoopSource sources[3];
  LoopTarget target;
  uint64_t rows = 1;
  uint64_t count = 0;
  const Instruction* instruction = nullptr;
};

void RunLoop(const ElementLoop& loop, const LoopArguments& arguments);

// The groups of FindElementLoop, each in its own file; `row` counts within the group.
ElementLoop FindArithmeticLoop(uint32_t row, Class type);
ElementLoop FindLogicalLoop(uint32_t row, Class type);
ElementLoop FindTranscendentalLoop(uint32_t row, Class type);

}  // namespace anydml
