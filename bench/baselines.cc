#include "baselines.h"

#include <algorithm>
#include <numeric>

namespace anydml::bench {
namespace {

constexpr char kNthElement[] = "std::nth_element+sort";
constexpr char kPartialSort[] = "std::partial_sort";

bool Applies(const Case& c) {
  return c.Is("TOP_K1") && c.tensor("InputTensor").type != DataType::kFloat16 && c.data[0] != "nan";
}

}  // namespace

Baselines::Baselines(const Case& c, const Inputs& inputs)
    : case_(c), input_(Applies(c) ? inputs[0] : Bytes()) {
  if (input_.empty()) return;
  values_.resize(DataBytes(c.tensor("OutputValueTensor")));
  indices_.resize(DataBytes(c.tensor("OutputIndexTensor")));
  order_.resize(c.tensor("InputTensor").sizes[c.desc.uint("Axis")]);
}

std::vector<std::string> Baselines::variants() const {
  if (input_.empty()) return {};
  return {kNthElement, kPartialSort};
}

void Baselines::Run(const std::string& variant) {
  if (case_.tensor("InputTensor").type == DataType::kFloat32) {
    RunAs<float>(variant == kPartialSort);
  } else {
    RunAs<int8_t>(variant == kPartialSort);
  }
}

template <typename T>
void Baselines::RunAs(bool partial_sort) {
  const uint64_t n = order_.size(), k = case_.desc.uint("K"), stride = case_.axis_stride();
  const auto* input = reinterpret_cast<const T*>(input_.data());
  auto* values = reinterpret_cast<T*>(values_.data());
  auto* indices = reinterpret_cast<uint32_t*>(indices_.data());
  for (uint64_t sequence = 0; sequence < ElementCount(case_.tensor("InputTensor")) / n; ++sequence) {
    const uint64_t outer = sequence / stride, inner = sequence % stride;
    const T* from = input + outer * n * stride + inner;
    const auto before = [from, stride](uint32_t a, uint32_t b) {
      const T x = from[a * stride], y = from[b * stride];
      return x > y || (x == y && a < b);
    };
    const auto first = order_.begin(), end_of_k = first + static_cast<ptrdiff_t>(k);
    std::iota(first, order_.end(), 0u);
    if (partial_sort) {
      std::partial_sort(first, end_of_k, order_.end(), before);
    } else {
      if (k < n) std::nth_element(first, end_of_k, order_.end(), before);
      std::sort(first, end_of_k, before);
    }
    for (uint64_t j = 0; j < k; ++j) {
      const uint64_t at = (outer * k + j) * stride + inner;
      indices[at] = order_[j];
      values[at] = from[order_[j] * stride];
    }
  }
}

}  // namespace anydml::bench
