// AttentionOperands::Join on a GPU.
#pragma once

#include "ops/attention/operands.h"

namespace anydml {

void JoinOnDevice(const AttentionJoin& join, const AttentionJoinMemory& memory, bool is_half, void* stream);

}  // namespace anydml
