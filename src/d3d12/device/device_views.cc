// The device's methods that write descriptors. They return nothing, so misuse posts a message and writes
// nothing.
#include <vector>

#include "com/guard.h"
#include "d3d12/descriptors/buffer_view.h"
#include "d3d12/device/device.h"

namespace anydml::d3d12 {
namespace {

constexpr D3D12_DESCRIPTOR_HEAP_TYPE kViews = D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV;

// The sum of the sizes (null: all 1).
uint64_t Total(UINT count, const UINT* sizes) {
  if (sizes == nullptr) return count;
  uint64_t total = 0;
  for (UINT i = 0; i < count; ++i) total += sizes[i];
  return total;
}

}  // namespace

template <typename Body>
void Device::WriteView(const char* method, D3D12_CPU_DESCRIPTOR_HANDLE target, Body&& make) {
  Guard([&] {
    View view;
    const Status status = make(&view);
    if (!status.ok()) return Fail(method, status);
    const auto type = view.kind == ViewKind::kSampler ? D3D12_DESCRIPTOR_HEAP_TYPE_SAMPLER : kViews;
    if (descriptors_.Write(target, type, {&view, 1})) return S_OK;
    return Fail(E_INVALIDARG, method, ": DestDescriptor ", target.ptr,
                " is not a slot of a live heap of type ", type);
  });
}

void Device::CreateConstantBufferView(const D3D12_CONSTANT_BUFFER_VIEW_DESC* desc,
                                      D3D12_CPU_DESCRIPTOR_HANDLE target) {
  WriteView("CreateConstantBufferView", target, [&](View* view) -> Status {
    view->kind = ViewKind::kConstantBuffer;
    if (desc == nullptr) return InvalidArgument("pDesc is null");
    if (desc->BufferLocation == 0) return {};  // a null descriptor
    constexpr uint64_t kAlignment = D3D12_CONSTANT_BUFFER_DATA_PLACEMENT_ALIGNMENT;
    if (desc->BufferLocation % kAlignment != 0 || desc->SizeInBytes % kAlignment != 0) {
      return InvalidArgument("BufferLocation ", desc->BufferLocation, " and SizeInBytes ", desc->SizeInBytes,
                             " must be multiples of ", kAlignment);
    }
    view->buffer.resource = buffers_.Find(desc->BufferLocation, desc->SizeInBytes);
    if (!view->buffer.resource) {
      return InvalidArgument("BufferLocation ", desc->BufferLocation, " and SizeInBytes ", desc->SizeInBytes,
                             " do not lie in a buffer");
    }
    view->buffer.offset = desc->BufferLocation - VirtualAddress(*view->buffer.resource);
    view->buffer.size = desc->SizeInBytes;
    return {};
  });
}

void Device::CreateShaderResourceView(ID3D12Resource* resource, const D3D12_SHADER_RESOURCE_VIEW_DESC* desc,
                                      D3D12_CPU_DESCRIPTOR_HANDLE target) {
  WriteView("CreateShaderResourceView", target,
            [&](View* view) { return MakeShaderResourceView(this, resource, desc, view); });
}

void Device::CreateUnorderedAccessView(ID3D12Resource* resource, ID3D12Resource* counter,
                                       const D3D12_UNORDERED_ACCESS_VIEW_DESC* desc,
                                       D3D12_CPU_DESCRIPTOR_HANDLE target) {
  WriteView("CreateUnorderedAccessView", target,
            [&](View* view) { return MakeUnorderedAccessView(this, resource, counter, desc, view); });
}

void Device::CreateSampler(const D3D12_SAMPLER_DESC* desc, D3D12_CPU_DESCRIPTOR_HANDLE target) {
  WriteView("CreateSampler", target, [&](View* view) -> Status {
    view->kind = ViewKind::kSampler;
    if (desc == nullptr) return InvalidArgument("pDesc is null");
    return {};
  });
}

void Device::CopyDescriptors(UINT target_count, const D3D12_CPU_DESCRIPTOR_HANDLE* targets,
                             const UINT* target_sizes, UINT source_count,
                             const D3D12_CPU_DESCRIPTOR_HANDLE* sources, const UINT* source_sizes,
                             D3D12_DESCRIPTOR_HEAP_TYPE type) {
  Guard([&] {
    if ((target_count != 0 && targets == nullptr) || (source_count != 0 && sources == nullptr)) {
      return Fail(E_INVALIDARG, "CopyDescriptors: an array of range starts is null");
    }
    const uint64_t total = Total(source_count, source_sizes);
    if (total != Total(target_count, target_sizes)) {
      return FailWith(
          E_INVALIDARG, D3D12_MESSAGE_ID_COPY_DESCRIPTORS_INVALID_RANGES,
          StrCat("CopyDescriptors: ", total, " source descriptors but ", Total(target_count, target_sizes),
                 " destination descriptors; they must be equally many"));
    }
    // All sources are read, and all targets checked, before anything is written.
    for (UINT i = 0; i < target_count; ++i) {
      if (!descriptors_.Valid(targets[i], target_sizes == nullptr ? 1 : target_sizes[i], type)) {
        return Fail(E_INVALIDARG, "CopyDescriptors: destination range ", i, " is not in a live heap of type ",
                    type);
      }
    }
    std::vector<View> views(total);
    std::span<View> rest(views);
    for (UINT i = 0; i < source_count; ++i) {
      const UINT size = source_sizes == nullptr ? 1 : source_sizes[i];
      if (!descriptors_.Read(sources[i], type, rest.first(size))) {
        return Fail(E_INVALIDARG, "CopyDescriptors: source range ", i, " is not in a live heap of type ",
                    type);
      }
      rest = rest.subspan(size);
    }
    rest = views;
    for (UINT i = 0; i < target_count; ++i) {
      const UINT size = target_sizes == nullptr ? 1 : target_sizes[i];
      descriptors_.Write(targets[i], type, rest.first(size));
      rest = rest.subspan(size);
    }
    return S_OK;
  });
}

void Device::CopyDescriptorsSimple(UINT count, D3D12_CPU_DESCRIPTOR_HANDLE target,
                                   D3D12_CPU_DESCRIPTOR_HANDLE source, D3D12_DESCRIPTOR_HEAP_TYPE type) {
  Guard([&] {
    if (count == 0 || descriptors_.Copy(target, source, count, type)) return S_OK;
    return Fail(E_INVALIDARG, "CopyDescriptorsSimple: ", count,
                " descriptors at the source or the destination are not in live heaps of type ", type);
  });
}

}  // namespace anydml::d3d12
