#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "kernel/scratch_layout.h"
#include "kernel/work_estimate.h"
#include "ops/common/parallel.h"
#include "ops/common/stream_copy.h"
#include "ops/element/cpu/blocks.h"
#include "ops/element/cpu/loops.h"
#include "ops/element/cpu/rows.h"
#include "ops/element/cpu/tile_plan.h"
#include "ops/common/transpose_block.h"
#include "ops/element/problem.h"

namespace anydml {
namespace {

// A register of a tile; eight of them are half of a first-level cache of 64 KiB.
constexpr uint64_t kTileBytes = 4096;
// Of all registers of a tile across an input: what is turned passes through a second-level cache anyway, what
// is computed with stays in the first.
#if defined(__x86_64__)
constexpr uint64_t kRegisterMemory = 256 << 10;
#else
constexpr uint64_t kRegisterMemory = 128 << 10;
#endif
constexpr uint64_t kFewRegisters = 2, kManyRegistersMemory = 64 << 10;
// More than this, and half of it for FLOAT16, is temporary memory: threads of applications may have small
// stacks.
constexpr uint64_t kRegistersOnStack = 128 << 10;
static_assert(kMaxRegisters * kTileBytes <= kRegistersOnStack && kManyRegistersMemory <= kRegistersOnStack);

// Of a run that may be on an application's thread.
constexpr uint64_t kRegistersOfBriefRun = 16 << 10;

// Shorter rows of a tile are joined before a loop takes them.
constexpr uint64_t kShortestTileRow = 32;

struct Registers {
  std::byte* memory;
  std::byte* halves;                             // of numbers that are kept as FLOAT16
  std::array<LoopSource, kMaxRegisters> values;  // in memory, or a tensor's own
  bool stored = false;                           // the last step has written into the output
};

uint64_t WidthOf(const ElementProgram& program) { return program.wide() ? 8 : 4; }

uint64_t ElementsAcross(const ElementProgram& program) {
  const uint64_t memory = program.registers <= kFewRegisters ? kRegisterMemory : kManyRegistersMemory;
  return std::min(kMaxAcross, memory / (program.registers * WidthOf(program)));
}

// What is found out about an instruction when the kernel is made.
struct Step {
  Instruction instruction;
  ElementLoop loop = {};
  LoadBlock load = nullptr;
  StoreBlock store = nullptr;
  uint32_t operand = 0;            // of a load or store, among all operands
  uint32_t bytes = 0;              // of its elements, where they have whole ones
  bool same_bytes = false;         // of a load or store: no conversion
  bool to_halves = false;          // of a store: FLOAT32 to FLOAT16
  std::optional<Storage> storage;  // as which loops can read what is loaded, or write what is stored
  bool whole = false;              // the result is not only read by loops that convert: a register of numbers
  bool once = false;               // the same for all tiles: done for the first one
  bool uniform = false;            // the same for all elements
  bool rounds = false;             // the result is kept as FLOAT16
  bool last = false;               // the program's only store follows: may write into the tensor
};

class ElementTiles final : public Kernel, public WorkEstimate {
 public:
  ElementTiles(const ElementProblem& problem, uint32_t threads)
      : plan_(problem, kTileBytes / WidthOf(problem.program), ElementsAcross(problem.program)),
        inputs_(static_cast<uint32_t>(problem.inputs.size())) {
    for (const TileLoop& loop : plan_.loops) tile_elements_ *= loop.chunk;
    register_bytes_ = (tile_elements_ * WidthOf(problem.program) + 63) / 64 * 64;
    for (const Instruction& instruction : problem.program.instructions) Append(problem, instruction);
    RoundWithResults();
    for (size_t i = 0; i < steps_.size(); ++i) steps_[i].whole = NeedsWhole(i);
    FindUniform(problem);
    streams_ = StreamsOutput(problem);
    aliases_ = problem.outputs.size() == 1;
    if (steps_.size() >= 2 && aliases_) {
      Step& last = steps_[steps_.size() - 2];
      Step& store = steps_.back();
      last.last = last.instruction.target == store.instruction.sources[0];
      if (last.loop.converts && IsFloat(last.instruction.to) == IsFloat(store.instruction.type)) {
        store.storage = TargetStorage(last.instruction, problem.outputs[0].type);
      }
    }
    parts_ = static_cast<uint32_t>(std::min<uint64_t>(PartsOf(problem, threads), plan_.tiles));
    registers_bytes_ = problem.program.registers * register_bytes_;
    on_stack_ = registers_bytes_ <= kRegistersOnStack;
    brief_ = parts_ == 1 && registers_bytes_ <= kRegistersOfBriefRun;
    work_ = WorkBytes(problem);
    if (!on_stack_) {
      parts_ = std::min(parts_, threads);
      registers_ = layout_.Add("registers", parts_ * WithHalves(registers_bytes_), 64);
    }
  }

  uint64_t temporary_bytes() const override { return layout_.bytes(); }
  uint64_t work_bytes() const override { return brief_ ? work_ : kUnknown; }

  Status Run(const KernelArguments& arguments) const override {
    if (brief_) {
      RunOnStack<kRegistersOfBriefRun>(0, plan_.tiles, arguments);
      return {};
    }
    ParallelFor(arguments.executor, parts_, [&](uint32_t part) {
      const uint64_t begin = PartBegin(plan_.tiles, part, parts_);
      const uint64_t end = PartBegin(plan_.tiles, part + 1, parts_);
      if (on_stack_) return RunOnStack<kRegistersOnStack>(begin, end, arguments);
      std::byte* const registers = registers_.In<std::byte>(arguments.temporary);
      RunTiles(begin, end, arguments, registers + part * WithHalves(registers_bytes_));
    });
    return {};
  }

 private:
  template <uint64_t kBytes>
  [[gnu::noinline]] void RunOnStack(uint64_t begin, uint64_t end, const KernelArguments& arguments) const {
    alignas(64) std::byte memory[WithHalves(kBytes)];
    RunTiles(begin, end, arguments, memory);
  }

  void RunTiles(uint64_t begin, uint64_t end, const KernelArguments& arguments, std::byte* memory) const {
    Registers registers = {memory, memory + registers_bytes_, {}};
    for (uint64_t i = begin; i < end; ++i) RunTile(Tile(plan_, i), i == begin, arguments, registers);
    if (streams_) EndStream();
  }

  static constexpr uint64_t WithHalves(uint64_t bytes) { return bytes + bytes / 2; }

  // A tile as its loops go through it: rows of `columns` neighbours.
  struct Shape {
    uint64_t rows;
    uint64_t columns;
  };
  static Shape ShapeOf(const Tile& tile) {
    if (tile.rank == 2 && tile.loops[1].extent >= kShortestTileRow) {
      return {tile.loops[0].extent, tile.loops[1].extent};
    }
    return {1, tile.elements};
  }

  void Append(const ElementProblem& problem, const Instruction& instruction) {
    Step& step = steps_.emplace_back();
    step.instruction = instruction;
    switch (instruction.function) {
      case ElementFunction::kLoad: {
        const DataType type = problem.inputs[instruction.sources[0]].type;
        step.operand = instruction.sources[0];
        step.load = FindLoad(type, instruction.type);
        step.bytes = BitSize(type) / 8;
        step.same_bytes = SameBytes(type, instruction.type);
        step.storage = SourceStorage(type, instruction.type);
        break;
      }
      case ElementFunction::kStore: {
        const DataType type = problem.outputs[instruction.target].type;
        step.operand = inputs_ + instruction.target;
        step.store = FindStore(instruction.type, type);
        step.to_halves = instruction.type == Class::kF32 && type == DataType::kFloat16;
        step.bytes = BitSize(type) / 8;
        step.same_bytes = SameBytes(type, instruction.type);
        if (step.same_bytes) step.storage = Storage::kRegister;
        break;
      }
      case ElementFunction::kConstant:
      case ElementFunction::kConvert:
        break;
      default:
        step.loop = FindElementLoop(instruction.function, instruction.type);
    }
  }

  // Whether some step that reads the result of step `number` takes nothing but a register of numbers.
  bool NeedsWhole(size_t number) const {
    const uint8_t target = steps_[number].instruction.target;
    for (size_t i = number + 1; i < steps_.size(); ++i) {
      const Instruction& reader = steps_[i].instruction;
      if (reader.function == ElementFunction::kLoad) {
        if (reader.target == target) return false;
        continue;
      }
      for (int s = 0; s < InfoOf(reader.function).sources; ++s) {
        if (reader.sources[s] == target && !steps_[i].loop.converts) return true;
      }
      if (reader.function != ElementFunction::kStore && reader.target == target) return false;
    }
    return false;
  }

  // A loop that writes FLOAT16 rounds while it does, where all who read that can read it.
  void RoundWithResults() {
    for (size_t i = 1; i < steps_.size(); ++i) {
      const Instruction& rounding = steps_[i].instruction;
      Step& before = steps_[i - 1];
      if (rounding.function != ElementFunction::kRoundToHalf || before.rounds || !before.loop.converts ||
          before.instruction.type != Class::kF32 || before.instruction.to != Class::kF32 ||
          before.instruction.target != rounding.sources[0] || NeedsWhole(i) || IsReadAfter(i)) {
        continue;
      }
      before.rounds = true;
      before.instruction.target = rounding.target;
      steps_.erase(steps_.begin() + static_cast<ptrdiff_t>(i--));
    }
  }

  // Whether some step behind step `number` reads that one's source, too.
  bool IsReadAfter(size_t number) const {
    const uint8_t source = steps_[number].instruction.sources[0];
    if (steps_[number].instruction.target == source) return false;
    for (size_t i = number + 1; i < steps_.size(); ++i) {
      const Instruction& reader = steps_[i].instruction;
      if (reader.function != ElementFunction::kLoad) {
        for (int s = 0; s < InfoOf(reader.function).sources; ++s) {
          if (reader.sources[s] == source) return true;
        }
      }
      if (reader.function != ElementFunction::kStore && reader.target == source) return false;
    }
    return false;
  }

  // Which instructions have the same result for all elements, and which of these stay in their register.
  void FindUniform(const ElementProblem& problem) {
    std::array<bool, kMaxRegisters> uniform{};
    std::array<bool, kMaxRegisters> changes{};  // not the same for all tiles
    std::array<size_t, kMaxRegisters> last_writer{};
    for (size_t n = 0; n < steps_.size(); ++n) {
      Step& step = steps_[n];
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
      if (!step.uniform) changes[i.target] = true;
      last_writer[i.target] = n;
    }
    // What others read and a later step replaces is there again for the next tile only if it is done again.
    for (size_t n = 0; n < steps_.size(); ++n) {
      const Instruction& i = steps_[n].instruction;
      if (i.function == ElementFunction::kLoad) continue;
      const bool is_store = i.function == ElementFunction::kStore;
      for (int s = 0; s < InfoOf(i.function).sources; ++s) {
        const uint8_t from = i.sources[s];
        if (n <= last_writer[from] && (is_store || i.target != from)) changes[from] = true;
      }
    }
    for (Step& step : steps_) step.once = step.uniform && !changes[step.instruction.target];
  }

  void RunTile(const Tile& tile, bool first, const KernelArguments& arguments, Registers& r) const {
    const Shape shape = ShapeOf(tile);
    r.stored = false;
    for (const Step& step : steps_) {
      const Instruction& i = step.instruction;
      if (step.once && !first) continue;
      if (i.function == ElementFunction::kStore) {
        if (!r.stored) Store(step, tile, arguments, r);
        continue;
      }
      std::byte* const memory = step.rounds ? HalvesOf(i.target, r) : MemoryOf(i.target, r);
      LoopSource result = {.data = memory, .row_stride = shape.columns * sizeof(uint32_t)};
      if (step.rounds) {
        result.storage = Storage::kHalf;
        result.row_stride = shape.columns * sizeof(uint16_t);
      }
      switch (i.function) {
        case ElementFunction::kLoad:
          if (const auto halves = LoadAcross(step, tile, shape, arguments, HalvesOf(i.target, r))) {
            result = *halves;
          } else {
            result = Load(step, tile, shape, arguments, memory, &r.stored);
          }
          break;
        case ElementFunction::kConstant:
          std::memcpy(memory, &i.parameters[0], 8);
          break;
        case ElementFunction::kConvert:
          ConvertRegister(i.type, i.to, static_cast<DataType>(i.parameters[0]), r.values[i.sources[0]].data,
                          memory, step.uniform ? 1 : tile.elements);
          break;
        default:
          Apply(step, tile, shape, arguments, memory, r);
      }
      if (step.uniform) {
        result.uniform = !step.whole;
        if (result.uniform) result.row_stride = 0;
        // What is there once is there for the largest tile.
        if (step.whole) Repeat(memory, IsWide(i.to) ? 8 : 4, step.once ? tile_elements_ : tile.elements);
      }
      r.values[i.target] = result;
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

  std::byte* MemoryOf(uint32_t number, Registers& r) const { return r.memory + number * register_bytes_; }

  std::byte* HalvesOf(uint32_t number, Registers& r) const { return r.halves + number * register_bytes_ / 2; }

  // Calls body(block, position in the register) for the blocks of a tile.
  template <typename Body>
  static void ForEachBlock(const Tile& tile, uint32_t operand, Body&& body) {
    Block block;
    block.offset = tile.Offset(operand);
    if (tile.IsContiguous(operand)) {
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

  LoopSource Load(const Step& step, const Tile& tile, const Shape& shape, const KernelArguments& arguments,
                  std::byte* memory, bool* stored) const {
    const Instruction& i = step.instruction;
    const std::byte* const tensor = arguments.inputs[step.operand].data;
    const uint32_t width = IsWide(i.type) ? 8 : 4;
    if (step.uniform) {
      step.load(tensor, Block{}, memory);
      return {.data = memory};
    }
    if (aliases_ && !step.whole && step.storage) {
      if (const auto rows = RowsOf(step, tile, shape)) {
        return {.data = tensor + tile.Offset(step.operand) * step.bytes,
                .storage = *step.storage,
                .uniform = rows->uniform,
                .row_stride = rows->stride};
      }
    } else if (step.same_bytes && aliases_ && tile.IsContiguous(step.operand)) {
      return {.data = tensor + tile.Offset(step.operand) * width};
    }
    const Step& store = steps_.back();
    if (step.last && !streams_ && store.same_bytes && tile.IsContiguous(store.operand)) {
      memory = arguments.outputs[0].data + tile.Offset(store.operand) * width;
      *stored = true;
    }
    ForEachBlock(tile, step.operand,
                 [&](const Block& block, uint64_t at) { step.load(tensor, block, memory + at * width); });
    return {.data = memory, .row_stride = shape.columns * width};
  }

  // FLOAT16 that is only turned, not converted, where loops convert what they read.
  std::optional<LoopSource> LoadAcross(const Step& step, const Tile& tile, const Shape& shape,
                                       const KernelArguments& arguments, std::byte* halves) const {
    if (step.whole || step.storage != Storage::kHalf || tile.rank != 2) return {};
    const Tile::Loop &rows = tile.loops[0], &columns = tile.loops[1];
    const uint64_t stride = columns.loop->strides[step.operand];
    if (rows.loop->strides[step.operand] != 1 || stride <= 1) return {};
    const auto* const tensor = reinterpret_cast<const uint16_t*>(arguments.inputs[step.operand].data);
    TransposeBlock(tensor + tile.Offset(step.operand), static_cast<int64_t>(stride), rows.extent,
                   columns.extent, reinterpret_cast<uint16_t*>(halves), static_cast<int64_t>(columns.extent),
                   TransposeTo::kTile);
    return LoopSource{
        .data = halves, .storage = Storage::kHalf, .row_stride = shape.columns * sizeof(uint16_t)};
  }

  void Apply(const Step& step, const Tile& tile, const Shape& shape, const KernelArguments& arguments,
             std::byte* memory, Registers& r) const {
    const Instruction& i = step.instruction;
    LoopArguments run;
    run.instruction = &i;
    run.count = tile.elements;
    if (step.loop.converts) {
      run.rows = shape.rows;
      run.count = shape.columns;
    }
    run.target = {.data = memory, .row_stride = shape.columns * sizeof(uint32_t)};
    if (step.rounds) {
      run.target.storage = Storage::kHalf;
      run.target.row_stride = shape.columns * sizeof(uint16_t);
    }
    for (int s = 0; s < InfoOf(i.function).sources; ++s) run.sources[s] = r.values[i.sources[s]];
    if (step.uniform) {
      run.rows = run.count = 1;
    } else if (step.last) {
      r.stored = WriteIntoOutput(tile, shape, step.loop.converts, arguments, &run.target);
    }
    RunLoop(step.loop, run);
  }

  // Makes the output's own memory the target of a loop where that can write there.
  bool WriteIntoOutput(const Tile& tile, const Shape& shape, bool converts, const KernelArguments& arguments,
                       LoopTarget* target) const {
    const Step& store = steps_.back();
    const auto rows = RowsOf(store, tile, shape);
    if (!store.storage || !rows || (!converts && !tile.IsContiguous(store.operand))) return false;
    std::byte* const to = arguments.outputs[0].data + tile.Offset(store.operand) * store.bytes;
    const bool aligned = (reinterpret_cast<uintptr_t>(to) | rows->stride) % 64 == 0;
    if (streams_ && !converts) return false;
    *target = {
        .data = to, .storage = *store.storage, .streams = streams_ && aligned, .row_stride = rows->stride};
    return true;
  }

  // How an operand lies in a tile whose rows loops can take from it, or write to it, as they are.
  struct Rows {
    uint64_t stride;  // in bytes
    bool uniform;
  };
  static std::optional<Rows> RowsOf(const Step& step, const Tile& tile, const Shape& shape) {
    if (tile.IsContiguous(step.operand)) return Rows{shape.columns * step.bytes, false};
    if (tile.rank != (shape.rows > 1 ? 2u : 1u)) return {};
    const uint64_t stride = tile.loops[tile.rank - 1].loop->strides[step.operand];
    if (stride > 1) return {};
    return Rows{shape.rows > 1 ? tile.loops[0].loop->strides[step.operand] * step.bytes : 0, stride == 0};
  }

  void Store(const Step& step, const Tile& tile, const KernelArguments& arguments, const Registers& r) const {
    const Instruction& i = step.instruction;
    std::byte* const tensor = arguments.outputs[i.target].data;
    const uint32_t width = IsWide(i.type) ? 8 : 4;
    const auto* const values = static_cast<const std::byte*>(r.values[i.sources[0]].data);
    if (step.same_bytes && tile.IsContiguous(step.operand)) {
      std::byte* const to = tensor + tile.Offset(step.operand) * width;
      if (streams_) {
        StreamCopy(to, values, tile.elements * width);
      } else {
        std::memcpy(to, values, tile.elements * width);
      }
      return;
    }
    if (step.to_halves && streams_ && tile.IsContiguous(step.operand)) {
      auto* const to = reinterpret_cast<uint16_t*>(tensor) + tile.Offset(step.operand);
      if (reinterpret_cast<uintptr_t>(to) % 64 == 0) {
        return StreamFloatsToHalves(reinterpret_cast<const float*>(values), to, tile.elements);
      }
    }
    ForEachBlock(tile, step.operand,
                 [&](const Block& block, uint64_t at) { step.store(values + at * width, block, tensor); });
  }

  TilePlan plan_;
  uint64_t tile_elements_ = 1;                         // of the largest
  uint64_t register_bytes_ = 0, registers_bytes_ = 0;  // of one, of all
  bool on_stack_;
  bool brief_;  // done by one thread, with few registers
  uint64_t work_;
  ScratchLayout layout_;
  ScratchLayout::Piece registers_;
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
