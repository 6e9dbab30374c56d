#include "ops/move/cpu/framed_rows.h"

#include "ops/common/best_target.h"

#if ANYDML_HAVE_HIGHWAY
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/move/cpu/framed_rows.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
#else
namespace anydml {
#endif
namespace {

#undef ANYDML_WRITES_LINES
#if ANYDML_HAVE_HIGHWAY && HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
#define ANYDML_WRITES_LINES 1
// A LineWriter whose line is one vector. Masked bytes are not read, so they need not be accessible.
class WideLineWriter {
 public:
  explicit WideLineWriter(LineWriter* writer)
      : open_(writer->open()),
        line_(_mm512_load_si512(open_.line)),
        at_(open_.at),
        skipped_(open_.skipped),
        to_(open_.to) {}

  HWY_INLINE void Append(const std::byte* from, uint64_t bytes) {
    if (at_ > 0) {
      const uint64_t room = kLineBytes - at_;
      if (bytes < room) {
        line_ = _mm512_mask_loadu_epi8(line_, Until(bytes) << at_, from - at_);
        at_ += bytes;
        return;
      }
      line_ = _mm512_mask_loadu_epi8(line_, From(at_), from - at_);
      WriteLine();
      from += room;
      bytes -= room;
    }
    for (; bytes >= kLineBytes; bytes -= kLineBytes, from += kLineBytes, to_ += kLineBytes) {
      Stream(_mm512_loadu_si512(from));
    }
    line_ = _mm512_maskz_loadu_epi8(Until(bytes), from);
    at_ = bytes;
  }

  HWY_INLINE void AppendRepeated(uint64_t word, uint64_t bytes) {
    const __m512i all = _mm512_set1_epi64(static_cast<int64_t>(word));
    for (uint64_t room = kLineBytes - at_; bytes >= room; room = kLineBytes) {
      line_ = _mm512_mask_mov_epi8(line_, From(at_), all);
      WriteLine();
      bytes -= room;
    }
    line_ = _mm512_mask_mov_epi8(line_, Until(bytes) << at_, all);
    at_ += bytes;
  }

  // Writes the state back to where it was taken from.
  void Save() {
    _mm512_store_si512(open_.line, line_);
    open_.at = at_;
    open_.skipped = skipped_;
    open_.to = to_;
  }

 private:
  // Masks of a line: the bytes from index `begin` on, and those before index `end`; both are below 64.
  static HWY_INLINE __mmask64 From(uint64_t begin) { return ~uint64_t{0} << begin; }
  static HWY_INLINE __mmask64 Until(uint64_t end) { return (uint64_t{1} << end) - 1; }

  HWY_INLINE void Stream(__m512i line) { _mm512_stream_si512(reinterpret_cast<__m512i*>(to_), line); }

  HWY_INLINE void WriteLine() {
    if (HWY_LIKELY(skipped_ == 0)) {
      Stream(line_);
    } else {
      _mm512_mask_storeu_epi8(to_, From(skipped_), line_);
      skipped_ = 0;
    }
    line_ = _mm512_setzero_si512();
    to_ += kLineBytes;
    at_ = 0;
  }

  LineWriter::Open& open_;
  __m512i line_;
  uint64_t at_, skipped_;
  std::byte* to_;
};

namespace widely {
#include "ops/move/cpu/framed_row-inl.h"
}  // namespace widely
#endif

// A local writer, because stores might alias the caller's as far as the compiler knows.
template <typename T>
void AppendLinesOf(const FramedRow& row, std::span<const std::byte* const> rows, LineWriter* writer) {
#if ANYDML_WRITES_LINES
  WideLineWriter wide(writer);
  for (const std::byte* const from : rows) widely::AppendFramed<T>(row, from, wide);
  wide.Save();
#else
  LineWriter lines = *writer;
  for (const std::byte* const from : rows) anydml::AppendFramed<T>(row, from, lines);
  *writer = lines;
#endif
}

}  // namespace

void AppendLines(const FramedRow& row, std::span<const std::byte* const> rows, LineWriter* writer) {
  switch (row.width) {
    case 1:
      return AppendLinesOf<uint8_t>(row, rows, writer);
    case 2:
      return AppendLinesOf<uint16_t>(row, rows, writer);
    case 4:
      return AppendLinesOf<uint32_t>(row, rows, writer);
    default:
      return AppendLinesOf<uint64_t>(row, rows, writer);
  }
}

#if ANYDML_HAVE_HIGHWAY
}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();
#else
}  // namespace anydml
#endif

#if !ANYDML_HAVE_HIGHWAY || HWY_ONCE
namespace anydml {
namespace {
ANYDML_EXPORT_BEST(AppendLines);
}  // namespace

void AppendRows(const FramedRow& row, std::span<const std::byte* const> rows, LineWriter* writer) {
  ANYDML_BEST(AppendLines)(row, rows, writer);
}

}  // namespace anydml
#endif
