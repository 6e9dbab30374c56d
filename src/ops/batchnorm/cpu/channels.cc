// BATCH_NORMALIZATION with contiguous channels: computes each channel's parameters once, then every row in
// one pass.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/half.h"
#include "kernel/scratch_layout.h"
#include "ops/batchnorm/parameter_rows.h"
#include "ops/common/nest_parts.h"
#include "ops/numbers/convert_rows.h"

namespace anydml {
namespace {

constexpr uint64_t kSomeChannels = 512;  // at a time

// Rounded after every step; NaNs are canonical.
void NormalizeRow(const float* __restrict x, const float* __restrict mean, const float* __restrict factor,
                  const float* __restrict bias, uint64_t count, float* __restrict y) {
  constexpr uint32_t kExponent = 0x7F800000;
  uint32_t any = 0;
  for (uint64_t i = 0; i < count; ++i) {
    y[i] = (x[i] - mean[i]) * factor[i] + bias[i];
    any |= (std::bit_cast<uint32_t>(y[i]) & kExponent) == kExponent ? 1 : 0;
  }
  if (any == 0) return;
  for (uint64_t i = 0; i < count; ++i) {
    if (std::isnan(y[i])) y[i] = std::numeric_limits<float>::quiet_NaN();
  }
}

class BatchNormChannels final : public Kernel {
 public:
  BatchNormChannels(const BatchNormProblem& problem, const BatchNormRows& rows, const LowerContext& context)
      : rows_(rows.rows),
        channels_(rows.length),
        count_(Iterations(rows_)),
        epsilon_(problem.epsilon),
        is_half_(problem.input.type == DataType::kFloat16) {
    const uint64_t bytes = 2 * ElementCount(problem.input) * BitSize(problem.input.type) / 8;
    parts_ = static_cast<uint32_t>(std::min<uint64_t>(count_, PartsForBytes(bytes, context.threads)));
    parameters_ = scratch_.Add("parameters", 3 * channels_ * sizeof(float), 64);
  }

  uint64_t temporary_bytes() const override { return scratch_.bytes(); }

  Status Run(const KernelArguments& arguments) const override {
    constexpr auto kAt = batch_norm::InputsOf(BatchNormProblem::kInference);
    float* const mean = parameters_.In<float>(arguments.temporary);
    float *const factor = mean + channels_, *const bias = factor + channels_;
    for (uint64_t c = 0; c < channels_; ++c) {
      mean[c] = ElementAt(arguments.inputs[kAt.mean], c);
      const float variance = ElementAt(arguments.inputs[kAt.variance], c);
      factor[c] = ElementAt(arguments.inputs[kAt.scale], c) / std::sqrt(variance + epsilon_);
      bias[c] = ElementAt(arguments.inputs[kAt.bias], c);
    }
    ParallelFor(arguments.executor, parts_, [&](uint32_t part) {
      const uint64_t end = PartBegin(count_, part + 1, parts_);
      for (uint64_t row = PartBegin(count_, part, parts_); row < end; ++row) {
        const LoopNest<6>::Offsets at = OffsetsOf(rows_, row);
        for (uint64_t c = 0; c < channels_; c += kSomeChannels) {
          const uint64_t some = std::min(kSomeChannels, channels_ - c);
          RunSome(arguments, at[0] + c, at[1] + c, some, mean + c);
        }
      }
    });
    return {};
  }

 private:
  float ElementAt(const Buffer& buffer, uint64_t offset) const {
    return is_half_ ? ToFloat(reinterpret_cast<const Half*>(buffer.data)[offset])
                    : reinterpret_cast<const float*>(buffer.data)[offset];
  }

  // Input and output may be the same.
  void RunSome(const KernelArguments& arguments, uint64_t from, uint64_t to, uint64_t count,
               const float* mean) const {
    const float *const factor = mean + channels_, *const bias = factor + channels_;
    float numbers[kSomeChannels], results[kSomeChannels];
    if (!is_half_) {
      const float* const x = reinterpret_cast<const float*>(arguments.inputs[0].data) + from;
      NormalizeRow(x, mean, factor, bias, count, results);
      std::memcpy(arguments.outputs[0].data + to * sizeof(float), results, count * sizeof(float));
      return;
    }
    HalvesToFloats(reinterpret_cast<const uint16_t*>(arguments.inputs[0].data) + from, numbers, count);
    NormalizeRow(numbers, mean, factor, bias, count, results);
    FloatsToHalves(results, reinterpret_cast<uint16_t*>(arguments.outputs[0].data) + to, count);
  }

  LoopNest<6> rows_;
  uint64_t channels_, count_;
  float epsilon_;
  bool is_half_;
  uint32_t parts_;
  ScratchLayout scratch_;
  ScratchLayout::Piece parameters_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateBatchNormChannels(const BatchNormProblem& problem,
                                                      const BatchNormRows& rows,
                                                      const LowerContext& context) {
  return std::make_unique<BatchNormChannels>(problem, rows, context);
}

}  // namespace anydml
