#include "ops/element/cuda/ptx_program.h"

#include <array>
#include <map>
#include <utility>

#include "base/status.h"
#include "ops/element/cuda/ptx_memory.h"
#include "ops/element/cuda/ptx_values.h"

namespace anydml::element_cuda {
namespace {

constexpr const char* kClassNames[] = {"kF32", "kI32", "kU32"};

class Program {
 public:
  Program(const MachinePlan& plan, const PtxFunctions& functions)
      : machine_(plan.machine), writer_(functions), memory_(plan, &writer_), values_(&writer_) {}

  bool Write(std::string* text, std::string* why_not) {
    memory_.WriteLoads();
    int accumulator = -1;
    std::array<int, 256> kept{};
    for (uint32_t s = 0; s < machine_.steps_end; ++s) {
      const Step& step = machine_.steps[s];
      int sources[3] = {-1, -1, -1};
      for (int i = 0; i < 3; ++i) {
        const Source& source = step.sources[i];
        if (source.kind == Source::kAccumulator) sources[i] = accumulator;
        if (source.kind == Source::kConstant) sources[i] = Constant(source.index);
        if (source.kind == Source::kSlot) {
          sources[i] = source.index < machine_.inputs ? Input(source) : kept[source.index];
        }
      }
      accumulator = Apply(s, sources);
      if (accumulator < 0) {
        *why_not = StrCat(InfoOf(step.instruction.function).name, " has no text to compile");
        return false;
      }
      if ((step.flags & Step::kKeep) != 0) kept[step.slot] = accumulator;
      if ((step.flags & Step::kStore) != 0) {
        const DataType type = machine_.operands[step.output].type;
        memory_.AddStore(step.output, values_.Elements(accumulator, step.instruction.to, type));
      }
    }
    memory_.WriteStores();
    *text = writer_.Module(kPtxProgramName, memory_.Parameters());
    return true;
  }

 private:
  static uint32_t Low(uint64_t bits) { return static_cast<uint32_t>(bits); }

  // Each constant becomes one value.
  int Constant(uint32_t index) {
    const auto [at, is_new] = constants_.try_emplace(index, 0);
    if (is_new) at->second = values_.Constant(Low(machine_.constants[index]));
    return at->second;
  }
  int Input(const Source& source) {
    const auto [at, is_new] = input_values_.try_emplace({source.index, source.form}, 0);
    if (is_new) at->second = values_.Input(memory_.inputs()[source.index], source.form);
    return at->second;
  }

  // The result of a step; -1 if there is no function for it.
  int Apply(uint32_t s, const int (&sources)[3]) {
    const Step& step = machine_.steps[s];
    const Instruction& i = step.instruction;
    if (step.code == kNoFunction) return sources[0];
    if (i.function == ElementFunction::kConvert) return values_.Converted(sources[0], i);
    if (i.function == ElementFunction::kRoundToHalf) return values_.RoundedToHalf(sources[0]);
    const ElementFunctionInfo& info = InfoOf(i.function);
    const std::string name = StrCat(info.name, "_", kClassNames[static_cast<uint32_t>(i.type)]);
    if (((info.vector_classes | info.scalar_classes) & Bit(i.type)) == 0 || !writer_.functions().Has(name)) {
      return -1;
    }
    const std::span<const int> used(sources, info.sources);
    if (i.type == Class::kF32 && values_.AreHalves(used)) {
      const int halves = values_.OfHalves(i, used, IsOnlyRounded(s));
      if (halves >= 0) return halves;
    }
    return values_.OfNumbers(name, used, {Low(i.parameters[0]), Low(i.parameters[1])}, step.uniform);
  }

  // Whether all uses of a step's result round it to FLOAT16.
  bool IsOnlyRounded(uint32_t s) const {
    for (;; ++s) {
      const Step& step = machine_.steps[s];
      if ((step.flags & Step::kKeep) != 0) return false;
      if ((step.flags & Step::kStore) != 0 && machine_.operands[step.output].type != DataType::kFloat16) {
        return false;
      }
      if (s + 1 == machine_.steps_end) return true;
      const Step& next = machine_.steps[s + 1];
      if (next.sources[0].kind != Source::kAccumulator) return true;
      if (next.code != kNoFunction) return next.instruction.function == ElementFunction::kRoundToHalf;
    }
  }

  const Machine& machine_;
  PtxWriter writer_;
  PtxMemory memory_;
  PtxValues values_;
  std::map<uint32_t, int> constants_;
  std::map<std::pair<uint32_t, Form>, int> input_values_;
};

}  // namespace

bool WritePtxProgram(const MachinePlan& plan, const PtxFunctions& functions, std::string* text,
                     std::string* why_not) {
  const Machine& machine = plan.machine;
  bool in_order = true;
  for (uint32_t o = 0; o < plan.operands; ++o) {
    if (machine.operands[o].bits < 8) *why_not = "elements of 4 bits are not compiled";
    in_order = in_order && machine.operands[o].in_order;
  }
  if (plan.wide) *why_not = "programs with 64-bit numbers are not compiled";
  if (machine.tiled) *why_not = "an input lies across the output";
  if (!in_order && machine.elements >> 32 != 0) *why_not = "there are 2^32 elements or more";
  if (!why_not->empty()) return false;
  return Program(plan, functions).Write(text, why_not);
}

}  // namespace anydml::element_cuda
