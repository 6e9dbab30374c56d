#include <cmath>

#include "ops/gemm/gemm_cases.h"
#include "support/cases.h"

namespace anydml::testing {
namespace {

using Type = OperatorType;

constexpr Type kOperators[] = {Type::kMatrixMultiplyInteger, Type::kMatrixMultiplyIntegerToFloat,
                               Type::kQuantizedLinearMatrixMultiply, Type::kConvolutionInteger,
                               Type::kQuantizedLinearConvolution};
constexpr DataType kBytes[] = {DataType::kInt8, DataType::kUInt8};
constexpr DataType kIntegers[] = {DataType::kInt8,  DataType::kUInt8,  DataType::kInt16,
                                  DataType::kInt32, DataType::kUInt16, DataType::kUInt32};

// Sets tensors of a description and their contents, in binding order.
class TensorSetter {
 public:
  TensorSetter(Case* problem, CaseMaker& make) : problem_(*problem), make_(make) {
    for (const FieldSchema& field : problem_.desc.schema->fields) {
      if (field.kind == FieldKind::kInput) names_.emplace_back(field.name);
    }
    problem_.inputs.resize(names_.size());
  }

  void Set(const char* name, const TensorDesc& tensor, Bytes content) {
    SetField(&problem_.desc, name, tensor);
    const auto at = std::find(names_.begin(), names_.end(), name) - names_.begin();
    problem_.inputs[static_cast<size_t>(at)] = std::move(content);
  }

  void Integers(const char* name, DataType type, const std::vector<uint32_t>& sizes) {
    const TensorDesc tensor = make_.Input(type, sizes);
    Set(name, tensor, make_.Content(tensor));
  }

  // Positive, as scales are.
  void Scales(const char* name, DataType type, const std::vector<uint32_t>& sizes) {
    const TensorDesc tensor = make_.Input(type, sizes);
    Bytes bytes = NumbersThatAddUp(tensor, make_);
    if (type == DataType::kFloat32) {
      for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
        float x;
        std::memcpy(&x, &bytes[i], 4);
        x = std::abs(x) + 0.0625f;
        std::memcpy(&bytes[i], &x, 4);
      }
    }
    Set(name, tensor, std::move(bytes));
  }

 private:
  Case& problem_;
  CaseMaker& make_;
  std::vector<std::string> names_;
};

Case MakeMatrices(Type type, CaseMaker& make) {
  ByteSource& source = make.source();
  const uint32_t rank = source.Between(2, 4);
  const auto size = [&] { return source.OneIn(8) ? source.Between(1, 300) : source.Between(1, 20); };
  uint32_t m = size(), n = size(), k = size();
  while (uint64_t{m} * n * k > 100'000) (m > n ? m : n > k ? n : k) /= 2;
  std::vector<uint32_t> batch(rank - 2);
  for (uint32_t& b : batch) b = source.Between(1, 2);
  const auto sizes = [&](uint32_t rows, uint32_t columns) {
    std::vector<uint32_t> all = batch;
    all.push_back(rows);
    all.push_back(columns);
    return all;
  };
  const auto parameter = [&](uint32_t rows, uint32_t columns) {
    std::vector<uint32_t> all(rank, 1);
    if (source.OneIn(2)) all[rank - 2] = rows, all[rank - 1] = columns;
    return all;
  };
  const bool to_float = type == Type::kMatrixMultiplyIntegerToFloat;
  const DataType a = to_float ? source.Any(kIntegers) : source.Any(kBytes);
  const DataType b = to_float ? source.Any(kIntegers) : source.Any(kBytes);
  const DataType scale = to_float && source.OneIn(2) ? DataType::kFloat16 : DataType::kFloat32;
  const DataType quantized = source.Any(kBytes);
  Case problem;
  problem.desc = MakeDesc(FindOperator(type)->name, {});
  TensorSetter set(&problem, make);
  set.Integers("ATensor", a, sizes(m, k));
  set.Integers("BTensor", b, sizes(k, n));
  const std::vector<uint32_t> rows = parameter(m, 1), columns = parameter(1, n);
  if (source.OneIn(2)) set.Integers("AZeroPointTensor", a, rows);
  if (source.OneIn(2)) set.Integers("BZeroPointTensor", b, columns);
  if (type == Type::kMatrixMultiplyInteger) {
    SetField(&problem.desc, "OutputTensor", make.Output(DataType::kInt32, sizes(m, n)));
    return problem;
  }
  set.Scales("AScaleTensor", scale, rows);
  set.Scales("BScaleTensor", scale, columns);
  if (to_float) {
    if (source.OneIn(2)) set.Scales("BiasTensor", scale, sizes(m, n));
    SetField(&problem.desc, "OutputTensor", make.Output(scale, sizes(m, n)));
    return problem;
  }
  const std::vector<uint32_t> outputs = parameter(m, 1);
  set.Scales("OutputScaleTensor", scale, outputs);
  if (source.OneIn(2)) set.Integers("OutputZeroPointTensor", quantized, outputs);
  SetField(&problem.desc, "OutputTensor", make.Output(quantized, sizes(m, n)));
  return problem;
}

Case MakeConvolutions(Type type, CaseMaker& make) {
  ByteSource& source = make.source();
  const uint32_t spatial = source.Between(1, 2), groups = source.OneIn(2) ? 1 : source.Between(1, 3);
  const bool depthwise = source.OneIn(3);
  const uint32_t in = depthwise ? 1 : source.Between(1, 6), out = source.Between(1, 9),
                 batch = source.Between(1, 2);
  std::vector<uint32_t> input = {batch, in * groups}, filter = {out * groups, in},
                        output = {batch, out * groups};
  std::vector<uint32_t> strides, dilations, start, end, ones(spatial + 2, 1), channels = ones;
  channels[1] = out * groups;
  for (uint32_t d = 0; d < spatial; ++d) {
    filter.push_back(source.Between(1, 3));
    strides.push_back(source.Between(1, 2));
    dilations.push_back(source.Between(1, 2));
    start.push_back(source.Between(0, 2));
    end.push_back(source.Between(0, 2));
    const uint32_t reach = (filter[d + 2] - 1) * dilations[d] + 1;
    input.push_back(source.Between(reach, reach + 9));
    output.push_back((input[d + 2] + start[d] + end[d] - reach) / strides[d] + 1);
  }
  const DataType x = source.Any(kBytes), w = source.Any(kBytes), quantized = source.Any(kBytes);
  Case problem;
  problem.desc = MakeDesc(FindOperator(type)->name, {{"DimensionCount", spatial},
                                                     {"Strides", strides},
                                                     {"Dilations", dilations},
                                                     {"StartPadding", start},
                                                     {"EndPadding", end},
                                                     {"GroupCount", groups}});
  TensorSetter set(&problem, make);
  set.Integers("InputTensor", x, input);
  set.Integers("FilterTensor", w, filter);
  const std::vector<uint32_t> per_channel = source.OneIn(2) ? channels : ones;
  if (source.OneIn(2)) set.Integers("InputZeroPointTensor", x, ones);
  if (source.OneIn(2)) set.Integers("FilterZeroPointTensor", w, per_channel);
  if (type == Type::kConvolutionInteger) {
    SetField(&problem.desc, "OutputTensor", make.Output(DataType::kInt32, output));
    return problem;
  }
  set.Scales("InputScaleTensor", DataType::kFloat32, ones);
  set.Scales("FilterScaleTensor", DataType::kFloat32, per_channel);
  set.Scales("OutputScaleTensor", DataType::kFloat32, ones);
  if (source.OneIn(2)) set.Integers("BiasTensor", DataType::kInt32, channels);
  if (source.OneIn(2)) set.Integers("OutputZeroPointTensor", quantized, ones);
  SetField(&problem.desc, "OutputTensor", make.Output(quantized, output));
  return problem;
}

Case Make(Type type, CaseMaker& make) {
  const bool convolution = type == Type::kConvolutionInteger || type == Type::kQuantizedLinearConvolution;
  return convolution ? MakeConvolutions(type, make) : MakeMatrices(type, make);
}

}  // namespace

CaseFamily family::integer_product::Cases() { return {"integer_product", kOperators, Make}; }

}  // namespace anydml::testing
