// Reductions on the host: integers, which wrap, and types that DirectML does not reduce.
#include <algorithm>
#include <cmath>
#include <limits>

#include "onnx/host/host_numbers.h"

namespace anydml::onnx::host {
namespace {

struct Reduction {
  onnx::Shape reduced, shape;  // with sizes of 1, and as the model sees it
};

Status Resolve(const HostCall& call, Reduction* out) {
  const Tensor& x = call.In(0);
  const bool as_input = call.version() >= (call.proto().type == "ReduceSum" ? 13 : 18);
  const std::vector<int64_t> given = !as_input     ? call.Ints("axes")
                                     : call.Has(1) ? ToInts(call.In(1))
                                                   : std::vector<int64_t>();
  const bool all = given.empty() && call.Int("noop_with_empty_axes", 0) == 0;
  std::vector<uint32_t> axes;
  ANYDML_RETURN_IF_ERROR(ResolveAxes(given, x.shape.size(), &axes));
  out->reduced = x.shape;
  for (uint32_t i = 0; i < x.shape.size(); ++i) {
    const bool named = all || std::binary_search(axes.begin(), axes.end(), i);
    if (named) out->reduced[i] = 1;
    if (!named || call.Int("keepdims", 1) != 0) out->shape.push_back(out->reduced[i]);
  }
  return {};
}

// Reductions whose results are computed in floating point.
bool HasRoots(const std::string& type) {
  return type == "ReduceL2" || type == "ReduceLogSum" || type == "ReduceLogSumExp";
}

int64_t Combine(const std::string& type, int64_t a, int64_t b, bool is_unsigned) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  if (type == "ReduceProd") return static_cast<int64_t>(x * y);
  if (type != "ReduceMin" && type != "ReduceMax") return static_cast<int64_t>(x + y);
  const bool less = is_unsigned ? x < y : a < b;
  return less == (type == "ReduceMin") ? a : b;
}

// The lowest or the greatest number of a type.
int64_t Limit(ElementType type, bool greatest) {
  const uint64_t ones = ~uint64_t{0} >> (64 - BitsOf(type));
  if (type == ElementType::kBool) return greatest;
  const bool is_signed = type == ElementType::kInt8 || type == ElementType::kInt16 ||
                         type == ElementType::kInt32 || type == ElementType::kInt64;
  if (!is_signed) return greatest ? static_cast<int64_t>(ones) : 0;
  return greatest ? static_cast<int64_t>(ones >> 1) : -static_cast<int64_t>(ones >> 1) - 1;
}

// The result of reducing no elements.
int64_t OfNothing(const std::string& type, ElementType element) {
  if (type == "ReduceMax" || type == "ReduceMin") return Limit(element, type == "ReduceMin");
  return type == "ReduceProd" ? 1 : 0;
}

Status Integers(HostCall& call, const Reduction& r, const std::vector<size_t>& targets) {
  const std::string& type = call.proto().type;
  const Tensor& x = call.In(0);
  if (x.count() == 0 && type == "ReduceMean") return Unsupported("of no elements");
  const bool is_unsigned = x.type == ElementType::kUInt64;
  std::vector<int64_t> values = ToInts(x);
  for (int64_t& value : values) {
    const auto bits = static_cast<uint64_t>(value);
    if (type == "ReduceSumSquare") value = static_cast<int64_t>(bits * bits);
    if (type == "ReduceL1" && value < 0 && !is_unsigned) value = static_cast<int64_t>(0 - bits);
  }
  std::vector<int64_t> result(static_cast<size_t>(ElementCount(r.reduced).value_or(0)),
                              OfNothing(type, x.type));
  std::vector<bool> started(result.size(), false);
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t& sum = result[targets[i]];
    sum = started[targets[i]] ? Combine(type, sum, values[i], is_unsigned) : values[i];
    started[targets[i]] = true;
  }
  const uint64_t each = values.size() / std::max<size_t>(1, result.size());
  for (size_t i = 0; i < result.size() && type == "ReduceMean"; ++i)
    result[i] = is_unsigned ? static_cast<int64_t>(static_cast<uint64_t>(result[i]) / each)
                            : result[i] / static_cast<int64_t>(each);
  call.outputs[0] = FromInts(x.type, r.shape, result);
  return {};
}

Status Doubles(HostCall& call, const Reduction& r, const std::vector<size_t>& targets) {
  const std::string& type = call.proto().type;
  const Tensor& x = call.In(0);
  const std::vector<double> values = ToDoubles(x);
  const auto count = static_cast<size_t>(ElementCount(r.reduced).value_or(0));
  const bool max = type == "ReduceMax" || type == "ReduceLogSumExp", min = type == "ReduceMin";
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> most(count, min ? kInfinity : -kInfinity), result(count, type == "ReduceProd" ? 1 : 0);
  for (size_t i = 0; i < values.size() && (max || min); ++i) {
    double& best = most[targets[i]];
    if (std::isnan(values[i]) || (min ? values[i] < best : values[i] > best)) best = values[i];
  }
  const bool squares = type == "ReduceL2" || type == "ReduceSumSquare";
  for (size_t i = 0; i < values.size(); ++i) {
    double& sum = result[targets[i]];
    const double value = values[i];
    if (type == "ReduceProd")
      sum *= value;
    else if (type == "ReduceLogSumExp")
      sum += std::exp(value - most[targets[i]]);
    else
      sum += squares ? value * value : type == "ReduceL1" ? std::abs(value) : value;
  }
  const double each = static_cast<double>(values.size()) / static_cast<double>(count);
  for (size_t i = 0; i < count; ++i) {
    if (type == "ReduceMean") result[i] /= each;
    if (type == "ReduceL2") result[i] = std::sqrt(result[i]);
    if (type == "ReduceLogSum") result[i] = std::log(result[i]);
    if (type == "ReduceLogSumExp") result[i] = most[i] + std::log(result[i]);
    if (type == "ReduceMax" || min) result[i] = most[i];
  }
  call.outputs[0] = FromDoubles(x.type, r.shape, result);
  return {};
}

}  // namespace

Status Reduce(HostCall& call) {
  const Tensor& x = call.In(0);
  if (!IsNumber(x.type)) return Unsupported("this type on the host");
  // For types that the device has, its order of additions is authoritative.
  if (IsFloat(x.type) && x.type != ElementType::kDouble && x.type != ElementType::kBFloat16 && x.count() != 0)
    return Unsupported("on the host");
  Reduction r;
  ANYDML_RETURN_IF_ERROR(Resolve(call, &r));
  if (x.count() > kMostHostNumbers || ElementCount(r.reduced) > kMostHostNumbers)
    return Unsupported("a large input on the host");
  const std::vector<size_t> targets = Positions(r.reduced, x.shape);
  return IsFloat(x.type) || HasRoots(call.proto().type) ? Doubles(call, r, targets)
                                                        : Integers(call, r, targets);
}

Status CumSum(HostCall& call) {
  ANYDML_RETURN_IF_ERROR(CheckNumbers(call));
  const Tensor& x = call.In(0);
  const std::vector<int64_t> given = ToInts(call.In(1));
  uint32_t axis = 0;
  if (given.size() != 1) return InvalidArgument("axis has ", given.size(), " elements");
  ANYDML_RETURN_IF_ERROR(ResolveAxis(given[0], x.shape.size(), &axis));
  if (x.count() > kMaxHostElements || !IsFloat(x.type)) return Unsupported("on the host");
  const std::vector<double> values = ToDoubles(x);
  std::vector<double> sums(values.size());
  const auto size = static_cast<size_t>(x.shape[axis]);
  const auto inner = static_cast<size_t>(ElementCount(std::span(x.shape).subspan(axis + 1)).value_or(0));
  const bool exclusive = call.Int("exclusive", 0) != 0, reverse = call.Int("reverse", 0) != 0,
             product = call.proto().type == "CumProd";
  for (size_t line = 0; line < values.size() / std::max<size_t>(1, size); ++line) {
    const size_t first = line / inner * size * inner + line % inner;
    double sum = product ? 1 : 0;
    for (size_t i = 0; i < size; ++i) {
      const size_t at = first + (reverse ? size - 1 - i : i) * inner;
      const double next = product ? sum * values[at] : sum + values[at];
      sums[at] = exclusive ? sum : next;
      sum = next;
    }
  }
  call.outputs[0] = FromDoubles(x.type, x.shape, sums);
  return {};
}

}  // namespace anydml::onnx::host
