// AnyDmlRun: operators on addresses, without lists and queues. On a GPU in CUDA's default stream.
#include <cfenv>
#include <thread>

#include "dml/dml_test.h"

namespace anydml::test {
namespace {

void* AddressOf(const ComPtr<ID3D12Resource>& buffer) {
  return buffer ? reinterpret_cast<void*>(buffer->GetGPUVirtualAddress()) : nullptr;
}

// A SCATTER_ND with owned indices that is ready to run, with a persistent resource.
struct Scene {
  explicit Scene(DmlHarness& harness, DML_TENSOR_FLAGS indices_flags = DML_TENSOR_FLAG_OWNED_BY_DML)
      : h(harness) {
    const auto op = ScatterNd::Page({DML_TENSOR_FLAG_NONE, indices_flags, DML_TENSOR_FLAG_NONE});
    compiled = h.Compile(DML_OPERATOR_SCATTER_ND, &op.desc);
    indices = h.Upload(kPageIndices);
    persistent = h.CreatePersistent(compiled.Get());
    input = h.Upload(kPageInput);
    updates = h.Upload(kPageUpdates);
    output = h.Upload(std::vector<float>(64, -1));
    temporary = h.CreateTemporary(compiled.Get());
    owned = indices_flags != DML_TENSOR_FLAG_NONE;
    inputs = {AddressOf(input), owned ? nullptr : AddressOf(indices), AddressOf(updates)};
    outputs = {AddressOf(output)};
  }

  void Initialize() {
    h.Initialize(compiled.Get(), persistent.Get(),
                 owned ? std::vector<Bound>{{}, {indices.Get()}, {}} : std::vector<Bound>{});
  }

  HRESULT Run() {
    AnyDmlRunDesc desc{};
    desc.InputCount = static_cast<uint32_t>(inputs.size());
    desc.OutputCount = static_cast<uint32_t>(outputs.size());
    desc.Inputs = inputs.data();
    desc.Outputs = outputs.data();
    desc.Temporary = AddressOf(temporary);
    desc.Persistent = AddressOf(persistent);
    desc.CudaStream = reinterpret_cast<void*>(1);
    desc.Wait = 1;
    return AnyDmlRun(compiled.Get(), &desc);
  }

  std::vector<float> Output() { return h.Download<float>(output.Get(), kPageOutput.size()); }

  DmlHarness& h;
  ComPtr<IDMLCompiledOperator> compiled;
  ComPtr<ID3D12Resource> indices, persistent, input, updates, output, temporary;
  std::vector<void*> inputs, outputs;
  bool owned = true;
};

using ImmediateTest = DmlTest;

TEST_F(ImmediateTest, RunsOnAddresses) {
  for (const DML_TENSOR_FLAGS flags : {DML_TENSOR_FLAG_OWNED_BY_DML, DML_TENSOR_FLAG_NONE}) {
    Scene scene(h(), flags);
    scene.Initialize();
    EXPECT_EQ(scene.Run(), S_OK) << LastError();
    EXPECT_EQ(scene.Output(), kPageOutput);
  }
}

TEST_F(ImmediateTest, RunsInPlace) {
  Scene scene(h());
  scene.Initialize();
  scene.outputs[0] = scene.inputs[0];
  EXPECT_EQ(scene.Run(), S_OK) << LastError();
  EXPECT_EQ(h().Download<float>(scene.input.Get(), kPageOutput.size()), kPageOutput);
}

TEST_F(ImmediateTest, SaysWhatIsWrongAndGoesOn) {
  Scene scene(h());
  ExpectFailure(scene.Run(), E_INVALIDARG, "AnyDmlRun: SCATTER_ND has not been initialised");
  scene.Initialize();
  const std::vector<void*> inputs = scene.inputs, outputs = scene.outputs;
  const auto expect = [&](const char* text) {
    ExpectFailure(scene.Run(), E_INVALIDARG, text);
    scene.inputs = inputs;
    scene.outputs = outputs;
  };
  scene.inputs[0] = nullptr;
  expect("InputTensor of SCATTER_ND: nothing is bound");
  scene.inputs[1] = AddressOf(scene.indices);
  expect("a buffer is bound but the tensor is OWNED_BY_DML");
  scene.inputs.pop_back();
  expect("has 3 inputs and 1 outputs but InputCount is 2 and OutputCount 1");
  scene.outputs[0] = static_cast<char*>(inputs[0]) + 16;
  expect("overlap but are not bound to the identical region");
  scene.outputs[0] = inputs[2];
  expect("overlap; this operator cannot run in place on them");
  scene.outputs[0] = static_cast<char*>(outputs[0]) + 2;
  expect("which must be a multiple of");
  ExpectFailure(AnyDmlRun(nullptr, nullptr), E_INVALIDARG, "AnyDmlRun: op is not one of ours");
  ExpectFailure(AnyDmlRun(scene.compiled.Get(), nullptr), E_INVALIDARG, "AnyDmlRun: desc is null");
  EXPECT_EQ(scene.Output(), std::vector<float>(kPageOutput.size(), -1));  // nothing was written
  EXPECT_EQ(scene.Run(), S_OK) << LastError();
  EXPECT_EQ(scene.Output(), kPageOutput);
  RemoveDirect3d(h().d3d());
  EXPECT_EQ(scene.Run(), DXGI_ERROR_DEVICE_REMOVED);
}

TEST_F(ImmediateTest, TellsOfData) {
  Scene scene(h(), DML_TENSOR_FLAG_NONE);
  scene.Initialize();
  scene.indices = h().Upload(std::vector<uint32_t>{1, 99, 3, 4});
  scene.inputs[1] = AddressOf(scene.indices);
  EXPECT_EQ(scene.Run(), S_FALSE);
  EXPECT_NE(LastError().find("the tuple IndicesTensor[1,:] is {99}"), std::string::npos) << LastError();
}

TEST_F(ImmediateTest, ThreadsShareAnOperator) {
  Scene first(h());
  first.Initialize();
  std::vector<std::thread> threads;
  std::vector<ComPtr<ID3D12Resource>> outputs, temporary;
  for (int i = 0; i < 4; ++i) {
    outputs.push_back(h().Upload(std::vector<float>(64, -1)));
    temporary.push_back(h().CreateTemporary(first.compiled.Get()));
  }
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      AnyDmlRunDesc desc{3,
                         1,
                         first.inputs.data(),
                         nullptr,
                         AddressOf(temporary[i]),
                         AddressOf(first.persistent),
                         reinterpret_cast<void*>(1),
                         1};
      void* const output = AddressOf(outputs[i]);
      desc.Outputs = &output;
      for (int repeat = 0; repeat < 100; ++repeat) EXPECT_EQ(AnyDmlRun(first.compiled.Get(), &desc), S_OK);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& output : outputs) {
    EXPECT_EQ(h().Download<float>(output.Get(), kPageOutput.size()), kPageOutput);
  }
}

TEST_F(ImmediateTest, TheThreadKeepsItsRounding) {
  Scene scene(h());
  scene.Initialize();
  std::fesetround(FE_UPWARD);
  EXPECT_EQ(scene.Run(), S_OK);
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(FE_TONEAREST);
}

TEST_F(ImmediateTest, Streams) {
  void* const stream = reinterpret_cast<void*>(1);
  EXPECT_EQ(AnyDmlOrderCudaStreams(h().d3d(), stream, reinterpret_cast<void*>(2)), S_OK) << LastError();
  EXPECT_EQ(AnyDmlWaitForCudaStream(h().d3d(), stream), S_OK) << LastError();
  ExpectFailure(AnyDmlOrderCudaStreams(nullptr, stream, stream), E_INVALIDARG,
                "AnyDmlOrderCudaStreams: device is null");
  EXPECT_EQ(AnyDmlWaitForCudaStream(h().d3d(), nullptr), S_OK) << LastError();
  ExpectFailure(AnyDmlWaitForCudaStream(nullptr, stream), E_INVALIDARG,
                "AnyDmlWaitForCudaStream: device is null");
  AnyDmlCudaStreamInfo info{}, other{};
  EXPECT_EQ(AnyDmlDescribeCudaStream(h().d3d(), stream, &info), S_OK) << LastError();
  EXPECT_EQ(AnyDmlDescribeCudaStream(h().d3d(), reinterpret_cast<void*>(2), &other), S_OK) << LastError();
  EXPECT_NE(info.Id, other.Id);
  EXPECT_EQ(info.Capturing, 0);
  void* mark = nullptr;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(AnyDmlMarkCudaStream(h().d3d(), stream, &mark), S_OK) << LastError();
  EXPECT_EQ(AnyDmlWaitForCudaMark(h().d3d(), mark, reinterpret_cast<void*>(2)), S_OK) << LastError();
  EXPECT_EQ(AnyDmlWaitForCudaMark(h().d3d(), mark, nullptr), S_OK) << LastError();
  EXPECT_EQ(AnyDmlFreeCudaMark(h().d3d(), mark), S_OK) << LastError();
  EXPECT_EQ(AnyDmlWaitForCudaMark(h().d3d(), nullptr, stream), S_OK) << LastError();
  ExpectFailure(AnyDmlMarkCudaStream(h().d3d(), stream, nullptr), E_INVALIDARG,
                "AnyDmlMarkCudaStream: mark is null");
  ExpectFailure(AnyDmlDescribeCudaStream(h().d3d(), stream, nullptr), E_INVALIDARG,
                "AnyDmlDescribeCudaStream: info is null");
}

}  // namespace
}  // namespace anydml::test
