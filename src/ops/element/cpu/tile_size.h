// How large the tiles of cpu.tiles are.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/element/cpu/pipeline.h"
#include "ops/element/cpu/steps.h"
#include "ops/element/problem.h"

namespace anydml {

// Of all registers of a tile: more than this, and half of it for FLOAT16, is temporary memory, since threads
// of applications may have small stacks.
inline constexpr uint64_t kRegistersOnStack = 128 << 10;

// Bytes of a number in a register.
inline uint64_t WidthOf(const ElementProgram& program) { return program.wide() ? 8 : 4; }

// Elements of a tile, and of one that lies across an input.
uint64_t TileElements(const ElementProblem& problem, const std::vector<ElementStep>& steps,
                      const std::vector<Pipeline>& pipelines);
uint64_t ElementsAcross(const ElementProgram& program);

}  // namespace anydml
