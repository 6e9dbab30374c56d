// Who wants to know how long the parts of a graph take.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"

namespace anydml {

// Called after every part that was run, with its name, beginning and end (nanoseconds of the steady clock).
using RecordPart = void (*)(void* context, const char* name, uint64_t begin, uint64_t end);

struct PartRecorder {
  RecordPart record = nullptr;  // null: nobody
  void* context = nullptr;
};

// For the whole process.
void SetPartRecorder(const PartRecorder& recorder);
PartRecorder CurrentPartRecorder();

// Points in time of a device's stream, by the device's clock.
class StreamClock {
 public:
  virtual ~StreamClock() = default;
  // When everything that the stream has been given so far is done.
  virtual Status Mark() = 0;
  // Waits for the last one. Nanoseconds since the first.
  virtual Status Read(std::vector<uint64_t>* marks) = 0;
};

}  // namespace anydml
