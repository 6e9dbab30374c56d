#include "ops/numbers/epilogue.h"

#include <bit>
#include <cassert>
#include <cstring>
#include <limits>

#include "ops/numbers/convert_rows.h"

namespace anydml {

bool CompareAsLimits(float low, float high) {
  const bool zeros_differ = std::bit_cast<uint32_t>(low) == 0x80000000 || high == 0;
  return low <= high && !zeros_differ;
}

Epilogue::Epilogue(const ElementProgram& program) {
  for (const Instruction& instruction : program.instructions) {
    assert(InfoOf(instruction.function).sources == 1 && instruction.target == 0 &&
           instruction.sources[0] == 0);
    steps_.push_back({instruction, FindElementLoop(instruction.function, instruction.type)});
  }
  constexpr float kMost = std::numeric_limits<float>::infinity();
  if (steps_.empty()) {
    limits_ = {-kMost, kMost};
  } else if (steps_.size() == 1 && steps_[0].instruction.function == ElementFunction::kRelu) {
    limits_ = {0, kMost};
  } else if (steps_.size() == 1 && steps_[0].instruction.function == ElementFunction::kClip) {
    const auto parameter = [&](size_t i) {
      return std::bit_cast<float>(static_cast<uint32_t>(steps_[0].instruction.parameters[i]));
    };
    if (CompareAsLimits(parameter(0), parameter(1))) limits_ = {parameter(0), parameter(1)};
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

void Epilogue::Finish(float* numbers, uint64_t count, float bias, DataType type, void* to) const {
  if (limits_ && type == DataType::kFloat32) {
    return AddAndClip(numbers, static_cast<float*>(to), count, bias, limits_->low, limits_->high);
  }
  if (limits_) {
    return AddAndClipToHalves(numbers, static_cast<uint16_t*>(to), count, bias, limits_->low, limits_->high);
  }
  for (uint64_t i = 0; i < count; ++i) numbers[i] += bias;
  Apply(numbers, count);
  if (type == DataType::kFloat16) {
    FloatsToHalves(numbers, static_cast<uint16_t*>(to), count);
  } else if (to != numbers) {
    std::memcpy(to, numbers, count * sizeof(float));
  }
}

}  // namespace anydml
