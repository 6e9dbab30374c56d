// `anydml run`, `check` and `onnx-test` with ONNX models.
#include "cli_test_util.h"
#include "onnx/file/write_model.h"
#include "support/onnx_models.h"

namespace anydml::client {
namespace {

using onnx::ElementType;
using onnx::Floats;
using onnx::ModelMaker;

// y = relu(x w + b)
ModelMaker Layer() {
  ModelMaker maker(13);
  maker.Input("x", ElementType::kFloat, {-1, 2})
      .Weight("w", Floats({2, 2}, {1, -1, 2, 0}))
      .Weight("b", Floats({2}, {1, 1}))
      .Node("MatMul", {"x", "w"}, {"p"})
      .Node("Add", {"p", "b"}, {"s"})
      .Node("Relu", {"s"}, {"y"})
      .Output("y");
  return maker;
}

class CliOnnxTest : public CliTest {
 protected:
  void WriteModel(const std::string& name, const ModelMaker& maker) const {
    WriteBytes(name, onnx::WriteModel(maker.model));
  }
  // A folder of a backend test with one input and one output.
  void WriteTest(const std::string& name, const ModelMaker& maker, const onnx::Tensor& input,
                 const onnx::Tensor& output) const {
    std::filesystem::create_directories(Path(name) / "test_data_set_0");
    WriteModel(name + "/model.onnx", maker);
    WriteBytes(name + "/test_data_set_0/input_0.pb", onnx::WriteTensor("x", input));
    WriteBytes(name + "/test_data_set_0/output_0.pb", onnx::WriteTensor("y", output));
  }
};

TEST_F(CliOnnxTest, RunsAModel) {
  WriteModel("m.onnx", Layer());
  WriteNpy<float>("x.npy", "<f4", "(2, 2)", {1, 1, 0, -1});
  EXPECT_EQ(Run({"run", "m.onnx", "x=x.npy", "-o", "y=y.npy"}).exit_code, 0);
  EXPECT_EQ(ReadElements<float>("y.npy", {2, 2}), (std::vector<float>{4, 0, 0, 1}));
  const JsonValue document = RunJson(0, {"run", "m.onnx", "x=[[1,1]]"});
  EXPECT_EQ(Text(document, {"outputs", "0", "name"}), "y");
  EXPECT_EQ(Text(document, {"outputs", "0", "values"}), "[[4,0]]");
}

TEST_F(CliOnnxTest, TellsWhatBecomesOfAModel) {
  WriteModel("m.onnx", Layer());
  const JsonValue document =
      RunJson(0, {"run", "m.onnx", "x=[[1,1]]", "--why", "--adapter", "cpu", "--repeat", "2"});
  EXPECT_NE(Text(document, {"explanation", "0"}).find("is done by node 0"), std::string::npos)
      << Text(document, {"explanation"});
  const CliResult result = Run({"run", "m.onnx", "x=[[1,1]]", "--why", "--adapter", "cpu"});
  EXPECT_EQ(result.out.find("what was done\n"), 0u) << result.out;
  EXPECT_EQ(result.out.find("what was done\n", 1), std::string::npos) << result.out;
}

TEST_F(CliOnnxTest, InputsThatAreNotGivenAreRandomIfTheirSizesAreKnown) {
  WriteModel("m.onnx", Layer());
  EXPECT_EQ(Run({"run", "m.onnx", "--shapes", "x=3x2"}).exit_code, 0);
  EXPECT_EQ(Run({"run", "m.onnx", "x=random:3x2"}).exit_code, 0);
  EXPECT_NE(RunFailing(2, {"run", "m.onnx"}).find("input \"x\" is not given"), std::string::npos);
  EXPECT_NE(RunFailing(2, {"run", "m.onnx", "z=[1]", "--shapes", "x=3x2"}).find("no input \"z\"; it has x"),
            std::string::npos);
  EXPECT_NE(RunFailing(2, {"run", "m.onnx", "--shapes", "z=3x2,x=3x2"}).find("no input \"z\"; it has x"),
            std::string::npos);
  EXPECT_NE(RunFailing(1, {"check", "m.onnx", "--shapes", "z=3x2"}).find("no input \"z\"; it has x"),
            std::string::npos);
  for (const char* const sizes : {"3x", "3xx2", "99999999999x2", "-3x2"}) {
    EXPECT_NE(RunFailing(2, {"run", "m.onnx", "--shapes", StrCat("x=", sizes)}).find("are no sizes"),
              std::string::npos)
        << sizes;
  }
  EXPECT_NE(RunFailing(1, {"run", "m.onnx", "x=[[1,2,3]]"}).find("the model takes ?x2 of float"),
            std::string::npos);
  EXPECT_NE(RunFailing(2, {"run", "m.onnx", "--shapes", "x=1x2", "-o", "q=q.npy"}).find("no output \"q\""),
            std::string::npos);
  ExpectOnly({"m.onnx"});
}

TEST_F(CliOnnxTest, WithoutElementsOrDimensions) {
  ModelMaker negative(13), sum(13);
  negative.Input("x", ElementType::kFloat, {-1, 2}).Node("Neg", {"x"}, {"y"}).Output("y");
  sum.Input("x", ElementType::kFloat, {-1, 2})
      .Node("ReduceSum", {"x"}, {"y"}, onnx::IntAttribute("keepdims", 0))
      .Output("y");
  WriteModel("negative.onnx", negative);
  EXPECT_EQ(Run({"run", "negative.onnx", "--shapes", "x=0x2", "-o", "y=n.npy"}).exit_code, 0);
  EXPECT_NE(ReadBytes("n.npy").find("'shape': (0, 2)"), std::string::npos);
  WriteModel("sum.onnx", sum);
  EXPECT_EQ(Run({"run", "sum.onnx", "x=[[1,2]]", "-o", "y=s.npy"}).exit_code, 0);
  EXPECT_NE(ReadBytes("s.npy").find("'shape': ()"), std::string::npos);
  // Files that the tool writes can be read again; other tensors have elements.
  for (const char* const x : {"x=n.npy", "x=n.npy:float32", "x=random:0x2"}) {
    EXPECT_EQ(Run({"run", "sum.onnx", x, "-o", "y=s.npy"}).exit_code, 0) << x;
    EXPECT_EQ(ReadElements<float>("s.npy", {1}), (std::vector<float>{0})) << x;
  }
  EXPECT_NE(RunFailing(1, {"op", "ACTIVATION_RELU", "InputTensor=n.npy"}).find("cannot be empty"),
            std::string::npos);
  ModelMaker shape(13), lengths(13);
  lengths.Input("x", ElementType::kFloat, {-1}).Node("Shape", {"x"}, {"y"}).Output("y", ElementType::kInt64);
  WriteModel("lengths.onnx", lengths);
  EXPECT_EQ(Text(RunJson(0, {"run", "lengths.onnx", "x=[]"}), {"outputs", "0", "values"}), "[0]");
  // If a shape is missing in the model, the file determines the rank.
  shape.Input("x", ElementType::kFloat, {}).Node("Neg", {"x"}, {"y"}).Output("y");
  shape.model.graph.inputs[0].has_shape = false;
  WriteModel("shape.onnx", shape);
  WriteNpy<float>("scalar.npy", "<f4", "()", {7});
  EXPECT_EQ(Run({"run", "shape.onnx", "x=scalar.npy", "-o", "y=s.npy"}).exit_code, 0);
  EXPECT_NE(ReadBytes("s.npy").find("'shape': ()"), std::string::npos);
}

TEST_F(CliOnnxTest, LiteralsHaveTheModelsType) {
  ModelMaker maker(13);
  maker.Input("x", ElementType::kInt64, {2}).Node("Neg", {"x"}, {"y"}).Output("y", ElementType::kInt64);
  WriteModel("m.onnx", maker);
  EXPECT_EQ(Text(RunJson(0, {"run", "m.onnx", "x=[3,-9007199254740993]"}), {"outputs", "0", "values"}),
            "[-3,9007199254740993]");
  EXPECT_EQ(Run({"run", "m.onnx", "x=random:2:min=-3:max=3"}).exit_code, 0);
  EXPECT_NE(RunFailing(1, {"run", "m.onnx", "x=[3,4]:float32"}).find("the model takes 2 of int64"),
            std::string::npos);
}

TEST_F(CliOnnxTest, SaysWhatCannotBeGiven) {
  ModelMaker maker(17);
  maker.Input("x", ElementType::kBFloat16, {2})
      .Node("Cast", {"x"}, {"y"}, onnx::IntAttribute("to", static_cast<int64_t>(ElementType::kFloat)))
      .Output("y");
  WriteModel("m.onnx", maker);
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"run", "m.onnx"}, {"run", "m.onnx", "x=[1,2]"}}) {
    EXPECT_NE(RunFailing(3, command).find("input \"x\" is of bfloat16, which cannot be given here"),
              std::string::npos);
  }
  WriteModel("layer.onnx", Layer());
  EXPECT_NE(RunFailing(2, {"run", "layer.onnx", "x=[[1,1]]", "x=[[2,2]]"}).find("'x' is given twice"),
            std::string::npos);
  WriteBytes("pointer.onnx", "version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 5\n");
  EXPECT_NE(RunFailing(1, {"run", "pointer.onnx"}).find("pointer.onnx: a pointer of Git LFS, not the model"),
            std::string::npos);
}

TEST_F(CliOnnxTest, RepeatsAndProfiles) {
  WriteModel("m.onnx", Layer());
  const CliResult result = Run(
      {"run", "m.onnx", "--shapes", "x=64x2", "--repeat", "5", "--profile=trace.json", "--adapter", "cpu"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* const part : {"5 runs: median ", ", p95 ", " per second", "(GEMM)", "outside of nodes"}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << part << " is not in:\n" << result.out;
  }
  const std::string trace = ReadBytes("trace.json");
  EXPECT_NE(trace.find("\"name\":\"run 5\",\"ph\":\"X\""), std::string::npos) << trace;
  EXPECT_EQ(
      Run({"run", "m.onnx", "--shapes", "x=64x2", "--profile", "next.json", "--adapter", "cpu"}).exit_code,
      0);
  EXPECT_NE(ReadBytes("next.json").find("\"run 1\""), std::string::npos);
  const JsonValue document =
      RunJson(0, {"run", "m.onnx", "--shapes", "x=64x2", "--profile", "--adapter", "cpu"});
  EXPECT_EQ(Text(document, {"times", "runs"}), "1");
  EXPECT_EQ(Text(document, {"profile", "nodes", "0", "calls"}), "1");
  RunFailing(2, {"run", "m.onnx", "--repeat", "0"});
}

TEST_F(CliOnnxTest, ChecksAModel) {
  WriteModel("m.onnx", Layer());
  const JsonValue open = RunJson(0, {"check", "m.onnx"});
  EXPECT_EQ(Text(open, {"operators", "MatMul-13"}), "1");
  EXPECT_EQ(Text(open, {"parameters"}), "6");
  EXPECT_EQ(Text(open, {"weightBytes"}), "24");
  const JsonValue sized = RunJson(0, {"check", "m.onnx", "--shapes", "x=100x2"});
  EXPECT_EQ(Text(sized, {"valid"}), "true");
  EXPECT_EQ(Text(sized, {"lowestFeatureLevel"}), "4.0");
  EXPECT_EQ(Text(sized, {"intermediateBytes"}), "1600");  // two of 100x2
}

TEST_F(CliOnnxTest, SaysWhatIsNotSupported) {
  ModelMaker maker(13);
  maker.Input("x", ElementType::kFloat, {2}).Node("Frobnicate", {"x"}, {"y"}).Output("y");
  WriteModel("m.onnx", maker);
  const JsonValue document = RunJson(3, {"check", "m.onnx"});
  EXPECT_EQ(Text(document, {"unsupported", "0"}), "unsupported: Frobnicate-13: no such operator is known");
  EXPECT_NE(RunFailing(3, {"run", "m.onnx"}).find("unsupported: Frobnicate-13"), std::string::npos);
  WriteBytes("broken.onnx", "\x08\x08\x3a\xff");
  RunFailing(1, {"check", "broken.onnx"});
  RunFailing(1, {"run", "broken.onnx"});
}

TEST_F(CliOnnxTest, RunsBackendTests) {
  WriteTest("t/good", Layer(), Floats({1, 2}, {1, 1}), Floats({1, 2}, {4, 0}));
  const CliResult passed = Run({"onnx-test", "t"});
  EXPECT_EQ(passed.exit_code, 0) << passed.err;
  EXPECT_EQ(passed.out, "1 passed, 0 failed, 0 skipped\n");

  WriteTest("t/wrong", Layer(), Floats({1, 2}, {1, 1}), Floats({1, 2}, {4, 1}));
  ModelMaker unknown(13);
  unknown.Input("x", ElementType::kFloat, {2}).Node("Frobnicate", {"x"}, {"y"}).Output("y");
  WriteTest("t/unknown", unknown, Floats({2}, {1, 1}), Floats({2}, {1, 1}));
  const CliResult result = Run({"onnx-test", "t", "--json", "results.json"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("failed wrong: output \"y\": element 1 is 0; expected is 1\n"),
            std::string::npos);
  EXPECT_NE(result.out.find("skipped unknown: unsupported: Frobnicate-13"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("1 passed, 1 failed, 1 skipped\n"), std::string::npos);
  const std::string json = ReadBytes("results.json");
  EXPECT_EQ(json.find("{\"tests\":[{\"test\":\"good\",\"result\":\"passed\"},"), 0u) << json;
  EXPECT_NE(json.find("],\"passed\":1,\"failed\":1,\"skipped\":1}\n"), std::string::npos) << json;
  RunFailing(2, {"onnx-test", "nowhere"});
  RunFailing(2, {"onnx-test"});
  RunFailing(2, {"onnx-test", "t", "--json"});
}

// As onnxruntime reads it; some exporters rely on it.
TEST_F(CliOnnxTest, WarnsOfConstantsOfOneName) {
  ModelMaker maker(13);
  maker.Input("x", ElementType::kFloat, {2})
      .Weight("c", Floats({2}, {100, 200}))
      .Node("Constant", {}, {"c"}, onnx::TensorAttribute("value", Floats({2}, {1, 2})))
      .Node("Add", {"c", "x"}, {"y"})
      .Node("Constant", {}, {"c"}, onnx::TensorAttribute("value", Floats({2}, {10, 20})))
      .Output("y");
  WriteModel("m.onnx", maker);
  const std::string sentence =
      "several constants are called \"c\"; the last of a name counts, as in onnxruntime";
  const JsonValue run = RunJson(0, {"run", "m.onnx", "x=[1,1]"});
  EXPECT_EQ(Text(run, {"outputs", "0", "values"}), "[11,21]");
  EXPECT_EQ(Text(run, {"warnings", "0"}), sentence);
  EXPECT_EQ(Text(RunJson(0, {"check", "m.onnx"}), {"warnings", "0"}), sentence);
  EXPECT_EQ(Run({"check", "m.onnx"}).err, "anydml: note: " + sentence + "\n");
  WriteModel("m.onnx", Layer());
  EXPECT_EQ(Text(RunJson(0, {"check", "m.onnx"}), {"warnings"}), "[]");
}

TEST_F(CliOnnxTest, ChecksForTheLevelThatGraphsNeed) {
  WriteModel(
      "m.onnx",
      ModelMaker(13).Input("x", ElementType::kFloat, {1, 1, 1, 2}).Node("Relu", {"x"}, {"y"}).Output("y"));
  EXPECT_EQ(Text(RunJson(0, {"check", "m.onnx"}), {"lowestFeatureLevel"}), "2.1");
  EXPECT_EQ(Run({"run", "m.onnx", "--feature-level", "2.1"}).exit_code, 0);
  EXPECT_NE(RunFailing(1, {"run", "m.onnx", "--feature-level", "2.0"}).find("graphs need feature level 2.1"),
            std::string::npos);
}

// Nested loops, each of which runs practically forever.
ModelMaker Loops() {
  const auto body = [](onnx::NodeProto node) {
    onnx::GraphProto graph;
    graph.inputs = {onnx::Declared("i", ElementType::kInt64, {}), onnx::Declared("c", ElementType::kBool, {}),
                    onnx::Declared("s", ElementType::kFloat, {})};
    onnx::NodeProto keep;
    keep.type = "Identity";
    keep.inputs = {"c"};
    keep.outputs = {"go_on"};
    graph.nodes = {keep, std::move(node)};
    graph.outputs = {onnx::Declared("go_on", ElementType::kBool, {}),
                     onnx::Declared("t", ElementType::kFloat, {})};
    return graph;
  };
  onnx::NodeProto add, inner;
  add.type = "Add";
  add.inputs = {"s", "one"};
  add.outputs = {"t"};
  inner.type = "Loop";
  inner.name = "inner";
  inner.inputs = {"few", "", "s"};
  inner.outputs = {"t"};
  inner.attributes = {onnx::GraphAttribute("body", body(add))};
  const int64_t few = 7, many = int64_t{1} << 62;
  ModelMaker maker(13);
  maker.Input("x", ElementType::kFloat, {})
      .Weight("one", Floats({}, {1}))
      .Weight("few", onnx::Int64Tensor({}, {&few, 1}))
      .Weight("many", onnx::Int64Tensor({}, {&many, 1}))
      .Node("Loop", {"many", "", "x"}, {"y"}, onnx::GraphAttribute("body", body(inner)))
      .Output("y");
  maker.model.graph.nodes[0].name = "outer";
  return maker;
}

TEST_F(CliOnnxTest, LoopsEnd) {
  WriteModel("m.onnx", Loops());
  const CliResult result = Run({"run", "m.onnx"}, {"ANYDML_ONNX_ITERATIONS=100"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(
      result.err,
      "anydml: Loop-13 (\"outer\"): Loop-13 (\"inner\"): the model's loops have run 100 iterations "
      "together, the most that are allowed in a run; ANYDML_ONNX_ITERATIONS=N in the environment allows "
      "N\n");
  EXPECT_NE(Run({"run", "m.onnx"}, {"ANYDML_ONNX_ITERATIONS=1e3"})
                .err.find("ANYDML_ONNX_ITERATIONS is \"1e3\"; a number of iterations is allowed"),
            std::string::npos);
}

TEST_F(CliOnnxTest, SaysWhatWasNotChecked) {
  WriteModel("m.onnx", Loops());
  const JsonValue document = RunJson(0, {"check", "m.onnx"});
  EXPECT_EQ(Text(document, {"namesOnly"}),
            "the host runs Loop-13 (\"outer\"), and what it gives is known only then");
  EXPECT_EQ(Run({"check", "m.onnx"}).out.find("sizes depend"), std::string::npos);
  WriteModel("m.onnx", Layer());
  EXPECT_EQ(Text(RunJson(0, {"check", "m.onnx"}), {"namesOnly"}),
            "the sizes of input \"x\" are not known (--shapes gives them)");
}

}  // namespace
}  // namespace anydml::client
