// Every sequence in order, which gives the reference's bytes: several rows at a time, or contiguous sequences
// with vectors.
#include <vector>

#include "ops/common/nest_parts.h"
#include "ops/scan/cpu/running_rows.h"

namespace anydml {
namespace {

// Sequences whose totals stay in L1.
constexpr uint64_t kColumns = 2048;

template <typename T, bool kMultiplies>
class ScanLines final : public Kernel {
 public:
  ScanLines(const ScanProblem& problem, uint32_t threads) : machine_(problem) {
    const ScanLoops loops = MakeScanLoops(problem);
    const LoopNest<2>& sequences = loops.sequences;
    along_ = loops.along;
    columns_ = NeighboursAreBeside(loops);
    const uint64_t bytes = ElementCount(problem.output) * (BitSize(problem.output.type) / 8);
    uint32_t parts = PartsForBytes(bytes, threads);
    if (columns_)
      parts = std::min(parts, threads);  // contiguous sequences stay together, so that memory is
                                         // read in long pieces
    parts_ = CutNest(sequences, LoopToCut(sequences, parts), parts);
  }

  Status Run(const KernelArguments& arguments) const override {
    ParallelFor(arguments.executor, static_cast<uint32_t>(parts_.size()), [&](uint32_t p) {
      const NestPart<2>& part = parts_[p];
      ForEach(part.outer, part.start, [&](const LoopNest<2>::Offsets& at) {
        columns_ ? ScanNeighbours(part.inner, at, arguments) : ScanRows(part.inner, at, arguments);
      });
      if (columns_) machine_.EndColumns();
    });
    return {};
  }

 private:
  static LoopNest<2>::Offsets Moved(LoopNest<2>::Offsets at, const LoopNest<2>::Offsets& strides,
                                    uint64_t steps) {
    for (size_t o = 0; o < at.size(); ++o) at[o] += steps * strides[o];
    return at;
  }

  void ScanRows(const LoopNest<2>::Loop& rows, const LoopNest<2>::Offsets& at,
                const KernelArguments& arguments) const {
    for (uint64_t begin = 0; begin < rows.size; begin += kScanRows) {
      const ScanSpan span = {std::min(kScanRows, rows.size - begin), along_.size,
                             Moved(at, rows.strides, begin), rows.strides};
      T totals[kScanRows];
      std::fill_n(totals, kScanRows, ScanNeutral<T, kMultiplies>());
      machine_.ScanRows(span, along_.strides, arguments.inputs[0].data, arguments.outputs[0].data, totals);
    }
  }

  void ScanNeighbours(const LoopNest<2>::Loop& sequences, const LoopNest<2>::Offsets& at,
                      const KernelArguments& arguments) const {
    for (uint64_t begin = 0; begin < sequences.size; begin += kColumns) {
      const uint64_t count = std::min(kColumns, sequences.size - begin);
      const LoopNest<2>::Offsets first = Moved(at, sequences.strides, begin);
      T totals[kColumns];
      std::fill_n(totals, count, ScanNeutral<T, kMultiplies>());
      for (uint64_t i = 0; i < along_.size; ++i) {
        const uint64_t row = machine_.reverse() ? along_.size - 1 - i : i;
        machine_.ScanColumns(Moved(first, along_.strides, row), sequences.strides, count,
                             arguments.inputs[0].data, arguments.outputs[0].data, totals);
      }
    }
  }

  ScanMachine<T, kMultiplies> machine_;
  LoopNest<2>::Loop along_;
  bool columns_;
  std::vector<NestPart<2>> parts_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateScanCpuLines(const ScanProblem& problem, const LowerContext& context,
                                                 std::string*) {
  return DispatchScan(problem, [&]<typename T, bool kMultiplies>() -> std::unique_ptr<const Kernel> {
    return std::make_unique<ScanLines<T, kMultiplies>>(problem, context.threads);
  });
}

}  // namespace anydml
