#include <cmath>
#include <limits>

#include "base/half.h"
#include "ops/attention/problem.h"
#include "ops/common/coordinates.h"

namespace anydml {
namespace {

class AttentionReference final : public Kernel {
 public:
  explicit AttentionReference(const AttentionProblem& problem) : problem_(problem) {}

  uint64_t temporary_bytes() const override { return problem_.keys * sizeof(double); }

  Status Run(const KernelArguments& arguments) const override {
    WritePresent(problem_.key, arguments);
    WritePresent(problem_.value, arguments);
    for (uint64_t b = 0; b < problem_.batch; ++b) {
      for (uint64_t h = 0; h < problem_.heads; ++h) {
        for (uint64_t q = 0; q < problem_.queries; ++q) RunQuery(b, h, q, arguments);
      }
    }
    return {};
  }

 private:
  float At(std::span<const Buffer> buffers, const AttentionView& view, uint64_t b, uint64_t h, uint64_t r,
           uint64_t c) const {
    const std::byte* const data = buffers[view.binding].data;
    const uint64_t at = view.At(b, h, r, c);
    return problem_.type == DataType::kFloat16 ? ToFloat(Load<Half>(data, at)) : Load<float>(data, at);
  }

  void Put(std::span<const Buffer> outputs, const AttentionView& view, uint64_t b, uint64_t h, uint64_t r,
           uint64_t c, float value) const {
    if (std::isnan(value)) value = std::numeric_limits<float>::quiet_NaN();
    std::byte* const data = outputs[view.binding].data;
    const uint64_t at = view.At(b, h, r, c);
    if (problem_.type == DataType::kFloat16) {
      Store(data, at, ToHalf(value));
    } else {
      Store(data, at, value);
    }
  }

  uint64_t PastOf(uint64_t b, const KernelArguments& arguments) const {
    if (!problem_.lengths.exists) return problem_.past;
    const Buffer& lengths = arguments.inputs[static_cast<uint32_t>(AttentionInput::kPastLengths)];
    return problem_.lengths.Of(reinterpret_cast<const int32_t*>(lengths.data), b);
  }

  // An element of a past or new key or value.
  float RowAt(const AttentionRows& rows, uint64_t b, uint64_t h, uint64_t r, uint64_t c,
              const KernelArguments& arguments) const {
    const uint64_t past = PastOf(b, arguments);
    if (r < past) {
      return problem_.lengths.exists ? At(arguments.outputs, rows.present, b, h, r, c)
                                     : At(arguments.inputs, rows.past, b, h, r, c);
    }
    float value = At(arguments.inputs, rows.fresh, b, h, r - past, c);
    if (rows.bias.exists) value += At(arguments.inputs, rows.bias, b, h, 0, c);
    return value;
  }

  void WritePresent(const AttentionRows& rows, const KernelArguments& arguments) const {
    if (!rows.present.exists) return;
    for (uint64_t b = 0; b < problem_.batch; ++b) {
      const uint64_t past = PastOf(b, arguments);
      for (uint64_t h = 0; h < problem_.KeyHeads(); ++h) {
        // With lengths the past is already there.
        for (uint64_t r = problem_.lengths.exists ? past : 0; r < past + problem_.fresh; ++r) {
          for (uint64_t c = 0; c < rows.columns; ++c) {
            Put(arguments.outputs, rows.present, b, h, r, c, RowAt(rows, b, h, r, c, arguments));
          }
        }
      }
    }
  }

  bool Shows(uint64_t b, uint64_t h, uint64_t q, uint64_t k, const KernelArguments& arguments) const {
    const AttentionMask& mask = problem_.mask;
    if (!mask.view.exists) return true;
    const auto* const numbers = reinterpret_cast<const int32_t*>(arguments.inputs[mask.view.binding].data);
    if (mask.type == MultiheadAttentionMaskType::kBoolean) return numbers[mask.view.At(b, h, q, k)] != 0;
    return WindowOf(mask, numbers, b, problem_.batch).Shows(static_cast<int64_t>(q), static_cast<int64_t>(k));
  }

  double Logit(uint64_t b, uint64_t h, uint64_t q, uint64_t k, const KernelArguments& arguments) const {
    double sum = 0;
    for (uint64_t c = 0; c < problem_.key.columns; ++c) {
      float query = At(arguments.inputs, problem_.query, b, h, q, c);
      if (problem_.query_bias.exists) query += At(arguments.inputs, problem_.query_bias, b, h, 0, c);
      sum += double{query} * RowAt(problem_.key, b, h / problem_.group, k, c, arguments);
    }
    sum *= double{problem_.scale};
    if (problem_.position_bias.exists) sum += At(arguments.inputs, problem_.position_bias, b, h, q, k);
    return sum;
  }

  void RunQuery(uint64_t b, uint64_t h, uint64_t q, const KernelArguments& arguments) const {
    const uint64_t keys = problem_.lengths.exists ? PastOf(b, arguments) + q + 1 : problem_.keys;
    auto* const weights = reinterpret_cast<double*>(arguments.temporary.data);
    bool any = false;
    for (uint64_t k = 0; k < keys; ++k) any = any || Shows(b, h, q, k, arguments);
    double max = -std::numeric_limits<double>::infinity();
    for (uint64_t k = 0; k < keys; ++k) {
      weights[k] = Logit(b, h, q, k, arguments);
      if (any && !Shows(b, h, q, k, arguments)) weights[k] += problem_.mask.value;
      max = std::fmax(max, weights[k]);
    }
    double total = 0;
    for (uint64_t k = 0; k < keys; ++k) total += weights[k] = std::exp(weights[k] - max);
    for (uint64_t c = 0; c < problem_.value.columns; ++c) {
      double sum = 0;
      for (uint64_t k = 0; k < keys; ++k) {
        sum += weights[k] / total * RowAt(problem_.value, b, h / problem_.group, k, c, arguments);
      }
      Put(arguments.outputs, problem_.output, b, h, q, c, static_cast<float>(sum));
    }
  }

  AttentionProblem problem_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateAttentionReference(const AttentionProblem& problem, const LowerContext&,
                                                       std::string*) {
  return std::make_unique<AttentionReference>(problem);
}

}  // namespace anydml
