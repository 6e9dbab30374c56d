#include "support/cases.h"

namespace anydml::testing {
namespace {

constexpr OperatorType kOperators[] = {OperatorType::kCumulativeSummation, OperatorType::kCumulativeProduct,
                                       OperatorType::kNonzeroCoordinates};
constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat16, DataType::kInt64,
                               DataType::kInt32,   DataType::kUInt64,  DataType::kUInt32};
constexpr DataType kSmallTypes[] = {DataType::kFloat32, DataType::kFloat16, DataType::kInt32,
                                    DataType::kInt16,   DataType::kInt8,    DataType::kUInt32,
                                    DataType::kUInt16,  DataType::kUInt8};

// Numbers whose sum or product is exact in any order, or at least has a small relative error.
Bytes FloatContent(const TensorDesc& tensor, bool multiplies, CaseMaker& make) {
  std::mt19937_64 random(make.source().Word());
  const bool exact = make.source().OneIn(2);
  Bytes bytes(tensor.total_bytes);
  const size_t width = BitSize(tensor.type) / 8;
  for (size_t at = 0; at + width <= bytes.size(); at += width) {
    const uint64_t word = random();
    float value = 0;
    if (exact && multiplies) {
      const uint64_t kind = word / 2 % 1024;
      value = (word % 2 == 0 ? 1.0f : -1.0f) * (kind == 3 ? 2.0f : kind == 5 ? 0.5f : 1.0f);
    } else if (exact) {
      value = static_cast<float>(word % 17) - 8;
    } else {
      const float fraction = static_cast<float>(word % 1024) / 1024;
      value = multiplies ? 0.999f + 0.002f * fraction : fraction;
    }
    if (tensor.type == DataType::kFloat16) {
      const uint16_t half = ToHalf(value).bits;
      std::memcpy(bytes.data() + at, &half, width);
    } else {
      std::memcpy(bytes.data() + at, &value, width);
    }
  }
  return bytes;
}

Case MakeNonzero(CaseMaker& make) {
  std::vector<uint32_t> sizes = make.Sizes(kMaxDimensions);
  if (sizes.size() < kMaxDimensions && make.source().OneIn(4)) sizes.insert(sizes.begin(), 1);
  const auto rank = static_cast<uint32_t>(sizes.size());
  uint32_t ones = 0, count = 1;
  while (ones < rank && sizes[ones] == 1) ++ones;
  for (const uint32_t size : sizes) count *= size;
  const TensorDesc input = make.Input(make.source().Any(kSmallTypes), sizes);
  std::vector<uint32_t> coordinates(std::max(rank, 2u), 1);
  coordinates[coordinates.size() - 2] = count;
  coordinates.back() = make.source().Between(std::max(rank - ones, 1u), rank);
  Case problem;
  problem.desc =
      MakeDesc("NONZERO_COORDINATES",
               {{"InputTensor", input},
                {"OutputCountTensor", make.Output(DataType::kUInt32, std::vector<uint32_t>(rank, 1))},
                {"OutputCoordinatesTensor", make.Output(DataType::kUInt32, coordinates)}});
  problem.inputs = {make.Content(input)};
  // Mostly zeros, or random.
  if (make.source().OneIn(2)) {
    std::mt19937_64 random(make.source().Word());
    for (uint8_t& byte : problem.inputs[0]) byte = random() % 8 == 0 ? byte : 0;
  }
  return problem;
}

Case MakeScan(OperatorType type, CaseMaker& make) {
  if (type == OperatorType::kNonzeroCoordinates) return MakeNonzero(make);
  const bool multiplies = type == OperatorType::kCumulativeProduct;
  const std::vector<uint32_t> sizes = make.Sizes(kMaxDimensions);
  const DataType data_type = make.source().Any(kTypes);
  Case problem;
  problem.in_place = make.source().OneIn(4);
  const TensorDesc output = make.Output(data_type, sizes);
  const TensorDesc input = problem.in_place ? output : make.Input(data_type, sizes);
  problem.desc =
      MakeDesc(FindOperator(type)->name,
               {{"InputTensor", input},
                {"OutputTensor", output},
                {"Axis", make.source().Between(0, static_cast<uint32_t>(sizes.size()) - 1)},
                {"AxisDirection", make.source().Between(0, 1)},
                {multiplies ? "HasExclusiveProduct" : "HasExclusiveSum", make.source().Between(0, 1)}});
  const bool is_float = data_type == DataType::kFloat32 || data_type == DataType::kFloat16;
  problem.inputs = {is_float ? FloatContent(input, multiplies, make) : make.Content(input)};
  return problem;
}

}  // namespace

CaseFamily family::scan::Cases() { return {"scan", kOperators, MakeScan}; }

}  // namespace anydml::testing
