// Baselines with the standard library: top-k by partially sorting the indices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "case.h"

namespace anydml::bench {

class Baselines {
 public:
  Baselines(const Case& c, const Inputs& inputs);

  // Empty if `<` is no order for the data (NaN), or the type has none (float16).
  std::vector<std::string> variants() const;
  void Run(const std::string& variant);
  // Of the latest run: values, indices.
  std::vector<Bytes> ReadOutputs() const { return {values_, indices_}; }

 private:
  template <typename T>
  void RunAs(bool partial_sort);

  const Case case_;
  const Bytes input_;
  Bytes values_, indices_;
  std::vector<uint32_t> order_;
};

}  // namespace anydml::bench
