// Bytes that belong one behind the other, from many places, in whole lines.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "ops/common/stream_copy.h"

namespace anydml {

inline constexpr uint64_t kLineBytes = 64;

// Eight bytes over and over, or a line from anywhere: in registers.
struct ByteLine {
  typedef uint64_t Vector __attribute__((vector_size(16)));
  Vector vectors[kLineBytes / sizeof(Vector)];

  static ByteLine Of(uint64_t word) {
    ByteLine line;
    for (Vector& vector : line.vectors) vector = Vector{word, word};
    return line;
  }
  static ByteLine From(const void* bytes) {
    ByteLine line;
    std::memcpy(&line, bytes, sizeof(line));
    return line;
  }
};

// A line that is not full yet stays in registers. (Put together in memory, it would be read back behind lines
// that are on their way past the caches, and what comes next would wait for these.)
template <bool kStreams>
class LineWriter {
 public:
  // Sources are within [begin, end).
  LineWriter(std::byte* to, const std::byte* begin, const std::byte* end)
      : at_(reinterpret_cast<uintptr_t>(to) % kLineBytes),
        skipped_(at_),
        to_(to - at_),
        begin_(begin),
        end_(end) {}

  void Append(const std::byte* from, uint64_t bytes) {
    // Up to a line before and behind is read, too.
    if (static_cast<uint64_t>(from - begin_) >= kLineBytes &&
        static_cast<uint64_t>(end_ - from) >= bytes + kLineBytes) {
      return AppendRun(from, bytes);
    }
    std::array<std::byte, 3 * kLineBytes> copy;
    for (uint64_t i = 0; i < bytes; i += kLineBytes) {
      const uint64_t count = std::min(kLineBytes, bytes - i);
      std::memcpy(copy.data() + kLineBytes, from + i, count);
      AppendRun(copy.data() + kLineBytes, count);
    }
  }

  // `word` begins with a whole number of elements, of which there are `bytes`.
  void AppendRepeated(uint64_t word, uint64_t bytes) {
    const ByteLine line = ByteLine::Of(word);
    for (uint64_t room = kLineBytes - at_; bytes >= room; room = kLineBytes) {
      Merge(line, at_, kLineBytes);
      Write(line_);
      bytes -= room;
    }
    if (bytes == 0) return;
    Merge(line, at_, at_ + bytes);
    at_ += bytes;
  }

  void Finish() {
    std::memcpy(to_ + skipped_, reinterpret_cast<const std::byte*>(&line_) + skipped_,
                at_ - std::min(at_, skipped_));
    if constexpr (kStreams) EndStream();
  }

 private:
  void AppendRun(const std::byte* from, uint64_t bytes) {
    if (at_ > 0) {
      const uint64_t end = std::min(kLineBytes, at_ + bytes);
      Merge(ByteLine::From(from - at_), at_, end);
      const uint64_t count = end - at_;
      at_ = end;
      if (end < kLineBytes) return;
      Write(line_);
      from += count;
      bytes -= count;
    }
    for (; bytes >= kLineBytes; bytes -= kLineBytes, from += kLineBytes) Put(ByteLine::From(from));
    if (bytes > 0) Merge(ByteLine::From(from), 0, bytes);
    at_ = bytes;
  }

  // Bytes [begin, end) of `from` become the line's, which has none there yet.
  void Merge(const ByteLine& from, uint64_t begin, uint64_t end) {
    alignas(kLineBytes) static constexpr auto kMasks = [] {
      std::array<uint8_t, 3 * kLineBytes> masks{};
      std::fill(masks.begin() + kLineBytes, masks.end() - kLineBytes, uint8_t{0xFF});
      return masks;
    }();
    const ByteLine from_begin = ByteLine::From(kMasks.data() + kLineBytes - begin);
    const ByteLine until_end = ByteLine::From(kMasks.data() + 2 * kLineBytes - end);
    for (size_t i = 0; i < std::size(line_.vectors); ++i) {
      line_.vectors[i] |= from.vectors[i] & from_begin.vectors[i] & until_end.vectors[i];
    }
  }

  // The line that was begun, of which the first of all has bytes that are not ours.
  void Write(const ByteLine& line) {
    if (skipped_ == 0) {
      Put(line);
    } else {
      std::memcpy(to_ + skipped_, reinterpret_cast<const std::byte*>(&line) + skipped_,
                  kLineBytes - skipped_);
      to_ += kLineBytes;
      skipped_ = 0;
    }
    line_ = ByteLine::Of(0);
    at_ = 0;
  }

  void Put(const ByteLine& line) {
#if defined(__x86_64__)
    if constexpr (kStreams) {
      auto* const to = reinterpret_cast<__m128i*>(to_);
      for (size_t i = 0; i < std::size(line.vectors); ++i) {
        _mm_stream_si128(to + i, reinterpret_cast<__m128i>(line.vectors[i]));
      }
      to_ += kLineBytes;
      return;
    }
#endif
    std::memcpy(to_, &line, kLineBytes);
    to_ += kLineBytes;
  }

  ByteLine line_ = ByteLine::Of(0);  // its first `at_` bytes
  uint64_t at_;
  uint64_t skipped_;  // bytes of the first line that are before the beginning
  std::byte* to_;     // where the line goes
  const std::byte* begin_;
  const std::byte* end_;
};

}  // namespace anydml
