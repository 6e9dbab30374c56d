#include "ops/common/parallel.h"
#include "kernel/scratch_layout.h"
#include "ops/gemm/cpu/operands.h"

namespace anydml {
namespace {

// Below this many multiplications a thread costs more to wake than it saves.
constexpr uint64_t kProductsPerThread = uint64_t{1} << 17;

class GemmPacked final : public Kernel {
 public:
  GemmPacked(const GemmProblem& problem, uint32_t threads)
      : problem_(problem.output.column != 1 && problem.output.row == 1 ? problem.Transposed() : problem),
        transposed_(problem.output.column != 1 && problem.output.row == 1),
        epilogue_(problem.activation) {
    const GemmProblem& p = problem_;
    in_output_ = p.output_type == DataType::kFloat32 && p.output.column == 1;
    const uint64_t products = p.Batches() * p.m * p.n * p.k;
    const auto useful =
        static_cast<uint32_t>(std::clamp<uint64_t>(products / kProductsPerThread, 1, threads));
    // Whole matrices where there are enough of them.
    if (p.Batches() >= useful) {
      grid_ = CutProduct(p.m, p.n, 1);
      workers_ = useful;
    } else {
      grid_ = CutProduct(p.m, p.n, useful / static_cast<uint32_t>(p.Batches()));
      workers_ = grid_.rows * grid_.columns * static_cast<uint32_t>(p.Batches());
    }
    worker_floats_ =
        ProductScratch(std::min(grid_.row_step, p.m), std::min(grid_.column_step, p.n), p.k, !in_output_);
    scratch_ = layout_.Add("panels", workers_ * worker_floats_ * sizeof(float), 64);
  }

  uint64_t temporary_bytes() const override { return layout_.bytes(); }

  Status Run(const KernelArguments& arguments) const override {
    const uint64_t parts = problem_.Batches() * grid_.rows * grid_.columns;
    ParallelFor(arguments.executor, workers_, [&](uint32_t worker) {
      float* const scratch = scratch_.In<float>(arguments.temporary) + worker * worker_floats_;
      const uint64_t end = PartBegin(parts, worker + 1, workers_);
      for (uint64_t part = PartBegin(parts, worker, workers_); part < end; ++part) {
        RunPart(part, arguments, scratch);
      }
    });
    return {};
  }

 private:
  void RunPart(uint64_t number, const KernelArguments& arguments, float* scratch) const {
    const GemmProblem& p = problem_;
    const uint64_t column = number % grid_.columns * grid_.column_step;
    const uint64_t row = number / grid_.columns % grid_.rows * grid_.row_step;
    const uint64_t matrix = number / grid_.columns / grid_.rows;
    const auto at = [&](const Buffer& buffer, const GemmMatrix& operand, DataType type) {
      const uint64_t element =
          matrix / p.batch[1] * operand.batch[0] + matrix % p.batch[1] * operand.batch[1];
      return buffer.data + element * (BitSize(type) / 8);
    };
    const Buffer& first = arguments.inputs[transposed_ ? 1 : 0];
    const Buffer& second = arguments.inputs[transposed_ ? 0 : 1];
    const StridedPanels a(at(first, p.a, p.type), p.type, p.a.row, p.a.column);
    const StridedPanels b(at(second, p.b, p.type), p.type, p.b.column, p.b.row);
    std::byte* const output = at(arguments.outputs[0], p.output, p.output_type);
    const GemmSink sink(p, epilogue_, p.c ? at(arguments.inputs[2], *p.c, p.type) : nullptr, output);
    ProductPart part = {row,    std::min(grid_.row_step, p.m - row),
                        column, std::min(grid_.column_step, p.n - column),
                        p.k,    nullptr,
                        0};
    if (in_output_) {
      part.sums = reinterpret_cast<float*>(output) + row * p.output.row + column;
      part.sums_stride = p.output.row;
    }
    RunProduct<float>(part, a, b, in_output_ && GemmSink::IsPlain(p) ? nullptr : &sink, scratch);
  }

  GemmProblem problem_;
  bool transposed_;
  Epilogue epilogue_;
  bool in_output_;  // sums are kept where the output is
  ProductGrid grid_;
  uint32_t workers_;
  uint64_t worker_floats_;
  ScratchLayout layout_;
  ScratchLayout::Piece scratch_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateGemmPacked(const GemmProblem& problem, const LowerContext& context,
                                               std::string*) {
  return std::make_unique<GemmPacked>(problem, context.threads);
}

}  // namespace anydml
