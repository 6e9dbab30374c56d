// Measures how long the parts of a graph take.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"

namespace anydml {

// Called after every part that has run, with its name, beginning and end (nanoseconds of the steady clock).
using RecordPart = void (*)(void* context, const char* name, uint64_t begin, uint64_t end);

struct PartRecorder {
  RecordPart record = nullptr;  // null: no recording
  void* context = nullptr;
};

// For the whole process.
void SetPartRecorder(const PartRecorder& recorder);
PartRecorder CurrentPartRecorder();

// Measures points in time of a device's stream by the device's clock.
class StreamClock {
 public:
  virtual ~StreamClock() = default;
  // Marks the time at which everything that the stream has now is done.
  virtual Status Mark() = 0;
  // Waits for the last mark. Nanoseconds since the first.
  virtual Status Read(std::vector<uint64_t>* marks) = 0;
};

}  // namespace anydml
