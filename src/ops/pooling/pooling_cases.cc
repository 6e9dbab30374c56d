#include <bit>

#include "ops/element/element_cases.h"
#include "ops/pooling/problem.h"
#include "support/cases.h"

namespace anydml::testing {
namespace {

using Type = OperatorType;
using Numbers = std::vector<uint32_t>;

constexpr DataType kFloats[] = {DataType::kFloat32, DataType::kFloat16};
constexpr DataType kNumbers[] = {DataType::kFloat32, DataType::kFloat16, DataType::kFloat32,
                                 DataType::kFloat16, DataType::kInt8,    DataType::kUInt8,
                                 DataType::kInt16,   DataType::kUInt16,  DataType::kInt32,
                                 DataType::kUInt32,  DataType::kInt64,   DataType::kUInt64};
constexpr DataType kBytes[] = {DataType::kInt8, DataType::kUInt8};
constexpr DataType kIndices[] = {DataType::kUInt32, DataType::kUInt64};

// The sizes of both tensors and the windows between them.
struct Windows {
  Numbers input, output;
  Numbers strides, sizes, start, end, dilations;
  bool packed = false;         // the tensors are packed
  bool channels_last = false;  // the tensors are channels-last
};

// A dimension of the input and windows over it: most of them inside, some larger than it, some extending
// beyond it.
void DrawAxis(CaseMaker& make, bool dilated, uint32_t longest, Windows* w) {
  ByteSource& source = make.source();
  const uint32_t input = source.OneIn(12) ? source.Between(1, longest) : source.Between(1, 12);
  const bool global = source.OneIn(8);
  const uint32_t size = global ? input : source.Between(1, 4);
  const uint32_t dilation = dilated && source.OneIn(3) ? source.Between(1, 3) : 1;
  const uint32_t stride = source.Between(1, 3);
  const uint32_t extent = (size - 1) * dilation + 1;
  uint32_t start = global || source.OneIn(2) ? 0 : source.Between(0, 2);
  const uint32_t end = global || source.OneIn(2) ? 0 : source.Between(0, 3);
  if (extent >= input + start + end + stride) start += extent - input - start - end;
  const uint32_t padded = input + start + end;
  const uint32_t within = padded < extent ? 1 : (padded - extent) / stride + 1;
  const uint32_t rounded_up = padded < extent ? 1 : (padded - extent + stride - 1) / stride + 1;
  const uint32_t most = std::max((padded - 1) / stride + 1, rounded_up);
  w->input.push_back(input);
  w->output.push_back(source.OneIn(3) ? source.Between(1, most) : within);
  w->strides.push_back(stride);
  w->sizes.push_back(size);
  w->start.push_back(start);
  w->end.push_back(end);
  w->dilations.push_back(dilation);
}

// Typical of models: whole planes, or small windows that are the same in both dimensions.
Windows DrawUsual(CaseMaker& make) {
  ByteSource& source = make.source();
  constexpr uint32_t kWindows[][3] = {{3, 2, 1}, {3, 2, 0}, {3, 1, 1}, {2, 2, 0}};  // size, stride, padding
  const bool whole = source.OneIn(3);
  const auto window = kWindows[source.Between(0, 3)];
  Windows w;
  w.packed = true;
  w.input = {source.Between(1, 3), source.Between(1, 5), source.Between(3, 12),
             whole ? source.Between(1, 70) : 8 * source.Between(1, 4)};
  w.output = {w.input[0], w.input[1]};
  w.dilations = {1, 1};
  for (uint32_t d = 2; d < 4; ++d) {
    const uint32_t size = whole ? w.input[d] : window[0], stride = whole ? 1 : window[1];
    w.sizes.push_back(size);
    w.strides.push_back(stride);
    w.start.push_back(whole ? 0 : window[2]);
    w.end.push_back(whole ? 0 : source.Between(0, 3));
    const uint32_t padded = w.input[d] + w.start.back() + w.end.back();
    w.output.push_back(source.OneIn(4) && !whole ? (padded - 1) / stride + 1 : (padded - size) / stride + 1);
  }
  return w;
}

Windows DrawAny(CaseMaker& make, bool dilated, uint32_t longest) {
  Windows w;
  const uint32_t rank = make.source().OneIn(3) ? 3 : 2;
  // Many channels if they are contiguous.
  w.channels_last = make.source().OneIn(5);
  const uint32_t channels = w.channels_last ? make.source().Between(4, 72) : make.source().Between(1, 5);
  w.input = w.output = {make.source().Between(1, 3), channels};
  for (uint32_t i = 0; i < rank; ++i) DrawAxis(make, dilated, i + 1 == rank ? longest : 20, &w);
  return w;
}

Windows DrawWindows(CaseMaker& make, bool dilated, uint32_t longest) {
  Windows w = make.source().OneIn(4) ? DrawUsual(make) : DrawAny(make, dilated, longest);
  uint64_t elements = 1;
  for (const uint32_t size : w.input) elements *= size;
  w.input[1] *= make.FactorFor(elements);
  w.output[1] = w.input[1];
  return w;
}

// Also channels-last, as clients use it.
TensorDesc DrawTensor(CaseMaker& make, DataType type, const Windows& w, bool is_input, bool is_pooled) {
  const Numbers& sizes = is_pooled ? w.output : w.input;
  if (w.packed && !make.source().OneIn(4)) return Packed(type, sizes);
  if (w.channels_last ? make.source().OneIn(6) : !make.source().OneIn(6)) {
    return is_input ? make.Input(type, sizes) : make.Output(type, sizes);
  }
  Numbers strides(sizes.size());
  strides[1] = 1;
  uint32_t stride = sizes[1];
  for (size_t d = sizes.size(); d-- > 2;) {
    strides[d] = stride;
    stride *= sizes[d];
  }
  strides[0] = stride;
  return Strided(type, sizes, strides);
}

void SetWindows(OperatorDesc* desc, const Windows& w) {
  const auto set = [&](const char* name, const FieldValue& value) {
    const int field = FindField(*desc->schema, name);
    if (field >= 0) desc->fields[static_cast<size_t>(field)] = value;
  };
  set("DimensionCount", static_cast<uint32_t>(w.sizes.size()));
  set("Strides", w.strides);
  set("WindowSize", w.sizes);
  set("StartPadding", w.start);
  set("EndPadding", w.end);
  set("Dilations", w.dilations);
}

bool IsOneOf(OperatorType type, std::initializer_list<OperatorType> list) {
  return std::find(list.begin(), list.end(), type) != list.end();
}

Case MakeQuantized(CaseMaker& make) {
  ByteSource& source = make.source();
  const Windows w = DrawWindows(make, true, 60);
  const DataType in = source.Any(kBytes), out = source.Any(kBytes);
  const TensorDesc input = DrawTensor(make, in, w, true, false);
  const auto parameter = [&](DataType type) {
    const Numbers per_channel = {1, w.input[1], 1, 1}, one(source.Between(1, 5), 1);
    return make.Input(type, source.OneIn(2) ? per_channel : one);
  };
  const TensorDesc scale = parameter(DataType::kFloat32), out_scale = parameter(DataType::kFloat32);
  const TensorDesc zero = parameter(in), out_zero = parameter(out);
  const bool has_zero = source.OneIn(2), has_out_zero = source.OneIn(2);
  Case problem;
  problem.desc = MakeDesc("QUANTIZED_LINEAR_AVERAGE_POOLING",
                          {{"InputTensor", input},
                           {"InputScaleTensor", scale},
                           {"InputZeroPointTensor", has_zero ? FieldValue(zero) : FieldValue()},
                           {"OutputScaleTensor", out_scale},
                           {"OutputZeroPointTensor", has_out_zero ? FieldValue(out_zero) : FieldValue()},
                           {"OutputTensor", DrawTensor(make, out, w, false, true)},
                           {"IncludePadding", source.Between(0, 1)}});
  SetWindows(&problem.desc, w);
  problem.inputs = {ElementContent(input, make), ElementContent(scale, make),
                    has_zero ? ElementContent(zero, make) : Bytes{}, ElementContent(out_scale, make),
                    has_out_zero ? ElementContent(out_zero, make) : Bytes{}};
  return problem;
}

Case MakeGrad(OperatorType type, CaseMaker& make) {
  const bool is_max = type == Type::kMaxPoolingGrad;
  const Windows w = DrawWindows(make, is_max, 30);
  const DataType element = make.source().Any(kFloats);
  const TensorDesc input = DrawTensor(make, element, w, true, false);
  const TensorDesc gradient = DrawTensor(make, element, w, true, true);
  const TensorDesc output = DrawTensor(make, element, w, false, false);
  Case problem;
  if (is_max) {
    problem.desc = MakeDesc(
        "MAX_POOLING_GRAD",
        {{"InputTensor", input}, {"InputGradientTensor", gradient}, {"OutputGradientTensor", output}});
    problem.inputs = {make.source().OneIn(2) ? make.Content(input) : ElementContent(input, make),
                      ElementContent(gradient, make)};
  } else {
    problem.desc = MakeDesc("AVERAGE_POOLING_GRAD", {{"InputGradientTensor", gradient},
                                                     {"OutputGradientTensor", output},
                                                     {"IncludePadding", make.source().Between(0, 1)}});
    problem.inputs = {ElementContent(gradient, make)};
  }
  SetWindows(&problem.desc, w);
  return problem;
}

Case MakeUnpooling(CaseMaker& make) {
  ByteSource& source = make.source();
  Numbers sizes = make.Sizes(4), output_sizes;
  while (sizes.size() < 4) sizes.insert(sizes.begin(), 1);
  uint32_t elements = 1;
  for (int d = 0; d < 4; ++d) {
    output_sizes.push_back(source.Between(1, 9));
    elements *= output_sizes.back();
  }
  const DataType element = source.Any(kNumbers);
  const TensorDesc input = make.Input(element, sizes), indices = make.Input(source.Any(kIndices), sizes);
  Case problem;
  problem.desc = MakeDesc("MAX_UNPOOLING", {{"InputTensor", input},
                                            {"IndicesTensor", indices},
                                            {"OutputTensor", make.Output(element, output_sizes)}});
  problem.inputs = {make.Content(input), make.Indices(indices, elements)};
  return problem;
}

Case MakePooling(OperatorType type, CaseMaker& make) {
  if (type == Type::kMaxUnpooling) return MakeUnpooling(make);
  if (type == Type::kQuantizedLinearAveragePooling) return MakeQuantized(make);
  if (IsOneOf(type, {Type::kMaxPoolingGrad, Type::kAveragePoolingGrad})) return MakeGrad(type, make);
  ByteSource& source = make.source();
  const OperatorSchema& schema = *FindOperator(type);
  const bool is_max = IsOneOf(type, {Type::kMaxPooling, Type::kMaxPooling1, Type::kMaxPooling2});
  const Windows w = DrawWindows(make, FindField(schema, "Dilations") >= 0, 90);
  const DataType element = is_max ? source.Any(kNumbers) : source.Any(kFloats);
  const TensorDesc input = DrawTensor(make, element, w, true, false);
  Case problem;
  problem.desc = MakeDesc(
      schema.name, {{"InputTensor", input}, {"OutputTensor", DrawTensor(make, element, w, false, true)}});
  SetWindows(&problem.desc, w);
  const auto set = [&](const char* name, const FieldValue& value) {
    const int field = FindField(schema, name);
    if (field >= 0) problem.desc.fields[static_cast<size_t>(field)] = value;
  };
  if (source.OneIn(2)) {
    set("OutputIndicesTensor", DrawTensor(make, source.Any(kIndices), w, false, true));
  }
  set("IncludePadding", source.Between(0, 1));
  set("P", source.OneIn(4) ? source.Between(3, 7) : source.Between(1, 2));
  problem.inputs = {is_max && source.OneIn(2) ? make.Content(input) : ElementContent(input, make)};
  return problem;
}

}  // namespace

CaseFamily family::pooling::Cases() { return {"pooling", PoolingOperatorTypes(), MakePooling}; }

}  // namespace anydml::testing
