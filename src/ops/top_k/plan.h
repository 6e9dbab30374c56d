// Plan of GPU TOP_K: the parameters of its kernels, and the plan of the kernel that takes every problem.
// Plain data, the same for every GPU backend; the backend adds addresses and launches.
//
// Rounds: a block takes a sequence. Each round reads the whole sequence and determines the next ranks, as
// many as its list in shared memory holds, by a bitonic sort.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel/kernel.h"
#include "ops/common/loop_nest.h"
#include "ops/device/grid.h"
#include "ops/top_k/problem.h"
#include "ops/top_k/sequences.h"

namespace anydml {

// Made on the host, so that kernels are compiled per width and not per type and direction.
struct KeyOrder {
  bool is_float = false;
  uint64_t flip = 0;  // toggled in every key; repeated to fill 64 bits
};

KeyOrder KeyOrderOf(DataType type, bool largest);

// Passed by value to every kernel.
struct TopKSequences {
  const std::byte* input;
  const std::byte* input_end;  // a multiple of 4 bytes after `input`
  std::byte* value;
  std::byte* index;
  uint64_t input_bytes;
  uint64_t count;  // of sequences
  uint32_t n;
  uint32_t k;
  KeyOrder order;
  bool wide_index;  // UINT64
  LoopNest<3>::Offsets axis;
  LoopNest<3> nest;
};

// The parameters without the buffers.
TopKSequences TopKSequencesOf(const TopKProblem& problem);
// The parameters with the buffers.
TopKSequences Bind(TopKSequences all, const KernelArguments& arguments);

// Whether every sequence is contiguous and begins at a multiple of 16 bytes (as buffers do).
bool SequencesAreAligned(const TopKSequences& all, uint32_t element_bytes);

inline constexpr uint32_t kTopKRoundThreads = 1024;
// Candidates per round; the list and an equally long spare list are in shared memory.
inline constexpr uint32_t kTopKRoundCapacity = 4096;

// The size of a candidate: a key above an index.
constexpr uint32_t CandidateBytes(uint32_t element_bytes) { return element_bytes == 8 ? 16 : 8; }

struct TopKRoundsPlan {
  TopKSequences sequences = {};  // except the buffers
  Grid grid;                     // whose blocks continue with further sequences
};

TopKRoundsPlan MakeTopKRoundsPlan(const TopKProblem& problem);

}  // namespace anydml
