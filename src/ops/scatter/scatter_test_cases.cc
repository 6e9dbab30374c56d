#include "ops/scatter/scatter_test_cases.h"

#include <gtest/gtest.h>

namespace anydml::testing {
namespace {

constexpr DataType kIndexTypes[] = {DataType::kInt64, DataType::kInt32, DataType::kUInt64, DataType::kUInt32};

// Indices mostly in range, with duplicates; some negative, some far out.
Bytes RandomIndices(const TensorDesc& tensor, uint32_t largest_size, std::mt19937_64& random) {
  const size_t width = BitSize(tensor.type) / 8;
  Bytes bytes(tensor.total_bytes);
  for (size_t at = 0; at + width <= bytes.size(); at += width) {
    uint64_t index = Uniform(random, 0, largest_size - 1);
    const uint32_t kind = Uniform(random, 0, 15);
    if (kind < 4) index = uint64_t{0} - 1 - index;
    if (kind == 15) index = random();
    std::memcpy(bytes.data() + at, &index, width);
  }
  return bytes;
}

template <typename T, size_t kCount>
T Any(const T (&list)[kCount], std::mt19937_64& random) {
  return list[Uniform(random, 0, kCount - 1)];
}

}  // namespace

OperatorDesc ScatterNd(const TensorDesc& input, const TensorDesc& indices, const TensorDesc& updates,
                       const TensorDesc& output, uint32_t input_dimensions, uint32_t indices_dimensions) {
  return MakeDesc("SCATTER_ND", {{"InputTensor", input},
                                 {"IndicesTensor", indices},
                                 {"UpdatesTensor", updates},
                                 {"OutputTensor", output},
                                 {"InputDimensionCount", input_dimensions},
                                 {"IndicesDimensionCount", indices_dimensions}});
}

OperatorDesc ScatterElements(const TensorDesc& input, const TensorDesc& indices, const TensorDesc& updates,
                             const TensorDesc& output, uint32_t axis) {
  return MakeDesc("SCATTER_ELEMENTS", {{"InputTensor", input},
                                       {"IndicesTensor", indices},
                                       {"UpdatesTensor", updates},
                                       {"OutputTensor", output},
                                       {"Axis", axis}});
}

void ExpectElementsByLookup(const OperatorDesc& desc, const std::vector<Bytes>& inputs,
                            const RunResult& result) {
  const TensorDesc &in = *desc.tensor("InputTensor"), &idx = *desc.tensor("IndicesTensor");
  const TensorDesc &upd = *desc.tensor("UpdatesTensor"), &out = *desc.tensor("OutputTensor");
  const uint32_t axis = desc.uint("Axis");
  const int64_t n = in.sizes[axis], m = idx.sizes[axis];
  uint64_t inner = 1;
  for (uint32_t d = axis + 1; d < in.rank; ++d) inner *= in.sizes[d];
  const auto in_at = RowMajorOffsets(in), idx_at = RowMajorOffsets(idx), upd_at = RowMajorOffsets(upd);
  const auto out_at = RowMajorOffsets(out);
  const size_t width = BitSize(in.type) / 8, idx_width = BitSize(idx.type) / 8;
  const bool is_signed = idx.type == DataType::kInt32 || idx.type == DataType::kInt64;
  for (size_t e = 0; e < out_at.size(); ++e) {
    const uint64_t before = e / inner / n, behind = e % inner;
    const int64_t place = static_cast<int64_t>(e / inner % n);
    const uint8_t* expected = inputs[0].data() + in_at[e] * width;
    for (int64_t j = m - 1; j >= 0; --j) {
      const uint64_t u = (before * m + j) * inner + behind;
      uint64_t raw = 0;
      std::memcpy(&raw, inputs[1].data() + idx_at[u] * idx_width, idx_width);
      int64_t index = static_cast<int64_t>(raw);
      if (idx.type == DataType::kInt32) index = static_cast<int32_t>(raw);
      if (index == place || (is_signed && index == place - n)) {
        expected = inputs[2].data() + upd_at[u] * width;
        break;
      }
    }
    ASSERT_EQ(std::memcmp(result.outputs[0].data() + out_at[e] * width, expected, width), 0)
        << "element " << e;
  }
}

void ExpectNdBySlices(const OperatorDesc& desc, const std::vector<Bytes>& inputs, const RunResult& result) {
  const TensorDesc &in = *desc.tensor("InputTensor"), &idx = *desc.tensor("IndicesTensor");
  const TensorDesc &upd = *desc.tensor("UpdatesTensor"), &out = *desc.tensor("OutputTensor");
  const std::vector<uint32_t> input(in.sizes.begin() + in.rank - desc.uint("InputDimensionCount"),
                                    in.sizes.begin() + in.rank);
  const uint32_t tuple_size = idx.sizes[idx.rank - 1];
  const size_t width = BitSize(in.type) / 8, idx_width = BitSize(idx.type) / 8;
  const auto in_at = RowMajorOffsets(in), idx_at = RowMajorOffsets(idx), upd_at = RowMajorOffsets(upd);
  const auto out_at = RowMajorOffsets(out);
  uint64_t slice = 1;
  for (size_t d = tuple_size; d < input.size(); ++d) slice *= input[d];
  std::vector<const uint8_t*> expected;
  for (uint64_t offset : in_at) expected.push_back(inputs[0].data() + offset * width);
  for (uint64_t p = 0; p < upd_at.size() / slice; ++p) {
    uint64_t target = 0;
    bool in_range = true;
    for (uint32_t c = 0; c < tuple_size; ++c) {
      uint64_t raw = 0;
      std::memcpy(&raw, inputs[1].data() + idx_at[p * tuple_size + c] * idx_width, idx_width);
      long double index = static_cast<long double>(raw);
      if (idx.type == DataType::kInt32) index = static_cast<int32_t>(raw);
      if (idx.type == DataType::kInt64) index = static_cast<long double>(static_cast<int64_t>(raw));
      if (index < 0) index += input[c];
      if (index < 0 || index >= input[c]) {
        in_range = false;
      } else {
        target = target * input[c] + static_cast<uint64_t>(index);
      }
    }
    for (uint64_t i = 0; in_range && i < slice; ++i) {
      expected[target * slice + i] = inputs[2].data() + upd_at[p * slice + i] * width;
    }
  }
  for (size_t e = 0; e < expected.size(); ++e) {
    ASSERT_EQ(std::memcmp(result.outputs[0].data() + out_at[e] * width, expected[e], width), 0)
        << "element " << e;
  }
}

void RunElementsCase(DataType type, const std::vector<uint32_t>& sizes, uint32_t axis,
                     std::mt19937_64& random, bool lookup) {
  std::vector<uint32_t> index_sizes = sizes;
  index_sizes[axis] = Uniform(random, 1, sizes[axis] + 2);
  const bool in_place = Uniform(random, 0, 3) == 0;
  const TensorDesc out = MakeTensor(type, sizes, Any(kOutputLayouts, random), random);
  const TensorDesc in = in_place ? out : MakeTensor(type, sizes, Any(kInputLayouts, random), random);
  const TensorDesc idx =
      MakeTensor(Any(kIndexTypes, random), index_sizes, Any(kInputLayouts, random), random);
  const TensorDesc upd = MakeTensor(type, index_sizes, Any(kInputLayouts, random), random);
  SCOPED_TRACE(StrCat(Name(type), " ", Name(idx.type), " ", SizesToString(in), " axis ", axis));
  const std::vector<Bytes> inputs = {RandomBytes(in, random), RandomIndices(idx, sizes[axis], random),
                                     RandomBytes(upd, random)};
  const OperatorDesc desc = ScatterElements(in, idx, upd, out, axis);
  const RunResult result = ExpectAllAgree(desc, inputs, in_place);
  if (lookup) ExpectElementsByLookup(desc, inputs, result);
}

void RunNdCase(DataType type, const std::vector<uint32_t>& positions, const std::vector<uint32_t>& input,
               uint32_t tuple_size, uint32_t rank, std::mt19937_64& random) {
  const auto right_aligned = [rank](std::vector<uint32_t> sizes) {
    sizes.insert(sizes.begin(), rank - sizes.size(), 1);
    return sizes;
  };
  std::vector<uint32_t> index_sizes = positions;
  index_sizes.push_back(tuple_size);
  std::vector<uint32_t> update_sizes = positions;
  update_sizes.insert(update_sizes.end(), input.begin() + tuple_size, input.end());
  const bool in_place = Uniform(random, 0, 3) == 0;
  const TensorDesc out = MakeTensor(type, right_aligned(input), Any(kOutputLayouts, random), random);
  const TensorDesc in =
      in_place ? out : MakeTensor(type, right_aligned(input), Any(kInputLayouts, random), random);
  const TensorDesc idx =
      MakeTensor(Any(kIndexTypes, random), right_aligned(index_sizes), Any(kInputLayouts, random), random);
  const TensorDesc upd = MakeTensor(type, right_aligned(update_sizes), Any(kInputLayouts, random), random);
  const std::vector<Bytes> inputs = {RandomBytes(in, random), RandomIndices(idx, input[0], random),
                                     RandomBytes(upd, random)};
  const OperatorDesc desc = ScatterNd(in, idx, upd, out, input.size(), index_sizes.size());
  SCOPED_TRACE(StrCat(Name(type), " ", Name(idx.type), " ", SizesToString(in), " ", SizesToString(idx), " ",
                      SizesToString(upd)));
  const RunResult result = ExpectAllAgree(desc, inputs, in_place);

  ExpectNdBySlices(desc, inputs, result);
}

}  // namespace anydml::testing
