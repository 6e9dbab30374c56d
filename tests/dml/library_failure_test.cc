// A GPU whose cuBLASLt returns errors (fake_cublas_lt.h): the next implementation takes over when a product
// is compiled, and our own kernel when it runs. A process loads one library, so that the tests use it in
// turn.
#include <stdexcept>

#include <anydml.h>

#include "client/scoped_variable.h"
#include "dml/dml_test.h"
#include "support/fake_cublas_lt.h"

namespace anydml::test {
namespace {

using testing::FakeCublasLt;
using Fails = FakeCublasLt::Fails;

// Large enough for the library to be considered.
constexpr uint32_t kSize = 128;

class LibraryFailureTest : public DmlTest {
 protected:
  void SetUp() override {
    ASSERT_NE(library_, nullptr) << dlerror();
    *library_ = FakeCublasLt();
    library_->fails = Fails::kMultiply;  // it cannot multiply: the test must not expect a result
  }

  // A product of integers, and its implementation.
  std::string Multiply(DmlHarness& harness) {
    const Tensor matrix(DML_TENSOR_DATA_TYPE_FLOAT32, {1, 1, kSize, kSize});
    const DML_GEMM_OPERATOR_DESC desc = {matrix.desc(),
                                         matrix.desc(),
                                         nullptr,
                                         matrix.desc(),
                                         DML_MATRIX_TRANSFORM_NONE,
                                         DML_MATRIX_TRANSFORM_NONE,
                                         1,
                                         0,
                                         nullptr};
    std::vector<float> a(kSize * kSize), b(a.size()), expected(a.size());
    for (uint32_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<float>(i % 7);
      b[i] = static_cast<float>(i % 5) - 2;
    }
    for (uint32_t row = 0; row < kSize; ++row) {
      for (uint32_t column = 0; column < kSize; ++column) {
        for (uint32_t i = 0; i < kSize; ++i) {
          expected[row * kSize + column] += a[row * kSize + i] * b[i * kSize + column];
        }
      }
    }
    const auto results =
        harness.Run(DML_OPERATOR_GEMM, &desc, {ToBytes(a), ToBytes(b), /*CTensor*/ {}}, {4 * a.size()});
    EXPECT_EQ(FromBytes<float>(results[0], a.size()), expected);
    return AnyDmlGetImplementation(harness.Compile(DML_OPERATOR_GEMM, &desc).Get());
  }

  FakeCublasLt* const library_ = FakeCublasLt::Find();
};

TEST_F(LibraryFailureTest, TheNextTakesOverAtCompileTime) {
  for (const Fails fails : {Fails::kDescribe, Fails::kFindAlgorithm, Fails::kHasNoAlgorithm}) {
    library_->fails = fails;
    const std::string implementation = Multiply(h());
    EXPECT_TRUE(implementation.starts_with("cuda.")) << implementation;
    EXPECT_NE(implementation, "cuda.cublaslt");
    EXPECT_EQ(library_->descriptions, 0);
  }
}

TEST_F(LibraryFailureTest, ASentenceWhereItIsForced) {
  library_->fails = Fails::kFindAlgorithm;
  const client::ScopedVariable forced("ANYDML_IMPLEMENTATION", "cuda.cublaslt");
  DmlHarness harness(h().d3d(), DML_CREATE_DEVICE_FLAG_NONE);
  try {
    Multiply(harness);
    ADD_FAILURE() << "compiled";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("cuBLASLt has no algorithm for it"), std::string::npos)
        << error.what();
  }
}

TEST_F(LibraryFailureTest, OurOwnKernelTakesOverAtExecution) {
  EXPECT_EQ(Multiply(h()), "cuda.cublaslt");
  EXPECT_GT(library_->multiplications, 0);
  EXPECT_EQ(h().d3d()->GetDeviceRemovedReason(), S_OK);
}

}  // namespace
}  // namespace anydml::test
