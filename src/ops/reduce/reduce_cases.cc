#include "ops/reduce/reduce_cases.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/half.h"
#include "ops/element/element_cases.h"
#include "ops/reduce/problem.h"
#include "support/cases.h"

namespace anydml::testing {
namespace {

constexpr OperatorType kOperators[] = {OperatorType::kReduce, OperatorType::kArgmin, OperatorType::kArgmax};

DataType AnyOf(ByteSource& source, std::initializer_list<DataType> types) {
  return types.begin()[source.Between(0, static_cast<uint32_t>(types.size()) - 1)];
}

DataType DrawType(ReduceFunction function, ByteSource& source) {
  using enum DataType;
  if (source.OneIn(2)) return source.OneIn(2) ? kFloat16 : kFloat32;
  switch (function) {
    case ReduceFunction::kArgmax:
    case ReduceFunction::kArgmin:
    case ReduceFunction::kMax:
    case ReduceFunction::kMin:
      return AnyOf(source, {kInt8, kUInt8, kInt16, kUInt16, kInt32, kUInt32, kInt64, kUInt64});
    case ReduceFunction::kL1:
    case ReduceFunction::kSumSquare:
    case ReduceFunction::kMultiply:
    case ReduceFunction::kSum:
      return AnyOf(source, {kInt32, kUInt32, kInt64, kUInt64});
    default:
      return kFloat32;
  }
}

bool IsSum(ReduceFunction function, DataType type) {
  const Accumulation kind = AccumulationOf(function);
  return (type == DataType::kFloat32 || type == DataType::kFloat16) && !IsArg(function) &&
         kind != Accumulation::kMax && kind != Accumulation::kMin;
}

void PutNumber(DataType type, Bytes& bytes, uint64_t at, float value) {
  if (type == DataType::kFloat16) {
    const Half half = ToHalf(value);
    std::memcpy(bytes.data() + at * sizeof(half), &half, sizeof(half));
  } else {
    std::memcpy(bytes.data() + at * sizeof(value), &value, sizeof(value));
  }
}

Case MakeReduce(OperatorType type, CaseMaker& make) {
  ByteSource& source = make.source();
  const bool is_reduce = type == OperatorType::kReduce;
  ReduceFunction function = type == OperatorType::kArgmin ? ReduceFunction::kArgmin : ReduceFunction::kArgmax;
  if (is_reduce) function = static_cast<ReduceFunction>(source.Between(0, 11));
  const std::vector<uint32_t> sizes = make.Sizes(kMaxDimensions);
  const std::vector<uint32_t> axes = DrawAxes(sizes, source);
  std::vector<uint32_t> rest = sizes;
  for (const uint32_t axis : axes) rest[axis] = 1;
  const DataType element = DrawType(function, source);
  using enum DataType;
  const DataType result = IsArg(function) ? AnyOf(source, {kInt32, kUInt32, kInt64, kUInt64}) : element;
  const TensorDesc input = make.Input(element, sizes), output = make.Output(result, rest);
  Case problem;
  const auto count = static_cast<uint32_t>(axes.size());
  const uint32_t variant = is_reduce ? static_cast<uint32_t>(function) : source.Between(0, 1);
  problem.desc = MakeDesc(FindOperator(type)->name, {{is_reduce ? "Function" : "AxisDirection", variant},
                                                     {"InputTensor", input},
                                                     {"OutputTensor", output},
                                                     {"AxisCount", count},
                                                     {"Axes", axes}});
  problem.inputs = {IsSum(function, element) ? NumbersToSum(input, make) : ElementContent(input, make)};
  return problem;
}

}  // namespace

std::vector<uint32_t> DrawAxes(const std::vector<uint32_t>& sizes, ByteSource& source) {
  std::vector<uint32_t> axes;
  for (uint32_t d = 0; d < sizes.size(); ++d) {
    if (source.OneIn(2)) axes.push_back(d);
  }
  if (source.OneIn(2)) std::reverse(axes.begin(), axes.end());
  return axes;
}

Bytes NumbersToSum(const TensorDesc& tensor, CaseMaker& make) {
  ByteSource& source = make.source();
  const uint64_t width = BitSize(tensor.type) / 8;
  Bytes bytes(tensor.total_bytes);
  const bool whole = source.OneIn(2);
  std::minstd_rand random(source.Word() | 1);
  for (uint64_t i = 0; i < bytes.size() / width; ++i) {
    const auto number = static_cast<int>(random() >> 8 & 0xFFFF);
    PutNumber(tensor.type, bytes, i,
              whole ? static_cast<float>(number % 9 - 4) : 0.75f + static_cast<float>(number) * 0x1p-17f);
  }
  constexpr float kSpecials[] = {INFINITY, -INFINITY, NAN};
  if (source.OneIn(4)) {
    for (uint32_t i = source.Between(1, 4); i > 0; --i) {
      const uint64_t at = source.Word() % (bytes.size() / width);
      PutNumber(tensor.type, bytes, at, source.Any(kSpecials));
    }
  }
  return bytes;
}

CaseFamily family::reduce::Cases() { return {"reduce", kOperators, MakeReduce}; }

}  // namespace anydml::testing
