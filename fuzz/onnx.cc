// ONNX files: any bytes must give a model or an error. A model must survive being written again, and is
// inspected as by `anydml check`, which follows every node. If the first byte is one with which no file
// begins, the rest encodes a structured model (onnx_model.h); small ones of these are run.
#include "fuzz.h"

#include <algorithm>

#include "onnx/file/write_model.h"
#include "onnx/run/session.h"
#include "onnx_model.h"

namespace anydml::fuzz {
namespace {

constexpr uint8_t kDecisions = 0xFF;
constexpr uint64_t kMostBytes = 1 << 20;  // between the nodes of a model that is run

onnx::Blob BlobOf(std::string text) {
  auto owner = std::make_shared<const std::string>(std::move(text));
  return {std::as_bytes(std::span(*owner)), owner};
}

void Run(std::span<const uint8_t> file) {
  onnx::Model model;
  const Status status = onnx::ReadModel({std::as_bytes(file), nullptr}, nullptr, &model);
  if (!status.ok()) {
    Require(!status.message().empty(), "an error without a sentence");
    return;
  }
  onnx::Model again;
  const Status read = onnx::ReadModel(BlobOf(onnx::WriteModel(model)), nullptr, &again);
  Require(read.ok(), "what was written cannot be read: " + read.message());
  Require(again.graph.nodes.size() == model.graph.nodes.size(), "what was written has other nodes");

  onnx::ModelReport report;
  const Status inspected = onnx::InspectModel(model, {}, &report);
  Require(inspected.ok() || !inspected.message().empty(), "an error without a sentence");
}

// The number of iterations of a Loop may be computed at run time.
bool IsSmall(const onnx::Model& model) {
  onnx::ModelReport report;
  if (!onnx::InspectModel(model, {}, &report).ok() || !report.names_only.empty() ||
      !report.unsupported.empty())
    return false;
  const auto has_loop = [](const onnx::NodeProto& node) {
    return node.type == "Loop" || node.type == "Scan";
  };
  return report.intermediate_bytes < kMostBytes &&
         std::none_of(model.graph.nodes.begin(), model.graph.nodes.end(), has_loop);
}

// Without the debug layer, a model with a single part takes another path.
client::Session* SessionWith(bool debug) {
  static std::unique_ptr<client::Session> sessions[2];
  std::unique_ptr<client::Session>& session = sessions[debug ? 1 : 0];
  if (session == nullptr) {
    client::SessionOptions options;
    options.adapter = "cpu";
    options.debug = debug;
    const Status status = client::Session::Create(options, &session);
    Require(status.ok(), status.message());
  }
  return session.get();
}

void RunStructured(ByteSource source) {
  const onnx::Model made = AnyModel(source);
  const std::string text = onnx::WriteModel(made);
  Run({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  auto model = std::make_unique<onnx::Model>();
  if (!onnx::ReadModel(BlobOf(text), nullptr, model.get()).ok() || !IsSmall(*model)) return;

  const auto inputs = AnyInputs(source, *model);
  client::Session* const device = SessionWith(source.OneIn(2));
  std::unique_ptr<onnx::ModelSession> session;
  Status status = onnx::ModelSession::Create(std::move(model), device, &session);
  std::vector<onnx::NamedResult> results;
  if (status.ok()) status = session->Run(inputs, &results);
  Require(status.ok() || !status.message().empty(), "an error without a sentence");
  Require(!device->removed(), "the device was removed: " + status.message());
  if (!status.ok()) device->Discard();
}

}  // namespace
}  // namespace anydml::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size != 0 && data[0] == anydml::fuzz::kDecisions) {
    anydml::fuzz::RunStructured({data + 1, size - 1});
  } else {
    anydml::fuzz::Run({data, size});
  }
  return 0;
}
