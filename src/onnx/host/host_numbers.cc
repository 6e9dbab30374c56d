// Arithmetic on the host: 64-bit integers, wrapped at the end; floating-point numbers as double, rounded
// once, which is what a single operation in their own type gives.
#include <algorithm>
#include <cmath>
#include <functional>

#include "onnx/host/host_numbers.h"

namespace anydml::onnx::host {

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

bool IsNumber(ElementType type) {
  return (DmlType(type) != DataType::kUnknown || type == ElementType::kBFloat16) && BitsOf(type) >= 8;
}

Status CheckNumbers(const HostCall& call) {
  for (size_t i = 0; i < call.inputs(); ++i) {
    if (!call.Has(i) || !IsNumber(call.In(i).type)) return Unsupported("this type on the host");
  }
  return {};
}

namespace {

Status CheckTypes(const HostCall& call) {
  for (size_t i = 1; i < call.inputs(); ++i) {
    if (call.In(i).type != call.In(0).type)
      return InvalidArgument(Name(call.In(0).type), " and ", Name(call.In(i).type));
  }
  return {};
}

// The inputs' shapes, modified as old versions' attributes require, and the result's.
Status BroadcastShapes(const HostCall& call, std::vector<onnx::Shape>* given, onnx::Shape* shape) {
  int64_t elements = 0;
  for (size_t i = 0; i < call.inputs(); ++i) {
    given->push_back(call.In(i).shape);
    if (i == 1) ANYDML_RETURN_IF_ERROR(AlignOldBroadcast(call, call.In(0).shape, &given->back()));
    elements += call.In(i).count();
  }
  *shape = given->front();
  for (const onnx::Shape& other : *given) ANYDML_RETURN_IF_ERROR(BroadcastShape(*shape, other, shape));
  // Results much larger than their operands are left to the device.
  const int64_t limit = std::clamp(elements, kMaxHostElements, kMostHostNumbers);
  const std::optional<int64_t> count = ElementCount(*shape);
  return count && *count <= limit ? Status() : Unsupported("a large result on the host");
}

// Wraps; a division by zero gives 0, since DirectML does not define it either.
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

// Wraps; 0 for results between -1 and 1.
int64_t Power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (auto rest = static_cast<uint64_t>(exponent); rest != 0; rest >>= 1) {
    if ((rest & 1) != 0) result *= factor;
    factor *= factor;
  }
  return static_cast<int64_t>(result);
}

Status PowersOfIntegers(HostCall& call, const std::vector<onnx::Shape>& given, const onnx::Shape& shape) {
  const Tensor &base = call.In(0), &exponent = call.In(1);
  const std::vector<size_t> left = Positions(given[0], shape), right = Positions(given[1], shape);
  if (IsFloat(exponent.type)) {
    const std::vector<double> a = ToDoubles(base), b = ToDoubles(exponent);
    std::vector<double> result(left.size());
    for (size_t i = 0; i < left.size(); ++i) result[i] = std::pow(a[left[i]], b[right[i]]);
    call.outputs[0] = FromDoubles(base.type, shape, result);
    return {};
  }
  const std::vector<int64_t> a = ToInts(base), b = ToInts(exponent);
  std::vector<int64_t> result(left.size());
  for (size_t i = 0; i < left.size(); ++i) result[i] = Power(a[left[i]], b[right[i]]);
  call.outputs[0] = FromInts(base.type, shape, result);
  return {};
}

// 0 if delta, which is not 0, leads away from the limit.
uint64_t CountOf(int64_t start, int64_t limit, int64_t delta) {
  if (delta > 0 ? limit <= start : limit >= start) return 0;
  const uint64_t distance = delta > 0 ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                                      : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
  const uint64_t step = delta > 0 ? static_cast<uint64_t>(delta) : -static_cast<uint64_t>(delta);
  return (distance - 1) / step + 1;
}

Status RangeOfIntegers(HostCall& call) {
  const int64_t start = ToInts(call.In(0))[0], limit = ToInts(call.In(1))[0], delta = ToInts(call.In(2))[0];
  if (delta == 0) return InvalidArgument("delta is 0");
  const uint64_t count = CountOf(start, limit, delta);
  if (count > static_cast<uint64_t>(kMaxHostElements)) return Unsupported("a long range on the host");
  std::vector<int64_t> values;
  for (uint64_t i = 0; i < count; ++i)
    values.push_back(static_cast<int64_t>(static_cast<uint64_t>(start) + i * static_cast<uint64_t>(delta)));
  call.outputs[0] = FromInts(call.In(0).type, {static_cast<int64_t>(count)}, values);
  return {};
}

using Function = double (*)(double);

struct NamedFunction {
  std::string_view name;
  Function function;
};

constexpr NamedFunction kFunctions[] = {
    {"Neg", [](double x) { return -x; }},
    {"Abs", [](double x) { return std::abs(x); }},
    {"Sqrt", [](double x) { return std::sqrt(x); }},
    {"Floor", [](double x) { return std::floor(x); }},
    {"Ceil", [](double x) { return std::ceil(x); }},
    {"Round", [](double x) { return std::nearbyint(x); }},
    {"Exp", [](double x) { return std::exp(x); }},
    {"Log", [](double x) { return std::log(x); }},
    {"Reciprocal", [](double x) { return 1 / x; }},
    {"Sign", [](double x) { return x > 0   ? 1
                                   : x < 0 ? -1
                                           : x; }},
};

constexpr NamedFunction kFunctionsOfDoubles[] = {
    {"Sin", [](double x) { return std::sin(x); }},
    {"Cos", [](double x) { return std::cos(x); }},
    {"Tan", [](double x) { return std::tan(x); }},
    {"Tanh", [](double x) { return std::tanh(x); }},
    {"Erf", [](double x) { return std::erf(x); }},
    {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"Relu", [](double x) { return x < 0 ? 0 : x; }},
    {"IsNaN", [](double x) { return std::isnan(x) ? 1.0 : 0.0; }},
};

// Null if there is no such name.
Function FunctionOf(std::span<const NamedFunction> functions, std::string_view name) {
  const auto found = std::ranges::find(functions, name, &NamedFunction::name);
  return found == functions.end() ? nullptr : found->function;
}

}  // namespace

Status Binary(HostCall& call) {
  ANYDML_RETURN_IF_ERROR(CheckNumbers(call));
  std::vector<onnx::Shape> given;
  onnx::Shape shape;
  ANYDML_RETURN_IF_ERROR(BroadcastShapes(call, &given, &shape));
  const std::string& type = call.proto().type;
  const ElementType element = call.In(0).type;
  const bool is_unsigned = element == ElementType::kUInt64;
  const bool truncate = call.Int("fmod", 0) != 0;
  if (type == "Pow" && !IsFloat(element)) return PowersOfIntegers(call, given, shape);
  if (type != "Pow") ANYDML_RETURN_IF_ERROR(CheckTypes(call));
  if (IsFloat(element)) {
    std::vector<double> result;
    for (size_t i = 0; i < call.inputs(); ++i) {
      const std::vector<double> values = ToDoubles(call.In(i));
      const std::vector<size_t> positions = Positions(given[i], shape);
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
    const std::vector<size_t> positions = Positions(given[i], shape);
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
  ANYDML_RETURN_IF_ERROR(CheckTypes(call));
  std::vector<onnx::Shape> given;
  onnx::Shape shape;
  ANYDML_RETURN_IF_ERROR(BroadcastShapes(call, &given, &shape));
  const std::string& type = call.proto().type;
  const std::vector<size_t> left = Positions(given[0], shape), right = Positions(given[1], shape);
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
  // UINT64 above INT64_MAX would compare wrongly, but counts are never that large.
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
  const Function function = FunctionOf(kFunctions, type);
  if (function == nullptr) return Unsupported("on the host");
  std::vector<double> values = ToDoubles(x);
  for (double& value : values) value = function(value);
  call.outputs[0] = FromDoubles(x.type, x.shape, values);
  return {};
}

Status OfDoubles(HostCall& call) {
  const std::string& type = call.proto().type;
  const Tensor& x = call.In(0);
  // For types that the device has, its own results are authoritative.
  if (x.type != ElementType::kDouble || x.count() > kMostHostNumbers)
    return Unsupported("this type or size on the host");
  std::vector<double> values = ToDoubles(x);
  if (type == "IsInf") {
    const bool positive = call.Int("detect_positive", 1) != 0, negative = call.Int("detect_negative", 1) != 0;
    for (double& value : values) value = std::isinf(value) && (value > 0 ? positive : negative);
  } else {
    const Function function = FunctionOf(kFunctionsOfDoubles, type);
    if (function == nullptr) return Unsupported("on the host");
    for (double& value : values) value = function(value);
  }
  call.outputs[0] = FromDoubles(type.starts_with("Is") ? ElementType::kBool : x.type, x.shape, values);
  return {};
}

Status Cast(HostCall& call) {
  const auto known = [](ElementType type) { return IsNumber(type) || BitsOf(type) == 4; };
  ElementType target{};
  if (call.proto().type == "CastLike") {
    target = call.In(1).type;
  } else {
    ANYDML_RETURN_IF_ERROR(CastTarget(call, &target));
  }
  const Tensor& x = call.In(0);
  if (!known(x.type)) return Unsupported("of ", Name(x.type));
  if (!known(target)) return Unsupported("to ", Name(target));
  const bool as_numbers = IsFloat(x.type) || (IsFloat(target) && x.type == ElementType::kUInt64);
  call.outputs[0] =
      as_numbers ? FromDoubles(target, x.shape, ToDoubles(x)) : FromInts(target, x.shape, ToInts(x));
  return {};
}

Status Range(HostCall& call) {
  ANYDML_RETURN_IF_ERROR(CheckNumbers(call));
  for (size_t i = 0; i < 3; ++i) {
    if (call.In(i).count() != 1) return InvalidArgument("start, limit and delta are scalars");
  }
  ANYDML_RETURN_IF_ERROR(CheckTypes(call));
  const ElementType type = call.In(0).type;
  if (!IsFloat(type)) return RangeOfIntegers(call);
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
