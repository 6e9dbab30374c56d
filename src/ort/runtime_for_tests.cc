#include "ort/runtime_for_tests.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "onnx/file/write_model.h"

namespace anydml::ort {

struct OrtIoBinding;

namespace {

// clang-format off
constexpr ApiEntry<OrtStatus*(const OrtEnv*, const char*, const OrtSessionOptions*, OrtSession**)> kCreateSession{7};
constexpr ApiEntry<OrtStatus*(OrtAllocator*, const int64_t*, size_t, int32_t, OrtValue**)> kCreateTensor{48};
constexpr ApiEntry<OrtStatus*(OrtAllocator*, void*)> kAllocatorFree{76};
constexpr ApiEntry<OrtStatus*(OrtAllocator**)> kGetHostAllocator{78};
constexpr ApiEntry<OrtStatus*(OrtSession*, const OrtRunOptions*, const OrtIoBinding*)> kRunWithBinding{133};
constexpr ApiEntry<OrtStatus*(OrtSession*, OrtIoBinding**)> kCreateIoBinding{134};
constexpr ApiEntry<void(OrtIoBinding*)> kReleaseIoBinding{135};
constexpr ApiEntry<OrtStatus*(OrtIoBinding*, const char*, const OrtValue*)> kBindInput{136};
constexpr ApiEntry<OrtStatus*(OrtIoBinding*, const char*, const OrtMemoryInfo*)> kBindOutputToDevice{138};
constexpr ApiEntry<OrtStatus*(const OrtIoBinding*, OrtAllocator*, OrtValue***, size_t*)> kGetBoundOutputValues{140};
constexpr ApiEntry<OrtStatus*(OrtEnv*, const char*, const char*)> kRegisterLibrary{301};
constexpr ApiEntry<OrtStatus*(OrtEnv*, const char*)> kUnregisterLibrary{302};
constexpr ApiEntry<OrtStatus*(const OrtEnv*, const OrtEpDevice* const**, size_t*)> kGetEpDevices{303};
constexpr ApiEntry<OrtStatus*(OrtSessionOptions*, OrtEnv*, const OrtEpDevice* const*, size_t, const char* const*, const char* const*, size_t)> kAppendProvider{304};
constexpr ApiEntry<const char*(const OrtEpDevice*)> kEpDeviceName{312};
constexpr ApiEntry<const OrtKeyValuePairs*(const OrtEpDevice*)> kEpDeviceMetadata{314};
constexpr ApiEntry<const OrtMemoryInfo*(const OrtEpDevice*, OrtDeviceMemoryType)> kEpDeviceMemoryInfo{374};
constexpr ApiEntry<OrtStatus*(OrtEnv*, const OrtMemoryInfo*, OrtAllocator**)> kGetSharedAllocator{376};
constexpr ApiEntry<OrtStatus*(const OrtEnv*, const OrtValue* const*, OrtValue* const*, OrtSyncStream*, size_t)> kCopyTensors{386};
// clang-format on

std::string FindLibrary() {
  if (const char* const given = std::getenv("ANYDML_ORT_LIBRARY")) return given;
#if defined(__aarch64__)
  const std::string platform = "linux/arm64";
#else
  const std::string platform = "linux/x64";
#endif
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(ANYDML_ORT_PACKAGE "/bin", error)) {
    const std::filesystem::path path = entry.path() / platform / "libonnxruntime.so.1";
    if (std::filesystem::exists(path)) return path.string();
  }
  return "";
}

std::vector<const char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return pointers;
}

}  // namespace

std::unique_ptr<Runtime> Runtime::Open(std::string* why) {
  const std::string path = FindLibrary();
  *why = "no onnxruntime: ANYDML_ORT_LIBRARY names none, and ./dev bench has not installed one";
  if (path.empty()) return nullptr;
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    *why = dlerror();
    return nullptr;
  }
  const auto get_base = reinterpret_cast<const OrtApiBase* (*)()>(dlsym(library, "OrtGetApiBase"));
  const Table table = get_base == nullptr ? nullptr : get_base()->get_api(kApiVersion);
  *why = path + " is no onnxruntime of version 1.23 or later";
  if (table == nullptr) return nullptr;
  std::unique_ptr<Runtime> runtime(new Runtime(table, library));
  const Status status =
      runtime->api_.Try(kCreateEnv, static_cast<OrtLoggingLevel>(4), "test", &runtime->env_);
  *why = status.message();
  return status.ok() ? std::move(runtime) : nullptr;
}

Runtime::~Runtime() {
  if (env_ != nullptr) api_.Call(kReleaseEnv, env_);
  // Its threads and its static objects would not survive it.
  static_cast<void>(library_);
}

Status Runtime::Register(const std::string& name, const std::string& path) const {
  return api_.Try(kRegisterLibrary, env_, name.c_str(), path.c_str());
}

Status Runtime::Unregister(const std::string& name) const {
  return api_.Try(kUnregisterLibrary, env_, name.c_str());
}

Status Runtime::Devices(std::map<std::string, const OrtEpDevice*>* out) const {
  const OrtEpDevice* const* devices = nullptr;
  size_t count = 0;
  ANYDML_RETURN_IF_ERROR(api_.Try(kGetEpDevices, env_, &devices, &count));
  for (size_t i = 0; i < count; ++i) {
    if (std::string(api_.Call(kEpDeviceName, devices[i])) != "AnyDML") continue;
    const OrtKeyValuePairs* const metadata = api_.Call(kEpDeviceMetadata, devices[i]);
    (*out)[StrCat(api_.Call(kGetKeyValue, metadata, "adapter"), " ",
                  api_.Call(kGetKeyValue, metadata, "memory"))] = devices[i];
  }
  return {};
}

Status Runtime::Configure(const std::string& device, const Options& options, const Options& config,
                          OrtSessionOptions* session) const {
  ANYDML_RETURN_IF_ERROR(api_.Try(kSetIntraOpNumThreads, session, 1));
  for (const auto& [key, value] : config) {
    ANYDML_RETURN_IF_ERROR(api_.Try(kAddSessionConfigEntry, session, key.c_str(), value.c_str()));
  }
  if (device.empty()) return {};
  std::map<std::string, const OrtEpDevice*> devices;
  ANYDML_RETURN_IF_ERROR(Devices(&devices));
  if (!devices.contains(device)) return InvalidArgument("there is no device ", device);
  std::vector<const char*> keys, values;
  for (const auto& [key, value] : options) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  const OrtEpDevice* const chosen = devices[device];
  return api_.Try(kAppendProvider, session, env_, &chosen, size_t{1}, keys.data(), values.data(),
                  keys.size());
}

Status Runtime::Load(const onnx::Model& model, const std::string& device, const Options& options,
                     const Options& config, std::unique_ptr<RuntimeSession>* out) const {
  OrtSessionOptions* session_options = nullptr;
  ANYDML_RETURN_IF_ERROR(api_.Try(kCreateSessionOptions, &session_options));
  Status status = Configure(device, options, config, session_options);
  const std::string file = onnx::WriteModel(model);
  OrtSession* session = nullptr;
  if (status.ok())
    status = api_.Try(kCreateSessionFromArray, env_, file.data(), file.size(), session_options, &session);
  api_.Call(kReleaseSessionOptions, session_options);
  ANYDML_RETURN_IF_ERROR(status);
  std::vector<std::string> outputs;
  for (const onnx::ValueProto& output : model.graph.outputs) outputs.push_back(output.name);
  *out = std::make_unique<RuntimeSession>(api_, session, std::move(outputs));
  return {};
}

Status Runtime::LoadFile(const std::string& path, const std::vector<std::string>& outputs,
                         const std::string& device, const Options& options, const Options& config,
                         std::unique_ptr<RuntimeSession>* out) const {
  OrtSessionOptions* session_options = nullptr;
  ANYDML_RETURN_IF_ERROR(api_.Try(kCreateSessionOptions, &session_options));
  Status status = Configure(device, options, config, session_options);
  OrtSession* session = nullptr;
  if (status.ok()) status = api_.Try(kCreateSession, env_, path.c_str(), session_options, &session);
  api_.Call(kReleaseSessionOptions, session_options);
  ANYDML_RETURN_IF_ERROR(status);
  *out = std::make_unique<RuntimeSession>(api_, session, outputs);
  return {};
}

RuntimeSession::~RuntimeSession() { api_.Call(kReleaseSession, session_); }

Status RuntimeSession::Run(const Inputs& inputs, Results* results) const {
  Values given(api_), computed(api_);
  std::vector<const char*> names;
  for (const auto& [name, tensor] : inputs) {
    names.push_back(name.c_str());
    ANYDML_RETURN_IF_ERROR(given.AddOver(tensor));
  }
  const std::vector<const char*> outputs = Pointers(outputs_);
  computed.values.resize(outputs.size());
  ANYDML_RETURN_IF_ERROR(api_.Try(kRun, session_, nullptr, names.data(), given.values.data(), names.size(),
                                  outputs.data(), outputs.size(), computed.values.data()));
  results->clear();
  for (OrtValue* const value : computed.values) {
    onnx::Tensor tensor;
    ANYDML_RETURN_IF_ERROR(api_.TensorOf(value, &tensor));
    results->push_back(onnx::MakeTensor(tensor.type, tensor.shape,
                                        std::vector<std::byte>(tensor.data.begin(), tensor.data.end())));
  }
  return {};
}

Status RuntimeSession::RunOnDevice(OrtEnv* env, const OrtEpDevice* device, const std::string& name,
                                   const onnx::Tensor& input, int times, onnx::Tensor* result) const {
  const OrtMemoryInfo* const memory = api_.Call(kEpDeviceMemoryInfo, device, kOrtDefaultMemory);
  if (memory == nullptr) return Status(Code::kUnsupported, "the device has no memory of its own");
  OrtAllocator *allocator = nullptr, *host = nullptr;
  ANYDML_RETURN_IF_ERROR(api_.Try(kGetSharedAllocator, env, memory, &allocator));
  ANYDML_RETURN_IF_ERROR(api_.Try(kGetHostAllocator, &host));
  Values on_host(api_), on_device(api_);
  ANYDML_RETURN_IF_ERROR(on_host.AddOver(input));
  ANYDML_RETURN_IF_ERROR(api_.Try(kCreateTensor, allocator, input.shape.data(), input.shape.size(),
                                  static_cast<int32_t>(input.type), &on_device.values.emplace_back()));
  ANYDML_RETURN_IF_ERROR(
      api_.Try(kCopyTensors, env, on_host.values.data(), on_device.values.data(), nullptr, size_t{1}));
  const auto release = [this](OrtIoBinding* binding) { api_.Call(kReleaseIoBinding, binding); };
  for (int i = 0; i < times; ++i) {
    OrtIoBinding* created = nullptr;
    ANYDML_RETURN_IF_ERROR(api_.Try(kCreateIoBinding, session_, &created));
    const std::unique_ptr<OrtIoBinding, decltype(release)> binding(created, release);
    ANYDML_RETURN_IF_ERROR(api_.Try(kBindInput, created, name.c_str(), on_device.values.back()));
    ANYDML_RETURN_IF_ERROR(api_.Try(kBindOutputToDevice, created, outputs_[0].c_str(), memory));
    ANYDML_RETURN_IF_ERROR(api_.Try(kRunWithBinding, session_, nullptr, created));
    OrtValue** values = nullptr;
    size_t count = 0;
    ANYDML_RETURN_IF_ERROR(api_.Try(kGetBoundOutputValues, created, host, &values, &count));
    on_device.values.push_back(values[0]);
    ANYDML_RETURN_IF_ERROR(api_.Try(kAllocatorFree, host, static_cast<void*>(values)));
  }
  OrtValue* const last = on_device.values.back();
  if (api_.Call(kMemoryDeviceGetDeviceType, api_.Call(kValueGetMemoryDevice, last)) != kOrtGpuMemory)
    return Status(Code::kFail, "the result is not in the device's memory");
  onnx::Tensor theirs;
  ANYDML_RETURN_IF_ERROR(api_.TensorOf(last, &theirs));
  *result = onnx::MakeTensor(theirs.type, theirs.shape, std::vector<std::byte>(theirs.data.size()));
  ANYDML_RETURN_IF_ERROR(on_host.AddOver(*result));
  return api_.Try(kCopyTensors, env, &last, &on_host.values.back(), nullptr, size_t{1});
}

}  // namespace anydml::ort
