#include <algorithm>
#include <cmath>

#include "base/dispatch.h"
#include "ops/common/coordinates.h"
#include "ops/top_k/problem.h"

namespace anydml {
namespace {

// a < b, with NaN above everything else.
template <typename T>
bool Less(T a, T b) {
  return a < b;
}
template <>
bool Less(float a, float b) {
  if (std::isnan(a)) return false;
  return std::isnan(b) || a < b;
}
template <>
bool Less(double a, double b) {
  if (std::isnan(a)) return false;
  return std::isnan(b) || a < b;
}
template <>
bool Less(Half a, Half b) {
  return Less(ToFloat(a), ToFloat(b));
}

template <typename T>
class TopKReference final : public Kernel {
 public:
  explicit TopKReference(const TopKProblem& problem) : problem_(problem) {}

  uint64_t temporary_bytes() const override { return uint64_t{problem_.n()} * sizeof(uint32_t); }

  Status Run(const KernelArguments& arguments) const override {
    const TopKProblem& p = problem_;
    const std::byte* input = arguments.inputs[0].data;
    auto* order = reinterpret_cast<uint32_t*>(arguments.temporary.data);
    Dimensions sequences = p.input.sizes;
    sequences[p.axis] = 1;

    ForEachCoordinate(sequences, p.input.rank, [&](Dimensions at) {
      const auto element = [&](uint32_t i) {
        at[p.axis] = i;
        return Load<T>(input, ElementOffset(p.input, at));
      };
      for (uint32_t i = 0; i < p.n(); ++i) order[i] = i;
      std::sort(order, order + p.n(), [&](uint32_t a, uint32_t b) {
        const T x = element(a);
        const T y = element(b);
        if (p.largest ? Less(y, x) : Less(x, y)) return true;
        if (p.largest ? Less(x, y) : Less(y, x)) return false;
        return a < b;
      });
      for (uint32_t j = 0; j < p.k(); ++j) {
        const T value = element(order[j]);
        at[p.axis] = j;
        Store<T>(arguments.outputs[0].data, ElementOffset(p.value, at), value);
        StoreIndex(arguments.outputs[1].data, ElementOffset(p.index, at), order[j]);
      }
    });
    return {};
  }

 private:
  void StoreIndex(std::byte* data, uint64_t offset, uint32_t index) const {
    if (problem_.index.type == DataType::kUInt64) {
      Store<uint64_t>(data, offset, index);
    } else {
      Store<uint32_t>(data, offset, index);
    }
  }

  TopKProblem problem_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateTopKReference(const TopKProblem& problem, const LowerContext&,
                                                  std::string*) {
  return DispatchByType(problem.input.type, [&]<typename T>() -> std::unique_ptr<const Kernel> {
    return std::make_unique<TopKReference<T>>(problem);
  });
}

}  // namespace anydml
