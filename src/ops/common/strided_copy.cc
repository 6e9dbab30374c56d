#include "ops/common/strided_copy.h"

#include "ops/common/stream_copy.h"

namespace anydml {
namespace {

// Scattered reads cost less than scattered writes.
LoopNest<2> NestOf(const TensorDesc& from, const TensorDesc& to) {
  LoopNest<2> nest;
  for (uint32_t d = 0; d < to.rank; ++d) nest.Append(to.sizes[d], {from.strides[d], to.strides[d]});
  return SortedByStride(nest, NestCopy::kTo);
}

// Transposes stream from a smaller size on: lines are overwritten in pieces, so the processor reads them
// first.
bool Streams(const LoopNest<2>& nest, uint64_t bytes) {
  const bool turns = nest.rank > 0 && nest.loops[nest.rank - 1].strides[NestCopy::kFrom] != 1;
  return bytes >= (turns ? kStreamBytes / 2 : kStreamBytes);
}

uint64_t BytesOf(const TensorDesc& tensor) { return ElementCount(tensor) * (BitSize(tensor.type) / 8); }

}  // namespace

StridedCopy::StridedCopy(const TensorDesc& from, const TensorDesc& to, uint32_t threads, bool stays)
    : same_layout_(SameLayout(from, to)),
      copy_(NestOf(from, to), BitSize(to.type) / 8, !stays && Streams(NestOf(from, to), BytesOf(to))),
      parts_(PartsForBytes(BytesOf(to), threads)) {}

void StridedCopy::Run(const std::byte* from, std::byte* to, Executor* executor) const {
  if (same_layout_ && from == to) return;
  ParallelFor(executor, parts_, [&](uint32_t p) { copy_.Run(from, to, p, parts_); });
}

}  // namespace anydml
