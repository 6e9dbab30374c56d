#include "ops/recurrent/cpu/grouped_product.h"

#include <algorithm>

#include "ops/common/parallel.h"
#include "ops/product/operands.h"

namespace anydml {
namespace {

// A panel with some steps stays in L1 and L2.
constexpr uint64_t kPanelFloats = 12288, kMaxSteps = 512;
// The sums of a group stay in L1.
constexpr uint64_t kGroupFloats = 8192;
constexpr uint64_t kLine = 16;  // floats per cache line

constexpr uint64_t RoundUp(uint64_t value, uint64_t step) { return (value + step - 1) / step * step; }

// The data that is read after a block of steps; each tile prefetches a share.
struct Next {
  const float* first;
  uint64_t floats;

  MicroKernel::Ahead OfTile(uint64_t tile, uint64_t tiles, uint64_t steps) const {
    const uint64_t of_step = std::min(kLine, (floats + tiles * steps - 1) / (tiles * steps));
    const uint64_t done = tile * steps * of_step;
    return done < floats ? MicroKernel::Ahead{first + done, of_step * sizeof(float)}
                         : MicroKernel::Ahead{first, 0};
  }
};

// Copies sums to the output.
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

GroupedProduct::GroupedProduct(const GemmProblem& problem, const Inputs& inputs, DataType weights,
                               uint32_t threads)
    : p_(problem),
      inputs_(inputs),
      type_(weights),
      tile_(GemmMicroKernel()),
      gates_(static_cast<uint32_t>(p_.n / p_.k)),
      steps_(std::clamp<uint64_t>(kPanelFloats / tile_.columns, 64, kMaxSteps)) {
  const uint64_t products = p_.Batches() * p_.m * p_.n * k();
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
  if (!in_place()) rows_floats_ = RoundUp(k() * RoundUp(p_.m, tile_.rows), kLine);
}

// Adds groups for vectors [begin, end) of units of all directions.
void GroupedProduct::AddGroups(uint64_t begin, uint64_t end) {
  const uint64_t of_direction = RoundUp(p_.k, tile_.lanes) / tile_.lanes,
                 of_tile = tile_.columns / tile_.lanes;
  const uint64_t most = std::max<uint64_t>(1, kGroupFloats / (gates_ * p_.m * tile_.columns)) * of_tile;
  while (begin < end) {
    const uint64_t direction = begin / of_direction, first = begin % of_direction;
    const uint64_t left = std::min(end - begin, of_direction - first);
    uint64_t count = std::min(left, most);
    // Tiles of one vector are slow: two of two are better than three and one.
    if (count == left - 1 && count > 2) count -= 1;
    const uint64_t unit = first * tile_.lanes, width = count * tile_.lanes;
    groups_.push_back({static_cast<uint32_t>(direction), unit, std::min<uint64_t>(width, p_.k - unit), width,
                       weights_floats_});
    weights_floats_ += gates_ * width * k();
    begin += count;
  }
}

Status GroupedProduct::Initialize(const KernelArguments& arguments) const {
  ParallelFor(arguments.executor, workers_, [&](uint32_t worker) {
    const Share& share = shares_[worker];
    for (uint64_t g = share.begin; g < share.end; ++g) PackGroup(groups_[g], arguments);
  });
  return {};
}

// Gate after gate, panel after panel, the steps of inputs before those of states. All panels except the last
// have a tile's width.
void GroupedProduct::PackGroup(const Group& group, const KernelArguments& arguments) const {
  const auto source = [&](uint32_t input, const GemmMatrix& b) {
    const std::byte* const data = arguments.inputs[input].data;
    return StridedPanels(data + group.direction * b.batch[0] * (BitSize(type_) / 8), type_, b.column, b.row);
  };
  float* to = reinterpret_cast<float*>(arguments.persistent.data) + group.weights;
  for (uint32_t gate = 0; gate < gates_; ++gate) {
    for (uint64_t c = 0; c < group.width; c += tile_.columns) {
      const auto width = static_cast<uint32_t>(std::min<uint64_t>(tile_.columns, group.width - c));
      const uint64_t first = gate * p_.k + group.unit + c, count = std::min<uint64_t>(width, group.units - c);
      if (adds_inputs()) source(2, inputs_.weights).Pack(first, count, 0, inputs_.k, width, to);
      source(1, p_.b).Pack(first, count, 0, p_.k, width, to + inputs_.k * width);
      to += k() * width;
    }
  }
}

Status GroupedProduct::Run(const KernelArguments& arguments) const {
  RunGroups(arguments, {}, CopySink(p_, reinterpret_cast<float*>(arguments.outputs[0].data)));
  return {};
}

// If kernels cannot read rows in place, they are packed into `scratch` or (without `packs`) already are.
GroupedProduct::Side GroupedProduct::SideOf(const Rows& rows, uint64_t k, bool packs, float** scratch) const {
  if (in_place() || k == 0) return {rows, k};
  float* const to = *scratch;
  *scratch += k * RoundUp(p_.m, tile_.rows);
  if (packs) {
    const StridedPanels panels(reinterpret_cast<const std::byte*>(rows.first), DataType::kFloat32,
                               rows.stride, 1);
    panels.Pack(0, p_.m, 0, k, tile_.rows, to);
  }
  return {{to, 0}, k};
}

void GroupedProduct::RunGroups(const KernelArguments& arguments, std::span<const Rows> inputs,
                               const Sink& sink) const {
  const auto* const state = reinterpret_cast<const float*>(arguments.inputs[0].data);
  const auto* const weights = reinterpret_cast<const float*>(arguments.persistent.data);
  ParallelFor(arguments.executor, workers_, [&](uint32_t worker) {
    float* const sums = reinterpret_cast<float*>(arguments.temporary.data) + worker * worker_floats();
    const Share& share = shares_[worker];
    for (uint64_t g = share.begin; g < share.end; ++g) {
      const Group& group = groups_[g];
      const bool is_first = g == share.begin || groups_[g - 1].direction != group.direction;
      float* scratch = sums + sums_floats_;
      const Side of_inputs =
          SideOf(inputs.empty() ? Rows{} : inputs[group.direction], inputs_.k, is_first, &scratch);
      const Side of_state = SideOf({state + group.direction * p_.m * p_.k, p_.k}, p_.k, is_first, &scratch);
      const float* const next = weights + groups_[g + 1 < share.end ? g + 1 : share.begin].weights;
      RunGroup(group, {of_inputs, of_state}, weights + group.weights, next, sink, sums);
      sink.Finish(group, sums);
    }
  });
}

// `next`: what is read after the group's own weights.
void GroupedProduct::RunGroup(const Group& group, const Side (&sides)[2], const float* weights,
                              const float* next, const Sink& sink, float* sums) const {
  const uint64_t tiles = (p_.m + tile_.rows - 1) / tile_.rows;
  const float* const end = weights + gates_ * group.width * k();
  const float* b = weights;
  for (uint32_t gate = 0; gate < gates_; ++gate) {
    for (uint64_t c = 0; c < group.width; c += tile_.columns) {
      const uint64_t width = std::min<uint64_t>(tile_.columns, group.width - c);
      bool accumulate = false;
      for (const Side& side : sides) {
        for (uint64_t step = 0, steps; step < side.k; step += steps, accumulate = true) {
          steps = std::min(steps_, side.k - step);
          const float* const behind = b + steps * width;
          const Next ahead = {behind == end ? next : behind, steps * width};
          for (uint64_t tile = 0; tile < tiles; ++tile) {
            const uint64_t row = tile * tile_.rows;
            if (c == 0 && !accumulate) {
              sink.Expect(group, gate, row, std::min<uint64_t>(tile_.rows, p_.m - row));
            }
            RunTile(side, row, step, steps, b, width, sums + (gate * p_.m + row) * group.width + c,
                    group.width, accumulate, ahead.OfTile(tile, tiles, steps));
          }
          b = behind;
        }
      }
    }
  }
}

// Packed rows that do not exist have sums that are not used.
void GroupedProduct::RunTile(const Side& side, uint64_t row, uint64_t step, uint64_t steps, const float* b,
                             uint64_t width, float* to, uint64_t to_stride, bool accumulate,
                             const MicroKernel::Ahead& ahead) const {
  const uint64_t vectors = width / tile_.lanes, rows = std::min<uint64_t>(tile_.rows, p_.m - row);
  const Rows& a = side.rows;
  if (in_place()) {
    tile_.in_place[rows - 1][vectors - 1]({a.first + row * a.stride + step, a.stride}, b, width, steps, to,
                                          to_stride, accumulate, ahead);
    return;
  }
  const auto run = width == tile_.columns ? tile_.run : tile_.narrow[vectors - 1];
  const float* const panel = a.first + row * side.k + step * tile_.rows;
  if (rows == tile_.rows) {
    run(panel, b, width, steps, to, to_stride, accumulate, ahead);
    return;
  }
  alignas(64) float whole[kMaxTileRows * kMaxTileColumns];
  run(panel, b, width, steps, whole, width, false, ahead);
  for (uint64_t i = 0; i < rows; ++i) {
    for (uint64_t j = 0; j < width; ++j) {
      float& sum = to[i * to_stride + j];
      sum = accumulate ? sum + whole[i * width + j] : whole[i * width + j];
    }
  }
}

}  // namespace anydml
