#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/common/nest_parts.h"
#include "ops/moments/cpu/row_sums.h"
#include "ops/moments/problem.h"
#include "ops/numbers/load_store.h"

namespace anydml {
namespace {

constexpr uint64_t kColumns = 256;      // sets at a time, if they are contiguous
constexpr uint32_t kAddedInFloat = 64;  // numbers of a set that are added before their sum goes to a wider
                                        // one

using Kept = LoopNest<4>::Offsets;  // into input, gradients, centers, results

float TermOf(MomentTerm term, float x, float gradient, float center) {
  switch (term) {
    case MomentTerm::kElement:
      return x;
    case MomentTerm::kMagnitude:
      return std::abs(x);
    case MomentTerm::kSquare:
      return (x - center) * (x - center);
    case MomentTerm::kGradient:
      return gradient;
    case MomentTerm::kProduct:
      return gradient * (x - center);
  }
  return 0;
}

// Adds to sums of columns; the switch is outside the loop.
void AddRow(MomentTerm term, const float* x, const float* gradient, const float* center, float* sums,
            uint64_t count) {
  const auto add = [&]<MomentTerm kTerm>() {
    for (uint64_t i = 0; i < count; ++i) sums[i] += TermOf(kTerm, x[i], gradient[i], center[i]);
  };
  switch (term) {
    case MomentTerm::kElement:
      return add.operator()<MomentTerm::kElement>();
    case MomentTerm::kMagnitude:
      return add.operator()<MomentTerm::kMagnitude>();
    case MomentTerm::kSquare:
      return add.operator()<MomentTerm::kSquare>();
    case MomentTerm::kGradient:
      return add.operator()<MomentTerm::kGradient>();
    case MomentTerm::kProduct:
      return add.operator()<MomentTerm::kProduct>();
  }
}

double SumOfRow(MomentTerm term, const float* x, const float* gradient, uint64_t count, float center) {
  switch (term) {
    case MomentTerm::kElement:
      return SumOf(x, count);
    case MomentTerm::kMagnitude:
      return SumOfMagnitudes(x, count);
    case MomentTerm::kSquare:
      return SumOfSquares(x, count, center);
    case MomentTerm::kGradient:
      return SumOf(gradient, count);
    case MomentTerm::kProduct:
      return SumOfProducts(gradient, x, count, center);
  }
  return 0;
}

// Sums are computed in units: a set, or kColumns contiguous ones. If there are few units, sets are cut into
// parts, always in the same way, so that results do not depend on the number of threads.
class MomentsCpu final : public Kernel {
 public:
  MomentsCpu(const MomentsProblem& problem, const LowerContext& context)
      : problem_(problem),
        elements_(ReducedElements(problem.input, problem.reduced)),
        outer_(KeptNest(problem)),
        load_(FindLoad(problem.input.type, Class::kF32)) {
    const LoopNest<2> reduced = ReducedNest(problem);
    if (SetsAreNeighbours(outer_, reduced)) columns_ = TakeInnermost(&outer_);
    blocks_ = (columns_.size + kColumns - 1) / kColumns;
    units_ = Iterations(outer_) * blocks_;
    const uint64_t wanted = units_ >= 64 ? 1 : std::clamp<uint64_t>(elements_ / (1 << 15), 1, 64);
    parts_ =
        CutNest(reduced, LoopToCut(reduced, static_cast<uint32_t>(wanted)), static_cast<uint32_t>(wanted));
    const uint64_t bytes = ElementCount(problem.input) * BitSize(problem.input.type) / 8;
    tasks_ = static_cast<uint32_t>(std::min<uint64_t>(units_, PartsForBytes(bytes, context.threads)));
  }

  uint64_t temporary_bytes() const override {
    return parts_.size() == 1 ? 0 : units_ * parts_.size() * width() * sizeof(double);
  }

  Status Run(const KernelArguments& arguments) const override {
    if (parts_.size() == 1) {
      ParallelFor(arguments.executor, tasks_, [&](uint32_t task) {
        const uint64_t end = PartBegin(units_, task + 1, tasks_);
        for (uint64_t unit = PartBegin(units_, task, tasks_); unit < end; ++unit) {
          for (uint32_t pass = 0; pass < problem_.passes(); ++pass) {
            double sums[kColumns];
            SumPart(arguments, unit, pass, parts_[0], sums);
            StoreResults(arguments, unit, pass, sums);
          }
        }
      });
      return {};
    }
    auto* const partial = reinterpret_cast<double*>(arguments.temporary.data);
    const auto parts = static_cast<uint32_t>(parts_.size());
    for (uint32_t pass = 0; pass < problem_.passes(); ++pass) {
      ParallelFor(arguments.executor, static_cast<uint32_t>(units_) * parts, [&](uint32_t i) {
        SumPart(arguments, i / parts, pass, parts_[i % parts], partial + i * width());
      });
      for (uint64_t unit = 0; unit < units_; ++unit) {
        double* const sums = partial + unit * parts * width();
        for (uint64_t i = width(); i < parts * width(); ++i) sums[i % width()] += sums[i];
        StoreResults(arguments, unit, pass, sums);
      }
    }
    return {};
  }

 private:
  uint64_t width() const { return std::min(columns_.size, kColumns); }

  // The first set of a unit, and their number.
  uint64_t SetsOf(uint64_t unit, Kept* offsets) const {
    const uint64_t first = unit % blocks_ * kColumns;
    *offsets = OffsetsOf(outer_, unit / blocks_);
    for (size_t o = 0; o < offsets->size(); ++o) (*offsets)[o] += first * columns_.strides[o];
    return std::min(kColumns, columns_.size - first);
  }

  const float* Load(const Buffer& buffer, uint64_t offset, uint64_t stride, uint64_t count,
                    float* row) const {
    if (problem_.input.type == DataType::kFloat32 && (stride == 1 || count == 1)) {
      return reinterpret_cast<const float*>(buffer.data) + offset;
    }
    load_(buffer.data, Block{.columns = count, .column_stride = stride, .offset = offset}, row);
    return row;
  }

  // Loads what is subtracted from elements: the mean from the previous pass, the center, or 0.
  void LoadCenters(const KernelArguments& arguments, uint32_t pass, const Kept& offsets, uint64_t sets,
                   float* centers) const {
    const MomentTerm term = problem_.pass(pass).term;
    if (term == MomentTerm::kProduct) {
      load_(arguments.inputs[2].data,
            Block{.columns = sets, .column_stride = columns_.strides[2], .offset = offsets[2]}, centers);
    } else if (term == MomentTerm::kSquare && pass == 1) {
      const auto* const means = reinterpret_cast<const float*>(arguments.outputs[0].data);
      for (uint64_t i = 0; i < sets; ++i) centers[i] = means[offsets[3] + i * columns_.strides[3]];
    } else {
      std::fill_n(centers, sets, 0.0f);
    }
  }

  void SumPart(const KernelArguments& arguments, uint64_t unit, uint32_t pass, const NestPart<2>& part,
               double* sums) const {
    Kept offsets;
    const uint64_t sets = SetsOf(unit, &offsets);
    float centers[kColumns];
    LoadCenters(arguments, pass, offsets, sets, centers);
    LoopNest<2>::Offsets start = part.start;
    for (size_t o = 0; o < start.size(); ++o) start[o] += offsets[o];
    if (columns_.size > 1) return SumColumns(arguments, pass, part, start, sets, centers, sums);
    *sums = SumRows(arguments, pass, part, start, centers[0]);
  }

  double SumRows(const KernelArguments& arguments, uint32_t pass, const NestPart<2>& part,
                 const LoopNest<2>::Offsets& start, float center) const {
    const MomentTerm term = problem_.pass(pass).term;
    double sum = 0;
    ForEach(part.outer, start, [&](const LoopNest<2>::Offsets& at) {
      float row[kSummedAtOnce], gradients[kSummedAtOnce];
      for (uint64_t i = 0; i < part.inner.size; i += kSummedAtOnce) {
        const uint64_t count = std::min(kSummedAtOnce, part.inner.size - i);
        const auto load = [&](uint32_t o, float* to) {
          const uint64_t stride = part.inner.strides[o];
          return Load(arguments.inputs[o], at[o] + i * stride, stride, count, to);
        };
        const float* const x = load(0, row);
        sum += SumOfRow(term, x, problem_.has_gradient() ? load(1, gradients) : x, count, center);
      }
    });
    return sum;
  }

  void SumColumns(const KernelArguments& arguments, uint32_t pass, const NestPart<2>& part,
                  const LoopNest<2>::Offsets& start, uint64_t sets, const float* centers,
                  double* sums) const {
    const MomentTerm term = problem_.pass(pass).term;
    float in_float[kColumns] = {}, row[kColumns], gradients[kColumns];
    std::fill_n(sums, sets, 0.0);
    uint32_t added = 0;
    const auto widen = [&] {
      for (uint64_t i = 0; i < sets; ++i) sums[i] += in_float[i];
      std::fill_n(in_float, sets, 0.0f);
      added = 0;
    };
    ForEach(part.outer, start, [&](const LoopNest<2>::Offsets& at) {
      for (uint64_t i = 0; i < part.inner.size; ++i) {
        const auto load = [&](uint32_t o, float* to) {
          return Load(arguments.inputs[o], at[o] + i * part.inner.strides[o], columns_.strides[o], sets, to);
        };
        const float* const x = load(0, row);
        AddRow(term, x, problem_.has_gradient() ? load(1, gradients) : x, centers, in_float, sets);
        if (++added == kAddedInFloat) widen();
      }
    });
    widen();
  }

  void StoreResults(const KernelArguments& arguments, uint64_t unit, uint32_t pass,
                    const double* sums) const {
    Kept offsets;
    const uint64_t sets = SetsOf(unit, &offsets);
    auto* const results = reinterpret_cast<float*>(arguments.outputs[pass].data);
    const double divisor = problem_.pass(pass).is_mean ? static_cast<double>(elements_) : 1;
    for (uint64_t i = 0; i < sets; ++i) {
      results[offsets[3] + i * columns_.strides[3]] = static_cast<float>(sums[i] / divisor);
    }
  }

  const MomentsProblem problem_;
  const uint64_t elements_;  // per set
  LoopNest<4> outer_;
  LoopNest<4>::Loop columns_;  // one iteration if sets are not contiguous
  const LoadBlock load_;
  uint64_t blocks_;  // of columns
  uint64_t units_;
  uint32_t tasks_;
  std::vector<NestPart<2>> parts_;  // of a set
};

}  // namespace

std::unique_ptr<const Kernel> CreateMomentsCpu(const MomentsProblem& problem, const LowerContext& context,
                                               std::string*) {
  return std::make_unique<MomentsCpu>(problem, context);
}

}  // namespace anydml
