// Memory that runs out: this operator new and mmap take the place of the library's, too, and fail when a test
// says so. Not for a program that links the library statically.
#pragma once

#include <cstdint>

namespace anydml::test {

// Whose allocations fail: the library's, or those of the program that calls it as well.
enum class Whose { kLibrary, kProgram };

// While it exists the allocation behind `count` others fails, on whatever thread.
class AllocationFailure {
 public:
  explicit AllocationFailure(int64_t count, Whose whose = Whose::kLibrary);
  ~AllocationFailure();
  AllocationFailure(const AllocationFailure&) = delete;
  AllocationFailure& operator=(const AllocationFailure&) = delete;

  bool happened() const;
  int64_t allocations() const;  // so far, of those that count

 private:
  const int64_t count_;
};

// By operator new, of everybody, that were not freed yet.
int64_t LiveAllocations();

// Whether the library takes its operator new from a shared library, in whose place this file's comes. One
// that a toolchain has linked into it statically is called directly.
bool AllocationsAreSeen();

}  // namespace anydml::test
