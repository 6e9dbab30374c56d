// Invalid graphs and the error messages of CompileGraph.
#include "dml/graph_test.h"

namespace anydml::test {
namespace {

class GraphRulesTest : public GraphTest {
 protected:
  void ExpectRefused(const GraphBuilder& graph, const std::string& sentence) {
    ComPtr<IDMLCompiledOperator> compiled;
    ExpectFailure(graph.TryCompile(h().dml(), &compiled), E_INVALIDARG, "CompileGraph: " + sentence);
    EXPECT_EQ(compiled, nullptr);
  }

  // x -> "first" -> "second" -> y
  GraphBuilder Chain() {
    GraphBuilder graph;
    const UINT first = graph.Operator(Scale({4}, 1, 1), "first");
    const UINT second = graph.Operator(Scale({4}, 1, 1), "second");
    graph.Input(0, first, 0).Edge(first, 0, second, 0, "link").Output(second, 0, 0);
    return graph;
  }
};

TEST_F(GraphRulesTest, Description) {
  ComPtr<IDMLDevice1> device;
  ASSERT_EQ(h().dml()->QueryInterface(IID_PPV_ARGS(&device)), S_OK);
  ComPtr<IDMLCompiledOperator> compiled;
  ExpectFailure(device->CompileGraph(nullptr, DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&compiled)), E_INVALIDARG,
                "desc is null");
  DML_GRAPH_DESC desc = {};
  const auto refused = [&](const char* sentence) {
    ExpectFailure(device->CompileGraph(&desc, DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&compiled)), E_INVALIDARG,
                  std::string("CompileGraph: ") + sentence);
  };
  refused("NodeCount is 0; a graph needs at least one operator");
  const GraphBuilder graph = Chain();
  desc = graph.desc();
  desc.Nodes = nullptr;
  refused("Nodes is null but NodeCount is 2");
  desc = graph.desc();
  desc.InputEdges = nullptr;
  refused("InputEdges is null but InputEdgeCount is 1");
  desc = graph.desc();
  desc.OutputEdges = nullptr;
  refused("OutputEdges is null but OutputEdgeCount is 1");
  desc = graph.desc();
  desc.IntermediateEdges = nullptr;
  refused("IntermediateEdges is null but IntermediateEdgeCount is 1");
  desc = graph.desc();
  desc.OutputCount = 0;
  refused("OutputCount is 0");
  desc = graph.desc();
  desc.OutputEdgeCount = 0;
  refused("there is no output edge");
  desc = graph.desc();
  desc.InputCount = UINT_MAX;
  refused("InputCount is 4294967295");
  desc = graph.desc();
  EXPECT_EQ(device->CompileGraph(&desc, DML_EXECUTION_FLAG_NONE, __uuidof(IDMLCompiledOperator), nullptr),
            S_FALSE);
  void* out = nullptr;
  EXPECT_EQ(device->CompileGraph(&desc, DML_EXECUTION_FLAG_NONE, __uuidof(IDMLOperator), &out),
            E_NOINTERFACE);
  EXPECT_EQ(device->CompileGraph(&desc, static_cast<DML_EXECUTION_FLAGS>(64), IID_PPV_ARGS(&compiled)),
            E_INVALIDARG);
}

TEST_F(GraphRulesTest, Nodes) {
  GraphBuilder graph = Chain();
  graph.nodes[1].Type = static_cast<DML_GRAPH_NODE_TYPE>(7);
  ExpectRefused(graph,
                "node 1: Type is 7; allowed are OPERATOR (1) and, from feature level 6.2, CONSTANT (2)");
  graph = Chain();
  graph.nodes[1].Desc = nullptr;
  ExpectRefused(graph, "node 1: Desc is null");
  graph = Chain();
  graph.Operator(static_cast<IDMLOperator*>(nullptr), "none");
  ExpectRefused(graph, "node 2 \"none\": Operator is null");
  graph = Chain();
  graph.Constant(nullptr, 4, "zp");
  ExpectRefused(graph, "node 2 \"zp\": Data is null");
  graph = Chain();
  graph.Constant("abc", 0, "zp");
  ExpectRefused(graph, "node 2 \"zp\": DataSize is 0");
}

TEST_F(GraphRulesTest, OperatorOfAnotherDevice) {
  GraphBuilder graph = Chain();
  DmlHarness other(h().d3d(), DML_CREATE_DEVICE_FLAG_NONE);
  ComPtr<IDMLCompiledOperator> compiled;
  ExpectFailure(graph.TryCompile(other.dml(), &compiled), E_INVALIDARG,
                "CompileGraph: node 0 \"first\": Operator belongs to another device");
}

TEST_F(GraphRulesTest, Edges) {
  GraphBuilder graph = Chain();
  graph.in[0].Type = DML_GRAPH_EDGE_TYPE_INTERMEDIATE;
  ExpectRefused(graph, "input edge 0: Type is INTERMEDIATE; elements of InputEdges must be INPUT");
  graph = Chain();
  graph.between[0].Desc = nullptr;
  ExpectRefused(graph, "intermediate edge 0: Desc is null");
  graph = Chain();
  graph.Input(0, 9, 0);
  ExpectRefused(graph, "input edge 1: ToNodeIndex is 9 but the graph has 2 nodes");
  graph = Chain();
  graph.Input(0, 1, 3);
  ExpectRefused(
      graph,
      "input edge 1: ToNodeInputIndex is 3 but node 1 \"second\" (ELEMENT_WISE_IDENTITY) has inputs 0 to 0");
  graph = Chain();
  graph.Input(5, 1, 0);
  graph.inputs = 3;
  ExpectRefused(graph, "input edge 1: GraphInputIndex is 5 but InputCount is 3");
  graph = Chain();
  graph.Output(0, 0, 6);
  graph.outputs = 2;
  ExpectRefused(graph, "output edge 1: GraphOutputIndex is 6 but OutputCount is 2");
  graph = Chain();
  graph.Output(0, 1, 1);
  ExpectRefused(graph,
                "output edge 1: FromNodeOutputIndex is 1 but node 0 \"first\" (ELEMENT_WISE_IDENTITY) has "
                "outputs 0 to 0");
  graph = Chain();
  graph.Edge(7, 0, 1, 0);
  ExpectRefused(graph, "intermediate edge 1: FromNodeIndex is 7 but the graph has 2 nodes");
  graph = Chain();
  graph.Input(0, 1, 0);
  ExpectRefused(
      graph,
      "input 0 (InputTensor) of node 1 \"second\" (ELEMENT_WISE_IDENTITY) is fed twice: by input edge 1 "
      "and intermediate edge 0 \"link\"");
  graph = Chain();
  graph.Output(0, 0, 0);
  ExpectRefused(graph, "graph output 0 is fed twice: by output edges 0 and 1");
}

TEST_F(GraphRulesTest, AbsentTensors) {
  const Tensor a(kFloat, {1, 1, 2, 2});
  const DML_GEMM_OPERATOR_DESC desc = {
      a.desc(), a.desc(), nullptr, a.desc(), DML_MATRIX_TRANSFORM_NONE, DML_MATRIX_TRANSFORM_NONE,
      1,        1,        nullptr};
  GraphBuilder graph;
  const UINT gemm = graph.Operator(h().CreateOperator(DML_OPERATOR_GEMM, &desc));
  graph.Input(0, gemm, 0).Input(0, gemm, 2).Output(gemm, 0, 0);
  ExpectRefused(
      graph,
      "input edge 1: input 2 (CTensor) of node 0 (GEMM) does not exist: the operator was created without it");
  GraphBuilder missing;
  missing.Operator(h().CreateOperator(DML_OPERATOR_GEMM, &desc));
  missing.Input(0, 0, 0).Output(0, 0, 0);
  ExpectRefused(missing, "input 1 (BTensor) of node 0 (GEMM) is not connected");
}

TEST_F(GraphRulesTest, Constants) {
  const float four[] = {1, 2, 3, 4};
  GraphBuilder graph = Chain();
  const UINT constant = graph.Constant(four, 16, "four");
  ComPtr<IDMLCompiledOperator> compiled;
  EXPECT_EQ(graph.TryCompile(h().dml(), &compiled), S_OK) << LastError();  // nobody reads it
  GraphBuilder unread = Chain();
  unread.Constant("abc", ~SIZE_T{0});
  EXPECT_EQ(unread.TryCompile(h().dml(), &compiled), S_OK) << LastError();
  GraphBuilder to = graph;
  to.Edge(0, 0, constant, 0);
  ExpectRefused(
      to,
      "intermediate edge 1: node 2 \"four\" (CONSTANT) is a constant; it has one output (0) and no inputs");
  GraphBuilder port = graph;
  port.Edge(constant, 1, 1, 0);
  ExpectRefused(port,
                "intermediate edge 1: FromNodeOutputIndex is 1 but node 2 \"four\" (CONSTANT) is a constant");
  GraphBuilder out = graph;
  out.Output(constant, 0, 1);
  ExpectRefused(out, "output edge 1: node 2 \"four\" (CONSTANT) is a constant");
  // Constant data is not read before its size is known to suffice for its readers.
  for (const SIZE_T bytes : {SIZE_T{12}, SIZE_T{20}, SIZE_T{1} << 28, SIZE_T{1} << 46, ~SIZE_T{0}}) {
    const float five[] = {1, 2, 3, 4, 5};
    GraphBuilder size;
    const UINT add = size.Operator(Add({4}));
    const UINT data = size.Constant(five, bytes);
    size.Input(0, add, 0).Edge(data, 0, add, 1).Output(add, 0, 0);
    ExpectRefused(size, "intermediate edge 0: the constant of node 1 (CONSTANT) has " +
                            std::to_string(bytes) +
                            " bytes, input 1 (BTensor) of node 0 (ELEMENT_WISE_ADD) needs 16");
  }
}

TEST_F(GraphRulesTest, ConstantsBelowTheirLevel) {
  ScopedEnv level("ANYDML_FEATURE_LEVEL", "5.0");
  const float one = 1;
  GraphBuilder graph = Chain();
  graph.Constant(&one, 4);
  ExpectRefused(graph, "node 2: CONSTANT needs feature level 6.2; the device has 5.0");
}

TEST_F(GraphRulesTest, CyclesAndDeadEnds) {
  GraphBuilder graph;
  for (int i = 0; i < 4; ++i) graph.Operator(Add({4}));
  graph.Input(0, 0, 0).Input(0, 0, 1);
  graph.Edge(0, 0, 1, 0).Edge(3, 0, 1, 1).Edge(1, 0, 2, 0).Edge(1, 0, 2, 1).Edge(2, 0, 3, 0).Edge(0, 0, 3, 1);
  graph.Output(3, 0, 0);
  ExpectRefused(graph, "nodes 1, 2, 3 form a cycle");
  GraphBuilder self;
  self.Operator(Add({4}), "self");
  self.Input(0, 0, 0).Edge(0, 0, 0, 1).Output(0, 0, 0);
  ExpectRefused(self, "node 0 \"self\" (ELEMENT_WISE_ADD) feeds itself");
  GraphBuilder dead = Chain();
  dead.Operator(Scale({4}, 1, 0), "dead");
  dead.Edge(0, 0, 2, 0);
  ExpectRefused(dead, "node 2 \"dead\" (ELEMENT_WISE_IDENTITY): none of its outputs leads to a graph output");
}

TEST_F(GraphRulesTest, Sizes) {
  GraphBuilder graph;
  graph.Operator(Scale({4}, 1, 0));
  graph.Operator(Scale({5}, 1, 0));
  graph.Input(0, 0, 0).Edge(0, 0, 1, 0).Output(1, 0, 0);
  ExpectRefused(graph,
                "intermediate edge 0: output 0 (OutputTensor) of node 0 (ELEMENT_WISE_IDENTITY) has "
                "TotalTensorSizeInBytes 16, input 0 (InputTensor) of node 1 (ELEMENT_WISE_IDENTITY) has 20; "
                "they must be equal");
}

TEST_F(GraphRulesTest, OwnedByDml) {
  GraphBuilder graph;
  graph.Operator(Scale({4}, 1, 0));
  graph.Operator(Add({4}, DML_TENSOR_FLAG_OWNED_BY_DML));
  graph.Input(0, 0, 0).Input(1, 1, 0).Edge(0, 0, 1, 1).Output(1, 0, 0);
  ExpectRefused(graph,
                "input 1 (BTensor) of node 1 (ELEMENT_WISE_ADD) has OWNED_BY_DML but is fed by intermediate "
                "edge 0; the flag is for tensors that come from graph inputs");
  GraphBuilder mixed;
  mixed.Operator(Add({4}, DML_TENSOR_FLAG_OWNED_BY_DML));
  mixed.Input(0, 0, 0).Input(0, 0, 1).Output(0, 0, 0);
  ExpectRefused(mixed,
                "graph input 0 feeds input 1 (BTensor) of node 0 (ELEMENT_WISE_ADD) with OWNED_BY_DML and "
                "input 0 (ATensor) of node 0 (ELEMENT_WISE_ADD) without");
}

TEST_F(GraphRulesTest, Bindings) {
  const auto compile = [&] { return Chain().Compile(h().dml()); };
  const auto input = h().CreateBuffer(16);
  {
    const auto compiled = compile();
    h().Initialize(compiled.Get());
    const auto table = h().CreateTable(compiled.Get());
    const class Bindings two({{input.Get()}, {input.Get()}});
    table->BindInputs(2, two.data());
    ExpectRemoved(h().dml(), E_INVALIDARG, "BindInputs");
  }
}

}  // namespace
}  // namespace anydml::test
