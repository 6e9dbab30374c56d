#include <optional>

#include "ops/product/batched.h"
#include "ops/product/operands.h"

namespace anydml {
namespace {

bool KeptInOutput(const GemmProblem& p) {
  return p.output_type == DataType::kFloat32 && p.output.column == 1;
}

// Whether B is read in place.
bool ReadsInPlace(const GemmProblem& p) {
  return GemmMicroKernel().packing[0][0] != nullptr && p.m <= kMostRowsOfSteps && !p.b_is_owned &&
         p.b.column == 1;
}

// Whether every run first packs B, with all threads for all of them: if there are enough rows to pay for it,
// and B is not too large for the last-level cache.
bool PacksFirst(const GemmProblem& p) {
  constexpr uint64_t kMostFloats = uint64_t{1} << 22;
  return GemmMicroKernel().packing[0][0] != nullptr && p.m > kMostRowsOfSteps && !p.b_is_owned &&
         p.Batches() == 1 && p.k <= kMostFloats / p.n;
}

class GemmPacked final : public Kernel {
 public:
  GemmPacked(const GemmProblem& problem, uint32_t threads)
      : problem_(problem.output.column != 1 && problem.output.row == 1 ? problem.Transposed() : problem),
        transposed_(problem.output.column != 1 && problem.output.row == 1),
        epilogue_(problem.activation),
        in_output_(KeptInOutput(problem_)),
        few_steps_(problem_.type == DataType::kFloat32 && ReadsInPlace(problem_)),
        product_({problem_.batch, problem_.m, problem_.n, problem_.k}, !in_output_, threads, &layout_,
                 GemmMicroKernel(),
                 PacksFirst(problem_)     ? 16
                 : ReadsInPlace(problem_) ? 4
                                          : 1) {
    const GemmProblem& p = problem_;
    const MicroKernel& tile = GemmMicroKernel();
    const bool halves = p.type == DataType::kFloat16;
    if (p.a_is_owned) {
      a_ = PackedOperand::Create({p.batch, p.a.batch, p.m, p.k, tile.rows, halves}, threads, &persistent_);
    }
    if (p.b_is_owned) {
      b_ = PackedOperand::Create({p.batch, p.b.batch, p.n, p.k, tile.columns, halves}, threads, &persistent_);
    } else if (PacksFirst(p)) {
      b_ = PackedOperand::Create(
          {p.batch, p.b.batch, p.n, p.k, tile.columns, /*halves=*/false, /*temporary=*/true}, threads,
          &layout_);
    }
  }

  uint64_t temporary_bytes() const override { return layout_.bytes(); }
  uint64_t persistent_bytes() const override { return persistent_.bytes(); }
  bool packs_input(uint32_t input) const override {
    if (input > 1) return false;
    return input == BindingOfA() ? a_.has_value() : b_.has_value() && problem_.b_is_owned;
  }

  Status Initialize(const KernelArguments& arguments) const override {
    if (a_) a_->Pack(arguments, [&](const BatchIndex& index) { return SourceOfA(arguments, index); });
    if (b_ && problem_.b_is_owned) PackB(arguments);
    return {};
  }

  Status Run(const KernelArguments& arguments) const override {
    const GemmProblem& p = problem_;
    if (b_ && !p.b_is_owned) PackB(arguments);
    product_.ForParts<float>(arguments, [&](const BatchIndex& index, ProductPart part,
                                            std::span<float> scratch) {
      std::byte* const output = At(arguments.outputs[0], p.output, p.output_type, index);
      const GemmSink sink(p, epilogue_, p.c ? At(arguments.inputs[2], *p.c, p.type, index) : nullptr, output);
      if (in_output_) {
        part.sums = reinterpret_cast<float*>(output) + part.row * p.output.row + part.column;
        part.sums_stride = p.output.row;
      }
      part.few_steps = few_steps_;
      part.many_steps = PacksFirst(p);
      if (const std::optional<BatchIndex> next = After(index)) {
        part.next_a = At(arguments.inputs[BindingOfA()], p.a, p.type, *next);
        part.next_b = At(arguments.inputs[1 - BindingOfA()], p.b, p.type, *next);
      }
      RunProduct<float>(part, OperandOf(a_, arguments, index, SourceOfA(arguments, index)),
                        OperandOf(b_, arguments, index, SourceOfB(arguments, index)),
                        in_output_ && GemmSink::IsPlain(p) ? nullptr : &sink, scratch);
    });
    return {};
  }

 private:
  uint32_t BindingOfA() const { return transposed_ ? 1 : 0; }

  static std::byte* At(const Buffer& buffer, const GemmMatrix& matrix, DataType type,
                       const BatchIndex& index) {
    if (buffer.data == nullptr) return nullptr;  // packed at initialisation
    return buffer.data + (index[0] * matrix.batch[0] + index[1] * matrix.batch[1]) * (BitSize(type) / 8);
  }

  // The product after this one, if threads compute whole products.
  std::optional<BatchIndex> After(const BatchIndex& index) const {
    const uint64_t next = index[0] * problem_.batch[1] + index[1] + 1;
    if (next >= problem_.Batches()) return std::nullopt;
    return BatchIndex{next / problem_.batch[1], next % problem_.batch[1]};
  }

  void PackB(const KernelArguments& arguments) const {
    b_->Pack(arguments, [&](const BatchIndex& index) { return SourceOfB(arguments, index); });
  }

  StridedPanels SourceOfA(const KernelArguments& arguments, const BatchIndex& index) const {
    const GemmProblem& p = problem_;
    return {At(arguments.inputs[BindingOfA()], p.a, p.type, index), p.type, p.a.row, p.a.column};
  }
  StridedPanels SourceOfB(const KernelArguments& arguments, const BatchIndex& index) const {
    const GemmProblem& p = problem_;
    return {At(arguments.inputs[1 - BindingOfA()], p.b, p.type, index), p.type, p.b.column, p.b.row};
  }

  GemmProblem problem_;
  bool transposed_;
  Epilogue epilogue_;
  bool in_output_;  // sums are kept in the output
  bool few_steps_;  // per block, because FLOAT32 sums are far apart
  ScratchLayout layout_, persistent_;
  BatchedProduct product_;
  std::optional<PackedOperand> a_, b_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateGemmPacked(const GemmProblem& problem, const LowerContext& context,
                                               std::string*) {
  return std::make_unique<GemmPacked>(problem, context.threads);
}

}  // namespace anydml
