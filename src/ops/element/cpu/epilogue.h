// A program of one FLOAT32 number, such as a fused activation, applied to numbers that are in the cache.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/data_type.h"
#include "ops/element/cpu/loops.h"
#include "ops/element/program.h"

namespace anydml {

class Epilogue {
 public:
  // Of a program that changes register 0 and has no loads and stores.
  explicit Epilogue(const ElementProgram& program);

  bool empty() const { return steps_.empty(); }
  void Apply(float* numbers, uint64_t count) const;
  // Adds `bias` (-0 changes nothing) before, and puts what comes of it to `to`, which may be where the
  // numbers are, as FLOAT32 or FLOAT16. The numbers are scratch.
  void Finish(float* numbers, uint64_t count, float bias, DataType type, void* to) const;

 private:
  struct Step {
    Instruction instruction;
    ElementLoop loop;
  };
  std::vector<Step> steps_;
  // All that the steps do, where they are CLIP, RELU or none.
  struct Limits {
    float low, high;
  };
  std::optional<Limits> limits_;
};

}  // namespace anydml
