// From index tuples to places in the output: they are read, checked and queued in blocks, so that the places
// can be prefetched some updates ahead. (Updates of a large output mostly wait for memory.)
#pragma once

#include <algorithm>
#include <bit>
#include <type_traits>

#include "ops/scatter/cpu/choose_packed.h"
#include "ops/scatter/loops.h"

namespace anydml {

// Updates to be written, in order. Not initialised, because most of it is never used.
struct TargetQueue {
  static constexpr uint32_t kBlock = 256;  // positions that are read at a time

  uint32_t count = 0;
  bool all_in_range = true;
  uint64_t sources[2 * kBlock];  // the slice's first element in the updates
  uint64_t targets[2 * kBlock];  // and in the output

  // Moves entries from `begin` on to the front.
  void DropUntil(uint32_t begin) {
    std::copy(sources + begin, sources + count, sources);
    std::copy(targets + begin, targets + count, targets);
    count -= begin;
  }
};

// One component of the tuple at `tuple`, wrapped; at least the dimension's size if out of range.
template <typename Index>
inline uint64_t WrappedIndex(const ScatterLoops::Component& component, const Index* tuple) {
  const uint64_t index = static_cast<uint64_t>(tuple[component.index_offset]);
  // Signed indices were sign-extended: adding the size modulo 2^64 wraps those in [-size, -1] and leaves all
  // other negative ones far above any size.
  if (std::is_signed_v<Index> && static_cast<int64_t>(index) < 0) return index + component.wrap;
  return index;
}

// Evenly spaced positions, at most TargetQueue::kBlock.
template <typename Index>
struct PositionRun {
  const Index* tuple;  // of the first one
  uint64_t source;
  uint64_t target;  // without the tuple's components
  LoopNest<3>::Offsets strides;
  uint32_t count;

  const Index* TupleOf(uint64_t i) const { return tuple + i * strides[ScatterLoops::kIndices]; }
};

// Sums up a tuple's part of the target, and finds its key for ScatterOwner; false when an
// index is out of range. kTuple: size of the tuples, 0: whatever the loops say.
template <uint32_t kTuple, typename Index>
inline bool ReadTuple(const ScatterLoops& loops, const Index* tuple, uint64_t* key, uint64_t* offset) {
  const uint32_t tuple_size = kTuple == 0 ? loops.tuple_size : kTuple;
  bool in_range = true;
  uint64_t index = 0, sum = 0;
  for (uint32_t c = 0; c < tuple_size; ++c) {
    index = WrappedIndex(loops.tuple[c], tuple);
    in_range &= index < loops.tuple[c].size;
    sum += index * loops.tuple[c].output_stride;
  }
  *key = kTuple == 1 ? index : sum;
  *offset = sum;
  return in_range;
}

// Selects up to 64 positions of `run` from index `first` on: bit i is set if position first + i is in range
// and belongs to `owner`. Branch-free, since a branch would be unpredictable. offsets[i] is the tuple's part
// of the target: indices are read only once, so that the checked values are used even if the indices change
// meanwhile.
template <uint32_t kTuple, typename Index>
uint64_t ChoosePositions(const ScatterLoops& loops, const ScatterOwner& owner, const PositionRun<Index>& run,
                         uint32_t first, uint32_t count, uint64_t* offsets, bool* all_in_range) {
  uint64_t chosen = 0;
  bool all = true;
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t key;
    const bool in_range = ReadTuple<kTuple>(loops, run.TupleOf(first + i), &key, &offsets[i]);
    chosen |= static_cast<uint64_t>(in_range & owner.Owns(key)) << i;
    all &= in_range;
  }
  *all_in_range &= all;
  return chosen;
}

// Queues the positions first + i of `run` whose bits are set; offsets[i] * scale is the tuple's part of the
// target.
template <typename Index, typename Offset>
void QueueChosen(const PositionRun<Index>& run, uint32_t first, uint64_t chosen, const Offset* offsets,
                 uint64_t scale, TargetQueue* queue) {
  // Copies, which the compiler can keep in registers because stores cannot alias them.
  const uint64_t source_stride = run.strides[ScatterLoops::kUpdates];
  const uint64_t target_stride = run.strides[ScatterLoops::kOutput];
  const uint64_t source = run.source + first * source_stride;
  const uint64_t target = run.target + first * target_stride;
  uint64_t* sources = queue->sources + queue->count;
  uint64_t* targets = queue->targets + queue->count;
  const auto put = [&](uint32_t place, uint64_t i) {
    sources[place] = source + i * source_stride;
    targets[place] = target + i * target_stride + offsets[i] * scale;
  };
  const auto count = static_cast<uint32_t>(std::popcount(chosen));
  if (chosen == ~uint64_t{0}) {
    for (uint32_t i = 0; i < 64; ++i) put(i, i);
  } else {
    for (uint32_t i = 0; i < count; ++i, chosen &= chosen - 1) put(i, std::countr_zero(chosen));
  }
  queue->count += count;
}

#if ANYDML_HAVE_HIGHWAY
// As QueueTargets, for packed tuples and whole words of 64 positions.
template <typename Index>
void QueuePacked(const ScatterLoops& loops, const ScatterOwner& owner, const PositionRun<Index>& run,
                 uint32_t words, TargetQueue* queue) {
  std::make_unsigned_t<Index> keys[TargetQueue::kBlock];
  uint64_t chosen[TargetQueue::kBlock / 64];
  queue->all_in_range &= ChoosePacked(run.tuple, words, loops, owner, keys, chosen);
  const uint64_t scale = loops.tuple_size == 1 ? loops.tuple[0].output_stride : 1;  // from key to offset
  for (uint32_t w = 0; w < words; ++w) {
    QueueChosen(run, 64 * w, chosen[w], keys + 64 * w, scale, queue);
  }
}
#endif

// Queues the positions of a run that are in range and belong to `owner`.
template <uint32_t kTuple, typename Index>
void QueueTargets(const ScatterLoops& loops, const ScatterOwner& owner, const PositionRun<Index>& run,
                  TargetQueue* queue) {
  uint32_t first = 0;
#if ANYDML_HAVE_HIGHWAY
  if (kTuple != 0 && run.count >= 64 && run.strides[ScatterLoops::kIndices] == kTuple && loops.packed) {
    QueuePacked(loops, owner, run, run.count / 64, queue);
    first = run.count / 64 * 64;
  }
#endif
  for (; first < run.count; first += 64) {
    const uint32_t count = std::min(run.count - first, 64u);
    uint64_t offsets[64];
    const uint64_t chosen =
        ChoosePositions<kTuple>(loops, owner, run, first, count, offsets, &queue->all_in_range);
    QueueChosen(run, first, chosen, offsets, 1, queue);
  }
}

// The index of the first position with an index out of range; kNone if there is none.
inline constexpr uint64_t kNone = ~uint64_t{0};

template <typename Index>
uint64_t FirstOutOfRange(const ScatterLoops& loops, const Index* indices) {
  uint64_t number = 0, first = kNone;
  ForEach(loops.positions, [&](const LoopNest<3>::Offsets& at) {
    uint64_t key, offset;
    const bool in_range = ReadTuple<0>(loops, indices + at[ScatterLoops::kIndices], &key, &offset);
    if (!in_range && first == kNone) first = number;
    ++number;
  });
  return first;
}

}  // namespace anydml
