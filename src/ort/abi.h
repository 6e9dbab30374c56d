// The part of onnxruntime's C interface that this plugin uses: opaque types, values of enumerations, structs
// that a plugin fills, and positions of functions in two tables. Positions never change, and new functions
// are appended; all of these exist since version 23 (onnxruntime 1.23), the first one with compiling
// providers. The names are onnxruntime's, so that its documentation applies.
#pragma once

#include <cstddef>
#include <cstdint>

namespace anydml::ort {

inline constexpr uint32_t kApiVersion = 23;

struct OrtStatus;
struct OrtEnv;
struct OrtLogger;
struct OrtSession;
struct OrtSessionOptions;
struct OrtRunOptions;
struct OrtValue;
struct OrtMemoryInfo;
struct OrtMemoryDevice;
struct OrtTypeInfo;
struct OrtTensorTypeAndShapeInfo;
struct OrtKernelContext;
struct OrtOpAttr;
struct OrtValueInfo;
struct OrtGraph;
struct OrtNode;
struct OrtKeyValuePairs;
struct OrtHardwareDevice;
struct OrtEpDevice;
struct OrtEpGraphSupportInfo;
struct OrtNodeComputeContext;
struct OrtSyncStream;
struct OrtExternalInitializerInfo;

enum OrtErrorCode : int32_t {
  kOrtFail = 1,
  kOrtInvalidArgument = 2,
  kOrtNotImplemented = 9,
  kOrtEpFail = 11
};
enum OrtLoggingLevel : int32_t { kOrtVerbose = 0, kOrtInfo = 1, kOrtWarning = 2, kOrtError = 3 };
enum OnnxType : int32_t { kOnnxTensor = 1 };
enum OrtOpAttrType : int32_t {
  kOrtInt = 1,
  kOrtInts = 2,
  kOrtFloat = 3,
  kOrtFloats = 4,
  kOrtString = 5,
  kOrtStrings = 6,
  kOrtGraph = 7,
  kOrtTensor = 8,
};
enum OrtHardwareDeviceType : int32_t { kOrtCpu = 0, kOrtGpu = 1 };
enum OrtMemoryInfoDeviceType : int32_t { kOrtCpuMemory = 0, kOrtGpuMemory = 1 };
enum OrtDeviceMemoryType : int32_t { kOrtDefaultMemory = 0, kOrtHostAccessibleMemory = 5 };
enum OrtAllocatorType : int32_t { kOrtDeviceAllocator = 0 };

using Table = void (*const*)();

struct OrtApiBase {
  Table (*get_api)(uint32_t version);
  const char* (*get_version_string)();
};

struct OrtNodeFusionOptions {
  uint32_t version = kApiVersion;
  bool drop_constant_initializers = false;
};

struct OrtNodeComputeInfo {
  uint32_t version = kApiVersion;
  OrtStatus* (*create_state)(OrtNodeComputeInfo*, OrtNodeComputeContext*, void** state) = nullptr;
  OrtStatus* (*compute)(OrtNodeComputeInfo*, void* state, OrtKernelContext*) = nullptr;
  void (*release_state)(OrtNodeComputeInfo*, void* state) = nullptr;
};

// Members that are null are optional.
struct OrtEp {
  uint32_t version = kApiVersion;
  const char* (*get_name)(const OrtEp*) = nullptr;
  OrtStatus* (*get_capability)(OrtEp*, const OrtGraph*, OrtEpGraphSupportInfo*) = nullptr;
  OrtStatus* (*compile)(OrtEp*, const OrtGraph** graphs, const OrtNode** fused, size_t count,
                        OrtNodeComputeInfo** infos, OrtNode** context_nodes) = nullptr;
  void (*release_node_compute_infos)(OrtEp*, OrtNodeComputeInfo** infos, size_t count) = nullptr;
  // Data layout (2), dynamic options, start and end of a run, allocator, stream, compatibility.
  void (*unused[8])() = {};
};

struct OrtAllocator {
  uint32_t version = kApiVersion;
  void* (*alloc)(OrtAllocator*, size_t bytes) = nullptr;
  void (*free)(OrtAllocator*, void* memory) = nullptr;
  const OrtMemoryInfo* (*info)(const OrtAllocator*) = nullptr;
  void* (*reserve)(OrtAllocator*, size_t bytes) = nullptr;
  void (*unused[2])() = {};  // statistics, allocation on a stream
};

struct OrtDataTransferImpl {
  uint32_t version = kApiVersion;
  void (*release)(OrtDataTransferImpl*) = nullptr;
  bool (*can_copy)(const OrtDataTransferImpl*, const OrtMemoryDevice* from,
                   const OrtMemoryDevice* to) = nullptr;
  OrtStatus* (*copy_tensors)(OrtDataTransferImpl*, const OrtValue** from, OrtValue** to,
                             OrtSyncStream** streams, size_t count) = nullptr;
};

struct OrtEpFactory {
  uint32_t version = kApiVersion;
  const char* (*get_name)(const OrtEpFactory*) = nullptr;
  const char* (*get_vendor)(const OrtEpFactory*) = nullptr;
  OrtStatus* (*get_supported_devices)(OrtEpFactory*, const OrtHardwareDevice* const* devices, size_t count,
                                      OrtEpDevice** out, size_t max_out, size_t* out_count) = nullptr;
  OrtStatus* (*create_ep)(OrtEpFactory*, const OrtHardwareDevice* const* devices,
                          const OrtKeyValuePairs* const* metadata, size_t count, const OrtSessionOptions*,
                          const OrtLogger*, OrtEp** out) = nullptr;
  void (*release_ep)(OrtEpFactory*, OrtEp*) = nullptr;
  uint32_t (*get_vendor_id)(const OrtEpFactory*) = nullptr;
  const char* (*get_version)(const OrtEpFactory*) = nullptr;
  void (*validate_compiled_model)() = nullptr;
  OrtStatus* (*create_allocator)(OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs* options,
                                 OrtAllocator** out) = nullptr;
  void (*release_allocator)(OrtEpFactory*, OrtAllocator*) = nullptr;
  OrtStatus* (*create_data_transfer)(OrtEpFactory*, OrtDataTransferImpl** out) = nullptr;
  bool (*is_stream_aware)(const OrtEpFactory*) = nullptr;
  void (*create_sync_stream)() = nullptr;
};

// A function of one of the tables.
enum class In { kApi, kEpApi };
template <In, typename Function>
struct Entry {
  size_t position;
};
template <typename Function>
using ApiEntry = Entry<In::kApi, Function>;
template <typename Function>
using EpApiEntry = Entry<In::kEpApi, Function>;

// clang-format off
inline constexpr ApiEntry<OrtStatus*(OrtErrorCode, const char*)> kCreateStatus{0};
inline constexpr ApiEntry<OrtErrorCode(const OrtStatus*)> kGetErrorCode{1};
inline constexpr ApiEntry<const char*(const OrtStatus*)> kGetErrorMessage{2};
inline constexpr ApiEntry<OrtStatus*(OrtLoggingLevel, const char*, OrtEnv**)> kCreateEnv{3};
inline constexpr ApiEntry<OrtStatus*(const OrtEnv*, const void*, size_t, const OrtSessionOptions*, OrtSession**)> kCreateSessionFromArray{8};
inline constexpr ApiEntry<OrtStatus*(OrtSession*, const OrtRunOptions*, const char* const*, const OrtValue* const*, size_t, const char* const*, size_t, OrtValue**)> kRun{9};
inline constexpr ApiEntry<OrtStatus*(OrtSessionOptions**)> kCreateSessionOptions{10};
inline constexpr ApiEntry<OrtStatus*(OrtSessionOptions*, int)> kSetIntraOpNumThreads{24};
inline constexpr ApiEntry<OrtStatus*(const OrtMemoryInfo*, void*, size_t, const int64_t*, size_t, int32_t, OrtValue**)> kCreateTensorWithData{49};
inline constexpr ApiEntry<OrtStatus*(OrtValue*, void**)> kGetTensorMutableData{51};
inline constexpr ApiEntry<OrtStatus*(const OrtTypeInfo*, const OrtTensorTypeAndShapeInfo**)> kCastTypeInfoToTensorInfo{55};
inline constexpr ApiEntry<OrtStatus*(const OrtTypeInfo*, OnnxType*)> kGetOnnxTypeFromTypeInfo{56};
inline constexpr ApiEntry<OrtStatus*(const OrtTensorTypeAndShapeInfo*, int32_t*)> kGetTensorElementType{60};
inline constexpr ApiEntry<OrtStatus*(const OrtTensorTypeAndShapeInfo*, size_t*)> kGetDimensionsCount{61};
inline constexpr ApiEntry<OrtStatus*(const OrtTensorTypeAndShapeInfo*, int64_t*, size_t)> kGetDimensions{62};
inline constexpr ApiEntry<OrtStatus*(const OrtTensorTypeAndShapeInfo*, const char**, size_t)> kGetSymbolicDimensions{63};
inline constexpr ApiEntry<OrtStatus*(const OrtValue*, OrtTensorTypeAndShapeInfo**)> kGetTensorTypeAndShape{65};
inline constexpr ApiEntry<OrtStatus*(OrtAllocatorType, int, OrtMemoryInfo**)> kCreateCpuMemoryInfo{69};
inline constexpr ApiEntry<OrtStatus*(const OrtKernelContext*, size_t, const OrtValue**)> kKernelContextGetInput{90};
inline constexpr ApiEntry<OrtStatus*(OrtKernelContext*, size_t, const int64_t*, size_t, OrtValue**)> kKernelContextGetOutput{91};
inline constexpr ApiEntry<void(OrtEnv*)> kReleaseEnv{92};
inline constexpr ApiEntry<void(OrtStatus*)> kReleaseStatus{93};
inline constexpr ApiEntry<void(OrtMemoryInfo*)> kReleaseMemoryInfo{94};
inline constexpr ApiEntry<void(OrtSession*)> kReleaseSession{95};
inline constexpr ApiEntry<void(OrtValue*)> kReleaseValue{96};
inline constexpr ApiEntry<void(OrtTensorTypeAndShapeInfo*)> kReleaseTensorTypeAndShapeInfo{99};
inline constexpr ApiEntry<void(OrtSessionOptions*)> kReleaseSessionOptions{100};
inline constexpr ApiEntry<OrtStatus*(OrtSessionOptions*, const char*, const char*)> kAddSessionConfigEntry{130};
inline constexpr ApiEntry<OrtStatus*(OrtSessionOptions*, const char* const*, const OrtValue* const*, size_t)> kAddExternalInitializers{210};
inline constexpr ApiEntry<OrtStatus*(const OrtLogger*, OrtLoggingLevel, const char*, const char*, int, const char*)> kLoggerLogMessage{247};
inline constexpr ApiEntry<OrtStatus*(const OrtOpAttr*, OrtOpAttrType, void*, size_t, size_t*)> kReadOpAttr{272};
inline constexpr ApiEntry<OrtStatus*(const OrtValueInfo*, const char**)> kGetValueInfoName{289};
inline constexpr ApiEntry<OrtStatus*(const OrtValueInfo*, const OrtTypeInfo**)> kGetValueInfoTypeInfo{290};
inline constexpr ApiEntry<void(OrtKeyValuePairs**)> kCreateKeyValuePairs{295};
inline constexpr ApiEntry<void(OrtKeyValuePairs*, const char*, const char*)> kAddKeyValuePair{296};
inline constexpr ApiEntry<const char*(const OrtKeyValuePairs*, const char*)> kGetKeyValue{297};
inline constexpr ApiEntry<void(const OrtKeyValuePairs*, const char* const**, const char* const**, size_t*)> kGetKeyValuePairs{298};
inline constexpr ApiEntry<void(OrtKeyValuePairs*)> kReleaseKeyValuePairs{300};
inline constexpr ApiEntry<OrtHardwareDeviceType(const OrtHardwareDevice*)> kHardwareDeviceType{307};
inline constexpr ApiEntry<uint32_t(const OrtHardwareDevice*)> kHardwareDeviceVendorId{308};
inline constexpr ApiEntry<Table()> kGetEpApi{317};
inline constexpr ApiEntry<OrtStatus*(const OrtValue*, size_t*)> kGetTensorSizeInBytes{318};
inline constexpr ApiEntry<OrtStatus*(const char*, OrtMemoryInfoDeviceType, uint32_t, int32_t, OrtDeviceMemoryType, size_t, OrtAllocatorType, OrtMemoryInfo**)> kCreateMemoryInfoV2{320};
inline constexpr ApiEntry<OrtStatus*(const OrtValueInfo*, const OrtValue**)> kValueInfoGetInitializerValue{326};
inline constexpr ApiEntry<OrtStatus*(const OrtValueInfo*, OrtExternalInitializerInfo**)> kValueInfoGetExternalInitializerInfo{327};
inline constexpr ApiEntry<OrtStatus*(const OrtValueInfo*, bool*)> kValueInfoIsConstantInitializer{331};
inline constexpr ApiEntry<OrtStatus*(const OrtGraph*, const char**)> kGraphGetModelPath{334};
inline constexpr ApiEntry<OrtStatus*(const OrtGraph*, int64_t*)> kGraphGetOnnxIrVersion{335};
inline constexpr ApiEntry<OrtStatus*(const OrtGraph*, size_t*)> kGraphGetNumOperatorSets{336};
inline constexpr ApiEntry<OrtStatus*(const OrtGraph*, const char**, int64_t*, size_t)> kGraphGetOperatorSets{337};
inline constexpr ApiEntry<OrtStatus*(const OrtGraph*, size_t*)> kGraphGetNumNodes{344};
inline constexpr ApiEntry<OrtStatus*(const OrtGraph*, const OrtNode**, size_t)> kGraphGetNodes{345};
inline constexpr ApiEntry<OrtStatus*(const OrtGraph*, const OrtNode**)> kGraphGetParentNode{346};
inline constexpr ApiEntry<OrtStatus*(const OrtNode*, const char**)> kNodeGetName{349};
inline constexpr ApiEntry<OrtStatus*(const OrtNode*, const char**)> kNodeGetOperatorType{350};
inline constexpr ApiEntry<OrtStatus*(const OrtNode*, const char**)> kNodeGetDomain{351};
inline constexpr ApiEntry<OrtStatus*(const OrtNode*, size_t*)> kNodeGetNumInputs{353};
inline constexpr ApiEntry<OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t)> kNodeGetInputs{354};
inline constexpr ApiEntry<OrtStatus*(const OrtNode*, size_t*)> kNodeGetNumOutputs{355};
inline constexpr ApiEntry<OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t)> kNodeGetOutputs{356};
inline constexpr ApiEntry<OrtStatus*(const OrtNode*, size_t*)> kNodeGetNumImplicitInputs{357};
inline constexpr ApiEntry<OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t)> kNodeGetImplicitInputs{358};
inline constexpr ApiEntry<OrtStatus*(const OrtNode*, size_t*)> kNodeGetNumAttributes{359};
inline constexpr ApiEntry<OrtStatus*(const OrtNode*, const OrtOpAttr**, size_t)> kNodeGetAttributes{360};
inline constexpr ApiEntry<OrtStatus*(const OrtOpAttr*, OrtValue**)> kOpAttrGetTensor{362};
inline constexpr ApiEntry<OrtStatus*(const OrtOpAttr*, OrtOpAttrType*)> kOpAttrGetType{363};
inline constexpr ApiEntry<OrtStatus*(const OrtOpAttr*, const char**)> kOpAttrGetName{364};
inline constexpr ApiEntry<OrtStatus*(const OrtNode*, size_t*)> kNodeGetNumSubgraphs{365};
inline constexpr ApiEntry<void(OrtExternalInitializerInfo*)> kReleaseExternalInitializerInfo{369};
inline constexpr ApiEntry<const char*(const OrtExternalInitializerInfo*)> kExternalInitializerInfoGetFilePath{370};
inline constexpr ApiEntry<int64_t(const OrtExternalInitializerInfo*)> kExternalInitializerInfoGetFileOffset{371};
inline constexpr ApiEntry<size_t(const OrtExternalInitializerInfo*)> kExternalInitializerInfoGetByteSize{372};
inline constexpr ApiEntry<OrtStatus*(const OrtValue*, const void**)> kGetTensorData{378};
inline constexpr ApiEntry<OrtStatus*(const OrtSessionOptions*, OrtKeyValuePairs**)> kGetSessionOptionsConfigEntries{379};

inline constexpr EpApiEntry<OrtStatus*(OrtEpFactory*, const OrtHardwareDevice*, const OrtKeyValuePairs*, const OrtKeyValuePairs*, OrtEpDevice**)> kCreateEpDevice{0};
inline constexpr EpApiEntry<void(OrtEpDevice*)> kReleaseEpDevice{1};
inline constexpr EpApiEntry<OrtStatus*(OrtEpGraphSupportInfo*, const OrtNode* const*, size_t, const OrtNodeFusionOptions*)> kAddNodesToFuse{2};
inline constexpr EpApiEntry<OrtStatus*(OrtEpDevice*, const OrtMemoryInfo*)> kAddAllocatorInfo{5};
inline constexpr EpApiEntry<const OrtMemoryDevice*(const OrtMemoryInfo*)> kMemoryInfoGetMemoryDevice{6};
inline constexpr EpApiEntry<const OrtMemoryDevice*(const OrtValue*)> kValueGetMemoryDevice{7};
inline constexpr EpApiEntry<bool(const OrtMemoryDevice*, const OrtMemoryDevice*)> kMemoryDeviceAreEqual{8};
inline constexpr EpApiEntry<OrtMemoryInfoDeviceType(const OrtMemoryDevice*)> kMemoryDeviceGetDeviceType{9};
// clang-format on

}  // namespace anydml::ort
