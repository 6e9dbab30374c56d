// CreateOperator and CompileOperator.
#include <algorithm>
#include <bit>
#include <thread>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "dml/dml_test.h"

namespace anydml::test {
namespace {

class OperatorTest : public DmlTest {
 protected:
  HRESULT Create(DML_OPERATOR_TYPE type, const void* desc) {
    const DML_OPERATOR_DESC operator_desc = {type, desc};
    ComPtr<IDMLOperator> op;
    return h().dml()->CreateOperator(&operator_desc, IID_PPV_ARGS(&op));
  }
};

TEST_F(OperatorTest, NullAndInvalid) {
  ExpectFailure(h().dml()->CreateOperator(nullptr, __uuidof(IDMLOperator), nullptr), E_INVALIDARG,
                "IDMLDevice::CreateOperator: desc is null");
  EXPECT_EQ(Create(DML_OPERATOR_INVALID, nullptr), E_INVALIDARG);
  EXPECT_EQ(Create(static_cast<DML_OPERATOR_TYPE>(255), nullptr), E_INVALIDARG);
  EXPECT_EQ(Create(DML_OPERATOR_TOP_K1, nullptr), E_INVALIDARG);
  EXPECT_NE(LastError(), "");
}

TEST_F(OperatorTest, SentencesBeginWithTheOperator) {
  const TopK op({1, 1, 3, 4}, 3, 9);
  ExpectFailure(Create(DML_OPERATOR_TOP_K1, &op.desc), E_INVALIDARG, "K is 9");
  EXPECT_EQ(LastError().find("TOP_K1: "), 0u) << LastError();
}

TEST_F(OperatorTest, OptionalOutAndWrongInterface) {
  const TopK op({1, 1, 3, 4}, 3, 2);
  const DML_OPERATOR_DESC desc = {DML_OPERATOR_TOP_K1, &op.desc};
  EXPECT_EQ(h().dml()->CreateOperator(&desc, __uuidof(IDMLOperator), nullptr), S_FALSE);
  void* out = &out;
  ExpectFailure(h().dml()->CreateOperator(&desc, __uuidof(IDMLDevice), &out), E_NOINTERFACE, "riid");
  EXPECT_EQ(out, nullptr);
}

TEST_F(OperatorTest, FactsNeedNoDevice) {
  EXPECT_NE(std::string(AnyDmlGetImplementations(DML_OPERATOR_TOP_K1)).find("\ncpu.reference"),
            std::string::npos);
  EXPECT_STREQ(AnyDmlGetImplementations(0xFFFFFFFF), "");

  const TopK top_k({1, 1, 3, 4}, 3, 9);
  DML_OPERATOR_DESC desc = {DML_OPERATOR_TOP_K1, &top_k.desc};
  ExpectFailure(AnyDmlCheckOperator(&desc, DML_FEATURE_LEVEL_6_4), E_INVALIDARG, "TOP_K1: K is 9");
  ExpectFailure(AnyDmlCheckOperator(&desc, DML_FEATURE_LEVEL_1_0), E_INVALIDARG, "feature level 1.0");
  EXPECT_EQ(AnyDmlCheckOperator(nullptr, DML_FEATURE_LEVEL_6_4), E_INVALIDARG);

  const Tensor a(DML_TENSOR_DATA_TYPE_INT8, {2, 3});
  DML_BUFFER_TENSOR_DESC half = {};
  half.DataType = DML_TENSOR_DATA_TYPE_FLOAT16;
  const DML_TENSOR_DESC wanted = {DML_TENSOR_TYPE_BUFFER, &half};
  const DML_CAST_OPERATOR_DESC cast = {a.desc(), &wanted};
  desc = {DML_OPERATOR_CAST, &cast};
  AnyDmlTensor output = {};
  ASSERT_EQ(AnyDmlInferOutputs(&desc, 1, &output), S_OK) << LastError();
  EXPECT_EQ(output.DataType, static_cast<uint32_t>(DML_TENSOR_DATA_TYPE_FLOAT16));
  ASSERT_EQ(output.DimensionCount, 2u);
  EXPECT_EQ(output.Sizes[0], 2u);
  EXPECT_EQ(output.Sizes[1], 3u);
  ExpectFailure(AnyDmlInferOutputs(&desc, 2, &output), E_INVALIDARG, "CAST has 1 outputs but count is 2");

  const DML_ELEMENT_WISE_LOGICAL_EQUALS_OPERATOR_DESC equals = {a.desc(), a.desc(), nullptr};
  desc = {DML_OPERATOR_ELEMENT_WISE_LOGICAL_EQUALS, &equals};
  ASSERT_EQ(AnyDmlInferOutputs(&desc, 1, &output), S_OK) << LastError();
  EXPECT_EQ(output.DataType, static_cast<uint32_t>(DML_TENSOR_DATA_TYPE_UINT8));
}

TEST_F(OperatorTest, CompileChecksItsArguments) {
  const TopK desc({1, 1, 3, 4}, 3, 2);
  auto op = h().CreateOperator(DML_OPERATOR_TOP_K1, &desc.desc);
  auto* device = h().dml();
  const GUID iid = __uuidof(IDMLCompiledOperator);
  void* out = nullptr;
  ExpectFailure(device->CompileOperator(nullptr, DML_EXECUTION_FLAG_NONE, iid, &out), E_INVALIDARG,
                "op is null");
  ExpectFailure(device->CompileOperator(op.Get(), static_cast<DML_EXECUTION_FLAGS>(8), iid, &out),
                E_INVALIDARG, "flags is 8");
  EXPECT_EQ(device->CompileOperator(op.Get(), DML_EXECUTION_FLAG_NONE, __uuidof(IDMLDevice), &out),
            E_NOINTERFACE);
  EXPECT_EQ(device->CompileOperator(op.Get(), static_cast<DML_EXECUTION_FLAGS>(7), iid, nullptr), S_FALSE);
  DmlHarness other(h().d3d(), DML_CREATE_DEVICE_FLAG_NONE);
  ExpectFailure(other.dml()->CompileOperator(op.Get(), DML_EXECUTION_FLAG_NONE, iid, &out), E_INVALIDARG,
                "another device");
}

TEST_F(OperatorTest, ForcedImplementation) {
  if (AdapterOf(h().d3d()) != "cpu") GTEST_SKIP() << "the reference runs on the CPU";
  const TopK desc({1, 1, 3, 4}, 3, 2);
  {
    ScopedEnv env("ANYDML_IMPLEMENTATION", "cpu.reference");
    MakeHarness(DML_CREATE_DEVICE_FLAG_NONE);
  }
  {
    // The device read the environment when it was created and does not read it again.
    ScopedEnv env("ANYDML_IMPLEMENTATION", "cpu.nonsense");
    auto compiled = h().Compile(DML_OPERATOR_TOP_K1, &desc.desc);
    EXPECT_STREQ(AnyDmlGetImplementation(compiled.Get()), "cpu.reference");
    MakeHarness(DML_CREATE_DEVICE_FLAG_NONE);
  }
  auto op = h().CreateOperator(DML_OPERATOR_TOP_K1, &desc.desc);
  ComPtr<IDMLCompiledOperator> compiled;
  EXPECT_TRUE(FAILED(h().dml()->CompileOperator(op.Get(), DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&compiled))));
  EXPECT_NE(LastError().find("cpu.nonsense"), std::string::npos) << LastError();
}

// Packed sequences need scratch memory for K elements per thread plus a constant, however long they are.
TEST_F(OperatorTest, ScratchOfTopKDoesNotGrowWithTheSequence) {
  if (AdapterOf(h().d3d()) != "cpu") GTEST_SKIP() << "a promise of the CPU's implementations";
  const auto scratch = [&](uint32_t n, uint32_t k) {
    const TopK desc({1, 1, 1, n}, 3, k);
    return h().Compile(DML_OPERATOR_TOP_K1, &desc.desc)->GetBindingProperties().TemporaryResourceSize;
  };
  const uint64_t threads = std::max(1u, std::thread::hardware_concurrency());
  EXPECT_EQ(scratch(1u << 22, 10), scratch(1u << 27, 10));
  EXPECT_EQ(scratch(1u << 22, 10000), scratch(1u << 27, 10000));
  EXPECT_LE(scratch(1u << 27, 10), threads * (512u << 10));
  EXPECT_LE(scratch(1u << 27, 10000), threads * ((512u << 10) + 128u * 10000));
}

#if defined(__SSE2__)
// The library does not inherit the application's treatment of denormals (here: flushed to zero).
TEST_F(OperatorTest, DenormalsWhateverTheApplicationSets) {
  constexpr unsigned kDenormalsAreZero = 0x8040;
  const std::vector<float> denormals = {std::bit_cast<float>(3u), std::bit_cast<float>(0x80000005u)};
  const std::vector<float> doubled = {std::bit_cast<float>(6u), std::bit_cast<float>(0x8000000Au)};
  const DML_SCALE_BIAS twice = {2.0f, 0.0f};
  Identity op({1, 1, 1, 2});
  op.desc.ScaleBias = &twice;
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | kDenormalsAreZero);
  DmlHarness mine(h().d3d(), DML_CREATE_DEVICE_FLAG_NONE);  // its queue's thread starts here
  const auto results = mine.Run(DML_OPERATOR_ELEMENT_WISE_IDENTITY, &op.desc, {ToBytes(denormals)}, {8});
  _mm_setcsr(before);
  EXPECT_EQ(results[0], ToBytes(doubled));
}
#endif

TEST_F(OperatorTest, BindingProperties) {
  const TopK plain({1, 1, 3, 4}, 3, 2);
  auto properties = h().Compile(DML_OPERATOR_TOP_K1, &plain.desc)->GetBindingProperties();
  EXPECT_GE(properties.RequiredDescriptorCount, 3u);
  EXPECT_EQ(properties.PersistentResourceSize, 0u);
  EXPECT_EQ(properties.TemporaryResourceSize % 4, 0u);
  const auto owned =
      ScatterNd::Page({DML_TENSOR_FLAG_OWNED_BY_DML, DML_TENSOR_FLAG_NONE, DML_TENSOR_FLAG_OWNED_BY_DML});
  properties = h().Compile(DML_OPERATOR_SCATTER_ND, &owned.desc)->GetBindingProperties();
  EXPECT_GE(properties.RequiredDescriptorCount, 5u);
  EXPECT_EQ(properties.PersistentResourceSize, 512u);
}

}  // namespace
}  // namespace anydml::test
