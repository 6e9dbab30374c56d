// Operator initialization: exactly once, in batches, through a reused initializer.
#include "dml/dml_test.h"

namespace anydml::test {
namespace {

constexpr DML_TENSOR_FLAGS kOwned = DML_TENSOR_FLAG_OWNED_BY_DML;

class InitializerTest : public DmlTest {
 protected:
  ComPtr<IDMLOperatorInitializer> MakeInitializer(const std::vector<IDMLCompiledOperator*>& operators) {
    ComPtr<IDMLOperatorInitializer> initializer;
    Check(h().dml()->CreateOperatorInitializer(static_cast<UINT>(operators.size()), operators.data(),
                                               IID_PPV_ARGS(&initializer)),
          "CreateOperatorInitializer");
    return initializer;
  }
  ComPtr<IDMLCompiledOperator> MakeIdentity(DML_TENSOR_FLAGS flags = DML_TENSOR_FLAG_NONE) {
    const Identity op({1, 1, 1, 4}, flags);
    return h().Compile(DML_OPERATOR_ELEMENT_WISE_IDENTITY, &op.desc);
  }
  std::vector<float> RunOwnedIdentity(IDMLCompiledOperator* op, ID3D12Resource* persistent) {
    auto output = h().CreateBuffer(16);
    h().Dispatch(op, {{}}, {{output.Get()}}, persistent);
    return h().Download<float>(output.Get(), 4);
  }
};

TEST_F(InitializerTest, CreationChecksItsArguments) {
  auto compiled = MakeIdentity();
  auto* device = h().dml();
  const GUID iid = __uuidof(IDMLOperatorInitializer);
  void* out = nullptr;
  IDMLCompiledOperator* twice[] = {compiled.Get(), compiled.Get()};
  IDMLCompiledOperator* with_null[] = {compiled.Get(), nullptr};
  EXPECT_EQ(device->CreateOperatorInitializer(0, nullptr, iid, nullptr), E_POINTER);
  ExpectFailure(device->CreateOperatorInitializer(1, nullptr, iid, &out), E_INVALIDARG, "operators is null");
  ExpectFailure(device->CreateOperatorInitializer(2, with_null, iid, &out), E_INVALIDARG,
                "operators[1] is null");
  ExpectFailure(device->CreateOperatorInitializer(2, twice, iid, &out), E_INVALIDARG, "the same");
  EXPECT_EQ(device->CreateOperatorInitializer(1, twice, __uuidof(IDMLDevice), &out), E_NOINTERFACE);
  DmlHarness other(h().d3d(), DML_CREATE_DEVICE_FLAG_NONE);
  ExpectFailure(other.dml()->CreateOperatorInitializer(1, twice, iid, &out), E_INVALIDARG, "another device");
  auto initializer = MakeInitializer({});
  ExpectFailure(initializer->Reset(1, nullptr), E_INVALIDARG, "IDMLOperatorInitializer::Reset: ");
  ExpectFailure(initializer->Reset(2, with_null), E_INVALIDARG, "operators[1] is null");
  ExpectFailure(initializer->Reset(2, twice), E_INVALIDARG, "the same");
}

// The persistent resource holds all owned tensors: its size must be computed in 64 bits.
TEST_F(InitializerTest, OwnedTensorsBeyondAnyMemory) {
  constexpr uint64_t kHalf = uint64_t{1} << 63, kMost = UINT64_MAX - 255;
  ScatterNd op = ScatterNd::Page({kOwned, kOwned, DML_TENSOR_FLAG_NONE});
  const auto compile = [&](uint64_t input, uint64_t indices) {
    op.input.buffer().TotalTensorSizeInBytes = input;
    op.indices.buffer().TotalTensorSizeInBytes = indices;
    ComPtr<IDMLCompiledOperator> compiled;
    const HRESULT result =
        h().dml()->CompileOperator(h().CreateOperator(DML_OPERATOR_SCATTER_ND, &op.desc).Get(),
                                   DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&compiled));
    if (FAILED(result)) return std::pair(result, uint64_t{0});
    return std::pair(result, compiled->GetBindingProperties().PersistentResourceSize);
  };
  EXPECT_EQ(compile(kHalf, kHalf - 256), std::pair(S_OK, kMost));
  EXPECT_EQ(compile(kHalf - 252, kHalf - 256), std::pair(S_OK, kMost));
  const std::string sentence =
      "SCATTER_ND: IndicesTensor.TotalTensorSizeInBytes is 9223372036854775808, which the persistent "
      "resource "
      "has no room for";
  ExpectFailure(compile(kHalf, kHalf).first, E_INVALIDARG, sentence);
  ExpectFailure(compile(kHalf, kHalf - 252).first, E_INVALIDARG, "no room for");
  ExpectFailure(compile(kMost + 4, 16).first, E_INVALIDARG, "InputTensor.TotalTensorSizeInBytes");
}

TEST_F(InitializerTest, NoOperatorsIsANoOp) {
  auto initializer = MakeInitializer({});
  EXPECT_EQ(initializer->GetBindingProperties().PersistentResourceSize, 0u);
  auto table = h().CreateTable(initializer.Get());
  table->BindInputs(0, nullptr);
  table->BindOutputs(0, nullptr);
  h().recorder()->RecordDispatch(h().list(), initializer.Get(), table.Get());
  h().ExecuteAndWait();
  EXPECT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK) << LastError();
}

TEST_F(InitializerTest, PropertiesFollowReset) {
  auto one = MakeIdentity(kOwned);
  auto two = MakeIdentity(kOwned);
  auto initializer = MakeInitializer({});
  IDMLCompiledOperator* both[] = {one.Get(), two.Get()};
  EXPECT_EQ(initializer->GetBindingProperties().RequiredDescriptorCount, 1u);
  ASSERT_EQ(initializer->Reset(2, both), S_OK);
  EXPECT_EQ(initializer->GetBindingProperties().RequiredDescriptorCount, 4u);
  EXPECT_EQ(initializer->GetBindingProperties().PersistentResourceSize, 0u);
  ASSERT_EQ(initializer->Reset(0, nullptr), S_OK);
  EXPECT_EQ(initializer->GetBindingProperties().RequiredDescriptorCount, 1u);
}

// ONNX Runtime's usage: one initializer, Reset for each operator, no wait in between.
TEST_F(InitializerTest, ResetWithoutWaiting) {
  constexpr int kCount = 8;
  auto initializer = MakeInitializer({});
  std::vector<ComPtr<IDMLCompiledOperator>> operators;
  std::vector<ComPtr<ID3D12Resource>> sources, persistents;
  for (int i = 0; i < kCount; ++i) {
    operators.push_back(MakeIdentity(kOwned));
    sources.push_back(h().Upload<float>({1.0f * i, 1, 2, 3}));
    persistents.push_back(h().CreatePersistent(operators[i].Get()));
  }
  for (int i = 0; i < kCount; ++i) {
    IDMLCompiledOperator* target = operators[i].Get();
    ASSERT_EQ(initializer->Reset(1, &target), S_OK);
    auto table = h().CreateTable(initializer.Get());
    const Bindings inputs = Bindings::Arrays({{{sources[i].Get()}}});
    const Bindings outputs({{persistents[i].Get()}});
    table->BindInputs(inputs.count(), inputs.data());
    table->BindOutputs(outputs.count(), outputs.data());
    h().recorder()->RecordDispatch(h().list(), initializer.Get(), table.Get());
  }
  ASSERT_EQ(initializer->Reset(0, nullptr), S_OK);
  h().ExecuteAndWait();
  ASSERT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK) << LastError();
  for (int i = 0; i < kCount; ++i) {
    EXPECT_EQ(RunOwnedIdentity(operators[i].Get(), persistents[i].Get()),
              (std::vector<float>{1.0f * i, 1, 2, 3}));
  }
}

TEST_F(InitializerTest, ManyOperatorsInOneDispatch) {
  auto plain = MakeIdentity();
  auto one = MakeIdentity(kOwned);
  auto two = MakeIdentity(kOwned);
  auto source_one = h().Upload<float>({1, 2, 3, 4});
  auto persistent_one = h().CreatePersistent(one.Get());
  auto persistent_two = h().CreatePersistent(two.Get());
  // Owned data may be bound directly from an upload heap.
  auto source_two = h().CreateBuffer(16, D3D12_HEAP_TYPE_UPLOAD);
  void* mapped = nullptr;
  ASSERT_EQ(source_two->Map(0, nullptr, &mapped), S_OK);
  const float values[] = {5, 6, 7, 8};
  memcpy(mapped, values, sizeof(values));
  source_two->Unmap(0, nullptr);

  auto initializer = MakeInitializer({plain.Get(), one.Get(), two.Get()});
  auto table = h().CreateTable(initializer.Get());
  const Bindings inputs = Bindings::Arrays({{{}}, {{source_one.Get()}}, {{source_two.Get()}}});
  const Bindings outputs({{}, {persistent_one.Get()}, {persistent_two.Get()}});
  table->BindInputs(inputs.count(), inputs.data());
  table->BindOutputs(outputs.count(), outputs.data());
  h().recorder()->RecordDispatch(h().list(), initializer.Get(), table.Get());
  h().ExecuteAndWait();
  ASSERT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK) << LastError();
  EXPECT_EQ(RunOwnedIdentity(one.Get(), persistent_one.Get()), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(RunOwnedIdentity(two.Get(), persistent_two.Get()), (std::vector<float>{5, 6, 7, 8}));
}

TEST_F(InitializerTest, NothingToBindInEveryWay) {
  const DML_BUFFER_BINDING null_buffer = {};
  const DML_BUFFER_ARRAY_BINDING null_array = {1, &null_buffer}, empty_array = {0, nullptr};
  const DML_BINDING_DESC ways[] = {{DML_BINDING_TYPE_NONE, nullptr},
                                   {DML_BINDING_TYPE_BUFFER, &null_buffer},
                                   {DML_BINDING_TYPE_BUFFER_ARRAY, &null_array},
                                   {DML_BINDING_TYPE_BUFFER_ARRAY, &empty_array}};
  for (const DML_BINDING_DESC& way : ways) {
    auto compiled = MakeIdentity();
    auto initializer = MakeInitializer({compiled.Get()});
    auto table = h().CreateTable(initializer.Get());
    table->BindInputs(1, &way);
    const DML_BINDING_DESC none = {DML_BINDING_TYPE_NONE, nullptr};
    table->BindOutputs(1, &none);
    table->BindTemporaryResource(nullptr);
    h().recorder()->RecordDispatch(h().list(), initializer.Get(), table.Get());
    h().ExecuteAndWait();
    ASSERT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK) << LastError();
  }
}

TEST_F(InitializerTest, TwiceIsRefusedAtCreation) {
  auto compiled = MakeIdentity();
  h().Initialize(compiled.Get());
  IDMLCompiledOperator* target = compiled.Get();
  void* out = nullptr;
  ExpectFailure(h().dml()->CreateOperatorInitializer(1, &target, __uuidof(IDMLOperatorInitializer), &out),
                E_INVALIDARG, "initialised already");
}

TEST_F(InitializerTest, TwiceIsRefusedAtRecording) {
  auto compiled = MakeIdentity();
  auto second = MakeInitializer({compiled.Get()});
  auto table = h().CreateTable(second.Get());
  h().Initialize(compiled.Get());
  h().recorder()->RecordDispatch(h().list(), second.Get(), table.Get());
  ExpectRemoved(h().dml(), DXGI_ERROR_INVALID_CALL, "initialised already");
}

TEST_F(InitializerTest, TwiceIsRefusedAtExecution) {
  auto compiled = MakeIdentity();
  for (int i = 0; i < 2; ++i) {
    auto initializer = MakeInitializer({compiled.Get()});
    auto table = h().CreateTable(initializer.Get());
    h().recorder()->RecordDispatch(h().list(), initializer.Get(), table.Get());
  }
  EXPECT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK);
  h().ExecuteAndWait();
  ExpectRemoved(h().dml(), DXGI_ERROR_INVALID_CALL, "initialised twice");
  EXPECT_EQ(h().d3d()->GetDeviceRemovedReason(), S_OK);
}

TEST_F(InitializerTest, UninitialisedExecutionRemovesTheDeviceAndWritesNothing) {
  auto compiled = MakeIdentity();
  auto input = h().Upload<float>({1, 2, 3, 4});
  auto output = h().Upload<float>({-1, -1, -1, -1});
  h().Dispatch(compiled.Get(), {{input.Get()}}, {{output.Get()}});
  ExpectRemoved(h().dml(), DXGI_ERROR_INVALID_CALL, "before it was initialised");
  EXPECT_EQ(h().d3d()->GetDeviceRemovedReason(), S_OK);
  EXPECT_EQ(h().Download<float>(output.Get(), 4), (std::vector<float>{-1, -1, -1, -1}));
}

TEST_F(InitializerTest, InitialisedAndExecutedInOneList) {
  auto compiled = MakeIdentity(kOwned);
  auto source = h().Upload<float>({1, 2, 3, 4});
  auto persistent = h().CreatePersistent(compiled.Get());
  auto output = h().CreateBuffer(16);
  auto initializer = MakeInitializer({compiled.Get()});
  auto init_table = h().CreateTable(initializer.Get());
  const Bindings sources = Bindings::Arrays({{{source.Get()}}});
  const Bindings persistents({{persistent.Get()}});
  init_table->BindInputs(sources.count(), sources.data());
  init_table->BindOutputs(persistents.count(), persistents.data());
  h().recorder()->RecordDispatch(h().list(), initializer.Get(), init_table.Get());
  h().UavBarrier();
  auto table = h().CreateTable(compiled.Get());
  const Bindings none(std::vector<Bound>(1));
  const Bindings outputs({{output.Get()}});
  table->BindInputs(none.count(), none.data());
  table->BindOutputs(outputs.count(), outputs.data());
  table->BindPersistentResource(persistents.data());
  h().recorder()->RecordDispatch(h().list(), compiled.Get(), table.Get());
  h().ExecuteAndWait();
  ASSERT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK) << LastError();
  EXPECT_EQ(h().Download<float>(output.Get(), 4), (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(InitializerTest, TableOfBeforeTheResetDoesNotFit) {
  auto one = MakeIdentity();
  auto two = MakeIdentity();
  auto initializer = MakeInitializer({one.Get()});
  auto table = h().CreateTable(initializer.Get());
  IDMLCompiledOperator* target = two.Get();
  ASSERT_EQ(initializer->Reset(1, &target), S_OK);
  h().recorder()->RecordDispatch(h().list(), initializer.Get(), table.Get());
  ExpectRemoved(h().dml(), DXGI_ERROR_INVALID_CALL, "Reset");
}

}  // namespace
}  // namespace anydml::test
