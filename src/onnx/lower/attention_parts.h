// The building blocks of the attention operators. Tensors are {batch, heads, length, size} unless said
// otherwise.
#pragma once

#include <optional>

#include "onnx/lower/compose.h"

namespace anydml::onnx {

struct Heads {
  int64_t batch = 0, heads = 0, length = 0, size = 0;
  bool split = false;  // {batch, heads, length, size} and not {batch, length, heads * size}
};

Status HeadsOf(const Shape& shape, int64_t heads, Heads* out);
// As {batch, heads, length, size}, whichever it is.
View SplitHeads(const View& view, const Heads& heads);
// {batch, length, heads * size}
Status MergeHeads(Lowering& n, const View& view, View* out);

struct AttentionInputs {
  View queries, keys, values;  // several query heads may share keys
  std::optional<View> bias;    // of the logits, with their sizes or 1
  float scale = 1;
  float softcap = 0;      // 0: none
  bool separate = false;  // intermediate results are outputs, so the steps must be separate
};
struct AttentionResults {
  View output, logits, capped, biased, weights;
};
Status Attend(Lowering& n, const AttentionInputs& inputs, AttentionResults* out);

// The past followed by the new rows, along the keys. `past` may be empty.
Status WithPast(Lowering& n, const View& past, const View& now, View* out);

// 0 where `visible` is not 0, otherwise `filter`.
Status MaskBias(Lowering& n, const View& visible, DataType type, double filter, View* out);
// `filter` where a key's index is the query's plus `begin` to `end` - 1, otherwise 0: {1, 1, length, keys}
Status BandBias(Lowering& n, DataType type, int64_t length, int64_t keys, int64_t begin, int64_t end,
                double filter, View* out);
// `filter` where a query would see later keys. The first query has index `past`.
Status CausalBias(Lowering& n, DataType type, int64_t length, int64_t keys, int64_t past, double filter,
                  View* out);
// Adds to `bias`, if there is one, or sets it. Both have four dimensions, of 1 or of `shape`.
Status AddBias(Lowering& n, const Shape& shape, const View& more, std::optional<View>* bias);

// 0, 1, 2 ... as INT32.
Status Count(Lowering& n, int64_t count, View* out);

// The rows of rotation tables for positions {batch, length}.
Status RowsAt(Lowering& n, const View& table, const View& positions, View* out);
struct Rotation {
  View cosines, sines;  // {batch, length, 1, size / 2}, or 1 as batch
  int64_t size = 0;     // how much of every head is rotated
  bool interleaved = false;
};
// `x`: {batch, length, heads, size}, with any strides.
Status Rotate(Lowering& n, const View& x, const Rotation& rotation, View* out);

}  // namespace anydml::onnx
