#include "graph/passes/common_loops.h"

namespace anydml {

void SeeFrom(const LoopParts& parts, std::span<const uint64_t> sizes, ElementProblem* problem) {
  const auto see = [&](std::vector<ElementOperand>& operands) {
    for (ElementOperand& operand : operands) {
      ElementOperand seen = {.type = operand.type};
      for (size_t d = 0; d < parts.size(); ++d) {
        seen.strides[d] = operand.strides[parts[d].loop] * parts[d].factor;
      }
      operand = seen;
    }
  };
  see(problem->inputs);
  see(problem->outputs);
  problem->rank = static_cast<uint32_t>(parts.size());
  problem->sizes = {};
  std::copy(sizes.begin(), sizes.end(), problem->sizes.begin());
}

void Simplify(ElementProblem* problem) {
  LoopParts parts;
  std::vector<uint64_t> sizes;
  for (uint32_t d = 0; d < problem->rank; ++d) {
    if (problem->sizes[d] == 1) continue;
    parts.push_back({d, 1});
    sizes.push_back(problem->sizes[d]);
  }
  SeeFrom(parts, sizes, problem);
}

bool FindCommonLoops(LoopWalk first, LoopWalk second, CommonLoops* common) {
  while (!first.at_end() && !second.at_end()) {
    if (first.stride() == 0 || first.stride() != second.stride()) return false;
    const uint64_t size = std::min(first.left(), second.left());
    if (first.left() % size != 0 || second.left() % size != 0) return false;
    common->sizes.push_back(size);
    common->first.push_back(first.Take(size));
    common->second.push_back(second.Take(size));
  }
  if (!first.at_end() || !second.at_end() || common->sizes.size() > kMaxElementLoops) return false;
  std::reverse(common->sizes.begin(), common->sizes.end());
  std::reverse(common->first.begin(), common->first.end());
  std::reverse(common->second.begin(), common->second.end());
  return true;
}

}  // namespace anydml
