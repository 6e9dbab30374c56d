#include <algorithm>

#include "onnx/lower/compose.h"
#include "onnx/lower/windows.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

struct Pooling {
  Windows windows;
  Shape shape;
};

Status Resolve(Lowering& n, bool global, Pooling* out) {
  const Shape& x = n.shape(0);
  if (x.size() < 3) return InvalidArgument("input ", ShapeToString(x), " has no spatial dimension");
  const std::span<const int64_t> spatial = std::span(x).subspan(2);
  out->shape = {x[0], x[1]};
  if (global) {
    for (const int64_t size : spatial) {
      if (size < 1 || size > INT32_MAX) return InvalidArgument("a window of ", size, " elements");
      out->windows.kernel.push_back(static_cast<UINT>(size));
    }
    const size_t rank = spatial.size();
    out->windows.strides.assign(rank, 1);
    out->windows.dilations.assign(rank, 1);
    out->windows.begin.assign(rank, 0);
    out->windows.end.assign(rank, 0);
    out->windows.output.assign(rank, 1);
  } else {
    const std::vector<int64_t> kernel = n.Ints("kernel_shape");
    if (kernel.size() != spatial.size())
      return InvalidArgument("kernel_shape has ", kernel.size(), " elements");
    ANYDML_RETURN_IF_ERROR(ResolveWindows(n, spatial, kernel, &out->windows));
  }
  out->shape.insert(out->shape.end(), out->windows.output.begin(), out->windows.output.end());
  out->windows = AtLeastTwo(std::move(out->windows));
  return {};
}

bool IsDilated(const Windows& windows) {
  return std::any_of(windows.dilations.begin(), windows.dilations.end(),
                     [](UINT dilation) { return dilation > 1; });
}

Status AverageOf(Lowering& n, bool global) {
  Pooling p;
  ANYDML_RETURN_IF_ERROR(Resolve(n, global, &p));
  const View x = WithHeight(n.In(0));
  View y = WithHeight(n.New(x.type, p.shape));
  const Windows& w = p.windows;
  const BOOL include = n.Int("count_include_pad", 0) != 0;
  if (IsDilated(w)) {  // which needs a newer feature level
    const DML_AVERAGE_POOLING1_OPERATOR_DESC desc{n.graph().In(x),  n.graph().Out(&y),  w.rank(),
                                                  w.strides.data(), w.kernel.data(),    w.begin.data(),
                                                  w.end.data(),     w.dilations.data(), include};
    ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_AVERAGE_POOLING1, desc));
  } else {
    const DML_AVERAGE_POOLING_OPERATOR_DESC desc{
        n.graph().In(x), n.graph().Out(&y), w.rank(),     w.strides.data(),
        w.kernel.data(), w.begin.data(),    w.end.data(), include};
    ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_AVERAGE_POOLING, desc));
  }
  n.Return(0, y, n.type(0), p.shape);
  return {};
}

Status LpOf(Lowering& n, bool global) {
  Pooling p;
  ANYDML_RETURN_IF_ERROR(Resolve(n, global, &p));
  const View x = WithHeight(n.In(0));
  View y = WithHeight(n.New(x.type, p.shape));
  const Windows& w = p.windows;
  const float old = n.version() < 2 ? n.Float("p", 2) : 2;  // a FLOAT then
  const int64_t norm =
      n.version() < 2 ? (old >= 1 && old <= 1000 ? static_cast<int64_t>(old) : 0) : n.Int("p", 2);
  if (norm < 1 || norm > 1000) return InvalidArgument("p is ", norm);
  const auto power = static_cast<UINT>(norm);
  if (IsDilated(w)) {
    const DML_LP_POOLING1_OPERATOR_DESC desc{n.graph().In(x),  n.graph().Out(&y),  w.rank(),
                                             w.strides.data(), w.kernel.data(),    w.begin.data(),
                                             w.end.data(),     w.dilations.data(), power};
    ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_LP_POOLING1, desc));
  } else {
    const DML_LP_POOLING_OPERATOR_DESC desc{
        n.graph().In(x), n.graph().Out(&y), w.rank(),     w.strides.data(),
        w.kernel.data(), w.begin.data(),    w.end.data(), power};
    ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_LP_POOLING, desc));
  }
  n.Return(0, y, n.type(0), p.shape);
  return {};
}

// Indices for a column-major order of the last two dimensions (storage_order 1).
Status ColumnMajor(Lowering& n, View* indices) {
  const Shape& x = n.shape(0);
  if (x.size() != 4) return x.size() == 3 ? Status() : Unsupported("storage_order 1 of rank ", x.size());
  View height, width, plane, rest, row, column;
  const DataType type = DataType::kInt64;
  indices->type = type;
  ANYDML_RETURN_IF_ERROR(Fill(n, type, {1}, static_cast<double>(x[2]), &height));
  ANYDML_RETURN_IF_ERROR(Fill(n, type, {1}, static_cast<double>(x[3]), &width));
  ANYDML_RETURN_IF_ERROR(Fill(n, type, {1}, static_cast<double>(x[2] * x[3]), &plane));
  ANYDML_RETURN_IF_ERROR(BinaryTo(n, DML_OPERATOR_ELEMENT_WISE_MODULUS_TRUNCATE, *indices, plane, &rest));
  ANYDML_RETURN_IF_ERROR(BinaryTo(n, DML_OPERATOR_ELEMENT_WISE_DIVIDE, rest, width, &row));
  ANYDML_RETURN_IF_ERROR(BinaryTo(n, DML_OPERATOR_ELEMENT_WISE_MODULUS_TRUNCATE, rest, width, &column));
  ANYDML_RETURN_IF_ERROR(BinaryTo(n, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, column, height, &column));
  ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_SUBTRACT, *indices, rest, indices));
  ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_ADD, *indices, column, indices));
  return Binary(n, DML_OPERATOR_ELEMENT_WISE_ADD, *indices, row, indices);
}

Status MaxOf(Lowering& n, bool global) {
  Pooling p;
  ANYDML_RETURN_IF_ERROR(Resolve(n, global, &p));
  const View x = WithHeight(n.In(0));
  View y = WithHeight(n.New(x.type, p.shape));
  View indices = WithHeight(n.New(DataType::kUInt64, p.shape));
  const Windows& w = p.windows;
  const DML_MAX_POOLING2_OPERATOR_DESC desc{
      n.graph().In(x), n.graph().Out(&y), n.graph().Out(n.Wants(1) ? &indices : nullptr),
      w.rank(),        w.strides.data(),  w.kernel.data(),
      w.begin.data(),  w.end.data(),      w.dilations.data()};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_MAX_POOLING2, desc));
  n.Return(0, y, n.type(0), p.shape);
  if (!n.Wants(1)) return {};
  if (n.Int("storage_order", 0) != 0) ANYDML_RETURN_IF_ERROR(ColumnMajor(n, &indices));
  n.Return(1, indices, ElementType::kInt64, p.shape);
  return {};
}

Status AveragePool(Lowering& n) { return AverageOf(n, false); }
Status GlobalAveragePool(Lowering& n) { return AverageOf(n, true); }
Status LpPool(Lowering& n) { return LpOf(n, false); }
Status GlobalLpPool(Lowering& n) { return LpOf(n, true); }
Status MaxPool(Lowering& n) { return MaxOf(n, false); }
Status GlobalMaxPool(Lowering& n) { return MaxOf(n, true); }

// Indices refer to the output without output_shape, which only adds zeros at the end.
Status MaxUnpool(Lowering& n) {
  const std::vector<int64_t> kernel = n.Ints("kernel_shape"), pads = n.Ints("pads");
  std::vector<int64_t> strides = n.Ints("strides");
  Shape shape = n.shape(0);
  if (strides.empty()) strides.assign(kernel.size(), 1);
  if (shape.size() != kernel.size() + 2 || strides.size() != kernel.size())
    return InvalidArgument("kernel_shape has ", kernel.size(), " elements");
  for (size_t i = 0; i < kernel.size(); ++i) {
    const bool padded = pads.size() == 2 * kernel.size();
    const int64_t before = padded ? pads[i] : 0, behind = padded ? pads[i + kernel.size()] : 0;
    if (std::max({kernel[i], strides[i], before, behind}) > INT32_MAX ||
        std::min({kernel[i], strides[i], before, behind}) < 0 || shape[i + 2] > INT32_MAX)
      return InvalidArgument("a window is too large");
    shape[i + 2] = (shape[i + 2] - 1) * strides[i] + kernel[i] - before - behind;
  }
  if (!ElementCount(shape)) return InvalidArgument("an output of ", ShapeToString(shape));
  const Shape wanted = n.Has(2) ? n.HostInts(2) : shape;
  std::vector<UINT> begin(shape.size(), 0), end;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (wanted.size() != shape.size() || wanted[i] < shape[i] || wanted[i] - shape[i] > INT32_MAX)
      return InvalidArgument("output_shape ", ShapeToString(wanted), " for ", ShapeToString(shape));
    end.push_back(static_cast<UINT>(wanted[i] - shape[i]));
  }
  View indices = n.In(1);
  indices.type = DataType::kUInt64;  // never negative
  const View x = n.In(0);
  View y = n.New(x.type, shape);
  const DML_MAX_UNPOOLING_OPERATOR_DESC desc{n.graph().In(x), n.graph().In(indices), n.graph().Out(&y)};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_MAX_UNPOOLING, desc));
  if (wanted != shape) {
    const View inner = y;
    y = n.New(x.type, wanted);
    const DML_PADDING_OPERATOR_DESC padding{
        n.graph().In(inner), n.graph().Out(&y), DML_PADDING_MODE_CONSTANT, 0, static_cast<UINT>(end.size()),
        begin.data(),        end.data()};
    ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_PADDING, padding));
  }
  n.Return(0, y, n.type(0), wanted);
  return {};
}

constexpr OperatorRow kPoolingRows[] = {
    {kOnnx, "AveragePool", 1, 1, 0, AveragePool, nullptr},
    {kOnnx, "GlobalAveragePool", 1, 1, 0, GlobalAveragePool, nullptr},
    {kOnnx, "LpPool", 1, 1, 0, LpPool, nullptr},
    {kOnnx, "GlobalLpPool", 1, 1, 0, GlobalLpPool, nullptr},
    {kOnnx, "MaxPool", 1, 1, 0, MaxPool, nullptr},
    {kOnnx, "GlobalMaxPool", 1, 1, 0, GlobalMaxPool, nullptr},
    {kOnnx, "MaxUnpool", 2, 3, 4, MaxUnpool, nullptr},
};

}  // namespace

std::span<const OperatorRow> PoolingOperators() { return kPoolingRows; }

}  // namespace anydml::onnx
