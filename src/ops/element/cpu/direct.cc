#include <algorithm>
#include <array>
#include <optional>

#include "kernel/short_work.h"
#include "kernel/work_estimate.h"
#include "ops/common/parallel.h"
#include "ops/common/stream_copy.h"
#include "ops/element/cpu/tile_plan.h"
#include "ops/element/ordered_loops.h"
#include "ops/element/problem.h"
#include "ops/numbers/element_loops.h"

namespace anydml {
namespace {

// A thread's unit of work in a long row: many cache lines of every tensor.
constexpr uint64_t kPieceElements = 16384;
// Shorter rows, if there are several, are better joined in a tile.
constexpr uint64_t kShortestRow = 64;

// A program's only function, and the sources of its operands.
struct OneFunction {
  struct Source {
    bool is_constant = false;
    uint32_t constant = 0;  // bits
    uint32_t input = 0;
    Class type = Class::kF32;  // as which the input is loaded
  };
  Instruction instruction;
  std::array<Source, 3> sources;
};

std::optional<OneFunction> FindOneFunction(const ElementProgram& program) {
  const auto& instructions = program.instructions;
  if (instructions.size() < 3 || instructions.back().function != ElementFunction::kStore) return {};
  OneFunction one;
  one.instruction = instructions[instructions.size() - 2];
  if (one.instruction.function <= ElementFunction::kConvert) return {};
  if (instructions.back().sources[0] != one.instruction.target) return {};
  if (IsFloat(instructions.back().type) != IsFloat(one.instruction.to))
    return {};  // reinterprets bits as
                // another number
  std::array<OneFunction::Source, kMaxRegisters> registers;
  for (size_t i = 0; i + 2 < instructions.size(); ++i) {
    const Instruction& load = instructions[i];
    if (load.function == ElementFunction::kLoad) {
      registers[load.target] = {.input = load.sources[0], .type = load.type};
    } else if (load.function == ElementFunction::kConstant) {
      registers[load.target] = {.is_constant = true, .constant = static_cast<uint32_t>(load.parameters[0])};
    } else {
      return {};
    }
  }
  for (int s = 0; s < InfoOf(one.instruction.function).sources; ++s) {
    one.sources[s] = registers[one.instruction.sources[s]];
  }
  return one;
}

class ElementDirect final : public Kernel, public WorkEstimate {
 public:
  struct Operand {
    Storage storage = Storage::kRegister;
    uint32_t bytes = 4;   // per element
    uint32_t number = 0;  // index among inputs, then outputs
  };

  ElementDirect(const ElementProblem& problem, const OneFunction& one, const ElementLoop& loop,
                std::array<Operand, 4> operands, std::vector<TileLoop> loops, uint32_t threads)
      : one_(one), loop_(loop), operands_(operands), loops_(std::move(loops)) {
    if (!loops_.empty()) {
      row_ = std::move(loops_.back());
      loops_.pop_back();
    } else {
      row_.strides.resize(problem.inputs.size() + 1);
    }
    pieces_ = (row_.size + kPieceElements - 1) / kPieceElements;
    units_ = pieces_;
    for (const TileLoop& outer : loops_) units_ *= outer.size;
    streams_ = StreamsOutput(problem);
    parts_ = static_cast<uint32_t>(std::min<uint64_t>(PartsOf(problem, threads), units_));
    work_ = WorkBytes(problem);
    SetRun();
  }

  uint64_t work_bytes() const override { return work_; }

  Status Run(const KernelArguments& arguments) const override {
    // Without divisions, which cost as much as several elements.
    const auto alone = [&] { RunUnits(0, units_, arguments); };
    if (parts_ == 1) {
      alone();
      return {};
    }
    if (work_ <= ShortWork::kMostBytes && ShortWork::DoAlone(arguments.executor, alone)) return {};
    ParallelFor(arguments.executor, parts_, [&](uint32_t part) {
      RunUnits(PartBegin(units_, part, parts_), PartBegin(units_, part + 1, parts_), arguments);
    });
    return {};
  }

 private:
  void RunUnits(uint64_t begin, uint64_t end, const KernelArguments& arguments) const {
    for (uint64_t unit = begin; unit < end;) unit += RunAt(unit, end, arguments);
    if (streams_) EndStream();
  }

  // Sets what is the same for all pieces.
  void SetRun() {
    run_.instruction = &one_.instruction;
    for (int s = 0; s < loop_.sources; ++s) {
      if (one_.sources[s].is_constant) {
        run_.sources[s] = {.data = &one_.sources[s].constant, .uniform = true};
        continue;
      }
      const Operand& operand = operands_[s];
      run_.sources[s] = {.storage = operand.storage,
                         .uniform = row_.strides[operand.number] == 0,
                         .row_stride = RowStride(operand)};
    }
    run_.target = {.storage = operands_[3].storage, .row_stride = RowStride(operands_[3])};
  }

  // Runs a piece of a row, or several rows of one loop, from `unit` on; returns the number of units.
  uint64_t RunAt(uint64_t unit, uint64_t end, const KernelArguments& arguments) const {
    const uint64_t piece = pieces_ == 1 ? 0 : unit % pieces_;
    LoopArguments run = run_;
    run.count = std::min(kPieceElements, row_.size - piece * kPieceElements);
    if (pieces_ == 1 && !loops_.empty()) {
      run.rows = unit == 0 ? std::min(end, loops_.back().size)
                           : std::min(end - unit, loops_.back().size - unit % loops_.back().size);
    }
    const std::byte* const output = arguments.outputs[0].data;
    bool streams = streams_;
    for (int s = 0; s < loop_.sources; ++s) {
      if (one_.sources[s].is_constant) continue;
      const std::byte* const input = arguments.inputs[operands_[s].number].data;
      run.sources[s].data = input + OffsetOf(operands_[s], unit, piece);
      streams = streams && input != output;  // in place, the lines are in the caches already
    }
    std::byte* const to = arguments.outputs[0].data + OffsetOf(operands_[3], unit, piece);
    run.target.data = to;
    const uint64_t row_bytes = run.rows > 1 ? run.target.row_stride : 0;
    run.target.streams = streams && (reinterpret_cast<uintptr_t>(to) | row_bytes) % 64 == 0;
    RunLoop(loop_, run);
    return run.rows;
  }

  uint64_t RowStride(const Operand& operand) const {
    return loops_.empty() ? 0 : loops_.back().strides[operand.number] * operand.bytes;
  }

  uint64_t OffsetOf(const Operand& operand, uint64_t unit, uint64_t piece) const {
    if (unit == 0) return 0;
    uint64_t offset = piece * kPieceElements * row_.strides[operand.number];
    uint64_t rest = pieces_ == 1 ? unit : unit / pieces_;
    for (size_t d = loops_.size(); d-- > 0 && rest > 0; rest /= loops_[d].size) {
      offset += rest % loops_[d].size * loops_[d].strides[operand.number];
    }
    return offset * operand.bytes;
  }

  OneFunction one_;
  ElementLoop loop_;
  std::array<Operand, 4> operands_;  // the sources, then the target
  TileLoop row_;                     // the contiguous loop
  std::vector<TileLoop> loops_;      // over rows, outermost first
  LoopArguments run_;                // addresses and sizes are set per piece
  uint64_t pieces_ = 1;              // per row
  uint64_t units_ = 1;
  uint32_t parts_ = 1;
  uint64_t work_ = 0;
  bool streams_ = false;  // with non-temporal stores
};

}  // namespace

std::unique_ptr<const Kernel> CreateElementDirect(const ElementProblem& problem, const LowerContext& context,
                                                  std::string* why_not) {
  const std::optional<OneFunction> one = FindOneFunction(problem.program);
  const ElementLoop loop =
      one ? FindElementLoop(one->instruction.function, one->instruction.type) : ElementLoop();
  if (!loop.converts) {
    *why_not = "not one function with a vector loop";
    return nullptr;
  }
  auto loops = OrderedLoops<TileLoop>(problem);
  std::array<ElementDirect::Operand, 4> operands;
  const auto output = static_cast<uint32_t>(problem.inputs.size());
  // Whether a loop can use an operand directly in memory.
  const auto set = [&](ElementDirect::Operand* operand, uint32_t number, DataType type,
                       std::optional<Storage> storage) {
    if (!storage) {
      *why_not = "elements are converted in other ways than to and from FLOAT16, or to truth values";
      return false;
    }
    const uint64_t stride = loops.empty() ? 1 : loops.back().strides[number];
    if (stride > 1) {
      *why_not = "neighbours in the output are not neighbours in all tensors";
      return false;
    }
    *operand = {*storage, BitSize(type) / 8, number};
    return true;
  };
  for (int s = 0; s < InfoOf(one->instruction.function).sources; ++s) {
    if (one->sources[s].is_constant) continue;
    const uint32_t input = one->sources[s].input;
    const DataType type = problem.inputs[input].type;
    if (!set(&operands[s], input, type, SourceStorage(type, one->sources[s].type))) return nullptr;
  }
  const DataType type = problem.outputs[0].type;
  if (!set(&operands[3], output, type, TargetStorage(one->instruction, type))) return nullptr;
  if (loops.size() > 1 && loops.back().size < kShortestRow) {
    *why_not = "rows are short";
    return nullptr;
  }
  return std::make_unique<ElementDirect>(problem, *one, loop, operands, std::move(loops), context.threads);
}

}  // namespace anydml
