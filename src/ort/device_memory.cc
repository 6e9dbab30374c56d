#include "ort/device_memory.h"

#include <algorithm>
#include <cstring>

namespace anydml::ort {
namespace {

using Microsoft::WRL::ComPtr;

constexpr size_t kAlignment = 256;              // as CUDA's allocations have
constexpr size_t kPartBytes = size_t{8} << 20;  // of the host's memory that large tensors go through

}  // namespace

Status RecordUploadTo(tools::Session* session, std::span<const std::byte> from, void* to) {
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

Status RecordCopyTo(tools::Session* session, ID3D12Resource* from, uint64_t bytes, void* to) {
  ComPtr<ID3D12Resource> target;
  ANYDML_RETURN_IF_ERROR(session->Wrap(to, bytes, &target));
  session->RecordCopy(target.Get(), from);
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
  tools::SessionOptions options;
  options.adapter = adapter_;
  options.debug = false;
  return tools::Session::Create(options, &session_);
}

Status DeviceMemory::Finish(Status recorded) {
  std::string ignored;
  if (recorded.ok()) recorded = session_->Execute(&ignored);
  if (!recorded.ok() && session_) session_->Discard();
  return recorded;
}

Status DeviceMemory::Allocate(size_t bytes, void** out) {
  const std::lock_guard lock(mutex_);
  ANYDML_RETURN_IF_ERROR(MakeSession());
  ComPtr<ID3D12Resource> buffer;
  ANYDML_RETURN_IF_ERROR(session_->Allocate((bytes + 3) / 4 * 4, &buffer));
  *out = reinterpret_cast<void*>(buffer->GetGPUVirtualAddress());
  allocations_[*out] = std::move(buffer);
  return {};
}

void DeviceMemory::Free(void* memory) {
  const std::lock_guard lock(mutex_);
  allocations_.erase(memory);
}

Status DeviceMemory::Upload(std::span<const std::byte> from, void* to) {
  const std::lock_guard lock(mutex_);
  ANYDML_RETURN_IF_ERROR(MakeSession());
  return Finish(RecordUploadTo(session_.get(), from, to));
}

Status DeviceMemory::Download(const void* from, std::span<std::byte> to) {
  const std::lock_guard lock(mutex_);
  ANYDML_RETURN_IF_ERROR(MakeSession());
  auto* const source = const_cast<std::byte*>(static_cast<const std::byte*>(from));
  for (size_t done = 0; done < to.size(); done += kPartBytes) {
    const size_t part = std::min(kPartBytes, to.size() - done);
    ComPtr<ID3D12Resource> buffer, staging;
    std::byte* memory = nullptr;
    Status status = session_->Wrap(source + done, part, &buffer);
    if (status.ok()) status = session_->AllocateStaging(false, part, &staging, &memory);
    if (status.ok()) session_->RecordReadBack(staging.Get(), buffer.Get());
    ANYDML_RETURN_IF_ERROR(Finish(status));
    std::memcpy(to.data() + done, memory, part);
  }
  return {};
}

Status DeviceMemory::Copy(const void* from, size_t bytes, void* to) {
  const std::lock_guard lock(mutex_);
  ANYDML_RETURN_IF_ERROR(MakeSession());
  ComPtr<ID3D12Resource> source;
  Status status = session_->Wrap(const_cast<void*>(from), bytes, &source);
  if (status.ok()) status = RecordCopyTo(session_.get(), source.Get(), bytes, to);
  return Finish(status);
}

namespace {

struct Allocator : OrtAllocator {
  explicit Allocator(DeviceMemory* device_memory) : memory(*device_memory) {
    // onnxruntime takes null for a failure.
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
        for (size_t i = 0; i < count; ++i) ANYDML_RETURN_IF_ERROR(transfer.CopyTensor(from[i], to[i]));
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
  Status CopyTensor(const OrtValue* from, OrtValue* to) const {
    onnx::Tensor tensor;
    ANYDML_RETURN_IF_ERROR(api_.TensorOf(from, &tensor));
    if (tensor.data.empty()) return {};
    void* memory = nullptr;
    ANYDML_RETURN_IF_ERROR(api_.Try(kGetTensorMutableData, to, &memory));
    DeviceMemory* const source = Find(api_.Call(kValueGetMemoryDevice, from));
    DeviceMemory* const target = Find(api_.Call(kValueGetMemoryDevice, to));
    if (source != nullptr && target != nullptr)
      return source->Copy(tensor.data.data(), tensor.data.size(), memory);
    if (target != nullptr) return target->Upload(tensor.data, memory);
    if (source != nullptr)
      return source->Download(tensor.data.data(), {static_cast<std::byte*>(memory), tensor.data.size()});
    return InvalidArgument("neither end of a copy is memory of AnyDML's");
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
