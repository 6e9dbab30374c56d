// Attention and rotations of positions, as ONNX has them.
#include <cmath>

#include "onnx/attention.h"
#include "onnx/operators.h"

namespace anydml::onnx {
namespace {

// A mask with as many keys as there are: what is missing behind it hides.
Status FullMask(Lowering& n, int64_t keys, View* out) {
  const bool is_bool = n.type(3) == ElementType::kBool;
  View mask = n.In(3);
  if (n.rank(3) < 2 || n.rank(3) > 4) return InvalidArgument("a mask ", ShapeToString(n.shape(3)));
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

// Keys behind nonpad_kv_seqlen {batch} are not seen; with is_causal the last query is the last of them.
Status PaddedBias(Lowering& n, int64_t length, int64_t keys, bool causal, View* out) {
  if (n.rank(6) != 1) return InvalidArgument("nonpad_kv_seqlen ", ShapeToString(n.shape(6)));
  const Shape shape = {n.shape(6)[0], 1, causal ? length : 1, keys};
  View count, columns, limit, visible;
  ANYDML_RETURN_IF_ERROR(Cast(n, n.In(6), DataType::kInt32, &count));
  ANYDML_RETURN_IF_ERROR(Count(n, keys, &columns));
  limit = Broadcast(Reshaped(count, Shape{shape[0], 1, 1, 1}), shape);
  if (causal) {
    View rows, most;
    ANYDML_RETURN_IF_ERROR(Count(n, length, &rows));
    ANYDML_RETURN_IF_ERROR(Fill(n, DataType::kInt32, {1}, static_cast<double>(length - 1), &most));
    const Shape all = {shape[0], 1, length, 1};
    const View counts = Broadcast(Reshaped(count, Shape{shape[0], 1, 1, 1}), all);
    ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_ADD, counts,
                                  Broadcast(Reshaped(rows, Shape{1, 1, length, 1}), all), &limit));
    ANYDML_RETURN_IF_ERROR(
        Binary(n, DML_OPERATOR_ELEMENT_WISE_SUBTRACT, limit, Broadcast(most, all), &limit));
    limit = Broadcast(limit, shape);
  }
  ANYDML_RETURN_IF_ERROR(Compare(n, DML_OPERATOR_ELEMENT_WISE_LOGICAL_LESS_THAN,
                                 Broadcast(Reshaped(columns, Shape{1, 1, 1, keys}), shape), limit, &visible));
  return MaskBias(n, visible, n.dml_type(0), -HUGE_VAL, out);
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
  const bool causal = n.Int("is_causal", 0) != 0;
  const DataType type = n.dml_type(0);
  if (n.Has(3)) ANYDML_RETURN_IF_ERROR(FullMask(n, keys, &in.bias.emplace()));
  View more;
  if (n.Has(6)) {
    ANYDML_RETURN_IF_ERROR(PaddedBias(n, q.length, keys, causal && !n.Has(4), &more));
    ANYDML_RETURN_IF_ERROR(AddBias(n, logits, more, &in.bias));
  }
  if (causal && (!n.Has(6) || n.Has(4))) {
    ANYDML_RETURN_IF_ERROR(CausalBias(n, type, q.length, keys, past, -HUGE_VAL, &more));
    ANYDML_RETURN_IF_ERROR(AddBias(n, logits, more, &in.bias));
  }
  in.scale = n.Float("scale", 1 / std::sqrt(static_cast<float>(q.size)));
  in.softcap = n.Float("softcap", 0);
  in.separate = n.Wants(3);
  AttentionResults r;
  ANYDML_RETURN_IF_ERROR(Attend(n, in, &r));
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
  // com.microsoft may leave out num_heads: then all of a head is rotated.
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
    if (microsoft && ElementCount(n.shape(1)) == 1 && n.rank(1) == 1) {  // where the first one is
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
