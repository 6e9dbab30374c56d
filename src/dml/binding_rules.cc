#include "dml/binding_rules.h"

#include <algorithm>
#include <utility>

namespace anydml::dml {
namespace {

Status CheckWanted(const Slot& slot) {
  switch (slot.need) {
    case SlotNeed::kAbsent:
      return InvalidArgument(slot.name, ": a buffer is bound but the description leaves this tensor out");
    case SlotNeed::kOwned:
      return InvalidArgument(slot.name, ": a buffer is bound but the tensor is OWNED_BY_DML; bind it when ",
                             "initialising, and nothing when executing");
    case SlotNeed::kNotOwned:
      return InvalidArgument(slot.name, ": a buffer is bound but the tensor is not OWNED_BY_DML; bind it ",
                             "when executing, and nothing when initialising");
    case SlotNeed::kRequired:
    case SlotNeed::kIgnored:
    case SlotNeed::kUnneeded:
      break;
  }
  return {};
}

bool IsUploadInput(const Slot& slot, const d3d12::ResourceState& resource) {
  return slot.upload_heap && resource.heap.Type == D3D12_HEAP_TYPE_UPLOAD;
}

// The bytes that the operator may touch, by address, since placed buffers may share memory.
struct Range {
  uintptr_t begin;
  uintptr_t end;
};

Range RangeOf(const Slot& slot, const d3d12::Descriptor& descriptor) {
  const auto begin = reinterpret_cast<uintptr_t>(descriptor.resource->device_data()) + descriptor.offset;
  return {begin, begin + slot.bytes};
}

Range RangeOf(const Slot& slot, const std::byte* data) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  return {begin, begin + slot.bytes};
}

bool IsOnlyRead(const Slot& slot) {
  return slot.role == SlotRole::kInput || slot.role == SlotRole::kPersistent;
}

// The first slot before `i` that must not share bytes with it. Inputs may share bytes with each other, and
// there may be thousands of them.
uint32_t FirstToCompare(const Layout& layout, uint32_t i) {
  return IsOnlyRead(layout.slots[i]) ? layout.input_slots : 0;
}

bool AreInputAndOutput(const Slot& a, const Slot& b) {
  return a.role == SlotRole::kInput && b.role == SlotRole::kOutput;
}

// `i` comes before `j`; its bytes are `x`.
Status CheckRanges(const Layout& layout, uint32_t i, uint32_t j, Range x, Range y) {
  const Slot& a = layout.slots[i];
  const Slot& b = layout.slots[j];
  if (IsOnlyRead(a) && IsOnlyRead(b)) return {};
  const bool input_output = AreInputAndOutput(a, b);
  if (x.begin >= y.end || y.begin >= x.end) return {};
  if (!layout.initializer && input_output && MayRunInPlace(*layout.programs[0], i, j - layout.input_slots)) {
    if (x.begin == y.begin) return {};  // of the same region, whichever tensor is larger
    return Status(Code::kInvalidCall,
                  StrCat(a.name, " and ", b.name, " overlap but are not bound to the identical region"));
  }
  return Status(Code::kInvalidCall,
                StrCat(a.name, " and ", b.name, " overlap",
                       input_output ? "; this operator cannot run in place on them" : ""));
}

Status CheckPair(const Layout& layout, std::span<const d3d12::Descriptor> bound, uint32_t i, uint32_t j) {
  const Slot& a = layout.slots[i];
  const Slot& b = layout.slots[j];
  if (layout.initializer && AreInputAndOutput(a, b) && bound[i].resource == bound[j].resource) {
    return Status(Code::kInvalidCall, StrCat(a.name, " and ", b.name, " are bound to the same resource; ",
                                             "an initializer's inputs and outputs may not share one"));
  }
  return CheckRanges(layout, i, j, RangeOf(a, bound[i]), RangeOf(b, bound[j]));
}

}  // namespace

Status CheckBuffer(d3d12::Device* device, const Slot& slot, const DML_BUFFER_BINDING& binding,
                   d3d12::Descriptor* out) {
  *out = {};
  if (binding.Buffer == nullptr || slot.need == SlotNeed::kIgnored) return {};
  ANYDML_RETURN_IF_ERROR(CheckWanted(slot));
  auto resource = d3d12::ResourceFrom(binding.Buffer);
  if (resource == nullptr || !d3d12::IsDeviceOf(device, binding.Buffer)) {
    return InvalidArgument(slot.name, ": Buffer belongs to another Direct3D device");
  }
  const D3D12_RESOURCE_DESC desc = binding.Buffer->GetDesc();
  if (desc.Dimension != D3D12_RESOURCE_DIMENSION_BUFFER) {
    return InvalidArgument(slot.name, ": Buffer is not a buffer but of resource dimension ",
                           static_cast<int>(desc.Dimension));
  }
  // On Windows every binding is a UAV, inputs included; upload heaps cannot have one.
  if (!IsUploadInput(slot, *resource) && (desc.Flags & D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS) == 0) {
    const bool default_or_custom =
        resource->heap.Type == D3D12_HEAP_TYPE_DEFAULT || resource->heap.Type == D3D12_HEAP_TYPE_CUSTOM;
    if (default_or_custom) {
      return InvalidArgument(slot.name, ": Buffer was created without ",
                             "D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS");
    }
  }
  out->resource = std::move(resource);
  out->offset = binding.Offset;
  out->size = binding.SizeInBytes;
  return CheckRegion(slot, *out);
}

Status CheckRegion(const Slot& slot, const d3d12::Descriptor& descriptor) {
  const d3d12::ResourceState& resource = *descriptor.resource;
  const bool suitable_heap = resource.heap.Type == D3D12_HEAP_TYPE_DEFAULT ||
                             resource.heap.Type == D3D12_HEAP_TYPE_CUSTOM || IsUploadInput(slot, resource);
  if (!suitable_heap) {
    return InvalidArgument(slot.name, ": Buffer lies in a heap of type ",
                           static_cast<int>(resource.heap.Type), " but must lie in a DEFAULT or CUSTOM one",
                           slot.upload_heap ? " or an UPLOAD one" : "");
  }
  if (descriptor.offset % slot.alignment != 0) {
    return InvalidArgument(slot.name, ": Offset is ", descriptor.offset, " but must be a multiple of ",
                           slot.alignment);
  }
  const auto address = reinterpret_cast<uintptr_t>(resource.device_data());
  if (address % slot.element_bytes != 0) {
    return InvalidArgument(slot.name, ": Buffer lies over memory at address ", address,
                           ", which is not aligned to the tensor's elements of ", slot.element_bytes,
                           " bytes");
  }
  if (descriptor.offset > resource.size || descriptor.size > resource.size - descriptor.offset) {
    return InvalidArgument(slot.name, ": Offset ", descriptor.offset, " and SizeInBytes ", descriptor.size,
                           " reach beyond the buffer, which has ", resource.size, " bytes");
  }
  // Tensors occupy whole words. If a client binds only the bytes of the elements, the rest of the last word
  // counts as bound, if the buffer has it.
  const uint64_t words = std::min((descriptor.size + 3) / 4 * 4, resource.size - descriptor.offset);
  if (words < slot.bytes) {
    return InvalidArgument(slot.name, ": SizeInBytes is ", descriptor.size, " but must be at least ",
                           slot.bytes);
  }
  return {};
}

Status CheckTogether(const Layout& layout, std::span<const d3d12::Descriptor> bound) {
  const auto count = static_cast<uint32_t>(layout.slots.size());
  for (uint32_t i = 0; i < count; ++i) {
    if (bound[i].resource == nullptr) {
      if (layout.slots[i].need != SlotNeed::kRequired) continue;
      return Status(Code::kInvalidCall, StrCat(layout.slots[i].name, ": nothing is bound"));
    }
    if (bound[i].resource->destroyed.load(std::memory_order_acquire)) {
      return Status(Code::kInvalidCall, StrCat(layout.slots[i].name, ": the bound buffer was destroyed"));
    }
    for (uint32_t j = FirstToCompare(layout, i); j < i; ++j) {
      if (bound[j].resource != nullptr) ANYDML_RETURN_IF_ERROR(CheckPair(layout, bound, j, i));
    }
  }
  return {};
}

Status CheckAddresses(const Layout& layout, std::span<std::byte* const> bound, uint32_t alignment) {
  for (uint32_t i = 0; i < bound.size(); ++i) {
    const Slot& slot = layout.slots[i];
    if (bound[i] == nullptr) {
      if (slot.need != SlotNeed::kRequired) continue;
      return InvalidArgument(slot.name, ": nothing is bound");
    }
    ANYDML_RETURN_IF_ERROR(CheckWanted(slot));
    const auto address = reinterpret_cast<uintptr_t>(bound[i]);
    if (address % slot.element_bytes != 0 || address % alignment != 0) {
      return InvalidArgument(slot.name, " is at address ", address, ", which must be a multiple of ",
                             std::max(alignment, slot.element_bytes));
    }
    for (uint32_t j = FirstToCompare(layout, i); j < i; ++j) {
      if (bound[j] == nullptr) continue;
      const Status status =
          CheckRanges(layout, j, i, RangeOf(layout.slots[j], bound[j]), RangeOf(slot, bound[i]));
      if (!status.ok()) return InvalidArgument(status.message());
    }
  }
  return {};
}

}  // namespace anydml::dml
