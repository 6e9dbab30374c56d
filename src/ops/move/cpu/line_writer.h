// Writes bytes from many places sequentially: directly, or in whole cache lines with non-temporal stores.
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

class ByteWriter {
 public:
  explicit ByteWriter(std::byte* to) : to_(to) {}

  void Append(const std::byte* from, uint64_t bytes) {
    std::memcpy(to_, from, bytes);
    to_ += bytes;
  }

  // `bytes` of whole elements, which fill `word`.
  void AppendRepeated(uint64_t word, uint64_t bytes) {
    for (; bytes >= sizeof(word); bytes -= sizeof(word)) Put(word);
    if ((bytes & 4) != 0) Put(static_cast<uint32_t>(word));
    if ((bytes & 2) != 0) Put(static_cast<uint16_t>(word));
    if ((bytes & 1) != 0) Put(static_cast<uint8_t>(word));
  }

 private:
  template <typename T>
  void Put(T value) {
    std::memcpy(to_, &value, sizeof(value));
    to_ += sizeof(value);
  }

  std::byte* to_;
};

// A partial line is kept as vectors. (If it were assembled in memory from bytes, the load would wait for its
// stores, which are queued behind the streaming stores of earlier lines.)
class LineWriter {
 public:
  typedef uint64_t Vector __attribute__((vector_size(16)));
  static constexpr uint64_t kVectors = kLineBytes / sizeof(Vector);

  struct Open {
    alignas(kLineBytes) Vector line[kVectors] = {};  // its first `at` bytes, then zeros
    uint64_t at;
    uint64_t skipped;  // bytes of the first line before the target's beginning
    std::byte* to;     // target of the line
  };

  // Sources are within [begin, end).
  LineWriter(std::byte* to, const std::byte* begin, const std::byte* end) : begin_(begin), end_(end) {
    open_.at = open_.skipped = reinterpret_cast<uintptr_t>(to) % kLineBytes;
    open_.to = to - open_.at;
  }

  // For writers that continue with wider vectors.
  Open& open() { return open_; }

  void Append(const std::byte* from, uint64_t bytes) {
    // Reads up to a line before and after, too.
    if (static_cast<uint64_t>(from - begin_) >= kLineBytes &&
        static_cast<uint64_t>(end_ - from) >= bytes + kLineBytes) {
      return AppendRun(from, bytes);
    }
    std::array<std::byte, 3 * kLineBytes> copy{};
    for (uint64_t i = 0; i < bytes; i += kLineBytes) {
      const uint64_t count = std::min(kLineBytes, bytes - i);
      std::memcpy(copy.data() + kLineBytes, from + i, count);
      AppendRun(copy.data() + kLineBytes, count);
    }
  }

  void AppendRepeated(uint64_t word, uint64_t bytes) {
    const Vector all = {word, word};
    for (uint64_t room = kLineBytes - open_.at; bytes >= room; room = kLineBytes) {
      for (uint64_t i = 0; i < kVectors; ++i) open_.line[i] |= all & MaskFrom(open_.at, i);
      WriteLine();
      bytes -= room;
    }
    if (bytes > 0 && word != 0) {
      for (uint64_t i = 0; i < kVectors; ++i) {
        open_.line[i] |= all & MaskFrom(open_.at, i) & MaskUntil(open_.at + bytes, i);
      }
    }
    open_.at += bytes;
  }

  void Finish() {
    if (open_.at > open_.skipped) WritePart(open_.at);
    EndStream();
  }

 private:
  static Vector VectorAt(const void* lines, uint64_t i) {
    Vector vector;
    std::memcpy(&vector, static_cast<const std::byte*>(lines) + i * sizeof(Vector), sizeof(Vector));
    return vector;
  }

  // Masks for vector i of a line: the bytes of the line from index `begin` on, or those before index `end`.
  static constexpr auto kMasks = [] {
    std::array<uint8_t, 3 * kLineBytes> masks{};
    std::fill(masks.begin() + kLineBytes, masks.end() - kLineBytes, uint8_t{0xFF});
    return masks;
  }();
  static Vector MaskFrom(uint64_t begin, uint64_t i) { return VectorAt(&kMasks[kLineBytes - begin], i); }
  static Vector MaskUntil(uint64_t end, uint64_t i) { return VectorAt(&kMasks[2 * kLineBytes - end], i); }

  void AppendRun(const std::byte* from, uint64_t bytes) {
    if (open_.at > 0) {
      const uint64_t room = kLineBytes - open_.at;
      const std::byte* const line = from - open_.at;
      if (bytes < room) {
        for (uint64_t i = 0; i < kVectors; ++i) {
          open_.line[i] |= VectorAt(line, i) & MaskFrom(open_.at, i) & MaskUntil(open_.at + bytes, i);
        }
        open_.at += bytes;
        return;
      }
      for (uint64_t i = 0; i < kVectors; ++i) open_.line[i] |= VectorAt(line, i) & MaskFrom(open_.at, i);
      WriteLine();
      from += room;
      bytes -= room;
    }
    std::byte* to = open_.to;
    for (; bytes >= kLineBytes; bytes -= kLineBytes, from += kLineBytes, to += kLineBytes) {
      const Vector vectors[kVectors] = {VectorAt(from, 0), VectorAt(from, 1), VectorAt(from, 2),
                                        VectorAt(from, 3)};
      for (uint64_t i = 0; i < kVectors; ++i) Put(vectors[i], to + i * sizeof(Vector));
    }
    open_.to = to;
    if (bytes == 0) return;
    for (uint64_t i = 0; i < kVectors; ++i) open_.line[i] = VectorAt(from, i) & MaskUntil(bytes, i);
    open_.at = bytes;
  }

  // Writes a full line. The very first one contains bytes that must not be written.
  void WriteLine() {
    if (open_.skipped == 0) {
      for (uint64_t i = 0; i < kVectors; ++i) Put(open_.line[i], open_.to + i * sizeof(Vector));
    } else {
      WritePart(kLineBytes);
    }
    for (Vector& vector : open_.line) vector = Vector{};
    open_.to += kLineBytes;
    open_.at = 0;
  }

  void WritePart(uint64_t end) {
    std::memcpy(open_.to + open_.skipped, reinterpret_cast<const std::byte*>(open_.line) + open_.skipped,
                end - open_.skipped);
    open_.skipped = 0;
  }

  static void Put(Vector vector, std::byte* to) {
#if defined(__x86_64__)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), reinterpret_cast<__m128i>(vector));
#else
    std::memcpy(to, &vector, sizeof(vector));
#endif
  }

  Open open_;
  const std::byte* begin_;
  const std::byte* end_;
};

}  // namespace anydml
