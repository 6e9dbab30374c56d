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
  // `implementation`: "" or the one to force.
  DmlRun(const Case& c, const Inputs& inputs, const std::string& implementation);
  ~DmlRun();

  // Submits the list, signals the fence and waits for it.
  void Run();
  // In binding order, of the latest run.
  std::vector<Bytes> ReadOutputs();
  const std::string& implementation() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace anydml::bench
