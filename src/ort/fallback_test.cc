// Groups that AnyDML cannot run once sizes are known fall back to onnxruntime's CPU provider.
#include "onnx/file/tensor.h"
#include "ort/plugin_fixture_for_tests.h"

namespace anydml::ort {
namespace {

using onnx::ElementType;
using onnx::Floats;

class OrtFallback : public PluginTest {
 protected:
  // AnyDML computes Einsum only if all inputs have the same rank, and ranks are not known before the run.
  // Weights are of both kinds: small ones, and ones so large that onnxruntime gets them as memory.
  static ModelMaker Broadcast() {
    ModelMaker maker =
        ModelMaker(17)
            .Input("x", ElementType::kFloat, {})
            .Input("y", ElementType::kFloat, {})
            .Weight("w", Numbers({4, 400}))
            .Weight("b", Numbers({400}))
            .Weight("axes", onnx::Ints({1}, {-1}))
            .Node("Einsum", {"x", "y"}, {"e"}, onnx::TextAttribute("equation", "...i,...i->...i"))
            .Node("MatMul", {"e", "w"}, {"m"})
            .Node("Add", {"m", "b"}, {"a"})
            .Node("Unsqueeze", {"a", "axes"}, {"u"})
            .Node("Tanh", {"u"}, {"z"})
            .Output("z")
            .Output("e");
    for (onnx::ValueProto& input : maker.model.graph.inputs) input.has_shape = false;
    return maker;
  }
  static onnx::Tensor Numbers(const onnx::Shape& shape) {
    std::vector<double> values(static_cast<size_t>(onnx::ElementCount(shape).value_or(0)));
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i));
    return Floats(shape, values);
  }
  static Inputs OfRanks(onnx::Shape x, onnx::Shape y) { return {{"x", Numbers(x)}, {"y", Numbers(y)}}; }
  static const Inputs& Fitting() {
    static const Inputs inputs = OfRanks({2, 3, 4}, {2, 3, 4});
    return inputs;
  }
  static const Inputs& Unfitting() {
    static const Inputs inputs = OfRanks({2, 3, 4}, {4});
    return inputs;
  }
};

TEST_P(OrtFallback, RunsWhatSizesForbid) {
  Load(Broadcast());
  for (int i = 0; i < 2; ++i) {
    Compare(Fitting());
    Compare(Unfitting());
    Compare(OfRanks({4}, {3, 4}));
  }
}

TEST_P(OrtFallback, IsAnOption) {
  Results results;
  ASSERT_EQ(WhyNotLoaded(Broadcast(), {{"fallback", "0"}}), "");
  EXPECT_NE(session_->Run(Unfitting(), &results).message().find("ellipses"), std::string::npos);
  EXPECT_EQ(session_->Run(Fitting(), &results).message(), "");
  EXPECT_NE(WhyNotLoaded(Broadcast(), {{"fallback", "yes"}}).find("fallback is \"yes\""), std::string::npos);
}

// An application that disables the CPU fallback gets the error, unless the plugin's option overrides it.
TEST_P(OrtFallback, IsNotThereWhereTheCpuProviderIsForbidden) {
  Results results;
  ASSERT_EQ(WhyNotLoaded(Broadcast(), {}, kAllOfIt), "");
  EXPECT_NE(session_->Run(Unfitting(), &results).message().find("ellipses"), std::string::npos);
  ASSERT_EQ(WhyNotLoaded(Broadcast(), {{"fallback", "1"}}, kAllOfIt), "");
  EXPECT_EQ(session_->Run(Unfitting(), &results).message(), "");
}

TEST_P(OrtFallback, BothSentencesAreThereWhereBothFail) {
  Load(ModelMaker(17)
           .Input("x", ElementType::kFloat, {-1})
           .Input("y", ElementType::kFloat, {-1})
           .Node("Add", {"x", "y"}, {"z"})
           .Output("z"));
  Results results;
  const std::string sentence =
      session_->Run({{"x", Floats({2}, {1, 2})}, {"y", Floats({3}, {1, 2, 3})}}, &results).message();
  const size_t ours = sentence.find("Add-17: shapes 2 and 3 do not go together");
  EXPECT_NE(ours, std::string::npos) << sentence;
  EXPECT_NE(sentence.find("onnxruntime's CPU provider: ", ours), std::string::npos) << sentence;
  Compare({{"x", Floats({2}, {1, 2})}, {"y", Floats({2}, {3, 4})}});
}

INSTANTIATE_TEST_SUITE_P(, OrtFallback, testing::Values("host", "device"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace anydml::ort
