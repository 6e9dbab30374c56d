// Which kernel a reduction on a GPU gets, and how it is divided between blocks: by the problem and the device
// only, so that sums are always added in the same order.
#include <algorithm>
#include <bit>

#include "kernel/scratch_layout.h"
#include "ops/common/cuda_units.cuh"
#include "ops/reduce/cuda/device.cuh"

namespace anydml {
namespace {

using reduce::CeilDivide;
using reduce::Launch;
using reduce::Parameters;

constexpr uint64_t kMaxPartialBytes = 16;  // of an accumulator

// A launch and how it divides the problem.
struct Division {
  Launch launch = nullptr;
  uint32_t columns = 1;  // outputs of a block; units of them in ReduceColumns
  uint32_t lanes = 1;    // threads for each
  bool lanes_first = true;
  uint32_t threads = 256;
  uint32_t segments = 1;
  uint32_t segment = 1;  // elements
};

class ReduceCuda final : public Kernel {
 public:
  ReduceCuda(const ReduceProblem& problem, const LowerContext& context)
      : multiprocessors_(context.device->multiprocessors) {
    const ReduceNests nests = NestsOf(problem);
    common_.kept = DeviceNest<2>(nests.kept);
    common_.reduced = DeviceNest<1>(nests.reduced);
    common_.outputs = static_cast<uint32_t>(Iterations(nests.kept));
    common_.elements = static_cast<uint32_t>(Iterations(nests.reduced));
    common_.function = problem.function;
    common_.input_type = problem.input.type;
    common_.output_type = problem.output.type;
    DivideAnyhow(problem, nests);
    DivideInUnits(problem, nests);
    const uint32_t segments = std::max(any_.segments, units_.segments);
    if (segments > 1) {
      partials_ = scratch_.Add("partials", uint64_t{common_.outputs} * segments * kMaxPartialBytes);
    }
  }

  Status Run(const KernelArguments& arguments) const override {
    Parameters p = common_;
    p.input = arguments.inputs[0].data;
    p.output = arguments.outputs[0].data;
    p.partials = partials_.In<void>(arguments.temporary);
    const bool in_units = units_.launch != nullptr && AddressOf(p.input) % kMaxUnitBytes == 0;
    const Division& division = in_units ? units_ : any_;
    p.columns = division.columns;
    p.lanes = division.lanes;
    p.lanes_first = division.lanes_first;
    p.segments = division.segments;
    p.segment = division.segment;
    KernelChain chain(arguments.stream);
    division.launch(chain, p, CeilDivide(p.outputs, OutputsOf(division)) * p.segments, division.threads);
    if (p.segments == 1) return {};
    p.merges = true;
    // No more threads for each output than it takes to fill the device once: each then waits for memory once.
    const uint32_t enough = CeilDivide(uint64_t{multiprocessors_} * any_.threads, p.outputs);
    p.lanes = std::bit_ceil(std::min({p.segments, any_.threads, enough}));
    p.columns = any_.threads / p.lanes;
    p.lanes_first = p.outputs < 32;  // partials of one segment are neighbours
    any_.launch(chain, p, CeilDivide(p.outputs, p.columns), any_.threads);
    return {};
  }

  uint64_t temporary_bytes() const override { return scratch_.bytes(); }

 private:
  uint32_t OutputsOf(const Division& division) const {
    return &division == &units_ && by_columns_ ? division.columns * per_unit_ : division.columns;
  }

  // As many segments as fill the device once, none of them short. `step`: segments begin at its multiples.
  void CutIntoSegments(Division* division, uint32_t at_once, uint64_t least, uint32_t step) const {
    const uint64_t groups = CeilDivide(common_.outputs, OutputsOf(*division));
    const uint64_t wanted = std::min<uint64_t>(uint64_t{at_once} * multiprocessors_ / groups,
                                               common_.elements / std::max<uint64_t>(least, 1));
    const uint64_t segments = std::clamp<uint64_t>(wanted, 1, 1024);
    const uint64_t segment = CeilDivide(common_.elements, segments);
    division->segment =
        static_cast<uint32_t>(std::min<uint64_t>((segment + step - 1) / step * step, common_.elements));
    division->segments = CeilDivide(common_.elements, division->segment);
  }

  void DivideAnyhow(const ReduceProblem& problem, const ReduceNests& nests) {
    const Accumulation kind = AccumulationOf(problem.function);
    const bool is_float =
        problem.input.type == DataType::kFloat32 || problem.input.type == DataType::kFloat16;
    any_.launch = is_float ? reduce::FindFloatLaunch(kind, problem.last)
                           : reduce::FindIntegerLaunch(kind, problem.last, problem.input.type);
    const LoopNest<2>& kept = nests.kept;
    const LoopNest<1>& reduced = nests.reduced;
    any_.lanes_first = reduced.rank > 0 && (kept.rank == 0 || reduced.loops[reduced.rank - 1].strides[0] <=
                                                                  kept.loops[kept.rank - 1].strides[0]);
    // Neighbours side by side: of one output, or of different ones.
    const uint32_t most = any_.lanes_first ? 256 : 8;
    any_.lanes = std::min(most, std::bit_ceil(std::min(common_.elements, most)));
    any_.columns = any_.threads / any_.lanes;
    CutIntoSegments(&any_, 8, uint64_t{32} * any_.lanes, 1);
  }

  // Rows or columns of floats whose units are aligned, if the input's address is.
  void DivideInUnits(const ReduceProblem& problem, const ReduceNests& nests) {
    const uint32_t bytes = BitSize(problem.input.type) / 8;
    const Accumulation kind = AccumulationOf(problem.function);
    const LoopNest<2>& kept = nests.kept;
    const LoopNest<1>& reduced = nests.reduced;
    per_unit_ = kMaxUnitBytes / bytes;
    const auto aligned = [&](uint64_t elements) { return elements % per_unit_ == 0; };
    bool kept_aligned = true;  // but for the innermost loop
    for (uint32_t d = 0; d + 1 < kept.rank; ++d) kept_aligned &= aligned(kept.loops[d].strides[0]);
    const auto last_kept = kept.rank > 0 ? kept.loops[kept.rank - 1] : LoopNest<2>::Loop{};
    if (reduced.rank == 1 && reduced.loops[0].strides[0] == 1 && common_.elements >= 32 && kept_aligned &&
        aligned(last_kept.strides[0])) {
      units_.launch = reduce::FindRowsLaunch(kind, problem.last, problem.input.type);
      DivideRows();
      return;
    }
    bool reduced_aligned = true;
    for (uint32_t d = 0; d < reduced.rank; ++d) reduced_aligned &= aligned(reduced.loops[d].strides[0]);
    if (kept.rank > 0 && last_kept.strides[0] == 1 && aligned(last_kept.size) && kept_aligned &&
        reduced_aligned && common_.elements >= 8 && common_.outputs >= 64) {
      by_columns_ = true;
      units_.launch = reduce::FindColumnsLaunch(kind, problem.last, problem.input.type);
      // What one launch does in a few microseconds is not worth a second one, but more blocks, of 32 outputs
      // each, whose threads wait for memory once.
      const bool is_small = uint64_t{common_.elements} * common_.outputs <= 1 << 17;
      units_.columns = is_small ? 32 / per_unit_ : 32;
      CutIntoSegments(&units_, reduce::kColumnBlocksAtOnce, is_small ? 512 : 128, 1);
    }
  }

  void DivideRows() {
    const uint32_t units = CeilDivide(common_.elements, per_unit_);
    // A warp where rows are short and many, otherwise a block.
    const bool by_warps = units <= 256 && common_.outputs >= 8 * multiprocessors_;
    // Where rows are many, small blocks: while some merge, others load.
    const uint32_t most = common_.outputs >= 8 * multiprocessors_ ? 256 : units <= 4096 ? 512 : 1024;
    units_.lanes = by_warps ? 32 : std::clamp(std::bit_ceil(units / 8), 128u, most);
    units_.columns = by_warps ? 8 : 1;
    units_.threads = units_.lanes * units_.columns;
    if (!by_warps) CutIntoSegments(&units_, 2048 / units_.threads, 1 << 16, per_unit_);
    if (by_warps) units_.segment = common_.elements;
  }

  uint32_t multiprocessors_;
  Parameters common_{};  // but for addresses and the division
  Division any_, units_;
  uint32_t per_unit_ = 1;
  bool by_columns_ = false;  // units_ has columns
  ScratchLayout scratch_;
  ScratchLayout::Piece partials_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateReduceCuda(const ReduceProblem& problem, const LowerContext& context,
                                               std::string*) {
  return std::make_unique<ReduceCuda>(problem, context);
}

}  // namespace anydml
