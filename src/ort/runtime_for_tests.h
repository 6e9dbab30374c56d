// onnxruntime as its users have it: a library that is opened, an environment, sessions.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "onnx/file/model.h"
#include "ort/api.h"

namespace anydml::ort {

using Options = std::vector<std::pair<std::string, std::string>>;
using Inputs = std::map<std::string, onnx::Tensor>;
using Results = std::vector<onnx::Tensor>;

class RuntimeSession;

class Runtime {
 public:
  // Null when there is no library; `why` says where it was looked for.
  static std::unique_ptr<Runtime> Open(std::string* why);
  ~Runtime();

  const Api& api() const { return api_; }
  OrtEnv* env() const { return env_; }

  Status Register(const std::string& name, const std::string& path) const;
  Status Unregister(const std::string& name) const;
  // The plugin's devices, by their adapters and memories: "cpu host", "cuda:0 device".
  Status Devices(std::map<std::string, const OrtEpDevice*>* out) const;

  // Without a device: onnxruntime's own CPU provider. `options` are the provider's, `config` the session's.
  Status Load(const onnx::Model& model, const std::string& device, const Options& options,
              const Options& config, std::unique_ptr<RuntimeSession>* out) const;
  // The model as it lies in a file, with what lies beside it.
  Status LoadFile(const std::string& path, const std::vector<std::string>& outputs, const std::string& device,
                  const Options& options, const Options& config, std::unique_ptr<RuntimeSession>* out) const;

 private:
  Runtime(Table table, void* library) : api_(table), library_(library) {}
  Status Configure(const std::string& device, const Options& options, const Options& config,
                   OrtSessionOptions* session) const;

  const Api api_;
  void* const library_;
  OrtEnv* env_ = nullptr;
};

// May be used by several threads.
class RuntimeSession {
 public:
  RuntimeSession(const Api& api, OrtSession* session, std::vector<std::string> outputs)
      : api_(api), session_(session), outputs_(std::move(outputs)) {}
  ~RuntimeSession();
  RuntimeSession(const RuntimeSession&) = delete;
  RuntimeSession& operator=(const RuntimeSession&) = delete;

  Status Run(const Inputs& inputs, Results* results) const;
  // `times` runs one after the other on tensors in the device's memory, each on the result of the one before;
  // `input` and the last result go over the host's. The session has one input and one output.
  Status RunOnDevice(OrtEnv* env, const OrtEpDevice* device, const std::string& name,
                     const onnx::Tensor& input, int times, onnx::Tensor* result) const;

 private:
  const Api api_;
  OrtSession* const session_;
  const std::vector<std::string> outputs_;
};

}  // namespace anydml::ort
