#include <algorithm>
#include <array>

#include "base/dispatch.h"
#include "ops/common/coordinates.h"
#include "ops/common/nest_parts.h"
#include "ops/move/reverse.h"

namespace anydml {
namespace {

enum Operand { kInput, kLengths, kOutput };
constexpr uint64_t kBlock = 512;  // contiguous sequences at a time

class ReverseCpu final : public Kernel {
 public:
  ReverseCpu(const ReverseProblem& problem, uint32_t threads)
      : type_(problem.input.type),
        length_type_(problem.lengths.type),
        size_(problem.input.sizes[problem.axis]),
        input_stride_(problem.input.strides[problem.axis]),
        output_stride_(problem.output.strides[problem.axis]) {
    LoopNest<3> nest;
    for (uint32_t d = 0; d < problem.input.rank; ++d) {
      if (d == problem.axis) continue;
      nest.Append(problem.input.sizes[d],
                  {problem.input.strides[d], problem.lengths.strides[d], problem.output.strides[d]});
    }
    outer_ = SortedByStride(nest, kOutput);
    inner_ = TakeInnermost(&outer_);
    blocks_ = (inner_.size + kBlock - 1) / kBlock;
    const uint64_t bytes = ElementCount(problem.input) * (BitSize(type_) / 8);
    parts_ = static_cast<uint32_t>(
        std::min<uint64_t>(PartsForBytes(bytes, threads), Iterations(outer_) * blocks_));
  }

  Status Run(const KernelArguments& arguments) const override {
    const uint64_t items = Iterations(outer_) * blocks_;
    DispatchByWidth(type_, [&]<typename T>() {
      ParallelFor(arguments.executor, parts_, [&](uint32_t p) {
        for (uint64_t i = PartBegin(items, p, parts_); i < PartBegin(items, p + 1, parts_); ++i) {
          RunBlock<T>(arguments, OffsetsOf(outer_, i / blocks_), i % blocks_ * kBlock);
        }
      });
    });
    return {};
  }

 private:
  uint64_t LengthAt(const std::byte* lengths, uint64_t at) const {
    const uint64_t length =
        length_type_ == DataType::kUInt64 ? Load<uint64_t>(lengths, at) : Load<uint32_t>(lengths, at);
    return std::min(length, size_);
  }

  template <typename T>
  void RunBlock(const KernelArguments& arguments, const LoopNest<3>::Offsets& offsets, uint64_t first) const {
    const auto& strides = inner_.strides;
    const T* const input =
        reinterpret_cast<const T*>(arguments.inputs[0].data) + offsets[kInput] + first * strides[kInput];
    T* const output =
        reinterpret_cast<T*>(arguments.outputs[0].data) + offsets[kOutput] + first * strides[kOutput];
    const uint64_t count = std::min(kBlock, inner_.size - first);
    std::array<uint64_t, kBlock> lengths;
    for (uint64_t s = 0; s < count; ++s) {
      lengths[s] = LengthAt(arguments.inputs[1].data, offsets[kLengths] + (first + s) * strides[kLengths]);
    }
    for (uint64_t i = 0; i < size_; ++i) {
      T* const target = output + i * output_stride_;
      for (uint64_t s = 0; s < count; ++s) {
        target[s * strides[kOutput]] =
            input[ReversedIndex(i, lengths[s]) * input_stride_ + s * strides[kInput]];
      }
    }
  }

  DataType type_;
  DataType length_type_;
  uint64_t size_;  // of the axis
  uint64_t input_stride_, output_stride_;
  LoopNest<3> outer_;
  LoopNest<3>::Loop inner_;
  uint64_t blocks_;
  uint32_t parts_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateReverseCpu(const ReverseProblem& problem, const LowerContext& context,
                                               std::string*) {
  return std::make_unique<ReverseCpu>(problem, context.threads);
}

}  // namespace anydml
