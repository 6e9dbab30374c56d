// The lower bound for every implementation: moving the bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "case.h"

namespace anydml::bench {

class Floor {
 public:
  Floor(const Case& c, const Inputs& inputs, uint32_t threads);
  ~Floor();
  Floor(const Floor&) = delete;

  // The ways to do it on this machine; the floor is the fastest.
  std::vector<std::string> variants() const;
  // Milliseconds of `count` runs after `warm` untimed ones.
  std::vector<double> Time(const std::string& variant, uint32_t count, uint32_t warm);

 private:
  struct Region;
  void Part(const std::string& variant, uint32_t thread);

  const Case case_;
  const uint32_t threads_;
  std::vector<Region> regions_;  // what is read
  std::vector<Region> target_;   // empty, or the target of a copy
};

}  // namespace anydml::bench
