// NVIDIA's library of convolutions and attention, cuDNN 9, if it is installed: it is loaded when the first
// convolution or attention is compiled, and it is optional. Its headers are not needed either; the parts of
// its graph ("backend") API that are used here are declared below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>

namespace anydml::cudnn {

inline constexpr char kLibraryName[] = "libcudnn.so.9";
inline constexpr size_t kLeastVersion = 90000;  // 9.0.0
inline constexpr int kSuccess = 0;

// Values of the library's enumerations, named after them.
enum Kind : int {  // CUDNN_BACKEND_..._DESCRIPTOR
  kPointwise = 0,
  kConvolution = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kEngineHeuristics = 4,
  kExecutionPlan = 5,
  kConvolutionForward = 10,
  kConvolutionBackwardData = 12,
  kPointwiseOperation = 13,
  kOperationGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
  kMatmul = 18,
  kMatmulOperation = 19,
  kReduction = 21,
  kReductionOperation = 22,
};

enum Type : int {  // CUDNN_TYPE_...
  kTypeHandle = 0,
  kTypeDataType = 1,
  kTypeBoolean = 2,
  kTypeInt64 = 3,
  kTypeFloat = 4,
  kTypeDouble = 5,
  kTypeAddress = 6,  // VOID_PTR
  kTypeConvolutionMode = 7,
  kTypeHeuristicsMode = 8,
  kTypeNanPropagation = 10,
  kTypeNumericalNote = 11,
  kTypePointwiseMode = 14,
  kTypeDescriptor = 15,
  kTypeReductionFunction = 18,  // REDUCTION_OPERATOR_TYPE
};

enum Attribute : int {  // CUDNN_ATTR_...
  kPointwiseMode = 0,
  kPointwiseMathPrecision = 1,
  kPointwiseNanPropagation = 2,
  kPointwiseReluLowerClip = 3,
  kPointwiseReluUpperClip = 4,
  kConvolutionComputeType = 100,
  kConvolutionMode = 101,
  kConvolutionDilations = 102,
  kConvolutionStrides = 103,
  kConvolutionPostPaddings = 104,
  kConvolutionPrePaddings = 105,
  kConvolutionSpatialDimensions = 106,
  kHeuristicsMode = 200,
  kHeuristicsGraph = 201,
  kHeuristicsResults = 202,
  kConfigEngine = 300,
  kPlanHandle = 400,
  kPlanConfig = 401,
  kPlanWorkspaceSize = 402,
  kForwardAlpha = 700,
  kForwardBeta = 701,
  kForwardConvolution = 702,
  kForwardW = 703,
  kForwardX = 704,
  kForwardY = 705,
  kBackwardDataAlpha = 706,
  kBackwardDataBeta = 707,
  kBackwardDataConvolution = 708,
  kBackwardDataW = 709,
  kBackwardDataDx = 710,
  kBackwardDataDy = 711,
  kPointwiseDescriptor = 750,
  kPointwiseX = 751,
  kPointwiseB = 752,
  kPointwiseY = 753,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorDataType = 901,
  kTensorDimensions = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kTensorIsVirtual = 907,
  kTensorIsByValue = 908,
  kPackIds = 1000,
  kPackAddresses = 1001,
  kPackWorkspace = 1003,
  kEngineGlobalIndex = 1301,
  kEngineNumericalNote = 1303,
  kMatmulComputeType = 1500,
  kMatmulA = 1520,
  kMatmulB = 1521,
  kMatmulC = 1522,
  kMatmulDescriptor = 1523,
  kReductionFunction = 1600,
  kReductionComputeType = 1601,
  kReductionX = 1610,
  kReductionY = 1611,
  kReductionDescriptor = 1612,
};

enum DataTypeNumber : int { kFloat = 0, kHalf = 2 };                // CUDNN_DATA_...
enum HeuristicsModeNumber : int { kModeFallback = 2, kModeA = 3 };  // CUDNN_HEUR_MODE_...
enum ReductionFunctionNumber : int { kSum = 0, kMaximum = 3 };      // CUDNN_REDUCE_TENSOR_...
enum PointwiseFunction : int {                                      // CUDNN_POINTWISE_...
  kAdd = 0,
  kMultiply = 1,
  kDivide = 6,
  kSubtract = 9,
  kExp = 13,
  kLog = 15,
  kReluForward = 100,
};
inline constexpr int kCrossCorrelation = 1, kPropagateNan = 1;

enum NumericalNote : int {  // CUDNN_NUMERICAL_NOTE_...
  kTensorCore = 0,
  kDownConvertInputs = 1,
  kReducedPrecisionReduction = 2,
  kFft = 3,
  kNondeterministic = 4,
  kWinograd = 5,
  kWinogradTile13x13 = 8,  // the last of Winograd's
};

// Its functions, with the library's names.
struct Library {
  std::string why_not;  // why it cannot be used; empty if it can
  std::string version;  // "9.10.2"

  size_t (*cudnnGetVersion)();
  const char* (*cudnnGetErrorString)(int status);
  int (*cudnnCreate)(void** handle);
  int (*cudnnSetStream)(void* handle, void* stream);
  int (*cudnnBackendCreateDescriptor)(int kind, void** descriptor);
  int (*cudnnBackendDestroyDescriptor)(void* descriptor);
  int (*cudnnBackendFinalize)(void* descriptor);
  int (*cudnnBackendSetAttribute)(void* descriptor, int attribute, int type, int64_t count,
                                  const void* values);
  int (*cudnnBackendGetAttribute)(void* descriptor, int attribute, int type, int64_t room, int64_t* count,
                                  void* values);
  int (*cudnnBackendExecute)(void* handle, void* plan, void* pack);

  Library();
};

const Library& TheLibrary();

// "cudnnBackendFinalize (an execution plan): CUDNN_STATUS_NOT_SUPPORTED".
std::string Sentence(const char* function, const char* of, int status);

// A device's handles: one for building plans, which takes long, and one for executing other plans meanwhile.
// A handle may be used by one thread at a time.
struct Handles {
  void* maker = nullptr;     // users take turns: see FindOrCreate
  void* executor = nullptr;  // its stream is set for every execution
  std::mutex executor_mutex;
};
// The device must be current. Null, with a reason, if creating the handles failed; a later call tries again.
Handles* HandlesFor(int device, std::string* why_not);

// A descriptor of the library. The first failing call is recorded as a message; later calls then do nothing.
class Descriptor {
 public:
  // `name`: for messages ("a tensor").
  Descriptor(Kind kind, const char* name);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  template <typename Value>
  void Set(Attribute attribute, Type type, const Value& value) {
    SetAll(attribute, type, 1, &value);
  }
  void Set(Attribute attribute, std::span<const int64_t> values) {
    SetAll(attribute, kTypeInt64, static_cast<int64_t>(values.size()), values.data());
  }
  void Set(Attribute attribute, const Descriptor& other) { Set(attribute, kTypeDescriptor, other.get()); }
  void SetAll(Attribute attribute, Type type, int64_t count, const void* values);
  void Finalize();
  // Returns the number of values; up to `room` are written. 0 after an error.
  int64_t Get(Attribute attribute, Type type, int64_t room, void* values);

  void* get() const { return descriptor_; }
  const std::string& error() const { return error_; }  // empty: no error

 private:
  void Note(const char* function, int status);

  const char* name_;
  void* descriptor_ = nullptr;
  std::string error_;
};

}  // namespace anydml::cudnn
