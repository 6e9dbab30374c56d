// A test's body in a process of its own: what the library reads once per process differs there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace anydml::testing {

// Runs `body` in a child, where the CPU adapter computes with `threads` threads, and returns what
// it returned. Failures there are failures here. A test program that uses this uses the library in
// children only: a child of a process with threads would have locks that nobody unlocks.
std::string InChild(uint32_t threads, const std::function<std::string()>& body);

// How many threads the library has for sharing the work of kernels, and their ids.
std::vector<int> WorkerThreads();

}  // namespace anydml::testing
