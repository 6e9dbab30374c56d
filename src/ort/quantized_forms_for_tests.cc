// Products with quantised weights, and operators on 8-bit numbers.
#include "ort/forms_for_tests.h"

namespace anydml::ort {
namespace {

using onnx::Attribute;
using onnx::FloatAttribute;
using onnx::Floats;
using onnx::IntAttribute;
using onnx::Ints;
using onnx::IntsAttribute;
using onnx::TextAttribute;
using onnx::Typed;

constexpr ElementType kF32 = ElementType::kFloat, kF16 = ElementType::kFloat16, kI32 = ElementType::kInt32,
                      kU8 = ElementType::kUInt8, kI8 = ElementType::kInt8;

// x {3, 64} with weights {8, 64} of `bits` in blocks.
struct Blocks {
  std::string name;
  int64_t bits = 4, block = 32;
  ElementType type = kF32;
  ElementType points = ElementType::kUndefined;  // packed, or floats
  bool order = false, bias = false;
  int64_t accuracy = 0;

  Form Make() const {
    const int64_t k = 64, n = 8, blocks = k / block;
    FormMaker maker(name);
    maker.In(type, {3, k}).Weight(kU8, {n, blocks, block * bits / 8}).Weight(type, {n * blocks});
    if (points == kU8) maker.Weight(kU8, {n * ((blocks * bits + 7) / 8)});
    if (points != kU8) points == ElementType::kUndefined ? maker.None() : maker.Weight(points, {n * blocks});
    std::vector<int64_t> groups;
    for (int64_t i = 0; i < k; ++i) groups.push_back((k - 1 - i) / block);
    order ? maker.Weight(Typed(kI32, {k}, groups)) : maker.None();
    if (bias) maker.Weight(type, {n});
    return maker.Out({type}).Microsoft("MatMulNBits", IntAttribute("K", k), IntAttribute("N", n),
                                       IntAttribute("bits", bits), IntAttribute("block_size", block),
                                       IntAttribute("accuracy_level", accuracy));
  }
};

// data {6, 64} in blocks along the last axis, and rows of it.
struct Rows {
  std::string name;
  ElementType stored = kU8;
  int64_t bits = 4;
  bool points = false;
  ElementType type = kF32;

  Form Make() const {
    const int64_t block = 16, columns = stored == kU8 ? 64 * bits / 8 : 64;
    FormMaker maker(name, 21);
    maker.Weight(stored, {6, columns}).In(Ints({2, 2}, {0, 5, 3, 1})).Weight(type, {6, 64 / block});
    const int64_t point_columns = stored == kU8 ? (64 / block * bits + 7) / 8 : 64 / block;
    if (points) maker.Weight(stored, {6, point_columns});
    std::vector<Attribute> more;
    Form form =
        maker.Out({type}).Microsoft("GatherBlockQuantized", IntAttribute("gather_axis", 0),
                                    IntAttribute("quantize_axis", 1), IntAttribute("block_size", block));
    if (stored == kU8) form.model.graph.nodes[0].attributes.push_back(IntAttribute("bits", bits));
    return form;
  }
};

onnx::Tensor Scale(double value = 0.05) { return Floats({}, {value}); }
onnx::Tensor Point(ElementType type) { return Typed(type, {}, {type == kU8 ? 120 : 3}); }

}  // namespace

Forms MatrixForms() {
  using enum ElementType;
  const std::vector<Blocks> products = {
      {.name = "4 bits"},
      {.name = "4 bits, float16", .type = kF16},
      {.name = "4 bits, blocks of 16", .block = 16},
      {.name = "4 bits, one block", .block = 64},
      {.name = "4 bits, zero points", .points = kU8},
      {.name = "4 bits, zero points in floats", .points = kF32},
      {.name = "4 bits, float16, zero points in floats", .type = kF16, .points = kF16},
      {.name = "4 bits, bias", .bias = true},
      {.name = "4 bits, g_idx", .order = true},
      {.name = "4 bits, g_idx and zero points", .points = kU8, .order = true},
      {.name = "2 bits", .bits = 2},
      {.name = "2 bits, zero points", .bits = 2, .points = kU8},
      {.name = "8 bits", .bits = 8},
      {.name = "8 bits, zero points", .bits = 8, .points = kU8},
      {.name = "8 bits, float16", .bits = 8, .type = kF16},
      {.name = "4 bits, accuracy level 1", .accuracy = 1},
  };
  Forms forms;
  for (const Blocks& each : products) forms.push_back(each.Make());
  const std::vector<Rows> rows = {
      {.name = "uint8, 4 bits"},
      {.name = "uint8, 4 bits, zero points", .points = true},
      {.name = "uint8, 8 bits", .bits = 8},
      {.name = "uint8, 8 bits, zero points", .bits = 8, .points = true},
      {.name = "uint8, 2 bits", .bits = 2},
      {.name = "uint4", .stored = kUInt4},
      {.name = "uint4, zero points", .stored = kUInt4, .points = true},
      {.name = "int4", .stored = kInt4},
      {.name = "int4, zero points", .stored = kInt4, .points = true},
      {.name = "int4, float16", .stored = kInt4, .type = kF16},
  };
  for (const Rows& each : rows) forms.push_back(each.Make());
  forms.push_back(FormMaker("nf4")
                      .In({3, 64})
                      .Weight(kU8, {64 * 8 / 2})
                      .Weight({16})
                      .Out({kF32})
                      .Microsoft("MatMulBnb4", IntAttribute("K", 64), IntAttribute("N", 8),
                                 IntAttribute("block_size", 32), IntAttribute("quant_type", 1)));
  forms.push_back(FormMaker("both transposed")
                      .In({4, 3})
                      .In({5, 4})
                      .Out({kF32})
                      .Microsoft("FusedMatMul", IntAttribute("transA", 1), IntAttribute("transB", 1),
                                 FloatAttribute("alpha", 0.5f)));
  forms.push_back(FormMaker("batches inside")
                      .In({3, 2, 4})
                      .In({2, 4, 5})
                      .Out({kF32})
                      .Microsoft("FusedMatMul", IntAttribute("transBatchA", 1)));
  forms.push_back(FormMaker("relu").In({3, 4}).In({4, 5}).In({5}).Out({kF32}).Microsoft(
      "FusedGemm", TextAttribute("activation", "Relu")));
  forms.push_back(FormMaker("leaky relu")
                      .In({1, 3, 5, 5})
                      .Weight({4, 3, 3, 3})
                      .Weight({4})
                      .Out({kF32})
                      .Microsoft("FusedConv", TextAttribute("activation", "LeakyRelu"),
                                 onnx::FloatsAttribute("activation_params", {0.1f})));
  return forms;
}

Forms QuantizedForms() {
  Forms forms;
  for (const ElementType type : {kU8, kI8}) {
    const auto start = [type](const std::string& name, const Shape& shape, const onnx::Tensor& scale) {
      FormMaker maker(StrCat(Name(type), name.empty() ? "" : ", ", name));
      maker.In(type, shape).Weight(scale).Weight(Point(type));
      return maker;
    };
    const Shape x = {2, 3, 4};
    for (const char* const name : {"QLinearAdd", "QLinearMul"}) {
      for (const Shape& other : {x, Shape{4}, Shape{}}) {
        forms.push_back(start(onnx::ShapeToString(other), x, Scale())
                            .In(type, other)
                            .Weight(Scale(0.02))
                            .Weight(Point(type))
                            .Weight(Scale(0.1))
                            .Weight(Point(type))
                            .Out({type})
                            .Microsoft(name));
      }
      forms.push_back(start("no zero point of the result", x, Scale())
                          .In(type, x)
                          .Weight(Scale(0.02))
                          .Weight(Point(type))
                          .Weight(Scale(0.1))
                          .Out({type})
                          .Microsoft(name));
      forms.push_back(FormMaker("parameters that are no constants")
                          .In(type, x)
                          .In(Scale())
                          .In(Point(type))
                          .In(type, x)
                          .In(Scale(0.02))
                          .In(Point(type))
                          .In(Scale(0.1))
                          .In(Point(type))
                          .Out({type})
                          .Microsoft(name));
    }
    for (const char* const name : {"QLinearSigmoid", "QLinearLeakyRelu"})
      forms.push_back(
          start("", x, Scale()).Weight(Scale(0.01)).Weight(Point(type)).Out({type}).Microsoft(name));
    forms.push_back(start("", {2, 3}, Scale())
                        .Weight(Scale(1.0 / 256))
                        .Weight(Typed(type, {}, {0}))
                        .Out({type})
                        .Microsoft("QLinearSoftmax", IntAttribute("opset", 13)));
    for (const int64_t last : {0, 1}) {
      forms.push_back(start(StrCat("channels_last ", last), {1, 4, 4, 4}, Scale())
                          .Weight(Scale(0.04))
                          .Weight(Point(type))
                          .Out({type})
                          .Microsoft("QLinearGlobalAveragePool", IntAttribute("channels_last", last)));
      forms.push_back(start(StrCat("channels_last ", last), {1, 4, 4, 4}, Scale())
                          .Weight(Scale(0.04))
                          .Weight(Point(type))
                          .Out({type})
                          .Microsoft("QLinearAveragePool", IntsAttribute("kernel_shape", {2, 2}),
                                     IntAttribute("channels_last", last)));
    }
    FormMaker joined(Name(type));
    joined.Weight(Scale(0.1)).Weight(Point(type));
    for (const double scale : {0.05, 0.2}) joined.In(type, x).Weight(Scale(scale)).Weight(Point(type));
    forms.push_back(joined.Out({type}).Microsoft("QLinearConcat", IntAttribute("axis", 1)));
    forms.push_back(FormMaker(Name(type))
                        .In(Random(ElementType::kBool, x, 9))
                        .In(type, x)
                        .Weight(Scale())
                        .Weight(Point(type))
                        .In(type, x)
                        .Weight(Scale(0.1))
                        .Weight(Point(type))
                        .Weight(Scale(0.1))
                        .Weight(Point(type))
                        .Out({type})
                        .Microsoft("QLinearWhere"));
    forms.push_back(start("", {3, 8}, Scale())
                        .Weight(type, {8, 5})
                        .Weight(Scale(0.02))
                        .Weight(Point(type))
                        .Weight(Scale(0.5))
                        .Weight(Point(type))
                        .Out({type})
                        .Onnx("QLinearMatMul"));
    forms.push_back(start("columns", {3, 8}, Scale())
                        .Weight(kI8, {8, 5})
                        .Weight(Random(kF32, {5}, 3))
                        .Weight(kI8, {5})
                        .Weight(Scale(0.5))
                        .Weight(Point(type))
                        .Out({type})
                        .Onnx("QLinearMatMul"));
    forms.push_back(start("", {1, 3, 5, 5}, Scale())
                        .Weight(type, {4, 3, 3, 3})
                        .Weight(Scale(0.02))
                        .Weight(Point(type))
                        .Weight(Scale(0.5))
                        .Weight(Point(type))
                        .Weight(Typed(kI32, {4}, {10, -20, 5, 0}))
                        .Out({type})
                        .Onnx("QLinearConv"));
    forms.push_back(FormMaker(Name(type))
                        .In(type, {3, 8})
                        .Weight(type, {8, 5})
                        .Weight(Point(type))
                        .Weight(Point(type))
                        .Out({kI32})
                        .Onnx("MatMulInteger"));
    forms.push_back(FormMaker(Name(type))
                        .In(type, {3, 8})
                        .Weight(type, {8, 5})
                        .Weight(Scale())
                        .Weight(Scale(0.02))
                        .Weight(Point(type))
                        .Weight(Point(type))
                        .Weight({5})
                        .Out({kF32})
                        .Microsoft("MatMulIntegerToFloat"));
    forms.push_back(FormMaker(Name(type))
                        .In({3, 8})
                        .Weight(type, {8, 5})
                        .Weight(Scale(0.02))
                        .Weight(Point(type))
                        .Weight({5})
                        .Out({kF32})
                        .Microsoft("DynamicQuantizeMatMul"));
    forms.push_back(FormMaker(Name(type))
                        .In(type, {1, 3, 5, 5})
                        .Weight(type, {4, 3, 3, 3})
                        .Weight(Point(type))
                        .Weight(Point(type))
                        .Out({kI32})
                        .Onnx("ConvInteger"));
    for (const ElementType to : {kF32, type}) {
      FormMaker gemm(StrCat(Name(type), " to ", Name(to)));
      gemm.In(type, {3, 8})
          .Weight(Scale())
          .Weight(Point(type))
          .Weight(type, {8, 5})
          .Weight(Scale(0.02))
          .Weight(Point(type))
          .Weight(Typed(kI32, {5}, {1, 2, 3, 4, 5}));
      if (to == type) gemm.Weight(Scale(0.5)).Weight(Point(type));
      forms.push_back(gemm.Out({to}).Microsoft("QGemm"));
    }
    FormMaker attention(Name(type));
    attention.In(type, {2, 3, 32})
        .Weight(type, {32, 96})
        .Weight({96})
        .Weight(Scale(0.01))
        .Weight(Scale(0.01))
        .None()
        .Weight(Point(type))
        .Weight(Point(type));
    forms.push_back(attention.Out({kF32}).Microsoft("QAttention", IntAttribute("num_heads", 4)));
    for (const int64_t axis : {-1, 1}) {
      const Shape s = axis == 1 ? Shape{3} : Shape{};
      FormMaker down(StrCat(Name(type), " axis ", axis)), up(StrCat(Name(type), " axis ", axis));
      const onnx::Tensor scale = onnx::FromDoubles(kF32, s, std::vector<double>(axis == 1 ? 3 : 1, 0.01));
      forms.push_back(down.In(x).Weight(scale).Weight(type, s).Out({type}).Microsoft(
          "QuantizeLinear", IntAttribute("axis", axis)));
      forms.push_back(up.In(type, x).Weight(scale).Weight(type, s).Out({kF32}).Microsoft(
          "DequantizeLinear", IntAttribute("axis", axis)));
    }
  }
  forms.push_back(FormMaker("uint8").In({3, 8}).Out({kU8, kF32, kU8}).Onnx("DynamicQuantizeLinear"));
  for (const ElementType type :
       {ElementType::kInt4, ElementType::kUInt4, ElementType::kInt16, ElementType::kUInt16}) {
    forms.push_back(FormMaker(StrCat(Name(type), ", blocks"), 21)
                        .In(type, {4, 32})
                        .Weight({4, 2})
                        .Weight(type, {4, 2})
                        .Out({kF32})
                        .Onnx("DequantizeLinear", IntAttribute("axis", 1), IntAttribute("block_size", 16)));
    forms.push_back(FormMaker(Name(type), 21)
                        .In({4, 32})
                        .Weight(Scale())
                        .Weight(type, {})
                        .Out({type})
                        .Onnx("QuantizeLinear"));
  }
  return forms;
}

}  // namespace anydml::ort
