#include "ort/cpu_session.h"

#include <algorithm>
#include <cstdlib>

#include "onnx/file/write_model.h"

namespace anydml::ort {
namespace {

// Larger weights are not copied into the model that onnxruntime reads. Smaller ones must be copied:
// onnxruntime reads the elements of shapes and axes from the model.
constexpr size_t kMostCopiedBytes = 1024;

}  // namespace

Status CpuSession::Create(const Api& api, const onnx::Model& model, std::unique_ptr<CpuSession>* out) {
  std::unique_ptr<CpuSession> session(new CpuSession(api, model));
  ANYDML_RETURN_IF_ERROR(api.Try(kCreateEnv, kOrtWarning, "AnyDML", &session->env_));
  ANYDML_RETURN_IF_ERROR(session->Load());
  *out = std::move(session);
  return {};
}

CpuSession::~CpuSession() {
  if (session_ != nullptr) api_.Call(kReleaseSession, session_);
  if (env_ != nullptr) api_.Call(kReleaseEnv, env_);
}

Status CpuSession::Load() {
  OrtSessionOptions* options = nullptr;
  ANYDML_RETURN_IF_ERROR(api_.Try(kCreateSessionOptions, &options));
  Status status = Configure(options);
  if (status.ok()) {
    const std::string file = onnx::WriteModel(model_, kMostCopiedBytes);
    status = api_.Try(kCreateSessionFromArray, env_, file.data(), file.size(), options, &session_);
  }
  api_.Call(kReleaseSessionOptions, options);
  return status;
}

Status CpuSession::Configure(OrtSessionOptions* options) {
  // Spinning threads would keep the processors from AnyDML between runs.
  ANYDML_RETURN_IF_ERROR(api_.Try(kAddSessionConfigEntry, options, "session.intra_op.allow_spinning", "0"));
  const char* const threads = std::getenv("ANYDML_THREADS");
  constexpr int kMostThreads = 256;  // AnyDML's own limit
  if (const int count = threads == nullptr ? 0 : std::atoi(threads); count > 0)
    ANYDML_RETURN_IF_ERROR(api_.Try(kSetIntraOpNumThreads, options, std::min(count, kMostThreads)));
  std::vector<const char*> names;
  for (const auto& [name, tensor] : model_.graph.initializers) {
    if (tensor.data.size() <= kMostCopiedBytes) continue;
    names.push_back(name.c_str());
    ANYDML_RETURN_IF_ERROR(weights_.AddOver(tensor));
  }
  if (names.empty()) return {};
  return api_.Try(kAddExternalInitializers, options, names.data(), weights_.values.data(), names.size());
}

Status CpuSession::Run(std::span<const onnx::Tensor> inputs, std::vector<onnx::Tensor>* outputs) const {
  const onnx::GraphProto& graph = model_.graph;
  Values given(api_), computed(api_);
  std::vector<const char*> input_names, output_names;
  for (size_t i = 0; i < inputs.size(); ++i) {
    input_names.push_back(graph.inputs[i].name.c_str());
    ANYDML_RETURN_IF_ERROR(given.AddOver(inputs[i]));
  }
  for (const onnx::ValueProto& output : graph.outputs) output_names.push_back(output.name.c_str());
  computed.values.resize(output_names.size());
  ANYDML_RETURN_IF_ERROR(api_.Try(kRun, session_, nullptr, input_names.data(), given.values.data(),
                                  input_names.size(), output_names.data(), output_names.size(),
                                  computed.values.data()));
  for (OrtValue* const value : computed.values) {
    onnx::Tensor theirs;
    ANYDML_RETURN_IF_ERROR(api_.TensorOf(value, &theirs));
    outputs->push_back(onnx::MakeTensor(theirs.type, theirs.shape,
                                        std::vector<std::byte>(theirs.data.begin(), theirs.data.end())));
  }
  return {};
}

}  // namespace anydml::ort
