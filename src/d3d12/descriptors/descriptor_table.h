// All descriptor slots of a device, found by handle. A handle consists of a tag (CPU or GPU), the number of
// its heap and the offset in that heap. It is never dereferenced, so an invalid or stale handle is harmless.
// Numbers are used in turn: that of a destroyed heap recurs after half a billion others.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "d3d12/interop.h"

namespace anydml::d3d12 {

inline constexpr uint32_t kDescriptorIncrement = 32;

enum class ViewKind : uint8_t { kEmpty, kUnorderedAccess, kShaderResource, kConstantBuffer, kSampler };

struct View {
  Descriptor buffer;
  DXGI_FORMAT format = DXGI_FORMAT_UNKNOWN;  // of typed and raw views
  ViewKind kind = ViewKind::kEmpty;
};

class DescriptorTable {
 public:
  using HeapId = uint32_t;                                      // 0 is no heap
  static constexpr HeapId kLastHeapId = (HeapId{1} << 29) - 1;  // the largest that fits a handle

  // Throws std::bad_alloc if memory or numbers run out.
  HeapId AddHeap(D3D12_DESCRIPTOR_HEAP_TYPE type, uint32_t count, bool shader_visible);
  void RemoveHeap(HeapId id);
  void ContinueAt(HeapId next) { next_id_ = next; }  // for tests, which cannot count to the last number

  static D3D12_CPU_DESCRIPTOR_HANDLE CpuStart(HeapId id);
  static D3D12_GPU_DESCRIPTOR_HANDLE GpuStart(HeapId id);
  static HeapId HeapOf(D3D12_GPU_DESCRIPTOR_HANDLE handle);  // 0 if it is not a GPU handle

  // Each returns false without effect unless all slots exist in live heaps of `type`.
  bool Write(D3D12_CPU_DESCRIPTOR_HANDLE first, D3D12_DESCRIPTOR_HEAP_TYPE type, std::span<const View> views);
  bool Read(D3D12_CPU_DESCRIPTOR_HANDLE first, D3D12_DESCRIPTOR_HEAP_TYPE type, std::span<View> views);
  bool Read(D3D12_GPU_DESCRIPTOR_HANDLE first, D3D12_DESCRIPTOR_HEAP_TYPE type, std::span<View> views);
  bool Copy(D3D12_CPU_DESCRIPTOR_HANDLE target, D3D12_CPU_DESCRIPTOR_HANDLE source, uint32_t count,
            D3D12_DESCRIPTOR_HEAP_TYPE type);
  bool Valid(D3D12_CPU_DESCRIPTOR_HANDLE first, uint32_t count, D3D12_DESCRIPTOR_HEAP_TYPE type);
  bool Valid(D3D12_GPU_DESCRIPTOR_HANDLE first, uint32_t count, D3D12_DESCRIPTOR_HEAP_TYPE type);

 private:
  // Slots are allocated in chunks on the first write: heaps of a million descriptors are common, and most
  // stay empty.
  struct Heap {
    D3D12_DESCRIPTOR_HEAP_TYPE type;
    uint32_t count;
    bool shader_visible;
    std::vector<std::unique_ptr<View[]>> chunks;

    View* Find(uint32_t slot);  // null if never written
    View& Make(uint32_t slot);
  };
  struct Range {
    Heap* heap = nullptr;
    uint32_t first = 0;
    explicit operator bool() const { return heap != nullptr; }
  };

  Range Locate(uint64_t handle, uint64_t tag, size_t count, D3D12_DESCRIPTOR_HEAP_TYPE type);
  bool ReadLocked(Range range, std::span<View> views);
  HeapId TakeId();

  std::mutex mutex_;
  std::unordered_map<HeapId, Heap> heaps_;
  HeapId next_id_ = 1;
};

}  // namespace anydml::d3d12
