// Composite kernels that all backends share.
#pragma once

#include <utility>

#include "kernel/composite.h"
#include "ops/implementation_list.h"
#include "ops/pooling/problem.h"
#include "ops/scatter/problem.h"

namespace anydml {

// A gradient. That of a maximum first finds the maxima's positions, with a pooling that outputs indices only.
class GradKernel : public CompositeKernel {
 protected:
  GradKernel(const PoolingGradProblem& problem, LoweredOperator maxima) : p_(problem) {
    if (!p_.is_max()) return;
    maxima_ = AddScratch("maxima", p_.shape.Windows() * sizeof(uint32_t));
    pooling_ = AddPart(maxima.implementation, std::move(maxima.kernel));
  }

  Status FindMaxima(const KernelArguments& arguments) const {
    if (!p_.is_max()) return {};
    const Buffer outputs[] = {{}, maxima_.In(arguments.temporary)};
    KernelArguments pooling = arguments;
    pooling.inputs = arguments.inputs.first(1);
    pooling.outputs = outputs;
    return RunPart(pooling_, pooling);
  }
  const uint32_t* Maxima(const KernelArguments& arguments) const {
    return maxima_.In<uint32_t>(arguments.temporary);
  }

  PoolingGradProblem p_;

 private:
  uint32_t pooling_ = 0;
  ScratchLayout::Piece maxima_;
};

template <typename Grad>
std::unique_ptr<const Kernel> CreateGradKernel(const PoolingGradProblem& problem, const LowerContext& context,
                                               std::string* why_not) {
  LoweredOperator maxima;
  if (problem.is_max()) {
    PoolingProblem pooling = {.shape = problem.shape, .input = problem.input};
    pooling.indices.type = DataType::kUInt32;
    const auto& axes = problem.shape.axes;
    pooling.indices.strides[4] = 1;
    pooling.indices.strides[3] = axes[2].windows;
    pooling.indices.strides[2] = pooling.indices.strides[3] * axes[1].windows;
    pooling.indices.strides[1] = pooling.indices.strides[2] * axes[0].windows;
    pooling.indices.strides[0] = pooling.indices.strides[1] * problem.shape.channels;
    const Status status = ChooseKernel(pooling, context.ForPart(), &maxima);
    if (!status.ok()) {
      *why_not = status.message();
      return nullptr;
    }
  }
  return std::make_unique<Grad>(problem, context, std::move(maxima));
}

// MAX_UNPOOLING scatters the input into zeros, which are one broadcast element in scratch. If the output is
// not packed, it scatters into scratch and copies.
class UnpoolingKernel : public CompositeKernel {
 public:
  UnpoolingKernel(const MaxUnpoolingProblem& problem, LoweredOperator scatter, LoweredOperator copy) {
    zero_ = AddScratch("zero", sizeof(uint64_t));
    copies_ = copy.kernel != nullptr;
    if (copies_)
      packed_ = AddScratch("packed", ElementCount(problem.output) * BitSize(problem.output.type) / 8);
    scatter_ = AddPart(scatter.implementation, std::move(scatter.kernel));
    if (copies_) copy_ = AddPart(copy.implementation, std::move(copy.kernel));
  }

  // Indices out of range are dropped silently.
  uint32_t note_count() const override { return 0; }

 protected:
  // Call it after zero_ is set.
  Status RunParts(const KernelArguments& arguments) const {
    const Buffer scattered = copies_ ? packed_.In(arguments.temporary) : arguments.outputs[0];
    const Buffer inputs[] = {zero_.In(arguments.temporary), arguments.inputs[1], arguments.inputs[0]};
    KernelArguments part = arguments;
    part.inputs = inputs;
    part.outputs = {&scattered, 1};
    part.data_errors = nullptr;
    part.notes = {};
    ANYDML_RETURN_IF_ERROR(RunPart(scatter_, part));
    if (!copies_) return {};
    part.inputs = {&scattered, 1};
    part.outputs = arguments.outputs;
    return RunPart(copy_, part);
  }

  ScratchLayout::Piece zero_;

 private:
  bool copies_ = false;
  ScratchLayout::Piece packed_;
  uint32_t scatter_ = 0;
  uint32_t copy_ = 0;
};

// SCATTER_ND into the output, seen as one dimension.
inline ScatterProblem ScatterOf(const MaxUnpoolingProblem& problem) {
  constexpr uint32_t kRank = 5;
  const auto with_leading_one = [](const TensorDesc& tensor) {
    TensorDesc result = tensor;
    result.rank = kRank;
    for (uint32_t d = 0; d + 1 < kRank; ++d) {
      result.sizes[d + 1] = tensor.sizes[d];
      result.strides[d + 1] = tensor.strides[d];
    }
    result.sizes[0] = 1;
    result.strides[0] = 0;
    return result;
  };
  ScatterProblem scatter;
  scatter.kind = ScatterProblem::Kind::kNd;
  const auto elements = static_cast<uint32_t>(ElementCount(problem.output));
  const uint32_t line[kRank] = {1, 1, 1, 1, elements};
  scatter.output = PackedTensor(problem.output.type, line, kRank);
  scatter.input = scatter.output;
  scatter.input.strides = {};  // broadcast zero
  scatter.indices = problem.indices;
  scatter.indices.rank = kRank;
  scatter.indices.sizes[kRank - 1] = 1;
  scatter.indices.strides[kRank - 1] = 1;
  scatter.updates = with_leading_one(problem.input);
  scatter.input_dimensions = 1;
  scatter.indices_dimensions = kRank;
  scatter.memory = ScatterProblem::Memory::kApart;
  return scatter;
}

template <typename Unpooling>
std::unique_ptr<const Kernel> CreateUnpoolingKernel(const MaxUnpoolingProblem& problem,
                                                    const LowerContext& context, std::string* why_not) {
  const TensorDesc packed =
      PackedTensor(problem.output.type, problem.output.sizes.data(), problem.output.rank);
  const bool copies = !SameLayout(packed, problem.output);
  LoweredOperator scatter, copy;
  const Status scattered = ChooseKernel(ScatterOf(problem), context.ForPart(), &scatter);
  const Status copied = copies ? ChooseKernel(problem.copy, context.ForPart(), &copy) : Status();
  if (!scattered.ok() || !copied.ok()) {
    *why_not = scattered.ok() ? copied.message() : scattered.message();
    return nullptr;
  }
  return std::make_unique<Unpooling>(problem, std::move(scatter), std::move(copy));
}

}  // namespace anydml
