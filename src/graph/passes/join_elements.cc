#include "graph/passes/join_elements.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>

namespace anydml {
namespace {

using Function = ElementFunction;

// Joining more would take more time than it saves.
constexpr size_t kMaxOperands = 32;
constexpr size_t kMaxLines = 160;

struct Operand {
  GraphOperand place;
  ElementOperand layout;
};

// An instruction in single-assignment form: its sources and its target are numbers, each written once.
struct Line {
  Instruction instruction;
  int target = -1;
  std::array<int, 3> sources{-1, -1, -1};
};

int SourcesOf(const Line& line) { return InfoOf(line.instruction.function).sources; }

// A value that a member stored, for members that load it.
struct Held {
  Operand operand;
  int number = -1;     // -1: it was only moved
  Class type = {};     // of the number,
  Operand moved_from;  // or its place in memory
  struct Loaded {
    DataType type;
    Class as;
    int number;
  };
  std::vector<Loaded> loaded = {};
};

class Joiner {
 public:
  explicit Joiner(const std::function<bool(uint32_t value)>& is_needed) : is_needed_(is_needed) {}

  bool Add(const ElementWork& member);
  std::optional<ElementWork> Finish(const ElementProblem& loops);

 private:
  bool AddMove(const ElementWork& member);
  int Emit(const Instruction& instruction, std::array<int, 3> sources);
  int Apply(Function function, Class from, Class to, int source, uint64_t parameter0 = 0,
            uint64_t parameter1 = 0) {
    return Emit({function, from, to, 0, {0, 0, 0}, {parameter0, parameter1}}, {source, -1, -1});
  }
  int Convert(int number, Class from, Class to, DataType range) {
    return Apply(Function::kConvert, from, to, number, static_cast<uint64_t>(range));
  }
  int Wrap(int number, DataType type);
  int Load(const Operand& operand, Class type);
  int LoadFromMemory(const Operand& operand, Class type);
  int Reload(const Held& held, DataType type, Class as);
  int ReloadInteger(const Held& held, DataType type);
  void Store(const Operand& operand, int number, Class type);
  void RemoveUnused();
  void ShareLoads();
  bool AssignRegisters(ElementProgram* program) const;

  const std::function<bool(uint32_t value)>& is_needed_;
  std::vector<Line> lines_;
  std::vector<char> is_truth_;  // per number: whether it is 0 or 1, which every type represents
  std::vector<Operand> inputs_;
  std::vector<Operand> outputs_;
  std::map<uint32_t, Held> held_;  // by value
};

int Joiner::Emit(const Instruction& instruction, std::array<int, 3> sources) {
  const auto number = static_cast<int>(is_truth_.size());
  is_truth_.push_back(instruction.function >= Function::kEqual &&
                      instruction.function <= Function::kLogicalNot);
  lines_.push_back({instruction, number, sources});
  return number;
}

bool Joiner::Add(const ElementWork& member) {
  const ElementProblem& problem = member.problem;
  if (IsMove(problem)) return AddMove(member);
  std::array<int, 256> registers;
  registers.fill(-1);
  for (const Instruction& i : problem.program.instructions) {
    if (i.function == Function::kLoad) {
      const uint8_t input = i.sources[0];
      const int number = Load({member.inputs[input], problem.inputs[input]}, i.type);
      if (number < 0) return false;
      registers[i.target] = number;
    } else if (i.function == Function::kStore) {
      const Operand operand = {member.outputs[i.target], problem.outputs[i.target]};
      if (!operand.place.present()) return false;
      const int number = registers[i.sources[0]];
      if (is_needed_(operand.place.value)) Store(operand, number, i.type);
      held_[operand.place.value] = {.operand = operand, .number = number, .type = i.type, .moved_from = {}};
    } else {
      std::array<int, 3> sources{-1, -1, -1};
      for (int s = 0; s < InfoOf(i.function).sources; ++s) sources[s] = registers[i.sources[s]];
      registers[i.target] = Emit(i, sources);
    }
  }
  return inputs_.size() + outputs_.size() <= kMaxOperands && lines_.size() <= kMaxLines;
}

bool IsSamePlace(const Operand& a, const Operand& b) {
  return a.place.value == b.place.value && a.place.offset == b.place.offset &&
         BitSize(a.layout.type) == BitSize(b.layout.type) && a.layout.strides == b.layout.strides;
}

// The elements are moved unchanged, or reinterpreted as the same numbers: nothing to compute, at most to
// store.
bool Joiner::AddMove(const ElementWork& member) {
  const Operand from = {member.inputs[0], member.problem.inputs[0]};
  const Operand to = {member.outputs[0], member.problem.outputs[0]};
  if (!from.place.present() || !to.place.present()) return false;
  Held moved = {.operand = from, .moved_from = from};
  if (const auto held = held_.find(from.place.value); held != held_.end()) {
    if (!IsSamePlace(held->second.operand, from)) return false;
    moved = held->second;
  }
  moved.operand.place = to.place;
  moved.operand.layout.strides = to.layout.strides;
  if (is_needed_(to.place.value)) {
    if (moved.number >= 0) {
      Store(moved.operand, moved.number, moved.type);
    } else {
      const Class type = member.problem.program.instructions[0].type;
      Operand source = moved.moved_from;
      source.layout.type = to.layout.type;
      Store(to, LoadFromMemory(source, type), type);
    }
  }
  held_[to.place.value] = moved;
  return inputs_.size() + outputs_.size() <= kMaxOperands;
}

int Joiner::LoadFromMemory(const Operand& operand, Class type) {
  size_t input = 0;
  while (input < inputs_.size() &&
         !(IsSamePlace(inputs_[input], operand) && inputs_[input].layout.type == operand.layout.type)) {
    ++input;
  }
  if (input == inputs_.size()) inputs_.push_back(operand);
  const Instruction load = {Function::kLoad, type, type, 0, {static_cast<uint8_t>(input), 0, 0}, {0, 0}};
  return Emit(load, {-1, -1, -1});
}

void Joiner::Store(const Operand& operand, int number, Class type) {
  const auto output = static_cast<uint8_t>(outputs_.size());
  outputs_.push_back(operand);
  lines_.push_back({{Function::kStore, type, type, output, {0, 0, 0}, {0, 0}}, -1, {number, -1, -1}});
}

int Joiner::Load(const Operand& operand, Class type) {
  if (!operand.place.present()) return -1;
  const auto found = held_.find(operand.place.value);
  if (found == held_.end()) return LoadFromMemory(operand, type);
  Held& held = found->second;
  if (!IsSamePlace(held.operand, operand)) return -1;
  if (held.number < 0) {
    Operand source = held.moved_from;
    source.layout.type = operand.layout.type;
    return LoadFromMemory(source, type);
  }
  for (const Held::Loaded& loaded : held.loaded) {
    if (loaded.type == operand.layout.type && loaded.as == type) return loaded.number;
  }
  const int number = Reload(held, operand.layout.type, type);
  held.loaded.push_back({operand.layout.type, type, number});
  return number;
}

// The low bits as a number of `type`: ((x & mask) ^ sign) - sign.
int Joiner::Wrap(int number, DataType type) {
  const uint32_t bits = BitSize(type);
  if (bits >= 32) return number;
  constexpr Class kU = Class::kU32;
  number = Apply(Function::kMaskAnd, kU, kU, number, (uint64_t{1} << bits) - 1);
  if (ClassOf(type) == kU) return number;
  const uint64_t sign = uint64_t{1} << (bits - 1);
  number = Apply(Function::kMaskXor, kU, kU, number, sign);
  return Apply(Function::kScaleBias, Class::kI32, Class::kI32, number, 1, uint64_t{0} - sign);
}

// A value stored as an integer, read as an element of `type` in that type's own class; -1 if no conversion
// gives it.
int Joiner::ReloadInteger(const Held& held, DataType type) {
  const DataType stored = held.operand.layout.type;
  const Class stored_as = ClassOf(stored);
  int number = held.number;
  bool fits = is_truth_[static_cast<size_t>(number)] != 0;
  if (IsFloat(held.type)) {
    number = Convert(number, held.type, stored_as, stored);
    fits = stored == type;
  } else if (IsWide(held.type) != IsWide(stored_as)) {
    if (!IsWide(held.type)) return -1;
    number = Convert(number, held.type, stored_as, stored);
  }
  if (type == DataType::kFloat16) {
    return Apply(Function::kHalfFromBits, Class::kU32, Class::kF32, number);
  }
  return fits ? number : Wrap(number, type);
}

// The number that a load of `type` as class `as` gives for a stored value; -1 if there is no such load.
int Joiner::Reload(const Held& held, DataType type, Class as) {
  const DataType stored = held.operand.layout.type;
  const Class seen_as = ClassOf(type);
  int number = held.number;
  if (!IsFloat(ClassOf(stored))) {
    number = ReloadInteger(held, type);
    if (number < 0) return -1;
  } else if (!IsFloat(held.type) || (stored == DataType::kFloat16 && held.type != Class::kF32)) {
    return -1;
  } else if (stored == DataType::kFloat16) {
    const bool by_bits = type != stored;
    number = by_bits ? Apply(Function::kHalfBits, Class::kF32, Class::kU32, number)
                     : Apply(Function::kRoundToHalf, Class::kF32, Class::kF32, number);
    if (seen_as == Class::kI32) number = Wrap(number, type);
  } else {
    const Class stored_as = ClassOf(stored);
    if (held.type != stored_as) number = Convert(number, held.type, stored_as, stored);
    if (!IsFloat(seen_as)) {  // all stored NaNs are alike
      number = IsWide(stored_as) ? Apply(Function::kCanonical, stored_as, stored_as, number)
                                 : Apply(Function::kFloatBits, stored_as, Class::kU32, number);
    }
  }
  if (seen_as == as) return number;
  if (IsFloat(seen_as) && !IsFloat(as)) return -1;
  if (!IsFloat(as) && IsWide(seen_as) == IsWide(as)) return number;
  return Convert(number, seen_as, as, IsFloat(as) ? DataType::kFloat32 : type);
}

void Joiner::RemoveUnused() {
  std::vector<char> used(is_truth_.size());
  std::vector<Line> kept;
  for (auto line = lines_.rbegin(); line != lines_.rend(); ++line) {
    if (line->target >= 0 && used[static_cast<size_t>(line->target)] == 0) continue;
    for (int s = 0; s < SourcesOf(*line); ++s) used[static_cast<size_t>(line->sources[s])] = 1;
    kept.push_back(*line);
  }
  lines_.assign(kept.rbegin(), kept.rend());
  // The inputs that are read, in the order of the reads.
  std::vector<Operand> inputs;
  std::vector<int> position(inputs_.size(), -1);
  for (Line& line : lines_) {
    if (line.instruction.function != Function::kLoad) continue;
    int& at = position[line.instruction.sources[0]];
    if (at < 0) {
      at = static_cast<int>(inputs.size());
      inputs.push_back(inputs_[line.instruction.sources[0]]);
    }
    line.instruction.sources[0] = static_cast<uint8_t>(at);
  }
  inputs_ = std::move(inputs);
}

// Several loads of one element become one, at the first of them.
void Joiner::ShareLoads() {
  std::vector<int> number_of(is_truth_.size());
  std::map<std::pair<uint8_t, Class>, int> loaded;  // by input
  std::vector<Line> lines;
  for (Line line : lines_) {
    for (int s = 0; s < SourcesOf(line); ++s)
      line.sources[s] = number_of[static_cast<size_t>(line.sources[s])];
    if (line.target >= 0) number_of[static_cast<size_t>(line.target)] = line.target;
    if (line.instruction.function == Function::kLoad) {
      const auto [first, is_new] =
          loaded.try_emplace({line.instruction.sources[0], line.instruction.type}, line.target);
      number_of[static_cast<size_t>(line.target)] = first->second;
      if (!is_new) continue;
    }
    lines.push_back(line);
  }
  lines_ = std::move(lines);
}

// The last line that reads a number frees its register, which the line may reuse for its target.
bool Joiner::AssignRegisters(ElementProgram* program) const {
  std::vector<size_t> last_reader(is_truth_.size());
  for (size_t n = 0; n < lines_.size(); ++n) {
    for (int s = 0; s < SourcesOf(lines_[n]); ++s) {
      last_reader[static_cast<size_t>(lines_[n].sources[s])] = n;
    }
  }
  std::vector<uint8_t> register_of(is_truth_.size());
  uint32_t free = (1u << kMaxRegisters) - 1;
  for (size_t n = 0; n < lines_.size(); ++n) {
    Instruction instruction = lines_[n].instruction;
    for (int s = 0; s < SourcesOf(lines_[n]); ++s) {
      const auto source = static_cast<size_t>(lines_[n].sources[s]);
      instruction.sources[s] = register_of[source];
      if (last_reader[source] == n) free |= 1u << register_of[source];
    }
    if (lines_[n].target >= 0) {
      if (free == 0) return false;
      const bool in_place = SourcesOf(lines_[n]) > 0 && (free >> instruction.sources[0] & 1) != 0;
      instruction.target = in_place ? instruction.sources[0] : static_cast<uint8_t>(std::countr_zero(free));
      free &= ~(1u << instruction.target);
      register_of[static_cast<size_t>(lines_[n].target)] = instruction.target;
      program->registers = std::max(program->registers, instruction.target + 1u);
    }
    program->instructions.push_back(instruction);
  }
  return true;
}

std::optional<ElementWork> Joiner::Finish(const ElementProblem& loops) {
  RemoveUnused();
  if (outputs_.empty()) return {};
  ElementWork joined;
  joined.problem.rank = loops.rank;
  joined.problem.sizes = loops.sizes;
  // Long live ranges may need too many registers: load these numbers again, as the members do.
  const std::vector<Line> lines = lines_;
  ShareLoads();
  if (!AssignRegisters(&joined.problem.program)) {
    lines_ = lines;
    joined.problem.program = {};
    if (!AssignRegisters(&joined.problem.program)) return {};
  }
  for (const Operand& input : inputs_) {
    joined.problem.inputs.push_back(input.layout);
    joined.inputs.push_back(input.place);
  }
  for (const Operand& output : outputs_) {
    joined.problem.outputs.push_back(output.layout);
    joined.outputs.push_back(output.place);
  }
  return joined;
}

}  // namespace

std::optional<ElementWork> JoinElements(std::span<const ElementWork* const> members,
                                        const std::function<bool(uint32_t value)>& is_needed) {
  Joiner joiner(is_needed);
  for (const ElementWork* member : members) {
    if (!joiner.Add(*member)) return {};
  }
  return joiner.Finish(members[0]->problem);
}

}  // namespace anydml
