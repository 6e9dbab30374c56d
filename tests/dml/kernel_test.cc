// DirectML's objects with kernels that no operator has: kernels that pack owned inputs, and kernels that
// fail. The library is linked into the test, which puts its own kernels behind a compiled operator.
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "d3d12/d3d12_test.h"
#include "dml/compiled_operator.h"
#include "support/dml_harness.h"
#include "support/tensor.h"

namespace anydml::dml {
namespace {

using test::Bound;
using test::ComPtr;
using test::DmlHarness;

constexpr uint32_t kElements = 5;

// Initialization keeps the input times 2, by way of temporary memory. A run returns that; if the kernel does
// not pack, it adds the input.
class KeepingKernel final : public Kernel {
 public:
  explicit KeepingKernel(bool packs) : packs_(packs) {}

  uint64_t persistent_bytes() const override { return kElements * sizeof(float); }
  uint64_t initialization_temporary_bytes() const override { return kElements * sizeof(float); }
  bool packs_input(uint32_t) const override { return packs_; }

  Status Initialize(const KernelArguments& arguments) const override {
    if (arguments.inputs.size() != 1 || arguments.inputs[0].data == nullptr) return Wrong("inputs");
    if (arguments.outputs.size() != 1 || arguments.outputs[0].data != nullptr) return Wrong("outputs");
    if (arguments.temporary.size < kElements * sizeof(float)) return Wrong("temporary");
    if (arguments.persistent.size != kElements * sizeof(float)) return Wrong("persistent");
    const auto* input = reinterpret_cast<const float*>(arguments.inputs[0].data);
    auto* const doubled = reinterpret_cast<float*>(arguments.temporary.data);
    for (uint32_t i = 0; i < kElements; ++i) doubled[i] = 2 * input[i];
    std::memcpy(arguments.persistent.data, doubled, kElements * sizeof(float));
    return {};
  }

  Status Run(const KernelArguments& arguments) const override {
    if (packs_ != (arguments.inputs[0].data == nullptr)) return Wrong("inputs");
    if (arguments.persistent.size != kElements * sizeof(float)) return Wrong("persistent");
    const auto* input = reinterpret_cast<const float*>(arguments.inputs[0].data);
    const auto* doubled = reinterpret_cast<const float*>(arguments.persistent.data);
    auto* const output = reinterpret_cast<float*>(arguments.outputs[0].data);
    for (uint32_t i = 0; i < kElements; ++i) output[i] = doubled[i] + (packs_ ? 0 : input[i]);
    return {};
  }

 private:
  static Status Wrong(const char* what) { return Status(Code::kFail, StrCat("wrong ", what)); }

  const bool packs_;
};

class FailingKernel final : public Kernel {
 public:
  explicit FailingKernel(bool fails_to_initialize) : fails_to_initialize_(fails_to_initialize) {}

  uint64_t persistent_bytes() const override { return fails_to_initialize_ ? 16 : 0; }
  Status Initialize(const KernelArguments&) const override {
    return Status(Code::kFail, "there is no room to pack the weights");
  }
  Status Run(const KernelArguments&) const override {
    return Status(Code::kOutOfMemory, "the handle of the library is gone");
  }

 private:
  const bool fails_to_initialize_;
};

class KernelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ComPtr<ID3D12Debug> debug;  // for the messages
    test::Check(D3D12GetDebugInterface(IID_PPV_ARGS(&debug)), "D3D12GetDebugInterface");
    debug->EnableDebugLayer();
    harness_ = std::make_unique<DmlHarness>(test::CpuDevice().Get(), DML_CREATE_DEVICE_FLAG_NONE);
  }

  DmlHarness& h() { return *harness_; }

  // An ELEMENT_WISE_IDENTITY of owned FLOAT32 {5} that `kernel` computes.
  ComPtr<IDMLCompiledOperator> Compile(std::unique_ptr<const Kernel> kernel) {
    const test::Tensor input(DML_TENSOR_DATA_TYPE_FLOAT32, {kElements}, DML_TENSOR_FLAG_OWNED_BY_DML);
    const test::Tensor output(DML_TENSOR_DATA_TYPE_FLOAT32, {kElements});
    const DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC desc = {input.desc(), output.desc(), nullptr};
    const auto op = h().CreateOperator(DML_OPERATOR_ELEMENT_WISE_IDENTITY, &desc);
    auto* const source = ImplementationOf<Operator>(op.Get());
    LoweredOperator lowered;
    lowered.kernel = std::move(kernel);
    lowered.implementation = "cpu.test";
    std::shared_ptr<Program> program;
    EXPECT_TRUE(MakeProgram(source->desc(), std::move(lowered), &program).ok());
    ComPtr<IDMLCompiledOperator> compiled;
    test::Check(CreateComObject<CompiledOperator>(IID_PPV_ARGS(&compiled), source->device(), source,
                                                  std::move(program)),
                "CreateComObject");
    return compiled;
  }

  std::vector<float> Run(IDMLCompiledOperator* compiled, const std::vector<float>& input) {
    const auto owned = h().Upload(input);
    const auto output = h().CreateBuffer(kElements * sizeof(float));
    const auto persistent = h().CreatePersistent(compiled);
    h().Initialize(compiled, persistent.Get(), {{owned.Get()}});
    h().Dispatch(compiled, {{}}, {{output.Get()}}, persistent.Get());
    test::Check(h().dml()->GetDeviceRemovedReason(), "GetDeviceRemovedReason");
    return h().Download<float>(output.Get(), kElements);
  }

  // Runs until a call fails because the device is removed; `sentence` is the reason.
  void ExpectRemoval(IDMLCompiledOperator* compiled, HRESULT reason, const std::string& sentence) {
    EXPECT_ANY_THROW(Run(compiled, {1, 2, 3, 4, 5}));
    EXPECT_EQ(h().d3d()->GetDeviceRemovedReason(), reason);
    // The queue's thread writes it after the device is removed.
    for (int i = 0; i < 1000 && !testing::HasMessage(h().d3d(), sentence); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_TRUE(testing::HasMessage(h().d3d(), sentence));
  }

 private:
  std::unique_ptr<DmlHarness> harness_;
};

TEST_F(KernelTest, PacksTheInputThatItOwns) {
  const auto compiled = Compile(std::make_unique<KeepingKernel>(/*packs=*/true));
  EXPECT_EQ(compiled->GetBindingProperties().PersistentResourceSize, 256u);  // and no copy of the input
  EXPECT_EQ(Run(compiled.Get(), {1, 2, 3, 4, 5}), (std::vector<float>{2, 4, 6, 8, 10}));
}

TEST_F(KernelTest, FindsWhatItDoesNotPackBesideWhatItKeeps) {
  const auto compiled = Compile(std::make_unique<KeepingKernel>(/*packs=*/false));
  EXPECT_EQ(compiled->GetBindingProperties().PersistentResourceSize, 512u);
  EXPECT_EQ(Run(compiled.Get(), {1, 2, 3, 4, 5}), (std::vector<float>{3, 6, 9, 12, 15}));
}

TEST_F(KernelTest, InitializersHaveTheTemporaryMemoryOfTheGreediest) {
  const auto first = Compile(std::make_unique<KeepingKernel>(true));
  const auto second = Compile(std::make_unique<FailingKernel>(false));
  IDMLCompiledOperator* const operators[] = {first.Get(), second.Get()};
  ComPtr<IDMLOperatorInitializer> initializer;
  ASSERT_EQ(h().dml()->CreateOperatorInitializer(2, operators, IID_PPV_ARGS(&initializer)), S_OK);
  EXPECT_EQ(initializer->GetBindingProperties().TemporaryResourceSize, 256u);
  ASSERT_EQ(initializer->Reset(1, operators + 1), S_OK);
  EXPECT_EQ(initializer->GetBindingProperties().TemporaryResourceSize, 0u);
}

TEST_F(KernelTest, InitializersRequireTheirTemporaryMemory) {
  const auto compiled = Compile(std::make_unique<KeepingKernel>(true));
  IDMLCompiledOperator* const operators[] = {compiled.Get()};
  ComPtr<IDMLOperatorInitializer> initializer;
  ASSERT_EQ(h().dml()->CreateOperatorInitializer(1, operators, IID_PPV_ARGS(&initializer)), S_OK);
  const auto input = h().Upload(std::vector<float>(kElements));
  const auto persistent = h().CreatePersistent(compiled.Get());
  const auto table = h().CreateTable(initializer.Get());
  const auto inputs = test::Bindings::Arrays({{{input.Get()}}});
  const test::Bindings outputs({{persistent.Get()}});
  table->BindInputs(1, inputs.data());
  table->BindOutputs(1, outputs.data());
  h().recorder()->RecordDispatch(h().list(), initializer.Get(), table.Get());
  EXPECT_EQ(h().dml()->GetDeviceRemovedReason(), DXGI_ERROR_INVALID_CALL);
  EXPECT_NE(test::LastError().find("the temporary resource of the initializer of ELEMENT_WISE_IDENTITY: "
                                   "nothing is bound"),
            std::string::npos)
      << test::LastError();
}

TEST_F(KernelTest, AFailureRemovesTheDeviceWithItsSentence) {
  const auto compiled = Compile(std::make_unique<FailingKernel>(false));
  ExpectRemoval(compiled.Get(), E_OUTOFMEMORY,
                "ELEMENT_WISE_IDENTITY (cpu.test): the handle of the library is gone");
}

TEST_F(KernelTest, SoDoesAFailureToInitialize) {
  const auto compiled = Compile(std::make_unique<FailingKernel>(true));
  ExpectRemoval(compiled.Get(), E_FAIL,
                "ELEMENT_WISE_IDENTITY (cpu.test): there is no room to pack the weights");
}

// Memory that a kernel requests and does not get.
class GreedyKernel final : public Kernel {
 public:
  uint64_t persistent_bytes() const override { return ~uint64_t{0} - 100; }
  Status Run(const KernelArguments&) const override { return {}; }
};

TEST_F(KernelTest, MemoryThatCannotBeCountedIsRefused) {
  const test::Tensor tensor(DML_TENSOR_DATA_TYPE_FLOAT32, {kElements});
  const DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC desc = {tensor.desc(), tensor.desc(), nullptr};
  const auto op = h().CreateOperator(DML_OPERATOR_ELEMENT_WISE_IDENTITY, &desc);
  LoweredOperator lowered;
  lowered.kernel = std::make_unique<GreedyKernel>();
  std::shared_ptr<Program> program;
  const Status status =
      MakeProgram(ImplementationOf<Operator>(op.Get())->desc(), std::move(lowered), &program);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "ELEMENT_WISE_IDENTITY: the memory that the operator needs has more than 2^64 bytes");
}

}  // namespace
}  // namespace anydml::dml
