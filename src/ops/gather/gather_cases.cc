#include <algorithm>

#include "support/cases.h"

namespace anydml::testing {
namespace {

constexpr OperatorType kOperators[] = {OperatorType::kGather, OperatorType::kGatherElements,
                                       OperatorType::kGatherNd, OperatorType::kGatherNd1};
constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat16, DataType::kInt64,  DataType::kInt32,
                               DataType::kInt16,   DataType::kInt8,    DataType::kUInt64, DataType::kUInt32,
                               DataType::kUInt16,  DataType::kUInt8,   DataType::kFloat64};
constexpr DataType kIndexTypes[] = {DataType::kInt64, DataType::kInt32, DataType::kUInt64, DataType::kUInt32};

using Sizes = std::vector<uint32_t>;

// Types, layouts and contents for given sizes. Indices address a dimension of `size`.
Case MakeCaseOf(OperatorType type, const Sizes& input_sizes, const Sizes& index_sizes,
                const Sizes& output_sizes, uint32_t size, CaseMaker& make) {
  const DataType data_type = make.source().Any(kTypes);
  Case problem;
  const TensorDesc input = make.Input(data_type, input_sizes);
  const TensorDesc indices = make.Input(make.source().Any(kIndexTypes), index_sizes);
  problem.desc = MakeDesc(FindOperator(type)->name, {{"InputTensor", input},
                                                     {"IndicesTensor", indices},
                                                     {"OutputTensor", make.Output(data_type, output_sizes)}});
  problem.inputs = {make.Content(input), make.Indices(indices, size)};
  return problem;
}

void Set(OperatorDesc* desc, const char* field, size_t value) {
  desc->fields.at(static_cast<size_t>(FindField(*desc->schema, field))) = static_cast<uint32_t>(value);
}

uint64_t Product(const Sizes& sizes) {
  uint64_t product = 1;
  for (const uint32_t size : sizes) product *= size;
  return product;
}

// A few positions of large slices.
Sizes PositionSizes(uint32_t most_dimensions, uint64_t slice, CaseMaker& make) {
  const bool many = make.source().OneIn(4);
  Sizes sizes(make.source().Between(0, many ? most_dimensions : std::min(most_dimensions, 2u)), 1);
  for (uint32_t& size : sizes) {
    const uint64_t outputs = slice * Product(sizes);
    size = make.source().Between(1, outputs > 4096 ? 1 : outputs > 256 ? 4 : 12);
  }
  return sizes;
}

Sizes Aligned(Sizes meaningful, size_t rank) {
  meaningful.insert(meaningful.begin(), rank - meaningful.size(), 1);
  return meaningful;
}

Case MakeGather(OperatorType type, CaseMaker& make) {
  const Sizes sizes = make.Sizes(kMaxDimensions);
  auto axis = make.source().Between(0, static_cast<uint32_t>(sizes.size()) - 1);
  const uint64_t slice = Product(sizes) / sizes[axis];
  const Sizes positions =
      PositionSizes(kMaxDimensions + 1 - static_cast<uint32_t>(sizes.size()), slice, make);
  Sizes output(sizes.begin(), sizes.begin() + axis);
  output.insert(output.end(), positions.begin(), positions.end());
  output.insert(output.end(), sizes.begin() + axis + 1, sizes.end());
  if (output.empty()) output = {1};
  const size_t needed = std::max({sizes.size(), positions.size(), output.size()});
  const size_t rank = std::min<size_t>(kMaxDimensions, needed + make.source().Between(0, 1));
  Case problem = MakeCaseOf(type, Aligned(sizes, rank), Aligned(positions, rank), Aligned(output, rank),
                            sizes[axis], make);
  Set(&problem.desc, "Axis", axis + rank - sizes.size());
  Set(&problem.desc, "IndexDimensions", positions.size());
  return problem;
}

Case MakeGatherElements(OperatorType type, CaseMaker& make) {
  const Sizes sizes = make.Sizes(kMaxDimensions);
  const uint32_t axis = make.source().Between(0, static_cast<uint32_t>(sizes.size()) - 1);
  Sizes index_sizes = sizes;
  index_sizes[axis] = make.source().Between(1, sizes[axis] + 2);
  Case problem = MakeCaseOf(type, sizes, index_sizes, index_sizes, sizes[axis], make);
  Set(&problem.desc, "Axis", axis);
  return problem;
}

Case MakeGatherNd(OperatorType type, CaseMaker& make) {
  const Sizes sizes = make.Sizes(kMaxDimensions);
  const auto dimensions = static_cast<uint32_t>(sizes.size());
  const uint32_t batches =
      type == OperatorType::kGatherNd1 ? make.source().Between(0, std::min(dimensions - 1, 2u)) : 0;
  const uint32_t tuple = make.source().Between(1, dimensions - batches);
  const Sizes slice(sizes.begin() + batches + tuple, sizes.end());
  Sizes index_sizes(sizes.begin(), sizes.begin() + batches);
  const auto slice_dimensions = static_cast<uint32_t>(slice.size());
  const uint32_t most = std::min(kMaxDimensions - 1, kMaxDimensions - slice_dimensions) - batches;
  const Sizes positions = PositionSizes(most, Product(slice) * Product(index_sizes), make);
  index_sizes.insert(index_sizes.end(), positions.begin(), positions.end());
  Sizes output = index_sizes;
  output.insert(output.end(), slice.begin(), slice.end());
  if (output.empty()) output = {1};
  index_sizes.push_back(tuple);
  const size_t needed = std::max({sizes.size(), index_sizes.size(), output.size()});
  const size_t rank = std::min<size_t>(kMaxDimensions, needed + make.source().Between(0, 1));
  Case problem = MakeCaseOf(type, Aligned(sizes, rank), Aligned(index_sizes, rank), Aligned(output, rank),
                            sizes[batches], make);
  Set(&problem.desc, "InputDimensionCount", sizes.size());
  Set(&problem.desc, "IndicesDimensionCount", index_sizes.size());
  if (type == OperatorType::kGatherNd1) Set(&problem.desc, "BatchDimensionCount", batches);
  return problem;
}

Case MakeAnyGather(OperatorType type, CaseMaker& make) {
  if (type == OperatorType::kGather) return MakeGather(type, make);
  if (type == OperatorType::kGatherElements) return MakeGatherElements(type, make);
  return MakeGatherNd(type, make);
}

}  // namespace

CaseFamily family::gather::Cases() { return {"gather", kOperators, MakeAnyGather}; }

}  // namespace anydml::testing
