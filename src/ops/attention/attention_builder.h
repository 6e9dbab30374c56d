// Descriptions of attention with their contents, for tests.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/half.h"
#include "ops/gemm/gemm_cases.h"
#include "support/operator_runner.h"

namespace anydml::testing {

using Numbers = std::vector<float>;
using Integers = std::vector<int32_t>;

enum MaskType : uint32_t { kNone, kLength, kEndStart, kLengthStartEnd, kBoolean };

// A description and its contents, tensor by tensor.
class Attention {
 public:
  explicit Attention(uint32_t heads) : Attention("MULTIHEAD_ATTENTION") { Set("HeadCount", heads); }
  Attention(uint32_t heads, uint32_t key_heads) : Attention("MULTIHEAD_ATTENTION1") {
    Set("QueryHeadCount", heads);
    Set("KeyValueHeadCount", key_heads);
  }

  // Later numbers are given as FLOAT16, and outputs are FLOAT16.
  Attention& OfHalves() {
    type_ = DataType::kFloat16;
    return *this;
  }

  Attention& Set(const char* field, FieldValue value) {
    SetField(&desc_, field, std::move(value));
    return *this;
  }
  Attention& Give(const char* field, const std::vector<uint32_t>& sizes, const Numbers& numbers) {
    if (type_ == DataType::kFloat32) return Give(field, Packed(type_, sizes), numbers);
    std::vector<Half> halves(numbers.size());
    std::transform(numbers.begin(), numbers.end(), halves.begin(), ToHalf);
    return Give(field, Packed(type_, sizes), halves);
  }
  Attention& Give(const char* field, const std::vector<uint32_t>& sizes, const Integers& numbers) {
    return Give(field, Packed(DataType::kInt32, sizes), numbers);
  }
  // The same number everywhere: for cases that are refused, or whose values do not matter.
  Attention& Shape(const char* field, const std::vector<uint32_t>& sizes) {
    const TensorDesc tensor = Packed(DataType::kFloat32, sizes);
    return Give(field, tensor, Numbers(ElementCount(tensor)));
  }
  Attention& Out(const char* field, const std::vector<uint32_t>& sizes) {
    return Set(field, Packed(type_, sizes));
  }
  Attention& Mask(MaskType type, const std::vector<uint32_t>& sizes, const Integers& numbers) {
    return Give("MaskTensor", sizes, numbers).Set("MaskType", static_cast<uint32_t>(type));
  }

  const OperatorDesc& desc() const { return desc_; }
  const std::vector<Bytes>& inputs() const { return inputs_; }

  std::string Refusal() const { return ImplementationOf(desc_).check(desc_, kLatestFeatureLevel).message(); }

  void ExpectAgreement() const { ExpectAllAgree(desc_, inputs_); }

  // Output `number` of the reference, as FLOAT32; all other implementations must agree with it.
  Numbers Run(size_t number = 0) const {
    const RunResult result = ExpectAllAgree(desc_, inputs_);
    return Gathered<float>(*desc_.outputs()[number], result.outputs.at(number));
  }

 private:
  explicit Attention(const char* name) : desc_(MakeDesc(name, {})) {
    inputs_.resize(desc_.inputs().size());
    Set("Scale", 1.0f).Set("MaskFilterValue", -10000.0f).Set("MaskType", uint32_t{kNone});
  }

  template <typename T>
  Attention& Give(const char* field, const TensorDesc& tensor, const std::vector<T>& elements) {
    inputs_.at(static_cast<size_t>(FindField(*desc_.schema, field))) = Scattered(tensor, elements);
    return Set(field, tensor);
  }

  OperatorDesc desc_;
  DataType type_ = DataType::kFloat32;
  std::vector<Bytes> inputs_;
};

}  // namespace anydml::testing
