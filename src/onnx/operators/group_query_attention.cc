// com.microsoft's GroupQueryAttention: a decoder's attention, with rotary embeddings and a cache that may be
// longer than its contents.
#include <algorithm>
#include <cmath>

#include "onnx/lower/attention_parts.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

constexpr DML_OPERATOR_TYPE kSubtract = DML_OPERATOR_ELEMENT_WISE_SUBTRACT;

struct Sizes {
  int64_t batch = 0, length = 0, heads = 0, key_heads = 0, size = 0;
  int64_t past = 0;     // capacity of the given cache
  int64_t present = 0;  // capacity of the returned one
};

// INT32 with sizes {batch, 1, 1, 1}: the position of the first new key, which is 0 for a prompt.
Status PastLengths(Lowering& n, const Sizes& s, View* out) {
  View given, offset, zero;
  ANYDML_RETURN_IF_ERROR(Cast(n, n.In(5), DataType::kInt32, &given));
  given = Reshaped(given, Shape{s.batch, 1, 1, 1});
  ANYDML_RETURN_IF_ERROR(Fill(n, DataType::kInt32, {1}, static_cast<double>(s.length - 1), &offset));
  ANYDML_RETURN_IF_ERROR(BinaryTo(n, kSubtract, given, offset, &given));  // seqlens_k is the last key's index
  ANYDML_RETURN_IF_ERROR(Fill(n, DataType::kInt32, {1}, 0, &zero));
  return BinaryTo(n, DML_OPERATOR_ELEMENT_WISE_MAX, given, zero, out);
}

// `values` along an axis, broadcast with `lengths`.
Status Shifted(Lowering& n, DML_OPERATOR_TYPE type, const View& values, const View& lengths, size_t axis,
               View* out) {
  Shape shape = ShapeOf(lengths), along(4, 1);
  along[axis] = values.sizes[0];
  shape[axis] = along[axis];
  return Binary(n, type, Broadcast(Reshaped(values, along), shape), Broadcast(lengths, shape), out);
}

// The cache including the new keys: rows are taken from the past and, after it, from the new ones.
Status Update(Lowering& n, const Sizes& s, size_t input, const View& now, const View& lengths, View* out) {
  if (s.past == 0 && s.present == s.length) {
    *out = now;
    return {};
  }
  View all = now, rows, at, inside, below, past_rows, count;
  if (s.past > 0) ANYDML_RETURN_IF_ERROR(WithPast(n, n.In(input), now, &all));
  // at = row - lengths: 0 to length - 1 for new rows.
  ANYDML_RETURN_IF_ERROR(Count(n, s.present, &rows));
  ANYDML_RETURN_IF_ERROR(Shifted(n, kSubtract, rows, lengths, 2, &at));
  const Shape shape = ShapeOf(at);
  const auto number = [&](int64_t value, View* view) {
    ANYDML_RETURN_IF_ERROR(Fill(n, DataType::kInt32, {1}, static_cast<double>(value), view));
    *view = Broadcast(*view, shape);
    return Status();
  };
  View zero, length, offset, last;
  ANYDML_RETURN_IF_ERROR(number(0, &zero));
  ANYDML_RETURN_IF_ERROR(number(s.length, &length));
  ANYDML_RETURN_IF_ERROR(number(s.past, &offset));
  ANYDML_RETURN_IF_ERROR(number(std::max<int64_t>(0, s.past - 1), &last));
  ANYDML_RETURN_IF_ERROR(
      Compare(n, DML_OPERATOR_ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL, at, zero, &inside));
  ANYDML_RETURN_IF_ERROR(Compare(n, DML_OPERATOR_ELEMENT_WISE_LOGICAL_LESS_THAN, at, length, &below));
  ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_LOGICAL_AND, inside, below, &inside));
  ANYDML_RETURN_IF_ERROR(Binary(n, kAdd, at, offset, &at));
  ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_MIN,
                                Broadcast(Reshaped(rows, Shape{1, 1, s.present, 1}), shape), last,
                                &past_rows));
  ANYDML_RETURN_IF_ERROR(If(n, inside, at, past_rows, &at));
  const Shape result = {s.batch, s.key_heads, s.present, now.sizes[3]};
  const View indices = Broadcast(at, result);
  *out = n.New(now.type, result);
  const DML_GATHER_ELEMENTS_OPERATOR_DESC desc{n.graph().In(all), n.graph().In(indices), n.graph().Out(out),
                                               2};
  return n.graph().Add(DML_OPERATOR_GATHER_ELEMENTS, desc);
}

// Query i sees key j if j <= lengths + i, and if it is not further back than a window.
Status Visible(Lowering& n, const Sizes& s, const View& lengths, View* bias) {
  View rows, columns, limit, visible;
  ANYDML_RETURN_IF_ERROR(Count(n, s.length, &rows));
  ANYDML_RETURN_IF_ERROR(Count(n, s.present, &columns));
  ANYDML_RETURN_IF_ERROR(Shifted(n, kAdd, rows, lengths, 2, &limit));
  const Shape shape = {s.batch, 1, s.length, s.present};
  columns = Broadcast(Reshaped(columns, Shape{1, 1, 1, s.present}), shape);
  ANYDML_RETURN_IF_ERROR(Compare(n, DML_OPERATOR_ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL, columns,
                                 Broadcast(limit, shape), &visible));
  if (const int64_t window = n.Int("local_window_size", -1); window > 0 && window < s.present) {
    View size, near;
    ANYDML_RETURN_IF_ERROR(Fill(n, DataType::kInt32, {1}, static_cast<double>(window), &size));
    ANYDML_RETURN_IF_ERROR(BinaryTo(n, kSubtract, limit, size, &limit));
    ANYDML_RETURN_IF_ERROR(
        Compare(n, DML_OPERATOR_ELEMENT_WISE_LOGICAL_GREATER_THAN, columns, Broadcast(limit, shape), &near));
    ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_LOGICAL_AND, visible, near, &visible));
  }
  return MaskBias(n, visible, n.dml_type(0), -HUGE_VAL, bias);
}

// {batch, length, heads, size}, rotated in place.
Status RotateBoth(Lowering& n, const Sizes& s, const View& lengths, View* q, View* k) {
  Rotation r;
  r.interleaved = n.Int("rotary_interleaved", 0) != 0;
  if (!n.Has(7) || !n.Has(8) || n.rank(7) != 2 || n.shape(7) != n.shape(8) || n.shape(7)[1] < 1 ||
      n.shape(7)[1] > s.size / 2)
    return InvalidArgument("do_rotary without tables that fit");
  r.size = 2 * n.shape(7)[1];
  View at, rows;
  if (n.Has(9)) {
    at = n.In(9);
  } else {
    ANYDML_RETURN_IF_ERROR(Count(n, s.length, &rows));
    ANYDML_RETURN_IF_ERROR(Shifted(n, kAdd, rows, lengths, 1, &at));
    at = Reshaped(at, Shape{s.batch, s.length});
  }
  if (ShapeOf(at) != Shape{s.batch, s.length})
    return InvalidArgument("position_ids ", ShapeToString(ShapeOf(at)));
  ANYDML_RETURN_IF_ERROR(RowsAt(n, n.In(7), at, &r.cosines));
  ANYDML_RETURN_IF_ERROR(RowsAt(n, n.In(8), at, &r.sines));
  const Shape table = {s.batch, s.length, 1, r.size / 2};
  r.cosines = Reshaped(r.cosines, table);
  r.sines = Reshaped(r.sines, table);
  const View queries = *q, keys = *k;
  ANYDML_RETURN_IF_ERROR(Rotate(n, queries, r, q));
  return Rotate(n, keys, r, k);
}

Status ReadSizes(Lowering& n, Sizes* s) {
  if (!n.Has(5) || !n.Has(6)) return InvalidArgument("seqlens_k or total_sequence_length is left out");
  s->heads = n.Int("num_heads", 0);
  s->key_heads = n.Int("kv_num_heads", 0);
  const Shape& q = n.shape(0);
  const bool packed = !n.Has(1);
  if (s->heads < 1 || s->key_heads < 1 || s->heads > INT32_MAX || s->key_heads > INT32_MAX ||
      s->heads % s->key_heads != 0 || q.size() != 3 || packed == n.Has(2))
    return InvalidArgument("query ", ShapeToString(q), " for ", s->heads, " and ", s->key_heads, " heads");
  s->batch = q[0];
  s->length = q[1];
  s->size = q[2] / (packed ? s->heads + 2 * s->key_heads : s->heads);
  const Shape keys = {s->batch, s->length, s->key_heads * s->size};
  if (s->size < 1 || s->size * (packed ? s->heads + 2 * s->key_heads : s->heads) != q[2] ||
      (!packed && (n.shape(1) != keys || n.shape(2) != keys)))
    return InvalidArgument("query ", ShapeToString(q), " for ", s->heads, " and ", s->key_heads, " heads");
  if (n.Has(3) != n.Has(4)) return InvalidArgument("past_key and past_value belong together");
  if (n.Has(3)) {
    if (n.rank(3) != 4 || n.shape(3) != n.shape(4) || n.shape(3)[1] != s->key_heads)
      return InvalidArgument("past_key ", ShapeToString(n.shape(3)));
    s->past = n.shape(3)[2];
  }
  const std::vector<int64_t> total = n.HostInts(6);
  if (total.size() != 1 || total[0] < s->length || total[0] > INT32_MAX ||
      ElementCount(n.shape(5)) != s->batch || s->past > INT32_MAX)
    return InvalidArgument("total_sequence_length or seqlens_k");
  s->present = std::max(s->past, total[0]);
  return {};
}

// query, key, value, past_key, past_value, seqlens_k, total_sequence_length, cos_cache, sin_cache,
// position_ids, attention_bias
Status GroupQueryAttention(Lowering& n) {
  if (n.Has(11) || n.Int("smooth_softmax", 0) > 0) return Unsupported("smooth_softmax and head_sink");
  if (n.Text("k_quant_type", "NONE") != "NONE" || n.Text("v_quant_type", "NONE") != "NONE")
    return Unsupported("a quantised cache");
  Sizes s;
  ANYDML_RETURN_IF_ERROR(ReadSizes(n, &s));
  View q = n.In(0), k, v, lengths, mask;
  if (n.Has(1)) {
    k = n.In(1);
    v = n.In(2);
  } else {
    const View packed = q;
    const int64_t width = s.heads * s.size, key_width = s.key_heads * s.size;
    ANYDML_RETURN_IF_ERROR(Part(n, packed, 2, 0, width, &q));
    ANYDML_RETURN_IF_ERROR(Part(n, packed, 2, width, key_width, &k));
    ANYDML_RETURN_IF_ERROR(Part(n, packed, 2, width + key_width, key_width, &v));
  }
  q = Reshaped(q, Shape{s.batch, s.length, s.heads, s.size});
  k = Reshaped(k, Shape{s.batch, s.length, s.key_heads, s.size});
  v = Reshaped(v, Shape{s.batch, s.length, s.key_heads, s.size});
  ANYDML_RETURN_IF_ERROR(PastLengths(n, s, &lengths));
  if (n.Int("do_rotary", 0) != 0) ANYDML_RETURN_IF_ERROR(RotateBoth(n, s, lengths, &q, &k));
  const uint32_t order[] = {0, 2, 1, 3};
  AttentionInputs in;
  in.queries = Permuted(q, order);
  ANYDML_RETURN_IF_ERROR(Update(n, s, 3, Permuted(k, order), lengths, &in.keys));
  ANYDML_RETURN_IF_ERROR(Update(n, s, 4, Permuted(v, order), lengths, &in.values));
  for (const size_t i : {1, 2}) {
    if (!n.Wants(i)) continue;
    View packed;
    ANYDML_RETURN_IF_ERROR(Pack(n, i == 1 ? in.keys : in.values, &packed));
    n.Return(i, packed, n.type(0), ShapeOf(packed));
  }
  const Shape logits = {s.batch, s.heads, s.length, s.present};
  if (n.Has(10)) {
    if (n.rank(10) > 4) return InvalidArgument("attention_bias ", ShapeToString(n.shape(10)));
    in.bias = AtLeast(n.In(10), 4);
  }
  ANYDML_RETURN_IF_ERROR(Visible(n, s, lengths, &mask));
  ANYDML_RETURN_IF_ERROR(AddBias(n, logits, mask, &in.bias));
  in.scale = n.Float("scale", 0);
  if (in.scale == 0) in.scale = 1 / std::sqrt(static_cast<float>(s.size));
  in.softcap = n.Float("softcap", 0);
  AttentionResults r;
  ANYDML_RETURN_IF_ERROR(Attend(n, in, &r));
  ANYDML_RETURN_IF_ERROR(MergeHeads(n, r.output, &r.output));
  n.Return(0, r.output, n.type(0), n.Has(1) ? n.shape(0) : ShapeOf(r.output));
  return {};
}

constexpr OperatorRow kGroupQueryRows[] = {
    {kMicrosoft, "GroupQueryAttention", 1, 14, 1 << 6, GroupQueryAttention, nullptr},
};

}  // namespace

std::span<const OperatorRow> GroupQueryAttentionOperators() { return kGroupQueryRows; }

}  // namespace anydml::onnx
