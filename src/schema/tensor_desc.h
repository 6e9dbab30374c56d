// A tensor as the operators see it: a copy of the caller's DML_BUFFER_TENSOR_DESC, always with strides.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/data_type.h"

namespace anydml {

inline constexpr uint32_t kMaxDimensions = 8;
using Dimensions = std::array<uint32_t, kMaxDimensions>;

struct TensorDesc {
  DataType type = DataType::kUnknown;
  bool owned_by_dml = false;
  uint32_t rank = 0;
  Dimensions sizes{};    // [0, rank)
  Dimensions strides{};  // in elements; packed row-major if the caller gave none
  uint64_t total_bytes = 0;
  uint32_t alignment = 0;
};

// Product of the sizes; saturates at UINT64_MAX instead of wrapping.
uint64_t ElementCount(const TensorDesc& tensor);

// Offset of the last element plus one, in elements; saturates.
uint64_t ElementSpan(const TensorDesc& tensor);

// The smallest legal TotalTensorSizeInBytes: the span in bytes, rounded up to 4; saturates.
uint64_t MinimumTotalBytes(const TensorDesc& tensor);

// Same type, sizes and (in dimensions longer than 1) strides: bound to the same region, the two address the
// same bytes.
bool SameLayout(const TensorDesc& a, const TensorDesc& b);

// The remaining budget of the search for overlap. Layouts that tile, pad or transpose cost nothing, however
// many there are; irregular strides cost up to some 16 steps per element.
struct OverlapBudget {
  uint32_t steps = 1u << 20;  // a tenth of a second
};

// Whether two different coordinates share an element (stride 0, colliding strides). kUnknown if the budget
// ends first.
enum class Overlap { kNone, kSome, kUnknown };
Overlap FindOverlap(const TensorDesc& tensor, OverlapBudget* budget);

void SetPackedStrides(TensorDesc* tensor);

// A packed tensor with the right total size.
TensorDesc PackedTensor(DataType type, const uint32_t* sizes, uint32_t rank);

// "{1,2,3}"
std::string SizesToString(const TensorDesc& tensor);

}  // namespace anydml
