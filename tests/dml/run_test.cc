// Complete runs of operators through the public API: the examples of DirectML's pages, owned inputs, in-place
// bindings.
#include "dml/dml_test.h"

namespace anydml::test {
namespace {

class RunTest : public DmlTest {};

void ExpectTopK(DmlHarness& h, const TopK& op, const std::vector<float>& input,
                const std::vector<float>& values, const std::vector<uint32_t>& indices,
                const std::vector<bool>& owned = {}) {
  const auto results =
      h.Run(DML_OPERATOR_TOP_K1, &op.desc, {ToBytes(input)}, {op.values.bytes(), op.indices.bytes()}, owned);
  EXPECT_EQ(FromBytes<float>(results[0], values.size()), values);
  EXPECT_EQ(FromBytes<uint32_t>(results[1], indices.size()), indices);
}

const std::vector<float> kDistinct = {0, 1, 10, 11, 3, 2, 9, 8, 4, 5, 6, 7};
const std::vector<float> kTied = {1, 2, 2, 3, 3, 4, 5, 5, 6, 6, 6, 6};

TEST_F(RunTest, TopK1Example1) {
  ExpectTopK(h(), TopK({1, 1, 3, 4}, 3, 2), kDistinct, {11, 10, 9, 8, 7, 6}, {3, 2, 2, 3, 3, 2});
}

TEST_F(RunTest, TopK1Example2AnotherAxis) {
  ExpectTopK(h(), TopK({1, 1, 3, 4}, 2, 2), kDistinct, {4, 5, 10, 11, 3, 2, 9, 8}, {2, 2, 0, 0, 1, 1, 1, 1});
}

TEST_F(RunTest, TopK1Example3Ties) {
  ExpectTopK(h(), TopK({1, 1, 3, 4}, 3, 3), kTied, {3, 2, 2, 5, 5, 4, 6, 6, 6}, {3, 1, 2, 2, 3, 1, 0, 1, 2});
}

TEST_F(RunTest, TopK1Example4Increasing) {
  ExpectTopK(h(), TopK({1, 1, 3, 4}, 3, 3, DML_AXIS_DIRECTION_INCREASING), kTied, {1, 2, 2, 3, 4, 5, 6, 6, 6},
             {0, 1, 2, 0, 1, 2, 0, 1, 2});
}

TEST_F(RunTest, TopK) {
  TopK op({1, 1, 3, 4}, 3, 2);
  const DML_TOP_K_OPERATOR_DESC desc = {op.desc.InputTensor, op.desc.OutputValueTensor,
                                        op.desc.OutputIndexTensor, 3, 2};
  const auto results = h().Run(DML_OPERATOR_TOP_K, &desc, {ToBytes(kDistinct)}, {24, 24});
  EXPECT_EQ(FromBytes<float>(results[0], 6), (std::vector<float>{11, 10, 9, 8, 7, 6}));
}

TEST_F(RunTest, TopK1OwnedInput) {
  ExpectTopK(h(), TopK({1, 1, 3, 4}, 3, 2, DML_AXIS_DIRECTION_DECREASING, DML_TENSOR_FLAG_OWNED_BY_DML),
             kDistinct, {11, 10, 9, 8, 7, 6}, {3, 2, 2, 3, 3, 2}, {true});
}

TEST_F(RunTest, ScatterNdPageExample) {
  const auto op = ScatterNd::Page();
  const auto results = h().Run(DML_OPERATOR_SCATTER_ND, &op.desc,
                               {ToBytes(kPageInput), ToBytes(kPageIndices), ToBytes(kPageUpdates)}, {32});
  EXPECT_EQ(FromBytes<float>(results[0], 8), kPageOutput);
}

TEST_F(RunTest, ScatterNdPageSizesInFiveDimensions) {
  ScatterNd op({3, 4, 5, 6, 7}, {1, 1, 1, 2, 3}, {1, 1, 2, 6, 7}, 5, 3);
  std::vector<float> input(3 * 4 * 5 * 6 * 7);
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i);
  const std::vector<uint32_t> indices = {2, 3, 4, 0, 1, 2};
  std::vector<float> updates(2 * 6 * 7);
  for (size_t i = 0; i < updates.size(); ++i) updates[i] = -1.0f - static_cast<float>(i);
  auto expected = input;
  const size_t targets[] = {((2 * 4 + 3) * 5 + 4) * 42, ((0 * 4 + 1) * 5 + 2) * 42};
  for (size_t t = 0; t < 2; ++t) {
    for (size_t i = 0; i < 42; ++i) expected[targets[t] + i] = updates[t * 42 + i];
  }
  const auto results = h().Run(DML_OPERATOR_SCATTER_ND, &op.desc,
                               {ToBytes(input), ToBytes(indices), ToBytes(updates)}, {op.output.bytes()});
  EXPECT_EQ(FromBytes<float>(results[0], expected.size()), expected);
}

TEST_F(RunTest, ScatterNdOwnedInputs) {
  for (int mask = 1; mask < 8; ++mask) {
    std::vector<DML_TENSOR_FLAGS> flags;
    std::vector<bool> owned;
    for (int i = 0; i < 3; ++i) {
      owned.push_back((mask >> i & 1) != 0);
      flags.push_back(owned[i] ? DML_TENSOR_FLAG_OWNED_BY_DML : DML_TENSOR_FLAG_NONE);
    }
    const auto op = ScatterNd::Page(flags);
    const auto results =
        h().Run(DML_OPERATOR_SCATTER_ND, &op.desc,
                {ToBytes(kPageInput), ToBytes(kPageIndices), ToBytes(kPageUpdates)}, {32}, owned);
    EXPECT_EQ(FromBytes<float>(results[0], 8), kPageOutput) << mask;
  }
}

TEST_F(RunTest, ScatterElements) {
  Tensor input(DML_TENSOR_DATA_TYPE_FLOAT32, {2, 3});
  Tensor indices(DML_TENSOR_DATA_TYPE_INT32, {2, 2});
  Tensor updates(DML_TENSOR_DATA_TYPE_FLOAT32, {2, 2});
  Tensor output(DML_TENSOR_DATA_TYPE_FLOAT32, {2, 3});
  const DML_SCATTER_OPERATOR_DESC desc = {input.desc(), indices.desc(), updates.desc(), output.desc(), 1};
  const auto results = h().Run(
      DML_OPERATOR_SCATTER_ELEMENTS, &desc,
      {ToBytes<float>({1, 2, 3, 4, 5, 6}), ToBytes<int32_t>({2, -3, 1, 1}), ToBytes<float>({7, 8, 9, 10})},
      {output.bytes()});
  EXPECT_EQ(FromBytes<float>(results[0], 6), (std::vector<float>{8, 2, 7, 4, 10, 6}));
}

TEST_F(RunTest, Identity) {
  const Identity op({1, 1, 2, 3});
  const std::vector<float> input = {1, 2, 3, 4, 5, 6};
  const auto results = h().Run(DML_OPERATOR_ELEMENT_WISE_IDENTITY, &op.desc, {ToBytes(input)}, {24});
  EXPECT_EQ(FromBytes<float>(results[0], 6), input);
}

TEST_F(RunTest, ScatterNdInPlace) {
  const auto op = ScatterNd::Page();
  auto compiled = h().Compile(DML_OPERATOR_SCATTER_ND, &op.desc);
  h().Initialize(compiled.Get());
  auto data = h().Upload(kPageInput);
  auto indices = h().Upload(kPageIndices);
  auto updates = h().Upload(kPageUpdates);
  h().Dispatch(compiled.Get(), {{data.Get()}, {indices.Get()}, {updates.Get()}}, {{data.Get()}});
  ASSERT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK) << LastError();
  EXPECT_EQ(h().Download<float>(data.Get(), 8), kPageOutput);
}

TEST_F(RunTest, IdentityInPlaceWithScale) {
  Identity op({1, 1, 2, 3});
  const DML_SCALE_BIAS scale_bias = {2, 1};
  op.desc.ScaleBias = &scale_bias;
  auto compiled = h().Compile(DML_OPERATOR_ELEMENT_WISE_IDENTITY, &op.desc);
  h().Initialize(compiled.Get());
  auto data = h().Upload<float>({1, 2, 3, 4, 5, 6});
  h().Dispatch(compiled.Get(), {{data.Get()}}, {{data.Get()}});
  ASSERT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK) << LastError();
  EXPECT_EQ(h().Download<float>(data.Get(), 6), (std::vector<float>{3, 5, 7, 9, 11, 13}));
}

TEST_F(RunTest, OffsetsInsideOneBuffer) {
  const Identity op({1, 1, 1, 4});
  auto compiled = h().Compile(DML_OPERATOR_ELEMENT_WISE_IDENTITY, &op.desc);
  h().Initialize(compiled.Get());
  auto data = h().Upload<float>({0, 0, 0, 0, 1, 2, 3, 4, 9, 9, 9, 9, 9, 9, 9, 9});
  h().Dispatch(compiled.Get(), {{data.Get(), 16, 16}}, {{data.Get(), 32, 16}});
  EXPECT_EQ(h().Download<float>(data.Get(), 16),
            (std::vector<float>{0, 0, 0, 0, 1, 2, 3, 4, 1, 2, 3, 4, 9, 9, 9, 9}));
}

TEST_F(RunTest, OneInitializationManyDispatches) {
  const TopK op({1, 1, 1, 4}, 3, 1);
  auto compiled = h().Compile(DML_OPERATOR_TOP_K1, &op.desc);
  h().Initialize(compiled.Get());
  for (float top = 1; top < 5; ++top) {
    auto input = h().Upload<float>({0, top, -1, 0.5f});
    auto values = h().CreateBuffer(16);
    auto indices = h().CreateBuffer(16);
    h().Dispatch(compiled.Get(), {{input.Get()}}, {{values.Get()}, {indices.Get()}});
    EXPECT_EQ(h().Download<float>(values.Get(), 1)[0], top);
    EXPECT_EQ(h().Download<uint32_t>(indices.Get(), 1)[0], 1u);
  }
}

// Only the compiled operator, the buffers and the heap must outlive the dispatch.
TEST_F(RunTest, TableAndRecorderMayGoAfterRecording) {
  const Identity op({1, 1, 1, 4});
  auto compiled = h().Compile(DML_OPERATOR_ELEMENT_WISE_IDENTITY, &op.desc);
  h().Initialize(compiled.Get());
  auto input = h().Upload<float>({0, 5, -1, 0.5f});
  auto output = h().CreateBuffer(16);
  {
    auto table = h().CreateTable(compiled.Get());
    const Bindings inputs({{input.Get()}}), outputs({{output.Get()}});
    table->BindInputs(inputs.count(), inputs.data());
    table->BindOutputs(outputs.count(), outputs.data());
    ComPtr<IDMLCommandRecorder> recorder;
    ASSERT_EQ(h().dml()->CreateCommandRecorder(IID_PPV_ARGS(&recorder)), S_OK);
    recorder->RecordDispatch(h().list(), compiled.Get(), table.Get());
    ASSERT_EQ(table->Reset(nullptr), S_OK);
  }
  h().ExecuteAndWait();
  EXPECT_EQ(h().Download<float>(output.Get(), 4), (std::vector<float>{0, 5, -1, 0.5f}));
}

// A custom heap with the properties of a default heap works as well.
TEST_F(RunTest, CustomHeap) {
  const D3D12_HEAP_PROPERTIES heap = h().d3d()->GetCustomHeapProperties(0, D3D12_HEAP_TYPE_DEFAULT);
  ASSERT_EQ(heap.Type, D3D12_HEAP_TYPE_CUSTOM);
  const Identity op({1, 1, 1, 4});
  auto compiled = h().Compile(DML_OPERATOR_ELEMENT_WISE_IDENTITY, &op.desc);
  h().Initialize(compiled.Get());
  auto input = h().Upload<float>({1, 2, 3, 4});
  const D3D12_RESOURCE_DESC desc = input->GetDesc();
  ComPtr<ID3D12Resource> output;
  Check(h().d3d()->CreateCommittedResource(&heap, D3D12_HEAP_FLAG_NONE, &desc, D3D12_RESOURCE_STATE_COMMON,
                                           nullptr, IID_PPV_ARGS(&output)),
        "CreateCommittedResource");
  h().Dispatch(compiled.Get(), {{input.Get()}}, {{output.Get()}});
  ASSERT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK) << LastError();
  EXPECT_EQ(h().Download<float>(output.Get(), 4), (std::vector<float>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace anydml::test
