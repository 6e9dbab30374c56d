// A few long sequences: blocks of a fixed length, first their totals, then their elements.
#include <vector>

#include "kernel/scratch_layout.h"
#include "ops/common/parallel.h"
#include "ops/scan/cpu/running_rows.h"

namespace anydml {
namespace {

constexpr uint64_t kBlock = 8192;
constexpr uint64_t kLong = 8 * kBlock;
// From here on, whole sequences give threads and vectors enough parallelism.
constexpr uint64_t kManySequences = 8;

template <typename T, bool kMultiplies>
class ScanBlocks final : public Kernel {
 public:
  explicit ScanBlocks(const ScanProblem& problem)
      : machine_(problem), loops_(MakeScanLoops(problem)), sequences_(Iterations(loops_.sequences)) {
    blocks_ = (loops_.along.size + kBlock - 1) / kBlock;
    full_ = loops_.along.size / kBlock;
    totals_ = layout_.Add("totals", sequences_ * blocks_ * sizeof(T));
  }

  uint64_t temporary_bytes() const override { return layout_.bytes(); }

  Status Run(const KernelArguments& arguments) const override {
    T* const totals = totals_.In<T>(arguments.temporary);
    const std::byte* const input = arguments.inputs[0].data;
    ParallelFor(arguments.executor, static_cast<uint32_t>(sequences_ * blocks_), [&](uint32_t number) {
      totals[number] =
          machine_.Total(SpanOf(number / blocks_, number % blocks_, 1), loops_.along.strides, input);
    });
    for (uint64_t s = 0; s < sequences_; ++s) AddUp(totals + s * blocks_);
    // Full blocks are processed together, as many as there are rows; the last one, which may be shorter,
    // alone.
    const uint64_t groups = (full_ + kScanRows - 1) / kScanRows, tasks = groups + (blocks_ - full_);
    ParallelFor(arguments.executor, static_cast<uint32_t>(sequences_ * tasks), [&](uint32_t number) {
      const uint64_t sequence = number / tasks, task = number % tasks;
      const uint64_t first = task < groups ? task * kScanRows : full_;
      const uint64_t rows = task < groups ? std::min(kScanRows, full_ - first) : 1;
      machine_.ScanRows(SpanOf(sequence, first, rows), loops_.along.strides, input, arguments.outputs[0].data,
                        totals + sequence * blocks_ + first);
    });
    return {};
  }

 private:
  ScanSpan SpanOf(uint64_t sequence, uint64_t block, uint64_t rows) const {
    ScanSpan span = {rows,
                     std::min(kBlock, loops_.along.size - block * kBlock),
                     OffsetsOf(loops_.sequences, sequence),
                     {}};
    for (size_t o = 0; o < span.offset.size(); ++o) {
      span.offset[o] += block * kBlock * loops_.along.strides[o];
      span.row_strides[o] = kBlock * loops_.along.strides[o];
    }
    return span;
  }

  // Turns the blocks' own totals into the totals before each block.
  void AddUp(T* totals) const {
    T running = ScanNeutral<T, kMultiplies>();
    for (uint64_t i = 0; i < blocks_; ++i) {
      T& total = totals[machine_.reverse() ? blocks_ - 1 - i : i];
      const T next = ScanCombine<T, kMultiplies>(running, total);
      total = running;
      running = next;
    }
  }

  ScanMachine<T, kMultiplies> machine_;
  ScanLoops loops_;
  uint64_t sequences_;
  uint64_t blocks_;
  uint64_t full_;  // blocks of kBlock elements
  ScratchLayout layout_;
  ScratchLayout::Piece totals_;
};

}  // namespace

std::string ScanCpuBlocksBetterNot(const ScanProblem& problem, const LowerContext&) {
  const uint64_t length = problem.output.sizes[problem.axis];
  if (length < kLong) return StrCat("sequences have ", length, " elements, fewer than ", kLong);
  const uint64_t sequences = ElementCount(problem.output) / length;
  if (sequences >= kManySequences) return StrCat(sequences, " sequences can be scanned at the same time");
  return {};
}

std::unique_ptr<const Kernel> CreateScanCpuBlocks(const ScanProblem& problem, const LowerContext&,
                                                  std::string*) {
  return DispatchScan(problem, [&]<typename T, bool kMultiplies>() -> std::unique_ptr<const Kernel> {
    return std::make_unique<ScanBlocks<T, kMultiplies>>(problem);
  });
}

}  // namespace anydml
