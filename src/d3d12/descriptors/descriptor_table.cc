#include "d3d12/descriptors/descriptor_table.h"

#include <new>

namespace anydml::d3d12 {
namespace {

constexpr uint32_t kChunk = 256;  // slots
constexpr uint64_t kCpuTag = uint64_t{1} << 61;
constexpr uint64_t kGpuTag = uint64_t{1} << 62;
constexpr uint64_t kTags = uint64_t{7} << 61;
constexpr int kIdShift = 32;
static_assert((static_cast<uint64_t>(DescriptorTable::kLastHeapId) << kIdShift & kTags) == 0);

}  // namespace

View* DescriptorTable::Heap::Find(uint32_t slot) {
  View* chunk = chunks[slot / kChunk].get();
  return chunk == nullptr ? nullptr : chunk + slot % kChunk;
}

View& DescriptorTable::Heap::Make(uint32_t slot) {
  auto& chunk = chunks[slot / kChunk];
  if (!chunk) chunk = std::make_unique<View[]>(kChunk);
  return chunk[slot % kChunk];
}

DescriptorTable::HeapId DescriptorTable::AddHeap(D3D12_DESCRIPTOR_HEAP_TYPE type, uint32_t count,
                                                 bool shader_visible) {
  Heap heap{type, count, shader_visible, {}};
  heap.chunks.resize((static_cast<size_t>(count) + kChunk - 1) / kChunk);
  std::lock_guard lock(mutex_);
  const HeapId id = TakeId();
  heaps_.emplace(id, std::move(heap));
  return id;
}

DescriptorTable::HeapId DescriptorTable::TakeId() {
  if (heaps_.size() >= kLastHeapId) throw std::bad_alloc();
  HeapId id = 0;
  do {
    id = next_id_;
    next_id_ = id == kLastHeapId ? 1 : id + 1;
  } while (heaps_.contains(id));
  return id;
}

void DescriptorTable::RemoveHeap(HeapId id) {
  decltype(heaps_)::node_type removed;  // its buffers' states are released after the lock
  std::lock_guard lock(mutex_);
  removed = heaps_.extract(id);
}

D3D12_CPU_DESCRIPTOR_HANDLE DescriptorTable::CpuStart(HeapId id) {
  return {static_cast<SIZE_T>(kCpuTag | static_cast<uint64_t>(id) << kIdShift)};
}

D3D12_GPU_DESCRIPTOR_HANDLE DescriptorTable::GpuStart(HeapId id) {
  return {kGpuTag | static_cast<uint64_t>(id) << kIdShift};
}

DescriptorTable::HeapId DescriptorTable::HeapOf(D3D12_GPU_DESCRIPTOR_HANDLE handle) {
  if ((handle.ptr & kTags) != kGpuTag) return 0;
  return static_cast<HeapId>((handle.ptr & ~kTags) >> kIdShift);
}

DescriptorTable::Range DescriptorTable::Locate(uint64_t handle, uint64_t tag, size_t count,
                                               D3D12_DESCRIPTOR_HEAP_TYPE type) {
  if ((handle & kTags) != tag) return {};
  const auto found = heaps_.find(static_cast<HeapId>((handle & ~kTags) >> kIdShift));
  if (found == heaps_.end() || found->second.type != type) return {};
  Heap& heap = found->second;
  const auto offset = static_cast<uint32_t>(handle);
  const uint32_t slot = offset / kDescriptorIncrement;
  if (offset % kDescriptorIncrement != 0 || slot > heap.count || count > heap.count - slot) return {};
  if (tag == kGpuTag && !heap.shader_visible) return {};
  return {&heap, slot};
}

bool DescriptorTable::Write(D3D12_CPU_DESCRIPTOR_HANDLE first, D3D12_DESCRIPTOR_HEAP_TYPE type,
                            std::span<const View> views) {
  std::lock_guard lock(mutex_);
  const Range range = Locate(first.ptr, kCpuTag, views.size(), type);
  if (!range) return false;
  for (uint32_t i = 0; i < views.size(); ++i) range.heap->Make(range.first + i) = views[i];
  return true;
}

bool DescriptorTable::ReadLocked(Range range, std::span<View> views) {
  if (!range) return false;
  for (uint32_t i = 0; i < views.size(); ++i) {
    const View* slot = range.heap->Find(range.first + i);
    views[i] = slot == nullptr ? View() : *slot;
  }
  return true;
}

bool DescriptorTable::Read(D3D12_CPU_DESCRIPTOR_HANDLE first, D3D12_DESCRIPTOR_HEAP_TYPE type,
                           std::span<View> views) {
  std::lock_guard lock(mutex_);
  return ReadLocked(Locate(first.ptr, kCpuTag, views.size(), type), views);
}

bool DescriptorTable::Read(D3D12_GPU_DESCRIPTOR_HANDLE first, D3D12_DESCRIPTOR_HEAP_TYPE type,
                           std::span<View> views) {
  std::lock_guard lock(mutex_);
  return ReadLocked(Locate(first.ptr, kGpuTag, views.size(), type), views);
}

bool DescriptorTable::Copy(D3D12_CPU_DESCRIPTOR_HANDLE target, D3D12_CPU_DESCRIPTOR_HANDLE source,
                           uint32_t count, D3D12_DESCRIPTOR_HEAP_TYPE type) {
  std::lock_guard lock(mutex_);
  const Range to = Locate(target.ptr, kCpuTag, count, type);
  const Range from = Locate(source.ptr, kCpuTag, count, type);
  if (!to || !from) return false;
  for (uint32_t i = 0; i < count; ++i) {
    const View* slot = from.heap->Find(from.first + i);
    to.heap->Make(to.first + i) = slot == nullptr ? View() : *slot;
  }
  return true;
}

bool DescriptorTable::Valid(D3D12_CPU_DESCRIPTOR_HANDLE first, uint32_t count,
                            D3D12_DESCRIPTOR_HEAP_TYPE type) {
  std::lock_guard lock(mutex_);
  return static_cast<bool>(Locate(first.ptr, kCpuTag, count, type));
}

bool DescriptorTable::Valid(D3D12_GPU_DESCRIPTOR_HANDLE first, uint32_t count,
                            D3D12_DESCRIPTOR_HEAP_TYPE type) {
  std::lock_guard lock(mutex_);
  return static_cast<bool>(Locate(first.ptr, kGpuTag, count, type));
}

}  // namespace anydml::d3d12
