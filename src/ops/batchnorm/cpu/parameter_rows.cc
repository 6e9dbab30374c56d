// BATCH_NORMALIZATION with the same mean, variance, scale and bias for contiguous elements: one pass, without
// the registers that an element program would fill with them.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/half.h"
#include "ops/batchnorm/parameter_rows.h"
#include "ops/common/nest_parts.h"
#include "ops/common/stream_copy.h"
#include "ops/numbers/convert_rows.h"

namespace anydml {
namespace {

constexpr uint64_t kShortest = 16;
constexpr uint64_t kBlock = 4096;    // elements at a time
constexpr uint64_t kStreamed = 256;  // small, so that the next elements are computed while streaming stores
                                     // are in flight
// Shorter rows are streamed only if they are whole cache lines; otherwise many lines would be written
// partially.
constexpr uint64_t kLongRow = 512;

// Rounded after every step. Tests for NaNs only if some result is not finite; computed NaNs are made
// canonical.
void WriteBlock(const float* x, float* y, uint64_t count, float mean, float factor, float bias) {
  constexpr uint32_t kExponent = 0x7F800000;
  uint32_t any = 0;
  for (uint64_t i = 0; i < count; ++i) {
    y[i] = (x[i] - mean) * factor + bias;
    any |= (std::bit_cast<uint32_t>(y[i]) & kExponent) == kExponent ? 1 : 0;
  }
  if (any == 0) return;
  for (uint64_t i = 0; i < count; ++i) {
    if (std::isnan(y[i])) y[i] = std::numeric_limits<float>::quiet_NaN();
  }
}

class BatchNormRowsCpu final : public Kernel {
 public:
  BatchNormRowsCpu(const BatchNormProblem& problem, const BatchNormRows& rows, const LowerContext& context)
      : rows_(rows.rows),
        length_(rows.length),
        blocks_((length_ + kBlock - 1) / kBlock),
        epsilon_(problem.epsilon),
        is_half_(problem.input.type == DataType::kFloat16) {
    units_ = Iterations(rows_) * blocks_;
    const uint64_t bytes = 2 * ElementCount(problem.input) * BitSize(problem.input.type) / 8;
    parts_ = static_cast<uint32_t>(std::min<uint64_t>(units_, PartsForBytes(bytes, context.threads)));
    streams_ = !is_half_ && (length_ >= kLongRow || length_ % 16 == 0) && StreamsResults(bytes / 2);
  }

  Status Run(const KernelArguments& arguments) const override {
    ParallelFor(arguments.executor, parts_, [&](uint32_t part) {
      const uint64_t end = PartBegin(units_, part + 1, parts_);
      for (uint64_t unit = PartBegin(units_, part, parts_); unit < end; ++unit) RunUnit(arguments, unit);
      if (streams_) EndStream();
    });
    return {};
  }

 private:
  float ElementAt(const Buffer& buffer, uint64_t offset) const {
    return is_half_ ? ToFloat(reinterpret_cast<const Half*>(buffer.data)[offset])
                    : reinterpret_cast<const float*>(buffer.data)[offset];
  }

  void RunUnit(const KernelArguments& arguments, uint64_t unit) const {
    constexpr auto kAt = batch_norm::InputsOf(BatchNormProblem::kInference);
    const LoopNest<6>::Offsets at = OffsetsOf(rows_, unit / blocks_);
    const uint64_t begin = unit % blocks_ * kBlock, count = std::min(kBlock, length_ - begin);
    const float mean = ElementAt(arguments.inputs[kAt.mean], at[2]);
    const float variance = ElementAt(arguments.inputs[kAt.variance], at[3]);
    const float factor = ElementAt(arguments.inputs[kAt.scale], at[4]) / std::sqrt(variance + epsilon_);
    const float bias = ElementAt(arguments.inputs[kAt.bias], at[5]);
    const uint64_t x = at[0] + begin, y = at[1] + begin;
    alignas(64) float numbers[kBlock];
    if (!is_half_) {
      const float* const from = reinterpret_cast<const float*>(arguments.inputs[0].data) + x;
      float* const to = reinterpret_cast<float*>(arguments.outputs[0].data) + y;
      const bool few_pieces = length_ >= kLongRow || reinterpret_cast<uintptr_t>(to) % 64 == 0;
      if (!streams_ || !few_pieces || from == to) return WriteBlock(from, to, count, mean, factor, bias);
      for (uint64_t i = 0; i < count; i += kStreamed) {
        const uint64_t piece = std::min(kStreamed, count - i);
        WriteBlock(from + i, numbers, piece, mean, factor, bias);
        StreamComputed(reinterpret_cast<std::byte*>(to + i), reinterpret_cast<const std::byte*>(numbers),
                       piece * sizeof(float));
      }
      return;
    }
    HalvesToFloats(reinterpret_cast<const uint16_t*>(arguments.inputs[0].data) + x, numbers, count);
    WriteBlock(numbers, numbers, count, mean, factor, bias);
    FloatsToHalves(numbers, reinterpret_cast<uint16_t*>(arguments.outputs[0].data) + y, count);
  }

  LoopNest<6> rows_;
  uint64_t length_, blocks_, units_;
  float epsilon_;
  bool is_half_;
  bool streams_;  // with non-temporal stores
  uint32_t parts_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateBatchNormRows(const BatchNormProblem& problem,
                                                  const LowerContext& context, std::string* why_not) {
  if (const auto rows = ChannelRowsOf(problem, kShortest, why_not)) {
    return CreateBatchNormChannels(problem, *rows, context);
  }
  const std::optional<BatchNormRows> rows = RowsOf(problem, kShortest, why_not);
  if (!rows) return nullptr;
  return std::make_unique<BatchNormRowsCpu>(problem, *rows, context);
}

}  // namespace anydml
