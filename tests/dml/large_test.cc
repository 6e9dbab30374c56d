// Tensors of 2^31 and more elements, up to the 2^32 - 4 that are possible as a multiple of 4 bytes. If memory
// is short, tests are skipped and report how much is missing. On the CPU, memory is allocated when it is
// written: a tensor of zeros takes none. ANYDML_TEST_LARGE=1 adds tests that take minutes.
#include <dxgi1_6.h>

#include <fstream>
#include <iostream>
#include <sstream>
#include <type_traits>

#include "dml/dml_test.h"
#include "base/sanitizers.h"

namespace anydml::test {
namespace {

constexpr uint32_t k2G = uint32_t{1} << 31;
constexpr uint32_t kMost = UINT32_MAX - 3;

constexpr char kTakesMinutes[] = "takes minutes; ANYDML_TEST_LARGE=1 runs it";

using Places = std::vector<std::pair<uint64_t, uint8_t>>;

class LargeTest : public DmlTest {
 protected:
  void SetUp() override {
    DmlTest::SetUp();
    if (kThreadSanitizer) {
      GTEST_SKIP() << "ThreadSanitizer needs several times the memory that a kernel looks at";
    }
  }

  bool on_cpu() { return AdapterOf(h().d3d()) == "cpu"; }

  // A buffer of zeros with a few bytes of another value.
  ComPtr<ID3D12Resource> Sparse(uint64_t size, const Places& places) {
    const auto buffer = h().CreateBuffer(size);
    for (const auto& [at, value] : places) {
      std::vector<uint8_t> word = Read(buffer.Get(), at / 4 * 4, 4);
      word[at % 4] = value;
      const auto small = h().Upload(word);
      h().list()->CopyBufferRegion(buffer.Get(), at / 4 * 4, small.Get(), 0, 4);
      h().ExecuteAndWait();
    }
    return buffer;
  }

  std::vector<uint8_t> Read(ID3D12Resource* buffer, uint64_t at, uint64_t bytes) {
    const auto part = h().CreateBuffer(bytes);
    h().list()->CopyBufferRegion(part.Get(), 0, buffer, at, bytes);
    return h().Download(part.Get(), bytes);
  }
  void ExpectBytes(ID3D12Resource* buffer, const Places& places) {
    for (const auto& [at, value] : places) EXPECT_EQ(Read(buffer, at / 4 * 4, 4)[at % 4], value) << at;
  }

  // The bytes still available on the adapter.
  uint64_t Room() {
    if (on_cpu()) {
      std::ifstream file("/proc/meminfo");
      for (std::string word; file >> word;) {
        uint64_t kib = 0;
        if (word == "MemAvailable:" && file >> kib) return kib << 10;
      }
      return 0;
    }
    ComPtr<IDXGIFactory4> factory;
    ComPtr<IDXGIAdapter> adapter;
    DXGI_ADAPTER_DESC desc{};
    Check(CreateDXGIFactory2(0, IID_PPV_ARGS(&factory)), "CreateDXGIFactory2");
    Check(factory->EnumAdapterByLuid(h().d3d()->GetAdapterLuid(), IID_PPV_ARGS(&adapter)),
          "EnumAdapterByLuid");
    Check(adapter->GetDesc(&desc), "GetDesc");
    return desc.DedicatedVideoMemory;
  }
  // A message about the memory that is missing for that many bytes plus a reserve; empty: none.
  std::string Missing(uint64_t bytes) {
    constexpr uint64_t kSpare = uint64_t{2} << 30;
    const uint64_t room = Room();
    if (room >= bytes + kSpare) return {};
    return "needs " + std::to_string((bytes + kSpare) >> 20) + " MiB of memory, " +
           std::to_string(room >> 20) + " are there";
  }

  // Implementations of TOP_K except the reference, which takes hours.
  std::vector<std::string> Implementations() {
    const TopK small({1, 8}, 1, 3);
    const auto op = h().Compile(DML_OPERATOR_TOP_K1, &small.desc);
    std::istringstream lines(AnyDmlExplainImplementation(op.Get()));
    std::vector<std::string> names;
    for (std::string line; std::getline(lines, line);) names.push_back(line.substr(0, line.find(':')));
    std::erase(names, "cpu.reference");
    return names;
  }

  // Of bytes, along the last axis.
  struct Selection {
    std::vector<uint8_t> values;
    std::vector<uint32_t> indices;
    std::string skipped;
  };
  Selection TopKOf(DML_TENSOR_DATA_TYPE type, const std::vector<uint32_t>& sizes, uint32_t k,
                   DML_AXIS_DIRECTION direction, const Places& places) {
    const uint32_t rows = sizes[0];
    const Tensor input(type, sizes), values(type, {rows, k}), indices(DML_TENSOR_DATA_TYPE_UINT32, {rows, k});
    const DML_TOP_K1_OPERATOR_DESC desc = {input.desc(), values.desc(), indices.desc(), 1, k, direction};
    ComPtr<IDMLCompiledOperator> op;
    const HRESULT compiled = h().dml()->CompileOperator(h().CreateOperator(DML_OPERATOR_TOP_K1, &desc).Get(),
                                                        DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&op));
    if (compiled == DXGI_ERROR_UNSUPPORTED) return {{}, {}, LastError()};
    Check(compiled, "CompileOperator");
    Selection result;
    const uint64_t temporary = op->GetBindingProperties().TemporaryResourceSize;
    result.skipped = Missing(temporary + values.bytes() + indices.bytes() + (on_cpu() ? 0 : input.bytes()));
    if (!result.skipped.empty()) return result;
    h().Initialize(op.Get());
    const auto from = Sparse(input.bytes(), places);
    const auto to_values = h().CreateBuffer(values.bytes()), to_indices = h().CreateBuffer(indices.bytes());
    h().Dispatch(op.Get(), {{from.Get()}}, {{to_values.Get()}, {to_indices.Get()}});
    Check(h().dml()->GetDeviceRemovedReason(), "GetDeviceRemovedReason");
    // The first and the last ones of the outputs.
    const uint64_t places_taken = uint64_t{rows} * k, ends = std::min<uint64_t>(places_taken, 64);
    for (const uint64_t begin : {uint64_t{0}, (places_taken - ends) / 4 * 4}) {
      const auto bytes = Read(to_values.Get(), begin, (ends + 3) / 4 * 4);
      const auto words = FromBytes<uint32_t>(Read(to_indices.Get(), begin * 4, ends * 4), ends);
      result.values.insert(result.values.end(), bytes.begin(), bytes.begin() + static_cast<long>(ends));
      result.indices.insert(result.indices.end(), words.begin(), words.end());
      if (ends == places_taken) break;  // all of them
    }
    return result;
  }

  // Scatters into zeros with a 5 in the second to last position; the indices are the ends of the tensor,
  // twice the last.
  template <typename Index>
  void Scatter(uint32_t elements, bool elements_operator, bool in_place) {
    SCOPED_TRACE(::testing::Message()
                 << elements << (elements_operator ? " SCATTER_ELEMENTS" : " SCATTER_ND"));
    const Tensor data(DML_TENSOR_DATA_TYPE_UINT8, {1, elements});
    const Tensor indices(DataTypeOf<Index>::value,
                         elements_operator ? std::vector<uint32_t>{1, 6} : std::vector<uint32_t>{6, 1});
    const Tensor updates(DML_TENSOR_DATA_TYPE_UINT8, {1, 6});
    const DML_SCATTER_ND_OPERATOR_DESC nd = {data.desc(), indices.desc(), updates.desc(), data.desc(), 1, 2};
    const DML_SCATTER_ELEMENTS_OPERATOR_DESC along = {data.desc(), indices.desc(), updates.desc(),
                                                      data.desc(), 1};
    const auto op = elements_operator ? h().Compile(DML_OPERATOR_SCATTER_ELEMENTS, &along)
                                      : h().Compile(DML_OPERATOR_SCATTER_ND, &nd);
    h().Initialize(op.Get());
    const auto from = Sparse(data.bytes(), {{elements - 2, 5}});
    // The last two are the first and the last element counted from the other end, or out of range.
    const auto at = h().Upload(std::vector<Index>{
        static_cast<Index>(elements - 1), 0, static_cast<Index>(k2G), static_cast<Index>(elements - 1),
        static_cast<Index>(-1), static_cast<Index>(-static_cast<int64_t>(elements))});
    const auto what = h().Upload(std::vector<uint8_t>{1, 2, 3, 4, 6, 7, 0, 0});
    const auto to = in_place ? from : h().CreateBuffer(data.bytes());
    h().Dispatch(op.Get(), {{from.Get()}, {at.Get()}, {what.Get()}}, {{to.Get()}});
    Check(h().dml()->GetDeviceRemovedReason(), "GetDeviceRemovedReason");
    constexpr bool kWraps = std::is_signed_v<Index>;
    ExpectBytes(to.Get(), {{0, kWraps ? 7 : 2},
                           {1, 0},
                           {k2G - 1, 0},
                           {k2G, 3},
                           {k2G + 1, 0},
                           {elements - 3, 0},
                           {elements - 2, 5},
                           {elements - 1, kWraps ? 6 : 4}});
  }
};

TEST_F(LargeTest, TopKOfTheLongestRow) {
  const Places places = {{3, 7}, {k2G, 8}, {k2G + 1, 0xF0}, {kMost - 17, 7}, {kMost - 1, 9}};
  Selection found = TopKOf(DML_TENSOR_DATA_TYPE_UINT8, {1, kMost}, 6, DML_AXIS_DIRECTION_DECREASING, places);
  if (!found.skipped.empty()) GTEST_SKIP() << found.skipped;
  EXPECT_EQ(found.values, (std::vector<uint8_t>{0xF0, 9, 8, 7, 7, 0}));
  EXPECT_EQ(found.indices, (std::vector<uint32_t>{k2G + 1, kMost - 1, k2G, 3, kMost - 17, 0}));
  // -16 is the smallest.
  found = TopKOf(DML_TENSOR_DATA_TYPE_INT8, {1, kMost}, 3, DML_AXIS_DIRECTION_INCREASING, places);
  EXPECT_EQ(found.values, (std::vector<uint8_t>{0xF0, 0, 0}));
  EXPECT_EQ(found.indices, (std::vector<uint32_t>{k2G + 1, 0, 1}));
}

TEST_F(LargeTest, TopKOfRowsFarApart) {
  const Places places = {{5, 1}, {k2G - 33, 2}, {uint64_t{k2G} - 32 + 5, 3}, {kMost - 64, 4}};
  const Selection found =
      TopKOf(DML_TENSOR_DATA_TYPE_UINT8, {2, k2G - 32}, 3, DML_AXIS_DIRECTION_DECREASING, places);
  if (!found.skipped.empty()) GTEST_SKIP() << found.skipped;
  EXPECT_EQ(found.values, (std::vector<uint8_t>{2, 1, 0, 4, 3, 0}));
  EXPECT_EQ(found.indices,
            (std::vector<uint32_t>{k2G - 33, 5, 0, static_cast<uint32_t>(kMost - 64 - (k2G - 32)), 5, 0}));
}

TEST_F(LargeTest, EveryImplementationOnTheLongestRow) {
  if (std::getenv("ANYDML_TEST_LARGE") == nullptr) GTEST_SKIP() << kTakesMinutes;
  const Places places = {{3, 7}, {k2G, 8}, {kMost - 17, 7}, {kMost - 1, 9}};
  for (const std::string& name : Implementations()) {
    const ScopedEnv forced("ANYDML_IMPLEMENTATION", name.c_str());
    MakeHarness(DML_CREATE_DEVICE_FLAG_NONE);
    const Selection found =
        TopKOf(DML_TENSOR_DATA_TYPE_INT8, {1, kMost}, 5, DML_AXIS_DIRECTION_DECREASING, places);
    std::cout << name << ": " << (found.skipped.empty() ? "done" : "skipped, " + found.skipped) << "\n";
    if (!found.skipped.empty()) continue;
    EXPECT_EQ(found.values, (std::vector<uint8_t>{9, 8, 7, 7, 0})) << name;
    EXPECT_EQ(found.indices, (std::vector<uint32_t>{kMost - 1, k2G, 3, kMost - 17, 0})) << name;
  }
}

// Also K beyond 2^31: the rest of the row consists of zeros, in their order.
TEST_F(LargeTest, MoreThanHalfOfTheLongestRow) {
  if (std::getenv("ANYDML_TEST_LARGE") == nullptr) GTEST_SKIP() << kTakesMinutes;
  constexpr uint32_t kPlaces = k2G + 64;
  // The others need more memory, or take hours.
  const ScopedEnv forced("ANYDML_IMPLEMENTATION", on_cpu() ? "cpu.sort" : "");
  MakeHarness(DML_CREATE_DEVICE_FLAG_NONE);
  const Selection found = TopKOf(DML_TENSOR_DATA_TYPE_INT8, {1, k2G + 1000}, kPlaces,
                                 DML_AXIS_DIRECTION_DECREASING, {{7, 1}, {k2G + 999, 2}});
  if (!found.skipped.empty()) GTEST_SKIP() << found.skipped;
  for (uint32_t i = 0; i < 128; ++i) {
    const uint32_t place = i < 64 ? i : kPlaces - 128 + i;
    const uint32_t zero = place - 2 < 7 ? place - 2 : place - 1;  // 7 is none
    EXPECT_EQ(found.indices[i], place == 0 ? k2G + 999 : place == 1 ? 7 : zero) << place;
    EXPECT_EQ(found.values[i], place == 0 ? 2 : place == 1 ? 1 : 0) << place;
  }
}

// In place nothing is copied, so that no further memory is needed.
TEST_F(LargeTest, ScatterIntoTheMost) {
  if (const std::string missing = Missing(on_cpu() ? 0 : kMost); !missing.empty()) GTEST_SKIP() << missing;
  for (const bool elements_operator : {false, true}) {
    Scatter<uint32_t>(kMost, elements_operator, true);
    Scatter<int64_t>(kMost, elements_operator, true);
  }
}

TEST_F(LargeTest, ScatterIntoACopy) {
  constexpr uint32_t kElements = k2G + 64;
  const uint64_t buffers = on_cpu() ? 1 : 3;
  if (const std::string missing = Missing(buffers * kElements); !missing.empty()) GTEST_SKIP() << missing;
  Scatter<uint32_t>(kElements, false, false);
  Scatter<int64_t>(kElements, true, false);
}

}  // namespace
}  // namespace anydml::test
