// The objects that random calls work on.
#pragma once

#include <array>
#include <mutex>

#include <DirectML.h>
#include <wrl/client.h>

#include "checked_run.h"

namespace anydml::fuzz {

// A reference that several threads read and replace.
template <typename T>
class Slot {
 public:
  ComPtr<T> Get() const {
    std::lock_guard lock(mutex_);
    return object_;
  }
  void Set(ComPtr<T> object) {
    std::lock_guard lock(mutex_);
    object_.Swap(object);  // the old one is released after the lock
  }

 private:
  mutable std::mutex mutex_;
  ComPtr<T> object_;
};

template <typename T, size_t kCount>
using Slots = std::array<Slot<T>, kCount>;

// Objects that Direct3D and DirectML allow several threads to use at once.
struct SharedObjects {
  Slot<ID3D12Device5> d3d;
  Slots<IDMLDevice, 2> dml;
  Slots<ID3D12CommandQueue, 2> queues;
  Slots<ID3D12Fence, 3> fences;
  Slots<ID3D12Heap, 2> heaps;
  Slots<ID3D12Resource, 6> buffers;
  Slots<ID3D12DescriptorHeap, 2> descriptors;
  Slots<IDMLOperator, 3> operators;
  Slots<IDMLCompiledOperator, 3> compiled;
  Slots<IDMLCommandRecorder, 2> recorders;
};

// Objects of one thread.
struct OwnObjects {
  std::array<ComPtr<ID3D12CommandAllocator>, 2> allocators;
  std::array<ComPtr<ID3D12GraphicsCommandList>, 3> lists;
  std::array<ComPtr<IDMLOperatorInitializer>, 2> initializers;
  std::array<ComPtr<IDMLBindingTable>, 3> tables;
};

}  // namespace anydml::fuzz
