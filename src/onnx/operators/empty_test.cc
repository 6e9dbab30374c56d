// Empty inputs to operators whose results are not empty.
#include <cmath>
#include <limits>

#include "support/onnx_run.h"

namespace anydml::onnx {
namespace {

TEST_F(OnnxRun, ProductsOfNoElementsAreWhatIsAdded) {
  Load(ModelMaker(13)
           .Input("a", ElementType::kFloat, {2, -1})
           .Input("b", ElementType::kFloat, {-1, 3})
           .Weight("c", Floats({3}, {1, 2, 3}))
           .Node("Gemm", {"a", "b", "c"}, {"y"}, FloatAttribute("beta", 2))
           .Node("Gemm", {"a", "b"}, {"z"})
           .Output("y")
           .Output("z"));
  const std::map<std::string, Tensor> none = {{"a", Floats({2, 0}, {})}, {"b", Floats({0, 3}, {})}};
  EXPECT_EQ(Run(none), (Numbers{2, 4, 6, 2, 4, 6}));
  EXPECT_EQ(Output(none, 1), (Numbers{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(Run({{"a", Floats({2, 1}, {1, 2})}, {"b", Floats({1, 3}, {1, 1, 1})}}),
            (Numbers{3, 5, 7, 4, 6, 8}));
  Load(ModelMaker(13)
           .Input("a", ElementType::kUInt8, {2, 0})
           .Input("b", ElementType::kUInt8, {0, 2})
           .Node("MatMulInteger", {"a", "b"}, {"y"})
           .Output("y"));
  EXPECT_EQ(
      Run({{"a", Typed(ElementType::kUInt8, {2, 0}, {})}, {"b", Typed(ElementType::kUInt8, {0, 2}, {})}}),
      (Numbers{0, 0, 0, 0}));
}

TEST_F(OnnxRun, ReductionsOfNoElements) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const auto& [type, expected] :
       std::vector<std::pair<std::string, double>>{{"ReduceSum", 0},
                                                   {"ReduceProd", 1},
                                                   {"ReduceL2", 0},
                                                   {"ReduceMax", -kInfinity},
                                                   {"ReduceMin", kInfinity},
                                                   {"ReduceLogSumExp", -kInfinity}}) {
    Load(ModelMaker(18)
             .Input("x", ElementType::kFloat, {2, -1})
             .Weight("axis", Ints({1}, {1}))
             .Node(type, {"x", "axis"}, {"y"}, IntAttribute("keepdims", 0))
             .Output("y"));
    EXPECT_EQ(Run({{"x", Floats({2, 0}, {})}}), (Numbers{expected, expected})) << type;
    EXPECT_EQ(shape_, (Shape{2}));
    EXPECT_EQ(Run({{"x", Floats({2, 1}, {3, 4})}}), (Numbers{3, 4})) << type;
  }
  Load(ModelMaker(18)
           .Input("x", ElementType::kFloat, {0, 2})
           .Node("ReduceMean", {"x"}, {"y"}, IntAttribute("keepdims", 0))
           .Output("y"));
  const Numbers mean = Run({{"x", Floats({0, 2}, {})}});
  ASSERT_EQ(mean.size(), 1u);
  EXPECT_TRUE(std::isnan(mean[0]));
  for (const std::string type : {"ReduceSum", "ReduceProd", "ReduceMax"}) {
    Load(ModelMaker(18).Input("x", ElementType::kInt64, {0}).Node(type, {"x"}, {"y"}).Output("y"));
    const std::map<std::string, Tensor> none = {{"x", Ints({0}, {})}};
    EXPECT_EQ(Run(none), (Numbers{type == "ReduceProd" ? 1.0 : type == "ReduceMax" ? -0x1p63 : 0.0}));
  }
}

TEST_F(OnnxRun, PaddingAroundNothing) {
  Load(ModelMaker(13)
           .Input("x", ElementType::kFloat, {-1, 1})
           .Weight("pads", Ints({4}, {1, 0, 1, 1}))
           .Weight("value", Floats({}, {5}))
           .Node("Pad", {"x", "pads", "value"}, {"y"})
           .Output("y"));
  EXPECT_EQ(Run({{"x", Floats({0, 1}, {})}}), (Numbers{5, 5, 5, 5}));
  EXPECT_EQ(shape_, (Shape{2, 2}));
  EXPECT_EQ(Run({{"x", Floats({1, 1}, {7})}}), (Numbers{5, 5, 7, 5, 5, 5}));
}

}  // namespace
}  // namespace anydml::onnx
