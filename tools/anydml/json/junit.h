// Test results as a JUnit file, for continuous integration services.
#pragma once

#include <string>
#include <vector>

namespace anydml::client {

struct JunitCase {
  enum class Outcome { kPassed, kFailed, kSkipped };

  std::string suite;
  std::string name;
  Outcome outcome = Outcome::kPassed;
  std::string message;  // why not
  double seconds = 0;
};

// Cases of one suite are adjacent.
std::string JunitXml(const std::vector<JunitCase>& cases);

}  // namespace anydml::client
