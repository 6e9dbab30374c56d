#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "kernel/scratch_layout.h"
#include "kernel/short_work.h"
#include "kernel/work_estimate.h"
#include "ops/common/parallel.h"
#include "ops/common/stream_copy.h"
#include "ops/common/transpose_block.h"
#include "ops/element/cpu/pipeline.h"
#include "ops/element/cpu/steps.h"
#include "ops/element/cpu/tile_plan.h"
#include "ops/element/cpu/tile_rows.h"
#include "ops/element/cpu/tile_size.h"
#include "ops/element/problem.h"
#include "ops/numbers/convert_rows.h"
#include "ops/numbers/element_loops.h"

namespace anydml {
namespace {

// Limits for short runs, which may be on an application's thread. A transposed input may need stack of its
// own, and twice as much for longer rows.
constexpr uint64_t kRegistersOfBriefRun = 16 << 10, kLongestBriefRowAcross = 128;

// From this size on, tensors are in no private cache.
constexpr uint64_t kFarBytes = 4 << 20;

// Whether each element of an operand is in a cache line of its own: WorkBytes counts bytes, not misses.
bool IsFarApart(const ElementProblem& problem) {
  constexpr uint64_t kLineBits = 512;
  const auto is_far = [&](const ElementOperand& operand) {
    uint64_t least = ~uint64_t{0};
    for (uint32_t d = 0; d < problem.rank; ++d) {
      if (problem.sizes[d] > 1 && operand.strides[d] != 0) least = std::min(least, operand.strides[d]);
    }
    return least != ~uint64_t{0} && least >= kLineBits / BitSize(operand.type);
  };
  return std::any_of(problem.inputs.begin(), problem.inputs.end(), is_far) ||
         std::any_of(problem.outputs.begin(), problem.outputs.end(), is_far);
}

// The overhead of a row: a run of elements that every operand has contiguous or broadcast.
constexpr uint64_t kRowBytes = 1 << 10;
uint64_t RowsOf(const TilePlan& plan, uint64_t elements) {
  if (plan.loops.empty()) return 1;
  const auto& strides = plan.loops.back().strides;
  const bool runs = std::all_of(strides.begin(), strides.end(), [](uint64_t stride) { return stride <= 1; });
  return runs ? elements / plan.loops.back().size : elements;
}

struct Registers {
  std::byte* memory;
  std::byte* halves;                             // for numbers that are kept as FLOAT16
  std::array<LoopSource, kMaxRegisters> values;  // in `memory`, or in a tensor
  bool stored = false;                           // the last step has written to the output
};

class ElementTiles final : public Kernel, public WorkEstimate {
 public:
  ElementTiles(const ElementProblem& problem, uint32_t threads)
      : steps_(ElementSteps(problem)),
        pipelines_(FindPipelines(steps_)),
        plan_(problem, TileElements(problem, steps_, pipelines_), ElementsAcross(problem.program)) {
    for (const TileLoop& loop : plan_.loops) tile_elements_ *= loop.chunk;
    asks_ = plan_.across && WorkBytes(problem) >= kFarBytes;
    register_bytes_ = (tile_elements_ * WidthOf(problem.program) + 63) / 64 * 64;
    streams_ = StreamsOutput(problem);
    aliases_ = problem.outputs.size() == 1;
    const uint32_t parts = plan_.SharesBytes(problem) ? 1 : PartsOf(problem, threads);
    parts_ = static_cast<uint32_t>(std::min<uint64_t>(parts, plan_.tiles));
    registers_bytes_ = problem.program.registers * register_bytes_;
    on_stack_ = registers_bytes_ <= kRegistersOnStack;
    brief_ = registers_bytes_ <= kRegistersOfBriefRun &&
             (!plan_.across || plan_.loops.back().chunk <= kLongestBriefRowAcross);
    work_ =
        IsFarApart(problem) ? kUnknown : WorkBytes(problem) + kRowBytes * RowsOf(plan_, problem.Elements());
    if (!on_stack_) {
      parts_ = std::min(parts_, threads);
      registers_ = layout_.Add("registers", parts_ * WithHalves(registers_bytes_), 64);
    }
  }

  uint64_t temporary_bytes() const override { return layout_.bytes(); }
  uint64_t work_bytes() const override { return brief_ ? work_ : kUnknown; }

  Status Run(const KernelArguments& arguments) const override {
    const auto alone = [&] { RunOnStack<kRegistersOfBriefRun>(0, plan_.tiles, arguments); };
    if (brief_ && parts_ == 1) {
      alone();
      return {};
    }
    const bool is_short = brief_ && work_ <= ShortWork::kMostBytes;
    if (is_short && ShortWork::DoAlone(arguments.executor, alone)) return {};
    ParallelFor(arguments.executor, parts_, [&](uint32_t part) {
      const uint64_t begin = PartBegin(plan_.tiles, part, parts_);
      const uint64_t end = PartBegin(plan_.tiles, part + 1, parts_);
      if (brief_) return RunOnStack<kRegistersOfBriefRun>(begin, end, arguments);
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

  void RunTile(const Tile& tile, bool first, const KernelArguments& arguments, Registers& r) const {
    const TileShape shape = ShapeOf(tile);
    r.stored = false;
    size_t next = 0;  // index of the next pipeline
    for (size_t n = 0; n < steps_.size(); ++n) {
      if (next < pipelines_.size() && pipelines_[next].begin == n) {
        const Pipeline& pipeline = pipelines_[next++];
        if (RunSteps(pipeline, tile, shape, first, arguments, r)) {
          n = pipeline.end - 1;
          continue;
        }
      }
      RunStep(steps_[n], tile, shape, first, arguments, r);
    }
  }

  // Runs the tile through a pipeline, if it suits one; returns whether it did.
  bool RunSteps(const Pipeline& pipeline, const Tile& tile, const TileShape& shape, bool first,
                const KernelArguments& arguments, Registers& r) const {
    if (shape.columns < pipeline.set->block) return false;
    for (size_t n = pipeline.begin; n < pipeline.end; ++n) {
      if (Pipeline::IsInFront(steps_[n])) RunStep(steps_[n], tile, shape, first, arguments, r);
    }
    const auto place = [&](uint32_t number, bool halves) {
      return LoopTarget{.data = halves ? HalvesOf(number, r) : MemoryOf(number, r),
                        .storage = halves ? Storage::kHalf : Storage::kRegister,
                        .row_stride = shape.columns * (halves ? sizeof(uint16_t) : sizeof(uint32_t))};
    };
    PipelineOperands operands;
    bool stored =
        steps_[pipeline.end - 1].last && WriteIntoOutput(tile, shape, true, arguments, &operands.target);
    stored = stored && operands.target.storage != Storage::kByte;
    bool halves = !pipeline.half_stages.empty() && shape.columns >= pipeline.half_set->block &&
                  (stored ? operands.target.storage == Storage::kHalf : pipeline.rounds);
    for (uint32_t i = 0; i < kMaxRegisters; ++i) {
      if ((pipeline.sources >> i & 1) == 0) continue;
      operands.sources[i] = r.values[i];
      halves = halves && r.values[i].storage == Storage::kHalf;
    }
    for (uint32_t i = 0; i < kMaxRegisters; ++i) {
      if ((pipeline.kept >> i & 1) != 0) operands.kept[i] = place(i, halves);
      LoopSource& source = operands.sources[i];
      if (!halves && (pipeline.sources >> i & 1) != 0 && source.storage == Storage::kHalf &&
          !source.uniform) {
        source = FloatsOf(source, shape, MemoryOf(i, r));
      }
    }
    if (!stored) operands.target = place(pipeline.target, halves);
    RunPipeline(pipeline, halves, operands, shape.rows, shape.columns);
    r.stored = stored;
    const auto set = [&](uint32_t number, const LoopTarget& from) {
      r.values[number] = {.data = from.data, .storage = from.storage, .row_stride = from.row_stride};
    };
    for (uint32_t i = 0; i < kMaxRegisters; ++i) {
      if ((pipeline.kept >> i & 1) != 0) set(i, operands.kept[i]);
    }
    set(pipeline.target, operands.target);
    return true;
  }

  void RunStep(const ElementStep& step, const Tile& tile, const TileShape& shape, bool first,
               const KernelArguments& arguments, Registers& r) const {
    const Instruction& i = step.instruction;
    if (step.once && !first) {
      if (step.whole) r.values[i.target].row_stride = shape.columns * sizeof(uint32_t);  // of this tile
      return;
    }
    if (i.function == ElementFunction::kStore) {
      if (!r.stored) Store(step, tile, arguments, r);
      return;
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
      result.row_stride = step.whole ? shape.columns * sizeof(uint32_t) : 0;
      // Values that are set once must fill the largest tile.
      if (step.whole) Repeat(memory, IsWide(i.to) ? 8 : 4, step.once ? tile_elements_ : tile.elements);
    }
    r.values[i.target] = result;
  }

  // Copies element 0 to elements 1 to `count` - 1.
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

  LoopSource Load(const ElementStep& step, const Tile& tile, const TileShape& shape,
                  const KernelArguments& arguments, std::byte* memory, bool* stored) const {
    const Instruction& i = step.instruction;
    const std::byte* const tensor = arguments.inputs[step.operand].data;
    const uint32_t width = IsWide(i.type) ? 8 : 4;
    if (step.uniform) {
      step.load(tensor, Block{}, memory);
      return {.data = memory};
    }
    if (aliases_ && !step.whole && step.storage) {
      if (const auto rows = RowsOf(step, tile, shape)) {
        const LoopSource source = {.data = tensor + tile.Offset(step.operand) * step.bytes,
                                   .storage = *step.storage,
                                   .uniform = rows->uniform,
                                   .row_stride = rows->stride};
        if (asks_ && !source.uniform) AskForRows(source, shape.rows, shape.columns * step.bytes);
        return source;
      }
    } else if (step.same_bytes && aliases_ && tile.IsContiguous(step.operand)) {
      return {.data = tensor + tile.Offset(step.operand) * width, .row_stride = shape.columns * width};
    }
    const ElementStep& store = steps_.back();
    uint64_t row_stride = 0;
    if (step.last && !streams_ && store.same_bytes) {
      const auto rows = RowsOf(store, tile, shape);
      *stored = tile.IsContiguous(store.operand) ||
                (rows && shape.rows > 1 && !tile.IsContiguous(step.operand));  // one block of rows
      if (*stored) memory = arguments.outputs[0].data + tile.Offset(store.operand) * width;
      if (*stored && shape.rows > 1) row_stride = rows->stride / width;
    }
    ForEachBlock(tile, step.operand, [&](Block block, uint64_t at) {
      if (block.rows > 1) block.register_stride = row_stride;
      block.goes_on = asks_;
      step.load(tensor, block, memory + at * width);
    });
    return {.data = memory, .row_stride = shape.columns * width};
  }

  // Transposes FLOAT16 without converting it, if the loops that read it convert.
  std::optional<LoopSource> LoadAcross(const ElementStep& step, const Tile& tile, const TileShape& shape,
                                       const KernelArguments& arguments, std::byte* halves) const {
    if (step.whole || step.storage != Storage::kHalf || tile.rank != 2) return {};
    const Tile::Loop &rows = tile.loops[0], &columns = tile.loops[1];
    const uint64_t stride = columns.loop->strides[step.operand];
    if (rows.loop->strides[step.operand] != 1 || stride <= 1) return {};
    const auto* const tensor = reinterpret_cast<const uint16_t*>(arguments.inputs[step.operand].data);
    TransposeBlock(tensor + tile.Offset(step.operand), static_cast<int64_t>(stride), rows.extent,
                   columns.extent, reinterpret_cast<uint16_t*>(halves), static_cast<int64_t>(columns.extent),
                   asks_ ? TransposeTo::kTiles : TransposeTo::kTile);
    return LoopSource{
        .data = halves, .storage = Storage::kHalf, .row_stride = shape.columns * sizeof(uint16_t)};
  }

  void Apply(const ElementStep& step, const Tile& tile, const TileShape& shape,
             const KernelArguments& arguments, std::byte* memory, Registers& r) const {
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

  // Makes the output the target of a loop if the loop can write there directly.
  bool WriteIntoOutput(const Tile& tile, const TileShape& shape, bool converts,
                       const KernelArguments& arguments, LoopTarget* target) const {
    const ElementStep& store = steps_.back();
    const auto rows = RowsOf(store, tile, shape);
    if (!store.storage || !rows || (!converts && !tile.IsContiguous(store.operand))) return false;
    std::byte* const to = arguments.outputs[0].data + tile.Offset(store.operand) * store.bytes;
    const bool aligned = (reinterpret_cast<uintptr_t>(to) | rows->stride) % 64 == 0;
    if (streams_ && !converts) return false;
    *target = {
        .data = to, .storage = *store.storage, .streams = streams_ && aligned, .row_stride = rows->stride};
    return true;
  }

  void Store(const ElementStep& step, const Tile& tile, const KernelArguments& arguments,
             const Registers& r) const {
    const Instruction& i = step.instruction;
    std::byte* const tensor = arguments.outputs[i.target].data;
    const uint32_t width = IsWide(i.type) ? 8 : 4;
    const auto* const values = static_cast<const std::byte*>(r.values[i.sources[0]].data);
    if (streams_ && (step.same_bytes || step.to_halves) && StreamRows(step, tile, values, tensor)) return;
    if (step.same_bytes && tile.IsContiguous(step.operand)) {
      std::memcpy(tensor + tile.Offset(step.operand) * width, values, tile.elements * width);
      return;
    }
    ForEachBlock(tile, step.operand,
                 [&](const Block& block, uint64_t at) { step.store(values + at * width, block, tensor); });
  }

  std::vector<ElementStep> steps_;
  std::vector<Pipeline> pipelines_;  // in order
  TilePlan plan_;
  uint64_t tile_elements_ = 1;                         // in the largest tile
  uint64_t register_bytes_ = 0, registers_bytes_ = 0;  // of one register, of all
  bool on_stack_;
  bool brief_;  // for short runs: few registers
  uint64_t work_;
  ScratchLayout layout_;
  ScratchLayout::Piece registers_;
  uint32_t parts_ = 1;
  bool streams_ = false;  // with non-temporal stores
  bool asks_ = false;     // prefetch rows of the inputs beside the transposed one
  bool aliases_ = false;  // registers may be in a tensor's memory, because nothing is written before
                          // everything is read
};

}  // namespace

std::unique_ptr<const Kernel> CreateElementTiles(const ElementProblem& problem, const LowerContext& context,
                                                 std::string*) {
  return std::make_unique<ElementTiles>(problem, context.threads);
}

}  // namespace anydml
