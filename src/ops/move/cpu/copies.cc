#include <algorithm>
#include <vector>

#include "ops/common/nest_copy.h"
#include "ops/common/nest_parts.h"
#include "ops/common/stream_copy.h"
#include "ops/move/cpu/columns.h"
#include "ops/move/problem.h"

namespace anydml {
namespace {

uint64_t ElementsOf(const AffineMap& map) {
  uint64_t count = 1;
  for (uint32_t d = 0; d < map.rank; ++d) count *= map.loops[d].size;
  return count;
}

class MoveCpu final : public Kernel {
 public:
  MoveCpu(const MoveProblem& problem, uint32_t threads)
      : width_(BitSize(problem.type) / 8), fill_(problem.fill) {
    for (const std::vector<MoveCopy>& copies : problem.stages) stages_.push_back(MakeStage(copies, threads));
  }

  Status Run(const KernelArguments& arguments) const override {
    for (const Stage& stage : stages_) {
      ParallelFor(arguments.executor, stage.parts, [&](uint32_t p) { RunPart(arguments, stage, p); });
    }
    return {};
  }

 private:
  struct Columns {
    size_t begin, end;  // range in Stage::maps
    ColumnCopies copies;
  };
  struct Single {
    size_t map;
    NestCopy copy;
  };
  struct Stage {
    std::vector<PlacedMap> maps;
    std::vector<Columns> columns;
    std::vector<Single> singles;
    uint32_t parts = 1;
  };

  Stage MakeStage(const std::vector<MoveCopy>& copies, uint32_t threads) const {
    Stage stage;
    uint64_t bytes = 0;
    for (const MoveCopy& copy : copies) {
      bytes += ElementsOf(copy.map) * width_;
      for (const FlatMap& map : Flatten(copy.map))
        stage.maps.push_back({copy.source, copy.from, copy.to, map});
    }
    const std::span<const PlacedMap> maps = stage.maps;
    for (size_t i = 0; i < maps.size();) {
      if (const size_t count = ColumnCopies::Count(maps.subspan(i)); count > 0) {
        stage.columns.push_back({i, i + count, ColumnCopies(maps.subspan(i, count), width_)});
        i += count;
      } else {
        stage.singles.push_back({i, NestCopy(maps[i].map.nest, width_, bytes >= kStreamBytes)});
        ++i;
      }
    }
    stage.parts = PartsForStage(bytes, stage.singles.size(), threads);
    return stage;
  }

  // Copies that go through the same memory, as in SPLIT and JOIN, alternate while it is in a cache.
  static uint32_t PartsForStage(uint64_t bytes, size_t copies, uint32_t threads) {
    const uint32_t parts = PartsForBytes(bytes, threads);
    constexpr uint64_t kTurn = uint64_t{512} << 10, kMostTurns = 1 << 16;
    return copies <= 1 ? parts : std::max(parts, static_cast<uint32_t>(std::min(bytes / kTurn, kMostTurns)));
  }

  void RunPart(const KernelArguments& arguments, const Stage& stage, uint32_t part) const {
    const std::span<const PlacedMap> maps = stage.maps;
    for (const Columns& columns : stage.columns) {
      columns.copies.Run(arguments, maps.subspan(columns.begin, columns.end - columns.begin), part,
                         stage.parts);
    }
    for (const Single& single : stage.singles) {
      const PlacedMap& map = maps[single.map];
      single.copy.Run(SourceOf(map, arguments),
                      arguments.outputs[map.to_buffer].data + map.map.to * int64_t{width_}, part,
                      stage.parts);
    }
  }

  const std::byte* SourceOf(const PlacedMap& map, const KernelArguments& arguments) const {
    const int64_t offset = map.map.from * int64_t{width_};
    switch (map.source) {
      case MoveCopy::kInput:
        return arguments.inputs[map.from_buffer].data + offset;
      case MoveCopy::kOutput:
        return arguments.outputs[map.from_buffer].data + offset;
      default:
        return reinterpret_cast<const std::byte*>(&fill_);
    }
  }

  uint32_t width_;
  uint64_t fill_;
  std::vector<Stage> stages_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateMoveCpu(const MoveProblem& problem, const LowerContext& context,
                                            std::string*) {
  return std::make_unique<MoveCpu>(problem, context.threads);
}

}  // namespace anydml
