// Matrix products on the host: of doubles and integers, which DirectML does not multiply.
#include <algorithm>

#include "onnx/host/host_numbers.h"

namespace anydml::onnx::host {
namespace {

// y {rows, columns} += a {rows, k} * b {k, columns}, row by row of b.
template <typename T>
void Multiply(const T* a, const T* b, int64_t rows, int64_t k, int64_t columns, T* y) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < k; ++j) {
      const T factor = a[i * k + j];
      for (int64_t c = 0; c < columns; ++c) y[i * columns + c] += factor * b[j * columns + c];
    }
  }
}

// Integers wrap, so bits above their type do not matter.
std::vector<uint64_t> Bits(const Tensor& tensor) {
  const std::vector<int64_t> values = ToInts(tensor);
  return {values.begin(), values.end()};
}

Status CheckProduct(const HostCall& call) {
  for (size_t i = 0; i < call.inputs(); ++i) {
    if (!call.Has(i)) continue;
    const ElementType type = call.In(i).type;
    if (!IsNumber(type) || type != call.In(0).type || call.In(i).count() > kMostHostNumbers)
      return Unsupported("this type or size on the host");
    // For types that the device has, its order of additions is authoritative.
    if (IsFloat(type) && type != ElementType::kDouble) return Unsupported("on the host");
  }
  return {};
}

// More would take minutes.
constexpr int64_t kMostMultiplications = int64_t{1} << 34;

Status CheckWork(const onnx::Shape& result, int64_t k) {
  onnx::Shape work = result;
  work.push_back(k);
  const std::optional<int64_t> count = ElementCount(result), steps = ElementCount(work);
  if (!count || *count > kMostHostNumbers || !steps || *steps > kMostMultiplications)
    return Unsupported("a product of such sizes on the host");
  return {};
}

// The matrices of `a` and `b` at the positions of a batch.
template <typename T>
std::vector<T> Products(const std::vector<T>& a, const std::vector<T>& b, std::span<const size_t> at_a,
                        std::span<const size_t> at_b, int64_t rows, int64_t k, int64_t columns) {
  std::vector<T> y(at_a.size() * static_cast<size_t>(rows * columns));
  for (size_t i = 0; i < at_a.size(); ++i) {
    Multiply(a.data() + at_a[i] * static_cast<size_t>(rows * k),
             b.data() + at_b[i] * static_cast<size_t>(k * columns), rows, k, columns,
             y.data() + i * static_cast<size_t>(rows * columns));
  }
  return y;
}

template <typename T>
std::vector<T> Transposed(const std::vector<T>& x, const onnx::Shape& shape) {
  const auto rows = static_cast<size_t>(shape[0]), columns = static_cast<size_t>(shape[1]);
  std::vector<T> result(x.size());
  for (size_t i = 0; i < x.size(); ++i) result[i % columns * rows + i / columns] = x[i];
  return result;
}

}  // namespace

Status MatMul(HostCall& call) {
  ANYDML_RETURN_IF_ERROR(CheckProduct(call));
  onnx::Shape a = call.In(0).shape, b = call.In(1).shape;
  if (a.empty() || b.empty()) return InvalidArgument("a scalar cannot be multiplied as a matrix");
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  const int64_t rows = a[a.size() - 2], k = a.back(), columns = b.back();
  if (k != b[b.size() - 2]) {
    return InvalidArgument("shapes ", ShapeToString(call.In(0).shape), " and ",
                           ShapeToString(call.In(1).shape), " cannot be multiplied");
  }
  onnx::Shape batch, shape;
  const onnx::Shape batch_a(a.begin(), a.end() - 2), batch_b(b.begin(), b.end() - 2);
  ANYDML_RETURN_IF_ERROR(BroadcastShape(batch_a, batch_b, &batch));
  shape = batch;
  if (!row) shape.push_back(rows);
  if (!column) shape.push_back(columns);
  ANYDML_RETURN_IF_ERROR(CheckWork(shape, k));
  const Tensor &x = call.In(0), &y = call.In(1);
  if (ElementCount(shape) == 0) {  // of any number of matrices
    call.outputs[0] = FromInts(x.type, shape, {});
    return {};
  }
  const std::vector<size_t> at_a = Positions(batch_a, batch), at_b = Positions(batch_b, batch);
  if (x.type == ElementType::kDouble) {
    const std::vector<double> result = Products(ToDoubles(x), ToDoubles(y), at_a, at_b, rows, k, columns);
    call.outputs[0] = FromDoubles(x.type, shape, result);
  } else {
    const std::vector<uint64_t> bits = Products(Bits(x), Bits(y), at_a, at_b, rows, k, columns);
    call.outputs[0] = FromInts(x.type, shape, std::vector<int64_t>(bits.begin(), bits.end()));
  }
  return {};
}

// alpha * A * B + beta * C, of doubles.
Status Gemm(HostCall& call) {
  ANYDML_RETURN_IF_ERROR(CheckProduct(call));
  const Tensor &x = call.In(0), &y = call.In(1);
  if (x.type != ElementType::kDouble) return Unsupported("of ", Name(x.type));
  if (x.shape.size() != 2 || y.shape.size() != 2) return InvalidArgument("A and B are no matrices");
  const bool trans_a = call.Int("transA", 0) != 0, trans_b = call.Int("transB", 0) != 0;
  const int64_t rows = x.shape[trans_a ? 1 : 0], k = x.shape[trans_a ? 0 : 1],
                columns = y.shape[trans_b ? 0 : 1];
  if (k != y.shape[trans_b ? 1 : 0]) {
    return InvalidArgument("shapes ", ShapeToString(x.shape), " and ", ShapeToString(y.shape),
                           " cannot be multiplied");
  }
  const onnx::Shape shape = {rows, columns};
  ANYDML_RETURN_IF_ERROR(CheckWork(shape, k));
  if (rows == 0 || columns == 0) {
    call.outputs[0] = FromInts(x.type, shape, {});
    return {};
  }
  std::vector<double> a = ToDoubles(x), b = ToDoubles(y), result(static_cast<size_t>(rows * columns));
  if (trans_a) a = Transposed(a, x.shape);
  if (trans_b) b = Transposed(b, y.shape);
  Multiply(a.data(), b.data(), rows, k, columns, result.data());
  const double alpha = call.Float("alpha", 1), beta = call.Float("beta", 1);
  for (double& value : result) value *= alpha;
  if (call.Has(2)) {
    onnx::Shape together;
    ANYDML_RETURN_IF_ERROR(BroadcastShape(shape, call.In(2).shape, &together));
    if (together != shape)
      return InvalidArgument("C ", ShapeToString(call.In(2).shape), " does not fit ", ShapeToString(shape));
    const std::vector<double> c = ToDoubles(call.In(2));
    const std::vector<size_t> at = Positions(call.In(2).shape, shape);
    for (size_t i = 0; i < result.size(); ++i) result[i] += beta * c[at[i]];
  }
  call.outputs[0] = FromDoubles(x.type, shape, result);
  return {};
}

}  // namespace anydml::onnx::host
