// A program on one FLOAT32 number, such as a fused activation, applied to numbers in the cache.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/data_type.h"
#include "ops/element/program.h"
#include "ops/numbers/element_loops.h"

namespace anydml {

// Whether vector comparisons clamp correctly to these limits: they cannot tell +0 from -0.
bool CompareAsLimits(float low, float high);

class Epilogue {
 public:
  // For a program that changes register 0 and has no loads and stores.
  explicit Epilogue(const ElementProgram& program);

  bool empty() const { return steps_.empty(); }
  void Apply(float* numbers, uint64_t count) const;
  // Adds `bias` (-0 for none), applies the program and stores the results as FLOAT32 or FLOAT16 at `to`,
  // which may be the place of the numbers. The numbers are overwritten.
  void Finish(float* numbers, uint64_t count, float bias, DataType type, void* to) const;
  // The whole program, if it is CLIP, RELU or nothing: clamps to [low, high] and makes NaNs canonical.
  struct Limits {
    float low, high;
  };
  const std::optional<Limits>& limits() const { return limits_; }

 private:
  struct Step {
    Instruction instruction;
    ElementLoop loop;
  };
  std::vector<Step> steps_;
  std::optional<Limits> limits_;
};

}  // namespace anydml
