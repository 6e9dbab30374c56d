#include "ops/element/cpu/epilogue.h"

#include <cassert>

namespace anydml {

Epilogue::Epilogue(const ElementProgram& program) {
  for (const Instruction& instruction : program.instructions) {
    assert(InfoOf(instruction.function).sources == 1 && instruction.target == 0 &&
           instruction.sources[0] == 0);
    steps_.push_back({instruction, FindElementLoop(instruction.function, instruction.type)});
  }
}

void Epilogue::Apply(float* numbers, uint64_t count) const {
  for (const Step& step : steps_) {
    LoopArguments arguments;
    arguments.sources[0].data = numbers;
    arguments.target.data = numbers;
    arguments.count = count;
    arguments.instruction = &step.instruction;
    RunLoop(step.loop, arguments);
  }
}

}  // namespace anydml
