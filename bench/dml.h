// AnyDML as a client uses it, through the public API only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "case.h"

namespace anydml::bench {

// A device, its queue, the buffers of one case and a closed command list with its dispatch.
class DmlRun {
 public:
  // `implementation`: the one to force, or "". `copies`: number of copies of the buffers, for TimeOnDevice.
  DmlRun(const Case& c, const Inputs& inputs, const std::string& implementation, uint32_t copies = 1);
  ~DmlRun();

  // Submits the list, signals the fence and waits for it; for compile-only cases, creates the operators and
  // compiles the graph.
  void Run();
  // Runs a list with a dispatch on every copy of the buffers, so that none profits from another's data in the
  // cache. Returns milliseconds per dispatch by the device's timestamps, `count` times.
  std::vector<double> TimeOnDevice(uint32_t count, uint32_t warm);
  // In binding order, of the latest run.
  std::vector<Bytes> ReadOutputs();
  const std::string& implementation() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

// The bytes that a copy within the device's memory reads and writes per millisecond.
double CopyBandwidth();

}  // namespace anydml::bench
