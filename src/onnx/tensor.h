// Tensors as ONNX has them: any rank, sizes of 64 bits, element types that DirectML does not know.
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

// "float16"; "type 99" for what this reader does not know.
std::string Name(ElementType type);

// kUnknown where DirectML has no such type. BOOL is UINT8, of which only 0 and 1 occur.
DataType DmlType(ElementType type);

// Whether ONNX has it, for all that is known here.
bool IsKnown(ElementType type);

// 0 for strings and types that the reader does not know.
uint32_t BitsOf(ElementType type);

constexpr bool IsFloat(ElementType type) {
  return type == ElementType::kFloat || type == ElementType::kFloat16 || type == ElementType::kDouble ||
         type == ElementType::kBFloat16;
}

using Shape = std::vector<int64_t>;

// The product; nothing when it is more than 2^62, or a size negative or more than DirectML counts (2^32 - 1).
std::optional<int64_t> ElementCount(std::span<const int64_t> shape);

// Of packed elements; nothing when ElementCount has none or the type no size.
std::optional<uint64_t> PackedBytes(ElementType type, std::span<const int64_t> shape);

std::string ShapeToString(std::span<const int64_t> shape);  // "2x3", "scalar"

// Packed elements that somebody keeps: a mapped file, or a vector of bytes.
struct Tensor {
  ElementType type = ElementType::kUndefined;
  Shape shape;
  std::span<const std::byte> data;
  std::shared_ptr<const void> owner;
  bool mapped = false;  // in a file, which can be read again

  int64_t count() const { return ElementCount(shape).value_or(0); }
};

// With zeroed elements, and where to write them.
Tensor MakeTensor(ElementType type, Shape shape, std::byte** data);
Tensor MakeTensor(ElementType type, Shape shape, std::vector<std::byte> bytes);
Tensor Int64Tensor(Shape shape, std::span<const int64_t> values);

// The elements as integers: of integer types and booleans (UINT64 by its bits); empty for others.
std::vector<int64_t> ToInts(const Tensor& tensor);
// As numbers; empty for types that are none.
std::vector<double> ToDoubles(const Tensor& tensor);

// The other way round: integers wrap, floats are rounded.
Tensor FromInts(ElementType type, Shape shape, std::span<const int64_t> values);
Tensor FromDoubles(ElementType type, Shape shape, std::span<const double> values);

}  // namespace anydml::onnx
