// Decides whether two coordinates of a tensor share an element.
//
// They do exactly if there is a difference vector d, not all zero, with |d[i]| < sizes[i] and sum(d[i] *
// strides[i]) == 0. The search fixes d for the largest stride first. Two facts keep it short: the remainder
// must be within reach of the smaller strides, and divisible by their greatest common divisor; for the last
// two dimensions these conditions are also sufficient. In every layout that tiles, pads or transposes, each
// stride is beyond the reach of the smaller ones, so only d = 0 is ever tried.
//
// Strides made to defeat this cost at most about 16 steps per element of the tensor (2^6 differences per
// coordinate of six dimensions, a quarter of that because the remaining two have at least two elements each).
// Since descriptions are untrusted, and an operator may have thousands of outputs, all tensors of an operator
// share one budget.
#include <algorithm>
#include <numeric>
#include <utility>

#include "schema/tensor_desc.h"

namespace anydml {
namespace {

// Sums of eight products of two 32-bit numbers do not fit 64 bits.
__extension__ typedef __int128 Wide;

struct Dimension {
  int64_t stride;
  int64_t reach;  // size - 1
  // About the smaller strides together: their reach, and the d (inverse * x, modulo period) with which they
  // can complete x * common + d * stride.
  Wide rest_reach = 0;
  int64_t common = 1;
  int64_t period = 1;
  int64_t inverse = 0;
};

Wide FloorDivide(Wide a, Wide b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
Wide CeilDivide(Wide a, Wide b) { return -FloorDivide(-a, b); }
Wide FloorModulo(Wide a, Wide b) { return a - FloorDivide(a, b) * b; }

// The x with a * x == 1 modulo m, for coprime a and m; 0 if m is 1.
int64_t Inverse(int64_t a, int64_t m) {
  int64_t r0 = m, r1 = a % m, x0 = 0, x1 = 1;
  while (r1 != 0) {
    const int64_t q = r0 / r1;
    r0 = std::exchange(r1, r0 - q * r1);
    x0 = std::exchange(x1, x0 - q * x1);
  }
  return static_cast<int64_t>(FloorModulo(x0, m));
}

class Search {
 public:
  Search(const TensorDesc& tensor, OverlapBudget* budget) : budget_(budget) {
    for (uint32_t i = 0; i < tensor.rank; ++i) {
      if (tensor.sizes[i] > 1) dimensions_[count_++] = {tensor.strides[i], int64_t{tensor.sizes[i]} - 1};
    }
    std::sort(dimensions_, dimensions_ + count_,
              [](const Dimension& a, const Dimension& b) { return a.stride > b.stride; });
  }

  Overlap Run() {
    if (count_ > 0 && dimensions_[count_ - 1].stride == 0) return Overlap::kSome;
    if (count_ < 2) return Overlap::kNone;
    Prepare();
    return Solve(0, 0, false);
  }

 private:
  void Prepare() {
    Wide reach = 0;
    int64_t divisor = 0;
    for (int k = count_; k-- > 0;) {
      Dimension& dimension = dimensions_[k];
      dimension.rest_reach = reach;
      if (divisor != 0) {
        dimension.common = std::gcd(dimension.stride, divisor);
        dimension.period = divisor / dimension.common;
        dimension.inverse = Inverse(dimension.stride / dimension.common, dimension.period);
      }
      reach += Wide{dimension.stride} * dimension.reach;
      divisor = std::gcd(divisor, dimension.stride);
    }
  }

  // Whether dimensions [k, count_) have differences that sum to -rest. `moved`: an earlier difference is not
  // zero; until then negative differences only mirror positive ones.
  Overlap Solve(int k, Wide rest, bool moved) {
    const Dimension& dimension = dimensions_[k];
    const bool last = k == count_ - 2;  // the smallest stride can make up any remainder
    // The remainder, rest + d * stride, must be within reach of the smaller strides, ...
    Wide low = std::max<Wide>(-dimension.reach, CeilDivide(-dimension.rest_reach - rest, dimension.stride));
    const Wide high =
        std::min<Wide>(dimension.reach, FloorDivide(dimension.rest_reach - rest, dimension.stride));
    if (!moved) low = std::max<Wide>(low, last ? 1 : 0);
    // ... and divisible by their greatest common divisor. (`rest` is a multiple of `common`, by the caller's
    // choice.)
    const Wide first = FloorModulo(-rest / dimension.common * dimension.inverse, dimension.period);
    for (Wide d = low + FloorModulo(first - low, dimension.period); d <= high; d += dimension.period) {
      if (last) return Overlap::kSome;
      const bool moves = moved || d != 0;
      // The branch where all differences are zero takes few steps, and ordinary layouts have only this one.
      if (moves && budget_->steps == 0) return Overlap::kUnknown;
      if (moves) --budget_->steps;
      const Overlap found = Solve(k + 1, rest + d * dimension.stride, moves);
      if (found != Overlap::kNone) return found;
    }
    return Overlap::kNone;
  }

  Dimension dimensions_[kMaxDimensions];  // longer than 1 only, largest stride first
  int count_ = 0;
  OverlapBudget* const budget_;
};

}  // namespace

Overlap FindOverlap(const TensorDesc& tensor, OverlapBudget* budget) { return Search(tensor, budget).Run(); }

}  // namespace anydml
