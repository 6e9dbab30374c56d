#pragma once

#include <atomic>
#include <memory>

#include "d3d12/device/device_child.h"

namespace anydml::d3d12 {

// The part of an allocator that lists and submissions hold.
struct AllocatorState {
  std::atomic<uint32_t> in_flight{0};           // submissions of lists recorded with it
  std::atomic<const void*> recording{nullptr};  // the list that records with it now
  std::atomic<uint64_t> generation{0};          // counts resets, each of which invalidates earlier lists
};

// The lists own the recorded commands; an allocator only enforces its rules.
class CommandAllocator final : public DeviceChild<ID3D12CommandAllocator, ID3D12Pageable> {
 public:
  static constexpr GUID kImplementation = {
      0x5e1c1f0a, 0x3a0e, 0x4bd5, {0x9b, 0x1e, 0x6d, 0x2a, 0x0c, 0x57, 0x11, 0x06}};

  static HRESULT Create(Device* device, D3D12_COMMAND_LIST_TYPE type, REFIID iid, void** out);

  CommandAllocator(Device* device, D3D12_COMMAND_LIST_TYPE type)
      : DeviceChild(device), type_(type), state_(std::make_shared<AllocatorState>()) {}

  HRESULT STDMETHODCALLTYPE Reset() override;

  D3D12_COMMAND_LIST_TYPE type() const { return type_; }
  const std::shared_ptr<AllocatorState>& state() const { return state_; }

 protected:
  ~CommandAllocator() override;
  void* QueryOther(REFIID iid) override { return iid == kImplementation ? this : nullptr; }

 private:
  const D3D12_COMMAND_LIST_TYPE type_;
  const std::shared_ptr<AllocatorState> state_;
};

// DIRECT, COMPUTE or COPY; `method` begins the message.
HRESULT CheckListType(Device* device, const char* method, D3D12_COMMAND_LIST_TYPE type);

}  // namespace anydml::d3d12
