// Every misuse of a binding table removes the device, reports the reason, and writes nothing. Longer than
// most files: a test per rule, on one fixture.
#include <functional>

#include "dml/dml_test.h"

namespace anydml::test {
namespace {

constexpr HRESULT kArgument = E_INVALIDARG;
constexpr HRESULT kOrder = DXGI_ERROR_INVALID_CALL;

// A SCATTER_ND that is ready to run, with valid bindings unless a test changes them. Indices are owned, so
// that there is a persistent resource.
struct Scene {
  explicit Scene(DmlHarness& harness) : h(harness) {
    const auto op =
        ScatterNd::Page({DML_TENSOR_FLAG_NONE, DML_TENSOR_FLAG_OWNED_BY_DML, DML_TENSOR_FLAG_NONE});
    compiled = h.Compile(DML_OPERATOR_SCATTER_ND, &op.desc);
    indices = h.Upload(kPageIndices);
    persistent = h.CreatePersistent(compiled.Get());
    h.Initialize(compiled.Get(), persistent.Get(), {{}, {indices.Get()}, {}});
    input = h.Upload(kPageInput);
    updates = h.Upload(kPageUpdates);
    output = h.Upload(std::vector<float>(64, -1));
    temporary = h.CreateTemporary(compiled.Get());
    table = h.CreateTable(compiled.Get());
    inputs = {{input.Get()}, {}, {updates.Get()}};
    outputs = {{output.Get()}};
    persistent_bound = {persistent.Get()};
    temporary_bound = {temporary.Get()};
  }

  void Bind() {
    const Bindings in(inputs), out(outputs), extra({persistent_bound, temporary_bound});
    table->BindInputs(in.count(), in.data());
    table->BindOutputs(out.count(), out.data());
    table->BindPersistentResource(&extra.data()[0]);
    table->BindTemporaryResource(&extra.data()[1]);
  }
  void Record() { h.recorder()->RecordDispatch(h.list(), compiled.Get(), table.Get()); }

  DmlHarness& h;
  ComPtr<IDMLCompiledOperator> compiled;
  ComPtr<ID3D12Resource> indices, persistent, input, updates, output, temporary;
  ComPtr<IDMLBindingTable> table;
  std::vector<Bound> inputs, outputs;
  Bound persistent_bound, temporary_bound;
};

class BindingTest : public DmlTest {
 protected:
  // Applies the change, binds, records, runs; the device must be removed and the output unchanged.
  void ExpectMisuse(HRESULT reason, const std::string& text, const std::function<void(Scene&)>& change) {
    SCOPED_TRACE(text);
    {
      Scene scene(MakeHarness(DML_CREATE_DEVICE_FLAG_NONE));
      change(scene);
      scene.Bind();
      scene.Record();
      ExpectRemoved(scene.h.dml(), reason, text);
      scene.h.ExecuteAndWait();
      EXPECT_EQ(scene.h.d3d()->GetDeviceRemovedReason(), S_OK);
      EXPECT_EQ(scene.h.Download<float>(scene.output.Get(), 64), std::vector<float>(64, -1));
    }
    DropHarness();
  }
};

TEST_F(BindingTest, TheSceneItselfWorks) {
  Scene scene(h());
  scene.Bind();
  scene.Record();
  h().ExecuteAndWait();
  ASSERT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK) << LastError();
  EXPECT_EQ(h().Download<float>(scene.output.Get(), 8), kPageOutput);
}

TEST_F(BindingTest, Counts) {
  ExpectMisuse(kArgument, "IDMLBindingTable::BindInputs: bindingCount is 2 but SCATTER_ND has 3 inputs",
               [](Scene& s) { s.inputs.pop_back(); });
  ExpectMisuse(kArgument, "IDMLBindingTable::BindInputs: bindingCount is 4 but SCATTER_ND has 3 inputs",
               [](Scene& s) { s.inputs.push_back({}); });
  ExpectMisuse(kArgument, "IDMLBindingTable::BindOutputs: bindingCount is 2 but SCATTER_ND has 1 output",
               [](Scene& s) { s.outputs.push_back({}); });
  ExpectMisuse(kArgument, "bindings is null", [](Scene& s) { s.table->BindInputs(3, nullptr); });
  ExpectMisuse(kArgument, "bindings is null", [](Scene& s) { s.table->BindOutputs(1, nullptr); });
}

TEST_F(BindingTest, Types) {
  const auto bind_output = [](uint32_t type, const void* desc) {
    return [=](Scene& s) {
      const DML_BINDING_DESC binding = {static_cast<DML_BINDING_TYPE>(type), desc};
      s.table->BindOutputs(1, &binding);
    };
  };
  const DML_BUFFER_ARRAY_BINDING array = {0, nullptr};
  ExpectMisuse(kArgument, "Type is 2", bind_output(DML_BINDING_TYPE_BUFFER_ARRAY, &array));
  ExpectMisuse(kArgument, "Type is 3", bind_output(3, nullptr));
  ExpectMisuse(kArgument, "Type is 9", bind_output(9, nullptr));
  ExpectMisuse(kArgument, "Desc is null", bind_output(DML_BINDING_TYPE_BUFFER, nullptr));
}

TEST_F(BindingTest, Regions) {
  ExpectMisuse(kArgument, "InputTensor of SCATTER_ND: Offset is 8 but must be a multiple of 16",
               [](Scene& s) {
                 s.inputs[0] = {s.output.Get(), 8, 32};
               });
  ExpectMisuse(kArgument, "OutputTensor of SCATTER_ND: SizeInBytes is 28 but must be at least 32",
               [](Scene& s) { s.outputs[0].size = 28; });
  ExpectMisuse(kArgument, "reach beyond the buffer", [](Scene& s) {
    s.outputs[0] = {s.output.Get(), 240, 32};
  });
  ExpectMisuse(kArgument, "reach beyond the buffer", [](Scene& s) {
    s.outputs[0] = {s.output.Get(), 16, UINT64_MAX - 8};
  });
  ExpectMisuse(kArgument, "reach beyond the buffer", [](Scene& s) {
    s.outputs[0] = {s.output.Get(), UINT64_MAX - 15, 32};
  });
  ExpectMisuse(kArgument, "the persistent resource of SCATTER_ND: Offset is 16 but must be a multiple of 256",
               [](Scene& s) {
                 s.persistent_bound = {s.output.Get(), 16, 64};
               });
  ExpectMisuse(kArgument, "the persistent resource of SCATTER_ND: SizeInBytes is 16",
               [](Scene& s) { s.persistent_bound.size = 16; });
  ExpectMisuse(kArgument, "Offset is 128 but must be a multiple of 256", [](Scene& s) {
    s.temporary_bound = {s.output.Get(), 128, 64};
  });
}

// The elements' bytes alone suffice, in a buffer that has the tensor's whole words.
TEST_F(BindingTest, SizeOfTheElements) {
  const auto run = [&](UINT64 width) {
    MakeHarness(DML_CREATE_DEVICE_FLAG_NONE);
    const Tensor tensor(DML_TENSOR_DATA_TYPE_FLOAT16, {1, 1, 1, 3});
    const DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC desc = {tensor.desc(), tensor.desc(), nullptr};
    const auto compiled = h().Compile(DML_OPERATOR_ELEMENT_WISE_IDENTITY, &desc);
    h().Initialize(compiled.Get());
    const auto input = h().Upload<uint16_t>({1, 2, 3, 4, 5, 6, 7, 8}), output = h().CreateBuffer(width);
    h().Dispatch(compiled.Get(), {{input.Get(), 0, 6}}, {{output.Get(), 0, 6}});
    return output;
  };
  const auto output = run(8);
  EXPECT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK) << LastError();
  EXPECT_EQ(h().Download<uint16_t>(output.Get(), 3), (std::vector<uint16_t>{1, 2, 3}));
  run(6);
  ExpectRemoved(h().dml(), kArgument,
                "OutputTensor of ELEMENT_WISE_IDENTITY: SizeInBytes is 6 but must be at least 8");
}

TEST_F(BindingTest, GuaranteedAlignment) {
  Scene scene(h());
  Identity op({1, 1, 1, 4});
  op.input.buffer().GuaranteedBaseOffsetAlignment = 64;
  auto compiled = h().Compile(DML_OPERATOR_ELEMENT_WISE_IDENTITY, &op.desc);
  auto table = h().CreateTable(compiled.Get());
  const Bindings right({{scene.output.Get(), 64, 16}});
  table->BindInputs(right.count(), right.data());
  EXPECT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK);
  const Bindings wrong({{scene.output.Get(), 32, 16}});
  table->BindInputs(wrong.count(), wrong.data());
  ExpectRemoved(h().dml(), kArgument, "Offset is 32 but must be a multiple of 64");
}

TEST_F(BindingTest, Heaps) {
  ComPtr<ID3D12Resource> buffer;
  const auto bind_heap = [&](D3D12_HEAP_TYPE heap, D3D12_RESOURCE_FLAGS flags, bool output) {
    return [=, &buffer](Scene& s) {
      buffer = s.h.CreateBuffer(64, heap, flags);
      (output ? s.outputs : s.inputs)[0] = {buffer.Get()};
    };
  };
  const auto uav = D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS;
  const auto test = [&](const std::string& text, const std::function<void(Scene&)>& change) {
    ExpectMisuse(kArgument, text, [&](Scene& s) {
      change(s);
      s.Bind();
      buffer = nullptr;
      s.inputs[0] = {s.input.Get()};
      s.outputs[0] = {s.output.Get()};
    });
  };
  test("heap of type 2", bind_heap(D3D12_HEAP_TYPE_UPLOAD, uav, false));
  test("heap of type 3", bind_heap(D3D12_HEAP_TYPE_READBACK, uav, false));
  test("heap of type 3", bind_heap(D3D12_HEAP_TYPE_READBACK, uav, true));
  test("ALLOW_UNORDERED_ACCESS", bind_heap(D3D12_HEAP_TYPE_DEFAULT, D3D12_RESOURCE_FLAG_NONE, true));
}

TEST_F(BindingTest, OwnedInputsAreNotBoundAtExecution) {
  ExpectMisuse(kArgument, "IndicesTensor of SCATTER_ND: a buffer is bound but the tensor is OWNED_BY_DML",
               [](Scene& s) { s.inputs[1] = {s.indices.Get()}; });
}

TEST_F(BindingTest, MissingBindings) {
  ExpectMisuse(kOrder, "IDMLCommandRecorder::RecordDispatch: UpdatesTensor of SCATTER_ND: nothing is bound",
               [](Scene& s) { s.inputs[2] = {}; });
  ExpectMisuse(kOrder, "OutputTensor of SCATTER_ND: nothing is bound", [](Scene& s) { s.outputs[0] = {}; });
  ExpectMisuse(kOrder, "the persistent resource of SCATTER_ND: nothing is bound",
               [](Scene& s) { s.persistent_bound = {}; });
  ExpectMisuse(kOrder, "InputTensor of SCATTER_ND: nothing is bound", [](Scene& s) { s.inputs.clear(); });
}

TEST_F(BindingTest, UnbindingAll) {
  Scene scene(h());
  scene.Bind();
  scene.table->BindInputs(0, nullptr);
  EXPECT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK);
  scene.Record();
  ExpectRemoved(h().dml(), kOrder, "InputTensor of SCATTER_ND: nothing is bound");
}

TEST_F(BindingTest, Hazards) {
  ExpectMisuse(kOrder, "InputTensor of SCATTER_ND and OutputTensor of SCATTER_ND overlap", [](Scene& s) {
    s.inputs[0] = {s.output.Get(), 16, 32};
  });
  ExpectMisuse(kOrder,
               "UpdatesTensor of SCATTER_ND and OutputTensor of SCATTER_ND overlap; this operator cannot",
               [](Scene& s) {
                 s.inputs[2] = {s.output.Get(), 0, 16};
               });
  ExpectMisuse(kOrder, "OutputTensor of SCATTER_ND and the persistent resource of SCATTER_ND overlap",
               [](Scene& s) { s.persistent_bound = {s.output.Get()}; });
}

TEST_F(BindingTest, HazardsBetweenOutputs) {
  const TopK op({1, 1, 1, 4}, 3, 2);
  auto compiled = h().Compile(DML_OPERATOR_TOP_K1, &op.desc);
  h().Initialize(compiled.Get());
  auto input = h().Upload<float>({1, 2, 3, 4});
  auto output = h().Upload(std::vector<float>(16, -1));
  h().Dispatch(compiled.Get(), {{input.Get()}}, {{output.Get(), 0, 32}, {output.Get(), 0, 32}});
  ExpectRemoved(h().dml(), kOrder, "OutputValueTensor of TOP_K1 and OutputIndexTensor of TOP_K1 overlap");
  EXPECT_EQ(h().Download<float>(output.Get(), 16), std::vector<float>(16, -1));
}

TEST_F(BindingTest, InPlaceWhereItIsNotAllowed) {
  const TopK op({1, 1, 1, 4}, 3, 4);
  auto compiled = h().Compile(DML_OPERATOR_TOP_K1, &op.desc);
  h().Initialize(compiled.Get());
  auto data = h().Upload<float>({1, 2, 3, 4});
  auto indices = h().CreateBuffer(16);
  h().Dispatch(compiled.Get(), {{data.Get()}}, {{data.Get()}, {indices.Get()}});
  ExpectRemoved(h().dml(), kOrder, "cannot run in place");
  EXPECT_EQ(h().Download<float>(data.Get(), 4), (std::vector<float>{1, 2, 3, 4}));
}

// TOP_K1 with a heap needs scratch memory: missing, misplaced, too small, shared.
TEST_F(BindingTest, Temporary) {
  if (AdapterOf(h().d3d()) != "cpu") GTEST_SKIP() << "the heap runs on the CPU";
  const auto expect = [&](HRESULT reason, const std::string& text,
                          const std::function<void(Bound*)>& change) {
    SCOPED_TRACE(text);
    const ScopedEnv env("ANYDML_IMPLEMENTATION", "cpu.heap");
    MakeHarness(DML_CREATE_DEVICE_FLAG_NONE);
    const TopK op({1, 1, 1, 64}, 3, 8);
    auto compiled = h().Compile(DML_OPERATOR_TOP_K1, &op.desc);
    h().Initialize(compiled.Get());
    const uint64_t bytes = compiled->GetBindingProperties().TemporaryResourceSize;
    ASSERT_NE(bytes, 0u);
    auto data = h().Upload(std::vector<float>(1024, -1));
    auto temporary = h().CreateBuffer(bytes + 256);
    auto table = h().CreateTable(compiled.Get());
    Bound bound = {temporary.Get(), 256, bytes};
    change(&bound);
    if (bound.offset == UINT64_MAX) bound = {data.Get(), 1024};
    const Bindings inputs({{data.Get(), 0, 256}}), extra({bound});
    const Bindings outputs({{data.Get(), 1024, 256}, {data.Get(), 2048, 256}});
    table->BindInputs(inputs.count(), inputs.data());
    table->BindOutputs(outputs.count(), outputs.data());
    table->BindTemporaryResource(extra.data());
    h().recorder()->RecordDispatch(h().list(), compiled.Get(), table.Get());
    ExpectRemoved(h().dml(), reason, text);
    h().ExecuteAndWait();
    EXPECT_EQ(h().Download<float>(data.Get(), 1024), std::vector<float>(1024, -1));
  };
  expect(kOrder, "the temporary resource of TOP_K1: nothing is bound", [](Bound* b) { *b = {}; });
  expect(kArgument, "the temporary resource of TOP_K1: Offset is 128", [](Bound* b) { b->offset = 128; });
  expect(kArgument, "the temporary resource of TOP_K1: SizeInBytes is", [](Bound* b) { b->size -= 4; });
  expect(kOrder, "OutputValueTensor of TOP_K1 and the temporary resource of TOP_K1 overlap",
         [](Bound* b) { b->offset = UINT64_MAX; });  // bound to the outputs' buffer
}

TEST_F(BindingTest, BuffersOfAnotherDevice) {
  DmlHarness foreign;
  auto buffer = foreign.CreateBuffer(64);
  RemoveDirect3d(foreign.d3d());
  ExpectMisuse(kArgument, "Buffer belongs to another Direct3D device",
               [&](Scene& s) { s.inputs[0] = {buffer.Get()}; });
}

TEST_F(BindingTest, BufferDestroyedBeforeRecording) {
  ExpectMisuse(kOrder, "InputTensor of SCATTER_ND: the bound buffer was destroyed", [](Scene& s) {
    s.Bind();
    s.inputs.clear();
    s.input = nullptr;
    s.Record();
  });
}

TEST_F(BindingTest, InitializerInputs) {
  const auto with_initializer = [&](const std::string& text, HRESULT reason, const Bindings& inputs) {
    SCOPED_TRACE(text);
    const auto op =
        ScatterNd::Page({DML_TENSOR_FLAG_NONE, DML_TENSOR_FLAG_OWNED_BY_DML, DML_TENSOR_FLAG_NONE});
    auto compiled = h().Compile(DML_OPERATOR_SCATTER_ND, &op.desc);
    auto persistent = h().CreatePersistent(compiled.Get());
    ComPtr<IDMLOperatorInitializer> initializer;
    IDMLCompiledOperator* target = compiled.Get();
    Check(h().dml()->CreateOperatorInitializer(1, &target, IID_PPV_ARGS(&initializer)), "initializer");
    auto table = h().CreateTable(initializer.Get());
    const Bindings outputs({{persistent.Get()}});
    table->BindOutputs(outputs.count(), outputs.data());
    table->BindInputs(inputs.count(), inputs.data());
    h().recorder()->RecordDispatch(h().list(), initializer.Get(), table.Get());
    ExpectRemoved(h().dml(), reason, text);
  };
  const auto fresh_buffer = [&] {
    MakeHarness(DML_CREATE_DEVICE_FLAG_NONE);
    return h().CreateBuffer(64);
  };
  auto buffer = fresh_buffer();
  with_initializer("IndicesTensor of SCATTER_ND: nothing is bound", kOrder, Bindings());
  buffer = fresh_buffer();
  with_initializer("BindingCount is 2 but the operator has 3 inputs", kArgument,
                   Bindings::Arrays({{{}, {}}}));
  buffer = fresh_buffer();
  with_initializer("not OWNED_BY_DML", kArgument, Bindings::Arrays({{{buffer.Get()}, {buffer.Get()}, {}}}));
  buffer = fresh_buffer();
  with_initializer("Type is 1 but an initializer takes", kArgument, Bindings({{buffer.Get()}}));
  buffer = fresh_buffer();
  with_initializer("bindingCount is 2 but the initializer of SCATTER_ND has 1 operator", kArgument,
                   Bindings::Arrays({{}, {}}));
}

TEST_F(BindingTest, InitializerInputsAndOutputsShareNoResource) {
  const auto op = ScatterNd::Page({DML_TENSOR_FLAG_NONE, DML_TENSOR_FLAG_OWNED_BY_DML, DML_TENSOR_FLAG_NONE});
  auto compiled = h().Compile(DML_OPERATOR_SCATTER_ND, &op.desc);
  auto buffer = h().CreateBuffer(1024);
  h().Initialize(compiled.Get(), buffer.Get(), {{}, {buffer.Get(), 512, 16}, {}});
  ExpectRemoved(h().dml(), kOrder, "may not share one");
}

TEST_F(BindingTest, TableDescriptions) {
  Scene scene(h());
  auto* device = h().dml();
  const GUID iid = __uuidof(IDMLBindingTable);
  void* out = nullptr;
  const DML_BINDING_TABLE_DESC right = h().NextTableDesc(scene.compiled.Get());
  const auto expect = [&](const DML_BINDING_TABLE_DESC& desc, const std::string& text) {
    ExpectFailure(device->CreateBindingTable(&desc, iid, &out), E_INVALIDARG, text);
    ExpectFailure(scene.table->Reset(&desc), E_INVALIDARG, text);
  };
  auto wrong = right;
  wrong.Dispatchable = nullptr;
  expect(wrong, "Dispatchable is null");
  wrong = right;
  wrong.SizeInDescriptors -= 1;
  expect(wrong, "SizeInDescriptors is");
  wrong = right;
  wrong.SizeInDescriptors = DmlHarness::kDescriptors + 1;
  expect(wrong, "do not lie in live");
  wrong = right;
  wrong.CPUDescriptorHandle.ptr = 0;
  expect(wrong, "do not lie in live");
  wrong = right;
  wrong.GPUDescriptorHandle.ptr = 0;
  expect(wrong, "do not lie in live");
  EXPECT_EQ(device->CreateBindingTable(&right, iid, nullptr), E_POINTER);
  EXPECT_EQ(device->CreateBindingTable(&right, __uuidof(IDMLDevice), &out), E_NOINTERFACE);
  DmlHarness other(h().d3d(), DML_CREATE_DEVICE_FLAG_NONE);
  ExpectFailure(other.dml()->CreateBindingTable(&right, iid, &out), E_INVALIDARG, "another device");
  // A failed Reset leaves the table unchanged.
  scene.Bind();
  scene.Record();
  EXPECT_EQ(device->GetDeviceRemovedReason(), S_OK) << LastError();
}

TEST_F(BindingTest, EmptyTable) {
  ComPtr<IDMLBindingTable> table;
  ASSERT_EQ(h().dml()->CreateBindingTable(nullptr, IID_PPV_ARGS(&table)), S_OK);
  table->BindInputs(0, nullptr);
  table->BindOutputs(0, nullptr);
  table->BindTemporaryResource(nullptr);
  table->BindPersistentResource(nullptr);
  EXPECT_EQ(table->Reset(nullptr), S_OK);
  EXPECT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK);
  const DML_BINDING_DESC none = {DML_BINDING_TYPE_NONE, nullptr};
  table->BindInputs(1, &none);
  ExpectRemoved(h().dml(), kArgument, "no dispatchable");
}

// Buffers over the application's memory: on the CPU, alignment to the elements suffices.
TEST_F(BindingTest, MemoryOfTheApplication) {
  if (AdapterOf(h().d3d()) != "cpu") GTEST_SKIP() << "host memory is the CPU's";
  alignas(16) float memory[12] = {};
  const auto over = [&memory](Scene& scene, size_t byte) {
    ComPtr<ID3D12Resource> buffer;
    Check(AnyDmlCreateBufferFromMemory(scene.h.d3d(), reinterpret_cast<char*>(memory) + byte, 32, nullptr,
                                       nullptr, &buffer),
          "creating a buffer over memory");
    return buffer;
  };
  {
    Scene scene(h());
    const auto output = over(scene, 4);
    scene.outputs = {{output.Get()}};
    scene.Bind();
    scene.Record();
    h().ExecuteAndWait();
    ASSERT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK) << LastError();
    EXPECT_EQ(std::vector<float>(memory + 1, memory + 9), kPageOutput);
    EXPECT_EQ(memory[0], 0);
    EXPECT_EQ(memory[9], 0);
  }
  ComPtr<ID3D12Resource> odd;
  ExpectMisuse(kArgument, "not aligned to the tensor's elements of 4 bytes", [&](Scene& scene) {
    odd = over(scene, 2);
    scene.outputs = {{odd.Get()}};
  });
}

TEST_F(BindingTest, MayRunInPlace) {
  Scene scene(h());
  EXPECT_EQ(AnyDmlMayRunInPlace(scene.compiled.Get(), 0, 0), 1);
  EXPECT_EQ(AnyDmlMayRunInPlace(scene.compiled.Get(), 2, 0), 0);  // the updates
  EXPECT_EQ(AnyDmlMayRunInPlace(scene.compiled.Get(), 7, 7), 0);
  EXPECT_EQ(AnyDmlMayRunInPlace(nullptr, 0, 0), 0);
}

TEST_F(BindingTest, DescriptorHeapDestroyed) {
  Scene scene(h());
  D3D12_DESCRIPTOR_HEAP_DESC heap_desc = {D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV, 16,
                                          D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE, 0};
  ComPtr<ID3D12DescriptorHeap> heap;
  ASSERT_EQ(h().d3d()->CreateDescriptorHeap(&heap_desc, IID_PPV_ARGS(&heap)), S_OK);
  const DML_BINDING_TABLE_DESC desc = {scene.compiled.Get(), heap->GetCPUDescriptorHandleForHeapStart(),
                                       heap->GetGPUDescriptorHandleForHeapStart(), 16};
  ASSERT_EQ(scene.table->Reset(&desc), S_OK);
  heap = nullptr;
  scene.Bind();
  ExpectRemoved(h().dml(), kOrder, "descriptor heap of the table was destroyed");
}

}  // namespace
}  // namespace anydml::test
