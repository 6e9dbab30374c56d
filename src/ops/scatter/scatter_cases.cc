#include <algorithm>

#include "support/cases.h"

namespace anydml::testing {
namespace {

constexpr OperatorType kOperators[] = {OperatorType::kScatterElements, OperatorType::kScatterNd};
constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat16, DataType::kInt64,  DataType::kInt32,
                               DataType::kInt16,   DataType::kInt8,    DataType::kUInt64, DataType::kUInt32,
                               DataType::kUInt16,  DataType::kUInt8,   DataType::kFloat64};
constexpr DataType kIndexTypes[] = {DataType::kInt64, DataType::kInt32, DataType::kUInt64, DataType::kUInt32};

// Types, layouts and contents for given sizes. Indices address a dimension of `size`.
Case MakeScatter(OperatorType type, const std::vector<uint32_t>& sizes,
                 const std::vector<uint32_t>& index_sizes, const std::vector<uint32_t>& update_sizes,
                 uint32_t size, CaseMaker& make) {
  const DataType data_type = make.source().Any(kTypes);
  Case problem;
  problem.in_place = make.source().OneIn(4);
  const TensorDesc output = make.Output(data_type, sizes);
  const TensorDesc input = problem.in_place ? output : make.Input(data_type, sizes);
  const TensorDesc indices = make.Input(make.source().Any(kIndexTypes), index_sizes);
  const TensorDesc updates = make.Input(data_type, update_sizes);
  problem.desc = MakeDesc(FindOperator(type)->name, {{"InputTensor", input},
                                                     {"IndicesTensor", indices},
                                                     {"UpdatesTensor", updates},
                                                     {"OutputTensor", output}});
  problem.inputs = {make.Content(input), make.Indices(indices, size), make.Content(updates)};
  return problem;
}

void Set(OperatorDesc* desc, const char* field, size_t value) {
  desc->fields.at(static_cast<size_t>(FindField(*desc->schema, field))) = static_cast<uint32_t>(value);
}

Case MakeScatterElements(OperatorType type, CaseMaker& make) {
  const std::vector<uint32_t> sizes = make.Sizes(kMaxDimensions);
  const uint32_t axis = make.source().Between(0, static_cast<uint32_t>(sizes.size()) - 1);
  std::vector<uint32_t> index_sizes = sizes;
  index_sizes[axis] = make.source().Between(1, sizes[axis] + 2);
  Case problem = MakeScatter(type, sizes, index_sizes, index_sizes, sizes[axis], make);
  Set(&problem.desc, "Axis", axis);
  return problem;
}

Case MakeScatterNd(OperatorType type, CaseMaker& make) {
  const std::vector<uint32_t> sizes = make.Sizes(kMaxDimensions);
  const auto dimensions = static_cast<uint32_t>(sizes.size());
  const uint32_t tuple = make.source().Between(1, dimensions);
  uint64_t updates = 1;  // initially of a slice
  for (size_t d = tuple; d < sizes.size(); ++d) updates *= sizes[d];
  // Indices have one dimension more than positions; updates also have those of a slice.
  const uint32_t most_positions = std::min(kMaxDimensions - 1, kMaxDimensions - (dimensions - tuple));
  const bool many = make.source().OneIn(4);
  std::vector<uint32_t> index_sizes(
      make.source().Between(0, many ? most_positions : std::min(most_positions, 2u)));
  for (uint32_t& size : index_sizes) {  // a few positions of large slices
    const uint32_t most = updates > 4096                            ? 1
                          : updates > 256                           ? 4
                          : updates <= 16 && make.source().OneIn(4) ? 60
                                                                    : 9;
    size = make.source().Between(1, most);
    updates *= size;
  }
  std::vector<uint32_t> update_sizes = index_sizes;
  index_sizes.push_back(tuple);
  update_sizes.insert(update_sizes.end(), sizes.begin() + tuple, sizes.end());
  if (update_sizes.empty()) update_sizes = {1};
  const auto counts = {sizes.size(), index_sizes.size(), update_sizes.size()};
  const size_t rank = std::min<size_t>(kMaxDimensions, std::max(counts) + make.source().Between(0, 1));
  const auto aligned = [rank](std::vector<uint32_t> meaningful) {
    meaningful.insert(meaningful.begin(), rank - meaningful.size(), 1);
    return meaningful;
  };
  Case problem =
      MakeScatter(type, aligned(sizes), aligned(index_sizes), aligned(update_sizes), sizes[0], make);
  Set(&problem.desc, "InputDimensionCount", sizes.size());
  Set(&problem.desc, "IndicesDimensionCount", index_sizes.size());
  return problem;
}

Case MakeAnyScatter(OperatorType type, CaseMaker& make) {
  return type == OperatorType::kScatterNd ? MakeScatterNd(type, make) : MakeScatterElements(type, make);
}

}  // namespace

CaseFamily family::scatter::Cases() { return {"scatter", kOperators, MakeAnyScatter}; }

}  // namespace anydml::testing
