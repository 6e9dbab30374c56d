// Times a model on a device.
#pragma once

#include <cstdint>
#include <vector>

#include "anydml/model/model.h"
#include "anydml/model/model_device.h"
#include "base/status.h"
#include "common/session.h"

namespace anydml::tools {

// The end of the measuring is what comes first.
struct TimingLimits {
  uint32_t warm_up = 5;     // executions that do not count; a GPU replays a list from its fourth on
  uint64_t iterations = 0;  // 0: the time decides, after three of them at the least
  double seconds = 1;
};

// Seconds of one execution of all the model's dispatches, one entry per iteration.
struct Timings {
  std::vector<double> end_to_end;  // submission to the fence, by the host's clock
  std::vector<double> device;      // by the device's clock, without submission and fence
};

// Dispatches only, in their order and with barriers in between; what a model prints, writes
// or expects is left out.
class ModelTimer {
 public:
  // The model is prepared on the session; both have to outlive the timer.
  ModelTimer(const Model& model, ModelOnDevice* on_device, Session* session)
      : model_(model), on_device_(on_device), session_(session) {}

  // Ends early, without an error, when StopTiming was called.
  Status Time(const TimingLimits& limits, Timings* out);

 private:
  // The dispatches `times` times, as one list.
  Status RecordList(uint32_t times, bool timestamps, RecordedList* out);
  Status TimeOnce(const RecordedList& list, double* seconds);

  const Model& model_;
  ModelOnDevice* const on_device_;
  Session* const session_;
};

// Callable from any thread: no execution begins after this.
void StopTiming();
bool TimingStopped();

// The bytes of all tensors that the model's dispatches read and write.
uint64_t BytesMoved(const Model& model);

// Bytes that ELEMENT_WISE_IDENTITY reads and writes per second, with data beyond any cache.
Status MeasureBandwidth(Session* session, double* bytes_per_second);

struct Summary {
  double min = 0, p50 = 0, p90 = 0, p99 = 0, mean = 0;
};
// Percentiles by nearest rank: each is a sample. There is at least one.
Summary Summarize(std::vector<double> samples);

}  // namespace anydml::tools
