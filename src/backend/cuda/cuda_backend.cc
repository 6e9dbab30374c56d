#include "backend/cuda/cuda_backend.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "backend/cuda/cuda_host_runner.h"
#include "backend/cuda/cuda_memory.h"
#include "backend/cuda/cuda_status.h"
#include "backend/cuda/cuda_stream.h"
#include "backend/cuda/device_functions.h"
#include "backend/cuda/stream_clock.h"
#include "backend/foreign_memory.h"

namespace anydml::cuda {
namespace {

constexpr uint32_t kNvidia = 0x10DE;
constexpr int kLeastMajor = 9;  // what the kernels are compiled for

uint64_t HostMemoryBytes() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

uint32_t PciDeviceId(const cudaDeviceProp& properties) {
  char path[80];
  std::snprintf(path, sizeof(path), "/sys/bus/pci/devices/%04x:%02x:%02x.0/device", properties.pciDomainID,
                properties.pciBusID, properties.pciDeviceID);
  std::ifstream file(path);
  uint32_t id = 0;
  file >> std::hex >> id;
  return id;  // 0 if the system does not tell
}

AdapterInfo Describe(int device, const cudaDeviceProp& properties) {
  AdapterInfo info;
  info.id = StrCat("cuda:", device);
  info.description = properties.name;
  // The same in every process, and distinct from other adapters.
  info.luid = uint64_t{2} << 32 | static_cast<uint64_t>(properties.pciDomainID) << 16 |
              static_cast<uint64_t>(properties.pciBusID) << 8 | static_cast<uint64_t>(properties.pciDeviceID);
  info.vendor_id = kNvidia;
  info.device_id = PciDeviceId(properties);
  info.dedicated_bytes = properties.totalGlobalMem;
  info.shared_bytes = HostMemoryBytes() / 2;
  info.is_gpu = true;
  info.dlpack_type = 2;  // kDLCUDA
  info.dlpack_id = device;
  return info;
}

DeviceTraits TraitsOf(int device, const cudaDeviceProp& properties, const Column& column) {
  return {.backend = "cuda",
          .column = &column,
          .is_host = false,
          .runs_blocks_of_rows = false,
          .unit_bytes = 16,
          .subgroup_lanes = static_cast<uint32_t>(properties.warpSize),
          .convolution_channels = ConvolutionChannels::kFillUnits,
          .ordinal = device,
          .multiprocessors = static_cast<uint32_t>(properties.multiProcessorCount),
          .shared_bytes_per_block = properties.sharedMemPerBlockOptin,
          .l2_bytes = static_cast<uint64_t>(properties.l2CacheSize),
          .make_current = MakeCurrent,
          .create_clock = CreateStreamClock};
}

class CudaBackend final : public Backend {
 public:
  CudaBackend(int device, const cudaDeviceProp& properties, const Column& column)
      : device_(device),
        info_(cuda::Describe(device, properties)),
        traits_(TraitsOf(device, properties, column)),
        device_memory_(std::make_shared<MemoryPool>(device, false, info_.dedicated_bytes / 8)),
        host_memory_(std::make_shared<MemoryPool>(device, true, info_.shared_bytes / 16)),
        notes_(*host_memory_) {}

  const AdapterInfo& adapter() const override { return info_; }

  Status Allocate(MemoryKind kind, uint64_t bytes, std::shared_ptr<Memory>* memory) override {
    const bool on_device = kind == MemoryKind::kDefault;
    const uint64_t limit = on_device ? info_.dedicated_bytes : info_.shared_bytes;
    if (bytes > limit) {
      memory->reset();
      return Status(Code::kOutOfMemory, StrCat("cannot allocate ", bytes, " bytes: the adapter has ", limit,
                                               " bytes of ", on_device ? "device" : "host", " memory"));
    }
    return (on_device ? device_memory_ : host_memory_)->Allocate(bytes, memory);
  }

  Status Adopt(void* memory, uint64_t bytes, std::function<void()> release,
               std::shared_ptr<Memory>* out) override {
    auto* const begin = static_cast<std::byte*>(memory);
    ANYDML_RETURN_IF_ERROR(CheckForeign(begin, "begins"));
    ANYDML_RETURN_IF_ERROR(CheckForeign(begin + bytes - 1, "ends"));
    *out = std::make_shared<ForeignMemory>(memory, bytes, /*on_host=*/false, std::move(release));
    return {};
  }

  std::unique_ptr<Stream> CreateStream() override {
    return std::make_unique<CudaStream>(device_, *host_memory_);
  }
  Status RunNow(const Kernel& kernel, const KernelArguments& arguments, bool wait) override;
  Status OrderStreams(void* before, void* after) override;
  Status WaitForStream(void* stream) override;
  Status DescribeStream(void* stream, ForeignStream* out) override;
  Status MarkStream(void* stream, void** mark) override;
  Status WaitForMark(void* mark, void* stream) override;
  Status FreeMark(void* mark) override;
  const DeviceTraits& traits() const override { return traits_; }
  uint64_t timestamp_frequency() const override { return 1'000'000'000; }
  uint64_t CurrentTimestamp() const override;

 private:
  // Fails if an address of the application's memory is not on this device.
  Status CheckForeign(const void* address, const char* place) const;

  const int device_;
  const AdapterInfo info_;
  const DeviceTraits traits_;
  const std::shared_ptr<MemoryPool> device_memory_;
  const std::shared_ptr<MemoryPool> host_memory_;
  NotePool notes_;
  std::mutex order_mutex_;
  cudaEvent_t order_event_ = nullptr;  // lives as long as the process, as the backend does
  using StreamKey = std::pair<void*, std::thread::id>;
  std::mutex ids_mutex_;
  std::map<StreamKey, uint64_t> ids_;  // ids of described streams; for a reused handle, that of its latest
                                       // stream
};

Status CudaBackend::CheckForeign(const void* address, const char* place) const {
  cudaPointerAttributes attributes{};
  const cudaError_t error = cudaPointerGetAttributes(&attributes, address);
  if (error != cudaSuccess) {
    cudaGetLastError();  // clear it, so that no later query finds it
    return Check(error, "asking where ", address, " lies");
  }
  const bool on_device = attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
  if (on_device && attributes.device == device_) return {};
  return InvalidArgument("the memory ", place, " at ", address, ", which is ",
                         on_device ? StrCat("memory of cuda:", attributes.device) : "host memory",
                         "; it must be device memory of ", info_.id);
}

Status CudaBackend::RunNow(const Kernel& kernel, const KernelArguments& arguments, bool wait) {
  const DeviceScope scope(device_);
  KernelArguments enqueued = arguments;
  if (!wait) enqueued.data_errors = nullptr;
  CudaHostRunner host(static_cast<cudaStream_t>(arguments.stream));
  enqueued.host = &host;
  std::vector<DataErrorNote*> notes;
  const auto give_back = [&] {
    for (DataErrorNote* const note : notes) notes_.Give(note);
  };
  if (wait && arguments.data_errors != nullptr && kernel.note_count() != 0) {
    notes.reserve(kernel.note_count());
    for (uint32_t i = 0; i < kernel.note_count(); ++i) {
      DataErrorNote* note = nullptr;
      if (const Status status = notes_.Take(&note); !status.ok()) {
        give_back();
        return status;
      }
      notes.push_back(note);
    }
    enqueued.notes = notes;
  }
  Status status = Enqueued(kernel.Run(enqueued));
  // Also after a failure: a part of the work may be in flight and write notes.
  if (wait) {
    const Status waited =
        Check(cudaStreamSynchronize(static_cast<cudaStream_t>(arguments.stream)), "waiting for a stream");
    if (status.ok()) status = waited;
  }
  for (uint32_t i = 0; i < notes.size() && status.ok(); ++i) {
    if (notes[i]->position != DataErrorNote::kNone) {
      arguments.data_errors->ReportDataError(kernel.Describe(i, *notes[i]));
    }
  }
  give_back();
  return status;
}

Status CudaBackend::OrderStreams(void* before, void* after) {
  if (before == after) return {};
  const DeviceScope scope(device_);
  // One event serves all: a wait refers to the event's state when the wait was enqueued.
  const std::lock_guard lock(order_mutex_);
  if (order_event_ == nullptr) {
    ANYDML_RETURN_IF_ERROR(
        Check(cudaEventCreateWithFlags(&order_event_, cudaEventDisableTiming), "creating an event"));
  }
  Status status =
      Check(cudaEventRecord(order_event_, static_cast<cudaStream_t>(before)), "recording an event");
  if (status.ok()) {
    status =
        Check(cudaStreamWaitEvent(static_cast<cudaStream_t>(after), order_event_, 0), "waiting for an event");
  }
  if (!status.ok()) cudaGetLastError();  // clear it, so that no later query finds it
  return status;
}

Status CudaBackend::WaitForStream(void* stream) {
  const DeviceScope scope(device_);
  if (stream == nullptr) return Check(cudaDeviceSynchronize(), "waiting for the device");
  return Check(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "waiting for a stream");
}

Status CudaBackend::DescribeStream(void* stream, ForeignStream* out) {
  const DeviceScope scope(device_);
  auto* const cuda_stream = static_cast<cudaStream_t>(stream);
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  // The default stream cannot be captured, and must not be queried while other streams are.
  cudaError_t error = cudaSuccess;
  if (stream != nullptr && cuda_stream != cudaStreamLegacy)
    error = cudaStreamIsCapturing(cuda_stream, &capture);
  const bool capturing = capture != cudaStreamCaptureStatusNone;
  // Stream 2 is a different stream in every thread.
  const StreamKey key(stream,
                      cuda_stream == cudaStreamPerThread ? std::this_thread::get_id() : std::thread::id());
  const std::lock_guard lock(ids_mutex_);
  if (capturing) {  // a capturing stream must not be queried: take the latest stream with this handle
    const auto seen = ids_.find(key);
    *out = {.id = seen != ids_.end() ? seen->second : ~reinterpret_cast<uint64_t>(stream), .capturing = true};
    return {};
  }
  unsigned long long id = 0;
  if (error == cudaSuccess) error = cudaStreamGetId(cuda_stream, &id);
  if (error != cudaSuccess) {
    cudaGetLastError();  // clear it, so that no later query finds it
    return Check(error, "asking about a stream");
  }
  ids_[key] = id;
  *out = {.id = id};
  return {};
}

Status CudaBackend::MarkStream(void* stream, void** mark) {
  const DeviceScope scope(device_);
  cudaError_t error = cudaSuccess;
  if (*mark == nullptr) {
    cudaEvent_t event = nullptr;
    error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (error == cudaSuccess) *mark = event;
  }
  if (error == cudaSuccess) {
    error = cudaEventRecord(static_cast<cudaEvent_t>(*mark), static_cast<cudaStream_t>(stream));
  }
  if (error != cudaSuccess) cudaGetLastError();  // clear it, so that no later query finds it
  return Check(error, "marking a stream");
}

Status CudaBackend::WaitForMark(void* mark, void* stream) {
  if (mark == nullptr) return {};
  const DeviceScope scope(device_);
  auto* const event = static_cast<cudaEvent_t>(mark);
  const cudaError_t error = stream == nullptr
                                ? cudaEventSynchronize(event)
                                : cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), event, 0);
  if (error != cudaSuccess) cudaGetLastError();  // clear it, so that no later query finds it
  return Check(error, "waiting for a mark in a stream");
}

Status CudaBackend::FreeMark(void* mark) {
  if (mark == nullptr) return {};
  const DeviceScope scope(device_);
  const cudaError_t error = cudaEventDestroy(static_cast<cudaEvent_t>(mark));
  if (error != cudaSuccess) cudaGetLastError();  // clear it, so that no later query finds it
  return Check(error, "giving a mark back");
}

uint64_t CudaBackend::CurrentTimestamp() const {
  std::shared_ptr<Memory> memory;
  if (!host_memory_->Allocate(sizeof(uint64_t), &memory).ok()) return 0;
  const DeviceScope scope(device_);
  cudaStream_t stream = nullptr;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return 0;
  auto* const now = reinterpret_cast<uint64_t*>(memory->host());
  if (WriteClock(now, stream) == cudaSuccess) cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
  return *now;
}

}  // namespace

std::vector<Backend*> FindCudaBackends(const Column& column, std::string* why_none) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    *why_none = Check(error, "looking for devices").message();
    return {};
  }
  *why_none = "CUDA has no device";
  std::vector<Backend*> backends;
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties{};
    if (const cudaError_t error = cudaGetDeviceProperties(&properties, device); error != cudaSuccess) {
      *why_none = Check(error, "asking device ", device, " for its properties").message();
    } else if (properties.major < kLeastMajor) {
      *why_none = StrCat(properties.name, " has compute capability ", properties.major, ".", properties.minor,
                         "; it must be at least ", kLeastMajor, ".0");
    } else {
      backends.push_back(new CudaBackend(device, properties, column));
    }
  }
  if (!backends.empty()) why_none->clear();
  return backends;
}

}  // namespace anydml::cuda
