// AnyDML as a client uses it: the public API only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "case.h"

namespace anydml::bench {

// A device, its queue, the buffers of one case and a closed command list with its dispatch.
class DmlRun {
 public:
  // `implementation`: "" or the one to force. `copies`: of the buffers, for TimeOnDevice.
  DmlRun(const Case& c, const Inputs& inputs, const std::string& implementation, uint32_t copies = 1);
  ~DmlRun();

  // Submits the list, signals the fence and waits for it; of cases that only compile: creates the operators
  // and compiles the graph.
  void Run();
  // Runs a list with a dispatch on every copy of the buffers, so that what one leaves in the
  // cache helps no other. Milliseconds per dispatch by the device's timestamps, `count` times.
  std::vector<double> TimeOnDevice(uint32_t count, uint32_t warm);
  // In binding order, of the latest run.
  std::vector<Bytes> ReadOutputs();
  const std::string& implementation() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

// How many bytes a copy within the device's memory reads and writes per millisecond.
double CopyBandwidth();

}  // namespace anydml::bench
