// A row is read once from memory; it stays in the cache while it is measured and written.
#include "ops/mvn/rows.h"

#if ANYDML_HAVE_HIGHWAY
#include <cmath>
#include <limits>

#include "base/half.h"
#include "ops/common/nest_parts.h"
#include "ops/mvn/cpu/row.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/mvn/cpu/rows.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

constexpr uint64_t kAddedInFloat = 2048;

HWY_INLINE Vector LoadVector(const float* from) { return hn::LoadU(Tag(), from); }
HWY_INLINE Vector LoadVector(const Half* from) {
  const hn::Rebind<hwy::float16_t, Tag> dh;
  return hn::PromoteTo(Tag(), hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(from)));
}
HWY_INLINE void StoreVector(Vector value, float* to) { hn::StoreU(value, Tag(), to); }
HWY_INLINE void StoreVector(Vector value, Half* to) {
  const hn::Rebind<hwy::float16_t, Tag> dh;
  hn::StoreU(hn::DemoteTo(dh, value), dh, reinterpret_cast<hwy::float16_t*>(to));
}
HWY_INLINE float LoadOne(const float* from) { return *from; }
HWY_INLINE float LoadOne(const Half* from) { return ToFloat(*from); }
HWY_INLINE void StoreOne(float value, float* to) { *to = value; }
HWY_INLINE void StoreOne(float value, Half* to) { *to = ToHalf(value); }

// The sum of x - center or of its square.
template <bool kSquare, typename T>
HWY_INLINE double SumOfRow(const T* x, uint64_t length, float center) {
  const Tag d;
  const uint64_t lanes = hn::Lanes(d);
  const auto c = hn::Set(d, center);
  const auto term = [&](uint64_t i) HWY_ATTR {
    if constexpr (kSquare) {
      const auto distance = hn::Sub(LoadVector(x + i), c);
      return hn::Mul(distance, distance);
    } else {
      return LoadVector(x + i);
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
    const float distance = LoadOne(x + i) - center;
    sum += kSquare ? distance * distance : distance;
  }
  return sum;
}

template <bool kHasScale, bool kHasBias, typename T>
HWY_INLINE void WriteRow(const MvnRow& row, float mean, float factor) {
  const Tag d;
  const uint64_t lanes = hn::Lanes(d);
  const T *const x = static_cast<const T*>(row.x), *const scale = static_cast<const T*>(row.scale),
                 *const bias = static_cast<const T*>(row.bias);
  T* const y = static_cast<T*>(row.y);
  const auto vmean = hn::Set(d, mean), vfactor = hn::Set(d, factor), voffset = hn::Set(d, row.offset);
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const auto nan = hn::Set(d, kNan);
  uint64_t i = 0;
  for (; i + lanes <= row.length; i += lanes) {
    auto value = hn::Mul(hn::Sub(LoadVector(x + i), vmean), vfactor);
    if constexpr (kHasScale) value = hn::Mul(value, LoadVector(scale + i));
    value = hn::Add(value, kHasBias ? LoadVector(bias + i) : voffset);
    StoreVector(hn::IfThenElse(hn::IsNaN(value), nan, value), y + i);
  }
  for (; i < row.length; ++i) {
    float value = (LoadOne(x + i) - mean) * factor;
    if constexpr (kHasScale) value *= LoadOne(scale + i);
    value += kHasBias ? LoadOne(bias + i) : row.offset;
    StoreOne(std::isnan(value) ? kNan : value, y + i);
  }
}

template <typename T>
HWY_INLINE void NormalizeRow(const MvnRow& row) {
  const T* const x = static_cast<const T*>(row.x);
  const auto count = static_cast<double>(row.length);
  const float mean = row.use_mean ? static_cast<float>(SumOfRow<false>(x, row.length, 0) / count) : 0.0f;
  float factor = row.factor;
  if (row.use_variance) {
    const auto variance = static_cast<float>(SumOfRow<true>(x, row.length, mean) / count);
    factor *= 1 / std::sqrt(variance + row.epsilon);
  }
  if (row.scale != nullptr) {
    if (row.bias != nullptr) return WriteRow<true, true, T>(row, mean, factor);
    return WriteRow<true, false, T>(row, mean, factor);
  }
  if (row.bias != nullptr) return WriteRow<false, true, T>(row, mean, factor);
  WriteRow<false, false, T>(row, mean, factor);
}

void NormalizeFloats(const MvnRow& row) { NormalizeRow<float>(row); }
void NormalizeHalves(const MvnRow& row) { NormalizeRow<Half>(row); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anydml {
namespace {

HWY_EXPORT(NormalizeFloats);
HWY_EXPORT(NormalizeHalves);

class MvnRowsCpu final : public Kernel {
 public:
  MvnRowsCpu(const MvnProblem& problem, const MvnRows& rows, const LowerContext& context)
      : rows_(rows), is_half_(problem.input.type == DataType::kFloat16) {
    common_.length = rows.length;
    common_.use_mean = problem.use_mean;
    common_.use_variance = problem.use_variance;
    common_.epsilon = problem.epsilon;
    common_.factor = 1;
    const uint64_t count = Iterations(rows.rows);
    const uint64_t bytes = 2 * count * rows.length * width();
    parts_ = static_cast<uint32_t>(std::min<uint64_t>(count, PartsForBytes(bytes, context.threads)));
  }

  Status Run(const KernelArguments& arguments) const override {
    const uint64_t count = Iterations(rows_.rows);
    ParallelFor(arguments.executor, parts_, [&](uint32_t part) {
      const uint64_t end = PartBegin(count, part + 1, parts_);
      for (uint64_t i = PartBegin(count, part, parts_); i < end; ++i)
        RunRow(arguments, OffsetsOf(rows_.rows, i));
    });
    return {};
  }

 private:
  uint64_t width() const { return is_half_ ? 2 : 4; }

  float ElementAt(const std::byte* at) const {
    return is_half_ ? ToFloat(*reinterpret_cast<const Half*>(at)) : *reinterpret_cast<const float*>(at);
  }

  void RunRow(const KernelArguments& arguments, const LoopNest<4>::Offsets& offsets) const {
    MvnRow row = common_;
    row.x = arguments.inputs[0].data + offsets[0] * width();
    row.y = arguments.outputs[0].data + offsets[1] * width();
    if (rows_.has_scale) {
      const std::byte* const scale = arguments.inputs[1].data + offsets[2] * width();
      if (rows_.scale_along_row) {
        row.scale = scale;
      } else {
        row.factor = ElementAt(scale);
      }
    }
    if (rows_.has_bias) {
      const std::byte* const bias = arguments.inputs[2].data + offsets[3] * width();
      if (rows_.bias_along_row) {
        row.bias = bias;
      } else {
        row.offset = ElementAt(bias);
      }
    }
    if (is_half_) {
      HWY_DYNAMIC_DISPATCH(NormalizeHalves)(row);
    } else {
      HWY_DYNAMIC_DISPATCH(NormalizeFloats)(row);
    }
  }

  MvnRows rows_;
  bool is_half_;
  MvnRow common_{};
  uint32_t parts_;
};

constexpr uint64_t kLongest = 1 << 16;  // what a second-level cache holds

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
