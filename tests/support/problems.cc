#include "support/problems.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/status.h"
#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

using Sizes = std::vector<uint32_t>;

constexpr DataType kTopKTypes[] = {
    DataType::kFloat32, DataType::kFloat16, DataType::kInt64,  DataType::kInt32,  DataType::kInt16,
    DataType::kInt8,    DataType::kUInt64,  DataType::kUInt32, DataType::kUInt16, DataType::kUInt8};
constexpr DataType kScatterTypes[] = {DataType::kFloat64, DataType::kFloat16, DataType::kUInt8,
                                      DataType::kInt32};
constexpr DataType kIndexTypes[] = {DataType::kInt64, DataType::kInt32, DataType::kUInt64, DataType::kUInt32};

// Zeros and infinities of both signs, NaNs of both signs and kinds, denormals, and ordinary ones.
constexpr uint64_t kFloats[] = {0,          0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001,
                                0x7F800001, 1,          0x80000001, 0x3F800000, 0xBF800000};
constexpr uint64_t kHalves[] = {0, 0x8000, 0x7C00, 0xFC00, 0x7E00, 0xFE01, 0x7C01, 1, 0x8001, 0x3C00, 0xBC00};

class Maker {
 public:
  std::vector<Problem> Take() { return std::move(problems_); }
  std::mt19937_64& random() { return random_; }

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

  // Indices may be out of range in one of 16 places.
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

  void Identity(const TensorDesc& input, FieldValue scale_bias) {
    const Sizes sizes(input.sizes.begin(), input.sizes.begin() + input.rank);
    Add(MakeDesc("ELEMENT_WISE_IDENTITY", {{"InputTensor", input},
                                           {"OutputTensor", Packed(input.type, sizes)},
                                           {"ScaleBias", std::move(scale_bias)}}),
        {Any(input)});
  }

  Bytes Any(const TensorDesc& tensor) {
    Bytes bytes(tensor.total_bytes);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_());
    return bytes;
  }
  // Elements from `values` only: most of them are equal to others.
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
    std::string name = StrCat(problems_.size(), " ", desc.schema->name);
    for (const TensorDesc* tensor : desc.inputs()) {
      name += StrCat(" ", Name(tensor->type), SizesToString(*tensor));
    }
    problems_.push_back({std::move(name), std::move(desc), std::move(inputs), in_place});
  }

  // Few different ones, so that elements are updated several times.
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
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<Problem> SmallProblems() {
  constexpr uint64_t kFew[] = {0, 1, 5};
  Maker make;
  uint32_t turn = 0;  // directions and index types take turns
  const auto direction = [&turn] { return turn % 2; };
  const auto index_type = [&turn] { return turn++ / 2 % 2 == 0 ? DataType::kUInt32 : DataType::kUInt64; };
  for (const DataType type : kTopKTypes) {
    const TensorDesc rows = Packed(type, {3, 50}), longer = Packed(type, {2, 700});
    make.TopK("TOP_K1", rows, 1, 7, direction(), index_type(), make.From(rows, kFew));
    make.TopK("TOP_K1", longer, 1, 20, direction(), index_type(), make.Any(longer));
    ++turn;
  }
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    for (const uint32_t k : {70u, 599u}) {
      const TensorDesc rows = Packed(type, {2, 600});
      const Bytes content = type == DataType::kFloat32 ? make.From(rows, kFloats) : make.From(rows, kHalves);
      make.TopK("TOP_K1", rows, 1, k, 0, DataType::kUInt32, content);
      make.TopK("TOP_K1", rows, 1, k, 1, DataType::kUInt64, content);
    }
  }
  const TensorDesc short_columns = Packed(DataType::kInt16, {2, 40, 5});
  make.TopK("TOP_K", short_columns, 1, 6, 0, DataType::kUInt32, make.From(short_columns, kFew));
  const TensorDesc spread = Strided(DataType::kFloat32, {3, 700}, {2200, 3});
  make.TopK("TOP_K", spread, 1, 30, 0, DataType::kUInt32, make.From(spread, kFloats));
  for (size_t i = 0; i < std::size(kIndexTypes); ++i) {
    make.ScatterElements(kScatterTypes[i], {6, 30}, 1, 40, kIndexTypes[i], i % 2 != 0);
    make.ScatterElements(kScatterTypes[i], {40, 7}, 0, 33, kIndexTypes[i], i % 2 == 0);
    make.ScatterNd(kScatterTypes[i], {9, 9}, 2, 60, kIndexTypes[i], i % 2 != 0);
    make.ScatterNd(kScatterTypes[i], {12, 5, 3}, 1, 20, kIndexTypes[i], i % 2 == 0);
  }
  make.Identity(Packed(DataType::kInt16, {7, 33}), {});
  make.Identity(Packed(DataType::kFloat16, {7, 33}), ScaleBias{0.3f, 7});
  make.Identity(Packed(DataType::kInt64, {70}), ScaleBias{0.3f, 7});
  return make.Take();
}

std::vector<Problem> LargeProblems() {
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
  make.Identity(Strided(DataType::kUInt8, {900, 700}, {1, 900}), {});
  make.Identity(Packed(DataType::kFloat32, {300000}), ScaleBias{1.7f, -3});
  return make.Take();
}

}  // namespace anydml::testing
