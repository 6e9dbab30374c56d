// A forked child has none of the threads that the parent's devices work with, and no CUDA.
#pragma once

#include "base/status.h"

namespace anydml::python {

// From now on children are told apart. Before the first device.
void WatchForks();

// Whether this process is a child of one that had opened a device.
bool Forked();

// The sentence about that. What belongs to the parent's devices is neither used nor given back then.
Status CheckProcess();

}  // namespace anydml::python
