#include "backend/cuda/stream_clock.h"

#include <cmath>

#include "backend/cuda/cuda_status.h"

namespace anydml::cuda {
namespace {

class EventClock final : public StreamClock {
 public:
  explicit EventClock(cudaStream_t stream) : stream_(stream) {}
  ~EventClock() override {
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
  }
  EventClock(const EventClock&) = delete;
  EventClock& operator=(const EventClock&) = delete;

  Status Mark() override {
    cudaEvent_t event = nullptr;
    ANYDML_RETURN_IF_ERROR(Check(cudaEventCreate(&event), "creating an event"));
    events_.push_back(event);
    return Check(cudaEventRecord(event, stream_), "recording an event");
  }

  Status Read(std::vector<uint64_t>* marks) override {
    if (events_.empty()) return {};
    ANYDML_RETURN_IF_ERROR(Check(cudaEventSynchronize(events_.back()), "waiting for an event"));
    for (const cudaEvent_t event : events_) {
      float milliseconds = 0;
      ANYDML_RETURN_IF_ERROR(
          Check(cudaEventElapsedTime(&milliseconds, events_.front(), event), "reading an event"));
      marks->push_back(static_cast<uint64_t>(std::llround(static_cast<double>(milliseconds) * 1e6)));
    }
    return {};
  }

 private:
  const cudaStream_t stream_;
  std::vector<cudaEvent_t> events_;
};

}  // namespace

std::unique_ptr<StreamClock> CreateStreamClock(void* stream) {
  auto* const cuda_stream = static_cast<cudaStream_t>(stream);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(cuda_stream, &status) != cudaSuccess || status != cudaStreamCaptureStatusNone)
    return nullptr;
  return std::make_unique<EventClock>(cuda_stream);
}

}  // namespace anydml::cuda
