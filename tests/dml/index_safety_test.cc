// Indices at and beyond every limit, through the API, in buffers between guard pages: indices out of range
// are dropped and the first of them is reported, the others are applied, and no other byte is written. With
// every implementation, for every SIMD target, on one thread and on several.
#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include <gtest/gtest.h>

#include "base/status.h"
#include "support/api_run.h"
#include "support/child_process.h"
#include "support/every_target.h"
#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

using test::DmlHarness;

template <typename Index>
constexpr DataType kIndexType = std::is_signed_v<Index>
                                    ? (sizeof(Index) == 8 ? DataType::kInt64 : DataType::kInt32)
                                    : (sizeof(Index) == 8 ? DataType::kUInt64 : DataType::kUInt32);

// Edge values for a dimension of this size. Negative ones are the largest of an unsigned type.
template <typename Index>
std::vector<Index> EdgesOf(uint32_t size) {
  using Limits = std::numeric_limits<Index>;
  std::vector<Index> edges = {Limits::min(),
                              Index(Limits::min() + 1),
                              Index(-Index(size) - 1),
                              Index(-Index(size)),
                              Index(-1),
                              0,
                              Index(size - 1),
                              Index(size),
                              Index(size + 1),
                              Index(Limits::max() - 1),
                              Limits::max(),
                              Index(Limits::max() / 2 + 1),
                              Index(Index(1) << 31)};
  if constexpr (sizeof(Index) == 8) {  // whose low half would be in range
    for (const uint64_t edge : {uint64_t{1} << 32, (uint64_t{1} << 32) + 1, ~uint64_t{0} << 32}) {
      edges.push_back(static_cast<Index>(edge));
    }
  }
  return edges;
}

// As the contract says: negative indices wrap once, and the result is in range or not.
template <typename Index>
std::optional<uint64_t> PlaceOf(Index index, uint32_t size) {
  if constexpr (std::is_signed_v<Index>) {
    if (index < -static_cast<int64_t>(size)) return std::nullopt;
    if (index < 0) return static_cast<uint64_t>(index + static_cast<int64_t>(size));
  }
  if (static_cast<uint64_t>(index) >= size) return std::nullopt;
  return static_cast<uint64_t>(index);
}

struct Scatter {
  Case problem;
  Bytes expected;
  std::string first_bad;  // how the message begins; empty: no message
};

// Scatters with indices of one type, and their expected results.
template <typename Index>
class Cases {
 public:
  Cases(DataType type, bool in_place) : type_(type), width_(BitSize(type) / 8), in_place_(in_place) {}

  Scatter Elements(uint32_t size, const std::vector<Index>& places) const {
    const auto count = static_cast<uint32_t>(places.size());
    const TensorDesc data = Packed(type_, {size}), indices = Packed(kIndexType<Index>, {count});
    const TensorDesc updates = Packed(type_, {count});
    return Make(MakeDesc("SCATTER_ELEMENTS", {{"InputTensor", data},
                                              {"IndicesTensor", indices},
                                              {"UpdatesTensor", updates},
                                              {"OutputTensor", data},
                                              {"Axis", 0u}}),
                places, {size}, 1);
  }

  // `places` has as many components as `sizes`; each addresses a slice of `slice` elements.
  Scatter Nd(const std::vector<uint32_t>& sizes, uint32_t slice, const std::vector<Index>& places) const {
    const auto tuple = static_cast<uint32_t>(sizes.size());
    const auto count = static_cast<uint32_t>(places.size() / tuple);
    std::vector<uint32_t> data_sizes = sizes;
    data_sizes.push_back(slice);
    const auto aligned = [](std::vector<uint32_t> meaningful) {
      meaningful.insert(meaningful.begin(), 3 - meaningful.size(), 1);
      return meaningful;
    };
    const TensorDesc data = Packed(type_, aligned(data_sizes));
    const TensorDesc indices = Packed(kIndexType<Index>, aligned({count, tuple}));
    const TensorDesc updates = Packed(type_, aligned({count, slice}));
    return Make(MakeDesc("SCATTER_ND", {{"InputTensor", data},
                                        {"IndicesTensor", indices},
                                        {"UpdatesTensor", updates},
                                        {"OutputTensor", data},
                                        {"InputDimensionCount", tuple + 1},
                                        {"IndicesDimensionCount", 2u}}),
                places, sizes, slice);
  }

 private:
  Scatter Make(OperatorDesc desc, const std::vector<Index>& places, const std::vector<uint32_t>& sizes,
               uint32_t slice) const {
    std::mt19937_64 random(TestSeed());
    const std::vector<const TensorDesc*> tensors = desc.inputs();
    Bytes data(tensors[0]->total_bytes), indices(tensors[1]->total_bytes), updates(tensors[2]->total_bytes);
    for (uint8_t& byte : data) byte = static_cast<uint8_t>(random());
    for (uint8_t& byte : updates) byte = static_cast<uint8_t>(random());
    std::memcpy(indices.data(), places.data(), places.size() * sizeof(Index));
    Scatter result;
    result.expected = in_place_ ? data : Bytes(data.size(), kGap);
    const size_t elements = ElementCount(*tensors[0]) * width_;
    std::memcpy(result.expected.data(), data.data(), elements);
    const bool nd = desc.schema->name == std::string("SCATTER_ND");
    for (size_t at = 0; at < places.size(); at += sizes.size()) {
      std::optional<uint64_t> target = 0;
      std::string values;
      for (size_t c = 0; c < sizes.size(); ++c) {
        const std::optional<uint64_t> place = PlaceOf(places[at + c], sizes[c]);
        target = place && target ? std::optional(*target * sizes[c] + *place) : std::nullopt;
        values += StrCat(c == 0 ? "" : ",", places[at + c]);
      }
      const size_t position = at / sizes.size();
      if (target) {
        std::memcpy(result.expected.data() + *target * slice * width_,
                    updates.data() + position * slice * width_, slice * width_);
      } else if (result.first_bad.empty()) {
        result.first_bad =
            nd ? StrCat("SCATTER_ND: the tuple IndicesTensor[0,", position, ",:] is {", values, "} but")
               : StrCat("SCATTER_ELEMENTS: IndicesTensor[", position, "] is ", values, " but");
      }
    }
    result.problem = {std::move(desc), {data, indices, updates}, in_place_};
    return result;
  }

  const DataType type_;
  const size_t width_;
  const bool in_place_;
};

void ExpectSafe(DmlHarness& harness, const Scatter& test) {
  SCOPED_TRACE(Describe(test.problem));
  for (const std::string& implementation :
       ImplementationsUnderTest(*FindImplementation(test.problem.desc.schema->type))) {
    OnEveryTarget([&](const char*) {
      const ApiResult result = RunThroughApi(harness, test.problem, implementation);
      // On the CPU all implementations fit.
      if (result.implementation.empty() && BackendUnderTest() != "cpu") return;
      ASSERT_EQ(result.implementation, implementation);
      EXPECT_TRUE(result.outputs.at(0) == test.expected) << implementation;
      ASSERT_EQ(result.messages.size(), test.first_bad.empty() ? 0u : 1u) << implementation;
      if (!test.first_bad.empty()) {
        EXPECT_EQ(result.messages[0].substr(0, test.first_bad.size()), test.first_bad) << implementation;
      }
    });
  }
}

// Each edge value is first once.
template <typename Index>
void RunSmall(DmlHarness& harness) {
  constexpr DataType kTypes[] = {DataType::kUInt8, DataType::kFloat16, DataType::kFloat32, DataType::kInt64};
  std::vector<Index> five = EdgesOf<Index>(5), pairs;
  for (size_t turn = 0; turn < five.size() && !::testing::Test::HasFailure(); ++turn) {
    std::rotate(five.begin(), five.begin() + 1, five.end());
    const Cases<Index> make(kTypes[turn % std::size(kTypes)], turn % 3 == 0);
    ExpectSafe(harness, make.Elements(5, five));
    ExpectSafe(harness, make.Nd({5}, 3, five));
    // Combined with every edge value of another dimension.
    pairs.clear();
    for (const Index other : EdgesOf<Index>(3)) pairs.insert(pairs.end(), {other, five[0]});
    ExpectSafe(harness, make.Nd({3, 5}, 1, pairs));
  }
  const std::vector<Index> good = {4, 0, 3, 3};
  ExpectSafe(harness, Cases<Index>(DataType::kUInt8, false).Elements(5, good));
}

// Large enough to be divided among threads and read in vectors; edge values occur at every vector position.
template <typename Index>
void RunLarge(DmlHarness& harness) {
  auto places = [random = std::mt19937_64(TestSeed())](uint32_t count, uint32_t size) mutable {
    const std::vector<Index> edges = EdgesOf<Index>(size);
    std::vector<Index> result(count);
    for (uint32_t i = 0; i < count; ++i) {
      result[i] = i >= 1000 && i % 7 == 0 ? edges[random() % edges.size()] : Index(random() % size);
    }
    return result;
  };
  ExpectSafe(harness, Cases<Index>(DataType::kFloat16, false).Elements(30000, places(40001, 30000)));
  ExpectSafe(harness, Cases<Index>(DataType::kUInt8, true).Nd({3000}, 8, places(40001, 3000)));
  ExpectSafe(harness, Cases<Index>(DataType::kUInt8, false).Nd({300, 300}, 1, places(2 * 262145, 300)));
}

TEST(IndexSafety, NoIndexReachesOtherMemory) {
  for (const uint32_t threads : {1u, 7u}) {
    InChild(threads, [] {
      EnableDebugLayer();
      DmlHarness harness;
      const auto run = [&]<typename Index>(Index) {
        if (!::testing::Test::HasFailure()) RunSmall<Index>(harness);
        if (!::testing::Test::HasFailure()) RunLarge<Index>(harness);
      };
      run(int32_t{});
      run(int64_t{});
      run(uint32_t{});
      run(uint64_t{});
      return std::string();
    });
  }
}

}  // namespace
}  // namespace anydml::testing
