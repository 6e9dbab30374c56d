#include "ops/common/stream_copy.h"

#include <cstring>

#if ANYDML_HAVE_HIGHWAY
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/common/stream_copy.cc"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void Stream(uint8_t* HWY_RESTRICT to, const uint8_t* HWY_RESTRICT from, uint64_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  const uint64_t lanes = hn::Lanes(d);
  // Stores are aligned vectors.
  const uint64_t head = std::min<uint64_t>(bytes, (lanes - reinterpret_cast<uintptr_t>(to) % lanes) % lanes);
  std::memcpy(to, from, head);
  uint64_t i = head;
  for (; i + 4 * lanes <= bytes; i += 4 * lanes) {
    const auto a = hn::LoadU(d, from + i);
    const auto b = hn::LoadU(d, from + i + lanes);
    const auto c = hn::LoadU(d, from + i + 2 * lanes);
    const auto e = hn::LoadU(d, from + i + 3 * lanes);
    hn::Stream(a, d, to + i);
    hn::Stream(b, d, to + i + lanes);
    hn::Stream(c, d, to + i + 2 * lanes);
    hn::Stream(e, d, to + i + 3 * lanes);
  }
  for (; i + lanes <= bytes; i += lanes) hn::Stream(hn::LoadU(d, from + i), d, to + i);
  std::memcpy(to + i, from + i, bytes - i);
}

void StreamParts(uint8_t* HWY_RESTRICT to, const uint8_t* HWY_RESTRICT from, uint64_t bytes) {
#if HWY_TARGET <= HWY_AVX3
  const uint64_t head = std::min<uint64_t>(bytes, (64 - reinterpret_cast<uintptr_t>(to) % 64) % 64);
  std::memcpy(to, from, head);
  uint64_t i = head;
  for (; i + 64 <= bytes; i += 64) {
    const auto* const parts = reinterpret_cast<const __m128i*>(from + i);
    __m512i line = _mm512_castsi128_si512(_mm_loadu_si128(parts));
    line = _mm512_inserti32x4(line, _mm_loadu_si128(parts + 1), 1);
    line = _mm512_inserti32x4(line, _mm_loadu_si128(parts + 2), 2);
    line = _mm512_inserti32x4(line, _mm_loadu_si128(parts + 3), 3);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), line);
  }
  std::memcpy(to + i, from + i, bytes - i);
#else
  Stream(to, from, bytes);
#endif
}

void StreamLines(uint8_t* HWY_RESTRICT to, int64_t to_step, const uint8_t* HWY_RESTRICT from,
                 int64_t from_step, uint64_t bytes, uint64_t count) {
  const hn::CappedTag<uint8_t, 64> d;
  const uint64_t lanes = hn::Lanes(d);
  for (; count > 0; --count, from += from_step, to += to_step) {
    for (uint64_t i = 0; i < bytes; i += lanes) hn::Stream(hn::LoadU(d, from + i), d, to + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();
#endif

#if !ANYDML_HAVE_HIGHWAY || HWY_ONCE
namespace anydml {

#if ANYDML_HAVE_HIGHWAY
HWY_EXPORT(Stream);
void StreamCopy(std::byte* to, const std::byte* from, uint64_t bytes) {
  HWY_DYNAMIC_DISPATCH(Stream)(reinterpret_cast<uint8_t*>(to), reinterpret_cast<const uint8_t*>(from), bytes);
}
HWY_EXPORT(StreamParts);
void StreamComputed(std::byte* to, const std::byte* from, uint64_t bytes) {
  HWY_DYNAMIC_DISPATCH(StreamParts)
  (reinterpret_cast<uint8_t*>(to), reinterpret_cast<const uint8_t*>(from), bytes);
}
HWY_EXPORT(StreamLines);
void StreamRuns(std::byte* to, int64_t to_step, const std::byte* from, int64_t from_step, uint64_t bytes,
                uint64_t count) {
  HWY_DYNAMIC_DISPATCH(StreamLines)
  (reinterpret_cast<uint8_t*>(to), to_step, reinterpret_cast<const uint8_t*>(from), from_step, bytes, count);
}
void EndStream() { hwy::FlushStream(); }
#else
void StreamCopy(std::byte* to, const std::byte* from, uint64_t bytes) { std::memcpy(to, from, bytes); }
void StreamComputed(std::byte* to, const std::byte* from, uint64_t bytes) { std::memcpy(to, from, bytes); }
void StreamRuns(std::byte* to, int64_t to_step, const std::byte* from, int64_t from_step, uint64_t bytes,
                uint64_t count) {
  for (; count > 0; --count, from += from_step, to += to_step) std::memcpy(to, from, bytes);
}
void EndStream() {}
#endif

}  // namespace anydml
#endif
