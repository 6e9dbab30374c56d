// Averages and norms: sums of rows along the last dimension, or along the channels.
#include <algorithm>
#include <vector>

#include "kernel/scratch_layout.h"
#include "ops/element/cpu/blocks.h"
#include "ops/pooling/arithmetic.h"
#include "ops/pooling/cpu/kernels.h"
#include "ops/pooling/cpu/row_loops.h"
#include "ops/pooling/cpu/row_plan.h"
#include "ops/pooling/cpu/units.h"

namespace anydml {
namespace {

using namespace pooling;  // NOLINT(google-build-using-namespace)

class SumKernel : public Kernel {
 protected:
  SumKernel(const PoolingProblem& problem, uint64_t input_stride, uint64_t output_stride)
      : p_(problem),
        loops_(FindSumLoops()),
        load_(FindLoad(problem.input.type, Class::kF32)),
        store_(FindStore(Class::kF32, problem.output.type)),
        input_stride_(input_stride),
        output_stride_(output_stride),
        reads_directly_(problem.input.type == DataType::kFloat32 && input_stride == 1 &&
                        problem.function == PoolingFunction::kAverage),
        writes_directly_(problem.output.type == DataType::kFloat32 && output_stride == 1) {
    for (uint32_t d = 0; d < kSpatialRank; ++d) {
      const WindowAxis& axis = p_.shape.axes[d];
      for (uint32_t w = 0; w < axis.windows; ++w) {
        divisors_[d].push_back(static_cast<float>(DivisorTaps(axis, w, p_.include_padding)));
      }
    }
  }

  // `count` elements from `offset` on as what is added up: in `memory`, or where they are.
  const float* Terms(const KernelArguments& arguments, uint64_t offset, uint64_t count, uint32_t channel,
                     uint64_t channel_step, float* memory) const {
    const std::byte* const data = arguments.inputs[0].data;
    if (reads_directly_) return reinterpret_cast<const float*>(data) + offset;
    load_(data, Block{.columns = count, .column_stride = input_stride_, .offset = offset}, memory);
    if (p_.function == PoolingFunction::kLp) {
      if (p_.p <= 2) {
        loops_.powers(memory, p_.p, count);
      } else {
        for (uint64_t i = 0; i < count; ++i) memory[i] = LpTerm(memory[i], p_.p);
      }
    } else if (p_.has_parameter[PoolingProblem::kInputZeroPoint]) {
      for (uint64_t i = 0; i < count; ++i) {
        memory[i] -= Parameter(arguments, PoolingProblem::kInputZeroPoint, channel + i * channel_step);
      }
    }
    return memory;
  }

  float Parameter(const KernelArguments& arguments, PoolingProblem::Parameter which, uint64_t channel) const {
    if (!p_.has_parameter[which]) return 0;
    const std::byte* const data = arguments.inputs[1 + which].data;
    const uint64_t at = channel * p_.parameter_strides[which];
    switch (which) {
      case PoolingProblem::kInputScale:
      case PoolingProblem::kOutputScale:
        return reinterpret_cast<const float*>(data)[at];
      default: {
        const DataType type = which == PoolingProblem::kInputZeroPoint ? p_.input.type : p_.output.type;
        return type == DataType::kInt8 ? static_cast<float>(reinterpret_cast<const int8_t*>(data)[at])
                                       : static_cast<float>(reinterpret_cast<const uint8_t*>(data)[at]);
      }
    }
  }

  // Results from sums, in place; sum i is divided by divisors[i] * factor, and of channel + i * channel_step.
  void Finish(const KernelArguments& arguments, float* sums, uint64_t count, const float* divisors,
              float factor, uint32_t channel, uint64_t channel_step) const {
    if (p_.function == PoolingFunction::kAverage) return loops_.divide(sums, divisors, factor, count);
    if (p_.function == PoolingFunction::kLp) {
      if (p_.p <= 2) return loops_.roots(sums, p_.p, count);
      for (uint64_t i = 0; i < count; ++i) sums[i] = WithOneNan(LpRoot(sums[i], p_.p));
      return;
    }
    const float lowest = p_.output.type == DataType::kInt8 ? -128 : 0;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t c = channel + i * channel_step;
      const Quantization q = {Parameter(arguments, PoolingProblem::kInputScale, c),
                              Parameter(arguments, PoolingProblem::kOutputScale, c),
                              Parameter(arguments, PoolingProblem::kOutputZeroPoint, c), lowest};
      sums[i] = QuantizedMean(sums[i], divisors[i] * factor, q);
    }
  }

  // Rows that are added up three by three.
  class Rows {
   public:
    Rows(const SumLoops& loops, uint64_t count, float* sums) : loops_(loops), count_(count), sums_(sums) {}

    void Add(const float* row) {
      rows_[filled_++] = row;
      if (filled_ == kRowsAtOnce) Flush();
    }
    uint32_t filled() const { return filled_; }  // that wait to be added
    void Finish() {
      if (filled_ > 0) Flush();
    }

   private:
    void Flush() {
      loops_.rows(rows_, filled_, count_, first_, sums_);
      first_ = false;
      filled_ = 0;
    }

    const SumLoops& loops_;
    uint64_t count_;
    float* sums_;
    const float* rows_[kRowsAtOnce] = {};
    uint32_t filled_ = 0;
    bool first_ = true;
  };

  PoolingProblem p_;
  SumLoops loops_;
  LoadBlock load_;
  StoreBlock store_;
  uint64_t input_stride_;  // along the rows
  uint64_t output_stride_;
  bool reads_directly_;
  bool writes_directly_;
  std::array<std::vector<float>, kSpatialRank> divisors_;  // for each window along a dimension
};

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
  // A row of one element has any stride. In a plane such rows follow each other.
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

  // The rows of a row of windows, into the buffer.
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
  uint64_t plane_;     // elements, where windows are whole planes that are added up at once; otherwise 0
  bool whole_planes_;  // windows are, of any size, and can be read as they are
  uint64_t buffer_;    // floats of the buffer, of a row of terms, and of everything that a part has
  uint64_t terms_;
  uint64_t part_;
  ScratchLayout layout_;
  ScratchLayout::Piece scratch_;
};

class PoolingSumChannels final : public SumKernel {
 public:
  PoolingSumChannels(const PoolingProblem& problem, const LowerContext& context)
      : SumKernel(problem, 1, 1),
        windows_(problem.shape.Windows() / problem.shape.channels),
        parts_(PartsOf(problem.shape, problem.input.type, windows_, context.threads)) {}

  Status Run(const KernelArguments& arguments) const override {
    ForParts(arguments.executor, windows_, parts_, [&](uint32_t, uint64_t begin, uint64_t end) {
      Memory memory;
      std::fill_n(memory.ones, kBlock, 1.0f);
      for (uint64_t window = begin; window < end; ++window) RunWindow(arguments, window, &memory);
    });
    return {};
  }

 private:
  static constexpr uint32_t kBlock = 128;  // channels

  struct Memory {
    float ones[kBlock];  // divisors: a window has one for all channels
    float terms[kRowsAtOnce][kBlock];
    float column[kBlock];
    float result[kBlock];
    float lanes[kSumLanes][kBlock];  // of many columns
  };

  void RunWindow(const KernelArguments& arguments, uint64_t number, Memory* memory) const {
    const ChannelWindow at(p_.shape, number);
    const TapBox box = TapBoxOf(p_.shape, at.window);
    const float factor = divisors_[0][at.window[0]] * divisors_[1][at.window[1]] * divisors_[2][at.window[2]];
    const uint64_t input = at.n * p_.input.strides[0], output = at.Offset(p_.output);
    for (uint32_t c = 0; c < p_.shape.channels; c += kBlock) {
      const uint32_t count = std::min(kBlock, p_.shape.channels - c);
      float* const sums = writes_directly_ ? reinterpret_cast<float*>(arguments.outputs[0].data) + output + c
                                           : memory->result;
      AddTaps(arguments, box, input + c, c, count, memory, sums);
      Finish(arguments, sums, count, memory->ones, factor, c, 1);
      if (writes_directly_) continue;
      store_(sums, Block{.columns = count, .offset = output + c}, arguments.outputs[0].data);
    }
  }

  void AddTaps(const KernelArguments& arguments, const TapBox& box, uint64_t input, uint32_t channel,
               uint32_t count, Memory* memory, float* sums) const {
    const bool in_a_row = p_.shape.axes[2].size <= kColumnsInARow;
    std::fill_n(sums, count, 0.0f);
    if (box.empty()) return;
    if (!in_a_row) std::fill_n(memory->lanes[0], kSumLanes * kBlock, 0.0f);
    const auto add = [&](const float* from, float* to) {
      loops_.rows({from, from, from}, 1, count, false, to);
    };
    for (uint32_t k = 0; k < box.taps[2].count(); ++k) {
      Rows rows(loops_, count, memory->column);
      ForEachTapOfColumn(p_, box, k, [&](uint64_t offset) {
        rows.Add(Terms(arguments, input + offset, count, channel, 1, memory->terms[rows.filled()]));
      });
      rows.Finish();
      add(memory->column, in_a_row ? sums : memory->lanes[(box.taps[2].begin + k) % kSumLanes]);
    }
    if (in_a_row) return;
    for (uint32_t half = kSumLanes / 2; half > 0; half /= 2) {
      for (uint32_t i = 0; i < half; ++i) add(memory->lanes[i + half], memory->lanes[i]);
    }
    std::copy_n(memory->lanes[0], count, sums);
  }

  uint64_t windows_;
  uint32_t parts_;
};

bool IsForSums(const PoolingProblem& p, std::string* why_not) {
  if (p.function != PoolingFunction::kMax) return true;
  *why_not = "is for sums";
  return false;
}

}  // namespace

std::unique_ptr<const Kernel> CreatePoolingSumRows(const PoolingProblem& problem, const LowerContext& context,
                                                   std::string* why_not) {
  if (!IsForSums(problem, why_not) || !RowPlan::Fits(problem, why_not)) return nullptr;
  return std::make_unique<PoolingSumRows>(problem, context);
}

std::unique_ptr<const Kernel> CreatePoolingSumChannels(const PoolingProblem& problem,
                                                       const LowerContext& context, std::string* why_not) {
  if (!IsForSums(problem, why_not) || !ChannelWindow::Fits(problem, why_not)) return nullptr;
  return std::make_unique<PoolingSumChannels>(problem, context);
}

}  // namespace anydml
