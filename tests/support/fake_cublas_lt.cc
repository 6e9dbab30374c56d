#include "support/fake_cublas_lt.h"

using anydml::testing::FakeCublasLt;
using Fails = FakeCublasLt::Fails;

extern "C" {

#define ANYDML_FAKE __attribute__((visibility("default")))

ANYDML_FAKE FakeCublasLt anydml_fake_cublas_lt;

static cublasStatus_t Answer(Fails place) {
  return anydml_fake_cublas_lt.fails == place ? CUBLAS_STATUS_INTERNAL_ERROR : CUBLAS_STATUS_SUCCESS;
}

ANYDML_FAKE cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (Answer(Fails::kCreate) != CUBLAS_STATUS_SUCCESS) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = reinterpret_cast<cublasLtHandle_t>(&anydml_fake_cublas_lt);
  return CUBLAS_STATUS_SUCCESS;
}

ANYDML_FAKE cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t,
                                                    cudaDataType_t) {
  *desc = new cublasLtMatmulDescOpaque_t();
  ++anydml_fake_cublas_lt.descriptions;
  return CUBLAS_STATUS_SUCCESS;
}
ANYDML_FAKE cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete desc;
  --anydml_fake_cublas_lt.descriptions;
  return CUBLAS_STATUS_SUCCESS;
}
ANYDML_FAKE cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t,
                                                          cublasLtMatmulDescAttributes_t, const void*,
                                                          size_t) {
  return CUBLAS_STATUS_SUCCESS;
}

ANYDML_FAKE cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new cublasLtMatmulPreferenceOpaque_t();
  ++anydml_fake_cublas_lt.descriptions;
  return CUBLAS_STATUS_SUCCESS;
}
ANYDML_FAKE cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  --anydml_fake_cublas_lt.descriptions;
  return CUBLAS_STATUS_SUCCESS;
}
ANYDML_FAKE cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                                cublasLtMatmulPreferenceAttributes_t,
                                                                const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}

ANYDML_FAKE cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType, uint64_t,
                                                      uint64_t, int64_t) {
  *layout = new cublasLtMatrixLayoutOpaque_t();
  ++anydml_fake_cublas_lt.descriptions;
  return CUBLAS_STATUS_SUCCESS;
}
ANYDML_FAKE cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  --anydml_fake_cublas_lt.descriptions;
  return CUBLAS_STATUS_SUCCESS;
}
ANYDML_FAKE cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t,
                                                            cublasLtMatrixLayoutAttribute_t, const void*,
                                                            size_t) {
  return Answer(Fails::kDescribe);
}

ANYDML_FAKE cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                                          cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                          cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                          cublasLtMatmulPreference_t, int,
                                                          cublasLtMatmulHeuristicResult_t results[],
                                                          int* count) {
  results[0] = {};
  *count = anydml_fake_cublas_lt.fails == Fails::kHasNoAlgorithm ? 0 : 1;
  return Answer(Fails::kFindAlgorithm);
}

ANYDML_FAKE cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t, const void*, const void*,
                                          cublasLtMatrixLayout_t, const void*, cublasLtMatrixLayout_t,
                                          const void*, const void*, cublasLtMatrixLayout_t, void*,
                                          cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t*, void*, size_t,
                                          cudaStream_t) {
  ++anydml_fake_cublas_lt.multiplications;
  return Answer(Fails::kMultiply);
}
}
