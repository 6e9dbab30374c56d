// Each row is read once from memory and stays in the cache while its statistics and results are computed.
#include "ops/mvn/contiguous_rows.h"

#if ANYDML_HAVE_HIGHWAY
#include <cmath>
#include <limits>

#include "base/half.h"
#include "ops/common/nest_parts.h"
#include "ops/mvn/cpu/row.h"
#include "ops/numbers/convert_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/mvn/cpu/cached_rows.cc"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;

constexpr uint64_t kAddedInFloat = 2048;

// The sum of x - center or of its square.
template <bool kSquare>
HWY_INLINE double SumOfRow(const float* x, uint64_t length, float center) {
  const Tag d;
  const uint64_t lanes = hn::Lanes(d);
  const auto c = hn::Set(d, center);
  const auto term = [&](uint64_t i) HWY_ATTR {
    if constexpr (kSquare) {
      const auto distance = hn::Sub(hn::LoadU(d, x + i), c);
      return hn::Mul(distance, distance);
    } else {
      return hn::LoadU(d, x + i);
    }
  };
  double sum = 0;
  uint64_t i = 0;
  while (i + lanes <= length) {
    const uint64_t end = HWY_MIN(length, i + kAddedInFloat);
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      s0 = hn::Add(s0, term(i));
      s1 = hn::Add(s1, term(i + lanes));
      s2 = hn::Add(s2, term(i + 2 * lanes));
      s3 = hn::Add(s3, term(i + 3 * lanes));
    }
    for (; i + lanes <= end; i += lanes) s0 = hn::Add(s0, term(i));
    sum += hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  }
  for (; i < length; ++i) {
    const float distance = x[i] - center;
    sum += kSquare ? distance * distance : distance;
  }
  return sum;
}

// Makes NaNs canonical.
HWY_NOINLINE void MakeNansAlike(float* y, uint64_t length) {
  for (uint64_t i = 0; i < length; ++i) {
    if (std::isnan(y[i])) y[i] = std::numeric_limits<float>::quiet_NaN();
  }
}

template <bool kHasScale, bool kHasBias>
HWY_INLINE void WriteRow(const MvnRow& row, float mean, float factor) {
  const Tag d;
  const uint64_t lanes = hn::Lanes(d);
  const float *const x = row.x, *const scale = row.scale, *const bias = row.bias;
  float* const y = row.y;
  const auto zero = hn::Zero(d);
  // Zero as long as all results are finite: NaNs are searched for only if there may be some.
  auto f0 = zero, f1 = zero, f2 = zero, f3 = zero;
  const float* const next = row.next;
  const auto write_some = [&](auto some, uint64_t i) HWY_ATTR {
    const auto centered = hn::Sub(hn::LoadU(some, x + i), hn::Set(some, mean)), by = hn::Set(some, factor);
    const auto offset = kHasBias ? hn::LoadU(some, bias + i) : hn::Set(some, row.offset);
    const auto value = kHasScale ? hn::MulAdd(hn::Mul(centered, by), hn::LoadU(some, scale + i), offset)
                                 : hn::MulAdd(centered, by, offset);
    hn::StoreU(value, some, y + i);
    return value;
  };
  const auto write = [&](uint64_t i) HWY_ATTR { return write_some(d, i); };
  uint64_t i = 0;
  for (; i + 4 * lanes <= row.length; i += 4 * lanes) {
    hwy::Prefetch(next + i);
    f0 = hn::MulAdd(write(i), zero, f0);
    f1 = hn::MulAdd(write(i + lanes), zero, f1);
    f2 = hn::MulAdd(write(i + 2 * lanes), zero, f2);
    f3 = hn::MulAdd(write(i + 3 * lanes), zero, f3);
  }
  for (; i + lanes <= row.length; i += lanes) f0 = hn::MulAdd(write(i), zero, f0);
  const hn::CappedTag<float, 1> one;
  float rest = 0;
  for (; i < row.length; ++i) rest += hn::GetLane(write_some(one, i)) * 0;
  const auto all = hn::Add(hn::Add(f0, f1), hn::Add(f2, f3));
  if (!(hn::GetLane(hn::SumOfLanes(d, all)) + rest == 0)) MakeNansAlike(y, row.length);
}

void NormalizeRow(const MvnRow& row) {
  const auto count = static_cast<double>(row.length);
  const float mean = row.use_mean ? static_cast<float>(SumOfRow<false>(row.x, row.length, 0) / count) : 0.0f;
  float factor = row.factor;
  if (row.use_variance) {
    const auto variance = static_cast<float>(SumOfRow<true>(row.x, row.length, mean) / count);
    factor *= 1 / std::sqrt(variance + row.epsilon);
  }
  if (row.scale != nullptr) {
    if (row.bias != nullptr) return WriteRow<true, true>(row, mean, factor);
    return WriteRow<true, false>(row, mean, factor);
  }
  if (row.bias != nullptr) return WriteRow<false, true>(row, mean, factor);
  WriteRow<false, false>(row, mean, factor);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anydml {
namespace {

HWY_EXPORT(NormalizeRow);

// Halves are converted to FLOAT32: a row when it is processed, scale and bias when they change.
class MvnRowsCpu final : public Kernel {
 public:
  MvnRowsCpu(const MvnProblem& problem, const MvnRows& rows, const LowerContext& context)
      : rows_(rows), is_half_(problem.input.type == DataType::kFloat16), count_(Iterations(rows.rows)) {
    common_.length = rows.length;
    common_.use_mean = problem.use_mean;
    common_.use_variance = problem.use_variance;
    common_.epsilon = problem.epsilon;
    common_.factor = 1;
    const uint64_t bytes = 2 * count_ * rows.length * BitSize(problem.input.type) / 8;
    parts_ = static_cast<uint32_t>(std::min<uint64_t>(count_, PartsForBytes(bytes, context.threads)));
  }

  uint64_t temporary_bytes() const override {
    return is_half_ ? parts_ * 3 * rows_.length * sizeof(float) : 0;
  }

  Status Run(const KernelArguments& arguments) const override {
    ParallelFor(arguments.executor, parts_, [&](uint32_t part) {
      const uint64_t begin = PartBegin(count_, part, parts_), end = PartBegin(count_, part + 1, parts_);
      if (is_half_) {
        RunHalves(arguments, begin, end,
                  reinterpret_cast<float*>(arguments.temporary.data) + part * 3 * rows_.length);
      } else {
        RunFloats(arguments, begin, end);
      }
    });
    return {};
  }

 private:
  void RunFloats(const KernelArguments& arguments, uint64_t begin, uint64_t end) const {
    const auto in = [&](uint32_t i) { return reinterpret_cast<const float*>(arguments.inputs[i].data); };
    for (uint64_t i = begin; i < end; ++i) {
      const LoopNest<4>::Offsets at = OffsetsOf(rows_.rows, i);
      MvnRow row = common_;
      row.x = in(0) + at[0];
      row.next = in(0) + OffsetsOf(rows_.rows, std::min(i + 1, end - 1))[0];
      row.y = reinterpret_cast<float*>(arguments.outputs[0].data) + at[1];
      if (rows_.scale_along_row) row.scale = in(1) + at[2];
      if (rows_.bias_along_row) row.bias = in(2) + at[3];
      if (rows_.has_scale && !rows_.scale_along_row) row.factor = in(1)[at[2]];
      if (rows_.has_bias && !rows_.bias_along_row) row.offset = in(2)[at[3]];
      HWY_DYNAMIC_DISPATCH(NormalizeRow)(row);
    }
  }

  void RunHalves(const KernelArguments& arguments, uint64_t begin, uint64_t end, float* numbers) const {
    const auto in = [&](uint32_t i) { return reinterpret_cast<const uint16_t*>(arguments.inputs[i].data); };
    float *const scale = numbers + rows_.length, *const bias = scale + rows_.length;
    LoopNest<4>::Offsets before{};
    for (uint64_t i = begin; i < end; ++i) {
      const LoopNest<4>::Offsets at = OffsetsOf(rows_.rows, i);
      const auto changes = [&](size_t o) { return i == begin || at[o] != before[o]; };
      MvnRow row = common_;
      row.x = row.next = row.y = numbers;
      HalvesToFloats(in(0) + at[0], numbers, rows_.length);
      if (rows_.scale_along_row && changes(2)) HalvesToFloats(in(1) + at[2], scale, rows_.length);
      if (rows_.bias_along_row && changes(3)) HalvesToFloats(in(2) + at[3], bias, rows_.length);
      if (rows_.scale_along_row) row.scale = scale;
      if (rows_.bias_along_row) row.bias = bias;
      if (rows_.has_scale && !rows_.scale_along_row) row.factor = ToFloat(Half{in(1)[at[2]]});
      if (rows_.has_bias && !rows_.bias_along_row) row.offset = ToFloat(Half{in(2)[at[3]]});
      HWY_DYNAMIC_DISPATCH(NormalizeRow)(row);
      FloatsToHalves(numbers, reinterpret_cast<uint16_t*>(arguments.outputs[0].data) + at[1], rows_.length);
      before = at;
    }
  }

  MvnRows rows_;
  bool is_half_;
  uint64_t count_;
  MvnRow common_{};
  uint32_t parts_;
};

constexpr uint64_t kLongest = 1 << 16;  // fits into L2

}  // namespace

std::unique_ptr<const Kernel> CreateMvnRowsCpu(const MvnProblem& problem, const LowerContext& context,
                                               std::string* why_not) {
  const std::optional<MvnRows> rows = RowsOf(problem, kLongest, why_not);
  if (!rows) return nullptr;
  return std::make_unique<MvnRowsCpu>(problem, *rows, context);
}

}  // namespace anydml
#endif  // HWY_ONCE

#else  // without Highway

namespace anydml {

std::unique_ptr<const Kernel> CreateMvnRowsCpu(const MvnProblem&, const LowerContext&, std::string* why_not) {
  *why_not = "built without Highway";
  return nullptr;
}

}  // namespace anydml
#endif
