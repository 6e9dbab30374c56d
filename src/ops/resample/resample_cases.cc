#include <algorithm>
#include <cfloat>

#include "ops/element/element_cases.h"
#include "support/cases.h"

namespace anydml::testing {
namespace {

using Type = OperatorType;

constexpr Type kOperators[] = {Type::kUpsample2d, Type::kResample,     Type::kResample1,    Type::kResample2,
                               Type::kResample3,  Type::kResampleGrad, Type::kResampleGrad1};
constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat16, DataType::kInt8, DataType::kUInt8};

constexpr uint32_t kMaxRank = 4;

Case MakeUpsample(CaseMaker& make) {
  std::vector<uint32_t> sizes = make.Sizes(kMaxRank);
  sizes.insert(sizes.begin(), std::max<size_t>(4, sizes.size() + make.source().Between(0, 1)) - sizes.size(),
               1);
  const uint32_t width = make.source().Between(1, 4), height = make.source().Between(1, 4);
  std::vector<uint32_t> output = sizes;
  output[output.size() - 2] *= height;
  output[output.size() - 1] *= width;
  const DataType type = make.source().OneIn(2) ? DataType::kFloat16 : DataType::kFloat32;
  const TensorDesc input = make.Input(type, sizes);
  Case problem;
  problem.desc = MakeDesc("UPSAMPLE_2D", {{"InputTensor", input},
                                          {"OutputTensor", make.Output(type, output)},
                                          {"ScaleSize", Size2D{width, height}},
                                          {"InterpolationMode", make.source().Between(0, 1)}});
  problem.inputs = {ElementContent(input, make)};
  return problem;
}

// Sizes that the scales give, or any others.
struct Axes {
  std::vector<uint32_t> from, to;
  std::vector<float> scales, input_offsets, output_offsets;
};

float DrawScale(ByteSource& source) {
  constexpr float kScales[] = {2, 1, 1, 0.5f, 3, 4, 1.5f, 0.4f, 0.25f, 0.1f, 1.0f / 3, 0.7f, FLT_MAX, 1e-30f};
  return source.OneIn(4) ? static_cast<float>(source.Between(1, 1000)) / 256 : source.Any(kScales);
}

Axes DrawAxes(CaseMaker& make) {
  ByteSource& source = make.source();
  Axes axes;
  axes.from = make.Sizes(kMaxRank);
  uint64_t count = 1;
  for (const uint32_t size : axes.from) count *= size;
  for (const uint32_t size : axes.from) {
    const float scale = DrawScale(source);
    const double wanted = source.OneIn(4) ? source.Between(1, 9) : static_cast<double>(size) * scale;
    // Outputs are not much larger than inputs can be.
    const uint64_t most = std::max<uint64_t>(1, uint64_t{4} * kMaxElements * size / count);
    const auto to = static_cast<uint32_t>(std::clamp(wanted, 1.0, static_cast<double>(most)));
    count = count / size * to;
    axes.to.push_back(to);
    axes.scales.push_back(scale);
    constexpr float kOffsets[][2] = {{0.5f, -0.5f}, {0, 0},     {0, -0.5f},
                                     {1, -0.5f},    {-0.5f, 0}, {0.25f, 0.75f}};
    const auto& offsets = kOffsets[source.Between(0, 5)];
    axes.input_offsets.push_back(offsets[0]);
    axes.output_offsets.push_back(offsets[1]);
  }
  return axes;
}

void Set(OperatorDesc* desc, const char* name, FieldValue value) {
  const int field = FindField(*desc->schema, name);
  if (field >= 0) desc->fields[static_cast<size_t>(field)] = std::move(value);
}

Case MakeResample(Type type, CaseMaker& make) {
  if (type == Type::kUpsample2d) return MakeUpsample(make);
  const bool gradient = type == Type::kResampleGrad || type == Type::kResampleGrad1;
  const Axes axes = DrawAxes(make);
  const DataType element = gradient ? kTypes[make.source().Between(0, 1)] : make.source().Any(kTypes);
  const TensorDesc input = make.Input(element, gradient ? axes.to : axes.from);
  const TensorDesc output = make.Output(element, gradient ? axes.from : axes.to);
  Case problem;
  OperatorDesc& desc = problem.desc;
  desc.schema = FindOperator(type);
  desc.fields.resize(desc.schema->fields.size());
  Set(&desc, gradient ? "InputGradientTensor" : "InputTensor", input);
  Set(&desc, gradient ? "OutputGradientTensor" : "OutputTensor", output);
  Set(&desc, "InterpolationMode", make.source().Between(0, 2) == 0 ? 0u : 1u);
  Set(&desc, "RoundingDirection", make.source().Between(0, 1));
  Set(&desc, "ScaleCount", static_cast<uint32_t>(axes.scales.size()));
  Set(&desc, "DimensionCount", static_cast<uint32_t>(axes.scales.size()));
  Set(&desc, "Scales", axes.scales);
  Set(&desc, "InputPixelOffsets", axes.input_offsets);
  Set(&desc, "OutputPixelOffsets", axes.output_offsets);
  Set(&desc, "Antialiased", make.source().Between(0, 1));
  problem.inputs = {ElementContent(input, make)};
  return problem;
}

}  // namespace

CaseFamily family::resample::Cases() { return {"resample", kOperators, MakeResample}; }

}  // namespace anydml::testing
