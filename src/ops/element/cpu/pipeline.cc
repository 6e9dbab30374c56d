#include "ops/element/cpu/pipeline.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "base/half.h"
#include "ops/numbers/epilogue.h"

namespace anydml {
namespace {

// The numbering of stages' operands.
constexpr uint8_t kSourceOperands = 0, kKeptOperands = kMaxRegisters, kTargetOperand = 2 * kMaxRegisters;
constexpr uint8_t kOperandCount = kTargetOperand + 1;

constexpr uint32_t kBlockBytes = 512;

// A run of steps as stages from one set.
class StageList {
 public:
  StageList(const std::vector<ElementStep>& steps, const Pipeline& pipeline, bool halves)
      : steps_(steps),
        end_(pipeline.end),
        halves_(halves),
        set_(halves ? *pipeline.half_set : *pipeline.set) {
    in_memory_.fill(kSourceOperands);
    for (size_t i = pipeline.begin; i < end_ && fits_; ++i) {
      if (!Pipeline::IsInFront(steps[i])) Append(i);
    }
    stages_.push_back({.code = set_.end});
    if (!fits_) stages_.clear();
  }

  std::vector<Stage> Take() { return std::move(stages_); }
  uint32_t sources() const { return sources_; }
  uint32_t kept() const { return kept_; }

 private:
  // The source that is the previous step's result, which is in `block`; -1: none.
  static int SourceInBlock(const Instruction& i, int block) {
    if (i.sources[0] == block) return 0;
    const bool may_swap = i.function == ElementFunction::kAdd || i.function == ElementFunction::kMultiply;
    return may_swap && i.sources[1] == block ? 1 : -1;
  }

  void Append(size_t number) {
    const ElementStep& step = steps_[number];
    const Instruction& i = step.instruction;
    const int in_block = SourceInBlock(i, block_);
    std::array<uint8_t, 3> sources = {i.sources[0], i.sources[1], i.sources[2]};
    if (in_block == 1) std::swap(sources[0], sources[1]);
    if (in_block < 0) stages_.push_back({.code = set_.load, .operands = {OperandOf(sources[0]), 0}});
    Stage stage = {.instruction = &i};
    for (int s = 1; s < InfoOf(i.function).sources; ++s) stage.operands[s - 1] = OperandOf(sources[s]);
    halves_ ? SetHalfCode(i, &stage) : SetCode(i, &stage);
    fits_ = stage.code != nullptr;
    if (in_block != 0 || !JoinLimits(stage)) stages_.push_back(stage);
    block_ = i.target;

    if (step.rounds && !halves_) stages_.push_back({.code = set_.round, .instruction = &i});
    const Readers readers = ReadersOf(number);
    const bool is_last = number + 1 == end_;
    const bool computes_floats = i.type == Class::kF32 && i.to == Class::kF32;
    if (computes_floats && (is_last || readers.see_bits)) stages_.push_back({.code = set_.canonical});
    if (is_last) {
      stages_.push_back({.code = set_.store, .operands = {kTargetOperand, 0}});
    } else if (readers.of_memory) {
      in_memory_[i.target] = kKeptOperands;
      kept_ |= 1u << i.target;
      stages_.push_back({.code = set_.store, .operands = {OperandOf(i.target), 0}});
    }
  }

  uint8_t OperandOf(uint8_t number) {
    if (in_memory_[number] == kSourceOperands) sources_ |= 1u << number;
    return static_cast<uint8_t>(in_memory_[number] + number);
  }

  void SetCode(const Instruction& i, Stage* stage) const {
    stage->code = FindStage(i.function, i.type);
    if (i.type != Class::kF32) return;
    SetLimits(i, stage);
    if (i.function == ElementFunction::kClip && CompareAsLimits(stage->low, stage->high)) {
      stage->code = set_.limit;
    }
  }

  void SetHalfCode(const Instruction& i, Stage* stage) const {
    const auto function = HalfFunctionOf(i.function);
    if (i.type != Class::kF32 || !function) return;
    stage->code = FindHalfStage(*function);
    if (!SetLimits(i, stage)) return;
    stage->low = ToFloat(ToHalf(stage->low));
    stage->high = ToFloat(ToHalf(stage->high));
    if (!CompareAsLimits(stage->low, stage->high)) stage->code = nullptr;
  }

  static bool SetLimits(const Instruction& i, Stage* stage) {
    if (i.function == ElementFunction::kRelu) stage->high = std::numeric_limits<float>::infinity();
    if (i.function != ElementFunction::kClip) return i.function == ElementFunction::kRelu;
    stage->low = FloatParameter(i, 0);
    stage->high = FloatParameter(i, 1);
    return true;
  }

  // Consecutive limits become one stage if one range contains the other.
  bool JoinLimits(const Stage& stage) {
    Stage& before = stages_.back();
    const auto limits = [&](const Stage& s) {
      return s.code != nullptr && (s.code == set_.limit || s.code == relu_) && s.low < s.high;
    };
    if (!limits(before) || !limits(stage) || stage.low > before.high || before.low > stage.high) return false;
    before.code = set_.limit;
    before.low = std::max(before.low, stage.low);
    before.high = std::min(before.high, stage.high);
    return true;
  }

  // The readers of a step's result.
  struct Readers {
    bool of_memory = false;  // some read it from memory
    bool see_bits = false;   // some can tell NaNs apart
  };
  Readers ReadersOf(size_t number) const {
    const uint8_t target = steps_[number].instruction.target;
    Readers readers;
    bool is_next = true;
    for (size_t n = number + 1; n < steps_.size(); ++n) {
      const Instruction& reader = steps_[n].instruction;
      if (reader.function != ElementFunction::kLoad) {
        const bool takes_block = n < end_ && is_next && !Pipeline::IsInFront(steps_[n]);
        const int in_block = takes_block ? SourceInBlock(reader, target) : -1;
        for (int s = 0; s < InfoOf(reader.function).sources; ++s) {
          if (reader.sources[s] != target) continue;
          readers.of_memory = readers.of_memory || s != in_block;
          readers.see_bits = readers.see_bits || n >= end_ || reader.type != Class::kF32;
        }
      }
      if (!Pipeline::IsInFront(steps_[n])) is_next = false;
      if (reader.function != ElementFunction::kStore && reader.target == target) break;
    }
    return readers;
  }

  const std::vector<ElementStep>& steps_;
  size_t end_;
  bool halves_;
  const StageSet& set_;
  const StageCode relu_ =
      halves_ ? FindHalfStage(HalfFunction::kRelu) : FindStage(ElementFunction::kRelu, Class::kF32);
  std::vector<Stage> stages_;
  std::array<uint8_t, kMaxRegisters> in_memory_;  // the operand that has a register's number in memory
  int block_ = -1;                                // the register whose number is in the block
  uint32_t sources_ = 0, kept_ = 0;
  bool fits_ = true;
};

bool HasStage(const ElementStep& step) {
  return step.loop.converts && !step.uniform &&
         FindStage(step.instruction.function, step.instruction.type) != nullptr;
}

}  // namespace

bool Pipeline::IsInFront(const ElementStep& step) {
  return step.uniform || step.instruction.function == ElementFunction::kLoad;
}

std::vector<Pipeline> FindPipelines(const std::vector<ElementStep>& steps) {
  constexpr uint32_t kShortest = 2;
  std::vector<Pipeline> pipelines;
  if (FindStages() == nullptr || FindStages()->block * sizeof(float) > kBlockBytes) return pipelines;
  Pipeline next;
  uint32_t computes = 0;
  uint32_t touched = 0;  // bits of registers
  const auto close = [&] {
    if (computes >= kShortest) pipelines.push_back(next);
    next = {};
    computes = touched = 0;
  };
  for (size_t n = 0; n < steps.size(); ++n) {
    const Instruction& i = steps[n].instruction;
    const bool in_front = i.function != ElementFunction::kStore && Pipeline::IsInFront(steps[n]);
    if (in_front && (touched >> i.target & 1) == 0) continue;
    if (in_front || !HasStage(steps[n])) {
      close();
      continue;
    }
    if (computes++ == 0) next.begin = n;
    next.end = n + 1;
    for (int s = 0; s < InfoOf(i.function).sources; ++s) touched |= 1u << i.sources[s];
    touched |= 1u << i.target;
  }
  close();
  for (Pipeline& pipeline : pipelines) {
    pipeline.set = FindStages();
    pipeline.half_set = FindHalfStages();
    StageList list(steps, pipeline, false);
    const ElementStep& last = steps[pipeline.end - 1];
    pipeline.target = last.instruction.target;
    pipeline.rounds = last.rounds;
    pipeline.sources = list.sources();
    pipeline.kept = list.kept();
    pipeline.stages = list.Take();
    const auto rounds = [](const ElementStep& step) { return step.rounds || Pipeline::IsInFront(step); };
    const auto first = steps.begin() + static_cast<ptrdiff_t>(pipeline.begin);
    const auto before_last = steps.begin() + static_cast<ptrdiff_t>(pipeline.end - 1);
    if (pipeline.half_set != nullptr && std::all_of(first, before_last, rounds)) {
      pipeline.half_stages = StageList(steps, pipeline, true).Take();
    }
  }
  return pipelines;
}

namespace {

struct alignas(64) BlockMemory {
  std::byte bytes[kBlockBytes];
};

uint32_t StageBytesOf(Storage storage) { return storage == Storage::kHalf ? 2 : 4; }

// The number that applies to a whole row, as a block for the stages.
void FillUniform(const LoopSource& source, const std::byte* data, bool halves, std::byte* block) {
  uint32_t word = 0;
  std::memcpy(&word, data, StageBytesOf(source.storage));
  if (halves) {
    word |= word << 16;
  } else if (source.storage == Storage::kHalf) {
    word = std::bit_cast<uint32_t>(ToFloat(Half{static_cast<uint16_t>(word)}));
  }
  std::fill_n(reinterpret_cast<uint32_t*>(block), kBlockBytes / sizeof(word), word);
}

template <typename Body>
void ForEachBit(uint32_t bits, Body&& body) {
  for (uint8_t i = 0; bits >> i != 0; ++i) {
    if ((bits >> i & 1) != 0) body(i);
  }
}

// The last elements of a row, fewer than a block, go through buffers of whole blocks.
void RunRest(const StageSet& set, const std::vector<Stage>& stages, const Pipeline& pipeline,
             std::array<StageOperand, kOperandCount> operands, uint64_t done, uint64_t left) {
  BlockMemory rest[kOperandCount];
  std::byte* places[kOperandCount];
  const auto replace = [&](uint8_t number) {
    StageOperand& operand = operands[number];
    places[number] = operand.data + done * StageBytesOf(operand.storage);
    operand = {.data = rest[number].bytes, .mask = 0, .storage = operand.storage, .streams = false};
  };
  const auto bytes = [&](uint8_t number) { return left * StageBytesOf(operands[number].storage); };
  ForEachBit(pipeline.sources, [&](uint8_t i) {
    if (operands[i].mask == 0) return;
    replace(i);
    std::memset(rest[i].bytes, 0, kBlockBytes);
    std::memcpy(rest[i].bytes, places[i], bytes(i));
  });
  const uint32_t targets = pipeline.kept << kKeptOperands | 1u << kTargetOperand;
  ForEachBit(targets, replace);
  set.run(stages.data(), operands.data(), 0, 1);
  ForEachBit(targets, [&](uint8_t i) { std::memcpy(places[i], rest[i].bytes, bytes(i)); });
}

}  // namespace

void RunPipeline(const Pipeline& pipeline, bool halves, const PipelineOperands& operands, uint64_t rows,
                 uint64_t columns) {
  const StageSet& set = halves ? *pipeline.half_set : *pipeline.set;
  const std::vector<Stage>& stages = halves ? pipeline.half_stages : pipeline.stages;
  BlockMemory uniform[kMaxRegisters];
  std::array<StageOperand, kOperandCount> at;
  const uint64_t blocks = columns / set.block, left = columns % set.block;
  // Sources are prefetched only when the target streams: then the tensors exceed the caches, and reading
  // limits the speed as much as writing.
  uint32_t ahead = 0;
  ForEachBit(operands.target.streams ? pipeline.sources : 0, [&](uint8_t i) {
    if (!operands.sources[i].uniform) ahead |= 1u << i;
  });
  const auto target_at = [](const LoopTarget& target, uint64_t row) {
    return StageOperand{.data = static_cast<std::byte*>(target.data) + row * target.row_stride,
                        .mask = ~uint64_t{0},
                        .storage = target.storage,
                        .streams = target.streams};
  };
  for (uint64_t row = 0; row < rows; ++row) {
    ForEachBit(pipeline.sources, [&](uint8_t i) {
      const LoopSource& source = operands.sources[i];
      auto* data =
          const_cast<std::byte*>(static_cast<const std::byte*>(source.data)) + row * source.row_stride;
      if (source.uniform) {
        if (row == 0 || source.row_stride != 0) FillUniform(source, data, halves, uniform[i].bytes);
        data = uniform[i].bytes;
      }
      at[i] = {data, source.uniform ? 0 : ~uint64_t{0}, source.storage, false};
    });
    ForEachBit(pipeline.kept, [&](uint8_t i) { at[kKeptOperands + i] = target_at(operands.kept[i], row); });
    at[kTargetOperand] = target_at(operands.target, row);
    if (blocks > 0) set.run(stages.data(), at.data(), ahead, blocks);
    if (left > 0) RunRest(set, stages, pipeline, at, blocks * set.block, left);
  }
}

}  // namespace anydml
