#pragma once

#include <memory>

#include "kernel/part_recorder.h"

namespace anydml::cuda {

// For a cudaStream_t of the current device; null while the stream is being recorded.
std::unique_ptr<StreamClock> CreateStreamClock(void* stream);

}  // namespace anydml::cuda
