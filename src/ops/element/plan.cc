#include "ops/element/plan.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/status.h"
#include "ops/element/ordered_loops.h"

namespace anydml::element_device {
namespace {

constexpr uint32_t kAccessBytes = 16;  // the largest access of an instruction
constexpr uint32_t kTileColumns = 32;
constexpr uint64_t kShortestAcross = 2;

// Turns a program's instructions into steps: loads and constants become sources of the steps that use them;
// results that a later step cannot take from the accumulator are kept in slots.
class StepMaker {
 public:
  StepMaker(const ElementProblem& problem, MachinePlan* plan) : problem_(problem), plan_(*plan) {}

  bool Make(std::string* why_not) {
    if (!NumberOperands(why_not)) return false;
    for (const Instruction& instruction : problem_.program.instructions) {
      if (!Append(instruction, why_not)) return false;
    }
    return true;
  }

  uint32_t slots() const { return plan_.machine.inputs + kept_registers_; }

 private:
  // The value in a register.
  struct Value {
    Source source;  // kNone: the result of `step`
    int step = -1;
    bool uniform = false;
  };

  bool NumberOperands(std::string* why_not) {
    std::array<uint32_t, 256> input_of{}, output_of{};
    const auto add = [&](uint8_t binding, const ElementOperand& operand, std::array<uint32_t, 256>& number) {
      if (number[binding] != 0) return;
      if (plan_.operands < kMaxOperands) {
        plan_.bindings[plan_.operands] = binding;
        plan_.machine.operands[plan_.operands].type = operand.type;
        plan_.machine.operands[plan_.operands].bits = static_cast<uint8_t>(BitSize(operand.type));
      }
      number[binding] = ++plan_.operands;
    };
    const auto& instructions = problem_.program.instructions;
    for (const Instruction& i : instructions) {
      if (i.function == ElementFunction::kLoad) add(i.sources[0], problem_.inputs[i.sources[0]], input_of);
    }
    plan_.machine.inputs = plan_.operands;
    for (const Instruction& i : instructions) {
      if (i.function == ElementFunction::kStore) add(i.target, problem_.outputs[i.target], output_of);
    }
    if (plan_.operands > kMaxOperands) {
      *why_not = StrCat("the program has ", plan_.operands, " tensors, at most ", kMaxOperands, " fit");
      return false;
    }
    for (size_t i = 0; i < 256; ++i) {
      input_[i] = static_cast<uint8_t>(input_of[i] - 1);
      output_[i] = static_cast<uint8_t>(output_of[i] - 1);
    }
    return true;
  }

  bool Append(const Instruction& instruction, std::string* why_not) {
    if (instruction.function == ElementFunction::kLoad) {
      const uint8_t binding = instruction.sources[0];
      const auto& strides = problem_.inputs[binding].strides;
      Source source = {Source::kSlot, input_[binding], false, 0, static_cast<uint8_t>(instruction.type)};
      source.type = static_cast<uint8_t>(InSlot(problem_.inputs[binding].type));
      const bool uniform = std::all_of(strides.begin(), strides.end(), [](uint64_t s) { return s == 0; });
      values_[instruction.target] = {source, -1, uniform};
      return true;
    }
    if (instruction.function == ElementFunction::kConstant) {
      if (constants_ == kMaxConstants) {
        *why_not = StrCat("the program has more than ", kMaxConstants, " constants");
        return false;
      }
      plan_.machine.constants[constants_] = instruction.parameters[0];
      values_[instruction.target] = {{Source::kConstant, static_cast<uint8_t>(constants_++)}, -1, true};
      return true;
    }
    if (instruction.function == ElementFunction::kStore && StoreWithLast(instruction)) return true;
    if (plan_.machine.steps_end == kMaxSteps) {
      *why_not = StrCat("the program has more than ", kMaxSteps, " steps");
      return false;
    }
    AppendStep(instruction);
    return true;
  }

  // A step can store its own result, once.
  bool StoreWithLast(const Instruction& store) {
    if (plan_.machine.steps_end == 0) return false;
    Step& last = plan_.machine.steps[plan_.machine.steps_end - 1];
    const int number = static_cast<int>(plan_.machine.steps_end) - 1;
    if (values_[store.sources[0]].step != number || (last.flags & Step::kStore) != 0) return false;
    last.flags |= Step::kStore;
    last.output = output_[store.target];
    last.instruction.to = store.type;
    return true;
  }

  void AppendStep(const Instruction& instruction) {
    const bool is_store = instruction.function == ElementFunction::kStore;
    const int number = static_cast<int>(plan_.machine.steps_end++);
    Step& step = plan_.machine.steps[number];
    step.instruction = instruction;
    step.uniform = true;
    for (int s = 0; s < InfoOf(instruction.function).sources; ++s) {
      const Value& value = values_[instruction.sources[s]];
      step.sources[s] = SourceOf(value, s);
      step.uniform = step.uniform && value.uniform;
      if (step.sources[s].kind != Source::kAccumulator) step.flags |= Step::kFirst << s;
    }
    if (is_store) {
      step.code = kNoFunction;
      step.flags |= Step::kStore;
      step.output = output_[instruction.target];
      in_accumulator_ = values_[instruction.sources[0]].step;
      return;
    }
    step.code = plan_.wide ? WideCode(instruction.function, instruction.type)
                           : NarrowCode(instruction.function, instruction.type);
    values_[instruction.target] = {{}, number, step.uniform};
    registers_[number] = instruction.target;
    in_accumulator_ = number;
  }

  Source SourceOf(const Value& value, int s) {
    if (value.step < 0) return value.source;
    if (s == 0 && value.step == in_accumulator_) return {Source::kAccumulator};
    Step& writer = plan_.machine.steps[value.step];
    uint8_t& slot = slot_of_register_[registers_[value.step]];
    if (slot == 0) slot = static_cast<uint8_t>(plan_.machine.inputs + ++kept_registers_);
    writer.flags |= Step::kKeep;
    writer.slot = static_cast<uint8_t>(slot - 1);
    // As bits.
    const auto type = plan_.wide ? DataType::kUInt64 : DataType::kUInt32;
    const auto to = plan_.wide ? Class::kU64 : Class::kU32;
    return {Source::kSlot, writer.slot, false, static_cast<uint8_t>(type), static_cast<uint8_t>(to)};
  }

  // 4-bit elements are bytes in slots.
  static DataType InSlot(DataType type) {
    if (type == DataType::kUInt4) return DataType::kUInt8;
    return type == DataType::kInt4 ? DataType::kInt8 : type;
  }

  const ElementProblem& problem_;
  MachinePlan& plan_;
  std::array<uint8_t, 256> input_{}, output_{};  // operand by binding
  std::array<Value, 256> values_{};              // per register
  std::array<uint8_t, kMaxSteps> registers_{};   // target by step
  std::array<uint8_t, 256> slot_of_register_{};  // plus one; 0: none
  uint32_t kept_registers_ = 0;
  uint32_t constants_ = 0;
  int in_accumulator_ = -1;  // the step whose result is in the accumulator
};

uint32_t BytesOf(DataType type) { return std::max(1u, BitSize(type) / 8); }

// Plans how the machine walks the elements.
class NestMaker {
 public:
  NestMaker(const ElementProblem& problem, MachinePlan* plan)
      : inputs_(problem.inputs.size()),
        plan_(*plan),
        machine_(plan->machine),
        thread_elements_(plan->wide ? 4 : 8),
        loops_(OrderedLoops<OrderedLoop>(problem)) {}

  void Make(bool with_groups) {
    ChooseTile();
    if (with_groups) ChooseGroup();
    machine_.rank = static_cast<uint32_t>(loops_.size());
    for (uint32_t d = 0; d < machine_.rank; ++d) {
      machine_.sizes[d] = FastDivisor(static_cast<uint32_t>(loops_[d].size));
      machine_.elements *= loops_[d].size;
    }
    uint64_t slot_bytes = uint64_t{kThreads} * kRegisterBytes;
    for (uint32_t o = 0; o < plan_.operands; ++o) {
      MachineOperand& operand = machine_.operands[o];
      for (uint32_t d = 0; d < machine_.rank; ++d) operand.strides[d] = StrideOf(o, d);
      operand.access = AccessOf(o);
      operand.in_order = !machine_.tiled && IsInOrder(o);
      if (operand.access != Access::kTile) continue;
      const uint64_t tile = ((uint64_t{1} << machine_.log2_columns) + 1) << machine_.log2_rows;
      slot_bytes = std::max(slot_bytes, tile * BytesOf(operand.type));
    }
    machine_.slot_bytes =
        static_cast<uint32_t>((slot_bytes + kAccessBytes - 1) / kAccessBytes * kAccessBytes);
    const uint64_t tile_elements = uint64_t{thread_elements_} * kThreads;
    plan_.blocks = machine_.tiled ? tiles_ : (machine_.elements + tile_elements - 1) / tile_elements;
  }

 private:
  uint64_t StrideOf(uint32_t operand, size_t loop) const {
    const size_t at = plan_.bindings[operand] + (operand < machine_.inputs ? 0 : inputs_);
    return loops_[loop].strides[at];
  }
  uint64_t InnermostStride(uint32_t operand) const {
    return loops_.empty() ? 0 : StrideOf(operand, loops_.size() - 1);
  }

  bool IsInOrder(uint32_t operand) const {
    uint64_t expected = 1;
    for (size_t d = loops_.size(); d-- > 0; expected *= loops_[d].size) {
      if (StrideOf(operand, d) != expected) return false;
    }
    return true;
  }

  // Uses tiles if most of each tile is filled.
  void ChooseTile() {
    if (loops_.size() < 2) return;
    const size_t across = FindAcross(loops_, inputs_, kShortestAcross);
    if (across + 1 == loops_.size()) return;
    const uint32_t tile = thread_elements_ * kThreads;
    const uint64_t rows = loops_[across].size, columns = loops_.back().size;
    const auto at_most = [](uint64_t size, uint32_t bound) {
      return static_cast<uint32_t>(std::bit_ceil(std::min<uint64_t>(size, bound)));
    };
    uint32_t tile_columns = std::max(8u, at_most(columns, kTileColumns));
    const uint32_t tile_rows = at_most(rows, tile / tile_columns);
    tile_columns = tile / tile_rows;
    if (std::min<uint64_t>(rows, tile_rows) * std::min<uint64_t>(columns, tile_columns) < tile / 4) return;
    MoveBesideLast(&loops_, across);
    machine_.tiled = true;
    machine_.log2_rows = static_cast<uint32_t>(std::bit_width(tile_rows) - 1);
    machine_.log2_columns = static_cast<uint32_t>(std::bit_width(tile_columns) - 1);
    const uint64_t row_tiles = (rows + tile_rows - 1) / tile_rows;
    const uint64_t column_tiles = (columns + tile_columns - 1) / tile_columns;
    machine_.row_tiles = FastDivisor(static_cast<uint32_t>(row_tiles));
    machine_.column_tiles = FastDivisor(static_cast<uint32_t>(column_tiles));
    tiles_ = row_tiles * column_tiles;
    for (size_t d = 0; d + 2 < loops_.size(); ++d) tiles_ *= loops_[d].size;
  }

  // The size of the widest operand's access, dividing the contiguous lengths of all operands.
  void ChooseGroup() {
    if (loops_.empty()) return;
    uint32_t widest = 1;
    for (uint32_t o = 0; o < plan_.operands; ++o) {
      widest = std::max(widest, BytesOf(machine_.operands[o].type));
    }
    uint32_t group = std::min(thread_elements_, kAccessBytes / widest);
    while (group > 1 && !Allows(group)) group /= 2;
    // One or two groups per thread have their own code.
    if (thread_elements_ / group <= 2) machine_.log2_group = static_cast<uint32_t>(std::bit_width(group) - 1);
  }

  bool Allows(uint32_t group) const {
    if (loops_.size() > 1 && loops_.back().size % group != 0) return false;
    for (uint32_t o = 0; o < plan_.operands; ++o) {
      if (InnermostStride(o) != 1) continue;
      for (size_t d = 0; d + 1 < loops_.size(); ++d) {
        if (StrideOf(o, d) % group != 0) return false;
      }
    }
    return true;
  }

  Access AccessOf(uint32_t operand) const {
    const uint64_t stride = InnermostStride(operand);
    if (machine_.tiled && operand < machine_.inputs && BitSize(machine_.operands[operand].type) >= 8) {
      const uint64_t beside = StrideOf(operand, loops_.size() - 2);
      if (stride > 1 && beside > 0 && beside < stride) return Access::kTile;
    }
    if (machine_.log2_group == 0 || stride > 1) return Access::kSingle;
    return stride == 1 ? Access::kVector : Access::kRepeated;
  }

  const size_t inputs_;
  MachinePlan& plan_;
  Machine& machine_;
  const uint32_t thread_elements_;
  std::vector<OrderedLoop> loops_;
  uint64_t tiles_ = 0;
};

Form FormOf(const Source& source) {
  if (source.kind == Source::kConstant) return Form::kConstant;
  const bool to_float = static_cast<Class>(source.to) == Class::kF32;
  switch (static_cast<DataType>(source.type)) {
    case DataType::kFloat16:
      return Form::kHalfToFloat;
    case DataType::kInt8:
      return to_float ? Form::kInt8ToFloat : Form::kInt8;
    case DataType::kUInt8:
      return to_float ? Form::kUInt8ToFloat : Form::kUInt8;
    case DataType::kInt16:
      return to_float ? Form::kInt16ToFloat : Form::kInt16;
    case DataType::kUInt16:
      return to_float ? Form::kUInt16ToFloat : Form::kUInt16;
    case DataType::kInt32:
      return to_float ? Form::kInt32ToFloat : Form::kWords;
    case DataType::kUInt32:
      return to_float ? Form::kUInt32ToFloat : Form::kWords;
    default:
      return Form::kWords;
  }
}

void CompleteSources(Machine* machine) {
  for (Step& step : machine->steps) {
    for (Source& source : step.sources) {
      source.form = FormOf(source);
      source.is_tile = source.kind == Source::kSlot && source.index < machine->inputs &&
                       machine->operands[source.index].access == Access::kTile;
    }
  }
}

}  // namespace

bool MakePlan(const ElementProblem& problem, bool with_groups, MachinePlan* plan, std::string* why_not) {
  plan->wide = problem.program.wide();
  for (const auto* operands : {&problem.inputs, &problem.outputs}) {
    for (const ElementOperand& operand : *operands) plan->wide |= BitSize(operand.type) == 64;
  }
  StepMaker steps(problem, plan);
  if (!steps.Make(why_not)) return false;
  NestMaker(problem, plan).Make(with_groups);
  CompleteSources(&plan->machine);
  plan->shared_bytes = steps.slots() * plan->machine.slot_bytes;
  return true;
}

bool IsAligned(const Machine& machine, uint32_t operands) {
  for (uint32_t o = 0; o < operands; ++o) {
    const MachineOperand& operand = machine.operands[o];
    if (operand.access != Access::kVector) continue;
    const uint32_t bytes = std::max(1u, (BitSize(operand.type) << machine.log2_group) / 8);
    if (reinterpret_cast<uintptr_t>(operand.data) % bytes != 0) return false;
  }
  return true;
}

}  // namespace anydml::element_device
