#include "ops/gemm/gemm_cases.h"

#include "support/cases.h"

namespace anydml::testing {

Bytes NumbersThatAddUp(const TensorDesc& tensor, CaseMaker& make) {
  Bytes bytes(tensor.total_bytes);
  const size_t width = BitSize(tensor.type) / 8;
  for (size_t at = 0; at + width <= bytes.size(); at += width) {
    const float number = static_cast<float>(make.random()() % 17) / 8 - 1;
    if (tensor.type == DataType::kFloat16) {
      const Half half = ToHalf(number);
      std::memcpy(bytes.data() + at, &half, width);
    } else {
      std::memcpy(bytes.data() + at, &number, width);
    }
  }
  return bytes;
}

void SetField(OperatorDesc* desc, const char* name, FieldValue value) {
  desc->fields[static_cast<size_t>(FindField(*desc->schema, name))] = std::move(value);
}

namespace {

constexpr OperatorType kOperators[] = {OperatorType::kGemm};

constexpr OperatorType kActivations[] = {OperatorType::kActivationRelu, OperatorType::kActivationIdentity,
                                         OperatorType::kActivationTanh, OperatorType::kActivationSigmoid,
                                         OperatorType::kActivationGelu, OperatorType::kActivationSoftsign};

Case MakeGemm(OperatorType, CaseMaker& make) {
  ByteSource& source = make.source();
  // Both operands are contiguous along k, in units of 16 bytes, as weights usually are.
  const bool along_k = source.OneIn(16);
  const DataType type = !along_k && source.OneIn(2) ? DataType::kFloat16 : DataType::kFloat32;
  const uint32_t rank = source.Between(2, 4);
  const auto size = [&] {
    const uint32_t kind = source.Between(0, 7);
    return kind == 0   ? 1
           : kind == 1 ? source.Between(1, 70)
           : kind == 2 ? source.Between(1, 400)
                       : source.Between(1, 17);
  };
  uint32_t m = size(), n = size(), k = size();
  while (uint64_t{m} * n * k > 400'000) (m > n ? m : n > k ? n : k) /= 2;
  // One row or column, and matrix rows that are multiples of 16 bytes, as GPU kernels prefer.
  const bool in_units = source.OneIn(8);
  if (in_units) {
    (source.OneIn(2) ? m : n) = 1;
    for (uint32_t* number : {&m, &n, &k}) *number = *number == 1 ? 1 : 8 * source.Between(1, 70);
  }
  if (along_k) k = 4 * source.Between(1, 70);
  const bool is_packed = in_units || along_k;
  std::vector<uint32_t> batch(rank - 2);
  for (uint32_t& b : batch) b = is_packed || source.OneIn(2) ? 1 : source.Between(1, 3);
  const auto sizes = [&](uint32_t rows, uint32_t columns) {
    std::vector<uint32_t> all = batch;
    all.push_back(rows);
    all.push_back(columns);
    return all;
  };
  const uint32_t trans_a = along_k ? 0 : source.Between(0, 1), trans_b = along_k ? 1 : source.Between(0, 1);
  const auto input = [&](const std::vector<uint32_t>& all) {
    return is_packed ? Packed(type, all) : make.Input(type, all);
  };
  const TensorDesc a = input(trans_a != 0 ? sizes(k, m) : sizes(m, k));
  const TensorDesc b = input(trans_b != 0 ? sizes(n, k) : sizes(k, n));
  const bool has_c = !along_k && source.OneIn(2);
  const TensorDesc c = make.Input(type, sizes(m, n));
  constexpr float kFactors[] = {1, 0, -2, 0.5f, 0.3f};
  Case problem;
  problem.desc = MakeDesc("GEMM", {{"ATensor", a},
                                   {"BTensor", b},
                                   {"OutputTensor", make.Output(type, sizes(m, n))},
                                   {"TransA", trans_a},
                                   {"TransB", trans_b},
                                   {"Alpha", along_k ? 1.0f : source.Any(kFactors)},
                                   {"Beta", source.Any(kFactors)}});
  problem.inputs = {NumbersThatAddUp(a, make), NumbersThatAddUp(b, make), {}};
  if (has_c) {
    SetField(&problem.desc, "CTensor", c);
    problem.inputs[2] = NumbersThatAddUp(c, make);
  }
  if (source.OneIn(3)) {
    const OperatorDesc activation = MakeDesc(FindOperator(source.Any(kActivations))->name, {});
    SetField(&problem.desc, "FusedActivation", std::make_shared<const OperatorDesc>(activation));
  }
  return problem;
}

}  // namespace

CaseFamily family::gemm::Cases() { return {"gemm", kOperators, MakeGemm}; }

}  // namespace anydml::testing
