// One thread's random calls.
#pragma once

#include "call_objects.h"

namespace anydml::fuzz {

class CallWorker {
 public:
  CallWorker(ByteSource source, SharedObjects* shared, OwnObjects* own)
      : source_(source), shared_(*shared), own_(*own) {}

  // Makes calls until the input is used up.
  void Run();

 private:
  void CreateDevices();
  void CreateQueue();
  void CreateList();
  void CreateFence();
  void CreateHeap();
  void CreateBuffer();
  void CreatePlaced();
  void CreateDescriptors();
  void ReleaseSomething();
  void RemoveDevice();

  void Map();
  void OpenOrClose();
  void Copy();
  void Barrier();
  void SetDescriptorHeaps();
  void ViewAndClear();
  void Execute();
  void QueueSignalOrWait();
  void FenceSignalOrWait();
  void AskDevice();

  void CreateOperator();
  void Compile();
  void CompileGraph();
  void Initializer();
  void Table();
  void BindTensors();
  void BindResource();
  void RecordDispatch();
  void Residency();
  void RunChecked();

  // Sometimes returns a null pointer instead.
  template <typename T, size_t kCount>
  ComPtr<T> Any(const Slots<T, kCount>& slots) {
    return source_.OneIn(32) ? nullptr : slots[source_.Byte() % kCount].Get();
  }
  template <typename T, size_t kCount>
  T* Any(const std::array<ComPtr<T>, kCount>& objects) {
    return source_.OneIn(32) ? nullptr : objects[source_.Byte() % kCount].Get();
  }
  template <typename Array>
  auto& Place(Array& array) {
    return array[source_.Byte() % array.size()];
  }

  // Values that a call usually accepts.
  D3D12_COMMAND_LIST_TYPE ListType();
  D3D12_HEAP_TYPE HeapType();
  uint64_t Bytes();
  IDMLDispatchable* AnyDispatchable(ComPtr<IDMLCompiledOperator>* keep);
  DML_BUFFER_BINDING AnyBinding(ComPtr<ID3D12Resource>* keep);
  DML_BINDING_TABLE_DESC TableDesc(IDMLDispatchable* dispatchable, ComPtr<ID3D12DescriptorHeap>* keep);

  ByteSource source_;
  SharedObjects& shared_;
  OwnObjects& own_;
};

}  // namespace anydml::fuzz
