#include "d3d12/d3d12_test.h"

namespace anydml::testing {
namespace {

class ResourceTest : public D3D12Test {
 protected:
  HRESULT Create(const D3D12_RESOURCE_DESC& desc, D3D12_HEAP_TYPE type = D3D12_HEAP_TYPE_DEFAULT) {
    const D3D12_HEAP_PROPERTIES properties = HeapProperties(type);
    Ptr<ID3D12Resource> buffer;
    const HRESULT hr = device()->CreateCommittedResource(&properties, D3D12_HEAP_FLAG_NONE, &desc,
                                                         InitialState(type), nullptr, IID_PPV_ARGS(&buffer));
    EXPECT_EQ(SUCCEEDED(hr), static_cast<bool>(buffer));
    return hr;
  }
  HRESULT CreateWith(D3D12_HEAP_PROPERTIES properties,
                     D3D12_RESOURCE_STATES state = D3D12_RESOURCE_STATE_COMMON,
                     D3D12_HEAP_FLAGS flags = D3D12_HEAP_FLAG_NONE) {
    const D3D12_RESOURCE_DESC desc = BufferDesc(64);
    Ptr<ID3D12Resource> buffer;
    return device()->CreateCommittedResource(&properties, flags, &desc, state, nullptr,
                                             IID_PPV_ARGS(&buffer));
  }
  Ptr<ID3D12Heap> Heap(uint64_t bytes, D3D12_HEAP_TYPE type = D3D12_HEAP_TYPE_DEFAULT) {
    const D3D12_HEAP_DESC desc = {bytes, HeapProperties(type), 0, D3D12_HEAP_FLAG_ALLOW_ONLY_BUFFERS};
    Ptr<ID3D12Heap> heap;
    EXPECT_EQ(device()->CreateHeap(&desc, IID_PPV_ARGS(&heap)), S_OK);
    return heap;
  }
  Ptr<ID3D12Resource> Place(ID3D12Heap* heap, uint64_t offset, uint64_t bytes, HRESULT expected = S_OK,
                            D3D12_RESOURCE_STATES state = D3D12_RESOURCE_STATE_COMMON) {
    const D3D12_RESOURCE_DESC desc = BufferDesc(bytes);
    Ptr<ID3D12Resource> buffer;
    EXPECT_EQ(device()->CreatePlacedResource(heap, offset, &desc, state, nullptr, IID_PPV_ARGS(&buffer)),
              expected);
    return buffer;
  }
};

TEST_F(ResourceTest, DescriptionsThatAreNoBuffer) {
  const auto broken = [](auto change) {
    D3D12_RESOURCE_DESC desc = BufferDesc(64);
    change(desc);
    return desc;
  };
  EXPECT_EQ(Create(BufferDesc(64)), S_OK);
  EXPECT_EQ(Create(BufferDesc(1)), S_OK);
  EXPECT_EQ(Create(BufferDesc(0)), E_INVALIDARG);
  EXPECT_TRUE(LastErrorHas("Width"));
  EXPECT_EQ(Create(broken([](auto& d) { d.Height = 2; })), E_INVALIDARG);
  EXPECT_EQ(Create(broken([](auto& d) { d.DepthOrArraySize = 0; })), E_INVALIDARG);
  EXPECT_EQ(Create(broken([](auto& d) { d.MipLevels = 0; })), E_INVALIDARG);
  EXPECT_EQ(Create(broken([](auto& d) { d.Format = DXGI_FORMAT_R32_FLOAT; })), E_INVALIDARG);
  EXPECT_EQ(Create(broken([](auto& d) { d.SampleDesc = {2, 0}; })), E_INVALIDARG);
  EXPECT_EQ(Create(broken([](auto& d) { d.Layout = D3D12_TEXTURE_LAYOUT_UNKNOWN; })), E_INVALIDARG);
  EXPECT_EQ(Create(broken([](auto& d) { d.Flags = D3D12_RESOURCE_FLAG_ALLOW_RENDER_TARGET; })), E_INVALIDARG);
  EXPECT_EQ(Create(broken([](auto& d) { d.Alignment = 4096; })), E_INVALIDARG);
  EXPECT_EQ(Create(broken([](auto& d) { d.Alignment = kAlignment; })), S_OK);
  EXPECT_EQ(Create(broken([](auto& d) { d.Dimension = D3D12_RESOURCE_DIMENSION_UNKNOWN; })), E_INVALIDARG);
  EXPECT_EQ(Create(broken([](auto& d) { d.Dimension = D3D12_RESOURCE_DIMENSION_TEXTURE2D; })), E_NOTIMPL);
  EXPECT_TRUE(HasMessage(device(), "texture"));
}

TEST_F(ResourceTest, AbsurdSizesFailCleanly) {
  for (const uint64_t bytes : {UINT64_MAX, UINT64_MAX - 65535, uint64_t{1} << 63, uint64_t{1} << 50}) {
    EXPECT_EQ(Create(BufferDesc(bytes)), E_OUTOFMEMORY) << bytes;
    const D3D12_HEAP_DESC desc = {bytes, HeapProperties(D3D12_HEAP_TYPE_DEFAULT), 0, D3D12_HEAP_FLAG_NONE};
    Ptr<ID3D12Heap> heap;
    EXPECT_EQ(device()->CreateHeap(&desc, IID_PPV_ARGS(&heap)), E_OUTOFMEMORY) << bytes;
  }
  EXPECT_EQ(device()->GetDeviceRemovedReason(), S_OK);
}

DXGI_ADAPTER_DESC AdapterOf(ID3D12Device* device) {
  Ptr<IDXGIFactory4> factory;
  Ptr<IDXGIAdapter> adapter;
  DXGI_ADAPTER_DESC desc{};
  EXPECT_EQ(CreateDXGIFactory2(0, IID_PPV_ARGS(&factory)), S_OK);
  EXPECT_EQ(factory->EnumAdapterByLuid(device->GetAdapterLuid(), IID_PPV_ARGS(&adapter)), S_OK);
  EXPECT_EQ(adapter->GetDesc(&desc), S_OK);
  return desc;
}

TEST_F(ResourceTest, FullMemoryFailsCleanly) {
  const DXGI_ADAPTER_DESC desc = AdapterOf(device());
  if (desc.DedicatedVideoMemory == 0) GTEST_SKIP() << "the adapter has no memory of its own";
  const uint64_t third = desc.DedicatedVideoMemory / 3 / kAlignment * kAlignment;
  std::vector<Ptr<ID3D12Resource>> buffers;
  HRESULT result = S_OK;
  while (buffers.size() < 4 && result == S_OK) {
    const auto properties = anydml::testing::HeapProperties(D3D12_HEAP_TYPE_DEFAULT);
    const auto buffer_desc = BufferDesc(third);
    Ptr<ID3D12Resource> buffer;
    result = device()->CreateCommittedResource(&properties, D3D12_HEAP_FLAG_NONE, &buffer_desc,
                                               D3D12_RESOURCE_STATE_COMMON, nullptr, IID_PPV_ARGS(&buffer));
    if (result == S_OK) buffers.push_back(buffer);
  }
  EXPECT_EQ(result, E_OUTOFMEMORY);
  EXPECT_TRUE(LastErrorHas("memory"));
  EXPECT_GE(buffers.size(), 2u);
  EXPECT_EQ(device()->GetDeviceRemovedReason(), S_OK);
  Buffer(kAlignment);  // a small one still fits
  buffers.clear();
  Buffer(2 * third);  // and memory that was freed is available again, in other sizes
}

TEST_F(ResourceTest, HugeBuffersAreNotTouched) {
  const DXGI_ADAPTER_DESC desc = AdapterOf(device());
  if (desc.DedicatedVideoMemory != 0) GTEST_SKIP() << "memory of its own is not committed lazily";
  const auto first = Buffer(desc.SharedSystemMemory / 2);
  const auto second = Buffer(desc.SharedSystemMemory / 2);
  const auto third = Buffer(desc.SharedSystemMemory / 2);
}

TEST_F(ResourceTest, HeapProperties) {
  auto properties = anydml::testing::HeapProperties(D3D12_HEAP_TYPE_DEFAULT);
  EXPECT_EQ(CreateWith(properties), S_OK);
  properties.CPUPageProperty = D3D12_CPU_PAGE_PROPERTY_WRITE_BACK;
  EXPECT_EQ(CreateWith(properties), E_INVALIDARG);
  properties = anydml::testing::HeapProperties(D3D12_HEAP_TYPE_CUSTOM);
  EXPECT_EQ(CreateWith(properties), E_INVALIDARG);
  properties.CPUPageProperty = D3D12_CPU_PAGE_PROPERTY_WRITE_BACK;
  properties.MemoryPoolPreference = D3D12_MEMORY_POOL_L0;
  EXPECT_EQ(CreateWith(properties), S_OK);
  properties.VisibleNodeMask = 2;
  EXPECT_EQ(CreateWith(properties), E_INVALIDARG);
  EXPECT_EQ(CreateWith(anydml::testing::HeapProperties(static_cast<D3D12_HEAP_TYPE>(0))), E_INVALIDARG);
  EXPECT_EQ(CreateWith(anydml::testing::HeapProperties(static_cast<D3D12_HEAP_TYPE>(99))), E_INVALIDARG);
  EXPECT_EQ(CreateWith(anydml::testing::HeapProperties(D3D12_HEAP_TYPE_DEFAULT), D3D12_RESOURCE_STATE_COMMON,
                       D3D12_HEAP_FLAG_SHARED),
            E_NOTIMPL);
  EXPECT_EQ(CreateWith(anydml::testing::HeapProperties(D3D12_HEAP_TYPE_DEFAULT), D3D12_RESOURCE_STATE_COMMON,
                       static_cast<D3D12_HEAP_FLAGS>(1u << 30)),
            E_INVALIDARG);
}

TEST_F(ResourceTest, InitialStates) {
  const auto upload = anydml::testing::HeapProperties(D3D12_HEAP_TYPE_UPLOAD);
  const auto readback = anydml::testing::HeapProperties(D3D12_HEAP_TYPE_READBACK);
  const auto standard = anydml::testing::HeapProperties(D3D12_HEAP_TYPE_DEFAULT);
  EXPECT_EQ(CreateWith(upload, D3D12_RESOURCE_STATE_GENERIC_READ), S_OK);
  EXPECT_EQ(CreateWith(upload, D3D12_RESOURCE_STATE_COPY_DEST), E_INVALIDARG);
  EXPECT_EQ(CreateWith(readback, D3D12_RESOURCE_STATE_COPY_DEST), S_OK);
  EXPECT_EQ(CreateWith(readback, D3D12_RESOURCE_STATE_GENERIC_READ), E_INVALIDARG);
  EXPECT_EQ(CreateWith(standard, D3D12_RESOURCE_STATE_UNORDERED_ACCESS), S_OK);
  EXPECT_EQ(CreateWith(standard, D3D12_RESOURCE_STATE_UNORDERED_ACCESS | D3D12_RESOURCE_STATE_COPY_SOURCE),
            E_INVALIDARG);
  EXPECT_EQ(CreateWith(standard, static_cast<D3D12_RESOURCE_STATES>(1u << 30)), E_INVALIDARG);
}

TEST_F(ResourceTest, UnorderedAccessNeedsADefaultHeap) {
  const auto desc = BufferDesc(64, D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS);
  EXPECT_EQ(Create(desc), S_OK);
  EXPECT_EQ(Create(desc, D3D12_HEAP_TYPE_UPLOAD), E_INVALIDARG);
  EXPECT_EQ(Create(desc, D3D12_HEAP_TYPE_READBACK), E_INVALIDARG);
}

TEST_F(ResourceTest, MapRules) {
  void* data = this;
  EXPECT_EQ(Buffer(64)->Map(0, nullptr, &data), E_INVALIDARG);
  EXPECT_EQ(data, nullptr);
  const auto buffer = Buffer(64, D3D12_HEAP_TYPE_READBACK);
  void* again = nullptr;
  const D3D12_RANGE range = {0, 64}, too_long = {0, 65}, backwards = {8, 4}, empty = {0, 0};
  EXPECT_EQ(buffer->Map(0, &range, &data), S_OK);
  EXPECT_EQ(buffer->Map(0, &empty, &again), S_OK);
  EXPECT_EQ(data, again);
  EXPECT_EQ(buffer->Map(0, nullptr, nullptr), S_OK);
  EXPECT_EQ(buffer->Map(1, nullptr, &data), E_INVALIDARG);
  EXPECT_EQ(buffer->Map(0, &too_long, &data), E_INVALIDARG);
  EXPECT_EQ(buffer->Map(0, &backwards, &data), E_INVALIDARG);
  for (int i = 0; i < 3; ++i) buffer->Unmap(0, nullptr);
  EXPECT_FALSE(HasMessage(device(), "not mapped"));
  buffer->Unmap(0, nullptr);
  EXPECT_TRUE(HasMessage(device(), "not mapped"));
}

TEST_F(ResourceTest, NewMemoryIsZero) {
  const auto buffer = Buffer(1 << 20, D3D12_HEAP_TYPE_READBACK);
  for (const uint32_t word : Contents(buffer.get())) ASSERT_EQ(word, 0u);
}

TEST_F(ResourceTest, AddressesAreDistinct) {
  const auto a = Buffer(100), b = Buffer(100);
  EXPECT_NE(a->GetGPUVirtualAddress(), 0u);
  EXPECT_EQ(a->GetGPUVirtualAddress() % kAlignment, 0u);
  EXPECT_NE(a->GetGPUVirtualAddress(), b->GetGPUVirtualAddress());
}

TEST_F(ResourceTest, DescriptionsComeBack) {
  const auto buffer =
      Buffer(100, D3D12_HEAP_TYPE_DEFAULT, D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS).As<ID3D12Resource2>();
  EXPECT_EQ(buffer->GetDesc().Width, 100u);
  EXPECT_EQ(buffer->GetDesc().Alignment, kAlignment);
  EXPECT_EQ(buffer->GetDesc1().Flags, D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS);
  D3D12_HEAP_PROPERTIES properties;
  D3D12_HEAP_FLAGS flags;
  EXPECT_EQ(buffer->GetHeapProperties(&properties, &flags), S_OK);
  EXPECT_EQ(properties.Type, D3D12_HEAP_TYPE_DEFAULT);
  EXPECT_EQ(buffer->GetHeapProperties(nullptr, nullptr), S_OK);
}

TEST_F(ResourceTest, PlacedBuffersShareTheHeap) {
  const auto heap = Heap(4 * kAlignment, D3D12_HEAP_TYPE_UPLOAD);
  const auto state = D3D12_RESOURCE_STATE_GENERIC_READ;
  const auto a = Place(heap.get(), 0, 2 * kAlignment, S_OK, state);
  const auto b = Place(heap.get(), kAlignment, kAlignment, S_OK, state);  // inside a
  void *a_data = nullptr, *b_data = nullptr;
  ASSERT_EQ(a->Map(0, nullptr, &a_data), S_OK);
  ASSERT_EQ(b->Map(0, nullptr, &b_data), S_OK);
  static_cast<char*>(b_data)[5] = 77;
  EXPECT_EQ(static_cast<char*>(a_data)[kAlignment + 5], 77);
  EXPECT_EQ(a->GetGPUVirtualAddress() + kAlignment, b->GetGPUVirtualAddress());
}

TEST_F(ResourceTest, PlacementIsChecked) {
  const auto heap = Heap(2 * kAlignment);
  Place(heap.get(), 0, 2 * kAlignment);
  Place(heap.get(), kAlignment, kAlignment);
  Place(heap.get(), 256, 64, E_INVALIDARG);
  Place(heap.get(), 0, 2 * kAlignment + 1, E_INVALIDARG);
  Place(heap.get(), 2 * kAlignment, 1, E_INVALIDARG);
  Place(heap.get(), UINT64_MAX - kAlignment + 1, 64, E_INVALIDARG);
  Place(heap.get(), kAlignment, UINT64_MAX, E_INVALIDARG);
  const D3D12_HEAP_DESC textures = {kAlignment, anydml::testing::HeapProperties(D3D12_HEAP_TYPE_DEFAULT), 0,
                                    D3D12_HEAP_FLAG_DENY_BUFFERS};
  Ptr<ID3D12Heap> no_buffers;
  ASSERT_EQ(device()->CreateHeap(&textures, IID_PPV_ARGS(&no_buffers)), S_OK);
  Place(no_buffers.get(), 0, 64, E_INVALIDARG);
}

TEST_F(ResourceTest, PlacedBufferOutlivesItsHeap) {
  auto heap = Heap(kAlignment, D3D12_HEAP_TYPE_READBACK);
  const auto buffer = Place(heap.get(), 0, 64, S_OK, D3D12_RESOURCE_STATE_COPY_DEST);
  heap.Reset();
  EXPECT_EQ(Contents(buffer.get()).size(), 16u);
}

TEST_F(ResourceTest, HeapChecks) {
  D3D12_HEAP_DESC desc = {0, anydml::testing::HeapProperties(D3D12_HEAP_TYPE_DEFAULT), 0,
                          D3D12_HEAP_FLAG_NONE};
  Ptr<ID3D12Heap> heap;
  EXPECT_EQ(device()->CreateHeap(&desc, IID_PPV_ARGS(&heap)), E_INVALIDARG);
  desc.SizeInBytes = 100;
  desc.Alignment = 5;
  EXPECT_EQ(device()->CreateHeap(&desc, IID_PPV_ARGS(&heap)), E_INVALIDARG);
  desc.Alignment = 0;
  EXPECT_EQ(device()->CreateHeap(&desc, __uuidof(ID3D12Heap), nullptr), S_FALSE);
  ASSERT_EQ(device()->CreateHeap(&desc, IID_PPV_ARGS(&heap)), S_OK);
  EXPECT_EQ(heap->GetDesc().SizeInBytes, 100u);
  EXPECT_EQ(heap->GetDesc().Alignment, kAlignment);
}

TEST_F(ResourceTest, NewerCreationMethods) {
  const auto properties = anydml::testing::HeapProperties(D3D12_HEAP_TYPE_DEFAULT);
  const D3D12_RESOURCE_DESC desc = BufferDesc(64);
  D3D12_RESOURCE_DESC1 desc1{};
  std::memcpy(&desc1, &desc, sizeof(desc));
  Ptr<ID3D12Resource> a, b, c;
  EXPECT_EQ(
      device()->CreateCommittedResource1(&properties, D3D12_HEAP_FLAG_NONE, &desc,
                                         D3D12_RESOURCE_STATE_COMMON, nullptr, nullptr, IID_PPV_ARGS(&a)),
      S_OK);
  EXPECT_EQ(
      device()->CreateCommittedResource2(&properties, D3D12_HEAP_FLAG_NONE, &desc1,
                                         D3D12_RESOURCE_STATE_COMMON, nullptr, nullptr, IID_PPV_ARGS(&b)),
      S_OK);
  const auto heap = Heap(kAlignment);
  EXPECT_EQ(device()->CreatePlacedResource1(heap.get(), 0, &desc1, D3D12_RESOURCE_STATE_COMMON, nullptr,
                                            IID_PPV_ARGS(&c)),
            S_OK);
  EXPECT_EQ(b->GetDesc().Width, c->GetDesc().Width);
}

TEST_F(ResourceTest, AllocationInfo) {
  const D3D12_RESOURCE_DESC descs[] = {BufferDesc(1), BufferDesc(kAlignment + 1)};
  auto info = device()->GetResourceAllocationInfo(0, 2, descs);
  EXPECT_EQ(info.SizeInBytes, 3 * kAlignment);
  EXPECT_EQ(info.Alignment, kAlignment);
  D3D12_RESOURCE_ALLOCATION_INFO1 infos[2];
  info = device()->GetResourceAllocationInfo1(0, 2, descs, infos);
  EXPECT_EQ(infos[1].Offset, kAlignment);
  EXPECT_EQ(infos[1].SizeInBytes, 2 * kAlignment);
  const D3D12_RESOURCE_DESC bad = BufferDesc(0);
  EXPECT_EQ(device()->GetResourceAllocationInfo(0, 1, &bad).SizeInBytes, UINT64_MAX);
  EXPECT_EQ(device()->GetResourceAllocationInfo(0, 0, nullptr).SizeInBytes, UINT64_MAX);
}

TEST_F(ResourceTest, CopyableFootprints) {
  const D3D12_RESOURCE_DESC desc = BufferDesc(1000);
  D3D12_PLACED_SUBRESOURCE_FOOTPRINT layout;
  UINT rows;
  UINT64 row_size, total;
  device()->GetCopyableFootprints(&desc, 0, 1, 512, &layout, &rows, &row_size, &total);
  EXPECT_EQ(layout.Offset, 512u);
  EXPECT_EQ(layout.Footprint.Width, 1000u);
  EXPECT_EQ(layout.Footprint.RowPitch, 1024u);
  EXPECT_EQ(rows, 1u);
  EXPECT_EQ(row_size, 1000u);
  EXPECT_EQ(total, 1000u);
  device()->GetCopyableFootprints(&desc, 0, 1, 0, nullptr, nullptr, nullptr, &total);
  EXPECT_EQ(total, 1000u);
  device()->GetCopyableFootprints(&desc, 1, 1, 0, &layout, nullptr, nullptr, &total);
  EXPECT_EQ(total, UINT64_MAX);
  EXPECT_EQ(layout.Offset, UINT64_MAX);
}

TEST_F(ResourceTest, CustomHeapPropertiesCanBeUsed) {
  for (const auto type : {D3D12_HEAP_TYPE_DEFAULT, D3D12_HEAP_TYPE_UPLOAD, D3D12_HEAP_TYPE_READBACK}) {
    EXPECT_EQ(CreateWith(device()->GetCustomHeapProperties(0, type)), S_OK) << type;
  }
}

TEST_F(ResourceTest, MemoryIsGivenBackAtReleaseEvenIfADescriptorMentionsIt) {
  Ptr<IDXGIFactory4> factory;
  Ptr<IDXGIAdapter3> adapter;
  ASSERT_EQ(CreateDXGIFactory2(0, IID_PPV_ARGS(&factory)), S_OK);
  ASSERT_EQ(factory->EnumAdapterByLuid(device()->GetAdapterLuid(), IID_PPV_ARGS(&adapter)), S_OK);
  const auto usage = [&] {
    DXGI_QUERY_VIDEO_MEMORY_INFO info;
    EXPECT_EQ(adapter->QueryVideoMemoryInfo(0, DXGI_MEMORY_SEGMENT_GROUP_LOCAL, &info), S_OK);
    return info.CurrentUsage;
  };
  const auto heap = CreateDescriptors(device(), 1, false);
  const uint64_t before = usage();
  auto buffer = Buffer(1 << 20, D3D12_HEAP_TYPE_DEFAULT, D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS);
  EXPECT_EQ(usage(), before + (1 << 20));
  D3D12_UNORDERED_ACCESS_VIEW_DESC view{};
  view.Format = DXGI_FORMAT_R32_UINT;
  view.ViewDimension = D3D12_UAV_DIMENSION_BUFFER;
  view.Buffer.NumElements = 16;
  device()->CreateUnorderedAccessView(buffer.get(), nullptr, &view,
                                      heap->GetCPUDescriptorHandleForHeapStart());
  buffer.Reset();
  EXPECT_EQ(usage(), before);
}

}  // namespace
}  // namespace anydml::testing
