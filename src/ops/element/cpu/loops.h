// Running one instruction over many elements, straight from and to memory in which elements may be narrower
// than registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "ops/element/cpu/half_loops.h"
#include "ops/element/cpu/loop_piece.h"
#include "ops/element/program.h"

namespace anydml {

using PieceLoop = void (*)(const LoopPiece& piece);

struct ElementLoop {
  PieceLoop run = nullptr;
  PieceLoop run_bare = nullptr;  // of FLOAT32, while DefaultNans live; may be none
  uint32_t granule = 1;          // a power of two
  int sources = 0;               // of the function
  bool converts = false;         // takes other storage than kRegister, and sources with a step of 0
  HalfLoop of_halves =
      nullptr;  // instead of `run` where all is FLOAT16 but results of logic, which are bytes
};

// Of a function that has a body for the class.
ElementLoop FindElementLoop(ElementFunction function, Class type);

// The function of FLOAT16 that gives the same, if there is one.
std::optional<HalfFunction> HalfFunctionOf(ElementFunction function);

// As what loops that convert take elements of a type for a register of a class, and give a function's result;
// nothing where they cannot.
std::optional<Storage> SourceStorage(DataType type, Class to);
std::optional<Storage> TargetStorage(const Instruction& function, DataType type);

// What a loop is run for: rows of `count` neighbours.
struct LoopSource {
  const void* data = nullptr;
  Storage storage = Storage::kRegister;
  bool uniform = false;     // the first element stands for a whole row
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

// The groups of FindElementLoop, each in a file of its own; `row` counts within the group.
ElementLoop FindArithmeticLoop(uint32_t row, Class type);
ElementLoop FindLogicalLoop(uint32_t row, Class type);
ElementLoop FindTranscendentalLoop(uint32_t row, Class type);

}  // namespace anydml
