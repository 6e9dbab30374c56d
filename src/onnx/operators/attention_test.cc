// Attention. Queries of 0 weight all keys equally, so results are averages of values.
#include "support/onnx_run.h"

namespace anydml::onnx {
namespace {

TEST_F(OnnxRun, AttentionWithMasks) {
  Load(ModelMaker(24)
           .Input("q", ElementType::kFloat, {1, 2, 4})
           .Input("v", ElementType::kFloat, {1, 2, 2})
           .Node("Attention", {"q", "v", "v"}, {"y"}, IntAttribute("q_num_heads", 2),
                 IntAttribute("kv_num_heads", 1), IntAttribute("is_causal", 1), FloatAttribute("softcap", 5))
           .Output("y"));
  EXPECT_EQ(Run({{"q", Floats({1, 2, 4}, {0, 0, 0, 0, 0, 0, 0, 0})}, {"v", Floats({1, 2, 2}, {1, 2, 3, 4})}}),
            (Numbers{1, 2, 1, 2, 2, 3, 2, 3}));
  Load(ModelMaker(24)
           .Input("q", ElementType::kFloat, {1, 1, 1, 2})
           .Input("v", ElementType::kFloat, {1, 1, 3, 2})
           .Weight("mask", Typed(ElementType::kBool, {1, 2}, {1, 0}))  // one key is missing and is masked too
           .Node("Attention", {"q", "v", "v", "mask"}, {"y"})
           .Output("y"));
  const Tensor v = Floats({1, 1, 3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(Run({{"q", Floats({1, 1, 1, 2}, {0, 0})}, {"v", v}}), (Numbers{1, 2}));
  Load(ModelMaker(24)
           .Input("q", ElementType::kFloat, {1, 1, 2, 2})
           .Input("v", ElementType::kFloat, {1, 1, 3, 2})
           .Weight("count", Ints({1}, {2}))
           .Node("Attention", {"q", "v", "v", "", "", "", "count"}, {"y"}, IntAttribute("is_causal", 1))
           .Output("y"));
  EXPECT_EQ(Run({{"q", Floats({1, 1, 2, 2}, {0, 0, 0, 0})}, {"v", v}}), (Numbers{1, 2, 2, 3}));
}

// Queries that see no key give 0, and so do their attention weights.
TEST_F(OnnxRun, AttentionToNothing) {
  const std::map<std::string, Tensor> inputs = {{"q", Floats({1, 1, 2, 2}, {1, 2, 3, 4})},
                                                {"v", Floats({1, 1, 2, 2}, {1, 2, 3, 4})}};
  for (const bool counted : {false, true}) {
    ModelMaker maker(24);
    maker.Input("q", ElementType::kFloat, {1, 1, 2, 2}).Input("v", ElementType::kFloat, {1, 1, 2, 2});
    if (counted) {  // the last query is at the only key; the one before it precedes all keys
      maker.Weight("count", Ints({1}, {1}))
          .Node("Attention", {"q", "v", "v", "", "", "", "count"}, {"y", "", "", "w"},
                IntAttribute("is_causal", 1), IntAttribute("qk_matmul_output_mode", 3));
    } else {
      maker.Weight("mask", Typed(ElementType::kBool, {2, 2}, {0, 0, 1, 0}))
          .Node("Attention", {"q", "v", "v", "mask"}, {"y", "", "", "w"},
                IntAttribute("qk_matmul_output_mode", 3));
    }
    Load(std::move(maker.Output("y").Output("w")));
    EXPECT_EQ(Run(inputs), (Numbers{0, 0, 1, 2})) << counted;
    EXPECT_EQ(Output(inputs, 1), (Numbers{0, 0, 1, 0})) << counted;
  }
}

TEST_F(OnnxRun, AttentionInAWindow) {
  const std::map<std::string, Tensor> inputs = {{"q", Floats({1, 1, 3, 1}, {0, 0, 0})},
                                                {"v", Floats({1, 1, 3, 1}, {2, 4, 8})}};
  for (const auto& [left, right, expected] : std::vector<std::tuple<int64_t, int64_t, Numbers>>{
           {0, 0, {2, 4, 8}}, {1, 0, {2, 3, 6}}, {0, 1, {3, 6, 8}}, {-1, 0, {2, 3, 14.0 / 3}}}) {
    for (const bool counted : {false, true}) {
      ModelMaker maker(25);
      maker.Input("q", ElementType::kFloat, {1, 1, 3, 1}).Input("v", ElementType::kFloat, {1, 1, 3, 1});
      std::vector<std::string> names = {"q", "v", "v"};
      if (counted) maker.Weight("count", Ints({1}, {3})), names.insert(names.end(), {"", "", "", "count"});
      maker.Node("Attention", names, {"y"}, IntAttribute("left_window_size", left),
                 IntAttribute("right_window_size", right));
      Load(std::move(maker.Output("y")));
      const Numbers y = Run(inputs);
      ASSERT_EQ(y.size(), 3u);
      for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(y[i], expected[i], 1e-6) << left << " " << right;
    }
  }
}

TEST_F(OnnxRun, AttentionWithPast) {
  Load(ModelMaker(23)
           .Input("x", ElementType::kFloat, {1, 1, 1, 2})
           .Input("past", ElementType::kFloat, {1, 1, 1, 2})
           .Weight("zero", Floats({1, 1, 1, 2}, {0, 0}))
           .Node("Attention", {"zero", "x", "x", "", "past", "past"}, {"y", "k", "v", "qk"},
                 IntAttribute("qk_matmul_output_mode", 3))
           .Output("y")
           .Output("k")
           .Output("qk"));
  const std::map<std::string, Tensor> inputs = {{"x", Floats({1, 1, 1, 2}, {3, 5})},
                                                {"past", Floats({1, 1, 1, 2}, {1, 1})}};
  EXPECT_EQ(Run(inputs), (Numbers{2, 3}));
  EXPECT_EQ(Output(inputs, 1), (Numbers{1, 1, 3, 5}));
  EXPECT_EQ(Output(inputs, 2), (Numbers{0.5, 0.5}));
}

TEST_F(OnnxRun, Rotations) {
  const Tensor cosines = Floats({2, 2}, {1, 1, 0, 0}), sines = Floats({2, 2}, {0, 0, 1, 1});
  for (const int64_t interleaved : {0, 1}) {
    const Numbers expected =
        interleaved != 0 ? Numbers{1, 2, 3, 4, -6, 5, -8, 7} : Numbers{1, 2, 3, 4, -7, -8, 5, 6};
    Load(ModelMaker(23)
             .Input("x", ElementType::kFloat, {1, 2, 4})
             .Weight("c", cosines)
             .Weight("s", sines)
             .Weight("at", Ints({1, 2}, {0, 1}))
             .Node("RotaryEmbedding", {"x", "c", "s", "at"}, {"y"}, IntAttribute("num_heads", 1),
                   IntAttribute("interleaved", interleaved))
             .Output("y"));
    EXPECT_EQ(Run({{"x", Floats({1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})}}), expected);
    Load(ModelMaker(17)
             .Input("x", ElementType::kFloat, {1, 2, 4})
             .Weight("c", cosines)
             .Weight("s", sines)
             .Weight("first", Ints(interleaved != 0 ? Shape{1} : Shape{}, {0}))
             .Microsoft("RotaryEmbedding", {"x", "first", "c", "s"}, {"y"},
                        IntAttribute("interleaved", interleaved))
             .Output("y"));
    EXPECT_EQ(Run({{"x", Floats({1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})}}), expected);
  }
}

TEST_F(OnnxRun, RotatesAPartOfEveryHead) {
  Load(ModelMaker(23)
           .Input("x", ElementType::kFloat, {1, 1, 1, 4})
           .Weight("c", Floats({1, 1, 1}, {0}))
           .Weight("s", Floats({1, 1, 1}, {1}))
           .Node("RotaryEmbedding", {"x", "c", "s"}, {"y"}, IntAttribute("rotary_embedding_dim", 2))
           .Output("y"));
  EXPECT_EQ(Run({{"x", Floats({1, 1, 1, 4}, {1, 2, 3, 4})}}), (Numbers{-2, 1, 3, 4}));
}

TEST_F(OnnxRun, MultiHeadAttention) {
  // A mask given as lengths, with everything packed.
  Load(ModelMaker(17)
           .Input("qkv", ElementType::kFloat, {1, 2, 1, 3, 2})
           .Weight("lengths", Typed(ElementType::kInt32, {1}, {1}))
           .Microsoft("MultiHeadAttention", {"qkv", "", "", "", "lengths"}, {"y"},
                      IntAttribute("num_heads", 1))
           .Output("y"));
  EXPECT_EQ(Run({{"qkv", Floats({1, 2, 1, 3, 2}, {0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 3, 4})}}),
            (Numbers{1, 2, 1, 2}));
  // A bias whose last third belongs to the values, and an order.
  Load(ModelMaker(17)
           .Input("x", ElementType::kFloat, {1, 2, 2})
           .Weight("zero", Floats({1, 2, 2}, {0, 0, 0, 0}))
           .Weight("bias", Floats({6}, {0, 0, 0, 0, 10, 20}))
           .Microsoft("MultiHeadAttention", {"zero", "x", "x", "bias"}, {"y"}, IntAttribute("num_heads", 1),
                      IntAttribute("unidirectional", 1))
           .Output("y"));
  EXPECT_EQ(Run({{"x", Floats({1, 2, 2}, {1, 2, 3, 4})}}), (Numbers{11, 22, 12, 23}));
  Load(ModelMaker(17)
           .Input("x", ElementType::kFloat, {1, 2, 2})
           .Weight("zero", Floats({1, 2, 2}, {0, 0, 0, 0}))
           .Microsoft("MultiHeadAttention", {"zero", "x", "x"}, {"y"}, IntAttribute("num_heads", 2))
           .Output("y"));
  EXPECT_EQ(Run({{"x", Floats({1, 2, 2}, {1, 2, 3, 4})}}), (Numbers{2, 3, 2, 3}));
}

// One-dimensional masks for two sequences of three keys: counts; ends and starts; counts with cumulative
// numbers of queries and keys.
TEST_F(OnnxRun, AttentionToKeysOfARange) {
  const Tensor x = Floats({2, 3, 1}, {1, 2, 6, 10, 20, 60});
  const auto run = [&](const std::vector<int64_t>& mask, const std::string& type) {
    ModelMaker maker(17);
    maker.Input("x", ElementType::kFloat, {2, 3, 1})
        .Weight("w", Floats({1, 3}, {0, 0, 1}))
        .Weight("b", Floats({3}, {0, 0, 0}))
        .Weight("zero", Floats({2, 3, 1}, Numbers(6, 0)))
        .Weight("mask", Typed(ElementType::kInt32, {static_cast<int64_t>(mask.size())}, mask));
    if (type == "Attention") {
      maker.Microsoft(type, {"x", "w", "b", "mask"}, {"y"}, IntAttribute("num_heads", 1));
    } else {
      maker.Microsoft(type, {"zero", "x", "x", "", "mask"}, {"y"}, IntAttribute("num_heads", 1));
    }
    Load(std::move(maker.Output("y")));
  };
  for (const std::string type : {"Attention", "MultiHeadAttention"}) {
    run({2, 3}, type);
    EXPECT_EQ(Run({{"x", x}}), (Numbers{1.5, 1.5, 1.5, 30, 30, 30})) << type;
    run({2, 3, 0, 1}, type);
    EXPECT_EQ(Run({{"x", x}}), (Numbers{1.5, 1.5, 1.5, 40, 40, 40})) << type;
    run({2, 1, 0, 3, 6, 0, 3, 6}, type);
    EXPECT_EQ(Run({{"x", x}}), (Numbers{1.5, 1.5, 1.5, 10, 10, 10})) << type;
    run({2, 1, 0}, type);
    EXPECT_EQ(Failure({{"x", x}}), StrCat("unsupported: com.microsoft.", type,
                                          "-1: a mask of 3 for 2x1x3x3; one dimension has 2, 4 or 8"));
  }
}

TEST_F(OnnxRun, SelfAttention) {
  // Weights that set queries and keys to 0 and keep values.
  Load(ModelMaker(17)
           .Input("x", ElementType::kFloat, {1, 2, 2})
           .Weight("w", Floats({2, 6}, {0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1}))
           .Weight("b", Floats({6}, {0, 0, 0, 0, 1, 1}))
           .Input("past", ElementType::kFloat, {2, 1, 1, 1, 2})
           .Microsoft("Attention", {"x", "w", "b", "", "past"}, {"y", "present"},
                      IntAttribute("num_heads", 1), IntAttribute("unidirectional", 1))
           .Output("y")
           .Output("present"));
  const std::map<std::string, Tensor> inputs = {{"x", Floats({1, 2, 2}, {1, 3, 4, 6})},
                                                {"past", Floats({2, 1, 1, 1, 2}, {0, 0, 4, 8})}};
  EXPECT_EQ(Run(inputs), (Numbers{3, 6, 11.0f / 3, 19.0f / 3}));
  EXPECT_EQ(Output(inputs, 1), (Numbers{0, 0, 0, 0, 0, 0, 4, 8, 2, 4, 5, 7}));
}

TEST_F(OnnxRun, GroupQueryAttention) {
  // A cache of four rows, two of them in use, and a cache that becomes full.
  for (const int64_t rows : {4, 2}) {
    Load(ModelMaker(17)
             .Input("v", ElementType::kFloat, {1, 1, 2})
             .Input("past", ElementType::kFloat, {1, 1, -1, 2})
             .Weight("q", Floats({1, 1, 4}, {0, 0, 0, 0}))
             .Weight("last", Typed(ElementType::kInt32, {1}, {2}))
             .Weight("total", Typed(ElementType::kInt32, {1}, {3}))
             .Microsoft("GroupQueryAttention", {"q", "v", "v", "past", "past", "last", "total"},
                        {"y", "k", "present"}, IntAttribute("num_heads", 2), IntAttribute("kv_num_heads", 1))
             .Output("y")
             .Output("present"));
    const std::map<std::string, Tensor> inputs = {
        {"v", Floats({1, 1, 2}, {5, 6})},
        {"past",
         rows == 4 ? Floats({1, 1, 4, 2}, {1, 2, 3, 4, 9, 9, 9, 9}) : Floats({1, 1, 2, 2}, {1, 2, 3, 4})}};
    EXPECT_EQ(Run(inputs), (Numbers{3, 4, 3, 4}));
    EXPECT_EQ(Output(inputs, 1), rows == 4 ? (Numbers{1, 2, 3, 4, 5, 6, 9, 9}) : (Numbers{1, 2, 3, 4, 5, 6}));
  }
  // A packed prompt with a rotation of zero angle and a window of one earlier position.
  Load(ModelMaker(17)
           .Input("qkv", ElementType::kFloat, {1, 3, 6})
           .Weight("last", Typed(ElementType::kInt32, {1}, {2}))
           .Weight("total", Typed(ElementType::kInt32, {1}, {3}))
           .Weight("c", Floats({3, 1}, {1, 1, 1}))
           .Weight("s", Floats({3, 1}, {0, 0, 0}))
           .Microsoft("GroupQueryAttention", {"qkv", "", "", "", "", "last", "total", "c", "s"}, {"y"},
                      IntAttribute("num_heads", 1), IntAttribute("kv_num_heads", 1),
                      IntAttribute("do_rotary", 1), IntAttribute("local_window_size", 2))
           .Output("y"));
  EXPECT_EQ(Run({{"qkv", Floats({1, 3, 6}, {0, 0, 7, 7, 1, 2, 0, 0, 7, 7, 3, 4, 0, 0, 7, 7, 5, 6})}}),
            (Numbers{1, 2, 2, 3, 4, 5}));
}

}  // namespace
}  // namespace anydml::onnx
