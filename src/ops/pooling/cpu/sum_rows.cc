// Averages and norms: sums of rows along the last dimension.
#include <algorithm>

#include "kernel/scratch_layout.h"
#include "ops/pooling/cpu/kernels.h"
#include "ops/pooling/cpu/row_plan.h"
#include "ops/pooling/cpu/sum_kernel.h"
#include "ops/pooling/cpu/units.h"

namespace anydml {
namespace {

using namespace pooling;  // NOLINT(google-build-using-namespace)

class PoolingSumRows final : public SumKernel {
 public:
  PoolingSumRows(const PoolingProblem& problem, const LowerContext& context)
      : SumKernel(problem, RowStride(problem.shape.axes[2].input, problem.input.strides[4]),
                  RowStride(problem.shape.axes[2].windows, problem.output.strides[4])),
        plan_(problem.shape),
        parts_(PartsOf(problem.shape, problem.input.type, plan_.rows, context.threads)),
        plane_(SmallPlane(problem)),
        whole_planes_(HasWholePlanes(problem) && reads_directly_),
        buffer_(Aligned(plan_.buffer)),
        terms_(Aligned(std::max(plan_.columns, plane_))),
        part_(buffer_ + kRowsAtOnce * terms_ + Aligned(plan_.last.windows)) {
    scratch_ = layout_.Add("rows", parts_ * part_ * sizeof(float), 64);
  }

  Status Run(const KernelArguments& arguments) const override {
    ForParts(arguments.executor, plan_.rows, parts_, [&](uint32_t part, uint64_t begin, uint64_t end) {
      float* const memory = scratch_.In<float>(arguments.temporary) + part * part_;
      std::fill_n(memory, plan_.buffer, 0.0f);
      RowPlan::Place at = plan_.At(p_.shape, begin);
      for (uint64_t row = begin; row < end; ++row, RowPlan::Advance(p_.shape, &at)) {
        RunRow(arguments, at, memory);
      }
    });
    return {};
  }
  uint64_t temporary_bytes() const override { return layout_.bytes(); }

 private:
  // A row of one element may have any stride. In a plane such rows are contiguous.
  static uint64_t RowStride(uint64_t elements, uint64_t stride) { return elements == 1 ? 1 : stride; }
  static uint64_t SmallPlane(const PoolingProblem& p) {
    const auto& axes = p.shape.axes;
    const uint64_t elements = uint64_t{axes[0].input} * axes[1].input * axes[2].input;
    return HasWholePlanes(p) && axes[2].input <= kColumnsInARow && elements <= 4096 ? elements : 0;
  }
  static uint64_t Aligned(uint64_t floats) { return SaturatingAlignUp(floats, 16); }

  void RunRow(const KernelArguments& arguments, const RowPlan::Place& at, float* buffer) const {
    float* const terms = buffer + buffer_;
    const uint64_t output = at.RowOffset(p_.output), windows = plan_.last.windows;
    float* const sums = writes_directly_ ? reinterpret_cast<float*>(arguments.outputs[0].data) + output
                                         : terms + kRowsAtOnce * terms_;
    if (plane_ > 0) {
      const float* const plane = Terms(arguments, at.ChannelOffset(p_.input), plane_, at.c, 0, terms);
      *sums = loops_.plane(plane, plane_ / plan_.last.input, plan_.last.input);
    } else if (at.empty() || plan_.columns == 0) {
      std::fill_n(sums, windows, 0.0f);
    } else {
      AddRows(arguments, at, buffer);
      AddColumns(buffer, sums);
    }
    Finish(arguments, sums, windows, divisors_[2].data(), divisors_[0][at.d] * divisors_[1][at.h], at.c, 0);
    if (writes_directly_) return;
    store_(sums, Block{.columns = windows, .column_stride = output_stride_, .offset = output},
           arguments.outputs[0].data);
  }

  // Adds the input rows of a row of windows to the buffer.
  void AddRows(const KernelArguments& arguments, const RowPlan::Place& at, float* buffer) const {
    const uint64_t channel = at.ChannelOffset(p_.input);
    if (whole_planes_) {
      const uint64_t height = uint64_t{p_.shape.axes[0].input} * p_.shape.axes[1].input;
      const auto* const plane = reinterpret_cast<const float*>(arguments.inputs[0].data) + channel;
      if (loops_.rows_of_plane(plane, height, plan_.last.input, buffer)) return;
    }
    float* const terms = buffer + buffer_;
    Rows rows(loops_, plan_.columns, buffer + plan_.last.start);
    at.ForEachRow(p_, [&](uint64_t offset) {
      rows.Add(Terms(arguments, channel + offset, plan_.columns, at.c, 0, terms + rows.filled() * terms_));
    });
    rows.Finish();
  }

  void AddColumns(const float* buffer, float* sums) const {
    const WindowAxis& last = plan_.last;
    if (last.size > kColumnsInARow) {
      for (uint32_t w = 0; w < last.windows; ++w) {
        sums[w] = loops_.wide(buffer + uint64_t{w} * last.stride, last.dilation, last.size);
      }
      return;
    }
    if (last.windows == 1) {
      float sum = 0;
      for (uint32_t k = 0; k < last.size; ++k) sum += buffer[k * uint64_t{last.dilation}];
      *sums = sum;
      return;
    }
    for (uint32_t k = 0; k < last.size; k += kRowsAtOnce) {
      const uint32_t used = std::min(kRowsAtOnce, last.size - k);
      const float* columns[kRowsAtOnce];
      for (uint32_t j = 0; j < kRowsAtOnce; ++j) {
        columns[j] = buffer + std::min(k + j, last.size - 1) * uint64_t{last.dilation};
      }
      loops_.columns(columns, used, last.stride, last.windows, k == 0, sums);
    }
  }

  RowPlan plan_;
  uint32_t parts_;
  uint64_t plane_;     // elements per plane, if windows are whole planes that are summed at once; otherwise 0
  bool whole_planes_;  // windows are whole planes of any size, and can be read in place
  uint64_t buffer_;    // floats of the buffer, of a row of terms, and of all memory of a part
  uint64_t terms_;
  uint64_t part_;
  ScratchLayout layout_;
  ScratchLayout::Piece scratch_;
};

}  // namespace

std::unique_ptr<const Kernel> CreatePoolingSumRows(const PoolingProblem& problem, const LowerContext& context,
                                                   std::string* why_not) {
  if (!IsForSums(problem, why_not) || !RowPlan::Fits(problem, why_not)) return nullptr;
  return std::make_unique<PoolingSumRows>(problem, context);
}

}  // namespace anydml
