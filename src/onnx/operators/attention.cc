// Attention and rotary embeddings, as ONNX defines them.
#include <cmath>

#include "onnx/lower/attention_parts.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

// The mask extended to all keys: keys beyond its end are hidden.
Status FullMask(Lowering& n, int64_t keys, View* out) {
  const bool is_bool = n.type(3) == ElementType::kBool;
  View mask = n.In(3);
  if (n.rank(3) < 1 || n.rank(3) > 4) return InvalidArgument("a mask ", ShapeToString(n.shape(3)));
  if (is_bool) {
    View bias;
    ANYDML_RETURN_IF_ERROR(MaskBias(n, mask, n.dml_type(0), -HUGE_VAL, &bias));
    mask = bias;
  }
  mask = AtLeast(mask, 4);
  const int64_t given = n.shape(3).back();
  if (given > 1 && given < keys) {
    Shape shape = ShapeOf(mask);
    shape[3] = keys - given;
    View rest;
    ANYDML_RETURN_IF_ERROR(Fill(n, mask.type, shape, -HUGE_VAL, &rest));
    const View parts[] = {mask, rest};
    ANYDML_RETURN_IF_ERROR(Join(n, parts, 3, &mask));
  }
  *out = mask;
  return {};
}

// How many keys before and after its own position a query sees; -1: all.
struct Window {
  int64_t left = -1, right = -1;
};

Status ReadWindow(const NodeFacts& n, Window* out) {
  *out = {n.Int("left_window_size", -1), n.Int("right_window_size", -1)};
  for (const int64_t size : {out->left, out->right}) {
    if (size < -1 || size > INT32_MAX)
      return InvalidArgument("a window of ", size, "; -1 and more are allowed");
  }
  if (n.Int("is_causal", 0) != 0) out->right = 0;
  return {};
}

// The first query's position is `past`.
Status WindowBias(Lowering& n, const Window& window, const Shape& logits, int64_t past,
                  std::optional<View>* bias) {
  const DataType type = n.dml_type(0);
  View more;
  if (window.right >= 0) {
    ANYDML_RETURN_IF_ERROR(
        BandBias(n, type, logits[2], logits[3], past + window.right + 1, INT32_MAX, -HUGE_VAL, &more));
    ANYDML_RETURN_IF_ERROR(AddBias(n, logits, more, bias));
  }
  if (window.left >= 0) {
    ANYDML_RETURN_IF_ERROR(
        BandBias(n, type, logits[2], logits[3], INT32_MIN, past - window.left, -HUGE_VAL, &more));
    ANYDML_RETURN_IF_ERROR(AddBias(n, logits, more, bias));
  }
  return {};
}

// {batch, 1, rows, 1} + index of the row + `shift`
Status RowLimit(Lowering& n, const View& count, int64_t rows, int64_t shift, View* out) {
  const Shape shape = {int64_t{count.sizes[0]}, 1, rows, 1};
  View number, constant;
  ANYDML_RETURN_IF_ERROR(Count(n, rows, &number));
  ANYDML_RETURN_IF_ERROR(Fill(n, DataType::kInt32, {1}, static_cast<double>(shift), &constant));
  ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_ADD, Broadcast(count, shape),
                                Broadcast(Reshaped(number, Shape{1, 1, rows, 1}), shape), out));
  return Binary(n, DML_OPERATOR_ELEMENT_WISE_ADD, *out, Broadcast(constant, shape), out);
}

// Keys beyond nonpad_kv_seqlen {batch} are hidden, and the last query's position is the last of the visible
// ones.
Status PaddedBias(Lowering& n, const Window& window, const Shape& logits, std::optional<View>* bias) {
  if (n.rank(6) != 1) return InvalidArgument("nonpad_kv_seqlen ", ShapeToString(n.shape(6)));
  const int64_t batch = n.shape(6)[0], length = logits[2], keys = logits[3];
  View count, columns, limit, visible, more;
  ANYDML_RETURN_IF_ERROR(Cast(n, n.In(6), DataType::kInt32, &count));
  count = Reshaped(count, Shape{batch, 1, 1, 1});
  ANYDML_RETURN_IF_ERROR(Count(n, keys, &columns));
  columns = Reshaped(columns, Shape{1, 1, 1, keys});
  const auto hide = [&](DML_OPERATOR_TYPE seen, const View& from) -> Status {
    const Shape shape = {batch, 1, int64_t{from.sizes[2]}, keys};
    ANYDML_RETURN_IF_ERROR(Compare(n, seen, Broadcast(columns, shape), Broadcast(from, shape), &visible));
    ANYDML_RETURN_IF_ERROR(MaskBias(n, visible, n.dml_type(0), -HUGE_VAL, &more));
    return AddBias(n, logits, more, bias);
  };
  constexpr DML_OPERATOR_TYPE kBefore = DML_OPERATOR_ELEMENT_WISE_LOGICAL_LESS_THAN,
                              kFrom = DML_OPERATOR_ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL;
  if (window.right != 0) ANYDML_RETURN_IF_ERROR(hide(kBefore, count));
  if (window.right >= 0) {
    ANYDML_RETURN_IF_ERROR(RowLimit(n, count, length, window.right + 1 - length, &limit));
    ANYDML_RETURN_IF_ERROR(hide(kBefore, limit));
  }
  if (window.left >= 0) {
    ANYDML_RETURN_IF_ERROR(RowLimit(n, count, length, -window.left - length, &limit));
    ANYDML_RETURN_IF_ERROR(hide(kFrom, limit));
  }
  return {};
}

// 0 for queries that see no key, whose softmax would be NaN.
Status WithoutHiddenRows(Lowering& n, const View& bias, View* x) {
  const uint32_t axis = 3;
  const Shape shape = ShapeOf(*x);
  View most, lowest, hidden, zero;
  ANYDML_RETURN_IF_ERROR(Reduce(n, DML_REDUCE_FUNCTION_MAX, bias, {&axis, 1}, &most));
  ANYDML_RETURN_IF_ERROR(Fill(n, bias.type, {1}, -HUGE_VAL, &lowest));
  ANYDML_RETURN_IF_ERROR(
      Compare(n, DML_OPERATOR_ELEMENT_WISE_LOGICAL_EQUALS, most, Broadcast(lowest, ShapeOf(most)), &hidden));
  ANYDML_RETURN_IF_ERROR(Fill(n, x->type, {1}, 0, &zero));
  return If(n, Broadcast(hidden, shape), zero, *x, x);
}

// Q, K, V, attn_mask, past_key, past_value, nonpad_kv_seqlen
Status Attention(Lowering& n) {
  Heads q, k, v;
  ANYDML_RETURN_IF_ERROR(HeadsOf(n.shape(0), n.Int("q_num_heads", 0), &q));
  ANYDML_RETURN_IF_ERROR(HeadsOf(n.shape(1), n.Int("kv_num_heads", 0), &k));
  ANYDML_RETURN_IF_ERROR(HeadsOf(n.shape(2), n.Int("kv_num_heads", 0), &v));
  if (n.Has(4) != n.Has(5)) return InvalidArgument("past_key and past_value belong together");
  AttentionInputs in;
  in.queries = SplitHeads(n.In(0), q);
  in.keys = SplitHeads(n.In(1), k);
  in.values = SplitHeads(n.In(2), v);
  int64_t past = 0;
  if (n.Has(4)) {
    ANYDML_RETURN_IF_ERROR(WithPast(n, n.In(4), in.keys, &in.keys));
    ANYDML_RETURN_IF_ERROR(WithPast(n, n.In(5), in.values, &in.values));
    past = n.shape(4)[2];
  }
  for (const size_t i : {1, 2}) {
    if (!n.Wants(i)) continue;
    View packed;
    ANYDML_RETURN_IF_ERROR(Pack(n, i == 1 ? in.keys : in.values, &packed));
    n.Return(i, packed, n.type(i), ShapeOf(packed));
  }
  const int64_t keys = in.keys.sizes[2];
  const Shape logits = {q.batch, q.heads, q.length, keys};
  Window window;
  ANYDML_RETURN_IF_ERROR(ReadWindow(n, &window));
  if (n.Has(3)) ANYDML_RETURN_IF_ERROR(FullMask(n, keys, &in.bias.emplace()));
  const bool outside = n.Has(6) && !n.Has(4);  // the client keeps the past
  if (n.Has(6)) ANYDML_RETURN_IF_ERROR(PaddedBias(n, outside ? window : Window(), logits, &in.bias));
  if (!outside) ANYDML_RETURN_IF_ERROR(WindowBias(n, window, logits, past, &in.bias));
  in.scale = n.Float("scale", 1 / std::sqrt(static_cast<float>(q.size)));
  in.softcap = n.Float("softcap", 0);
  in.separate = n.Wants(3);
  AttentionResults r;
  ANYDML_RETURN_IF_ERROR(Attend(n, in, &r));
  // Without these, only keys after a query's position are hidden, and never the first key.
  if (n.Has(3) || n.Has(6) || window.left >= 0) {
    ANYDML_RETURN_IF_ERROR(WithoutHiddenRows(n, *in.bias, &r.output));
    if (n.Wants(3) && n.Int("qk_matmul_output_mode", 0) == 3) {
      r.weights = Reshaped(r.weights, logits);
      ANYDML_RETURN_IF_ERROR(WithoutHiddenRows(n, *in.bias, &r.weights));
    }
  }
  if (n.Wants(3)) {
    const int64_t mode = n.Int("qk_matmul_output_mode", 0);
    if (mode < 0 || mode > 3) return InvalidArgument("qk_matmul_output_mode is ", mode);
    n.Return(3,
             mode == 0   ? r.logits
             : mode == 1 ? r.capped
             : mode == 2 ? r.biased
                         : r.weights,
             n.type(0), logits);
  }
  if (!q.split) ANYDML_RETURN_IF_ERROR(MergeHeads(n, r.output, &r.output));
  n.Return(0, r.output, n.type(0), ShapeOf(r.output));
  return {};
}

// ONNX: X, cos_cache, sin_cache, position_ids. com.microsoft: X, position_ids, cos_cache, sin_cache.
Status RotaryEmbedding(Lowering& n) {
  const bool microsoft = n.proto().domain == kMicrosoft;
  const size_t positions = microsoft ? 1 : 3, cosines = microsoft ? 2 : 1, sines = microsoft ? 3 : 2;
  const Shape& shape = n.shape(0);
  Rotation r;
  r.interleaved = n.Int("interleaved", 0) != 0;
  r.size = n.Int("rotary_embedding_dim", 0);
  int64_t heads = n.Int("num_heads", 0);
  const int64_t half = n.rank(cosines) == 0 ? 0 : n.shape(cosines).back();
  // com.microsoft may omit num_heads: then a whole head is rotated.
  if (microsoft && heads == 0 && shape.size() == 3 && half > 0) heads = shape[2] / (2 * half);
  Heads h;
  ANYDML_RETURN_IF_ERROR(HeadsOf(shape, heads, &h));
  if (r.size == 0) r.size = h.size;
  if (r.size < 2 || r.size > h.size || r.size % 2 != 0 || half * 2 != r.size ||
      n.shape(sines) != n.shape(cosines))
    return InvalidArgument("tables ", ShapeToString(n.shape(cosines)), " for heads of ", h.size);
  if (n.Float("scale", 1) != 1) return Unsupported("scale");
  r.cosines = n.In(cosines);
  r.sines = n.In(sines);
  if (n.Has(positions)) {
    View at = n.In(positions);
    if (microsoft && ElementCount(n.shape(1)) == 1 && n.rank(1) <= 1) {  // the position of the first one
      View first, count;
      ANYDML_RETURN_IF_ERROR(Cast(n, at, DataType::kInt32, &first));
      ANYDML_RETURN_IF_ERROR(Count(n, h.length, &count));
      ANYDML_RETURN_IF_ERROR(BinaryTo(n, DML_OPERATOR_ELEMENT_WISE_ADD, count, first, &at));
      at = Reshaped(at, Shape{1, h.length});
    }
    const Shape given = ShapeOf(at);
    if (given.size() != 2 || (given[0] != h.batch && given[0] != 1) || given[1] != h.length)
      return InvalidArgument("position_ids ", ShapeToString(n.shape(positions)));
    ANYDML_RETURN_IF_ERROR(RowsAt(n, r.cosines, at, &r.cosines));
    ANYDML_RETURN_IF_ERROR(RowsAt(n, r.sines, at, &r.sines));
  } else if (n.shape(cosines) != Shape{h.batch, h.length, half}) {
    return InvalidArgument("cos_cache ", ShapeToString(n.shape(cosines)), " without position_ids");
  }
  const Shape table = {r.cosines.sizes[0], h.length, 1, half};
  r.cosines = Reshaped(r.cosines, table);
  r.sines = Reshaped(r.sines, table);
  const uint32_t order[] = {0, 2, 1, 3};
  View y, packed;
  ANYDML_RETURN_IF_ERROR(Rotate(n, Permuted(SplitHeads(n.In(0), h), order), r, &y));
  ANYDML_RETURN_IF_ERROR(Pack(n, h.split ? Permuted(y, order) : y, &packed));
  n.Return(0, packed, n.type(0), shape);
  return {};
}

constexpr OperatorRow kAttentionRows[] = {
    {kOnnx, "Attention", 3, 7, 0, Attention, nullptr},
    {kOnnx, "RotaryEmbedding", 3, 4, 0, RotaryEmbedding, nullptr},
    {kMicrosoft, "RotaryEmbedding", 4, 4, 0, RotaryEmbedding, nullptr},
};

}  // namespace

std::span<const OperatorRow> AttentionOperators() { return kAttentionRows; }

}  // namespace anydml::onnx
