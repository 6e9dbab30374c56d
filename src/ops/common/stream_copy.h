// Copies of more than the caches hold.
#pragma once

#include <cstddef>
#include <cstdint>

namespace anydml {

// Copies of tensors from this size on use non-temporal stores: with ordinary ones, lines would be read before
// they are written and evicted before they are used. On a Xeon, copying 64 MiB then takes 6.8 ms instead of
// 9.2, and with 65536 scattered writes afterwards 6.9 instead of 10.3.
inline constexpr uint64_t kStreamBytes = uint64_t{16} << 20;

// Whether that also holds for `bytes` of results that are computed in a cache. Only on these machines: others
// detect by themselves that whole lines are overwritten.
constexpr bool StreamsResults(uint64_t bytes) {
#if defined(__x86_64__)
  return bytes >= kStreamBytes;
#else
  (void)bytes;
  return false;
#endif
}

// memcpy with non-temporal stores, if the machine has them. Other threads see the data after EndStream, which
// waits for the stores: call it once, after the last of many copies.
void StreamCopy(std::byte* to, const std::byte* from, uint64_t bytes);
// The same for results that were just written to `from` in stores of at least 16 bytes, starting at a
// multiple of 16. It reads 16 bytes at a time, which store forwarding can serve; a wider load that spans
// several stores would wait until these, and all streaming stores before them, are done.
void StreamComputed(std::byte* to, const std::byte* from, uint64_t bytes);
// `count` runs of whole cache lines, `from_step` and `to_step` bytes apart; targets are aligned to 64 bytes.
void StreamRuns(std::byte* to, int64_t to_step, const std::byte* from, int64_t from_step, uint64_t bytes,
                uint64_t count);
void EndStream();

}  // namespace anydml
