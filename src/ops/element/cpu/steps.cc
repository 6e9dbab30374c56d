#include "ops/element/cpu/steps.h"

#include <algorithm>
#include <array>

namespace anydml {
namespace {

class StepList {
 public:
  explicit StepList(const ElementProblem& problem) {
    for (const Instruction& instruction : problem.program.instructions) Append(problem, instruction);
    RoundWithResults();
    for (size_t i = 0; i < steps_.size(); ++i) steps_[i].whole = NeedsWhole(i);
    FindUniform(problem);
    if (problem.outputs.size() == 1) FindLast(problem);
  }

  std::vector<ElementStep> Take() { return std::move(steps_); }

 private:
  void Append(const ElementProblem& problem, const Instruction& instruction) {
    ElementStep& step = steps_.emplace_back();
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
        step.operand = static_cast<uint32_t>(problem.inputs.size()) + instruction.target;
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

  // Whether a step that reads the result of step `number` needs a register of numbers: its loop does not
  // convert, or it reads the bits as another class (those of a FLOAT32).
  bool NeedsWhole(size_t number) const {
    const Instruction& of = steps_[number].instruction;
    const uint8_t target = of.target;
    for (size_t i = number + 1; i < steps_.size(); ++i) {
      const Instruction& reader = steps_[i].instruction;
      if (reader.function == ElementFunction::kLoad) {
        if (reader.target == target) return false;
        continue;
      }
      for (int s = 0; s < InfoOf(reader.function).sources; ++s) {
        if (reader.sources[s] == target && (!steps_[i].loop.converts || reader.type != of.to)) return true;
      }
      if (reader.function != ElementFunction::kStore && reader.target == target) return false;
    }
    return false;
  }

  // Lets a loop that can write FLOAT16 round as it stores, if all readers can read FLOAT16.
  void RoundWithResults() {
    for (size_t i = 1; i < steps_.size(); ++i) {
      const Instruction& rounding = steps_[i].instruction;
      ElementStep& before = steps_[i - 1];
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

  // Whether a step after step `number` reads that step's source, too.
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

  // Finds the instructions whose result is the same for all elements, and those of them that keep their
  // register.
  void FindUniform(const ElementProblem& problem) {
    std::array<bool, kMaxRegisters> uniform{};
    std::array<bool, kMaxRegisters> changes{};  // differs between tiles
    std::array<size_t, kMaxRegisters> last_writer{};
    for (size_t n = 0; n < steps_.size(); ++n) {
      ElementStep& step = steps_[n];
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
    // A value that is read and later overwritten must be computed again for the next tile.
    for (size_t n = 0; n < steps_.size(); ++n) {
      const Instruction& i = steps_[n].instruction;
      if (i.function == ElementFunction::kLoad) continue;
      const bool is_store = i.function == ElementFunction::kStore;
      for (int s = 0; s < InfoOf(i.function).sources; ++s) {
        const uint8_t from = i.sources[s];
        if (n <= last_writer[from] && (is_store || i.target != from)) changes[from] = true;
      }
    }
    for (ElementStep& step : steps_) step.once = step.uniform && !changes[step.instruction.target];
  }

  void FindLast(const ElementProblem& problem) {
    if (steps_.size() < 2) return;
    ElementStep& last = steps_[steps_.size() - 2];
    ElementStep& store = steps_.back();
    last.last = last.instruction.target == store.instruction.sources[0];
    if (last.loop.converts && IsFloat(last.instruction.to) == IsFloat(store.instruction.type)) {
      store.storage = TargetStorage(last.instruction, problem.outputs[0].type);
    }
  }

  std::vector<ElementStep> steps_;
};

}  // namespace

std::vector<ElementStep> ElementSteps(const ElementProblem& problem) { return StepList(problem).Take(); }

}  // namespace anydml
