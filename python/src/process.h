// A forked child has neither the threads of the parent's devices nor CUDA.
#pragma once

#include "base/status.h"

namespace anydml::python {

// Detects forked children from now on. Call it before the first device is opened.
void WatchForks();

// Whether this process was forked from one that had opened a device.
bool Forked();

// The error for that case. Objects of the parent's devices are then neither used nor freed.
Status CheckProcess();

}  // namespace anydml::python
