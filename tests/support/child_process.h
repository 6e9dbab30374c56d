// Runs a test's body in a separate process, for settings that the library reads once per process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace anydml::testing {

// Runs `body` in a child, where the CPU adapter computes with `threads` threads, and returns its result.
// Failures there are failures here. A test program that uses this must use the library in children only: a
// child of a process with threads may inherit locks that are never released.
std::string InChild(uint32_t threads, const std::function<std::string()>& body);

// The library's worker threads for kernels: their ids.
std::vector<int> WorkerThreads();

}  // namespace anydml::testing
