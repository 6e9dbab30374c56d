// Products with NVIDIA's cuBLASLt, if it is installed: it is loaded when the first GEMM is compiled, and it
// is optional.
#include "ops/gemm/problem.h"

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "kernel/device_traits.h"

namespace anydml {
namespace {

// The library's symbol contains its version, which is the header's.
#define ANYDML_TEXT_OF(version) #version
#define ANYDML_CUBLAS_SO(version) "libcublasLt.so." ANYDML_TEXT_OF(version)
#define ANYDML_CUBLAS_NAME ANYDML_CUBLAS_SO(CUBLAS_VER_MAJOR)

#define ANYDML_CUBLAS_FUNCTIONS(V)        \
  V(cublasLtCreate)                       \
  V(cublasLtMatmul)                       \
  V(cublasLtMatmulAlgoGetHeuristic)       \
  V(cublasLtMatmulDescCreate)             \
  V(cublasLtMatmulDescDestroy)            \
  V(cublasLtMatmulDescSetAttribute)       \
  V(cublasLtMatmulPreferenceCreate)       \
  V(cublasLtMatmulPreferenceDestroy)      \
  V(cublasLtMatmulPreferenceSetAttribute) \
  V(cublasLtMatrixLayoutCreate)           \
  V(cublasLtMatrixLayoutDestroy)          \
  V(cublasLtMatrixLayoutSetAttribute)

struct Library {
  void* handle = nullptr;
#define ANYDML_MEMBER(name) decltype(&::name) name = nullptr;
  ANYDML_CUBLAS_FUNCTIONS(ANYDML_MEMBER)
#undef ANYDML_MEMBER

  Library() {
    handle = dlopen(ANYDML_CUBLAS_NAME, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return;
    bool complete = true;
#define ANYDML_FIND(name)                                           \
  name = reinterpret_cast<decltype(&::name)>(dlsym(handle, #name)); \
  complete = complete && name != nullptr;
    ANYDML_CUBLAS_FUNCTIONS(ANYDML_FIND)
#undef ANYDML_FIND
    if (!complete) handle = nullptr;
  }
};

const Library& TheLibrary() {
  static const Library* const library = new Library;  // never destroyed: devices may outlive static objects
  return *library;
}

// One per device, created when the first product is compiled for it; null if that failed, and tried again
// later.
cublasLtHandle_t HandleFor(int device) {
  static auto* const mutex = new std::mutex;
  static auto* const handles = new std::map<int, cublasLtHandle_t>;
  const std::lock_guard lock(*mutex);
  const auto at = handles->try_emplace(device, nullptr).first;
  if (at->second == nullptr && TheLibrary().cublasLtCreate(&at->second) != CUBLAS_STATUS_SUCCESS) {
    at->second = nullptr;
  }
  return at->second;
}

// Owns the library's descriptions.
class Descriptions {
 public:
  Descriptions() = default;
  Descriptions(const Descriptions&) = delete;
  Descriptions& operator=(const Descriptions&) = delete;
  ~Descriptions() {
    const Library& library = TheLibrary();
    for (cublasLtMatrixLayout_t layout : {a, b, output}) {
      if (layout != nullptr) library.cublasLtMatrixLayoutDestroy(layout);
    }
    if (operation != nullptr) library.cublasLtMatmulDescDestroy(operation);
  }

  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, output = nullptr;
};

cudaDataType_t TypeOf(DataType type) { return type == DataType::kFloat16 ? CUDA_R_16F : CUDA_R_32F; }

// Merges the batch's two dimensions; false if the strides do not allow it.
bool MergeBatch(const GemmProblem& p, const GemmMatrix& matrix, uint64_t* stride) {
  *stride = p.batch[1] > 1 ? matrix.batch[1] : matrix.batch[0];
  return p.batch[0] == 1 || p.batch[1] == 1 || matrix.batch[0] == p.batch[1] * matrix.batch[1];
}

// The library's matrices are column-major with a leading dimension; a row-major matrix is the transpose of
// one.
struct Layout {
  bool transposed = false;  // the matrix has contiguous columns
  uint64_t leading = 1;

  bool Set(const GemmMatrix& matrix, uint64_t rows, uint64_t columns) {
    if (matrix.column == 1 && (rows == 1 || matrix.row >= columns)) {
      leading = rows == 1 ? columns : matrix.row;
      return true;
    }
    transposed = true;
    leading = columns == 1 ? rows : matrix.column;
    return matrix.row == 1 && leading >= rows;
  }
};

// The epilogue by which the library does all of the problem: a bias, then RELU. Empty if the problem needs
// more.
std::optional<cublasLtEpilogue_t> EpilogueOf(const GemmProblem& p) {
  const auto& activation = p.activation.instructions;
  const bool has_relu = activation.size() == 1 && activation[0].function == ElementFunction::kRelu &&
                        activation[0].target == 0 && activation[0].sources[0] == 0;
  if (!activation.empty() && !has_relu) return std::nullopt;
  if (!p.c) return has_relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
  if (!p.AddsRow() || p.type != p.output_type) return std::nullopt;
  return has_relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
}

constexpr uint64_t kWorkspaceBytes = uint64_t{32} << 20;
constexpr uint32_t kAlignment = 16;  // alignment of bindings
constexpr uint64_t kWorkspaceAlignment = 256;

class GemmCublas final : public Kernel {
 public:
  // False, with a reason, if the library cannot do it.
  bool Create(const GemmProblem& p, cublasLtEpilogue_t epilogue, const LowerContext& context,
              std::string* why_not) {
    instead_ = p.activation.instructions.empty() ? CreateGemmTiledCuda(p, context, why_not)
                                                 : CreateGemmInTwo(p, context, why_not);
    if (instead_ == nullptr) return false;
    handle_ = HandleFor(context.device->ordinal);
    if (handle_ == nullptr) {
      *why_not = "cuBLASLt could not be started";
      return false;
    }
    Layout a, b, output;
    uint64_t a_batch, b_batch, output_batch;
    if (!a.Set(p.a, p.m, p.k) || !b.Set(p.b, p.k, p.n) || !output.Set(p.output, p.m, p.n) ||
        output.transposed || !MergeBatch(p, p.a, &a_batch) || !MergeBatch(p, p.b, &b_batch) ||
        !MergeBatch(p, p.output, &output_batch)) {
      *why_not = "cuBLASLt wants contiguous rows or columns, and one stride for the batch";
      return false;
    }
    alpha_ = p.alpha;
    has_bias_ = p.c.has_value();
    const Library& library = TheLibrary();
    bool ok = library.cublasLtMatmulDescCreate(&desc_.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F) ==
              CUBLAS_STATUS_SUCCESS;
    // Computes the transposed product: the library's rows are the output's columns, from B and A.
    const cublasOperation_t first = b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    ok = ok && SetOperation(CUBLASLT_MATMUL_DESC_TRANSA, first) &&
         SetOperation(CUBLASLT_MATMUL_DESC_TRANSB, second) &&
         SetOperation(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    ok = ok && CreateLayout(&desc_.b, p.type, b.transposed ? p.k : p.n, b.transposed ? p.n : p.k, b.leading,
                            p.Batches(), b_batch);
    ok = ok && CreateLayout(&desc_.a, p.type, a.transposed ? p.m : p.k, a.transposed ? p.k : p.m, a.leading,
                            p.Batches(), a_batch);
    ok =
        ok && CreateLayout(&desc_.output, p.output_type, p.n, p.m, output.leading, p.Batches(), output_batch);
    ok = ok && FindAlgorithm();
    if (!ok) *why_not = "cuBLASLt has no algorithm for it";
    return ok;
  }

  uint64_t temporary_bytes() const override {
    const uint64_t workspace =
        workspace_bytes_ == 0 ? 0 : workspace_bytes_ + kWorkspaceAlignment - kAlignment;
    return std::max(workspace, instead_->temporary_bytes());
  }

  Status Run(const KernelArguments& arguments) const override {
    const float beta = 0;
    std::byte* const output = arguments.outputs[0].data;
    void* workspace = arguments.temporary.data;
    size_t room = arguments.temporary.size;
    if (workspace_bytes_ != 0) std::align(kWorkspaceAlignment, workspace_bytes_, workspace, room);
    // A copy, because another run may have another bias at the same time.
    cublasLtMatmulDescOpaque_t operation = *desc_.operation;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (has_bias_) {
      const void* const bias = arguments.inputs[2].data;
      status = TheLibrary().cublasLtMatmulDescSetAttribute(&operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                           &bias, sizeof(bias));
    }
    if (status != CUBLAS_STATUS_SUCCESS) return instead_->Run(arguments);
    status = TheLibrary().cublasLtMatmul(handle_, &operation, &alpha_, arguments.inputs[1].data, desc_.b,
                                         arguments.inputs[0].data, desc_.a, &beta, output, desc_.output,
                                         output, desc_.output, &algorithm_, workspace, workspace_bytes_,
                                         static_cast<cudaStream_t>(arguments.stream));
    // The library sometimes refuses small products with an algorithm that it had offered.
    return status == CUBLAS_STATUS_SUCCESS ? Status() : instead_->Run(arguments);
  }

 private:
  template <typename Value>
  bool SetOperation(cublasLtMatmulDescAttributes_t which, Value value) const {
    return TheLibrary().cublasLtMatmulDescSetAttribute(desc_.operation, which, &value, sizeof(value)) ==
           CUBLAS_STATUS_SUCCESS;
  }

  static bool CreateLayout(cublasLtMatrixLayout_t* layout, DataType type, uint64_t rows, uint64_t columns,
                           uint64_t leading, uint64_t batches, uint64_t stride) {
    const Library& library = TheLibrary();
    const auto count = static_cast<int32_t>(batches);
    const auto offset = static_cast<int64_t>(stride);
    return library.cublasLtMatrixLayoutCreate(layout, TypeOf(type), rows, columns,
                                              static_cast<int64_t>(leading)) == CUBLAS_STATUS_SUCCESS &&
           library.cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                                    sizeof(count)) == CUBLAS_STATUS_SUCCESS &&
           library.cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                    &offset, sizeof(offset)) == CUBLAS_STATUS_SUCCESS;
  }

  bool FindAlgorithm() {
    const Library& library = TheLibrary();
    cublasLtMatmulPreference_t preference = nullptr;
    if (library.cublasLtMatmulPreferenceCreate(&preference) != CUBLAS_STATUS_SUCCESS) return false;
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t which, const auto& value) {
      return library.cublasLtMatmulPreferenceSetAttribute(preference, which, &value, sizeof(value)) ==
             CUBLAS_STATUS_SUCCESS;
    };
    // Only deterministic reductions: the same bytes in every run.
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    bool ok = set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes) &&
              set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
    for (const auto which :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      ok = ok && set(which, kAlignment);
    }
    cublasLtMatmulHeuristicResult_t found = {};
    int count = 0;
    ok = ok && library.cublasLtMatmulAlgoGetHeuristic(handle_, desc_.operation, desc_.b, desc_.a,
                                                      desc_.output, desc_.output, preference, 1, &found,
                                                      &count) == CUBLAS_STATUS_SUCCESS;
    library.cublasLtMatmulPreferenceDestroy(preference);
    if (!ok || count == 0 || found.state != CUBLAS_STATUS_SUCCESS) return false;
    algorithm_ = found.algo;
    workspace_bytes_ = found.workspaceSize;
    return true;
  }

  std::unique_ptr<const Kernel> instead_;  // our own kernel, if the library fails at run time
  cublasLtHandle_t handle_ = nullptr;
  Descriptions desc_;
  cublasLtMatmulAlgo_t algorithm_ = {};
  uint64_t workspace_bytes_ = 0;
  float alpha_ = 1;
  bool has_bias_ = false;
};

}  // namespace

std::unique_ptr<const Kernel> CreateGemmCublas(const GemmProblem& problem, const LowerContext& context,
                                               std::string* why_not) {
  const auto epilogue = EpilogueOf(problem);
  if (!epilogue) {
    *why_not = "there is C that is no row of numbers, or an activation other than RELU";
    return nullptr;
  }
  if (TheLibrary().handle == nullptr) {
    *why_not = StrCat("there is no ", ANYDML_CUBLAS_NAME);
    return nullptr;
  }
  auto kernel = std::make_unique<GemmCublas>();
  if (!kernel->Create(problem, *epilogue, context, why_not)) return nullptr;
  return kernel;
}

}  // namespace anydml

#else

namespace anydml {

std::unique_ptr<const Kernel> CreateGemmCublas(const GemmProblem&, const LowerContext&,
                                               std::string* why_not) {
  *why_not = "built without cuBLASLt's header";
  return nullptr;
}

}  // namespace anydml
#endif
