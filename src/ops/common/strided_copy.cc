#include "ops/common/strided_copy.h"

#include <cstring>

#include "ops/common/dispatch.h"
#include "ops/common/stream_copy.h"

namespace anydml {
namespace {

enum Operand { kFrom, kTo };

template <typename Element>
void CopyPart(const NestPart<2>& part, const std::byte* from_bytes, std::byte* to_bytes, bool streams) {
  const auto* from = reinterpret_cast<const Element*>(from_bytes);
  auto* to = reinterpret_cast<Element*>(to_bytes);
  const uint64_t size = part.inner.size;
  const uint64_t from_stride = part.inner.strides[kFrom];
  const uint64_t to_stride = part.inner.strides[kTo];
  ForEach(part.outer, part.start, [&](const LoopNest<2>::Offsets& offsets) {
    const Element* source = from + offsets[kFrom];
    Element* target = to + offsets[kTo];
    if (from_stride == 1 && to_stride == 1 && streams) {
      StreamCopy(reinterpret_cast<std::byte*>(target), reinterpret_cast<const std::byte*>(source),
                 size * sizeof(Element));
    } else if (from_stride == 1 && to_stride == 1) {
      std::memcpy(target, source, size * sizeof(Element));
    } else if (from_stride == 0 && to_stride == 1) {
      std::fill_n(target, size, *source);
    } else {
      for (uint64_t i = 0; i < size; ++i) target[i * to_stride] = source[i * from_stride];
    }
  });
  if (streams) EndStream();
}

}  // namespace

StridedCopy::StridedCopy(const TensorDesc& from, const TensorDesc& to, uint32_t threads, bool stays)
    : type_(to.type), same_layout_(SameLayout(from, to)) {
  LoopNest<2> nest;
  for (uint32_t d = 0; d < to.rank; ++d) nest.Append(to.sizes[d], {from.strides[d], to.strides[d]});
  // Scattered reads cost less than scattered writes.
  nest = SortedByStride(nest, kTo);
  const uint64_t bytes = ElementCount(to) * (BitSize(type_) / 8);
  const uint32_t parts = PartsForBytes(bytes, threads);
  parts_ = CutNest(nest, LoopToCut(nest, parts), parts);
  // Short runs would make lines of memory that are written in pieces.
  constexpr uint64_t kLongRun = uint64_t{64} << 10;
  streams_ = !stays && bytes >= kStreamBytes && parts_[0].inner.size * (BitSize(type_) / 8) >= kLongRun;
}

void StridedCopy::Run(const std::byte* from, std::byte* to, Executor* executor) const {
  if (same_layout_ && from == to) return;
  DispatchByWidth(type_, [&]<typename Element>() {
    ParallelFor(executor, static_cast<uint32_t>(parts_.size()),
                [&](uint32_t p) { CopyPart<Element>(parts_[p], from, to, streams_); });
  });
}

}  // namespace anydml
