// Denormals and rounding as our results are promised for, on a thread of the application's.
#pragma once

#include <cfenv>

namespace anydml {

class DefaultEnvironment {
 public:
  DefaultEnvironment() {
    std::fegetenv(&own_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultEnvironment() { std::fesetenv(&own_); }
  DefaultEnvironment(const DefaultEnvironment&) = delete;
  DefaultEnvironment& operator=(const DefaultEnvironment&) = delete;

 private:
  std::fenv_t own_;
};

}  // namespace anydml
