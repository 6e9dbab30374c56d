// Averages and norms: sums of rows along the channels.
#include <algorithm>

#include "ops/pooling/cpu/channel_runs.h"
#include "ops/pooling/cpu/kernels.h"
#include "ops/pooling/cpu/sum_kernel.h"
#include "ops/pooling/cpu/units.h"

namespace anydml {
namespace {

using namespace pooling;  // NOLINT(google-build-using-namespace)

class PoolingSumChannels final : public SumKernel {
 public:
  PoolingSumChannels(const PoolingProblem& problem, const LowerContext& context)
      : SumKernel(problem, 1, 1),
        runs_(problem),
        windows_(problem.shape.Windows() / problem.shape.channels),
        parts_(PartsOf(problem.shape, problem.input.type, windows_, context.threads)) {
    const bool fits = problem.shape.axes[2].size <= kColumnsInARow &&
                      (writes_directly_ || problem.shape.channels <= kResults);
    if (problem.function == PoolingFunction::kAverage && fits)
      by_vectors_ = FindChannelLoops(problem.input.type);
  }

  Status Run(const KernelArguments& arguments) const override {
    ForParts(arguments.executor, windows_, parts_, [&](uint32_t, uint64_t begin, uint64_t end) {
      Memory memory;
      std::fill_n(memory.ones, kBlock, 1.0f);
      for (uint64_t window = begin; window < end;) {
        window += RunWindows(arguments, window, end - window, &memory);
      }
    });
    return {};
  }

 private:
  static constexpr uint32_t kBlock = 128;  // channels
  static constexpr uint32_t kResults = 4096;

  struct Memory {
    float ones[kBlock];  // divisors: a window has one for all channels
    float terms[kRowsAtOnce][kBlock];
    float column[kBlock];
    float result[kBlock];
    union {
      float lanes[kSumLanes][kBlock];  // for many columns
      float results[kResults];         // for many windows
    };
  };

  float DivisorOf(const ChannelWindow& at) const {
    return divisors_[0][at.window[0]] * divisors_[1][at.window[1]] * divisors_[2][at.window[2]];
  }

  // Runs windows from `number` on, up to `most`; returns how many.
  uint64_t RunWindows(const KernelArguments& arguments, uint64_t number, uint64_t most,
                      Memory* memory) const {
    const ChannelWindow at(p_.shape, number);
    const TapBox box = TapBoxOf(p_.shape, at.window);
    if (by_vectors_.average == nullptr || !ChannelRuns::Fits(by_vectors_, p_.shape, box)) {
      RunWindow(arguments, at, box, memory);
      return 1;
    }
    const uint64_t channels = p_.shape.channels, output = at.Offset(p_.output);
    if (!writes_directly_) most = std::min(most, kResults / channels);
    const void* taps[kMostChannelTaps];
    ChannelTaps run = runs_.Find(p_, at, box, most, arguments.inputs[0].data, taps);
    if (writes_directly_) {
      by_vectors_.average(run, DivisorOf(at), reinterpret_cast<float*>(arguments.outputs[0].data) + output);
      return run.windows;
    }
    const uint64_t step = run.output_step;
    run.output_step = channels;
    by_vectors_.average(run, DivisorOf(at), memory->results);
    for (uint64_t i = 0; i < run.windows; ++i) {
      store_(memory->results + i * channels, Block{.columns = channels, .offset = output + i * step},
             arguments.outputs[0].data);
    }
    return run.windows;
  }

  void RunWindow(const KernelArguments& arguments, const ChannelWindow& at, const TapBox& box,
                 Memory* memory) const {
    const float factor = DivisorOf(at);
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

  ChannelRuns runs_;
  ChannelLoops by_vectors_;
  uint64_t windows_;
  uint32_t parts_;
};

}  // namespace

std::unique_ptr<const Kernel> CreatePoolingSumChannels(const PoolingProblem& problem,
                                                       const LowerContext& context, std::string* why_not) {
  if (!IsForSums(problem, why_not) || !ChannelWindow::Fits(problem, why_not)) return nullptr;
  return std::make_unique<PoolingSumChannels>(problem, context);
}

}  // namespace anydml
