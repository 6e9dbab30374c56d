// `anydml graph`: a model's dispatches as one graph.
#include "cli_test_util.h"

namespace anydml::client {
namespace {

class CliGraphTest : public CliTest {
 protected:
  // Buffers a to d of four elements; "twice" doubles all of them, "head" the first two.
  void WriteModel(const std::string& commands) const {
    std::string resources;
    for (const char* name : {"a", "b", "c", "d"}) {
      resources += (resources.empty() ? "\"" : ", \"") + std::string(name) +
                   R"(": { "initialValuesDataType": "FLOAT32", "initialValues": [1, 2, 3, 4] })";
    }
    const auto scale = [](const std::string& name, const std::string& size) {
      const std::string tensor = R"({ "DataType": "FLOAT32", "Sizes": [)" + size + "] }";
      return "\"" + name + R"(": { "type": "ELEMENT_WISE_IDENTITY", "desc": { "InputTensor": )" + tensor +
             R"(, "OutputTensor": )" + tensor + R"(, "ScaleBias": { "Scale": 2, "Bias": 0 } } })";
    };
    WriteBytes("m.json", "{ \"resources\": {" + resources + "}, \"dispatchables\": {" + scale("twice", "4") +
                             ", " + scale("head", "2") + "}, \"commands\": [" + commands + "] }");
  }
  static std::string Dispatch(const std::string& op, const std::string& from, const std::string& to) {
    return R"({ "type": "dispatch", "dispatchable": ")" + op + R"(", "bindings": { "InputTensor": )" + from +
           R"(, "OutputTensor": )" + to + " } }";
  }
  static std::string Dispatch(const std::string& op, char from, char to) {
    return Dispatch(op, std::string("\"") + from + '"', std::string("\"") + to + '"');
  }
  static std::string Print(char buffer) {
    return std::string(R"({ "type": "print", "resource": ")") + buffer + "\" }";
  }
};

TEST_F(CliGraphTest, Chain) {
  WriteModel(Dispatch("twice", 'a', 'b') + ", " + Dispatch("twice", 'b', 'c') + ", " + Print('c'));
  const CliResult result = Run({"graph", "m.json", "--adapter", "cpu"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(
      result.out,
      "m.json as one graph: 2 nodes, 1 input, 1 output\n"
      "  node 0 \"twice\" (ELEMENT_WISE_IDENTITY): a (FLOAT32 [4]) -> b (FLOAT32 [4])\n"
      "  node 1 \"twice\" (ELEMENT_WISE_IDENTITY): b (FLOAT32 [4]) -> c (FLOAT32 [4])\n"
      "compiled for cpu: 1 step, 0 bytes of temporary and 0 of persistent memory\n"
      "  node 0 \"twice\" (ELEMENT_WISE_IDENTITY) + node 1 \"twice\" (ELEMENT_WISE_IDENTITY), cpu.tiles: "
      "a (16 bytes) -> c (16 bytes)\n");
  const CliResult why = Run({"graph", "m.json", "--adapter", "cpu", "--why"});
  EXPECT_NE(why.out.find("what was done\n  fuse: node 0"), std::string::npos) << why.out;
  const CliResult apart = Run({"graph", "m.json", "--adapter", "cpu"}, {"ANYDML_GRAPH_WITHOUT=all"});
  EXPECT_NE(apart.out.find("compiled for cpu: 2 steps"), std::string::npos) << apart.out;
}

TEST_F(CliGraphTest, Dot) {
  WriteModel(Dispatch("twice", 'a', 'b') + ", " + Dispatch("twice", 'b', 'c'));
  const CliResult result = Run({"graph", "m.json", "--adapter", "cpu", "--dot"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, R"dot(digraph graphs {
  fontname="sans-serif";
  node [fontname="sans-serif"];
  edge [fontname="sans-serif", fontsize=10];
  subgraph cluster_g0 {
    label="m.json as one graph: 2 nodes, 1 input, 1 output";
    g0_step0 [shape=box, label="node 0 \"twice\" (ELEMENT_WISE_IDENTITY)"];
    g0_input0 [shape=ellipse, label="a"];
    g0_input0 -> g0_step0 [label="FLOAT32 [4]"];
    g0_step1 [shape=box, label="node 1 \"twice\" (ELEMENT_WISE_IDENTITY)"];
    g0_step0 -> g0_step1 [label="FLOAT32 [4]"];
    g0_output0 [shape=ellipse, label="c"];
    g0_step1 -> g0_output0 [label="FLOAT32 [4]"];
  }
  subgraph cluster_g1 {
    label="compiled for cpu: 1 step, 0 bytes of temporary and 0 of persistent memory";
    g1_step0 [shape=box, label="node 0 \"twice\" (ELEMENT_WISE_IDENTITY)\nnode 1 \"twice\" (ELEMENT_WISE_IDENTITY)\ncpu.tiles"];
    g1_input0 [shape=ellipse, label="a"];
    g1_input0 -> g1_step0 [label="16 bytes"];
    g1_output0 [shape=ellipse, label="c"];
    g1_step0 -> g1_output0 [label="16 bytes"];
  }
}
)dot");
  EXPECT_EQ(Text(RunJson(0, {"graph", "m.json", "--adapter", "cpu", "--dot"}), {"text"}), result.out);
}

// A buffer that a command prints is an output, even if a later dispatch reads or replaces it.
TEST_F(CliGraphTest, Outputs) {
  WriteModel(Dispatch("twice", 'a', 'b') + ", " + Print('b') + ", " + Dispatch("twice", 'b', 'b') + ", " +
             Dispatch("head", 'b', 'b'));
  EXPECT_NE(
      RunFailing(1, {"graph", "m.json"})
          .find("commands[3]: reads bytes 0 to 7 of 'b', of which 'twice' writes 0 to 15; edges of graphs "
                "have whole tensors"),
      std::string::npos);
  WriteModel(Dispatch("twice", 'a', 'b') + ", " + Print('b') + ", " + Dispatch("twice", 'b', 'b') + ", " +
             Dispatch("head", 'c', 'b') + ", " + Dispatch("head", 'b', 'd'));
  const JsonValue document = RunJson(0, {"graph", "m.json", "--adapter", "cpu"});
  EXPECT_EQ(Text(document, {"nodes", "3", "inputs"}), "[b]");
  EXPECT_EQ(Text(document, {"nodes", "3", "outputs"}), "[d]");
  const CliResult result = Run({"graph", "m.json", "--adapter", "cpu"});
  EXPECT_NE(result.out.find("4 nodes, 2 inputs, 3 outputs\n"), std::string::npos) << result.out;
  // After a part of a tensor is replaced, the rest is no longer a tensor.
  WriteModel(Dispatch("twice", 'a', 'b') + ", " + Dispatch("head", 'c', 'b') + ", " +
             Dispatch("twice", 'b', 'd'));
  EXPECT_NE(RunFailing(1, {"graph", "m.json"}).find("of which 'head' writes 0 to 7"), std::string::npos);
  WriteModel(Dispatch("twice", 'a', 'b') + ", " + Dispatch("head", 'c', 'b') + ", " +
             Dispatch("head", R"({ "name": "b", "elementOffset": 2 })", "\"d\""));
  EXPECT_NE(RunFailing(1, {"graph", "m.json"}).find("of which 'twice' writes 0 to 15"), std::string::npos);
}

TEST_F(CliGraphTest, OwnedTensorsAreInputs) {
  const std::string model = std::string(ANYDML_EXAMPLE_MODELS) + "/block.json";
  const JsonValue document = RunJson(0, {"graph", model, "--adapter", "cpu", "--why"});
  EXPECT_EQ(Text(document, {"adapter"}), "cpu");
  EXPECT_EQ(Text(document, {"nodes", "0", "inputs"}), "[x,weights,null]");
  EXPECT_EQ(Text(document, {"steps", "0", "inputs"}), "[x,weights,bias]");
  EXPECT_NE(Text(document, {"explanation", "0"}).find("is done by node 0"), std::string::npos);
}

TEST_F(CliGraphTest, Refusals) {
  WriteModel("");
  EXPECT_NE(RunFailing(1, {"graph", "m.json"}).find("m.json: the model dispatches nothing"),
            std::string::npos);
  WriteModel(Dispatch("twice", 'a', 'b'));
  EXPECT_NE(RunFailing(1, {"graph", "m.json", "--feature-level", "1.0"}).find("dispatchables.twice: "),
            std::string::npos);
  RunFailing(2, {"graph"});
  RunFailing(2, {"graph", "m.json", "--dott"});
  RunFailing(1, {"graph", "none.json"});
  EXPECT_NE(RunFailing(2, {"graph", "m.onnx"}).find("graph takes models in JSON"), std::string::npos);
  EXPECT_NE(RunFailing(2, {"bench", "m.onnx"}).find("`anydml run m.onnx --repeat 100`"), std::string::npos);
}

}  // namespace
}  // namespace anydml::client
