// The operators on random valid shapes, types, layouts and contents: every implementation, on any SIMD
// target, gives the results of the reference, as exactly as it declares, and its sentences.
#include "fuzz.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "ops/operator.h"
#include "support/case_maker.h"
#if ANYDML_HAVE_HIGHWAY
#include "support/simd_targets.h"
#endif

namespace anydml::fuzz {
namespace {

using testing::Bytes;
using testing::LayoutKind;

constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat16, DataType::kInt64,  DataType::kInt32,
                               DataType::kInt16,   DataType::kInt8,    DataType::kUInt64, DataType::kUInt32,
                               DataType::kUInt16,  DataType::kUInt8,   DataType::kFloat64};
constexpr DataType kIndexTypes[] = {DataType::kInt64, DataType::kInt32, DataType::kUInt64, DataType::kUInt32};
testing::Case MakeTopK(testing::CaseMaker& make, bool newer) {
  const DataType type = make.source().Any(std::span(kTypes).first<10>());  // all but FLOAT64
  const std::vector<uint32_t> sizes = make.Sizes(kMaxDimensions);
  const uint32_t axis = make.source().Between(0, static_cast<uint32_t>(sizes.size()) - 1);
  std::vector<uint32_t> output_sizes = sizes;
  const uint32_t k = output_sizes[axis] = make.source().Between(1, sizes[axis]);
  const DataType index = make.source().OneIn(2) ? DataType::kUInt64 : DataType::kUInt32;
  const TensorDesc input = make.Input(type, sizes);
  const TensorDesc value = make.Output(type, output_sizes), indices = make.Output(index, output_sizes);
  testing::Case problem;
  if (newer) {
    problem.desc = testing::MakeDesc("TOP_K1", {{"InputTensor", input},
                                                {"OutputValueTensor", value},
                                                {"OutputIndexTensor", indices},
                                                {"Axis", axis},
                                                {"K", k},
                                                {"AxisDirection", make.source().Between(0, 1)}});
  } else {
    problem.desc = testing::MakeDesc("TOP_K", {{"InputTensor", input},
                                               {"OutputValueTensor", value},
                                               {"OutputIndexTensor", indices},
                                               {"Axis", axis},
                                               {"K", k}});
  }
  problem.inputs = {make.Content(input)};
  return problem;
}

testing::Case MakeIdentity(testing::CaseMaker& make) {
  const DataType type = make.source().Any(kTypes);
  const std::vector<uint32_t> sizes = make.Sizes(kMaxDimensions);
  testing::Case problem;
  problem.in_place = make.source().OneIn(4);
  const TensorDesc output = make.Output(type, sizes);
  const TensorDesc input = problem.in_place ? output : make.Input(type, sizes);
  FieldValue scale_bias;
  if (make.source().OneIn(2)) {
    const uint32_t words[] = {make.source().Word(), make.source().Word()};
    ScaleBias any;
    static_assert(sizeof(any) == sizeof(words));
    std::memcpy(&any, words, sizeof(any));
    const auto small = [&make] { return static_cast<float>(make.source().Byte()) / 4 - 16; };
    scale_bias = make.source().OneIn(2) ? any : ScaleBias{small(), small()};
  }
  problem.desc = testing::MakeDesc(
      "ELEMENT_WISE_IDENTITY", {{"InputTensor", input}, {"OutputTensor", output}, {"ScaleBias", scale_bias}});
  problem.inputs = {make.Content(input)};
  return problem;
}

testing::Case MakeScatterElements(testing::CaseMaker& make) {
  const DataType type = make.source().Any(kTypes);
  const std::vector<uint32_t> sizes = make.Sizes(kMaxDimensions);
  const uint32_t axis = make.source().Between(0, static_cast<uint32_t>(sizes.size()) - 1);
  std::vector<uint32_t> index_sizes = sizes;
  index_sizes[axis] = make.source().Between(1, sizes[axis] + 2);
  testing::Case problem;
  problem.in_place = make.source().OneIn(4);
  const TensorDesc output = make.Output(type, sizes);
  const TensorDesc input = problem.in_place ? output : make.Input(type, sizes);
  const TensorDesc indices = make.Input(make.source().Any(kIndexTypes), index_sizes);
  const TensorDesc updates = make.Input(type, index_sizes);
  problem.desc = testing::MakeDesc("SCATTER_ELEMENTS", {{"InputTensor", input},
                                                        {"IndicesTensor", indices},
                                                        {"UpdatesTensor", updates},
                                                        {"OutputTensor", output},
                                                        {"Axis", axis}});
  problem.inputs = {make.Content(input), make.Indices(indices, sizes[axis]), make.Content(updates)};
  return problem;
}

testing::Case MakeScatterNd(testing::CaseMaker& make) {
  const DataType type = make.source().Any(kTypes);
  const std::vector<uint32_t> sizes = make.Sizes(4);
  const uint32_t tuple = make.source().Between(1, static_cast<uint32_t>(sizes.size()));
  uint64_t slice = 1;
  for (size_t d = tuple; d < sizes.size(); ++d) slice *= sizes[d];
  std::vector<uint32_t> index_sizes(make.source().Between(0, 2));
  for (uint32_t& size : index_sizes) {  // few positions of large slices
    size = make.source().Between(1, slice > 256 ? 4 : slice <= 16 && make.source().OneIn(4) ? 60 : 9);
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
  testing::Case problem;
  problem.in_place = make.source().OneIn(4);
  const TensorDesc output = make.Output(type, aligned(sizes));
  const TensorDesc input = problem.in_place ? output : make.Input(type, aligned(sizes));
  const TensorDesc indices = make.Input(make.source().Any(kIndexTypes), aligned(index_sizes));
  const TensorDesc updates = make.Input(type, aligned(update_sizes));
  problem.desc =
      testing::MakeDesc("SCATTER_ND", {{"InputTensor", input},
                                       {"IndicesTensor", indices},
                                       {"UpdatesTensor", updates},
                                       {"OutputTensor", output},
                                       {"InputDimensionCount", static_cast<uint32_t>(sizes.size())},
                                       {"IndicesDimensionCount", static_cast<uint32_t>(index_sizes.size())}});
  problem.inputs = {make.Content(input), make.Indices(indices, sizes[0]), make.Content(updates)};
  return problem;
}

testing::Case Maketesting::Case(testing::CaseMaker& make) {
  switch (make.source().Between(0, 7)) {
    case 0:
      return MakeIdentity(make);
    case 1:
    case 2:
      return MakeScatterElements(make);
    case 3:
    case 4:
      return MakeScatterNd(make);
    case 5:
      return MakeTopK(make, /*newer=*/false);
    default:
      return MakeTopK(make, /*newer=*/true);
  }
}

void Run(ByteSource source) {
  // Expectations of the tests' helpers: report, then end.
  ::testing::GTEST_FLAG(break_on_failure) = true;
#if ANYDML_HAVE_HIGHWAY
  // One of them per input: five times as many inputs see as much.
  const auto target = source.Any(hwy::SupportedAndGeneratedTargets());
#endif
  testing::CaseMaker make(source);
  const testing::Case problem = Maketesting::Case(make);
  std::string text = problem.desc.schema->name;
  for (const TensorDesc* tensor : problem.desc.inputs()) text += StrCat(" ", SizesToString(*tensor));
  SCOPED_TRACE(text);
  const auto check = [&] { testing::ExpectAllAgree(problem.desc, problem.inputs, problem.in_place); };
#if ANYDML_HAVE_HIGHWAY
  testing::WithTarget(target, check);
#else
  check();
#endif
}

}  // namespace
}  // namespace anydml::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  anydml::fuzz::Run({data, size});
  return 0;
}
