// The rules of QueryInterface for every class; identity; which objects keep others alive.
#include "d3d12/d3d12_test.h"

namespace anydml::testing {
namespace {

using Iids = std::vector<GUID>;

// Every interface of the object leads to every other one, and to one IUnknown.
void ExpectLaws(IUnknown* object, const Iids& iids) {
  Ptr<IUnknown> identity;
  ASSERT_EQ(object->QueryInterface(IID_PPV_ARGS(&identity)), S_OK);
  for (size_t i = 0; i < iids.size(); ++i) {
    Ptr<IUnknown> from;
    ASSERT_EQ(object->QueryInterface(iids[i], reinterpret_cast<void**>(&from)), S_OK) << "interface " << i;
    Ptr<IUnknown> unknown;
    ASSERT_EQ(from->QueryInterface(IID_PPV_ARGS(&unknown)), S_OK);
    EXPECT_EQ(unknown.get(), identity.get()) << "interface " << i;
    for (size_t j = 0; j < iids.size(); ++j) {
      Ptr<IUnknown> to, again;
      EXPECT_EQ(from->QueryInterface(iids[j], reinterpret_cast<void**>(&to)), S_OK) << i << " to " << j;
      EXPECT_EQ(object->QueryInterface(iids[j], reinterpret_cast<void**>(&again)), S_OK);
      EXPECT_EQ(to.get(), again.get()) << i << " to " << j;
    }
    void* none = object;
    EXPECT_EQ(from->QueryInterface(GUID{1, 2, 3, {4}}, &none), E_NOINTERFACE);
    EXPECT_EQ(none, nullptr);
    EXPECT_EQ(from->QueryInterface(iids[i], nullptr), E_POINTER);
  }
}

#define ID(name) __uuidof(name)
const Iids kChild = {ID(IUnknown), ID(ID3D12Object), ID(ID3D12DeviceChild)};

Iids Child(Iids more) {
  more.insert(more.end(), kChild.begin(), kChild.end());
  return more;
}

class ComTest : public D3D12Test {
 protected:
  void ExpectChild(ID3D12DeviceChild* child, const Iids& iids) {
    ExpectLaws(child, Child(iids));
    Ptr<IUnknown> mine, its;
    ASSERT_EQ(device()->QueryInterface(IID_PPV_ARGS(&mine)), S_OK);
    ASSERT_EQ(child->GetDevice(IID_PPV_ARGS(&its)), S_OK);
    EXPECT_EQ(mine.get(), its.get());
    EXPECT_EQ(child->GetDevice(ID(ID3D12Device), nullptr), E_POINTER);
    EXPECT_EQ(child->SetName(L"n"), S_OK);
    EXPECT_EQ(child->SetName(nullptr), S_OK);
  }
};

TEST_F(ComTest, Device) {
  ExpectLaws(device(),
             {ID(IUnknown), ID(ID3D12Object), ID(ID3D12Device), ID(ID3D12Device1), ID(ID3D12Device2),
              ID(ID3D12Device3), ID(ID3D12Device4), ID(ID3D12Device5), ID(ID3D12Device6), ID(ID3D12Device7),
              ID(ID3D12Device8), ID(ID3D12Device9), ID(ID3D12InfoQueue), ID(ID3D12InfoQueue1)});
  Ptr<ID3D12DebugDevice> debug;
  EXPECT_EQ(device()->QueryInterface(IID_PPV_ARGS(&debug)), E_NOINTERFACE);  // the debug layer is off
}

TEST_F(ComTest, Children) {
  const auto queue = CreateQueue(device());
  ExpectChild(queue.get(), {ID(ID3D12Pageable), ID(ID3D12CommandQueue)});
  const auto allocator = CreateAllocator(device());
  ExpectChild(allocator.get(), {ID(ID3D12Pageable), ID(ID3D12CommandAllocator)});
  const auto list = CreateList(device(), allocator.get());
  ExpectChild(list.get(), {ID(ID3D12CommandList), ID(ID3D12GraphicsCommandList),
                           ID(ID3D12GraphicsCommandList1), ID(ID3D12GraphicsCommandList2),
                           ID(ID3D12GraphicsCommandList3), ID(ID3D12GraphicsCommandList4)});
  const auto fence = CreateFence(device());
  ExpectChild(fence.get(), {ID(ID3D12Pageable), ID(ID3D12Fence), ID(ID3D12Fence1)});
  const auto buffer = Buffer(64);
  ExpectChild(buffer.get(),
              {ID(ID3D12Pageable), ID(ID3D12Resource), ID(ID3D12Resource1), ID(ID3D12Resource2)});
  const auto descriptors = CreateDescriptors(device(), 1, true);
  ExpectChild(descriptors.get(), {ID(ID3D12Pageable), ID(ID3D12DescriptorHeap)});
  const D3D12_HEAP_DESC heap_desc = {64, HeapProperties(D3D12_HEAP_TYPE_DEFAULT), 0, D3D12_HEAP_FLAG_NONE};
  Ptr<ID3D12Heap> heap;
  ASSERT_EQ(device()->CreateHeap(&heap_desc, IID_PPV_ARGS(&heap)), S_OK);
  ExpectChild(heap.get(), {ID(ID3D12Pageable), ID(ID3D12Heap), ID(ID3D12Heap1)});
  const D3D12_QUERY_HEAP_DESC query_desc = {D3D12_QUERY_HEAP_TYPE_TIMESTAMP, 1, 0};
  Ptr<ID3D12QueryHeap> queries;
  ASSERT_EQ(device()->CreateQueryHeap(&query_desc, IID_PPV_ARGS(&queries)), S_OK);
  ExpectChild(queries.get(), {ID(ID3D12Pageable), ID(ID3D12QueryHeap)});
}

TEST_F(ComTest, ChildKeepsTheDevice) {
  auto fence = CreateFence(device());
  ReleaseDevice();
  Ptr<ID3D12Device> device;
  EXPECT_EQ(fence->GetDevice(IID_PPV_ARGS(&device)), S_OK);
  EXPECT_EQ(device->GetNodeCount(), 1u);
}

TEST_F(ComTest, InfoQueueKeepsTheDevice) {
  Ptr<ID3D12InfoQueue> queue;
  ASSERT_EQ(device()->QueryInterface(IID_PPV_ARGS(&queue)), S_OK);
  ReleaseDevice();
  EXPECT_EQ(queue->AddApplicationMessage(D3D12_MESSAGE_SEVERITY_INFO, "alive"), S_OK);
}

TEST_F(ComTest, WrongInterfaceCreatesNothing) {
  void* object = this;
  EXPECT_EQ(device()->CreateFence(0, D3D12_FENCE_FLAG_NONE, ID(ID3D12Resource), &object), E_NOINTERFACE);
  EXPECT_EQ(object, nullptr);
  EXPECT_EQ(AnyDmlGetLiveObjectCount(), 1u);
}

using AdapterComTest = NoLeakTest;

TEST_F(AdapterComTest, DxCore) {
  Ptr<IDXCoreAdapterFactory> factory;
  ASSERT_EQ(DXCoreCreateAdapterFactory(IID_PPV_ARGS(&factory)), S_OK);
  ExpectLaws(factory.get(), {ID(IUnknown), ID(IDXCoreAdapterFactory), ID(IDXCoreAdapterFactory1)});
  Ptr<IDXCoreAdapterList> list;
  ASSERT_EQ(factory->CreateAdapterList(1, &DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE, IID_PPV_ARGS(&list)),
            S_OK);
  ExpectLaws(list.get(), {ID(IUnknown), ID(IDXCoreAdapterList)});
  Ptr<IDXCoreAdapter> adapter;
  ASSERT_EQ(list->GetAdapter(0, IID_PPV_ARGS(&adapter)), S_OK);
  ExpectLaws(adapter.get(), {ID(IUnknown), ID(IDXCoreAdapter), ID(IDXCoreAdapter1)});
}

TEST_F(AdapterComTest, Dxgi) {
  Ptr<IDXGIFactory> factory;
  ASSERT_EQ(CreateDXGIFactory1(IID_PPV_ARGS(&factory)), S_OK);
  ExpectLaws(factory.get(),
             {ID(IUnknown), ID(IDXGIObject), ID(IDXGIFactory), ID(IDXGIFactory1), ID(IDXGIFactory2),
              ID(IDXGIFactory3), ID(IDXGIFactory4), ID(IDXGIFactory5), ID(IDXGIFactory6), ID(IDXGIFactory7)});
  Ptr<IDXGIAdapter> adapter;
  ASSERT_EQ(factory->EnumAdapters(0, &adapter), S_OK);
  ExpectLaws(adapter.get(), {ID(IUnknown), ID(IDXGIObject), ID(IDXGIAdapter), ID(IDXGIAdapter1),
                             ID(IDXGIAdapter2), ID(IDXGIAdapter3), ID(IDXGIAdapter4)});
}

TEST_F(AdapterComTest, Debug) {
  Ptr<ID3D12Debug> debug;
  ASSERT_EQ(D3D12GetDebugInterface(IID_PPV_ARGS(&debug)), S_OK);
  ExpectLaws(debug.get(), {ID(IUnknown), ID(ID3D12Debug), ID(ID3D12Debug1), ID(ID3D12Debug2),
                           ID(ID3D12Debug3), ID(ID3D12Debug4), ID(ID3D12Debug5), ID(ID3D12Debug6)});
}

}  // namespace
}  // namespace anydml::testing
