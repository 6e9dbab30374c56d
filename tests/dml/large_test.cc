// Tensors of 2^31 and more elements. Only where the adapter has the memory to spare, its own.
#include "dml/dml_test.h"

#include <dxgi1_6.h>

namespace anydml::test {
namespace {

constexpr uint32_t kElements = (uint32_t{1} << 31) + 64;

class LargeTest : public DmlTest {
 protected:
  // A buffer of zeros with some bytes of another value.
  ComPtr<ID3D12Resource> Sparse(const std::vector<std::pair<uint64_t, uint8_t>>& bytes) {
    const auto buffer = h().CreateBuffer(kElements);
    for (const auto& [at, value] : bytes) {
      std::vector<uint8_t> word(4);
      word[at % 4] = value;
      const auto small = h().Upload(word);
      h().list()->CopyBufferRegion(buffer.Get(), at / 4 * 4, small.Get(), 0, 4);
      h().ExecuteAndWait();
    }
    return buffer;
  }

  bool HasRoom() {
    ComPtr<IDXGIFactory4> factory;
    ComPtr<IDXGIAdapter> adapter;
    DXGI_ADAPTER_DESC desc{};
    Check(CreateDXGIFactory2(0, IID_PPV_ARGS(&factory)), "CreateDXGIFactory2");
    Check(factory->EnumAdapterByLuid(h().d3d()->GetAdapterLuid(), IID_PPV_ARGS(&adapter)),
          "EnumAdapterByLuid");
    Check(adapter->GetDesc(&desc), "GetDesc");
    return desc.DedicatedVideoMemory >= uint64_t{32} << 30;
  }
};

TEST_F(LargeTest, TopKOfOneRow) {
  if (!HasRoom()) GTEST_SKIP() << "less than 32 GiB of memory of its own";
  const Tensor input(DML_TENSOR_DATA_TYPE_UINT8, {1, kElements});
  const Tensor values(DML_TENSOR_DATA_TYPE_UINT8, {1, 5}), indices(DML_TENSOR_DATA_TYPE_UINT32, {1, 5});
  const DML_TOP_K1_OPERATOR_DESC desc = {
      input.desc(), values.desc(), indices.desc(), 1, 5, DML_AXIS_DIRECTION_DECREASING};
  const auto op = h().Compile(DML_OPERATOR_TOP_K1, &desc);
  h().Initialize(op.Get());
  const auto from = Sparse({{3, 7}, {kElements - 1, 9}, {kElements - 17, 7}, {uint32_t{1} << 31, 8}});
  const auto out_values = h().CreateBuffer(8), out_indices = h().CreateBuffer(32);
  h().Dispatch(op.Get(), {{from.Get()}}, {{out_values.Get()}, {out_indices.Get()}});
  EXPECT_EQ(h().Download<uint8_t>(out_values.Get(), 5), (std::vector<uint8_t>{9, 8, 7, 7, 0}));
  EXPECT_EQ(h().Download<uint32_t>(out_indices.Get(), 5),
            (std::vector<uint32_t>{kElements - 1, uint32_t{1} << 31, 3, kElements - 17, 0}));
}

TEST_F(LargeTest, ScatterIntoTheEnd) {
  if (!HasRoom()) GTEST_SKIP() << "less than 32 GiB of memory of its own";
  const Tensor input(DML_TENSOR_DATA_TYPE_UINT8, {1, kElements}),
      output(DML_TENSOR_DATA_TYPE_UINT8, {1, kElements});
  const Tensor indices(DML_TENSOR_DATA_TYPE_UINT32, {4, 1}), updates(DML_TENSOR_DATA_TYPE_UINT8, {1, 4});
  const DML_SCATTER_ND_OPERATOR_DESC desc = {
      input.desc(), indices.desc(), updates.desc(), output.desc(), 1, 2};
  const auto op = h().Compile(DML_OPERATOR_SCATTER_ND, &desc);
  h().Initialize(op.Get());
  const auto from = Sparse({{kElements - 2, 5}});
  const auto at = h().Upload(std::vector<uint32_t>{kElements - 1, 0, kElements - 4, kElements - 1});
  const auto what = h().Upload(std::vector<uint8_t>{1, 2, 3, 4});
  const auto to = h().CreateBuffer(kElements);
  h().Dispatch(op.Get(), {{from.Get()}, {at.Get()}, {what.Get()}}, {{to.Get()}});
  const auto tail = h().CreateBuffer(4), head = h().CreateBuffer(4);
  h().list()->CopyBufferRegion(tail.Get(), 0, to.Get(), kElements - 4, 4);
  h().list()->CopyBufferRegion(head.Get(), 0, to.Get(), 0, 4);
  EXPECT_EQ(h().Download<uint8_t>(tail.Get(), 4), (std::vector<uint8_t>{3, 0, 5, 4}));
  EXPECT_EQ(h().Download<uint8_t>(head.Get(), 4), (std::vector<uint8_t>{2, 0, 0, 0}));
}

}  // namespace
}  // namespace anydml::test
