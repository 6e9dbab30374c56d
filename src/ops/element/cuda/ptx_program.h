// Translates the machine's program (machine.cuh) into the text of a kernel of its own, which the driver
// compiles.
#pragma once

#include <string>

#include "ops/element/cuda/machine.cuh"
#include "ops/element/cuda/ptx_functions.h"

namespace anydml::element_cuda {

inline constexpr const char* kPtxProgramName = "anydml_program";

// The kernel's parameters are the operands' addresses, the number of elements (uint64_t), and whether the
// addresses satisfy IsAligned (uint32_t). A block has kThreads threads and the plan's elements. Fails with a
// reason in *why_not.
bool WritePtxProgram(const MachinePlan& plan, const PtxFunctions& functions, std::string* text,
                     std::string* why_not);

}  // namespace anydml::element_cuda
