// Every method that takes a pointer gets a null that is not allowed: it must not crash but give an error code
// or a message, and the device keeps working.
#include "d3d12/d3d12_test.h"

namespace anydml::testing {
namespace {

using NullTest = D3D12Test;

TEST_F(NullTest, CreationWithoutDescription) {
  void* out = this;
  const auto expect = [&](HRESULT hr) {
    EXPECT_EQ(hr, E_INVALIDARG);
    EXPECT_EQ(out, nullptr);
    out = this;
  };
  expect(device()->CreateCommandQueue(nullptr, __uuidof(ID3D12CommandQueue), &out));
  expect(device()->CreateCommandQueue1(nullptr, GUID{}, __uuidof(ID3D12CommandQueue), &out));
  expect(device()->CreateCommandList(0, {}, nullptr, nullptr, __uuidof(ID3D12CommandList), &out));
  expect(device()->CreateDescriptorHeap(nullptr, __uuidof(ID3D12DescriptorHeap), &out));
  expect(device()->CreateHeap(nullptr, __uuidof(ID3D12Heap), &out));
  expect(device()->CreateHeap1(nullptr, nullptr, __uuidof(ID3D12Heap), &out));
  expect(device()->CreateQueryHeap(nullptr, __uuidof(ID3D12QueryHeap), &out));
  const auto properties = HeapProperties(D3D12_HEAP_TYPE_DEFAULT);
  const auto desc = BufferDesc(64);
  const GUID resource = __uuidof(ID3D12Resource);
  expect(device()->CreateCommittedResource(nullptr, {}, &desc, {}, nullptr, resource, &out));
  expect(device()->CreateCommittedResource(&properties, {}, nullptr, {}, nullptr, resource, &out));
  expect(device()->CreateCommittedResource1(&properties, {}, nullptr, {}, nullptr, nullptr, resource, &out));
  expect(device()->CreateCommittedResource2(&properties, {}, nullptr, {}, nullptr, nullptr, resource, &out));
  expect(device()->CreatePlacedResource(nullptr, 0, &desc, {}, nullptr, resource, &out));
  expect(device()->CreatePlacedResource1(nullptr, 0, nullptr, {}, nullptr, resource, &out));
}

TEST_F(NullTest, CreationWithoutOutputTestsTheArguments) {
  const D3D12_COMMAND_QUEUE_DESC queue = {};
  const D3D12_DESCRIPTOR_HEAP_DESC descriptors = {D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV, 1, {}, 0};
  const D3D12_HEAP_DESC heap_desc = {64, HeapProperties(D3D12_HEAP_TYPE_DEFAULT), 0, D3D12_HEAP_FLAG_NONE};
  const D3D12_QUERY_HEAP_DESC queries = {D3D12_QUERY_HEAP_TYPE_TIMESTAMP, 1, 0};
  const D3D12_RESOURCE_DESC buffer = BufferDesc(64);
  const auto allocator = CreateAllocator(device());
  Ptr<ID3D12Heap> heap;
  ASSERT_EQ(device()->CreateHeap(&heap_desc, IID_PPV_ARGS(&heap)), S_OK);
  const GUID any = __uuidof(IUnknown);
  EXPECT_EQ(device()->CreateCommandQueue(&queue, any, nullptr), S_FALSE);
  EXPECT_EQ(device()->CreateCommandAllocator({}, any, nullptr), S_FALSE);
  EXPECT_EQ(device()->CreateCommandList(0, {}, allocator.get(), nullptr, any, nullptr), S_FALSE);
  EXPECT_EQ(allocator->Reset(), S_OK);  // no list records with it
  EXPECT_EQ(device()->CreateCommandList1(0, {}, {}, any, nullptr), S_FALSE);
  EXPECT_EQ(device()->CreateDescriptorHeap(&descriptors, any, nullptr), S_FALSE);
  EXPECT_EQ(device()->CreateQueryHeap(&queries, any, nullptr), S_FALSE);
  EXPECT_EQ(device()->CreateFence(0, {}, any, nullptr), S_FALSE);
  EXPECT_EQ(device()->CreateCommittedResource(&heap_desc.Properties, {}, &buffer, {}, nullptr, any, nullptr),
            S_FALSE);
  EXPECT_EQ(device()->CreatePlacedResource(heap.get(), 0, &buffer, {}, nullptr, any, nullptr), S_FALSE);
  EXPECT_EQ(device()->CreateComputePipelineState(nullptr, any, nullptr), E_NOTIMPL);
}

TEST_F(NullTest, DeviceMethods) {
  EXPECT_EQ(device()->CheckFeatureSupport(D3D12_FEATURE_D3D12_OPTIONS, nullptr, 0), E_INVALIDARG);
  EXPECT_EQ(device()->MakeResident(1, nullptr), E_INVALIDARG);
  EXPECT_EQ(device()->Evict(1, nullptr), E_INVALIDARG);
  EXPECT_EQ(device()->SetResidencyPriority(1, nullptr, nullptr), E_INVALIDARG);
  EXPECT_EQ(device()->EnqueueMakeResident({}, 1, nullptr, nullptr, 0), E_INVALIDARG);
  EXPECT_EQ(device()->EnumerateMetaCommands(nullptr, nullptr), E_INVALIDARG);
  EXPECT_EQ(device()->CreateSharedHandle(nullptr, nullptr, 0, nullptr, nullptr), E_NOTIMPL);
  EXPECT_EQ(device()->OpenSharedHandle(nullptr, GUID{}, nullptr), E_NOTIMPL);
  EXPECT_EQ(device()->SetBackgroundProcessingMode({}, {}, nullptr, nullptr), S_OK);
  device()->GetCopyableFootprints(nullptr, 0, 1, 0, nullptr, nullptr, nullptr, nullptr);
  device()->GetCopyableFootprints1(nullptr, 0, 1, 0, nullptr, nullptr, nullptr, nullptr);
  device()->GetResourceTiling(nullptr, nullptr, nullptr, nullptr, nullptr, 0, nullptr);
  device()->GetRaytracingAccelerationStructurePrebuildInfo(nullptr, nullptr);
  device()->CheckDriverMatchingIdentifier({}, nullptr);
  EXPECT_EQ(device()->GetResourceAllocationInfo(0, 3, nullptr).SizeInBytes, UINT64_MAX);
  EXPECT_EQ(device()->GetResourceAllocationInfo2(0, 3, nullptr, nullptr).SizeInBytes, UINT64_MAX);
  device()->CreateConstantBufferView(nullptr, {});
  device()->CreateShaderResourceView(nullptr, nullptr, {});
  device()->CreateUnorderedAccessView(nullptr, nullptr, nullptr, {});
  device()->CreateSampler(nullptr, {});
  device()->CopyDescriptors(1, nullptr, nullptr, 1, nullptr, nullptr, {});
  EXPECT_EQ(device()->GetPrivateData(GUID{}, nullptr, nullptr), E_INVALIDARG);
  EXPECT_EQ(device()->SetPrivateData(GUID{}, 4, nullptr), E_INVALIDARG);
  EXPECT_EQ(device()->SetPrivateDataInterface(GUID{}, nullptr), S_OK);
  EXPECT_EQ(device()->SetName(nullptr), S_OK);
  EXPECT_EQ(device()->GetDeviceRemovedReason(), S_OK);
}

TEST_F(NullTest, QueueMethods) {
  const auto queue = CreateQueue(device());
  EXPECT_EQ(queue->Signal(nullptr, 1), E_INVALIDARG);
  EXPECT_EQ(queue->Wait(nullptr, 1), E_INVALIDARG);
  EXPECT_EQ(queue->GetTimestampFrequency(nullptr), E_INVALIDARG);
  EXPECT_EQ(queue->GetClockCalibration(nullptr, nullptr), E_INVALIDARG);
  queue->SetMarker(0, nullptr, 0);
  queue->BeginEvent(0, nullptr, 0);
  queue->EndEvent();
  queue->UpdateTileMappings(nullptr, 0, nullptr, nullptr, nullptr, 0, nullptr, nullptr, nullptr, {});
  queue->CopyTileMappings(nullptr, nullptr, nullptr, nullptr, nullptr, {});
  EXPECT_EQ(device()->GetDeviceRemovedReason(), S_OK);
  queue->ExecuteCommandLists(1, nullptr);
  EXPECT_EQ(device()->GetDeviceRemovedReason(), DXGI_ERROR_INVALID_CALL);
}

TEST_F(NullTest, ListMethods) {
  const auto allocator = CreateAllocator(device());
  const auto list = CreateList(device(), allocator.get());
  const std::vector<std::function<void()>> misuses = {
      [&] { list->CopyBufferRegion(nullptr, 0, nullptr, 0, 0); },
      [&] { list->CopyResource(nullptr, nullptr); },
      [&] { list->CopyTextureRegion(nullptr, 0, 0, 0, nullptr, nullptr); },
      [&] { list->ResourceBarrier(1, nullptr); },
      [&] { list->SetDescriptorHeaps(1, nullptr); },
      [&] { list->ClearUnorderedAccessViewUint({}, {}, nullptr, nullptr, 0, nullptr); },
      [&] { list->ClearUnorderedAccessViewFloat({}, {}, nullptr, nullptr, 0, nullptr); },
      [&] { list->DiscardResource(nullptr, nullptr); },
      [&] { list->EndQuery(nullptr, D3D12_QUERY_TYPE_TIMESTAMP, 0); },
      [&] { list->ResolveQueryData(nullptr, D3D12_QUERY_TYPE_TIMESTAMP, 0, 0, nullptr, 0); },
      [&] { list->AtomicCopyBufferUINT(nullptr, 0, nullptr, 0, 0, nullptr, nullptr); },
      [&] { list->AtomicCopyBufferUINT64(nullptr, 0, nullptr, 0, 0, nullptr, nullptr); },
      [&] { list->WriteBufferImmediate(1, nullptr, nullptr); },
      [&] { list->ExecuteIndirect(nullptr, 0, nullptr, 0, nullptr, 0); },
      [&] { list->ExecuteBundle(nullptr); },
      [&] { list->OMSetRenderTargets(0, nullptr, FALSE, nullptr); },
      [&] { list->IASetIndexBuffer(nullptr); },
      [&] { list->InitializeMetaCommand(nullptr, nullptr, 0); },
      [&] { list->BuildRaytracingAccelerationStructure(nullptr, 0, nullptr); },
  };
  for (size_t i = 0; i < misuses.size(); ++i) {
    misuses[i]();
    EXPECT_EQ(list->Close(), E_INVALIDARG) << i;
    ASSERT_EQ(list->Reset(allocator.get(), nullptr), S_OK) << i;
  }
  list->BeginEvent(0, nullptr, 0);
  list->SetMarker(0, nullptr, 0);
  list->WriteBufferImmediate(0, nullptr, nullptr);
  EXPECT_EQ(list->Close(), S_OK);
}

TEST_F(NullTest, Factories) {
  EXPECT_EQ(DXCoreCreateAdapterFactory(__uuidof(IDXCoreAdapterFactory), nullptr), E_POINTER);
  EXPECT_EQ(CreateDXGIFactory1(__uuidof(IDXGIFactory), nullptr), DXGI_ERROR_INVALID_CALL);
  Ptr<IDXCoreAdapterFactory> factory;
  ASSERT_EQ(DXCoreCreateAdapterFactory(IID_PPV_ARGS(&factory)), S_OK);
  EXPECT_EQ(factory->CreateAdapterList(1, nullptr, __uuidof(IDXCoreAdapterList), nullptr), E_POINTER);
  EXPECT_EQ(factory->GetAdapterByLuid(LUID{}, __uuidof(IDXCoreAdapter), nullptr), E_POINTER);
  EXPECT_EQ(factory->RegisterEventNotification(nullptr, {}, nullptr, nullptr, nullptr), E_POINTER);
  Ptr<IDXCoreAdapterList> list;
  ASSERT_EQ(factory->CreateAdapterList(1, &DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE, IID_PPV_ARGS(&list)),
            S_OK);
  EXPECT_EQ(list->GetAdapter(0, __uuidof(IDXCoreAdapter), nullptr), E_POINTER);
  EXPECT_EQ(list->GetFactory(__uuidof(IDXCoreAdapterFactory), nullptr), E_POINTER);
  Ptr<IDXCoreAdapter> adapter;
  ASSERT_EQ(list->GetAdapter(0, IID_PPV_ARGS(&adapter)), S_OK);
  EXPECT_EQ(adapter->GetPropertySize(DXCoreAdapterProperty::IsHardware, nullptr), E_POINTER);
  EXPECT_EQ(adapter->QueryState(DXCoreAdapterState::AdapterMemoryBudget, 0, nullptr, 0, nullptr), E_POINTER);
}

}  // namespace
}  // namespace anydml::testing
