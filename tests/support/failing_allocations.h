// Simulates running out of memory: these operator new and mmap replace the library's, too, and fail on
// request. Not for a program that links the library statically.
#pragma once

#include <cstdint>

namespace anydml::test {

// Whose allocations fail: the library's, or also those of the program that calls it.
enum class Whose { kLibrary, kProgram };

// While it exists, the allocation after `count` others fails, on any thread.
class AllocationFailure {
 public:
  explicit AllocationFailure(int64_t count, Whose whose = Whose::kLibrary);
  ~AllocationFailure();
  AllocationFailure(const AllocationFailure&) = delete;
  AllocationFailure& operator=(const AllocationFailure&) = delete;

  bool happened() const;
  int64_t allocations() const;  // so far, among those that count

 private:
  const int64_t count_;
};

// Allocations by operator new, from anywhere, that are not freed yet.
int64_t LiveAllocations();

// Whether the library takes operator new from a shared library, which this file's then replaces. One that a
// toolchain has linked into the library statically is called directly.
bool AllocationsAreSeen();

}  // namespace anydml::test
