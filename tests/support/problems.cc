#include "support/problems.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

using Sizes = std::vector<uint32_t>;

// Zeros and infinities of both signs, NaNs of both signs and kinds, denormals, and ordinary ones.
constexpr uint64_t kFloats[] = {0,          0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001,
                                0x7F800001, 1,          0x80000001, 0x3F800000, 0xBF800000};

class Maker {
 public:
  std::vector<Case> Take() { return std::move(problems_); }

  void TopK(const char* name, const TensorDesc& input, uint32_t axis, uint32_t k, uint32_t direction,
            DataType index_type, Bytes content) {
    Sizes sizes(input.sizes.begin(), input.sizes.begin() + input.rank);
    sizes[axis] = k;
    OperatorDesc desc = MakeDesc(name, {{"InputTensor", input},
                                        {"OutputValueTensor", Packed(input.type, sizes)},
                                        {"OutputIndexTensor", Packed(index_type, sizes)},
                                        {"Axis", axis},
                                        {"K", k}});
    if (const int field = FindField(*desc.schema, "AxisDirection"); field >= 0)
      desc.fields[field] = direction;
    Add(std::move(desc), {std::move(content)});
  }

  // Indices are out of range in one of 16 places.
  void ScatterElements(DataType type, const Sizes& sizes, uint32_t axis, uint32_t extent, DataType index_type,
                       bool in_place) {
    Sizes index_sizes = sizes;
    index_sizes[axis] = extent;
    const TensorDesc data = Packed(type, sizes), indices = Packed(index_type, index_sizes);
    const TensorDesc updates = Packed(type, index_sizes);
    Add(MakeDesc("SCATTER_ELEMENTS", {{"InputTensor", data},
                                      {"IndicesTensor", indices},
                                      {"UpdatesTensor", updates},
                                      {"OutputTensor", data},
                                      {"Axis", axis}}),
        {Any(data), Indices(indices, sizes[axis]), Any(updates)}, in_place);
  }

  void ScatterNd(DataType type, const Sizes& sizes, uint32_t tuple, uint32_t positions, DataType index_type,
                 bool in_place) {
    const auto dimensions = static_cast<uint32_t>(sizes.size());
    Sizes index_sizes = {positions, tuple}, update_sizes = {positions};
    update_sizes.insert(update_sizes.end(), sizes.begin() + tuple, sizes.end());
    const size_t rank = std::max({sizes.size(), index_sizes.size(), update_sizes.size()});
    const auto aligned = [rank](Sizes meaningful) {
      meaningful.insert(meaningful.begin(), rank - meaningful.size(), 1);
      return meaningful;
    };
    const TensorDesc data = Packed(type, aligned(sizes)), indices = Packed(index_type, aligned(index_sizes));
    const TensorDesc updates = Packed(type, aligned(update_sizes));
    Add(MakeDesc("SCATTER_ND", {{"InputTensor", data},
                                {"IndicesTensor", indices},
                                {"UpdatesTensor", updates},
                                {"OutputTensor", data},
                                {"InputDimensionCount", dimensions},
                                {"IndicesDimensionCount", 2u}}),
        {Any(data), Indices(indices, sizes[0]), Any(updates)}, in_place);
  }

  void GatherRows(DataType type, const Sizes& sizes, uint32_t rows, DataType index_type) {
    const TensorDesc data = Packed(type, sizes), indices = Packed(index_type, {1, rows});
    Add(MakeDesc("GATHER", {{"InputTensor", data},
                            {"IndicesTensor", indices},
                            {"OutputTensor", Packed(type, {rows, sizes[1]})},
                            {"Axis", 0u},
                            {"IndexDimensions", 1u}}),
        {Any(data), Indices(indices, sizes[0])});
  }

  // With parameters for each channel.
  void BatchNormalization(DataType type, const Sizes& sizes) {
    const TensorDesc data = Packed(type, sizes), channels = Packed(type, {1, sizes[1], 1, 1});
    Add(MakeDesc("BATCH_NORMALIZATION", {{"InputTensor", data},
                                         {"MeanTensor", channels},
                                         {"VarianceTensor", channels},
                                         {"ScaleTensor", channels},
                                         {"BiasTensor", channels},
                                         {"OutputTensor", data},
                                         {"Spatial", 1u},
                                         {"Epsilon", 1e-5f}}),
        {Any(data), Any(channels), Any(channels), Any(channels), Any(channels)});
  }

  void Identity(const TensorDesc& input, FieldValue scale_bias) {
    const Sizes sizes(input.sizes.begin(), input.sizes.begin() + input.rank);
    Add(MakeDesc("ELEMENT_WISE_IDENTITY", {{"InputTensor", input},
                                           {"OutputTensor", Packed(input.type, sizes)},
                                           {"ScaleBias", std::move(scale_bias)}}),
        {Any(input)});
  }

  // An input that is transposed relative to the output.
  void AddAcross(DataType type, uint32_t rows, uint32_t columns) {
    const TensorDesc across = Strided(type, {rows, columns}, {1, rows}),
                     along = Packed(type, {rows, columns});
    Add(MakeDesc("ELEMENT_WISE_ADD", {{"ATensor", across}, {"BTensor", along}, {"OutputTensor", along}}),
        {Any(across), Any(along)});
  }

  // 3x3 windows with stride 2 and padding.
  void MaxPooling(DataType type, const Sizes& sizes) {
    const TensorDesc input = Packed(type, sizes);
    const Sizes ones = {1, 1}, twos = {2, 2}, threes = {3, 3};
    Add(MakeDesc("MAX_POOLING", {{"InputTensor", input},
                                 {"OutputTensor", Packed(type, {sizes[0], sizes[1], (sizes[2] - 1) / 2 + 1,
                                                                (sizes[3] - 1) / 2 + 1})},
                                 {"DimensionCount", 2u},
                                 {"Strides", twos},
                                 {"WindowSize", threes},
                                 {"StartPadding", ones},
                                 {"EndPadding", ones}}),
        {Any(input)});
  }

  // With adjacent patches.
  void Convolution(DataType type, const Sizes& sizes, uint32_t patch, uint32_t filters) {
    constexpr uint64_t kNumbers[] = {0x3F800000, 0xBF800000, 0x3F000000, 0xBEAAAAAB, 0x3DCCCCCD, 0};
    constexpr uint64_t kHalfNumbers[] = {0x3C00, 0xBC00, 0x3800, 0xB555, 0x2E66, 0};
    const std::span<const uint64_t> numbers =
        type == DataType::kFloat16 ? std::span(kHalfNumbers) : std::span(kNumbers);
    const TensorDesc input = Packed(type, sizes);
    const TensorDesc filter = Packed(type, {filters, sizes[1], patch, patch});
    const Sizes strides = {patch, patch}, ones = {1, 1}, zeros = {0, 0};
    Add(MakeDesc("CONVOLUTION",
                 {{"InputTensor", input},
                  {"FilterTensor", filter},
                  {"OutputTensor", Packed(type, {sizes[0], filters, sizes[2] / patch, sizes[3] / patch})},
                  {"Mode", 1u},
                  {"Direction", 0u},
                  {"DimensionCount", 2u},
                  {"Strides", strides},
                  {"Dilations", ones},
                  {"StartPadding", zeros},
                  {"EndPadding", zeros},
                  {"OutputPadding", zeros},
                  {"GroupCount", 1u}}),
        {From(input, numbers), From(filter, numbers), Bytes()});
  }

  // With a zero point for each of both.
  void ProductOfBytes(uint32_t rows, uint32_t steps, uint32_t columns) {
    const TensorDesc a = Packed(DataType::kInt8, {1, 1, rows, steps});
    const TensorDesc b = Packed(DataType::kUInt8, {1, 1, steps, columns});
    const TensorDesc a_zero = Packed(DataType::kInt8, {1, 1, 1, 1}),
                     b_zero = Packed(DataType::kUInt8, {1, 1, 1, 1});
    Add(MakeDesc("MATRIX_MULTIPLY_INTEGER",
                 {{"ATensor", a},
                  {"AZeroPointTensor", a_zero},
                  {"BTensor", b},
                  {"BZeroPointTensor", b_zero},
                  {"OutputTensor", Packed(DataType::kInt32, {1, 1, rows, columns})}}),
        {Any(a), Any(a_zero), Any(b), Any(b_zero)});
  }

  // With heads of 64 columns and nothing optional.
  void Attention(uint32_t queries, uint32_t keys, uint32_t heads) {
    constexpr uint64_t kHalves[] = {0x3C00, 0xBC00, 0x3800, 0xB555, 0x3266, 0xAE00, 0, 0x8000};
    const TensorDesc query = Packed(DataType::kFloat16, {2, queries, heads * 64});
    const TensorDesc key = Packed(DataType::kFloat16, {2, keys, heads * 64});
    Add(MakeDesc("MULTIHEAD_ATTENTION", {{"QueryTensor", query},
                                         {"KeyTensor", key},
                                         {"ValueTensor", key},
                                         {"OutputTensor", query},
                                         {"Scale", 0.125f},
                                         {"MaskFilterValue", -10000.0f},
                                         {"HeadCount", heads},
                                         {"MaskType", 0u}}),
        {From(query, kHalves), From(key, kHalves), From(key, kHalves)});
  }

  // A frame of one element around each image.
  void Padding(DataType type, Sizes sizes) {
    const TensorDesc input = Packed(type, sizes);
    Sizes frame(sizes.size(), 0);
    for (size_t d = sizes.size() - 2; d < sizes.size(); ++d) {
      frame[d] = 1;
      sizes[d] += 2;
    }
    Add(MakeDesc("PADDING", {{"InputTensor", input},
                             {"OutputTensor", Packed(type, sizes)},
                             {"PaddingMode", uint32_t{0}},
                             {"PaddingValue", 2.0f},
                             {"DimensionCount", static_cast<uint32_t>(sizes.size())},
                             {"StartPadding", frame},
                             {"EndPadding", frame}}),
        {Any(input)});
  }

  Bytes Any(const TensorDesc& tensor) {
    Bytes bytes(tensor.total_bytes);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_());
    return bytes;
  }
  // Elements from `values` only: most have equals.
  Bytes From(const TensorDesc& tensor, std::span<const uint64_t> values) {
    Bytes bytes(tensor.total_bytes);
    const size_t width = BitSize(tensor.type) / 8;
    for (size_t at = 0; at + width <= bytes.size(); at += width) {
      std::memcpy(bytes.data() + at, &values[random_() % values.size()], width);
    }
    return bytes;
  }

 private:
  void Add(OperatorDesc desc, std::vector<Bytes> inputs, bool in_place = false) {
    problems_.push_back({std::move(desc), std::move(inputs), in_place});
  }

  // A few distinct ones, so that elements are updated several times.
  Bytes Indices(const TensorDesc& tensor, uint32_t size) {
    Bytes bytes(tensor.total_bytes);
    const size_t width = BitSize(tensor.type) / 8;
    for (size_t at = 0; at + width <= bytes.size(); at += width) {
      uint64_t index = random_() % size;
      const uint64_t kind = random_() % 64;
      if (kind < 16) index -= size;
      if (kind == 63) index = size;
      if (kind == 62) index = random_();
      std::memcpy(bytes.data() + at, &index, width);
    }
    return bytes;
  }

  std::mt19937_64 random_{TestSeed()};
  std::vector<Case> problems_;
};

}  // namespace

std::vector<Case> LargeProblems() {
  constexpr uint64_t kFew[] = {3, 4, 7, 9, 11, 12, 40, 130, 131};
  Maker make;
  const TensorDesc row = Packed(DataType::kFloat32, {1, 230000});
  make.TopK("TOP_K1", row, 1, 100, 1, DataType::kUInt32, make.Any(row));
  const TensorDesc ties = Packed(DataType::kUInt8, {1, 230000});
  make.TopK("TOP_K1", ties, 1, 7000, 0, DataType::kUInt64, make.From(ties, kFew));
  const TensorDesc columns = Packed(DataType::kFloat16, {300, 330});
  make.TopK("TOP_K1", columns, 0, 20, 1, DataType::kUInt64, make.Any(columns));
  const TensorDesc rows = Packed(DataType::kFloat32, {16384, 20});
  make.TopK("TOP_K1", rows, 1, 3, 0, DataType::kUInt32, make.From(rows, kFloats));
  make.ScatterElements(DataType::kUInt16, {30000}, 0, 40000, DataType::kInt32, false);
  make.ScatterElements(DataType::kFloat32, {1000}, 0, 50000, DataType::kUInt64, true);
  make.ScatterElements(DataType::kUInt8, {40, 50, 200}, 1, 70, DataType::kInt64, false);
  make.ScatterNd(DataType::kInt64, {1000}, 1, 50000, DataType::kUInt32, false);
  make.ScatterNd(DataType::kFloat16, {900, 200}, 1, 1500, DataType::kInt32, false);
  make.ScatterNd(DataType::kUInt8, {300, 300}, 2, 270000, DataType::kInt32, true);
  make.GatherRows(DataType::kFloat32, {300, 264}, 1500, DataType::kInt64);
  make.BatchNormalization(DataType::kFloat16, {4, 16, 64, 64});
  make.Padding(DataType::kFloat32, {3, 5, 61, 67});
  make.AddAcross(DataType::kFloat32, 136, 264);
  make.MaxPooling(DataType::kFloat32, {2, 3, 33, 64});
  make.Convolution(DataType::kFloat32, {2, 3, 50, 50}, 16, 40);
  make.Convolution(DataType::kFloat16, {2, 40, 24, 20}, 1, 72);
  make.Convolution(DataType::kFloat32, {2, 3, 45, 45}, 1, 70);
  make.ProductOfBytes(3, 300, 2100);
  make.ProductOfBytes(20, 900, 40);
  make.Attention(70, 90, 2);
  make.Attention(1, 200, 2);
  make.Identity(Strided(DataType::kUInt8, {900, 700}, {1, 900}), {});
  make.Identity(Packed(DataType::kFloat32, {300000}), ScaleBias{1.7f, -3});
  return make.Take();
}

}  // namespace anydml::testing
