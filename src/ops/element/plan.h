// Plan of an element program on a GPU: a small accumulator machine. Plain data, the same for every GPU
// backend; the backend adds addresses and launches. Each thread computes a few elements of the output. It
// first loads the elements of all inputs into shared memory, so that all loads are in flight together, and
// then executes the program's steps. The accumulator is in registers. Other values, which steps address by
// number, are in the thread's slots of shared memory, because registers cannot be indexed at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "ops/device/nest.h"
#include "ops/element/problem.h"

namespace anydml::element_device {

inline constexpr uint32_t kThreads = 256;
inline constexpr uint32_t kMaxSteps = 40;
inline constexpr uint32_t kMaxOperands = 12;
inline constexpr uint32_t kMaxConstants = 8;
inline constexpr uint32_t kRegisterBytes = 32;  // for a thread's elements: 8 of 32 bits, or 4 of 64

// A thread's elements are in groups that are contiguous in the innermost loop; neighbouring threads have
// neighbouring groups, so a warp's accesses coalesce. The layout of a group's elements in a tensor:
enum class Access : uint8_t {
  kVector,    // contiguous, aligned to the group's size
  kRepeated,  // the same element
  kSingle,    // anywhere
  kTile,      // contiguous along another loop: the whole block reads a tile along it
};

struct MachineOperand {
  std::byte* data = nullptr;
  DataType type = DataType::kUnknown;
  uint8_t bits = 0;  // per element
  Access access = Access::kSingle;
  bool in_order = false;                    // element i is at offset i
  uint64_t strides[kMaxElementLoops] = {};  // in elements
};

// How a slot's elements become numbers in 32-bit registers.
enum class Form : uint8_t {
  kWords,  // unchanged
  kHalfToFloat,
  kInt8,
  kUInt8,
  kInt16,
  kUInt16,
  kInt8ToFloat,
  kUInt8ToFloat,
  kInt16ToFloat,
  kUInt16ToFloat,
  kInt32ToFloat,
  kUInt32ToFloat,
  kConstant,  // not in a slot
};

// The location of a source's elements.
struct Source {
  enum Kind : uint8_t { kNone, kAccumulator, kConstant, kSlot };
  Kind kind = kNone;
  uint8_t index = 0;  // of the slot or constant
  bool is_tile = false;
  uint8_t type = 0;  // DataType of the slot's elements
  uint8_t to = 0;    // the Class to convert to
  Form form = Form::kWords;
};

// Loads its sources, the first into the accumulator; applies a function; keeps and stores its result.
struct Step {
  enum Flags : uint8_t { kFirst = 1, kSecond = 2, kThird = 4, kKeep = 8, kStore = 16 };

  uint16_t code = 0;     // the machine's number of the function and class
  uint8_t flags = 0;     // which of these actions to perform
  uint8_t slot = 0;      // to keep the result in
  uint8_t output = 0;    // the operand to store it to
  bool uniform = false;  // the same for all elements
  Source sources[3];
  Instruction instruction = {};
};
// A step that only stores its source.
inline constexpr uint16_t kNoFunction = 0xFFFF;

constexpr uint16_t NarrowCode(ElementFunction function, Class type) {
  return static_cast<uint16_t>(static_cast<uint32_t>(function) * 3 + static_cast<uint32_t>(type));
}
constexpr uint16_t WideCode(ElementFunction function, Class type) {
  return static_cast<uint16_t>(static_cast<uint32_t>(function) * kClassCount + static_cast<uint32_t>(type));
}

// A kernel's parameters: 4 KiB at most.
struct Machine {
  uint64_t elements = 1;
  uint32_t steps_end = 0;
  uint32_t inputs = 0;      // the number of loaded operands; input i is in slot i, outputs follow
  uint32_t slot_bytes = 0;  // for all threads of a block
  uint32_t log2_group = 0;
  uint32_t rank = 0;
  // Tiles of the last two loops instead of elements in order.
  bool tiled = false;
  uint32_t log2_rows = 0;
  uint32_t log2_columns = 0;
  FastDivisor row_tiles;
  FastDivisor column_tiles;

  FastDivisor sizes[kMaxElementLoops];  // outermost first
  uint64_t constants[kMaxConstants] = {};
  MachineOperand operands[kMaxOperands];
  Step steps[kMaxSteps];
};
static_assert(sizeof(Machine) <= 4096);

// A machine and what the host needs to launch it.
struct MachinePlan {
  Machine machine;
  uint32_t operands = 0;
  uint8_t bindings[kMaxOperands] = {};  // the problem's indices of inputs, then outputs
  bool wide = false;                    // registers have 64 bits
  uint64_t blocks = 0;
  uint32_t shared_bytes = 0;
};

// Fails with a reason in *why_not. Without `with_groups` the operands need only be aligned to their elements.
bool MakePlan(const ElementProblem& problem, bool with_groups, MachinePlan* plan, std::string* why_not);

// Whether the operands' addresses are aligned as the plan requires.
bool IsAligned(const Machine& machine, uint32_t operands);

}  // namespace anydml::element_device
