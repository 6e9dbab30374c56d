// Numbers for the cases of normalisations: with arbitrary ones sums would tell little, because cancellation
// and overflow depend on the order.
#pragma once

#include <bit>
#include <cstring>
#include <limits>
#include <memory>

#include "base/half.h"
#include "support/case_maker.h"

namespace anydml::testing {

inline constexpr DataType kFloatTypes[] = {DataType::kFloat32, DataType::kFloat16};

inline void PutNumber(const TensorDesc& tensor, size_t element, float number, Bytes* bytes) {
  const bool is_half = tensor.type == DataType::kFloat16;
  const uint32_t bits = is_half ? ToHalf(number).bits : std::bit_cast<uint32_t>(number);
  const size_t width = is_half ? 2 : 4;
  std::memcpy(bytes->data() + element * width, &bits, width);
}

// Elements are draw(random bits).
template <typename Draw>
Bytes DrawnContent(const TensorDesc& tensor, CaseMaker& make, Draw&& draw) {
  Bytes bytes(tensor.total_bytes);
  std::mt19937_64 random(make.source().Word());
  const size_t elements = bytes.size() / (BitSize(tensor.type) / 8);
  for (size_t i = 0; i < elements; ++i) PutNumber(tensor, i, draw(random()), &bytes);
  return bytes;
}

// Integers up to 20, whose sums are exact, or other numbers up to 10.
inline Bytes ModestContent(const TensorDesc& tensor, bool whole, CaseMaker& make) {
  return DrawnContent(tensor, make, [whole](uint64_t bits) {
    return whole ? static_cast<float>(static_cast<int32_t>(bits % 41) - 20)
                 : static_cast<float>(static_cast<int64_t>(bits % 200001) - 100000) * 1e-4f;
  });
}

// Variances: numbers from 1 to 9.
inline Bytes PositiveContent(const TensorDesc& tensor, CaseMaker& make) {
  return DrawnContent(tensor, make,
                      [](uint64_t bits) { return 1 + static_cast<float>(bits % 8001) * 1e-3f; });
}

// Sometimes makes one element NaN or infinite.
inline void Spoil(const TensorDesc& tensor, Bytes* bytes, CaseMaker& make) {
  if (!make.source().OneIn(8)) return;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kSpoilers[] = {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()};
  const size_t element = make.source().Word() % (bytes->size() / (BitSize(tensor.type) / 8));
  PutNumber(tensor, element, make.source().Any(kSpoilers), bytes);
}

// Dividing by the root of a small variance magnifies errors, unless sums are exact.
inline float ModestEpsilon(bool whole, CaseMaker& make) {
  constexpr float kAny[] = {0, 1e-5f, 1e-3f, 0.5f}, kLarge[] = {0.1f, 0.5f};
  return whole ? make.source().Any(kAny) : make.source().Any(kLarge);
}

// Any that may be fused, or none. Parameters are small, and no result should be where an activation jumps.
inline FieldValue ModestActivation(const OperatorSchema& host, CaseMaker& make) {
  if (make.source().OneIn(2)) return {};
  std::vector<uint32_t> allowed;
  for (const FusionRule& rule : AllFusionRules()) {
    if (rule.host == 0 || rule.host == host.type) allowed.push_back(rule.activation);
  }
  auto fused = std::make_shared<OperatorDesc>();
  fused->schema = FindOperator(make.source().Any(allowed));
  constexpr float kParameters[] = {0.37721f, 1.61803f, 0.91111f};
  for (const FieldSchema& field : fused->schema->fields) {
    fused->fields.push_back(field.type == FieldType::kFloat ? FieldValue(make.source().Any(kParameters))
                                                            : FieldValue());
  }
  return std::shared_ptr<const OperatorDesc>(std::move(fused));
}

// The sizes of a parameter: each is the tensor's or 1.
inline std::vector<uint32_t> SomeOnes(std::vector<uint32_t> sizes, CaseMaker& make) {
  for (uint32_t& size : sizes) size = make.source().OneIn(2) ? 1 : size;
  return sizes;
}

}  // namespace anydml::testing
