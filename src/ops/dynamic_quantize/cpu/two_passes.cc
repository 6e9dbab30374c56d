#include <algorithm>
#include <vector>

#include "ops/common/nest_parts.h"
#include "ops/dynamic_quantize/two_passes.h"
#include "ops/numbers/load_store.h"

namespace anydml {
namespace {

constexpr uint64_t kRow = 1024;  // elements at a time, as FLOAT32

// Comparisons with NaN are false. Sixteen independent accumulators of each kind let the compiler vectorise.
Range RangeOf(const float* x, uint64_t count, Range range) {
  constexpr uint64_t kLanes = 16;
  float low[kLanes], high[kLanes];
  std::fill_n(low, kLanes, range.min);
  std::fill_n(high, kLanes, range.max);
  uint64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (uint64_t j = 0; j < kLanes; ++j) {
      low[j] = x[i + j] < low[j] ? x[i + j] : low[j];
      high[j] = x[i + j] > high[j] ? x[i + j] : high[j];
    }
  }
  for (uint64_t j = 0; i + j < count; ++j) {
    low[j] = x[i + j] < low[j] ? x[i + j] : low[j];
    high[j] = x[i + j] > high[j] ? x[i + j] : high[j];
  }
  return {*std::min_element(low, low + kLanes), *std::max_element(high, high + kLanes)};
}

class TwoPasses final : public TwoPassesKernel {
 public:
  TwoPasses(const DynamicQuantizeProblem& problem, LoweredOperator quantize, const LowerContext& context)
      : TwoPassesKernel(std::move(quantize)),
        quantized_(problem.quantized),
        load_(FindLoad(problem.input.type, Class::kF32)) {
    const TensorDesc& input = problem.input;
    LoopNest<1> nest;
    for (uint32_t d = 0; d < input.rank; ++d) nest.Append(input.sizes[d], {input.strides[d]});
    nest = SortedByStride(nest, 0);
    const uint32_t parts = PartsForBytes(ElementCount(input) * BitSize(input.type) / 8, context.threads);
    parts_ = CutNest(nest, LoopToCut(nest, parts), parts);
    ranges_ = AddScratch("ranges", parts_.size() * sizeof(Range));
  }

  Status Run(const KernelArguments& arguments) const override {
    auto* const ranges = ranges_.In<Range>(arguments.temporary);
    ParallelFor(arguments.executor, static_cast<uint32_t>(parts_.size()),
                [&](uint32_t part) { ranges[part] = RangeOfPart(parts_[part], arguments.inputs[0].data); });
    Range range;
    for (size_t i = 0; i < parts_.size(); ++i) {
      range = {std::min(range.min, ranges[i].min), std::max(range.max, ranges[i].max)};
    }
    const QuantizationParameters parameters = ParametersOf(range, quantized_);
    *reinterpret_cast<float*>(arguments.outputs[1].data) = parameters.scale;
    arguments.outputs[2].data[0] = static_cast<std::byte>(static_cast<int32_t>(parameters.zero_point));
    return RunQuantize(arguments);
  }

 private:
  Range RangeOfPart(const NestPart<1>& part, const std::byte* input) const {
    Range range;
    ForEach(part.outer, part.start, [&](const LoopNest<1>::Offsets& offsets) {
      float row[kRow];
      const uint64_t stride = part.inner.strides[0];
      for (uint64_t at = 0; at < part.inner.size; at += kRow) {
        const uint64_t count = std::min(kRow, part.inner.size - at);
        load_(input, Block{.columns = count, .column_stride = stride, .offset = offsets[0] + at * stride},
              row);
        range = RangeOf(row, count, range);
      }
    });
    return range;
  }

  DataType quantized_;
  LoadBlock load_;
  std::vector<NestPart<1>> parts_;
  ScratchLayout::Piece ranges_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateDynamicQuantizeCpu(const DynamicQuantizeProblem& problem,
                                                       const LowerContext& context, std::string* why_not) {
  return CreateTwoPasses<TwoPasses>(problem, context, why_not);
}

}  // namespace anydml
