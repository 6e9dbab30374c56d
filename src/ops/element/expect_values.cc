#include "ops/element/expect_values.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>

namespace anydml::testing {
namespace {

template <typename T>
Values Make(DataType type, const std::vector<T>& elements) {
  const TensorDesc tensor = Packed(type, {static_cast<uint32_t>(elements.size())});
  return {tensor, Scattered(tensor, elements)};
}

uint64_t ElementAt(const TensorDesc& tensor, const Bytes& bytes, uint64_t offset) {
  const uint32_t bits = BitSize(tensor.type);
  if (bits == 4) return bytes[offset / 2] >> (offset % 2 * 4) & 15u;
  uint64_t element = 0;
  std::memcpy(&element, bytes.data() + offset * bits / 8, bits / 8);
  return element;
}

void PutElement(const TensorDesc& tensor, uint64_t offset, uint64_t element, Bytes* bytes) {
  const uint32_t bits = BitSize(tensor.type);
  if (bits == 4) {
    uint8_t& byte = (*bytes)[offset / 2];
    byte = static_cast<uint8_t>(offset % 2 == 0 ? (byte & 0xF0u) | element : (byte & 0x0Fu) | element << 4);
  } else {
    std::memcpy(bytes->data() + offset * bits / 8, &element, bits / 8);
  }
}

// The first element is in the lower half of a byte.
Values Make4Bits(DataType type, const std::vector<uint8_t>& elements) {
  const TensorDesc tensor = Packed(type, {static_cast<uint32_t>(elements.size())});
  Bytes bytes(tensor.total_bytes, kGap);
  for (size_t i = 0; i < elements.size(); ++i) PutElement(tensor, i, elements[i] & 15u, &bytes);
  return {tensor, bytes};
}

std::string Text(DataType type, uint64_t bits) {
  const std::string hex = StrCat("0x", std::hex, bits);
  switch (type) {
    case DataType::kFloat32:
      return StrCat(std::bit_cast<float>(static_cast<uint32_t>(bits)), " (", hex, ")");
    case DataType::kFloat16:
      return StrCat(ToFloat(Half{static_cast<uint16_t>(bits)}), " (", hex, ")");
    case DataType::kFloat64:
      return StrCat(std::bit_cast<double>(bits), " (", hex, ")");
    default:
      return hex;
  }
}

// The distance in units between FLOAT32 or FLOAT16 neighbours. Other signs and NaNs are infinitely far.
bool Within(DataType type, uint64_t a, uint64_t b, uint32_t ulps) {
  const uint64_t sign = uint64_t{1} << (BitSize(type) - 1);
  const uint64_t infinity = type == DataType::kFloat32 ? 0x7F800000u : 0x7C00u;
  if (a == b) return true;
  if (ulps == 0 || (a & sign) != (b & sign)) return false;
  if ((a & ~sign) > infinity || (b & ~sign) > infinity) return false;
  return (a > b ? a - b : b - a) <= ulps;
}

// Compares numbers within `ulps`, and the bytes between them exactly.
std::string Difference(const Values& expected, const Bytes& given, uint32_t ulps) {
  const TensorDesc& tensor = expected.tensor;
  Bytes rest = given;
  const auto offsets = RowMajorOffsets(tensor);
  for (size_t i = 0; i < offsets.size(); ++i) {
    const uint64_t wanted = ElementAt(tensor, expected.bytes, offsets[i]);
    const uint64_t element = ElementAt(tensor, given, offsets[i]);
    if (!Within(tensor.type, element, wanted, ulps)) {
      return StrCat("element ", i, " is ", Text(tensor.type, element), ", not ", Text(tensor.type, wanted));
    }
    PutElement(tensor, offsets[i], wanted, &rest);
  }
  return rest == expected.bytes ? "" : "bytes between elements were written to";
}

FieldValue NeutralAttribute(const FieldSchema& field) {
  if (field.optional) return {};
  switch (field.type) {
    case FieldType::kFloat:
      return 0.0f;
    case FieldType::kScalarUnion:
      return Scalar{};
    default:
      return 0u;
  }
}

// The operators for which some test has expected values.
std::set<uint32_t>& Expected() {
  static std::set<uint32_t> types;
  return types;
}

}  // namespace

Values F32(std::initializer_list<float> elements) {
  return Make(DataType::kFloat32, std::vector<float>(elements));
}
Values F16(std::initializer_list<float> elements) {
  std::vector<Half> halves;
  for (const float element : elements) {
    halves.push_back(ToHalf(element));
    EXPECT_TRUE(std::isnan(element) || ToFloat(halves.back()) == element) << element << " is no half";
  }
  return Make(DataType::kFloat16, halves);
}
Values F64(std::initializer_list<double> elements) {
  return Make(DataType::kFloat64, std::vector<double>(elements));
}
Values I64(std::initializer_list<int64_t> elements) {
  return Make(DataType::kInt64, std::vector<int64_t>(elements));
}
Values I32(std::initializer_list<int32_t> elements) {
  return Make(DataType::kInt32, std::vector<int32_t>(elements));
}
Values I16(std::initializer_list<int16_t> elements) {
  return Make(DataType::kInt16, std::vector<int16_t>(elements));
}
Values I8(std::initializer_list<int8_t> elements) {
  return Make(DataType::kInt8, std::vector<int8_t>(elements));
}
Values U64(std::initializer_list<uint64_t> elements) {
  return Make(DataType::kUInt64, std::vector<uint64_t>(elements));
}
Values U32(std::initializer_list<uint32_t> elements) {
  return Make(DataType::kUInt32, std::vector<uint32_t>(elements));
}
Values U16(std::initializer_list<uint16_t> elements) {
  return Make(DataType::kUInt16, std::vector<uint16_t>(elements));
}
Values U8(std::initializer_list<uint8_t> elements) {
  return Make(DataType::kUInt8, std::vector<uint8_t>(elements));
}
Values I4(std::initializer_list<int8_t> elements) {
  return Make4Bits(DataType::kInt4, std::vector<uint8_t>(elements.begin(), elements.end()));
}
Values U4(std::initializer_list<uint8_t> elements) { return Make4Bits(DataType::kUInt4, elements); }
Values F32Bits(std::initializer_list<uint32_t> elements) {
  return Make(DataType::kFloat32, std::vector<uint32_t>(elements));
}
Values F16Bits(std::initializer_list<uint16_t> elements) {
  return Make(DataType::kFloat16, std::vector<uint16_t>(elements));
}
Values F64Bits(std::initializer_list<uint64_t> elements) {
  return Make(DataType::kFloat64, std::vector<uint64_t>(elements));
}

Values Shaped(const Values& values, const std::vector<uint32_t>& sizes,
              const std::vector<uint32_t>& strides) {
  const DataType type = values.tensor.type;
  const TensorDesc tensor = strides.empty() ? Packed(type, sizes) : Strided(type, sizes, strides);
  Bytes bytes(tensor.total_bytes, kGap);
  const auto offsets = RowMajorOffsets(tensor);
  for (size_t i = 0; i < offsets.size(); ++i) {
    PutElement(tensor, offsets[i], ElementAt(values.tensor, values.bytes, i), &bytes);
  }
  return {tensor, bytes};
}

FieldValue Fused(const char* activation, Attributes attributes) {
  return std::make_shared<const OperatorDesc>(MakeDesc(activation, attributes));
}

OperatorDesc Describe(const char* operator_name, const std::vector<Values>& inputs, Attributes attributes,
                      const std::vector<Values>& outputs) {
  OperatorDesc desc = MakeDesc(operator_name, {});
  auto input = inputs.begin();
  auto output = outputs.begin();
  for (size_t i = 0; i < desc.fields.size(); ++i) {
    const FieldSchema& field = desc.schema->fields[i];
    if (field.type == FieldType::kTensorArray) {
      std::vector<TensorDesc> tensors;
      while (input != inputs.end()) tensors.push_back((input++)->tensor);
      const auto count = static_cast<uint32_t>(tensors.size());
      desc.fields[static_cast<size_t>(field.count_field)] = count;
      if (const int type = FindField(*desc.schema, "QuantizationType"); type >= 0) desc.fields[type] = count;
      desc.fields[i] = tensors;
    } else if (field.type == FieldType::kTensor) {
      const bool is_input = field.kind == FieldKind::kInput;
      auto& next = is_input ? input : output;
      if (next == (is_input ? inputs : outputs).end()) continue;
      if (next->tensor.rank > 0) desc.fields[i] = next->tensor;
      ++next;
    } else {
      desc.fields[i] = NeutralAttribute(field);
    }
  }
  for (const auto& [name, value] : attributes) desc.fields.at(FindField(*desc.schema, name)) = value;
  return desc;
}

const std::set<uint32_t>& ExpectedOperators() { return Expected(); }

void Expect(const char* operator_name, const std::vector<Values>& inputs, Attributes attributes,
            const std::vector<Values>& outputs, uint32_t ulps, const char* file, int line) {
  const ::testing::ScopedTrace trace(file, line, operator_name);
  const OperatorDesc desc = Describe(operator_name, inputs, attributes, outputs);
  Expected().insert(desc.schema->type);
  std::vector<Bytes> bytes(desc.inputs().size());  // trailing optional ones may be omitted
  for (size_t i = 0; i < inputs.size(); ++i) bytes[i] = inputs[i].bytes;
  for (const char* name : RunnableImplementations(desc)) {
    const RunResult result = RunOperator(desc, bytes, {.implementation = name});
    if (result.implementation.empty()) continue;  // the implementation does not take the problem
    const bool is_reference = std::string(name) == "cpu.reference";
    ASSERT_EQ(result.outputs.size(), outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const bool is_half = outputs[i].tensor.type == DataType::kFloat16;
      const uint32_t allowed = ulps > 0 && (is_reference || is_half) ? 1 : ulps;
      EXPECT_EQ(Difference(outputs[i], result.outputs[i], allowed), "") << name << ", output " << i;
    }
  }
}

}  // namespace anydml::testing
