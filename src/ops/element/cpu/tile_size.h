// The size of the tiles of cpu.tiles.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/element/cpu/pipeline.h"
#include "ops/element/cpu/steps.h"
#include "ops/element/problem.h"

namespace anydml {

// Limit for all registers of a tile: beyond this, and beyond half of it for FLOAT16, they are in temporary
// memory, since threads of applications may have small stacks.
inline constexpr uint64_t kRegistersOnStack = 128 << 10;

// Bytes per number in a register.
inline uint64_t WidthOf(const ElementProgram& program) { return program.wide() ? 8 : 4; }

// The elements of a tile, and of one across a transposed input.
uint64_t TileElements(const ElementProblem& problem, const std::vector<ElementStep>& steps,
                      const std::vector<Pipeline>& pipelines);
uint64_t ElementsAcross(const ElementProgram& program);

}  // namespace anydml
