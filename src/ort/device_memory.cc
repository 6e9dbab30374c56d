#include "ort/device_memory.h"

#include <algorithm>
#include <cstring>

#include <anydml.h>

namespace anydml::ort {
namespace {

using Microsoft::WRL::ComPtr;

constexpr size_t kAlignment = 256;  // that of CUDA's allocations
// Large tensors are copied through host memory in parts of this size.
constexpr size_t kPartBytes = size_t{8} << 20;
constexpr size_t kMaxStagedBytes = 8 * kPartBytes;

}  // namespace

Status RecordUploadTo(client::Session* session, std::span<const std::byte> from, void* to) {
  for (size_t done = 0; done < from.size(); done += kPartBytes) {
    const std::span<const std::byte> part = from.subspan(done, std::min(kPartBytes, from.size() - done));
    ComPtr<ID3D12Resource> target, staging;
    std::byte* memory = nullptr;
    ANYDML_RETURN_IF_ERROR(session->Wrap(static_cast<std::byte*>(to) + done, part.size(), &target));
    ANYDML_RETURN_IF_ERROR(session->AllocateStaging(true, part.size(), &staging, &memory));
    std::memcpy(memory, part.data(), part.size());
    session->RecordUpload(target.Get(), staging.Get());
    if (done + part.size() == from.size()) continue;
    std::string ignored;
    ANYDML_RETURN_IF_ERROR(session->Execute(&ignored));
  }
  return {};
}

Status RecordCopyTo(client::Session* session, ID3D12Resource* from, uint64_t bytes, void* to) {
  ComPtr<ID3D12Resource> target;
  ANYDML_RETURN_IF_ERROR(session->Wrap(to, bytes, &target));
  session->RecordCopy(target.Get(), from, bytes);  // no more: the following memory belongs to others
  return {};
}

Status DeviceMemory::Create(const Api& api, const std::string& adapter, int32_t number,
                            std::unique_ptr<DeviceMemory>* out) {
  std::unique_ptr<DeviceMemory> memory(new DeviceMemory(api, adapter));
  ANYDML_RETURN_IF_ERROR(api.Try(kCreateMemoryInfoV2, "AnyDML", kOrtGpuMemory, kNvidia, number,
                                 kOrtDefaultMemory, kAlignment, kOrtDeviceAllocator, &memory->info_));
  *out = std::move(memory);
  return {};
}

DeviceMemory::~DeviceMemory() {
  if (info_ != nullptr) api_.Call(kReleaseMemoryInfo, info_);
}

bool DeviceMemory::Is(const OrtMemoryDevice* device) const {
  return api_.Call(kMemoryDeviceAreEqual, api_.Call(kMemoryInfoGetMemoryDevice, info_), device);
}

Status DeviceMemory::MakeSession() {
  if (session_) return {};
  client::SessionOptions options;
  options.adapter = adapter_;
  options.debug = false;
  return client::Session::Create(options, &session_);
}

// Not through the session, which keeps its buffers until it executes something.
Status DeviceMemory::Allocate(size_t bytes, void** out) {
  const std::lock_guard lock(mutex_);
  ANYDML_RETURN_IF_ERROR(MakeSession());
  ComPtr<ID3D12Device> device;
  HRESULT result = session_->queue()->GetDevice(IID_PPV_ARGS(&device));
  D3D12_HEAP_PROPERTIES heap{};
  heap.Type = D3D12_HEAP_TYPE_DEFAULT;
  D3D12_RESOURCE_DESC desc{};
  desc.Dimension = D3D12_RESOURCE_DIMENSION_BUFFER;
  desc.Width = (bytes + 3) / 4 * 4;
  desc.Height = desc.DepthOrArraySize = desc.MipLevels = desc.SampleDesc.Count = 1;
  desc.Layout = D3D12_TEXTURE_LAYOUT_ROW_MAJOR;
  desc.Flags = D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS;
  ComPtr<ID3D12Resource> buffer;
  if (SUCCEEDED(result)) {
    result = device->CreateCommittedResource(&heap, D3D12_HEAP_FLAG_NONE, &desc, D3D12_RESOURCE_STATE_COMMON,
                                             nullptr, IID_PPV_ARGS(&buffer));
  }
  if (FAILED(result)) return Status(Code::kOutOfMemory, AnyDmlGetLastErrorMessage());
  *out = reinterpret_cast<void*>(buffer->GetGPUVirtualAddress());
  allocations_[*out] = std::move(buffer);
  return {};
}

void DeviceMemory::Free(void* memory) {
  const std::lock_guard lock(mutex_);
  allocations_.erase(memory);
}

Status DeviceMemory::Record(const Transfer& part, std::vector<Arrival>* arrivals) {
  if (part.way == Way::kToDevice)
    return RecordUploadTo(session_.get(), {static_cast<const std::byte*>(part.from), part.bytes}, part.to);
  ComPtr<ID3D12Resource> source, staging;
  ANYDML_RETURN_IF_ERROR(session_->Wrap(const_cast<void*>(part.from), part.bytes, &source));
  if (part.way == Way::kOnDevice) return RecordCopyTo(session_.get(), source.Get(), part.bytes, part.to);
  std::byte* memory = nullptr;
  ANYDML_RETURN_IF_ERROR(session_->AllocateStaging(false, part.bytes, &staging, &memory));
  session_->RecordReadBack(staging.Get(), source.Get());
  arrivals->push_back({std::move(staging), memory, part.to, part.bytes});
  return {};
}

Status DeviceMemory::Execute(std::vector<Arrival>* arrivals) {
  std::string ignored;
  ANYDML_RETURN_IF_ERROR(session_->Execute(&ignored));
  for (const Arrival& arrival : *arrivals) std::memcpy(arrival.to, arrival.memory, arrival.bytes);
  arrivals->clear();
  return {};
}

Status DeviceMemory::Run(std::span<const Transfer> transfers) {
  const std::lock_guard lock(mutex_);
  ANYDML_RETURN_IF_ERROR(MakeSession());
  std::vector<Arrival> arrivals;
  size_t staged = 0;
  Status status;
  for (const Transfer& transfer : transfers) {
    for (size_t done = 0; status.ok() && done < transfer.bytes; done += kPartBytes) {
      const size_t bytes = std::min(kPartBytes, transfer.bytes - done);
      status = Record({transfer.way, static_cast<const std::byte*>(transfer.from) + done,
                       static_cast<std::byte*>(transfer.to) + done, bytes},
                      &arrivals);
      staged += bytes;
      if (!status.ok() || staged < kMaxStagedBytes) continue;
      status = Execute(&arrivals);
      staged = 0;
    }
  }
  if (status.ok()) status = Execute(&arrivals);
  if (!status.ok()) session_->Discard();
  return status;
}

namespace {

struct Allocator : OrtAllocator {
  explicit Allocator(DeviceMemory* device_memory) : memory(*device_memory) {
    // onnxruntime treats null as a failure.
    alloc = [](OrtAllocator* self, size_t bytes) -> void* {
      void* allocated = nullptr;
      if (bytes == 0) return nullptr;
      try {
        return static_cast<Allocator*>(self)->memory.Allocate(bytes, &allocated).ok() ? allocated : nullptr;
      } catch (...) {
        return nullptr;
      }
    };
    reserve = alloc;
    free = [](OrtAllocator* self, void* allocated) { static_cast<Allocator*>(self)->memory.Free(allocated); };
    info = [](const OrtAllocator* self) { return static_cast<const Allocator*>(self)->memory.info(); };
  }
  DeviceMemory& memory;
};

class DataTransfer : public OrtDataTransferImpl {
 public:
  DataTransfer(const Api& api, const DeviceMemories& memories) : api_(api), memories_(memories) {
    release = [](OrtDataTransferImpl* self) { delete static_cast<DataTransfer*>(self); };
    can_copy = [](const OrtDataTransferImpl* self, const OrtMemoryDevice* from, const OrtMemoryDevice* to) {
      const auto& transfer = *static_cast<const DataTransfer*>(self);
      DeviceMemory* const source = transfer.Find(from);
      DeviceMemory* const target = transfer.Find(to);
      if (source != nullptr && target != nullptr) return source == target;
      return (source != nullptr && transfer.IsHost(to)) || (target != nullptr && transfer.IsHost(from));
    };
    copy_tensors = [](OrtDataTransferImpl* self, const OrtValue** from, OrtValue** to, OrtSyncStream**,
                      size_t count) -> OrtStatus* {
      const auto& transfer = *static_cast<const DataTransfer*>(self);
      return Guarded(transfer.api_, [&]() -> Status {
        std::map<DeviceMemory*, std::vector<DeviceMemory::Transfer>> transfers;
        for (size_t i = 0; i < count; ++i)
          ANYDML_RETURN_IF_ERROR(transfer.AddTransfer(from[i], to[i], &transfers));
        for (const auto& [memory, list] : transfers) ANYDML_RETURN_IF_ERROR(memory->Run(list));
        return {};
      });
    };
  }

 private:
  DeviceMemory* Find(const OrtMemoryDevice* device) const {
    const auto found = std::find_if(memories_.begin(), memories_.end(),
                                    [&](const auto& memory) { return memory->Is(device); });
    return found == memories_.end() ? nullptr : found->get();
  }
  bool IsHost(const OrtMemoryDevice* device) const {
    return api_.Call(kMemoryDeviceGetDeviceType, device) == kOrtCpuMemory;
  }
  Status AddTransfer(const OrtValue* from, OrtValue* to,
                     std::map<DeviceMemory*, std::vector<DeviceMemory::Transfer>>* out) const {
    onnx::Tensor tensor;
    ANYDML_RETURN_IF_ERROR(api_.TensorOf(from, &tensor));
    if (tensor.data.empty()) return {};
    void* memory = nullptr;
    ANYDML_RETURN_IF_ERROR(api_.Try(kGetTensorMutableData, to, &memory));
    DeviceMemory* const source = Find(api_.Call(kValueGetMemoryDevice, from));
    DeviceMemory* const target = Find(api_.Call(kValueGetMemoryDevice, to));
    if (source == nullptr && target == nullptr)
      return InvalidArgument("neither end of a copy is memory of AnyDML's");
    const DeviceMemory::Way way = source == nullptr   ? DeviceMemory::Way::kToDevice
                                  : target == nullptr ? DeviceMemory::Way::kToHost
                                                      : DeviceMemory::Way::kOnDevice;
    (*out)[source == nullptr ? target : source].push_back(
        {way, tensor.data.data(), memory, tensor.data.size()});
    return {};
  }

  const Api api_;
  const DeviceMemories& memories_;
};

}  // namespace

OrtAllocator* NewAllocator(DeviceMemory* memory) { return new Allocator(memory); }
void DeleteAllocator(OrtAllocator* allocator) { delete static_cast<Allocator*>(allocator); }
OrtDataTransferImpl* NewDataTransfer(const Api& api, const DeviceMemories& memories) {
  return new DataTransfer(api, memories);
}

}  // namespace anydml::ort
