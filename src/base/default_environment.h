// The denormal and rounding modes for which our results are promised, on a thread of the application.
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
