// A GPU's memory for onnxruntime: its allocator and its data transfer. Everything is complete when a function
// returns.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "client/session.h"
#include "ort/api.h"

namespace anydml::ort {

inline constexpr uint32_t kNvidia = 0x10DE;  // the vendor's PCI id

// Records copies between the host and memory of the session's device, which are complete after the next
// execution. Uploads copy `from` at once.
Status RecordUploadTo(client::Session* session, std::span<const std::byte> from, void* to);
Status RecordCopyTo(client::Session* session, ID3D12Resource* from, uint64_t bytes, void* to);

// May be used by several threads.
class DeviceMemory {
 public:
  // `number` is the adapter's index among its kind.
  static Status Create(const Api& api, const std::string& adapter, int32_t number,
                       std::unique_ptr<DeviceMemory>* out);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  const std::string& adapter() const { return adapter_; }
  const OrtMemoryInfo* info() const { return info_; }
  bool Is(const OrtMemoryDevice* device) const;

  Status Allocate(size_t bytes, void** out);
  void Free(void* memory);

  // Copies packed elements, with as few executions as their size allows.
  enum class Way { kToDevice, kToHost, kOnDevice };
  struct Transfer {
    Way way;
    const void* from;
    void* to;
    size_t bytes;
  };
  Status Run(std::span<const Transfer> transfers);

 private:
  DeviceMemory(const Api& api, std::string adapter) : api_(api), adapter_(std::move(adapter)) {}
  // Data that has arrived in host memory after an execution, and its destination.
  struct Arrival {
    Microsoft::WRL::ComPtr<ID3D12Resource> staging;
    const std::byte* memory;
    void* to;
    size_t bytes;
  };

  Status MakeSession();  // at the first use
  Status Record(const Transfer& part, std::vector<Arrival>* arrivals);
  Status Execute(std::vector<Arrival>* arrivals);

  const Api api_;
  const std::string adapter_;
  OrtMemoryInfo* info_ = nullptr;
  std::mutex mutex_;
  std::unique_ptr<client::Session> session_;
  std::map<void*, Microsoft::WRL::ComPtr<ID3D12Resource>> allocations_;
};

using DeviceMemories = std::vector<std::unique_ptr<DeviceMemory>>;

// onnxruntime releases both; they use `memories`, which must outlive them.
OrtAllocator* NewAllocator(DeviceMemory* memory);
void DeleteAllocator(OrtAllocator* allocator);
OrtDataTransferImpl* NewDataTransfer(const Api& api, const DeviceMemories& memories);

}  // namespace anydml::ort
