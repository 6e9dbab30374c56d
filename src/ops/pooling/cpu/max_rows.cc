// Maxima for elements that are contiguous along the last dimension, or along the channels.
#include <algorithm>
#include <cstring>

#include "base/dispatch.h"
#include "kernel/scratch_layout.h"
#include "ops/pooling/cpu/channel_runs.h"
#include "ops/pooling/cpu/kernels.h"
#include "ops/pooling/cpu/row_loops.h"
#include "ops/pooling/cpu/row_plan.h"
#include "ops/pooling/cpu/scan.h"
#include "ops/pooling/cpu/units.h"

namespace anydml {
namespace {

using namespace pooling;  // NOLINT(google-build-using-namespace)

// The lowest key, as bytes.
uint64_t LowestKey(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return 0xFF800000;
    case DataType::kFloat16:
      return 0x83FF;
    case DataType::kInt8:
      return 0x80;
    case DataType::kInt16:
      return 0x8000;
    case DataType::kInt32:
      return 0x80000000;
    default:
      return 0;
  }
}

class MaxKernel : public Kernel {
 protected:
  explicit MaxKernel(const PoolingProblem& problem)
      : p_(problem), loops_(FindMaxLoops(problem.input.type)), width_(BitSize(problem.input.type) / 8) {}

  // Collects rows of elements and takes their maxima three by three.
  class Rows {
   public:
    Rows(const MaxLoops& loops, uint64_t count, void* best) : loops_(loops), count_(count), best_(best) {}

    void Add(const void* row) {
      rows_[filled_++] = row;
      if (filled_ == kRowsAtOnce) Flush();
    }
    // Returns whether there may be a NaN.
    bool Finish() {
      if (filled_ > 0) {
        while (filled_ < kRowsAtOnce) rows_[filled_++] = rows_[0];
        Flush();
      }
      return nan_;
    }

   private:
    void Flush() {
      nan_ |= loops_.rows(rows_, count_, first_, best_);
      first_ = false;
      filled_ = 0;
    }

    const MaxLoops& loops_;
    uint64_t count_;
    void* best_;
    const void* rows_[kRowsAtOnce] = {};
    uint32_t filled_ = 0;
    bool first_ = true;
    bool nan_ = false;
  };

  void FillLowest(std::byte* keys, uint64_t count) const {
    const uint64_t lowest = LowestKey(p_.input.type);
    DispatchByWidth(p_.input.type, [&]<typename T>() {
      std::fill_n(reinterpret_cast<T*>(keys), count, static_cast<T>(lowest));
    });
  }

  // Recomputes the windows of one channel tap by tap, if floating-point special values require it.
  void Rescan(const std::byte* channel, const TapBox& box, std::byte* element) const {
    if (p_.input.type == DataType::kFloat32) {
      const float x = ScanWindow(p_, reinterpret_cast<const float*>(channel), box).element;
      std::memcpy(element, &x, sizeof(x));
    } else {
      const Half x = ScanWindow(p_, reinterpret_cast<const Half*>(channel), box).element;
      std::memcpy(element, &x, sizeof(x));
    }
  }

  PoolingProblem p_;
  MaxLoops loops_;
  uint64_t width_;  // bytes per element
};

// Reduces rows of the input to one, in a buffer with room for padding; then the windows along it.
class PoolingMaxRows final : public MaxKernel {
 public:
  PoolingMaxRows(const PoolingProblem& problem, const LowerContext& context)
      : MaxKernel(problem),
        plan_(problem.shape),
        parts_(PartsOf(problem.shape, problem.input.type, plan_.rows, context.threads)),
        plane_(HasWholePlanes(problem) ? PlaneOf(problem.shape) : 0) {
    buffer_bytes_ = SaturatingAlignUp(plan_.buffer * width_, 64);
    row_bytes_ = SaturatingAlignUp(plan_.last.windows * width_, 64);
    scratch_ = layout_.Add("rows", parts_ * (buffer_bytes_ + row_bytes_), 64);
  }

  Status Run(const KernelArguments& arguments) const override {
    ForParts(arguments.executor, plan_.rows, parts_, [&](uint32_t part, uint64_t begin, uint64_t end) {
      std::byte* const buffer = scratch_.In(arguments.temporary).data + part * (buffer_bytes_ + row_bytes_);
      FillLowest(buffer, plan_.buffer);
      RowPlan::Place at = plan_.At(p_.shape, begin);
      for (uint64_t row = begin; row < end; ++row, RowPlan::Advance(p_.shape, &at)) {
        RunRow(arguments, at, buffer, buffer + buffer_bytes_);
      }
    });
    return {};
  }
  uint64_t temporary_bytes() const override { return layout_.bytes(); }

 private:
  static uint64_t PlaneOf(const PoolingShape& shape) {
    return uint64_t{shape.axes[0].input} * shape.axes[1].input * shape.axes[2].input;
  }

  void RunRow(const KernelArguments& arguments, const RowPlan::Place& at, std::byte* buffer,
              std::byte* row) const {
    const std::byte* const channel = arguments.inputs[0].data + at.ChannelOffset(p_.input) * width_;
    std::byte* const output = arguments.outputs[0].data + at.RowOffset(p_.output) * width_;
    const uint64_t stride = p_.output.strides[4];
    std::byte* const target = stride == 1 || plan_.last.windows == 1 ? output : row;
    bool special = false;
    if (plane_ > 0) {
      special = loops_.plane(channel, plane_, target);
    } else if (at.empty() || plan_.columns == 0) {
      FillLowest(target, plan_.last.windows);
    } else {
      Rows rows(loops_, plan_.columns, buffer + plan_.last.start * width_);
      at.ForEachRow(p_, [&](uint64_t offset) { rows.Add(channel + offset * width_); });
      special = rows.Finish();
      ReduceColumns(buffer, target);
    }
    special |= loops_.finish(target, plan_.last.windows);
    if (special) {
      for (uint32_t w = 0; w < plan_.last.windows; ++w) {
        Rescan(channel, TapBoxOf(p_.shape, {at.d, at.h, w}), target + w * width_);
      }
    }
    if (target != row) return;
    DispatchByWidth(p_.input.type, [&]<typename T>() {
      const T* const from = reinterpret_cast<const T*>(row);
      T* const to = reinterpret_cast<T*>(output);
      for (uint32_t w = 0; w < plan_.last.windows; ++w) to[w * stride] = from[w];
    });
  }

  void ReduceColumns(std::byte* buffer, std::byte* target) const {
    const WindowAxis& last = plan_.last;
    uint32_t size = last.size;
    // A single window: a third of it at a time, which leaves out the padding.
    if (last.windows == 1 && last.dilation == 1 && last.start == 0) {
      while (size > 3) {
        const uint32_t third = (size + 2) / 3;
        const void* const thirds[] = {buffer + third * width_, buffer + third * width_,
                                      buffer + (size - third) * width_};
        loops_.columns(thirds, 1, third, false, buffer);
        size = third;
      }
    }
    for (uint32_t k = 0; k < size; k += kRowsAtOnce) {
      const void* columns[kRowsAtOnce];
      for (uint32_t j = 0; j < kRowsAtOnce; ++j) {
        columns[j] = buffer + std::min(k + j, size - 1) * uint64_t{last.dilation} * width_;
      }
      loops_.columns(columns, last.stride, last.windows, k == 0, target);
    }
  }

  RowPlan plan_;
  uint32_t parts_;
  uint64_t plane_;  // elements per plane, if windows are whole planes; otherwise 0
  uint64_t buffer_bytes_;
  uint64_t row_bytes_;
  ScratchLayout layout_;
  ScratchLayout::Piece scratch_;
};

// For contiguous channels: a window's taps are rows of them.
class PoolingMaxChannels final : public MaxKernel {
 public:
  PoolingMaxChannels(const PoolingProblem& problem, const LowerContext& context)
      : MaxKernel(problem),
        runs_(problem),
        by_vectors_(FindChannelLoops(problem.input.type)),
        windows_(problem.shape.Windows() / problem.shape.channels),
        parts_(PartsOf(problem.shape, problem.input.type, windows_, context.threads)) {}

  Status Run(const KernelArguments& arguments) const override {
    ForParts(arguments.executor, windows_, parts_, [&](uint32_t, uint64_t begin, uint64_t end) {
      for (uint64_t window = begin; window < end;) window += RunWindows(arguments, window, end - window);
    });
    return {};
  }

 private:
  static constexpr uint32_t kBlock = 2048;  // channels whose maxima stay in L1

  // Runs windows from `number` on, up to `most`; returns how many.
  uint64_t RunWindows(const KernelArguments& arguments, uint64_t number, uint64_t most) const {
    const ChannelWindow at(p_.shape, number);
    const TapBox box = TapBoxOf(p_.shape, at.window);
    if (by_vectors_.max == nullptr || !ChannelRuns::Fits(by_vectors_, p_.shape, box)) {
      RunWindow(arguments, at, box);
      return 1;
    }
    const void* taps[kMostChannelTaps];
    const ChannelTaps run = runs_.Find(p_, at, box, most, arguments.inputs[0].data, taps);
    if (by_vectors_.max(run, arguments.outputs[0].data + at.Offset(p_.output) * width_)) {
      for (uint64_t i = 0; i < run.windows; ++i) {
        const ChannelWindow special(p_.shape, number + i);
        RunWindow(arguments, special, TapBoxOf(p_.shape, special.window));
      }
    }
    return run.windows;
  }

  void RunWindow(const KernelArguments& arguments, const ChannelWindow& at, const TapBox& box) const {
    const std::byte* const input = arguments.inputs[0].data + at.n * p_.input.strides[0] * width_;
    std::byte* const output = arguments.outputs[0].data + at.Offset(p_.output) * width_;
    for (uint32_t c = 0; c < p_.shape.channels; c += kBlock) {
      const uint32_t count = std::min(kBlock, p_.shape.channels - c);
      std::byte* const target = output + c * width_;
      bool special = false;
      if (box.empty()) {
        FillLowest(target, count);
      } else {
        Rows rows(loops_, count, target);
        for (uint32_t k = 0; k < box.taps[2].count(); ++k) {
          ForEachTapOfColumn(p_, box, k, [&](uint64_t offset) { rows.Add(input + (offset + c) * width_); });
        }
        special = rows.Finish();
      }
      special |= loops_.finish(target, count);
      for (uint32_t i = 0; special && i < count; ++i) {
        Rescan(input + (c + i) * width_, box, target + i * width_);
      }
    }
  }

  ChannelRuns runs_;
  ChannelLoops by_vectors_;
  uint64_t windows_;
  uint32_t parts_;
};

bool IsForRows(const PoolingProblem& p, std::string* why_not) {
  if (p.function != PoolingFunction::kMax || p.indices.present()) {
    *why_not = "is for maxima without indices";
    return false;
  }
  if (FindMaxLoops(p.input.type).rows == nullptr) {
    *why_not = "is for types of up to 32 bits";
    return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<const Kernel> CreatePoolingMaxRows(const PoolingProblem& problem, const LowerContext& context,
                                                   std::string* why_not) {
  if (!IsForRows(problem, why_not) || !RowPlan::Fits(problem, why_not)) return nullptr;
  if (problem.input.strides[4] != 1 && problem.shape.axes[2].input > 1) {
    *why_not = "elements are not side by side along the last dimension";
    return nullptr;
  }
  return std::make_unique<PoolingMaxRows>(problem, context);
}

std::unique_ptr<const Kernel> CreatePoolingMaxChannels(const PoolingProblem& problem,
                                                       const LowerContext& context, std::string* why_not) {
  if (!IsForRows(problem, why_not) || !ChannelWindow::Fits(problem, why_not)) return nullptr;
  return std::make_unique<PoolingMaxChannels>(problem, context);
}

}  // namespace anydml
