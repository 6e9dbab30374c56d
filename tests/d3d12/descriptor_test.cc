// The public interface cannot read descriptors, but a clear shows where a descriptor points.
#include "d3d12/d3d12_test.h"

namespace anydml::testing {
namespace {

class DescriptorTest : public D3D12Test {
 protected:
  void SetUp() override {
    D3D12Test::SetUp();
    queue_ = CreateQueue(device());
    visible_ = CreateDescriptors(device(), 1, true);
    buffer_ = Buffer(64, D3D12_HEAP_TYPE_DEFAULT, D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS);
  }
  void TearDown() override {
    buffer_.Reset();
    visible_.Reset();
    queue_.Reset();
    D3D12Test::TearDown();
  }
  D3D12_CPU_DESCRIPTOR_HANDLE Slot(const Ptr<ID3D12DescriptorHeap>& heap, UINT index) {
    const UINT step = device()->GetDescriptorHandleIncrementSize(D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV);
    return {heap->GetCPUDescriptorHandleForHeapStart().ptr + SIZE_T{index} * step};
  }
  // A view of the word at `index`.
  void View(D3D12_CPU_DESCRIPTOR_HANDLE slot, UINT index) {
    D3D12_UNORDERED_ACCESS_VIEW_DESC desc{};
    desc.Format = DXGI_FORMAT_R32_UINT;
    desc.ViewDimension = D3D12_UAV_DIMENSION_BUFFER;
    desc.Buffer.FirstElement = index;
    desc.Buffer.NumElements = 1;
    device()->CreateUnorderedAccessView(buffer_.get(), nullptr, &desc, slot);
  }
  // The index of the word that the slot's view covers, or -1.
  int WordOf(D3D12_CPU_DESCRIPTOR_HANDLE slot) {
    const auto allocator = CreateAllocator(device());
    const auto list = CreateList(device(), allocator.get());
    const auto readback = ReadbackBuffer(16), zero = UploadBuffer(std::vector<uint32_t>(16));
    ID3D12DescriptorHeap* heaps[] = {visible_.get()};
    const UINT ones[4] = {1, 1, 1, 1};
    list->CopyResource(buffer_.get(), zero.get());
    list->SetDescriptorHeaps(1, heaps);
    list->ClearUnorderedAccessViewUint(visible_->GetGPUDescriptorHandleForHeapStart(), slot, buffer_.get(),
                                       ones, 0, nullptr);
    list->CopyResource(readback.get(), buffer_.get());
    if (FAILED(list->Close())) return -1;
    Execute(queue_.get(), list.get());
    Finish(queue_.get());
    const auto words = Contents(readback.get());
    for (int i = 0; i < 16; ++i) {
      if (words[i] == 1) return i;
    }
    return -1;
  }

  Ptr<ID3D12CommandQueue> queue_;
  Ptr<ID3D12DescriptorHeap> visible_;
  Ptr<ID3D12Resource> buffer_;
};

TEST_F(DescriptorTest, Heaps) {
  const auto hidden = CreateDescriptors(device(), 3, false);
  EXPECT_EQ(hidden->GetDesc().NumDescriptors, 3u);
  EXPECT_NE(hidden->GetCPUDescriptorHandleForHeapStart().ptr, 0u);
  EXPECT_EQ(hidden->GetGPUDescriptorHandleForHeapStart().ptr, 0u);
  EXPECT_NE(visible_->GetGPUDescriptorHandleForHeapStart().ptr, 0u);
  EXPECT_NE(visible_->GetCPUDescriptorHandleForHeapStart().ptr,
            hidden->GetCPUDescriptorHandleForHeapStart().ptr);
  EXPECT_GT(device()->GetDescriptorHandleIncrementSize(D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV), 0u);
}

TEST_F(DescriptorTest, HeapMisuse) {
  const auto create = [this](D3D12_DESCRIPTOR_HEAP_TYPE type, UINT count, UINT flags, UINT node = 0) {
    const D3D12_DESCRIPTOR_HEAP_DESC desc = {type, count, static_cast<D3D12_DESCRIPTOR_HEAP_FLAGS>(flags),
                                             node};
    Ptr<ID3D12DescriptorHeap> heap;
    return device()->CreateDescriptorHeap(&desc, IID_PPV_ARGS(&heap));
  };
  const auto views = D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV, samplers = D3D12_DESCRIPTOR_HEAP_TYPE_SAMPLER;
  EXPECT_EQ(create(views, 1'000'000, 1), S_OK);
  EXPECT_EQ(create(views, 1'000'001, 1), E_INVALIDARG);
  EXPECT_EQ(create(views, UINT32_MAX, 0), E_INVALIDARG);
  EXPECT_EQ(create(samplers, 2048, 1), S_OK);
  EXPECT_EQ(create(samplers, 2049, 1), E_INVALIDARG);
  EXPECT_EQ(create(views, 0, 0), E_INVALIDARG);
  EXPECT_EQ(create(views, 1, 2), E_INVALIDARG);
  EXPECT_EQ(create(views, 1, 0, 2), E_INVALIDARG);
  EXPECT_EQ(create(D3D12_DESCRIPTOR_HEAP_TYPE_RTV, 1, 0), E_NOTIMPL);
  EXPECT_EQ(create(static_cast<D3D12_DESCRIPTOR_HEAP_TYPE>(9), 1, 0), E_INVALIDARG);
}

TEST_F(DescriptorTest, CopySimple) {
  const auto heap = CreateDescriptors(device(), 600, false);
  for (UINT i = 0; i < 4; ++i) View(Slot(heap, 298 + i), i);
  device()->CopyDescriptorsSimple(4, Slot(heap, 10), Slot(heap, 298), D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV);
  for (UINT i = 0; i < 4; ++i) EXPECT_EQ(WordOf(Slot(heap, 10 + i)), static_cast<int>(i));
  device()->CopyDescriptorsSimple(1, Slot(heap, 10), Slot(heap, 500), D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV);
  EXPECT_EQ(WordOf(Slot(heap, 10)), -1);  // an empty slot was copied
}

TEST_F(DescriptorTest, CopyRanges) {
  const auto a = CreateDescriptors(device(), 8, false), b = CreateDescriptors(device(), 8, true);
  for (UINT i = 0; i < 6; ++i) View(Slot(a, i), i);
  // Sources 0..3 and 4..5 to targets 7, 1..3, 5, 6.
  const D3D12_CPU_DESCRIPTOR_HANDLE targets[] = {Slot(b, 7), Slot(b, 1), Slot(b, 5)},
                                    sources[] = {Slot(a, 0), Slot(a, 4)};
  const UINT target_sizes[] = {1, 3, 2}, source_sizes[] = {4, 2};
  device()->CopyDescriptors(3, targets, target_sizes, 2, sources, source_sizes,
                            D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV);
  EXPECT_EQ(WordOf(Slot(b, 7)), 0);
  EXPECT_EQ(WordOf(Slot(b, 1)), 1);
  EXPECT_EQ(WordOf(Slot(b, 3)), 3);
  EXPECT_EQ(WordOf(Slot(b, 5)), 4);
  EXPECT_EQ(WordOf(Slot(b, 6)), 5);
  device()->CopyDescriptors(1, targets, nullptr, 1, sources, nullptr, D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV);
  EXPECT_EQ(WordOf(Slot(b, 7)), 0);
}

TEST_F(DescriptorTest, CopyMisuseChangesNothing) {
  const auto type = D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV;
  const auto heap = CreateDescriptors(device(), 4, false);
  View(Slot(heap, 0), 3);
  const auto messages = [this] { return Messages(device()).size(); };
  const size_t before = messages();
  device()->CopyDescriptorsSimple(2, Slot(heap, 3), Slot(heap, 0), type);            // runs over the end
  device()->CopyDescriptorsSimple(1, {Slot(heap, 1).ptr + 1}, Slot(heap, 0), type);  // between slots
  device()->CopyDescriptorsSimple(1, {0}, Slot(heap, 0), type);
  device()->CopyDescriptorsSimple(1, Slot(heap, 1), {0xDEADBEEF}, type);
  device()->CopyDescriptorsSimple(1, Slot(heap, 1), Slot(heap, 0), D3D12_DESCRIPTOR_HEAP_TYPE_SAMPLER);
  const D3D12_CPU_DESCRIPTOR_HANDLE one = Slot(heap, 1), zero = Slot(heap, 0);
  const UINT two = 2;
  device()->CopyDescriptors(1, &one, &two, 1, &zero, nullptr, type);
  device()->CopyDescriptors(1, nullptr, nullptr, 1, &zero, nullptr, type);
  device()->CopyDescriptors(1, &one, nullptr, 1, nullptr, nullptr, type);
  EXPECT_EQ(messages(), before + 8);
  EXPECT_EQ(WordOf(one), -1);
  device()->CopyDescriptorsSimple(0, {0}, {0}, type);
  EXPECT_EQ(device()->GetDeviceRemovedReason(), S_OK);
}

TEST_F(DescriptorTest, HandleOfADeadHeap) {
  auto heap = CreateDescriptors(device(), 4, false);
  const auto slot = Slot(heap, 1);
  heap.Reset();
  View(slot, 1);
  EXPECT_TRUE(HasMessage(device(), "CreateUnorderedAccessView"));
  EXPECT_EQ(WordOf(slot), -1);
}

TEST_F(DescriptorTest, UnorderedAccessViewRules) {
  const auto heap = CreateDescriptors(device(), 1, false);
  const auto slot = Slot(heap, 0);
  const auto refused = [&](auto change, ID3D12Resource* resource) {
    D3D12_UNORDERED_ACCESS_VIEW_DESC desc{};
    desc.Format = DXGI_FORMAT_R32_UINT;
    desc.ViewDimension = D3D12_UAV_DIMENSION_BUFFER;
    desc.Buffer.NumElements = 16;
    change(desc);
    const size_t before = Messages(device()).size();
    device()->CreateUnorderedAccessView(resource, nullptr, &desc, slot);
    return Messages(device()).size() != before;
  };
  auto* buffer = buffer_.get();
  const auto plain = Buffer(64);
  EXPECT_FALSE(refused([](auto&) {}, buffer));
  EXPECT_FALSE(refused([](auto&) {}, nullptr));  // a null descriptor
  EXPECT_TRUE(refused([](auto&) {}, plain.get()));
  EXPECT_TRUE(refused([](auto& d) { d.Buffer.NumElements = 17; }, buffer));
  EXPECT_TRUE(refused([](auto& d) { d.Buffer.FirstElement = UINT64_MAX; }, buffer));
  EXPECT_TRUE(refused([](auto& d) { d.Buffer.NumElements = 0; }, buffer));
  EXPECT_TRUE(refused([](auto& d) { d.ViewDimension = D3D12_UAV_DIMENSION_TEXTURE2D; }, buffer));
  EXPECT_TRUE(refused([](auto& d) { d.Format = DXGI_FORMAT_BC1_UNORM; }, buffer));
  EXPECT_TRUE(refused([](auto& d) { d.Buffer.Flags = D3D12_BUFFER_UAV_FLAG_RAW; }, buffer));
  EXPECT_TRUE(refused([](auto& d) { d.Format = DXGI_FORMAT_UNKNOWN; }, buffer));
  EXPECT_FALSE(refused(
      [](auto& d) {
        d.Format = DXGI_FORMAT_UNKNOWN;
        d.Buffer.StructureByteStride = 16;
        d.Buffer.NumElements = 4;
      },
      buffer));
  device()->CreateUnorderedAccessView(buffer, nullptr, nullptr, slot);
  EXPECT_TRUE(HasMessage(device(), "pDesc is null"));
}

TEST_F(DescriptorTest, OtherViews) {
  const auto heap = CreateDescriptors(device(), 4, false);
  const auto constants = Buffer(512, D3D12_HEAP_TYPE_UPLOAD);
  const size_t before = Messages(device()).size();
  D3D12_SHADER_RESOURCE_VIEW_DESC srv{};
  srv.Format = DXGI_FORMAT_R32_FLOAT;
  srv.ViewDimension = D3D12_SRV_DIMENSION_BUFFER;
  srv.Buffer.NumElements = 128;
  device()->CreateShaderResourceView(constants.get(), &srv, Slot(heap, 0));
  D3D12_CONSTANT_BUFFER_VIEW_DESC cbv = {constants->GetGPUVirtualAddress() + 256, 256};
  device()->CreateConstantBufferView(&cbv, Slot(heap, 1));
  const D3D12_DESCRIPTOR_HEAP_DESC sampler_desc = {D3D12_DESCRIPTOR_HEAP_TYPE_SAMPLER, 1,
                                                   D3D12_DESCRIPTOR_HEAP_FLAG_NONE, 0};
  Ptr<ID3D12DescriptorHeap> samplers;
  ASSERT_EQ(device()->CreateDescriptorHeap(&sampler_desc, IID_PPV_ARGS(&samplers)), S_OK);
  const D3D12_SAMPLER_DESC sampler{};
  device()->CreateSampler(&sampler, samplers->GetCPUDescriptorHandleForHeapStart());
  EXPECT_EQ(Messages(device()).size(), before);
  EXPECT_EQ(WordOf(Slot(heap, 0)), -1);  // not an unordered access view
  const size_t later = Messages(device()).size();
  cbv.SizeInBytes = 512;
  device()->CreateConstantBufferView(&cbv, Slot(heap, 1));
  cbv = {constants->GetGPUVirtualAddress() + 4, 256};
  device()->CreateConstantBufferView(&cbv, Slot(heap, 1));
  device()->CreateConstantBufferView(nullptr, Slot(heap, 1));
  device()->CreateShaderResourceView(constants.get(), nullptr, Slot(heap, 1));
  device()->CreateSampler(&sampler, Slot(heap, 1));
  EXPECT_EQ(Messages(device()).size(), later + 5);
}

}  // namespace
}  // namespace anydml::testing
