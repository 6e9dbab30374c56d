// Arithmetic on the host: integers of 64 bits that are wrapped at the end, floating-point numbers as double
// that are rounded once, which is what a single operation in their own type gives.
#include <algorithm>
#include <cmath>
#include <functional>

#include "onnx/host.h"

namespace anydml::onnx::host {
namespace {

// Positions of a broadcast input for every element of `shape`.
std::vector<size_t> Positions(const onnx::Shape& input, const onnx::Shape& shape) {
  std::vector<size_t> positions(static_cast<size_t>(ElementCount(shape).value_or(0)));
  std::vector<int64_t> at(shape.size(), 0);
  const size_t ahead = shape.size() - input.size();
  for (size_t& position : positions) {
    size_t offset = 0;
    for (size_t i = 0; i < input.size(); ++i) {
      offset =
          offset * static_cast<size_t>(input[i]) + static_cast<size_t>(input[i] == 1 ? 0 : at[ahead + i]);
    }
    position = offset;
    for (size_t i = shape.size(); i-- > 0 && ++at[i] == shape[i];) at[i] = 0;
  }
  return positions;
}

Status ResultShape(const HostCall& call, onnx::Shape* shape) {
  *shape = call.In(0).shape;
  for (size_t i = 1; i < call.inputs(); ++i)
    ANYDML_RETURN_IF_ERROR(BroadcastShape(*shape, call.In(i).shape, shape));
  const std::optional<int64_t> count = ElementCount(*shape);
  return count && *count <= kMaxHostElements ? Status() : Unsupported("a large result on the host");
}

bool IsNumber(ElementType type) { return DmlType(type) != DataType::kUnknown && BitsOf(type) >= 8; }

// Wraps; a division by zero is 0, where DirectML says nothing either.
int64_t Integer(const std::string& type, int64_t a, int64_t b, bool truncate, bool is_unsigned) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  if (type == "Add") return static_cast<int64_t>(x + y);
  if (type == "Sub") return static_cast<int64_t>(x - y);
  if (type == "Mul") return static_cast<int64_t>(x * y);
  if (type == "Min") return is_unsigned ? static_cast<int64_t>(std::min(x, y)) : std::min(a, b);
  if (type == "Max") return is_unsigned ? static_cast<int64_t>(std::max(x, y)) : std::max(a, b);
  if (type == "And") return a != 0 && b != 0;
  if (type == "Or") return a != 0 || b != 0;
  if (type == "Xor") return (a != 0) != (b != 0);
  if (type == "Pow") return static_cast<int64_t>(std::pow(static_cast<double>(a), static_cast<double>(b)));
  if (b == 0) return 0;
  if (is_unsigned) return static_cast<int64_t>(type == "Div" ? x / y : x % y);
  if (b == -1) return type == "Div" ? static_cast<int64_t>(-x) : 0;
  if (type == "Div") return a / b;
  const int64_t rest = a % b;
  return truncate || rest == 0 || (rest < 0) == (b < 0) ? rest : rest + b;
}

double Number(const std::string& type, double a, double b) {
  if (type == "Add") return a + b;
  if (type == "Sub") return a - b;
  if (type == "Mul") return a * b;
  if (type == "Div") return a / b;
  if (type == "Pow") return std::pow(a, b);
  if (type == "Min") return std::isnan(a) || a < b ? a : b;
  if (type == "Max") return std::isnan(a) || a > b ? a : b;
  return std::fmod(a, b);
}

Status CheckNumbers(const HostCall& call) {
  for (size_t i = 0; i < call.inputs(); ++i) {
    if (!call.Has(i) || !IsNumber(call.In(i).type)) return Unsupported("this type on the host");
  }
  return {};
}

}  // namespace

Status Binary(HostCall& call) {
  ANYDML_RETURN_IF_ERROR(CheckNumbers(call));
  onnx::Shape shape;
  ANYDML_RETURN_IF_ERROR(ResultShape(call, &shape));
  const std::string& type = call.proto().type;
  const ElementType element = call.In(0).type;
  const bool is_unsigned = element == ElementType::kUInt64;
  const bool truncate = call.Int("fmod", 0) != 0;
  if (type == "Pow" && !IsFloat(element)) return Unsupported("powers of integers on the host");
  if (IsFloat(element)) {
    std::vector<double> result;
    for (size_t i = 0; i < call.inputs(); ++i) {
      const std::vector<double> values = ToDoubles(call.In(i));
      const std::vector<size_t> positions = Positions(call.In(i).shape, shape);
      if (i == 0) result.resize(positions.size());
      for (size_t j = 0; j < positions.size(); ++j) {
        result[j] = i == 0 ? values[positions[j]] : Number(type, result[j], values[positions[j]]);
      }
    }
    call.outputs[0] = FromDoubles(element, shape, result);
    return {};
  }
  std::vector<int64_t> result;
  for (size_t i = 0; i < call.inputs(); ++i) {
    const std::vector<int64_t> values = ToInts(call.In(i));
    const std::vector<size_t> positions = Positions(call.In(i).shape, shape);
    if (i == 0) result.resize(positions.size());
    for (size_t j = 0; j < positions.size(); ++j) {
      result[j] = i == 0 ? values[positions[j]]
                         : Integer(type, result[j], values[positions[j]], truncate, is_unsigned);
    }
  }
  call.outputs[0] = FromInts(element, shape, result);
  return {};
}

Status Compare(HostCall& call) {
  ANYDML_RETURN_IF_ERROR(CheckNumbers(call));
  onnx::Shape shape;
  ANYDML_RETURN_IF_ERROR(ResultShape(call, &shape));
  const std::string& type = call.proto().type;
  const std::vector<size_t> left = Positions(call.In(0).shape, shape),
                            right = Positions(call.In(1).shape, shape);
  std::vector<int64_t> result(left.size());
  const auto compare = [&](const auto& a, const auto& b) {
    for (size_t i = 0; i < left.size(); ++i) {
      const auto x = a[left[i]];
      const auto y = b[right[i]];
      result[i] = type == "Equal"         ? x == y
                  : type == "Less"        ? x < y
                  : type == "Greater"     ? x > y
                  : type == "LessOrEqual" ? x <= y
                                          : x >= y;
    }
  };
  // UINT64 above INT64_MAX would compare wrong; nothing counts that far.
  IsFloat(call.In(0).type) ? compare(ToDoubles(call.In(0)), ToDoubles(call.In(1)))
                           : compare(ToInts(call.In(0)), ToInts(call.In(1)));
  call.outputs[0] = FromInts(ElementType::kBool, shape, result);
  return {};
}

Status Unary(HostCall& call) {
  ANYDML_RETURN_IF_ERROR(CheckNumbers(call));
  const std::string& type = call.proto().type;
  const Tensor& x = call.In(0);
  if (!IsFloat(x.type)) {
    std::vector<int64_t> values = ToInts(x);
    for (int64_t& value : values) {
      if (type == "Neg") value = static_cast<int64_t>(-static_cast<uint64_t>(value));
      if (type == "Abs" && value < 0 && x.type != ElementType::kUInt64)
        value = static_cast<int64_t>(-static_cast<uint64_t>(value));
      if (type == "Not") value = value == 0;
      if (type == "Sign") value = value > 0 ? 1 : value < 0 ? -1 : 0;
    }
    call.outputs[0] = FromInts(x.type, x.shape, values);
    return {};
  }
  std::vector<double> values = ToDoubles(x);
  for (double& value : values) {
    if (type == "Neg")
      value = -value;
    else if (type == "Abs")
      value = std::abs(value);
    else if (type == "Sqrt")
      value = std::sqrt(value);
    else if (type == "Floor")
      value = std::floor(value);
    else if (type == "Ceil")
      value = std::ceil(value);
    else if (type == "Round")
      value = std::nearbyint(value);
    else if (type == "Exp")
      value = std::exp(value);
    else if (type == "Log")
      value = std::log(value);
    else if (type == "Reciprocal")
      value = 1 / value;
    else if (type == "Sign")
      value = value > 0 ? 1 : value < 0 ? -1 : value;
    else
      return Unsupported("on the host");
  }
  call.outputs[0] = FromDoubles(x.type, x.shape, values);
  return {};
}

Status Cast(HostCall& call) {
  ANYDML_RETURN_IF_ERROR(CheckNumbers(call));
  const auto target = static_cast<ElementType>(call.Int("to", 0));
  if (!IsNumber(target)) return Unsupported("to ", Name(target));
  const Tensor& x = call.In(0);
  const bool as_numbers = IsFloat(x.type) || (IsFloat(target) && x.type == ElementType::kUInt64);
  call.outputs[0] =
      as_numbers ? FromDoubles(target, x.shape, ToDoubles(x)) : FromInts(target, x.shape, ToInts(x));
  return {};
}

Status Reduce(HostCall& call) {
  ANYDML_RETURN_IF_ERROR(CheckNumbers(call));
  const Tensor& x = call.In(0);
  if (IsFloat(x.type))
    return Unsupported("on the host");  // the device's order of additions is the one that counts
  const std::string& type = call.proto().type;
  const bool as_input = call.version() >= (type == "ReduceSum" ? 13 : 18);
  const std::vector<int64_t> given = !as_input     ? call.Ints("axes")
                                     : call.Has(1) ? ToInts(call.In(1))
                                                   : std::vector<int64_t>();
  if (given.empty() && call.Int("noop_with_empty_axes", 0) != 0) {
    call.outputs[0] = x;
    return {};
  }
  std::vector<uint32_t> axes;
  ANYDML_RETURN_IF_ERROR(ResolveAxes(given, x.shape.size(), &axes));
  onnx::Shape reduced = x.shape, result_shape;
  for (uint32_t i = 0; i < x.shape.size(); ++i) {
    const bool named = given.empty() || std::binary_search(axes.begin(), axes.end(), i);
    if (named) reduced[i] = 1;
    if (!named || call.Int("keepdims", 1) != 0) result_shape.push_back(reduced[i]);
  }
  const std::vector<int64_t> values = ToInts(x);
  const std::vector<size_t> targets = Positions(reduced, x.shape);
  if (values.empty()) return Unsupported("of no elements");
  std::vector<int64_t> result(static_cast<size_t>(*ElementCount(reduced)));
  std::vector<bool> started(result.size(), false);
  const std::string step = type == "ReduceSum"    ? "Add"
                           : type == "ReduceProd" ? "Mul"
                           : type == "ReduceMax"  ? "Max"
                                                  : "Min";
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t& sum = result[targets[i]];
    sum = started[targets[i]] ? Integer(step, sum, values[i], false, x.type == ElementType::kUInt64)
                              : values[i];
    started[targets[i]] = true;
  }
  call.outputs[0] = FromInts(x.type, result_shape, result);
  return {};
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
  const bool exclusive = call.Int("exclusive", 0) != 0, reverse = call.Int("reverse", 0) != 0;
  for (size_t line = 0; line < values.size() / std::max<size_t>(1, size); ++line) {
    const size_t first = line / inner * size * inner + line % inner;
    double sum = 0;
    for (size_t i = 0; i < size; ++i) {
      const size_t at = first + (reverse ? size - 1 - i : i) * inner;
      sums[at] = exclusive ? sum : sum + values[at];
      sum += values[at];
    }
  }
  call.outputs[0] = FromDoubles(x.type, x.shape, sums);
  return {};
}

Status Range(HostCall& call) {
  ANYDML_RETURN_IF_ERROR(CheckNumbers(call));
  for (size_t i = 0; i < 3; ++i) {
    if (call.In(i).count() != 1) return InvalidArgument("start, limit and delta are scalars");
  }
  const ElementType type = call.In(0).type;
  const double start = ToDoubles(call.In(0))[0], limit = ToDoubles(call.In(1))[0],
               delta = ToDoubles(call.In(2))[0];
  const double count = std::ceil((limit - start) / delta);
  if (delta == 0 || !(count <= static_cast<double>(kMaxHostElements)))
    return Unsupported("a long range on the host");
  std::vector<double> values;
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i)
    values.push_back(start + static_cast<double>(i) * delta);
  call.outputs[0] = FromDoubles(type, {static_cast<int64_t>(values.size())}, values);
  return {};
}

}  // namespace anydml::onnx::host
