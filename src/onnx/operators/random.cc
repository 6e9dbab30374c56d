// Random numbers, drawn by the host in every run.
#include <algorithm>
#include <cmath>

#include "onnx/host/host_numbers.h"
#include "onnx/host/random.h"
#include "onnx/lower/compose.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

Status CheckCount(const Shape& shape, size_t* count) {
  const std::optional<int64_t> given = ElementCount(shape);
  if (!given) return InvalidArgument("shape ", ShapeToString(shape), " is none");
  if (*given > host::kMostHostNumbers) return Unsupported(*given, " random numbers on the host");
  *count = static_cast<size_t>(*given);
  return {};
}

Status Finish(HostCall& call, ElementType type, const Shape& shape, const std::vector<double>& values) {
  call.outputs[0] = FromDoubles(type, shape, values);
  return call.outputs[0].type == ElementType::kUndefined ? Unsupported("of ", Name(type)) : Status();
}

// RandomUniform, RandomNormal, and those that take shape and type from an input.
Status Random(HostCall& call) {
  const bool like = call.Has(0), normal = call.proto().type.starts_with("RandomNormal");
  const Shape shape = like ? call.In(0).shape : call.Ints("shape");
  const ElementType otherwise = like && IsFloat(call.In(0).type) ? call.In(0).type : ElementType::kFloat;
  size_t count = 0;
  ANYDML_RETURN_IF_ERROR(CheckCount(shape, &count));
  const double low = normal ? call.Float("mean", 0) : call.Float("low", 0),
               range = normal ? call.Float("scale", 1) : call.Float("high", 1) - low;
  RandomNumbers numbers(call);
  std::vector<double> values(count);
  for (double& value : values) value = low + range * (normal ? numbers.Normal() : numbers.Uniform());
  return Finish(call, static_cast<ElementType>(call.Int("dtype", static_cast<int64_t>(otherwise))), shape,
                values);
}

// 1 with the probability that the input says.
Status Bernoulli(HostCall& call) {
  const Tensor& x = call.In(0);
  size_t count = 0;
  ANYDML_RETURN_IF_ERROR(CheckCount(x.shape, &count));
  std::vector<double> values = ToDoubles(x);
  if (values.size() != count) return Unsupported("of ", Name(x.type));
  RandomNumbers numbers(call);
  for (double& value : values) value = numbers.Uniform() < value ? 1 : 0;
  return Finish(call, static_cast<ElementType>(call.Int("dtype", static_cast<int64_t>(x.type))), x.shape,
                values);
}

// Classes drawn by unnormalised logarithms of probabilities {batch, classes}.
Status Multinomial(HostCall& call) {
  const Tensor& x = call.In(0);
  const int64_t samples = call.Int("sample_size", 1);
  if (x.shape.size() != 2 || x.shape[1] < 1 || samples < 0 || !IsFloat(x.type))
    return InvalidArgument("input ", ShapeToString(x.shape), " and sample_size ", samples);
  const Shape shape = {x.shape[0], samples};
  size_t count = 0;
  ANYDML_RETURN_IF_ERROR(CheckCount(shape, &count));
  ANYDML_RETURN_IF_ERROR(CheckCount(x.shape, &count));
  const std::vector<double> logits = ToDoubles(x);
  const auto classes = static_cast<size_t>(x.shape[1]);
  RandomNumbers numbers(call);
  std::vector<double> values, sums(classes);
  for (size_t row = 0; row < static_cast<size_t>(x.shape[0]); ++row) {
    const double* const at = logits.data() + row * classes;
    const double most = *std::max_element(at, at + classes);
    double sum = 0;
    for (size_t i = 0; i < classes; ++i) sums[i] = sum += std::exp(at[i] - most);
    for (int64_t i = 0; i < samples; ++i) {
      const auto found = std::upper_bound(sums.begin(), sums.end(), numbers.Uniform() * sum);
      values.push_back(static_cast<double>(std::min<ptrdiff_t>(found - sums.begin(), x.shape[1] - 1)));
    }
  }
  return Finish(call, static_cast<ElementType>(call.Int("dtype", static_cast<int64_t>(ElementType::kInt32))),
                shape, values);
}

// data, ratio, training_mode. The mask is a constant of the compiled model, since it follows from the seed.
Status Dropout(Lowering& n) {
  const std::vector<int64_t> training = n.HostInts(2);
  const std::vector<double> given = n.HostDoubles(1);
  const bool drops = training.size() == 1 && training[0] != 0;
  const double ratio = !n.Has(1) ? 0.5 : given.size() == 1 ? given[0] : -1;
  if (drops && !(ratio >= 0 && ratio < 1)) return InvalidArgument("ratio is no number from 0 to 1");
  if (!drops || ratio == 0) {
    n.Forward(0, 0, n.shape(0));
    if (!n.Wants(1)) return {};
    View mask;
    const ElementType type = n.version() < 10 ? n.type(0) : ElementType::kBool;  // originally the data's own
    ANYDML_RETURN_IF_ERROR(Fill(n, DmlType(type), n.shape(0), 1, &mask));
    n.Return(1, mask, type, n.shape(0));
    return {};
  }
  size_t count = 0;
  ANYDML_RETURN_IF_ERROR(CheckCount(n.shape(0), &count));
  RandomNumbers numbers(n);
  std::vector<int64_t> kept(count);
  for (int64_t& keep : kept) keep = numbers.Uniform() >= ratio ? 1 : 0;
  const Tensor mask = FromInts(ElementType::kBool, n.shape(0), kept);
  View factor, y;
  ANYDML_RETURN_IF_ERROR(Cast(n, n.Constant(mask), n.dml_type(0), &factor));
  ANYDML_RETURN_IF_ERROR(
      Unary(n, DML_OPERATOR_ELEMENT_WISE_IDENTITY, factor, &factor, static_cast<float>(1 / (1 - ratio))));
  ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, n.In(0), factor, &y));
  n.Return(0, y, n.type(0), n.shape(0));
  n.Return(1, mask);
  return {};
}

constexpr OperatorRow RandomRow(const char* name, uint8_t inputs, Status (*evaluate)(HostCall&)) {
  return {.domain = kOnnx,
          .name = name,
          .min_inputs = inputs,
          .max_inputs = inputs,
          .lower = OnHost,
          .evaluate = evaluate,
          .on_host = true,
          .random = true};
}

constexpr OperatorRow kRows[] = {
    RandomRow("RandomUniform", 0, Random),
    RandomRow("RandomNormal", 0, Random),
    RandomRow("RandomUniformLike", 1, Random),
    RandomRow("RandomNormalLike", 1, Random),
    RandomRow("Bernoulli", 1, Bernoulli),
    RandomRow("Multinomial", 1, Multinomial),
    {kOnnx, "Dropout", 1, 3, 0b110, Dropout, nullptr},
};

}  // namespace

std::span<const OperatorRow> RandomOperators() { return kRows; }

}  // namespace anydml::onnx
