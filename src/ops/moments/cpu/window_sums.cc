#include "ops/moments/window_sums.h"

#include <algorithm>

#include "ops/common/loop_nest.h"
#include "ops/common/nest_parts.h"
#include "ops/numbers/load_store.h"

namespace anydml {
namespace {

constexpr uint64_t kBlock = 1024;  // sums at a time

void AddTo(const float* x, uint64_t count, bool squares, float* sums) {
  if (squares) {
    for (uint64_t i = 0; i < count; ++i) sums[i] += x[i] * x[i];
  } else {
    for (uint64_t i = 0; i < count; ++i) sums[i] += x[i];
  }
}

// Rows of sums: along the axis if that is the last dimension, otherwise along the last ones.
class WindowSumsCpu final : public Kernel {
 public:
  WindowSumsCpu(const WindowSumsProblem& problem, const LowerContext& context)
      : problem_(problem), load_(FindLoad(problem.input.type, Class::kF32)) {
    const TensorDesc& input = problem.input;
    size_ = input.sizes[problem.axis];
    before_ = std::min<uint64_t>(problem.before, size_);
    after_ = std::min<uint64_t>(problem.after, size_);
    const TensorDesc packed = PackedTensor(DataType::kFloat32, input.sizes.data(), input.rank);
    LoopNest<2> inside;
    for (uint32_t d = 0; d < input.rank; ++d) {
      auto& nest = d < problem.axis ? rows_ : inside;
      if (d != problem.axis) nest.Append(input.sizes[d], {input.strides[d], packed.strides[d]});
    }
    along_axis_ = inside.rank == 0;
    axis_ = {size_, {input.strides[problem.axis], packed.strides[problem.axis]}};
    columns_ = along_axis_ ? axis_ : TakeInnermost(&inside);
    for (uint32_t d = 0; d < inside.rank; ++d) rows_.Append(inside.loops[d].size, inside.loops[d].strides);
    places_ = Iterations(rows_) * (along_axis_ ? 1 : size_);
    const uint64_t bytes = ElementCount(input) * sizeof(float);
    parts_ = static_cast<uint32_t>(std::min<uint64_t>(places_, PartsForBytes(bytes, context.threads)));
  }

  Status Run(const KernelArguments& arguments) const override {
    ParallelFor(arguments.executor, parts_, [&](uint32_t part) {
      const uint64_t end = PartBegin(places_, part + 1, parts_);
      for (uint64_t place = PartBegin(places_, part, parts_); place < end; ++place) SumRow(arguments, place);
    });
    return {};
  }

 private:
  void SumRow(const KernelArguments& arguments, uint64_t place) const {
    const uint64_t at = along_axis_ ? 0 : place % size_;  // position on the axis
    const auto row = OffsetsOf(rows_, along_axis_ ? place : place / size_);
    auto* const output = reinterpret_cast<float*>(arguments.outputs[0].data) + row[1];
    for (uint64_t begin = 0; begin < columns_.size; begin += kBlock) {
      const uint64_t count = std::min(kBlock, columns_.size - begin);
      float sums[kBlock] = {};
      if (along_axis_) {
        SumAlong(arguments.inputs[0].data, row[0], begin, count, sums);
      } else {
        SumAcross(arguments.inputs[0].data, row[0] + begin * columns_.strides[0], at, count, sums);
      }
      std::copy_n(sums, count, output + at * axis_.strides[1] + begin);
    }
  }

  // Adds whole rows that are neighbours on the axis.
  void SumAcross(const std::byte* input, uint64_t offset, uint64_t at, uint64_t count, float* sums) const {
    const uint64_t last = std::min(at + after_, size_ - 1);
    for (uint64_t i = at - std::min(at, before_); i <= last; ++i) {
      Add(input, offset + i * axis_.strides[0], count, sums);
    }
  }

  // Adds shifted copies of the row itself.
  void SumAlong(const std::byte* input, uint64_t offset, uint64_t begin, uint64_t count, float* sums) const {
    for (uint64_t shift = 0; shift <= before_ + after_; ++shift) {
      // Sum i takes element i + shift - before_.
      const uint64_t first = std::max(begin, before_ - std::min(before_, shift));
      const uint64_t end = std::min(begin + count, size_ + before_ - std::min(size_ + before_, shift));
      if (first >= end) continue;
      Add(input, offset + (first + shift - before_) * axis_.strides[0], end - first, sums + (first - begin));
    }
  }

  void Add(const std::byte* input, uint64_t offset, uint64_t count, float* sums) const {
    float row[kBlock];
    load_(input, Block{.columns = count, .column_stride = columns_.strides[0], .offset = offset}, row);
    AddTo(row, count, problem_.squares, sums);
  }

  WindowSumsProblem problem_;
  LoadBlock load_;
  uint64_t size_, before_, after_;
  bool along_axis_;
  LoopNest<2> rows_;  // without the axis; offsets into input and output
  LoopNest<2>::Loop axis_, columns_;
  uint64_t places_;
  uint32_t parts_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateWindowSumsCpu(const WindowSumsProblem& problem,
                                                  const LowerContext& context, std::string*) {
  return std::make_unique<WindowSumsCpu>(problem, context);
}

}  // namespace anydml
