#include "ops/integer_product/cpu/quads.h"

#include <algorithm>
#include <cstring>

#include "ops/common/transpose_block.h"
#include "ops/common/transpose_tile.h"
#include "ops/integer_product/cpu/window_runs.h"

namespace anydml {
namespace {

void Flip(uint8_t* numbers, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) numbers[i] ^= 0x80;
}

// out[i] is a[i], b[i], c[i], d[i], each with some bits flipped.
void Interleave(const uint8_t* __restrict a, const uint8_t* __restrict b, const uint8_t* __restrict c,
                const uint8_t* __restrict d, uint64_t count, uint8_t flip, uint8_t* __restrict out) {
  for (uint64_t i = 0; i < count; ++i) {
    out[4 * i] = a[i] ^ flip;
    out[4 * i + 1] = b[i] ^ flip;
    out[4 * i + 2] = c[i] ^ flip;
    out[4 * i + 3] = d[i] ^ flip;
  }
}

// The rows from which words of columns are made: kStepsOfWord rows for each of a column's contiguous words.
using QuadRows = const uint8_t * [kMaxColumnWords * kStepsOfWord];

// For elements from `first` on, `words` of each.
void InterleaveWords(const QuadRows& rows, uint32_t words, uint64_t first, uint64_t count, uint8_t flip,
                     uint8_t* out) {
  if (words == 1) {
    Interleave(rows[0] + first, rows[1] + first, rows[2] + first, rows[3] + first, count, flip, out);
    return;
  }
  for (uint64_t i = 0; i < count; ++i) {
    for (uint64_t step = 0; step < words * kStepsOfWord; ++step) *out++ = rows[step][first + i] ^ flip;
  }
}

// For whole panels of constant width.
template <uint32_t kWidth>
uint64_t InterleaveWhole(const QuadRows& rows, uint64_t count, uint8_t flip, uint64_t panel_stride,
                         float* to) {
  uint64_t i = 0;
  for (; i + kWidth <= count; i += kWidth, to += panel_stride) {
    Interleave(rows[0] + i, rows[1] + i, rows[2] + i, rows[3] + i, kWidth, flip,
               reinterpret_cast<uint8_t*>(to));
  }
  return i;
}

// The same for panels of three vectors of words, with one or two words per column. Reads bytes of four
// vectors, but not beyond the elements.
template <uint32_t kWords>
uint64_t InterleaveTwelve(const QuadRows& rows, uint64_t count, uint8_t flip, uint64_t panel_stride,
                          float* to) {
  using Bytes = Lanes<uint8_t>;
  using Pairs = Lanes<uint16_t>;
  using Words = Lanes<uint32_t>;
  constexpr uint64_t kWidth = 12;
  const Bytes::Vector flips = Bytes::Vector{} + flip;
  const auto zip = [&]<bool kUpper>(uint64_t row, uint64_t i) {
    return reinterpret_cast<Pairs::Vector>(
        Bytes::Zip<kUpper>(Bytes::Load(rows[row] + i) ^ flips, Bytes::Load(rows[row + 1] + i) ^ flips));
  };
  uint64_t i = 0;
  for (; i + Bytes::kCount <= count; i += kWidth, to += panel_stride) {
    Words::Vector words[kWords][3];
#pragma GCC unroll 2
    for (uint64_t w = 0; w < kWords; ++w) {
      const uint64_t row = w * kStepsOfWord;
      const Pairs::Vector low = zip.template operator()<false>(row, i);
      const Pairs::Vector low2 = zip.template operator()<false>(row + 2, i);
      const Pairs::Vector high = zip.template operator()<true>(row, i);
      const Pairs::Vector high2 = zip.template operator()<true>(row + 2, i);
      words[w][0] = reinterpret_cast<Words::Vector>(Pairs::Zip<false>(low, low2));
      words[w][1] = reinterpret_cast<Words::Vector>(Pairs::Zip<true>(low, low2));
      words[w][2] = reinterpret_cast<Words::Vector>(Pairs::Zip<false>(high, high2));
    }
    auto* out = reinterpret_cast<uint32_t*>(to);
#pragma GCC unroll 3
    for (uint64_t v = 0; v < 3; ++v, out += kWords * Words::kCount) {
      if constexpr (kWords == 1) {
        Words::Store(words[0][v], out);
      } else {
        Words::Store(Words::Zip<false>(words[0][v], words[1][v]), out);
        Words::Store(Words::Zip<true>(words[0][v], words[1][v]), out + Words::kCount);
      }
    }
  }
  return i;
}

// Panels of these widths are written directly, word by word; for others, cutting them from rows of words is
// faster.
constexpr bool IsInterleaved(uint32_t width) { return width % 16 == 0 || width == 12; }
void InterleavePanels(const QuadRows& rows, uint32_t words, uint64_t count, uint8_t flip, uint32_t width,
                      uint64_t panel_stride, float* to) {
  uint64_t done = words == 2    ? InterleaveTwelve<2>(rows, count, flip, panel_stride, to)
                  : width == 16 ? InterleaveWhole<16>(rows, count, flip, panel_stride, to)
                  : width == 32 ? InterleaveWhole<32>(rows, count, flip, panel_stride, to)
                  : width == 48 ? InterleaveWhole<48>(rows, count, flip, panel_stride, to)
                  : width == 12 ? InterleaveTwelve<1>(rows, count, flip, panel_stride, to)
                                : 0;
  for (; done < count; done += width) {
    InterleaveWords(rows, words, done, std::min<uint64_t>(width, count - done), flip,
                    reinterpret_cast<uint8_t*>(to + done / width * panel_stride));
  }
}

// Panels from rows of bytes: load(element, count, step, to), for steps counted from 0. There are `steps`; the
// rest of the last word is 0.
template <typename Begin, typename Load>
void PackQuads(uint64_t count, uint64_t words, uint64_t steps, uint8_t flip, uint32_t width, float* to,
               Begin&& begin, Load&& load) {
  PackRows(count, words, width, to, begin, [&](uint64_t element, uint64_t some, uint64_t word, float* row) {
    uint8_t bytes[kStepsOfWord][kPanelRowElements + WindowRuns::kSlack];
    for (uint64_t i = 0; i < kStepsOfWord; ++i) {
      const uint64_t step = word * kStepsOfWord + i;
      if (step < steps) {
        load(element, some, step, bytes[i]);
      } else {
        std::memset(bytes[i], flip, some);
      }
    }
    Interleave(bytes[0], bytes[1], bytes[2], bytes[3], some, flip, reinterpret_cast<uint8_t*>(row));
  });
}

}  // namespace

bool PositionsAreNeighbours(const ConvolutionShape& s) {
  uint64_t expected = 1;
  for (uint32_t d = kMaxSpatial; d-- > 0; expected *= s.windows[d].output) {
    const ConvolutionWindow& w = s.windows[d];
    if (w.taps != 1 || w.stride != 1 || w.start_padding != 0 || w.output != w.input || w.reached != w.input) {
      return false;
    }
    if (w.output != 1 && s.input.spatial[d] != expected) return false;
  }
  return true;
}

FilterQuads::FilterQuads(const ConvolutionShape& shape, DataType type, const std::byte* filter,
                         uint32_t row_words)
    : shape_(shape), flip_(FlipInPanels(type, /*rows=*/true)), data_(filter), row_words_(row_words) {
  uint64_t expected = 1;
  contiguous_ = true;
  for (uint32_t d = kMaxSpatial; d-- > 0; expected *= shape.windows[d].taps) {
    contiguous_ = contiguous_ && (shape.windows[d].taps == 1 || shape.filter.spatial[d] == expected);
  }
  contiguous_ = contiguous_ && (shape.input_channels == 1 || shape.filter.channel == expected);
}

void FilterQuads::Pack(uint64_t first, uint64_t count, uint64_t word, uint64_t words, uint32_t width,
                       float* to) const {
  const uint64_t step = word * kStepsOfWord;
  if (row_words_ == 1 && !contiguous_) return PackApart(first, count, step, words, width, to);
  ClearLastPanel(count, words, width, to);
  for (uint64_t e = 0; e < count; e += width) {
    const uint64_t some = std::min<uint64_t>(width, count - e);
    if (row_words_ == 1) {
      PackAcross(first + e, some, step, words, width, to + e * words);
      continue;
    }
    if (row_words_ == 2 && contiguous_) {
      PackPairs(first + e, some, step, words, width, to + e * words);
      continue;
    }
    for (uint64_t w = 0; w < words; w += row_words_) {
      PackBlock(first + e, some, step + w * kStepsOfWord, width, to + e * words + w * width);
    }
  }
}

// For any layout.
void FilterQuads::PackApart(uint64_t first, uint64_t count, uint64_t step, uint64_t words, uint32_t width,
                            float* to) const {
  const ConvolutionShape& p = shape_;
  PackQuads(
      count, words, p.Steps() - std::min(step, p.Steps()), flip_, width, to, [](uint64_t, uint64_t) {},
      [&](uint64_t element, uint64_t some, uint64_t s, uint8_t* row) {
        const ConvolutionStep at(p, step + s);
        uint64_t offset = (first + element) * p.filter.output_channel + at.channel * p.filter.channel;
        for (uint32_t d = 0; d < kMaxSpatial; ++d) offset += at.taps[d] * p.filter.spatial[d];
        CopyBytes(reinterpret_cast<const uint8_t*>(data_) + static_cast<ptrdiff_t>(offset),
                  p.filter.output_channel, some, row);
      });
}

// Contiguous steps; those after the last one are 0.
void FilterQuads::LoadRow(uint64_t element, uint64_t step, uint64_t words, float* to) const {
  auto* const row = reinterpret_cast<uint8_t*>(to);
  const uint64_t bytes = std::min(words * kStepsOfWord, shape_.Steps() - std::min(step, shape_.Steps()));
  std::memcpy(row, data_ + element * shape_.filter.output_channel + step, bytes);
  if (flip_ != 0) Flip(row, bytes);
  std::memset(row + bytes, 0, words * kStepsOfWord - bytes);
}

// One panel.
void FilterQuads::PackAcross(uint64_t first, uint64_t count, uint64_t step, uint64_t words, uint32_t width,
                             float* to) const {
  constexpr uint64_t kSome = 16, kWords = 64;
  alignas(64) float rows[kSome][kWords];
  const auto turn = [&](const std::byte* from, uint64_t stride, uint64_t count, uint64_t words, float* to) {
    TransposeBlock(reinterpret_cast<const uint32_t*>(from), static_cast<int64_t>(stride), words, count,
                   reinterpret_cast<uint32_t*>(to), width, TransposeTo::kTile);
  };
  const auto* const from = data_ + first * shape_.filter.output_channel + step;
  if (flip_ == 0 && shape_.filter.output_channel % sizeof(float) == 0 &&
      reinterpret_cast<uintptr_t>(from) % alignof(float) == 0 &&
      step + words * kStepsOfWord <= shape_.Steps()) {
    turn(from, shape_.filter.output_channel / sizeof(float), count, words, to);
    return;
  }
  for (uint64_t e = 0; e < count; e += kSome) {
    const uint64_t some = std::min(kSome, count - e);
    for (uint64_t w = 0; w < words; w += kWords) {
      const uint64_t now = std::min(kWords, words - w);
      for (uint64_t i = 0; i < some; ++i) LoadRow(first + e + i, step + w * kStepsOfWord, now, rows[i]);
      turn(reinterpret_cast<const std::byte*>(rows), kWords, some, now, to + w * width + e);
    }
  }
}

// One panel, two words of each row side by side.
void FilterQuads::PackPairs(uint64_t first, uint64_t count, uint64_t step, uint64_t words, uint32_t width,
                            float* to) const {
  using Bytes = Lanes<uint8_t>;
  using Pairs = Lanes<uint64_t>;
  constexpr uint64_t kWords = 2, kWordsOfVector = Bytes::kCount / kStepsOfWord;
  const Bytes::Vector flips = Bytes::Vector{} + flip_;
  const uint64_t there = shape_.Steps() - std::min(step, shape_.Steps());
  const uint64_t whole = std::min(words * kStepsOfWord, there) / Bytes::kCount * kWordsOfVector;
  const auto* const from = reinterpret_cast<const uint8_t*>(data_) + step;
  for (uint64_t i = 0; i < count; i += 2) {
    uint64_t w = 0;
    const uint64_t next = std::min<uint64_t>(count - i, 2) - 1;  // a single row is used twice
    const uint8_t* const rows[2] = {from + (first + i) * shape_.filter.output_channel,
                                    from + (first + i + next) * shape_.filter.output_channel};
    for (; w < whole; w += kWordsOfVector) {
      const auto x = reinterpret_cast<Pairs::Vector>(Bytes::Load(rows[0] + w * kStepsOfWord) ^ flips);
      const auto y = reinterpret_cast<Pairs::Vector>(Bytes::Load(rows[1] + w * kStepsOfWord) ^ flips);
      auto* const at = reinterpret_cast<uint64_t*>(to + w * width + i * kWords);
      Pairs::Store(Pairs::Zip<false>(x, y), at);
      Pairs::Store(Pairs::Zip<true>(x, y), at + width);
    }
    for (; w < words; w += kWords) {
      for (uint64_t row = i; row <= i + next; ++row) {
        LoadRow(first + row, step + w * kStepsOfWord, kWords, to + w * width + row * kWords);
      }
    }
  }
}

// row_words_ words of the rows of a panel.
void FilterQuads::PackBlock(uint64_t first, uint64_t count, uint64_t step, uint32_t width, float* to) const {
  constexpr uint64_t kBytes = kMaxRowWords * kStepsOfWord;
  if (contiguous_ && row_words_ == kMaxRowWords && step + kBytes <= shape_.Steps()) {
    const auto* const from = reinterpret_cast<const uint8_t*>(data_) + step;
    for (uint64_t i = 0; i < count; ++i) {
      auto* const row = reinterpret_cast<uint8_t*>(to + i * kMaxRowWords);
      std::memcpy(row, from + (first + i) * shape_.filter.output_channel, kBytes);
      if (flip_ != 0) Flip(row, kBytes);
    }
    return;
  }
  if (contiguous_) {
    for (uint64_t i = 0; i < count; ++i) LoadRow(first + i, step, row_words_, to + i * row_words_);
    return;
  }
  alignas(64) float words[kMaxRowWords * kMaxDotWidth];
  PackApart(first, count, step, row_words_, width, words);
  for (uint64_t i = 0; i < count; ++i) {
    for (uint64_t w = 0; w < row_words_; ++w) to[i * row_words_ + w] = words[w * width + i];
  }
}

void WindowQuads::Pack(uint64_t first, uint64_t count, uint64_t word, uint64_t words, uint32_t width,
                       float* to) const {
  const uint64_t step = word * kStepsOfWord, steps = shape_.Steps() - std::min(step, shape_.Steps());
  const bool at_once = IsInterleaved(width);
  if (neighbours_ && at_once) return PackNeighbours(first, count, step, words, width, to);
  WindowRuns runs(shape_, data_, zero_);
  if (!at_once) {
    PackQuads(
        count, words, steps, flip_, width, to,
        [&](uint64_t element, uint64_t some) { runs.Begin(first + element, some); },
        [&](uint64_t, uint64_t, uint64_t s, uint8_t* row) { runs.Load(step + s, row); });
    return;
  }
  ClearLastPanel(count, words, width, to);
  const uint64_t most = kPanelRowElements / width * width, rows = uint64_t{column_words_} * kStepsOfWord;
  for (uint64_t element = 0; element < count; element += most) {
    const uint64_t some = std::min(most, count - element);
    runs.Begin(first + element, some);
    for (uint64_t w = 0; w < words; w += column_words_) {
      uint8_t bytes[kMaxColumnWords * kStepsOfWord][kPanelRowElements + WindowRuns::kSlack];
      QuadRows from = {};
      for (uint64_t i = 0; i < rows; ++i) {
        from[i] = bytes[i];
        if (w * kStepsOfWord + i < steps) {
          runs.Load(step + w * kStepsOfWord + i, bytes[i]);
        } else {
          std::memset(bytes[i], flip_, some);  // gives 0
        }
      }
      InterleavePanels(from, column_words_, some, flip_, width, words * width,
                       to + element * words + w * width);
    }
  }
}

// From the input to the panels, without a copy.
void WindowQuads::PackNeighbours(uint64_t first, uint64_t count, uint64_t step, uint64_t words,
                                 uint32_t width, float* to) const {
  const uint64_t steps = shape_.Steps(), channel = shape_.input.channel;
  const uint64_t together = uint64_t{column_words_} * kStepsOfWord;
  const auto* const data = reinterpret_cast<const uint8_t*>(data_) + first;
  ClearLastPanel(count, words, width, to);
  for (uint64_t w = 0; w < words; w += column_words_, step += together) {
    const uint64_t there = std::min(together, steps - std::min(step, steps));
    QuadRows rows = {};
    for (uint64_t i = 0; i < there; ++i) {
      rows[i] = data + (step + i) * channel;
      // Other rows are on other pages, to which hardware prefetch does not go.
      constexpr uint64_t kAhead = 2 * kStepsOfWord;
      if (step + kAhead + i < steps) PrefetchBytes(rows[i] + kAhead * channel, count);
    }
    if (there == together) {
      InterleavePanels(rows, column_words_, count, flip_, width, words * width, to + w * width);
      continue;
    }
    for (uint64_t done = 0; done < count; done += width) {
      uint8_t bytes[kMaxColumnWords * kStepsOfWord][kMaxDotWidth];
      QuadRows from = {};
      const uint64_t some = std::min<uint64_t>(width, count - done);
      for (uint64_t i = 0; i < together; ++i) {
        from[i] = bytes[i];
        if (i < there) {
          CopyShortRow(rows[i] + done, some, bytes[i]);
        } else {
          std::memset(bytes[i], flip_, some);  // gives 0
        }
      }
      InterleaveWords(from, column_words_, 0, some, flip_,
                      reinterpret_cast<uint8_t*>(to + done * words + w * width));
    }
  }
}

}  // namespace anydml
