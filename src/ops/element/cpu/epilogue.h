// A program of one FLOAT32 number, such as a fused activation, applied to numbers that are in the cache.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/element/cpu/loops.h"
#include "ops/element/program.h"

namespace anydml {

class Epilogue {
 public:
  // Of a program that changes register 0 and has no loads and stores.
  explicit Epilogue(const ElementProgram& program);

  bool empty() const { return steps_.empty(); }
  void Apply(float* numbers, uint64_t count) const;

 private:
  struct Step {
    Instruction instruction;
    ElementLoop loop;
  };
  std::vector<Step> steps_;
};

}  // namespace anydml
