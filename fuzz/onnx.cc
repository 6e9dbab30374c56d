// ONNX files: any bytes are a model or an error; a model survives being written again, and is inspected as
// `anydml check` does, which follows every node.
#include "fuzz.h"

#include "onnx/session.h"
#include "onnx/write_model.h"

namespace anydml::fuzz {
namespace {

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

}  // namespace
}  // namespace anydml::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  anydml::fuzz::Run({data, size});
  return 0;
}
