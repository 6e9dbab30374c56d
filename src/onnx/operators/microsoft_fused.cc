// com.microsoft's fused operators of transformers and diffusion models.
#include <algorithm>

#include "onnx/lower/compose.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

constexpr DML_OPERATOR_TYPE kMultiply = DML_OPERATOR_ELEMENT_WISE_MULTIPLY;

// X {..., D} and bias {D}: the first half times the Gelu of the second.
Status BiasSplitGelu(Lowering& n) {
  const Shape& x = n.shape(0);
  if (x.empty() || x.back() % 2 != 0 || n.shape(1) != Shape{x.back()})
    return InvalidArgument("X ", ShapeToString(x), " and bias ", ShapeToString(n.shape(1)));
  const int64_t half = x.back() / 2;
  const auto axis = static_cast<uint32_t>(x.size() - 1);
  View sum, left, right;
  ANYDML_RETURN_IF_ERROR(BinaryTo(n, kAdd, n.In(0), n.In(1), &sum));
  ANYDML_RETURN_IF_ERROR(Part(n, sum, axis, 0, half, &left));
  ANYDML_RETURN_IF_ERROR(Part(n, sum, axis, half, half, &right));
  ANYDML_RETURN_IF_ERROR(Activate(n, DML_OPERATOR_ACTIVATION_GELU, right, &right));
  ANYDML_RETURN_IF_ERROR(Binary(n, kMultiply, left, right, &left));
  n.Return(0, left, n.type(0), ShapeOf(left));
  return {};
}

// X + bias + skip
Status BiasAdd(Lowering& n) {
  const Shape& x = n.shape(0);
  if (x.empty() || n.shape(1) != Shape{x.back()} || n.shape(2) != x)
    return InvalidArgument("X ", ShapeToString(x), ", bias ", ShapeToString(n.shape(1)), " and skip ",
                           ShapeToString(n.shape(2)));
  View sum;
  ANYDML_RETURN_IF_ERROR(BinaryTo(n, kAdd, n.In(0), n.In(1), &sum));
  ANYDML_RETURN_IF_ERROR(Binary(n, kAdd, sum, n.In(2), &sum));
  n.Return(0, sum, n.type(0), x);
  return {};
}

// X {N, H, W, C} (or {N, C, H, W} without channels_last), gamma {C}, beta {C}; then optionally x *
// sigmoid(x).
Status GroupNorm(Lowering& n) {
  const Shape& shape = n.shape(0);
  const int64_t groups = n.Int("groups", 0), activation = n.Int("activation", 0);
  const bool behind = n.Int("channels_last", 1) != 0;
  const int64_t channels = shape.size() == 4 ? shape[behind ? 3 : 1] : 0;
  if (shape.size() != 4 || groups < 1 || channels % groups != 0 || n.shape(1) != Shape{channels} ||
      n.shape(2) != Shape{channels} || activation < 0 || activation > 1)
    return InvalidArgument("X ", ShapeToString(shape), " in ", groups, " groups");
  const int64_t each = channels / groups, places = behind ? shape[1] * shape[2] : shape[2] * shape[3];
  const Shape grouped =
      behind ? Shape{shape[0], places, groups, each} : Shape{shape[0], groups, each, places};
  const Shape parameter = behind ? Shape{1, 1, groups, each} : Shape{1, groups, each, 1};
  const UINT axes_behind[] = {1, 3}, axes_front[] = {2, 3};
  View x = Reshaped(n.In(0), grouped), gamma, beta, y = n.New(x.type, grouped);
  ANYDML_RETURN_IF_ERROR(Cast(n, n.In(1), x.type, &gamma));
  ANYDML_RETURN_IF_ERROR(Cast(n, n.In(2), x.type, &beta));
  gamma = Reshaped(gamma, parameter);
  beta = Reshaped(beta, parameter);
  const DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC desc{n.graph().In(x),
                                                            n.graph().In(gamma),
                                                            n.graph().In(beta),
                                                            n.graph().Out(&y),
                                                            2,
                                                            behind ? axes_behind : axes_front,
                                                            TRUE,
                                                            n.Float("epsilon", 1e-5f),
                                                            nullptr};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION1, desc));
  if (activation == 1) {
    View gate;
    ANYDML_RETURN_IF_ERROR(Activate(n, DML_OPERATOR_ACTIVATION_SIGMOID, y, &gate));
    ANYDML_RETURN_IF_ERROR(Binary(n, kMultiply, y, gate, &y));
  }
  n.Return(0, y, n.type(0), shape);
  return {};
}

// Rows of a table {count, width} for indices {batch, length}.
Status Lookup(Lowering& n, size_t table, const View& indices, View* out) {
  if (n.rank(table) != 2 || indices.rank() != 2)
    return InvalidArgument("a table ", ShapeToString(n.shape(table)), " and indices ",
                           ShapeToString(ShapeOf(indices)));
  const View rows = AtLeast(n.In(table), 3), at = AtLeast(indices, 3);
  *out = n.New(rows.type, Shape{indices.sizes[0], indices.sizes[1], n.shape(table)[1]});
  const DML_GATHER_OPERATOR_DESC desc{n.graph().In(rows), n.graph().In(at), n.graph().Out(out), 1, 2};
  return n.graph().Add(DML_OPERATOR_GATHER, desc);
}

// The number of ones in a mask {batch, length}, as INT32; 0 without a mask.
Status MaskIndex(Lowering& n, int64_t batch) {
  View count;
  if (!n.Has(7)) {
    ANYDML_RETURN_IF_ERROR(Fill(n, DataType::kInt32, {batch}, 0, &count));
  } else {
    View one, equal, numbers;
    const View mask = n.In(7);
    if (n.shape(7) != n.shape(0)) return InvalidArgument("mask ", ShapeToString(n.shape(7)));
    ANYDML_RETURN_IF_ERROR(Fill(n, mask.type, {1}, 1, &one));
    ANYDML_RETURN_IF_ERROR(
        Compare(n, DML_OPERATOR_ELEMENT_WISE_LOGICAL_EQUALS, mask, Broadcast(one, ShapeOf(mask)), &equal));
    ANYDML_RETURN_IF_ERROR(Cast(n, equal, DataType::kInt32, &numbers));
    const uint32_t axis = 1;
    ANYDML_RETURN_IF_ERROR(Reduce(n, DML_REDUCE_FUNCTION_SUM, numbers, {&axis, 1}, &count));
  }
  n.Return(1, count, ElementType::kInt32, {batch});
  return {};
}

// input_ids, segment_ids, word_embedding, position_embedding, segment_embedding, gamma, beta, mask,
// position_ids
Status EmbedLayerNormalization(Lowering& n) {
  for (const size_t i : {2, 3, 5, 6}) {
    if (!n.Has(i)) return InvalidArgument("input ", i, " is left out");
  }
  const Shape& ids = n.shape(0);
  if (ids.size() != 2 || n.rank(2) != 2 || n.rank(3) != 2)
    return InvalidArgument("input_ids ", ShapeToString(ids));
  const int64_t width = n.shape(2)[1];
  const Shape shape = {ids[0], ids[1], width};
  View sum, more, positions;
  ANYDML_RETURN_IF_ERROR(Lookup(n, 2, n.In(0), &sum));
  if (n.Has(8)) {
    ANYDML_RETURN_IF_ERROR(Lookup(n, 3, n.In(8), &more));
  } else {
    if (n.shape(3)[0] < ids[1]) return InvalidArgument("position_embedding ", ShapeToString(n.shape(3)));
    ANYDML_RETURN_IF_ERROR(Part(n, n.In(3), 0, 0, ids[1], &more));
  }
  more = AtLeast(more, 3);
  if (more.sizes[2] != width || more.sizes[1] != ids[1] || (more.sizes[0] != 1 && more.sizes[0] != ids[0]))
    return InvalidArgument("position_ids ", ShapeToString(ShapeOf(more)));
  ANYDML_RETURN_IF_ERROR(BinaryTo(n, kAdd, sum, more, &sum));
  if (n.Has(1) && n.Has(4)) {
    ANYDML_RETURN_IF_ERROR(Lookup(n, 4, n.In(1), &more));
    if (ShapeOf(more) != shape) return InvalidArgument("segment_ids ", ShapeToString(n.shape(1)));
    ANYDML_RETURN_IF_ERROR(Binary(n, kAdd, sum, more, &sum));
  }
  if (n.shape(5) != Shape{width} || n.shape(6) != Shape{width})
    return InvalidArgument("gamma ", ShapeToString(n.shape(5)));
  const View gamma = AtLeast(n.In(5), 3), beta = AtLeast(n.In(6), 3);
  const UINT axis = 2;
  View y = n.New(sum.type, shape);
  const DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC desc{n.graph().In(sum),
                                                            n.graph().In(gamma),
                                                            n.graph().In(beta),
                                                            n.graph().Out(&y),
                                                            1,
                                                            &axis,
                                                            TRUE,
                                                            n.Float("epsilon", 1e-12f),
                                                            nullptr};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION1, desc));
  n.Return(0, y, n.type(2), shape);
  if (n.Wants(1)) ANYDML_RETURN_IF_ERROR(MaskIndex(n, ids[0]));
  if (n.Wants(2)) n.Return(2, sum, n.type(2), shape);
  return {};
}

// 4-bit data (also as bytes of two), indices, scales, zero points: rows are gathered, then dequantised.
Status GatherBlockQuantized(Lowering& n) {
  const int64_t block = n.Int("block_size", 128), bits = n.Int("bits", 4);
  uint32_t gather = 0, quantize = 0;
  ANYDML_RETURN_IF_ERROR(ResolveAxis(n.Int("gather_axis", 0), n.rank(0), &gather));
  ANYDML_RETURN_IF_ERROR(ResolveAxis(n.Int("quantize_axis", 1), n.rank(0), &quantize));
  const bool bytes = n.type(0) == ElementType::kUInt8, is_signed = n.type(0) == ElementType::kInt4;
  if (n.rank(0) != 2 || n.rank(2) != 2 || gather != 0 || quantize != 1 || bits != 4 || n.rank(1) > 6)
    return Unsupported("other than blocks of four bits along the rows of a table");
  for (const size_t i : {0, 2}) {
    if (std::max(n.shape(i)[0], n.shape(i)[1]) > INT32_MAX)
      return InvalidArgument("a table ", ShapeToString(n.shape(i)));
  }
  const int64_t count = n.shape(0)[0], width = bytes ? n.shape(0)[1] * 2 : n.shape(0)[1],
                blocks = n.shape(2)[1];
  if (block < 1 || block > INT32_MAX) return InvalidArgument("block_size is ", block);
  const Shape wanted = {count, (width + block - 1) / block};
  if (width < 1 || width % 2 != 0) return Unsupported("rows of ", width, " elements of four bits");
  if (n.shape(2) != wanted)
    return InvalidArgument("scales have the shape ", ShapeToString(n.shape(2)), "; block_size ", block,
                           " for ", width, " columns needs ", ShapeToString(wanted));
  // DirectML's blocks have equal length, so the last one is padded.
  const int64_t stored = blocks > 1 ? blocks * block : width;
  if (stored % 2 != 0) return Unsupported("a last block that ends within a byte");
  const int64_t rows = ElementCount(n.shape(1)).value_or(0);
  const View at = Reshaped(n.In(1), Shape{1, rows});
  const auto pick = [&](View table, int64_t columns, View* out) {
    table = Reshaped(table, Shape{count, columns});
    *out = n.New(table.type, Shape{rows, columns});
    const DML_GATHER_OPERATOR_DESC desc{n.graph().In(table), n.graph().In(at), n.graph().Out(out), 0, 1};
    return n.graph().Add(DML_OPERATOR_GATHER, desc);
  };
  const DataType type = is_signed ? DataType::kInt4 : DataType::kUInt4;
  View data = n.In(0), x, scale, zero;
  data.type = DataType::kUInt8;  // two at a time
  ANYDML_RETURN_IF_ERROR(pick(data, width / 2, &x));
  if (stored != width) {
    const View part = x;
    const UINT begin[] = {0, 0}, end[] = {0, static_cast<UINT>((stored - width) / 2)};
    x = n.New(part.type, Shape{rows, stored / 2});
    const DML_PADDING1_OPERATOR_DESC desc{n.graph().In(part),
                                          n.graph().Out(&x),
                                          DML_PADDING_MODE_CONSTANT,
                                          DML_TENSOR_DATA_TYPE_UINT8,
                                          DML_SCALAR_UNION{},
                                          2,
                                          begin,
                                          end};
    ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_PADDING1, desc));
  }
  x.type = type;
  x = Reshaped(x, Shape{rows, stored});
  ANYDML_RETURN_IF_ERROR(pick(n.In(2), blocks, &scale));
  if (n.Has(3)) {
    if (blocks % 2 != 0) return Unsupported("zero points of an odd number of blocks");
    if (PackedBytes(n.type(3), n.shape(3)) != static_cast<uint64_t>(count * blocks / 2))
      return InvalidArgument("zero points ", ShapeToString(n.shape(3)));
    View zeros = n.In(3);
    zeros.type = DataType::kUInt8;
    ANYDML_RETURN_IF_ERROR(pick(zeros, blocks / 2, &zero));
    zero.type = type;
    zero = Reshaped(zero, Shape{rows, blocks});
  }
  // Without zero points, DirectML takes the middle of an unsigned type, as the operator does for bytes; for
  // four bits the operator's is 0.
  if (!n.Has(3) && !bytes && !is_signed) return Unsupported("uint4 without zero points");
  const View quantization[] = {scale, zero};
  View y = n.New(scale.type, Shape{rows, stored});
  const UINT used = n.Has(3) ? 2 : 1;
  const DML_TENSOR_DESC* const input = n.graph().In(x);
  const DML_DEQUANTIZE_OPERATOR_DESC desc{
      input, n.Has(3) ? DML_QUANTIZATION_TYPE_SCALE_ZERO_POINT : DML_QUANTIZATION_TYPE_SCALE, used,
      n.graph().InArray(std::span(quantization).first(used)), n.graph().Out(&y)};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_DEQUANTIZE, desc));
  if (stored != width) ANYDML_RETURN_IF_ERROR(Part(n, y, 1, 0, width, &y));
  Shape shape = n.shape(1);
  shape.push_back(width);
  n.Return(0, y, n.type(2), shape);
  return {};
}

constexpr OperatorRow kFusedRows[] = {
    {kMicrosoft, "BiasAdd", 3, 3, 0, BiasAdd, nullptr},
    {kMicrosoft, "BiasSplitGelu", 2, 2, 0, BiasSplitGelu, nullptr},
    {kMicrosoft, "EmbedLayerNormalization", 1, 9, 0, EmbedLayerNormalization, nullptr},
    {kMicrosoft, "GatherBlockQuantized", 3, 4, 0, GatherBlockQuantized, nullptr},
    {kMicrosoft, "GroupNorm", 3, 3, 0, GroupNorm, nullptr},
};

}  // namespace

std::span<const OperatorRow> MicrosoftFusedOperators() { return kFusedRows; }

}  // namespace anydml::onnx
