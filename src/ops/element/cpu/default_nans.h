// Arm's processors can be told to give the usual NaN, the one that Canonical makes of all others, as the
// result of every operation on a NaN: loops need not look for NaNs then. Copies of bits keep theirs.
#pragma once

#include <cstdint>

namespace anydml {

#if defined(__aarch64__)
// While one lives, the thread's operations do so. What is computed meanwhile is read from memory and written
// to memory meanwhile, which keeps compilers from moving it.
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
