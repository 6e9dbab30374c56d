#include "ops/element/cpu/tile_size.h"

#include <algorithm>

#include "ops/element/cpu/tile_plan.h"
#include "ops/element/ordered_loops.h"

namespace anydml {
namespace {

// A tile's register; eight of them are half of a 64 KiB L1 cache.
constexpr uint64_t kTileBytes = 4096;
// All registers of a tile across a transposed input: transposed data passes through L2 anyway, and what is
// computed on stays in L1.
#if defined(__x86_64__)
constexpr uint64_t kRegisterMemory = 256 << 10;
#else
constexpr uint64_t kRegisterMemory = 128 << 10;
#endif
constexpr uint64_t kFewRegisters = 2, kManyRegistersMemory = 64 << 10;
static_assert(kMaxRegisters * kTileBytes <= kRegistersOnStack && kManyRegistersMemory <= kRegistersOnStack);

// Whether a program is one pipeline that reads and writes contiguous tensors directly: of a tile, only
// broadcast values are in registers.
bool IsFlat(const ElementProblem& problem, const std::vector<ElementStep>& steps,
            const std::vector<Pipeline>& pipelines) {
  if (problem.outputs.size() != 1 || pipelines.size() != 1 || pipelines[0].kept != 0) return false;
  const auto loops = OrderedLoops<TileLoop>(problem);
  if (loops.size() != 1 || loops[0].strides.back() != 1) return false;
  const Pipeline& pipeline = pipelines[0];
  const Storage storage = pipeline.half_stages.empty() ? Storage::kRegister : Storage::kHalf;
  for (size_t n = 0; n + 1 < steps.size(); ++n) {
    const ElementStep& step = steps[n];
    if (step.uniform) continue;
    if (step.instruction.function != ElementFunction::kLoad) {
      if (n < pipeline.begin || n >= pipeline.end) return false;
    } else if (step.whole || step.storage != storage || loops[0].strides[step.operand] != 1) {
      return false;
    }
  }
  return steps.back().storage == storage;
}

}  // namespace

uint64_t TileElements(const ElementProblem& problem, const std::vector<ElementStep>& steps,
                      const std::vector<Pipeline>& pipelines) {
  // Large enough to amortise the cost per tile.
  constexpr uint64_t kFlatElements = 8192;
  const uint64_t width = WidthOf(problem.program);
  if (!IsFlat(problem, steps, pipelines)) return kTileBytes / width;
  return std::min(kFlatElements, kRegistersOnStack / (problem.program.registers * width));
}

uint64_t ElementsAcross(const ElementProgram& program) {
  const uint64_t memory = program.registers <= kFewRegisters ? kRegisterMemory : kManyRegistersMemory;
  return std::min(kMaxAcross, memory / (program.registers * WidthOf(program)));
}

}  // namespace anydml
