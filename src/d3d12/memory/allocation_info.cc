#include "d3d12/memory/allocation_info.h"

#include <cstring>

#include "d3d12/memory/resource_desc.h"

namespace anydml::d3d12 {
namespace {

const D3D12_RESOURCE_DESC& AsDesc(const D3D12_RESOURCE_DESC& desc) { return desc; }
D3D12_RESOURCE_DESC AsDesc(const D3D12_RESOURCE_DESC1& desc) { return ToDesc(desc); }

template <typename Desc>
D3D12_RESOURCE_ALLOCATION_INFO Sum(UINT count, const Desc* descs, D3D12_RESOURCE_ALLOCATION_INFO1* infos) {
  constexpr D3D12_RESOURCE_ALLOCATION_INFO kInvalid = {UINT64_MAX, kPlacementAlignment};
  if (count == 0 || descs == nullptr) return kInvalid;
  uint64_t offset = 0;
  for (UINT i = 0; i < count; ++i) {
    if (!CheckBufferDesc(AsDesc(descs[i])).ok()) return kInvalid;
    const uint64_t size = AlignToPlacement(descs[i].Width);
    if (infos != nullptr) infos[i] = {offset, kPlacementAlignment, size};
    if (size > UINT64_MAX - offset) return kInvalid;
    offset += size;
  }
  return {offset, kPlacementAlignment};
}

}  // namespace

D3D12_RESOURCE_ALLOCATION_INFO AllocationInfo(UINT count, const D3D12_RESOURCE_DESC* descs,
                                              D3D12_RESOURCE_ALLOCATION_INFO1* infos) {
  return Sum(count, descs, infos);
}

D3D12_RESOURCE_ALLOCATION_INFO AllocationInfo(UINT count, const D3D12_RESOURCE_DESC1* descs,
                                              D3D12_RESOURCE_ALLOCATION_INFO1* infos) {
  return Sum(count, descs, infos);
}

bool CopyableFootprints(const D3D12_RESOURCE_DESC* desc, UINT first, UINT count, UINT64 base_offset,
                        D3D12_PLACED_SUBRESOURCE_FOOTPRINT* layouts, UINT* row_counts, UINT64* row_sizes,
                        UINT64* total_bytes) {
  if (desc == nullptr || first != 0 || count != 1 || !CheckBufferDesc(*desc).ok()) {
    if (layouts != nullptr) std::memset(layouts, 0xFF, sizeof(*layouts) * count);
    if (row_counts != nullptr) std::memset(row_counts, 0xFF, sizeof(*row_counts) * count);
    if (row_sizes != nullptr) std::memset(row_sizes, 0xFF, sizeof(*row_sizes) * count);
    if (total_bytes != nullptr) *total_bytes = UINT64_MAX;
    return false;
  }
  if (layouts != nullptr) {
    // The footprint's width has 32 bits; a larger width is truncated, as on Windows.
    const auto width = static_cast<UINT>(desc->Width);
    constexpr UINT kPitch = D3D12_TEXTURE_DATA_PITCH_ALIGNMENT;
    layouts[0] = {base_offset, {DXGI_FORMAT_UNKNOWN, width, 1, 1, (width + kPitch - 1) & ~(kPitch - 1)}};
  }
  if (row_counts != nullptr) row_counts[0] = 1;
  if (row_sizes != nullptr) row_sizes[0] = desc->Width;
  if (total_bytes != nullptr) *total_bytes = desc->Width;
  return true;
}

}  // namespace anydml::d3d12
