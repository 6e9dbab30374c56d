// Copying more than caches hold.
#pragma once

#include <cstddef>
#include <cstdint>

namespace anydml {

// Copies of tensors from this size on go past the caches: their lines would be read before
// they are written, and be gone before they are used. Copying 64 MiB on a Xeon takes 6.8 ms
// so instead of 9.2, and with 65536 scattered writes afterwards 6.9 instead of 10.3.
inline constexpr uint64_t kStreamBytes = uint64_t{16} << 20;

// Whether that also holds for `bytes` of results that are computed in a cache: other machines than these see
// by themselves that lines are overwritten.
constexpr bool StreamsResults(uint64_t bytes) {
#if defined(__x86_64__)
  return bytes >= kStreamBytes;
#else
  (void)bytes;
  return false;
#endif
}

// memcpy with non-temporal stores, where the machine has them. Other threads see what was stored after
// EndStream, which waits for it: once, behind the last of many copies.
void StreamCopy(std::byte* to, const std::byte* from, uint64_t bytes);
// The same for results that have just been written to `from`, 16 bytes or more at a time from an address of
// whole ones on. They are read by 16 bytes, which a processor takes from what it is about to write; longer
// ones from several writes would wait until these, and so all streaming before them, are done.
void StreamComputed(std::byte* to, const std::byte* from, uint64_t bytes);
// `count` runs of some whole lines of 64 bytes, at which their targets begin, `from_step` and `to_step` bytes
// apart.
void StreamRuns(std::byte* to, int64_t to_step, const std::byte* from, int64_t from_step, uint64_t bytes,
                uint64_t count);
void EndStream();

}  // namespace anydml
