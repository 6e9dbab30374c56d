// Arm's processors have a mode in which every operation on a NaN returns the canonical NaN, so that loops
// need not test for NaNs. Copies of bits keep theirs.
#pragma once

#include <cstdint>

namespace anydml {

#if defined(__aarch64__)
// Enables the mode for the thread during the object's lifetime. Operands of computations in this scope are
// loaded and stored inside it, which keeps compilers from moving the computations out of it.
class DefaultNans {
 public:
  explicit DefaultNans(bool wanted) : wanted_(wanted) {
    if (!wanted_) return;
    asm volatile("mrs %0, fpcr" : "=r"(before_) : : "memory");
    Set(before_ | kDefaultNan);
  }
  ~DefaultNans() {
    if (wanted_) Set(before_);
  }
  DefaultNans(const DefaultNans&) = delete;
  DefaultNans& operator=(const DefaultNans&) = delete;

 private:
  static constexpr uint64_t kDefaultNan = uint64_t{1} << 25;

  static void Set(uint64_t control) { asm volatile("msr fpcr, %0" : : "r"(control) : "memory"); }

  const bool wanted_;
  uint64_t before_ = 0;
};
#else
class DefaultNans {
 public:
  explicit DefaultNans(bool) {}
  ~DefaultNans() {}
};
#endif

}  // namespace anydml
