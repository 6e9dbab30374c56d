#include "onnx/file/tensor.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/half.h"

namespace anydml::onnx {
namespace {

struct TypeRow {
  ElementType type;
  const char* name;
  uint32_t bits;
  DataType dml;
};

constexpr TypeRow kTypes[] = {
    {ElementType::kFloat, "float", 32, DataType::kFloat32},
    {ElementType::kUInt8, "uint8", 8, DataType::kUInt8},
    {ElementType::kInt8, "int8", 8, DataType::kInt8},
    {ElementType::kUInt16, "uint16", 16, DataType::kUInt16},
    {ElementType::kInt16, "int16", 16, DataType::kInt16},
    {ElementType::kInt32, "int32", 32, DataType::kInt32},
    {ElementType::kInt64, "int64", 64, DataType::kInt64},
    {ElementType::kString, "string", 0, DataType::kUnknown},
    {ElementType::kBool, "bool", 8, DataType::kUInt8},
    {ElementType::kFloat16, "float16", 16, DataType::kFloat16},
    {ElementType::kDouble, "double", 64, DataType::kFloat64},
    {ElementType::kUInt32, "uint32", 32, DataType::kUInt32},
    {ElementType::kUInt64, "uint64", 64, DataType::kUInt64},
    {ElementType::kComplex64, "complex64", 64, DataType::kUnknown},
    {ElementType::kComplex128, "complex128", 128, DataType::kUnknown},
    {ElementType::kBFloat16, "bfloat16", 16, DataType::kUnknown},
    {ElementType::kUInt4, "uint4", 4, DataType::kUInt4},
    {ElementType::kInt4, "int4", 4, DataType::kInt4},
    // Types with a name only, for error messages.
    {static_cast<ElementType>(17), "float8e4m3fn", 0, DataType::kUnknown},
    {static_cast<ElementType>(18), "float8e4m3fnuz", 0, DataType::kUnknown},
    {static_cast<ElementType>(19), "float8e5m2", 0, DataType::kUnknown},
    {static_cast<ElementType>(20), "float8e5m2fnuz", 0, DataType::kUnknown},
    {static_cast<ElementType>(23), "float4e2m1", 0, DataType::kUnknown},
    {static_cast<ElementType>(24), "float8e8m0", 0, DataType::kUnknown},
    {static_cast<ElementType>(25), "uint2", 0, DataType::kUnknown},
    {static_cast<ElementType>(26), "int2", 0, DataType::kUnknown},
};

const TypeRow* Find(ElementType type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

template <typename Out, typename Stored, typename Convert>
std::vector<Out> Load(const Tensor& tensor, const Convert& convert) {
  const size_t count = tensor.data.size() / sizeof(Stored);
  std::vector<Out> out(count);
  for (size_t i = 0; i < count; ++i) {
    Stored value;
    std::memcpy(&value, tensor.data.data() + i * sizeof(Stored), sizeof(Stored));
    out[i] = convert(value);
  }
  return out;
}

template <typename Stored, typename In, typename Convert>
Tensor Store(ElementType type, Shape shape, std::span<const In> values, const Convert& convert) {
  std::vector<std::byte> bytes(values.size() * sizeof(Stored));
  for (size_t i = 0; i < values.size(); ++i) {
    const Stored value = convert(values[i]);
    std::memcpy(bytes.data() + i * sizeof(Stored), &value, sizeof(Stored));
  }
  return MakeTensor(type, std::move(shape), std::move(bytes));
}

// Saturates, with NaN as 0, because converting a number out of range would be undefined.
int64_t Truncated(double value) {
  if (!(std::abs(value) < 9.2e18)) return std::isnan(value) ? 0 : value < 0 ? INT64_MIN : INT64_MAX;
  return static_cast<int64_t>(value);
}

// The upper half of a float, rounded to nearest even.
uint16_t ToBFloat16(double value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  if (std::isnan(value)) return 0x7FC0;
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

}  // namespace

std::string Name(ElementType type) {
  const TypeRow* const row = Find(type);
  return row != nullptr ? row->name : StrCat("type ", static_cast<int32_t>(type));
}

DataType DmlType(ElementType type) {
  const TypeRow* const row = Find(type);
  return row != nullptr ? row->dml : DataType::kUnknown;
}

bool IsKnown(ElementType type) { return Find(type) != nullptr; }

uint32_t BitsOf(ElementType type) {
  const TypeRow* const row = Find(type);
  return row != nullptr ? row->bits : 0;
}

std::optional<int64_t> ElementCount(std::span<const int64_t> shape) {
  constexpr int64_t kMost = int64_t{1} << 62;
  bool empty = false;
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (size < 0 || size > int64_t{UINT32_MAX}) return std::nullopt;
    if (size == 0) {
      empty = true;
    } else if (count > kMost / size) {
      return std::nullopt;
    } else {
      count *= size;
    }
  }
  return empty ? 0 : count;
}

std::optional<uint64_t> PackedBytes(ElementType type, std::span<const int64_t> shape) {
  const std::optional<int64_t> count = ElementCount(shape);
  const uint64_t bits = BitsOf(type);
  if (!count || bits == 0 || static_cast<uint64_t>(*count) > (uint64_t{1} << 62) / bits) return std::nullopt;
  return (static_cast<uint64_t>(*count) * bits + 7) / 8;
}

std::string ShapeToString(std::span<const int64_t> shape) {
  if (shape.empty()) return "scalar";
  std::string text;
  for (const int64_t size : shape) text += StrCat(text.empty() ? "" : "x", size);
  return text;
}

Tensor MakeTensor(ElementType type, Shape shape, std::vector<std::byte> bytes) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  Tensor tensor{type, std::move(shape), *owner, nullptr};
  tensor.owner = std::move(owner);
  return tensor;
}

Tensor MakeTensor(ElementType type, Shape shape, std::byte** data) {
  const uint64_t bytes = PackedBytes(type, shape).value_or(0);
  auto owner = std::make_shared<std::vector<std::byte>>(bytes);
  *data = owner->data();
  Tensor tensor{type, std::move(shape), *owner, nullptr};
  tensor.owner = std::move(owner);
  return tensor;
}

Tensor Int64Tensor(Shape shape, std::span<const int64_t> values) {
  return FromInts(ElementType::kInt64, std::move(shape), values);
}

// Two per byte, the first in the lower half.
static std::vector<int64_t> LoadFourBits(const Tensor& tensor) {
  const auto count = static_cast<size_t>(ElementCount(tensor.shape).value_or(0));
  if (tensor.data.size() < (count + 1) / 2) return {};
  std::vector<int64_t> values(count);
  for (size_t i = 0; i < count; ++i) {
    const int64_t bits = std::to_integer<int64_t>(tensor.data[i / 2] >> (i % 2 * 4)) & 15;
    values[i] = tensor.type == ElementType::kInt4 && bits > 7 ? bits - 16 : bits;
  }
  return values;
}

static Tensor StoreFourBits(ElementType type, Shape shape, std::span<const int64_t> values) {
  std::vector<std::byte> bytes((values.size() + 1) / 2);
  for (size_t i = 0; i < values.size(); ++i)
    bytes[i / 2] |= static_cast<std::byte>(values[i] & 15) << (i % 2 * 4);
  return MakeTensor(type, std::move(shape), std::move(bytes));
}

std::vector<int64_t> ToInts(const Tensor& tensor) {
  const auto convert = [](auto value) { return static_cast<int64_t>(value); };
  switch (tensor.type) {
    case ElementType::kInt64:
    case ElementType::kUInt64:
      return Load<int64_t, int64_t>(tensor, convert);
    case ElementType::kInt32:
      return Load<int64_t, int32_t>(tensor, convert);
    case ElementType::kUInt32:
      return Load<int64_t, uint32_t>(tensor, convert);
    case ElementType::kInt16:
      return Load<int64_t, int16_t>(tensor, convert);
    case ElementType::kUInt16:
      return Load<int64_t, uint16_t>(tensor, convert);
    case ElementType::kInt8:
      return Load<int64_t, int8_t>(tensor, convert);
    case ElementType::kUInt8:
    case ElementType::kBool:
      return Load<int64_t, uint8_t>(tensor, convert);
    case ElementType::kUInt4:
    case ElementType::kInt4:
      return LoadFourBits(tensor);
    default:
      return {};
  }
}

std::vector<double> ToDoubles(const Tensor& tensor) {
  const auto convert = [](auto value) { return static_cast<double>(value); };
  switch (tensor.type) {
    case ElementType::kFloat:
      return Load<double, float>(tensor, convert);
    case ElementType::kDouble:
      return Load<double, double>(tensor, convert);
    case ElementType::kFloat16:
      return Load<double, uint16_t>(tensor, [](uint16_t bits) { return double{ToFloat(Half{bits})}; });
    case ElementType::kBFloat16:
      return Load<double, uint16_t>(
          tensor, [](uint16_t bits) { return double{std::bit_cast<float>(uint32_t{bits} << 16)}; });
    case ElementType::kUInt64:
      return Load<double, uint64_t>(tensor, convert);
    default: {
      const std::vector<int64_t> ints = ToInts(tensor);
      return {ints.begin(), ints.end()};
    }
  }
}

Tensor FromInts(ElementType type, Shape shape, std::span<const int64_t> values) {
  const auto wrap = [](auto example) {
    return [](int64_t value) { return static_cast<decltype(example)>(static_cast<uint64_t>(value)); };
  };
  switch (type) {
    case ElementType::kInt64:
    case ElementType::kUInt64:
      return Store<uint64_t>(type, std::move(shape), values, wrap(uint64_t{}));
    case ElementType::kInt32:
    case ElementType::kUInt32:
      return Store<uint32_t>(type, std::move(shape), values, wrap(uint32_t{}));
    case ElementType::kInt16:
    case ElementType::kUInt16:
      return Store<uint16_t>(type, std::move(shape), values, wrap(uint16_t{}));
    case ElementType::kInt8:
    case ElementType::kUInt8:
      return Store<uint8_t>(type, std::move(shape), values, wrap(uint8_t{}));
    case ElementType::kBool:
      return Store<uint8_t>(type, std::move(shape), values,
                            [](int64_t value) { return uint8_t{value != 0}; });
    case ElementType::kUInt4:
    case ElementType::kInt4:
      return StoreFourBits(type, std::move(shape), values);
    default: {
      const std::vector<double> numbers(values.begin(), values.end());
      return FromDoubles(type, std::move(shape), numbers);
    }
  }
}

Tensor FromDoubles(ElementType type, Shape shape, std::span<const double> values) {
  switch (type) {
    case ElementType::kFloat:
      return Store<float>(type, std::move(shape), values,
                          [](double value) { return static_cast<float>(value); });
    case ElementType::kDouble:
      return Store<double>(type, std::move(shape), values, [](double value) { return value; });
    case ElementType::kFloat16:
      return Store<uint16_t>(type, std::move(shape), values,
                             [](double value) { return ToHalf(static_cast<float>(value)).bits; });
    case ElementType::kBool:
      return Store<uint8_t>(type, std::move(shape), values, [](double value) { return uint8_t{value != 0}; });
    case ElementType::kUndefined:
    case ElementType::kString:
    case ElementType::kComplex64:
    case ElementType::kComplex128:
      return {};
    case ElementType::kBFloat16:
      return Store<uint16_t>(type, std::move(shape), values, ToBFloat16);
    default: {
      if (BitsOf(type) == 0) return {};
      std::vector<int64_t> ints(values.size());
      for (size_t i = 0; i < values.size(); ++i) ints[i] = Truncated(values[i]);
      return FromInts(type, std::move(shape), ints);
    }
  }
}

}  // namespace anydml::onnx
