// Which keys a mask hides. MaskFilterValue is added to hidden logits, whose weights may then be 0: infinities
// among the hidden values give NaNs, as anywhere else. A row of hidden keys only would be shifted as a whole,
// which does not change its softmax: nothing is added there, so that logits keep their digits and -infinity
// gives no NaN.
#pragma once

#include <cstdint>

#include "ops/attention/view.h"
#include "schema/descriptions.generated.h"

namespace anydml {

struct AttentionMask {
  MultiheadAttentionMaskType type = MultiheadAttentionMaskType::kNone;
  // kBoolean: {batch, heads, queries, keys}. The others have one number per batch: `column` is the stride
  // between batches, `row` the distance from ends to starts.
  AttentionView view{};
  float value = 0;

  constexpr int64_t Number(const int32_t* numbers, uint64_t row, uint64_t column) const {
    return numbers[view.offset + row * view.row + column * view.column];
  }
};

// Keys [begin, end) of queries below query_end are visible.
struct AttentionWindow {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t query_end = 0;

  constexpr bool Shows(int64_t query, int64_t key) const {
    return query < query_end && key >= begin && key < end;
  }
  // Whether any of the first `keys` keys is visible.
  constexpr bool ShowsAny(int64_t query, int64_t keys) const {
    return query < query_end && begin < end && end > 0 && begin < keys;
  }
};

// For batch `b` of `batches`. Not for kBoolean, which decides for each key.
constexpr AttentionWindow WindowOf(const AttentionMask& mask, const int32_t* numbers, uint64_t b,
                                   uint64_t batches) {
  constexpr int64_t kAll = int64_t{1} << 62;
  switch (mask.type) {
    case MultiheadAttentionMaskType::kKeySequenceLength:
      return {0, mask.Number(numbers, 0, b), kAll};
    case MultiheadAttentionMaskType::kKeySequenceEndStart:
      return {mask.Number(numbers, 1, b), mask.Number(numbers, 0, b), kAll};
    case MultiheadAttentionMaskType::kKeyQuerySequenceLengthStartEnd:
      // Key lengths, then the first query of each batch among those of all, and the end of the last.
      return {0, mask.Number(numbers, 0, b),
              mask.Number(numbers, 0, batches + b + 1) - mask.Number(numbers, 0, batches + b)};
    default:
      return {0, kAll, kAll};
  }
}

}  // namespace anydml
