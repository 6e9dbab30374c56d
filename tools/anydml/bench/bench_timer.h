// Times a model on a device.
#pragma once

#include <cstdint>
#include <vector>

#include "anydml/model/model.h"
#include "anydml/model/model_device.h"
#include "base/status.h"
#include "client/session.h"

namespace anydml::client {

// Timing ends at the first limit reached.
struct TimingLimits {
  uint32_t warm_up = 5;     // untimed executions; a GPU replays a list from its fourth execution on
  uint64_t iterations = 0;  // 0: limited by time only, but at least three
  double seconds = 1;
};

// Seconds per execution of all the model's dispatches, one entry per iteration.
struct Timings {
  std::vector<double> end_to_end;  // from submission to the fence, by the host's clock
  std::vector<double> device;      // by the device's clock, without submission and fence
};

// Times the dispatches only, in order and with barriers in between; what a model prints, writes or expects is
// ignored.
class ModelTimer {
 public:
  // The model must be prepared on the session; both must outlive the timer.
  ModelTimer(const Model& model, ModelOnDevice* on_device, Session* session)
      : model_(model), on_device_(on_device), session_(session) {}

  // Ends early, without an error, if StopTiming was called.
  Status Time(const TimingLimits& limits, Timings* out);

 private:
  // Records the dispatches `times` times, as one list.
  Status RecordList(uint32_t times, bool timestamps, RecordedList* out);
  Status TimeOnce(const RecordedList& list, double* seconds);

  const Model& model_;
  ModelOnDevice* const on_device_;
  Session* const session_;
};

// Callable from any thread: no execution begins afterwards.
void StopTiming();
bool TimingStopped();

// The bytes of all tensors that the model's dispatches read and write.
uint64_t BytesMoved(const Model& model);

// The bytes that ELEMENT_WISE_IDENTITY reads and writes per second, with data larger than any cache.
Status MeasureBandwidth(Session* session, double* bytes_per_second);

struct Summary {
  double min = 0, p50 = 0, p90 = 0, p99 = 0, mean = 0;
};
// Percentiles by nearest rank, so that each is a sample. There must be at least one sample.
Summary Summarize(std::vector<double> samples);

}  // namespace anydml::client
