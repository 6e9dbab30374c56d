// Tensors in ONNX's terms: any rank, 64-bit sizes, element types that DirectML lacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/data_type.h"
#include "base/status.h"

namespace anydml::onnx {

// TensorProto.DataType.
enum class ElementType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUInt8 = 2,
  kInt8 = 3,
  kUInt16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUInt32 = 12,
  kUInt64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBFloat16 = 16,
  kUInt4 = 21,
  kInt4 = 22,
};

// "float16"; "type 99" for types unknown to this reader.
std::string Name(ElementType type);

// kUnknown if DirectML has no such type. BOOL is UINT8 with only 0 and 1.
DataType DmlType(ElementType type);

// Whether ONNX has it, for all that is known here.
bool IsKnown(ElementType type);

// 0 for strings and types unknown to the reader.
uint32_t BitsOf(ElementType type);

constexpr bool IsFloat(ElementType type) {
  return type == ElementType::kFloat || type == ElementType::kFloat16 || type == ElementType::kDouble ||
         type == ElementType::kBFloat16;
}

using Shape = std::vector<int64_t>;

// The product; empty if it is more than 2^62, or if a size is negative or more than DirectML's limit (2^32 -
// 1).
std::optional<int64_t> ElementCount(std::span<const int64_t> shape);

// The size of the packed elements; empty if ElementCount is, or if the type has no size.
std::optional<uint64_t> PackedBytes(ElementType type, std::span<const int64_t> shape);

std::string ShapeToString(std::span<const int64_t> shape);  // "2x3", "scalar"

// Packed elements with their owner: a mapped file, or a vector of bytes.
struct Tensor {
  ElementType type = ElementType::kUndefined;
  Shape shape;
  std::span<const std::byte> data;
  std::shared_ptr<const void> owner;
  bool mapped = false;  // in a file, so it can be read again

  int64_t count() const { return ElementCount(shape).value_or(0); }
};

// With zeroed elements, and where to write them.
Tensor MakeTensor(ElementType type, Shape shape, std::byte** data);
Tensor MakeTensor(ElementType type, Shape shape, std::vector<std::byte> bytes);
Tensor Int64Tensor(Shape shape, std::span<const int64_t> values);

// The elements of integer types and booleans as integers (UINT64 as its bits); empty for others.
std::vector<int64_t> ToInts(const Tensor& tensor);
// As numbers; empty for types that are none.
std::vector<double> ToDoubles(const Tensor& tensor);

// The reverse: integers wrap, floats are rounded.
Tensor FromInts(ElementType type, Shape shape, std::span<const int64_t> values);
Tensor FromDoubles(ElementType type, Shape shape, std::span<const double> values);

}  // namespace anydml::onnx
