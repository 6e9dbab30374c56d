// The debug layer's messages about graphs that are valid but suspicious, and about their data; information
// about compiled graphs.
#include "dml/graph_test.h"

namespace anydml::test {
namespace {

class GraphDebugTest : public GraphTest {
 protected:
  struct Message {
    D3D12_MESSAGE_SEVERITY severity;
    std::string text;
  };

  void SetUp() override {
    GraphTest::SetUp();
    MakeHarness(DML_CREATE_DEVICE_FLAG_DEBUG);
    Check(h().d3d()->QueryInterface(IID_PPV_ARGS(&queue_)), "QueryInterface(ID3D12InfoQueue)");
    queue_->ClearStoredMessages();
    ::testing::internal::CaptureStderr();
  }
  void TearDown() override {
    ::testing::internal::GetCapturedStderr();
    queue_.Reset();
    GraphTest::TearDown();
  }

  std::vector<Message> TakeMessages() {
    std::vector<Message> messages;
    for (UINT64 i = 0; i < queue_->GetNumStoredMessages(); ++i) {
      SIZE_T size = 0;
      queue_->GetMessage(i, nullptr, &size);
      std::vector<uint64_t> storage(size / sizeof(uint64_t) + 1);
      auto* message = reinterpret_cast<D3D12_MESSAGE*>(storage.data());
      Check(queue_->GetMessage(i, message, &size), "GetMessage");
      messages.push_back({message->Severity, message->pDescription});
    }
    queue_->ClearStoredMessages();
    return messages;
  }
  void ExpectWarning(const Message& message, const std::string& text) {
    EXPECT_EQ(message.severity, D3D12_MESSAGE_SEVERITY_WARNING);
    EXPECT_EQ(message.text, text);
  }

 private:
  ComPtr<ID3D12InfoQueue> queue_;
};

TEST_F(GraphDebugTest, UnusedConstantsAndEqualNames) {
  const float one = 1;
  GraphBuilder graph;
  const UINT first = graph.Operator(Scale({4}, 1, 1), "scale");
  const UINT second = graph.Operator(Scale({4}, 1, 1), "scale");
  const UINT third = graph.Operator(Scale({4}, 1, 1), "scale");
  graph.Constant(&one, 4, "one");
  graph.Input(0, first, 0).Edge(first, 0, second, 0).Edge(second, 0, third, 0).Output(third, 0, 0);
  graph.Compile(h().dml());
  const std::vector<Message> messages = TakeMessages();
  ASSERT_EQ(messages.size(), 2u);
  ExpectWarning(messages[0],
                "IDMLDevice1::CompileGraph: node 3 \"one\" (CONSTANT): nobody reads the constant");
  ExpectWarning(messages[1], "IDMLDevice1::CompileGraph: nodes 0 and 1 have the same name \"scale\"");
}

TEST_F(GraphDebugTest, ABufferForAnInputWithoutAnEdge) {
  GraphBuilder graph;
  const UINT scale = graph.Operator(Scale({2}, 2, 0));
  graph.Input(1, scale, 0).Output(scale, 0, 0);
  const auto compiled = graph.Compile(h().dml());
  const auto buffer = h().Upload(std::vector<float>{1, 2}), output = h().CreateBuffer(8);
  h().Initialize(compiled.Get());
  h().Dispatch(compiled.Get(), {{}, {buffer.Get()}}, {{output.Get()}});
  EXPECT_EQ(TakeMessages().size(), 0u);
  h().Dispatch(compiled.Get(), {{output.Get()}, {buffer.Get()}}, {{output.Get()}});
  const std::vector<Message> messages = TakeMessages();
  ASSERT_EQ(messages.size(), 1u);
  ExpectWarning(
      messages[0],
      "IDMLBindingTable::BindInputs: bindings[0]: graph input 0 of the graph: a buffer is bound but "
      "there is no edge");
  EXPECT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK) << LastError();
}

TEST_F(GraphDebugTest, Muted) {
  GraphBuilder graph;
  const UINT first = graph.Operator(Scale({4}, 1, 1), "scale");
  const UINT second = graph.Operator(Scale({4}, 1, 1), "scale");
  graph.Input(0, first, 0).Edge(first, 0, second, 0).Output(second, 0, 0);
  ComPtr<IDMLDebugDevice> debug;
  ASSERT_EQ(h().dml()->QueryInterface(IID_PPV_ARGS(&debug)), S_OK);
  debug->SetMuteDebugOutput(TRUE);
  graph.Compile(h().dml());
  EXPECT_EQ(TakeMessages().size(), 0u);
  debug->SetMuteDebugOutput(FALSE);
  graph.Compile(h().dml());
  EXPECT_EQ(TakeMessages().size(), 1u);
}

TEST_F(GraphDebugTest, DataErrorsNameTheNode) {
  const Tensor input(kFloat, {4}), indices(DML_TENSOR_DATA_TYPE_UINT32, {2}), output(kFloat, {2});
  const DML_GATHER_OPERATOR_DESC gather = {input.desc(), indices.desc(), output.desc(), 0, 1};
  GraphBuilder graph;
  const UINT scale = graph.Operator(Scale({4}, 2, 0), "scale");
  const UINT pick = graph.Operator(h().CreateOperator(DML_OPERATOR_GATHER, &gather), "pick");
  graph.Input(0, scale, 0).Edge(scale, 0, pick, 0).Input(1, pick, 1).Output(pick, 0, 0);
  const auto compiled = graph.Compile(h().dml());
  const auto values = h().Upload(std::vector<float>{1, 2, 3, 4});
  const auto wrong = h().Upload(std::vector<uint32_t>{1, 99});
  const auto picked = h().CreateBuffer(8);
  h().Initialize(compiled.Get());
  h().Dispatch(compiled.Get(), {{values.Get()}, {wrong.Get()}}, {{picked.Get()}});
  const std::vector<Message> messages = TakeMessages();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].text.rfind("node 1 \"pick\" (GATHER)", 0), 0u) << messages[0].text;
  EXPECT_NE(messages[0].text.find("99"), std::string::npos) << messages[0].text;
}

// The remaining nodes, and the locations of their tensors.
TEST_F(GraphDebugTest, Steps) {
  const std::vector<float> bias = {1, 2, 3, 4};
  GraphBuilder graph;
  const UINT scale = graph.Operator(Scale({4}, 2, 0), "scale");
  const UINT shift = graph.Operator(Add({4}), "shift");
  const UINT constant = graph.Constant(bias.data(), 16);
  graph.Input(0, scale, 0).Edge(scale, 0, shift, 0).Edge(constant, 0, shift, 1).Output(shift, 0, 0);
  const auto compiled = graph.Compile(h().dml());
  ASSERT_EQ(AnyDmlGetStepCount(compiled.Get()), 1u);
  AnyDmlStep step;
  ASSERT_EQ(AnyDmlGetStep(compiled.Get(), 0, &step), S_OK);
  EXPECT_STREQ(step.Name, "node 0 \"scale\" (ELEMENT_WISE_IDENTITY) + node 1 \"shift\" (ELEMENT_WISE_ADD)");
  EXPECT_STRNE(step.Implementation, "");
  ASSERT_EQ(step.InputCount, 2u);
  ASSERT_EQ(step.OutputCount, 1u);
  const uint32_t places[] = {ANYDML_PLACE_INPUT, ANYDML_PLACE_CONSTANT, ANYDML_PLACE_OUTPUT};
  AnyDmlStepTensor tensor;
  for (uint32_t i = 0; i < 3; ++i) {
    ASSERT_EQ(AnyDmlGetStepTensor(compiled.Get(), 0, i, &tensor), S_OK);
    EXPECT_EQ(tensor.Place, places[i]) << i;
    EXPECT_EQ(tensor.Bytes, 16u) << i;
  }
  EXPECT_EQ(AnyDmlGetStepTensor(compiled.Get(), 0, 3, &tensor), E_INVALIDARG);
  EXPECT_EQ(AnyDmlGetStep(compiled.Get(), 1, &step), E_INVALIDARG);
  EXPECT_EQ(AnyDmlGetStep(compiled.Get(), 0, nullptr), E_INVALIDARG);
  EXPECT_EQ(AnyDmlGetStepCount(nullptr), 0u);
}

}  // namespace
}  // namespace anydml::test
