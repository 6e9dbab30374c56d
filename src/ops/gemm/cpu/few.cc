// A few rows (or columns) times a matrix that is read once: in place or, if it can be packed at
// initialisation, from panels, which are read sequentially.
#include <algorithm>
#include <cstring>
#include <optional>

#include "kernel/scratch_layout.h"
#include "ops/common/nest_parts.h"
#include "ops/numbers/load_store.h"
#include "ops/product/batched.h"
#include "ops/product/few_rows.h"
#include "ops/product/operands.h"

namespace anydml {
namespace {

constexpr uint64_t kMaxRows = kMostFewRows;
// The sums that are kept in L1 at a time. Long rows are read faster than short ones.
constexpr uint64_t kSums = 4096;
constexpr uint64_t kLeastColumns = 512;

class GemmFew final : public Kernel {
 public:
  GemmFew(const GemmProblem& problem, bool transposed, uint32_t threads)
      : problem_(problem),
        transposed_(transposed),
        epilogue_(problem.activation),
        few_(FindFewRows(problem.type)),
        load_(FindLoad(problem.type, Class::kF32)) {
    const uint64_t bytes = problem.Batches() * problem.n * problem.k * (BitSize(problem.type) / 8);
    const uint32_t parts = PartsForBytes(bytes, threads);
    if (problem.b_is_owned && problem.n >= few_.panel_columns) {
      const bool halves = problem.type == DataType::kFloat16;
      packed_ = PackedOperand::Create(
          {problem.batch, problem.b.batch, problem.n, problem.k, few_.panel_columns, halves}, threads,
          &persistent_);
    }
    columns_ = packed_ ? ColumnsOfPanels(parts) : ColumnsInPlace(std::min(parts, threads));
    blocks_ = (problem.n + columns_ - 1) / columns_;
    workers_ = static_cast<uint32_t>(std::min<uint64_t>(blocks_ * problem.Batches(), parts));
    rows_ = layout_.Add("rows of A", problem.Batches() * problem.m * problem.k * sizeof(float), 64);
    sums_ = layout_.Add("sums", workers_ * problem.m * columns_ * sizeof(float), 64);
  }

  uint64_t temporary_bytes() const override { return layout_.bytes(); }
  uint64_t persistent_bytes() const override { return persistent_.bytes(); }
  bool packs_input(uint32_t input) const override { return packed_ && input == BindingOfB(); }

  Status Initialize(const KernelArguments& arguments) const override {
    if (!packed_) return {};
    packed_->Pack(arguments, [&](const BatchIndex& index) {
      const GemmMatrix& b = problem_.b;
      const uint64_t matrix = index[0] * problem_.batch[1] + index[1];
      return StridedPanels(At(arguments.inputs[BindingOfB()], b, matrix, problem_.type), problem_.type,
                           b.column, b.row);
    });
    return {};
  }

  Status Run(const KernelArguments& arguments) const override {
    const GemmProblem& p = problem_;
    LoadRows(arguments);
    const uint64_t blocks = blocks_ * p.Batches();
    SharedParts shared(blocks, workers_);
    ParallelFor(arguments.executor, workers_, [&](uint32_t worker) {
      float* const sums = sums_.In<float>(arguments.temporary) + worker * p.m * columns_;
      for (uint64_t block; shared.Take(worker, &block);) {
        RunColumns(block / blocks_, block % blocks_ * columns_, arguments, sums);
      }
    });
    return {};
  }

 private:
  uint32_t BindingOfB() const { return transposed_ ? 0 : 1; }

  // The columns of a block, chosen so that all matrices together have `parts` blocks.
  uint64_t ColumnsInPlace(uint32_t parts) const {
    const uint64_t blocks = (parts + problem_.Batches() - 1) / problem_.Batches();
    return std::clamp((problem_.n / blocks + kLeastColumns - 1) / kLeastColumns * kLeastColumns,
                      kLeastColumns, kSums / problem_.m);
  }
  // Blocks may be short, and are of one size.
  uint64_t ColumnsOfPanels(uint32_t parts) const {
    const uint64_t least = (parts + problem_.Batches() - 1) / problem_.Batches(), n = problem_.n;
    const uint64_t most = kSums / problem_.m;
    const uint64_t blocks = (std::max(least, (n + most - 1) / most) + least - 1) / least * least;
    const uint64_t columns = (n + blocks - 1) / blocks, width = few_.panel_columns;
    return (columns + width - 1) / width * width;
  }

  std::byte* At(const Buffer& buffer, const GemmMatrix& operand, uint64_t matrix, DataType type) const {
    const uint64_t element =
        matrix / problem_.batch[1] * operand.batch[0] + matrix % problem_.batch[1] * operand.batch[1];
    return buffer.data + element * (BitSize(type) / 8);
  }

  void LoadRows(const KernelArguments& arguments) const {
    const GemmProblem& p = problem_;
    auto* to = rows_.In<float>(arguments.temporary);
    for (uint64_t matrix = 0; matrix < p.Batches(); ++matrix) {
      const std::byte* const from = At(arguments.inputs[1 - BindingOfB()], p.a, matrix, p.type);
      const Block block = {p.m, p.k, p.a.row, p.a.column, 0};
      load_(from, block, to);
      to += p.m * p.k;
    }
  }

  void RunColumns(uint64_t matrix, uint64_t column, const KernelArguments& arguments, float* sums) const {
    const GemmProblem& p = problem_;
    const uint64_t count = std::min(columns_, p.n - column);
    const float* const a = rows_.In<float>(arguments.temporary) + matrix * p.m * p.k;
    if (packed_) {
      const BatchIndex index = {matrix / p.batch[1], matrix % p.batch[1]};
      RunPanels(a, packed_->Find(arguments, index), column, count, sums);
    } else {
      const std::byte* const b = At(arguments.inputs[BindingOfB()], p.b, matrix, p.type) +
                                 column * p.b.column * (BitSize(p.type) / 8);
      if (p.b.column == 1) {
        AddUp(a, b, count, sums);
      } else {
        Multiply(a, b, count, sums);
      }
    }
    const GemmSink sink(p, epilogue_, p.c ? At(arguments.inputs[2], *p.c, matrix, p.type) : nullptr,
                        At(arguments.outputs[0], p.output, matrix, p.output_type));
    for (uint64_t row = 0; row < p.m; ++row) sink.Finish(row, column, count, sums + row * columns_);
  }

  // For columns that begin with a panel; `sums` has room for whole panels.
  void RunPanels(const float* a, const ProductOperand& b, uint64_t column, uint64_t count,
                 float* sums) const {
    const GemmProblem& p = problem_;
    const auto run = few_.panels[p.m - 1];
    for (uint64_t j = 0; j < count; j += few_.panel_columns) {
      const uint64_t at = (column + j) * p.k;
      const void* const panel = b.packed != nullptr ? static_cast<const void*>(b.packed + at)
                                                    : static_cast<const void*>(b.packed_halves + at);
      run(a, p.k, panel, p.k, sums + j, columns_);
    }
  }

  // If rows of B are contiguous.
  void AddUp(const float* a, const std::byte* b, uint64_t count, float* sums) const {
    const GemmProblem& p = problem_;
    std::memset(sums, 0, p.m * columns_ * sizeof(float));
    for (uint64_t step = 0; step < p.k; step += kFewAtATime) {
      const auto some = static_cast<uint32_t>(std::min<uint64_t>(kFewAtATime, p.k - step));
      const std::byte* const from = b + step * p.b.row * (BitSize(p.type) / 8);
      for (uint64_t row = 0; row < p.m; ++row) {
        few_.add(a + row * p.k + step, from, p.b.row, some, count, sums + row * columns_, /*ahead=*/0);
      }
    }
  }

  // If columns of B are contiguous.
  void Multiply(const float* a, const std::byte* b, uint64_t count, float* sums) const {
    const GemmProblem& p = problem_;
    for (uint64_t j = 0; j < count; j += kFewAtATime) {
      const uint64_t some = std::min<uint64_t>(kFewAtATime, count - j);
      for (uint64_t row = 0; row < p.m; ++row) {
        MultiplySome(a + row * p.k, b + j * p.b.column * (BitSize(p.type) / 8), some,
                     sums + row * columns_ + j);
      }
    }
  }

  void MultiplySome(const float* a, const std::byte* b, uint64_t columns, float* sums) const {
    if (columns == kFewAtATime) return few_.dot(a, b, problem_.b.column, problem_.k, sums, /*ahead=*/0);
    for (uint64_t j = 0; j < columns; ++j) {
      float same[kFewAtATime];  // the sums of one column
      few_.dot(a, b + j * problem_.b.column * (BitSize(problem_.type) / 8), 0, problem_.k, same, /*ahead=*/0);
      sums[j] = same[0];
    }
  }

  GemmProblem problem_;
  bool transposed_;
  Epilogue epilogue_;
  FewRows few_;
  LoadBlock load_;
  uint64_t columns_, blocks_;  // per block; per matrix
  uint32_t workers_;
  std::optional<PackedOperand> packed_;  // B
  ScratchLayout layout_, persistent_;
  ScratchLayout::Piece rows_, sums_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateGemmFew(const GemmProblem& problem, const LowerContext& context,
                                            std::string* why_not) {
  const bool transposed = problem.m > kMaxRows;
  const GemmProblem given = transposed ? problem.Transposed() : problem;
  if (given.m > kMaxRows) {
    *why_not = StrCat("the output has more than ", kMaxRows, " rows and columns");
    return nullptr;
  }
  auto kernel = std::make_unique<GemmFew>(given, transposed, context.threads);
  if (given.b.column != 1 && given.b.row != 1 && kernel->persistent_bytes() == 0) {
    *why_not = "neither rows nor columns of the matrix are contiguous";
    return nullptr;
  }
  return kernel;
}

}  // namespace anydml
