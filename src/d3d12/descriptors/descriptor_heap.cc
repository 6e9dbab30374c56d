#include "d3d12/descriptors/descriptor_heap.h"

namespace anydml::d3d12 {
namespace {

// The limits that OPTIONS19 and the documentation promise; the first also keeps a heap's offsets within a
// handle's 32 bits.
constexpr uint32_t kMostDescriptors = 1u << 26;
constexpr uint32_t kMostVisibleViews = 1'000'000;
constexpr uint32_t kMostVisibleSamplers = 2048;

}  // namespace

HRESULT DescriptorHeap::Create(Device* device, const D3D12_DESCRIPTOR_HEAP_DESC* desc, REFIID iid,
                               void** out) {
  if (desc == nullptr) return device->Fail(E_INVALIDARG, "CreateDescriptorHeap: pDescriptorHeapDesc is null");
  const bool samplers = desc->Type == D3D12_DESCRIPTOR_HEAP_TYPE_SAMPLER;
  if (desc->Type == D3D12_DESCRIPTOR_HEAP_TYPE_RTV || desc->Type == D3D12_DESCRIPTOR_HEAP_TYPE_DSV) {
    return device->Fail(E_NOTIMPL, "CreateDescriptorHeap: Type is ", desc->Type,
                        " (RTV or DSV) but this compute-only device has CBV_SRV_UAV and SAMPLER heaps only");
  }
  if (desc->Type != D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV && !samplers) {
    return device->Fail(E_INVALIDARG, "CreateDescriptorHeap: Type is ", desc->Type,
                        "; it must be CBV_SRV_UAV (0) or SAMPLER (1)");
  }
  if ((desc->Flags & ~D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE) != 0) {
    return device->Fail(E_INVALIDARG, "CreateDescriptorHeap: Flags is ", desc->Flags,
                        "; it must be NONE or SHADER_VISIBLE (1)");
  }
  const bool visible = (desc->Flags & D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE) != 0;
  const uint32_t most = !visible ? kMostDescriptors : samplers ? kMostVisibleSamplers : kMostVisibleViews;
  if (desc->NumDescriptors == 0 || desc->NumDescriptors > most) {
    return device->Fail(E_INVALIDARG, "CreateDescriptorHeap: NumDescriptors is ", desc->NumDescriptors,
                        "; it must be in [1, ", most, "]");
  }
  if (desc->NodeMask > 1) {
    return device->Fail(E_INVALIDARG, "CreateDescriptorHeap: NodeMask is ", desc->NodeMask,
                        "; it must be 0 or 1");
  }
  return CreateComObject<DescriptorHeap>(iid, out, device, *desc);
}

DescriptorHeap::DescriptorHeap(Device* device, const D3D12_DESCRIPTOR_HEAP_DESC& desc)
    : DeviceChild(device),
      desc_(desc),
      id_(device->descriptors().AddHeap(desc.Type, desc.NumDescriptors,
                                        (desc.Flags & D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE) != 0)) {}

DescriptorHeap::~DescriptorHeap() { device()->descriptors().RemoveHeap(id_); }

D3D12_CPU_DESCRIPTOR_HANDLE DescriptorHeap::GetCPUDescriptorHandleForHeapStart() {
  return DescriptorTable::CpuStart(id_);
}

D3D12_GPU_DESCRIPTOR_HANDLE DescriptorHeap::GetGPUDescriptorHandleForHeapStart() {
  return shader_visible() ? DescriptorTable::GpuStart(id_) : D3D12_GPU_DESCRIPTOR_HANDLE{0};
}

}  // namespace anydml::d3d12
