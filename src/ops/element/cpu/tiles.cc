#include <algorithm>
#include <array>
#include <cstring>

#include "ops/common/nest_parts.h"
#include "ops/common/parallel.h"
#include "ops/common/stream_copy.h"
#include "ops/element/cpu/blocks.h"
#include "ops/element/cpu/loops.h"
#include "ops/element/cpu/tile_plan.h"
#include "ops/element/problem.h"

namespace anydml {
namespace {

// A register of a tile; eight of them are half of a first-level cache of 64 KiB.
constexpr uint64_t kTileBytes = 4096;
// Tiles across an input are squares of 64 by 64 elements, where all registers together have room for them.
constexpr uint64_t kMaxAcross = 4096;
constexpr uint64_t kRegisterMemory = 64 << 10;
static_assert(kMaxRegisters * kTileBytes <= kRegisterMemory);

#if defined(__x86_64__)
constexpr bool kHasStreamingStores = true;
#else
constexpr bool kHasStreamingStores = false;  // other machines see by themselves that lines are overwritten
#endif

struct Registers {
  alignas(64) std::array<std::byte, kRegisterMemory> memory;
  std::array<const void*, kMaxRegisters> values;  // in memory, or a tensor's own
};

uint64_t WidthOf(const ElementProgram& program) { return program.wide() ? 8 : 4; }

uint64_t ElementsAcross(const ElementProgram& program) {
  return std::min(kMaxAcross, kRegisterMemory / (program.registers * WidthOf(program)));
}

// What is found out about an instruction when the kernel is made.
struct Step {
  Instruction instruction;
  ElementLoop loop = nullptr;
  LoadBlock load = nullptr;
  StoreBlock store = nullptr;
  uint32_t operand = 0;     // of a load or store, among all operands
  bool same_bytes = false;  // of a load or store: no conversion
  bool once = false;        // the same for all tiles: done for the first one
  bool uniform = false;     // the same for all elements
  bool last = false;        // the program's only store follows: may write into the tensor
};

class ElementTiles final : public Kernel {
 public:
  ElementTiles(const ElementProblem& problem, uint32_t threads)
      : plan_(problem, kTileBytes / WidthOf(problem.program), ElementsAcross(problem.program)),
        tile_elements_(plan_.across ? ElementsAcross(problem.program)
                                    : kTileBytes / WidthOf(problem.program)),
        register_bytes_(tile_elements_ * WidthOf(problem.program)),
        inputs_(static_cast<uint32_t>(problem.inputs.size())) {
    for (const Instruction& instruction : problem.program.instructions) Append(problem, instruction);
    FindUniform(problem);
    const ElementOperand& output = problem.outputs[0];
    const uint64_t bytes = problem.Elements() * std::max<uint64_t>(1, BitSize(output.type) / 8);
    streams_ = kHasStreamingStores && bytes >= kStreamBytes;
    const bool alone = problem.program.instructions.size() >= 2 && problem.outputs.size() == 1;
    if (alone) steps_[steps_.size() - 2].last = steps_[steps_.size() - 2].loop != nullptr && !streams_;
    aliases_ = problem.outputs.size() == 1;
    // Two 4-bit elements share a byte, which two threads must not write.
    const bool shares_bytes = BitSize(output.type) < 8;
    parts_ = shares_bytes ? 1 : PartsForBytes(TrafficBytes(problem), threads);
    parts_ = static_cast<uint32_t>(std::min<uint64_t>(parts_, plan_.tiles));
  }

  Status Run(const KernelArguments& arguments) const override {
    ParallelFor(arguments.executor, parts_, [&](uint32_t part) {
      Registers registers;
      const uint64_t begin = PartBegin(plan_.tiles, part, parts_);
      const uint64_t end = PartBegin(plan_.tiles, part + 1, parts_);
      for (uint64_t i = begin; i < end; ++i) RunTile(Tile(plan_, i), i == begin, arguments, registers);
      if (streams_) EndStream();
    });
    return {};
  }

 private:
  static uint64_t TrafficBytes(const ElementProblem& problem) {
    uint64_t bits = 0;
    for (const ElementOperand& operand : problem.inputs) bits += BitSize(operand.type);
    for (const ElementOperand& operand : problem.outputs) bits += BitSize(operand.type);
    // What is computed takes longer than what is moved.
    return problem.Elements() * (bits + 32 * problem.program.ulps()) / 8;
  }

  void Append(const ElementProblem& problem, const Instruction& instruction) {
    Step& step = steps_.emplace_back();
    step.instruction = instruction;
    switch (instruction.function) {
      case ElementFunction::kLoad: {
        const DataType type = problem.inputs[instruction.sources[0]].type;
        step.operand = instruction.sources[0];
        step.load = FindLoad(type, instruction.type);
        step.same_bytes = SameBytes(type, instruction.type);
        break;
      }
      case ElementFunction::kStore: {
        const DataType type = problem.outputs[instruction.target].type;
        step.operand = inputs_ + instruction.target;
        step.store = FindStore(instruction.type, type);
        step.same_bytes = SameBytes(type, instruction.type);
        break;
      }
      case ElementFunction::kConstant:
      case ElementFunction::kConvert:
        break;
      default:
        step.loop = FindElementLoop(instruction.function, instruction.type);
    }
  }

  // Which instructions have the same result for all elements, and which of these stay in their register.
  void FindUniform(const ElementProblem& problem) {
    std::array<bool, kMaxRegisters> uniform{};
    std::array<uint32_t, kMaxRegisters> other_writers{};
    for (Step& step : steps_) {
      const Instruction& i = step.instruction;
      if (i.function == ElementFunction::kStore) continue;
      if (i.function == ElementFunction::kLoad) {
        const auto& strides = problem.inputs[i.sources[0]].strides;
        step.uniform = std::all_of(strides.begin(), strides.end(), [](uint64_t s) { return s == 0; });
      } else {
        step.uniform = true;
        for (int s = 0; s < InfoOf(i.function).sources; ++s) {
          step.uniform = step.uniform && uniform[i.sources[s]];
        }
      }
      uniform[i.target] = step.uniform;
      if (!step.uniform) ++other_writers[i.target];
    }
    for (Step& step : steps_) step.once = step.uniform && other_writers[step.instruction.target] == 0;
  }

  void RunTile(const Tile& tile, bool first, const KernelArguments& arguments, Registers& r) const {
    for (const Step& step : steps_) {
      const Instruction& i = step.instruction;
      if (step.once && !first) continue;
      // What is there once is there for the largest tile.
      const uint64_t count = step.once ? tile_elements_ : tile.elements;
      switch (i.function) {
        case ElementFunction::kLoad:
          Load(step, tile, arguments, r);
          break;
        case ElementFunction::kStore:
          Store(step, tile, arguments, r);
          continue;
        case ElementFunction::kConstant:
          std::memcpy(MemoryOf(i.target, r), &i.parameters[0], 8);
          r.values[i.target] = MemoryOf(i.target, r);
          break;
        case ElementFunction::kConvert:
          ConvertRegister(i.type, i.to, static_cast<DataType>(i.parameters[0]), r.values[i.sources[0]],
                          MemoryOf(i.target, r), step.uniform ? 1 : count);
          r.values[i.target] = MemoryOf(i.target, r);
          break;
        default:
          Apply(step, tile, step.uniform ? 1 : count, arguments, r);
      }
      if (step.uniform) Repeat(MemoryOf(i.target, r), IsWide(i.to) ? 8 : 4, count);
    }
  }

  // Elements 1 to `count` - 1 become what element 0 is.
  static void Repeat(std::byte* values, size_t width, uint64_t count) {
    if (width == 4) {
      auto* words = reinterpret_cast<uint32_t*>(values);
      std::fill(words + 1, words + count, words[0]);
    } else {
      auto* words = reinterpret_cast<uint64_t*>(values);
      std::fill(words + 1, words + count, words[0]);
    }
  }

  std::byte* MemoryOf(uint32_t number, Registers& r) const {
    return r.memory.data() + number * register_bytes_;
  }

  static bool IsContiguous(const Tile& tile, uint32_t operand) {
    uint64_t expected = 1;
    for (uint32_t d = tile.rank; d-- > 0;) {
      if (tile.loops[d].loop->strides[operand] != expected) return false;
      expected *= tile.loops[d].extent;
    }
    return true;
  }

  // Calls body(block, position in the register) for the blocks of a tile.
  template <typename Body>
  static void ForEachBlock(const Tile& tile, uint32_t operand, Body&& body) {
    Block block;
    block.offset = tile.Offset(operand);
    if (IsContiguous(tile, operand)) {
      block.columns = tile.elements;
      body(block, uint64_t{0});
      return;
    }
    uint32_t outer = tile.rank;
    if (outer > 0) {
      const Tile::Loop& columns = tile.loops[--outer];
      block.columns = columns.extent;
      block.column_stride = columns.loop->strides[operand];
    }
    if (outer > 0) {
      const Tile::Loop& rows = tile.loops[--outer];
      block.rows = rows.extent;
      block.row_stride = rows.loop->strides[operand];
    }
    const uint64_t start = block.offset;
    const uint64_t elements = block.rows * block.columns;
    for (uint64_t at = 0; at < tile.elements / elements; ++at) {
      uint64_t rest = at;
      block.offset = start;
      for (uint32_t d = outer; d-- > 0; rest /= tile.loops[d].extent) {
        block.offset += rest % tile.loops[d].extent * tile.loops[d].loop->strides[operand];
      }
      body(block, at * elements);
    }
  }

  void Load(const Step& step, const Tile& tile, const KernelArguments& arguments, Registers& r) const {
    const Instruction& i = step.instruction;
    const std::byte* tensor = arguments.inputs[step.operand].data;
    const uint32_t width = IsWide(i.type) ? 8 : 4;
    std::byte* const memory = MemoryOf(i.target, r);
    r.values[i.target] = memory;
    if (step.uniform) {
      step.load(tensor, Block{}, memory);
    } else if (step.same_bytes && aliases_ && IsContiguous(tile, step.operand)) {
      r.values[i.target] = tensor + tile.Offset(step.operand) * width;
    } else {
      ForEachBlock(tile, step.operand,
                   [&](const Block& block, uint64_t at) { step.load(tensor, block, memory + at * width); });
    }
  }

  void Apply(const Step& step, const Tile& tile, uint64_t count, const KernelArguments& arguments,
             Registers& r) const {
    const Instruction& i = step.instruction;
    LoopArguments loop = {{}, MemoryOf(i.target, r), count, &i};
    for (int s = 0; s < InfoOf(i.function).sources; ++s) loop.sources[s] = r.values[i.sources[s]];
    const Step& store = steps_.back();
    if (step.last && !step.uniform && store.same_bytes && IsContiguous(tile, store.operand)) {
      loop.target =
          arguments.outputs[0].data + tile.Offset(store.operand) * (IsWide(store.instruction.type) ? 8 : 4);
    }
    step.loop(loop);
    r.values[i.target] = loop.target;
  }

  void Store(const Step& step, const Tile& tile, const KernelArguments& arguments, const Registers& r) const {
    const Instruction& i = step.instruction;
    std::byte* const tensor = arguments.outputs[i.target].data;
    const uint32_t width = IsWide(i.type) ? 8 : 4;
    const auto* const values = static_cast<const std::byte*>(r.values[i.sources[0]]);
    if (step.same_bytes && IsContiguous(tile, step.operand)) {
      std::byte* const to = tensor + tile.Offset(step.operand) * width;
      if (to == values) return;
      if (streams_) {
        StreamCopy(to, values, tile.elements * width);
      } else {
        std::memcpy(to, values, tile.elements * width);
      }
      return;
    }
    ForEachBlock(tile, step.operand,
                 [&](const Block& block, uint64_t at) { step.store(values + at * width, block, tensor); });
  }

  TilePlan plan_;
  uint64_t tile_elements_;  // of the largest
  uint64_t register_bytes_;
  uint32_t inputs_;
  std::vector<Step> steps_;
  uint32_t parts_ = 1;
  bool streams_ = false;  // past the caches
  bool aliases_ = false;  // registers may be a tensor's own memory: nothing is written before all is read
};

}  // namespace

std::unique_ptr<const Kernel> CreateElementTiles(const ElementProblem& problem, const LowerContext& context,
                                                 std::string*) {
  return std::make_unique<ElementTiles>(problem, context.threads);
}

}  // namespace anydml
