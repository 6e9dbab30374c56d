// Which keys a mask hides. Hidden ones get MaskFilterValue added to their logits, and their values a weight
// that may be 0: infinities among them make NaNs, as anywhere else. A row that has nothing but
// hidden keys is shifted as a whole, which its softmax does not see: nothing is added there, so that numbers
// keep their digits and -infinity leaves no NaN.
#pragma once

#include <cstdint>

#include "ops/attention/view.h"
#include "schema/descriptions.generated.h"

namespace anydml {

struct AttentionMask {
  MultiheadAttentionMaskType type = MultiheadAttentionMaskType::kNone;
  // kBoolean: {batch, heads, queries, keys}. The others have numbers of batches: their `column` is the stride
  // between those, `row` the one from ends to starts.
  AttentionView view{};
  float value = 0;

  constexpr int64_t Number(const int32_t* numbers, uint64_t row, uint64_t column) const {
    return numbers[view.offset + row * view.row + column * view.column];
  }
};

// Keys [begin, end) of queries below query_end are not hidden.
struct AttentionWindow {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t query_end = 0;

  constexpr bool Shows(int64_t query, int64_t key) const {
    return query < query_end && key >= begin && key < end;
  }
  // Any of the first `keys` keys.
  constexpr bool ShowsAny(int64_t query, int64_t keys) const {
    return query < query_end && begin < end && end > 0 && begin < keys;
  }
};

// Of batch `b` of `batches`. Not for kBoolean, which says it of each key.
constexpr AttentionWindow WindowOf(const AttentionMask& mask, const int32_t* numbers, uint64_t b,
                                   uint64_t batches) {
  constexpr int64_t kAll = int64_t{1} << 62;
  switch (mask.type) {
    case MultiheadAttentionMaskType::kKeySequenceLength:
      return {0, mask.Number(numbers, 0, b), kAll};
    case MultiheadAttentionMaskType::kKeySequenceEndStart:
      return {mask.Number(numbers, 1, b), mask.Number(numbers, 0, b), kAll};
    case MultiheadAttentionMaskType::kKeyQuerySequenceLengthStartEnd:
      // Lengths of keys, then where the queries of each batch begin among those of all, and where the last
      // end.
      return {0, mask.Number(numbers, 0, b),
              mask.Number(numbers, 0, batches + b + 1) - mask.Number(numbers, 0, batches + b)};
    default:
      return {0, kAll, kAll};
  }
}

}  // namespace anydml
