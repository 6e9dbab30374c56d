#include "ops/recurrent/cpu/grouped_product.h"

#include <algorithm>

#include "ops/common/parallel.h"
#include "ops/gemm/cpu/operands.h"

namespace anydml {
namespace {

#ifndef XLAB
constexpr uint64_t kSteps = 256;
constexpr bool kForth = true, kAsk = true, kExpect = true;
#else
}
uint64_t kSteps = 256;
int kForth = 1, kAsk = 1, kExpect = 1;
namespace {
#endif
// Sums of a group stay in the first-level cache.
constexpr uint64_t kGroupFloats = 8192;
constexpr uint64_t kLine = 16;  // floats

constexpr uint64_t RoundUp(uint64_t value, uint64_t step) { return (value + step - 1) / step * step; }

// What is read after a block of steps. Each tile asks for a share.
struct Next {
  const float* first;
  uint64_t floats;

  MicroKernel::Ahead OfTile(uint64_t tile, uint64_t tiles, uint64_t steps) const {
    const uint64_t of_step = std::min(kLine, (floats + tiles * steps - 1) / (tiles * steps));
    const uint64_t done = tile * steps * of_step;
    return done < floats ? MicroKernel::Ahead{first + done, of_step} : MicroKernel::Ahead{first, 0};
  }
};

// Puts sums where the output is.
class CopySink final : public GroupedProduct::Sink {
 public:
  CopySink(const GemmProblem& problem, float* output) : p_(problem), output_(output) {}

  void Expect(const GroupedProduct::Group&, uint32_t, uint64_t, uint64_t) const override {}
  void Finish(const GroupedProduct::Group& group, float* sums) const override {
    float* const to = output_ + group.direction * p_.m * p_.n + group.unit;
    for (uint64_t gate = 0; gate < p_.n / p_.k; ++gate) {
      for (uint64_t row = 0; row < p_.m; ++row) {
        std::copy_n(sums + (gate * p_.m + row) * group.width, group.units, to + row * p_.n + gate * p_.k);
      }
    }
  }

 private:
  const GemmProblem& p_;
  float* const output_;
};

}  // namespace

GroupedProduct::GroupedProduct(const GemmProblem& problem, DataType weights, uint32_t threads)
    : p_(problem), type_(weights), tile_(GemmMicroKernel()), gates_(static_cast<uint32_t>(p_.n / p_.k)) {
  const uint64_t products = p_.Batches() * p_.m * p_.n * p_.k;
  const uint64_t vectors = p_.Batches() * RoundUp(p_.k, tile_.lanes) / tile_.lanes;
  const auto useful = std::clamp<uint64_t>(products / kProductsPerThread, 1, threads);
  workers_ = static_cast<uint32_t>(std::min(useful, vectors));
  for (uint32_t worker = 0; worker < workers_; ++worker) {
    const uint64_t begin = groups_.size();
    AddGroups(PartBegin(vectors, worker, workers_), PartBegin(vectors, worker + 1, workers_));
    shares_.push_back({begin, groups_.size()});
  }
  for (const Group& group : groups_) sums_floats_ = std::max(sums_floats_, gates_ * p_.m * group.width);
  sums_floats_ = RoundUp(sums_floats_, kLine);
  if (!in_place()) rows_floats_ = RoundUp(p_.k * RoundUp(p_.m, tile_.rows), kLine);
}

// Vectors [begin, end) of units of all directions.
void GroupedProduct::AddGroups(uint64_t begin, uint64_t end) {
  const uint64_t of_direction = RoundUp(p_.k, tile_.lanes) / tile_.lanes,
                 of_tile = tile_.columns / tile_.lanes;
  const uint64_t most = std::max<uint64_t>(1, kGroupFloats / (gates_ * p_.m * tile_.columns)) * of_tile;
  while (begin < end) {
    const uint64_t direction = begin / of_direction, first = begin % of_direction;
    const uint64_t left = std::min(end - begin, of_direction - first);
    uint64_t count = std::min(left, most);
    // Tiles of one vector are slow: rather two of two than three and one.
    if (count == left - 1 && count > 2) count -= 1;
    const uint64_t unit = first * tile_.lanes, width = count * tile_.lanes;
    groups_.push_back({static_cast<uint32_t>(direction), unit, std::min<uint64_t>(width, p_.k - unit), width,
                       weights_floats_});
    weights_floats_ += gates_ * width * p_.k;
    begin += count;
  }
}

Status GroupedProduct::Initialize(const KernelArguments& arguments) const {
  auto* const to = reinterpret_cast<float*>(arguments.persistent.data);
  ParallelFor(arguments.executor, workers_, [&](uint32_t worker) {
    for (uint64_t g = shares_[worker].begin; g < shares_[worker].end; ++g) {
      const Group& group = groups_[g];
      const StridedPanels b(arguments.inputs[1].data + group.direction * p_.b.batch[0] * (BitSize(type_) / 8),
                            type_, p_.b.column, p_.b.row);
      for (uint32_t gate = 0; gate < gates_; ++gate) {
        // All panels but the last are a tile wide.
        for (uint64_t c = 0; c < group.width; c += tile_.columns) {
          const auto width = static_cast<uint32_t>(std::min<uint64_t>(tile_.columns, group.width - c));
          b.Pack(gate * p_.k + group.unit + c, std::min<uint64_t>(width, group.units - c), 0, p_.k, width,
                 to + group.weights + (gate * group.width + c) * p_.k);
        }
      }
    }
  });
  return {};
}

Status GroupedProduct::Run(const KernelArguments& arguments) const {
  RunGroups(arguments, /*odd=*/false, CopySink(p_, reinterpret_cast<float*>(arguments.outputs[0].data)));
  return {};
}

void GroupedProduct::RunGroups(const KernelArguments& arguments, bool odd, const Sink& sink) const {
  const auto* const state = reinterpret_cast<const float*>(arguments.inputs[0].data);
  const auto* const weights = reinterpret_cast<const float*>(arguments.persistent.data);
  ParallelFor(arguments.executor, workers_, [&](uint32_t worker) {
    float* const sums = reinterpret_cast<float*>(arguments.temporary.data) + worker * worker_floats();
    float* const rows = sums + sums_floats_;
    const Share& share = shares_[worker];
    uint32_t packed = ~0u;
    for (uint64_t i = share.begin; i < share.end; ++i) {
      const auto number = [&](uint64_t at) { return odd && kForth ? share.begin + share.end - 1 - at : at; };
      const Group& group = groups_[number(i)];
      const float* const of_direction = state + group.direction * p_.m * p_.k;
      MicroKernel::Rows a = {of_direction, p_.k};
      if (!in_place()) {
        if (packed != group.direction) {
          const StridedPanels panels(reinterpret_cast<const std::byte*>(of_direction), DataType::kFloat32,
                                     p_.k, 1);
          panels.Pack(0, p_.m, 0, p_.k, tile_.rows, rows);
          packed = group.direction;
        }
        a = {rows, 0};
      }
      const float* const next = weights + (i + 1 < share.end ? groups_[number(i + 1)] : group).weights;
      RunGroup(group, a, next, arguments, sink, sums);
      sink.Finish(group, sums);
    }
  });
}

// `next` is what is read after the group's own weights.
void GroupedProduct::RunGroup(const Group& group, const MicroKernel::Rows& a, const float* next,
                              const KernelArguments& arguments, const Sink& sink, float* sums) const {
  const auto* const weights = reinterpret_cast<const float*>(arguments.persistent.data) + group.weights;
  const uint64_t tiles = (p_.m + tile_.rows - 1) / tile_.rows;
  for (uint32_t gate = 0; gate < gates_; ++gate) {
    for (uint64_t c = 0; c < group.width; c += tile_.columns) {
      const uint64_t width = std::min<uint64_t>(tile_.columns, group.width - c),
                     vectors = width / tile_.lanes;
      const float* const panel = weights + (gate * group.width + c) * p_.k;
      const bool is_last = gate + 1 == gates_ && c + width == group.width;
      for (uint64_t step = 0; step < p_.k; step += kSteps) {
        const uint64_t steps = std::min(kSteps, p_.k - step);
        const float* const b = panel + step * width;
        const Next ahead = {is_last && step + steps == p_.k ? next : b + steps * width,
                            kAsk ? steps * width : 0};
        for (uint64_t tile = 0; tile < tiles; ++tile) {
          const uint64_t row = tile * tile_.rows, rows = std::min<uint64_t>(tile_.rows, p_.m - row);
          if (kExpect && step == 0 && c == 0) sink.Expect(group, gate, row, rows);
          float* to = sums + (gate * p_.m + row) * group.width + c;
          if (a.stride != 0) {
            tile_.in_place[rows - 1][vectors - 1]({a.first + row * a.stride + step, a.stride}, b, width,
                                                  steps, to, group.width, step != 0,
                                                  ahead.OfTile(tile, tiles, steps));
            continue;
          }
          // Rows of a tile that are not there have sums behind those of the others.
          alignas(64) float whole[kMaxTileRows * kMaxTileColumns];
          const bool fits = rows == tile_.rows;
          const auto run = width == tile_.columns ? tile_.run : tile_.narrow[vectors - 1];
          run(a.first + row * p_.k + step * tile_.rows, b, width, steps, fits ? to : whole,
              fits ? group.width : width, fits && step != 0, ahead.OfTile(tile, tiles, steps));
          if (fits) continue;
          for (uint64_t i = 0; i < rows; ++i) {
            for (uint64_t j = 0; j < width; ++j) {
              float& sum = to[i * group.width + j];
              sum = step != 0 ? sum + whole[i * width + j] : whole[i * width + j];
            }
          }
        }
      }
    }
  }
}

}  // namespace anydml
