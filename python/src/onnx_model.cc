#include "onnx_model.h"

#include <pybind11/stl.h>

#include <mutex>

#include "onnx/session.h"
#include "status.h"

namespace py = pybind11;

namespace anydml::python {
namespace {

// name, TensorProto.DataType, sizes (None where any is fine) or None
using PySignature = std::tuple<std::string, int32_t, std::optional<std::vector<std::optional<int64_t>>>>;
// TensorProto.DataType, sizes, address, bytes: packed elements that the caller keeps
using PyInput = std::tuple<int32_t, std::vector<int64_t>, uintptr_t, uint64_t>;
using PyOutput = std::tuple<std::string, int32_t, std::vector<int64_t>, py::bytearray>;

class OnnxModel {
 public:
  // `contents` is the file where there is no path.
  OnnxModel(const std::string& path, const std::optional<py::bytes>& contents, const std::string& adapter) {
    std::shared_ptr<const std::string> text;
    if (contents) text = std::make_shared<const std::string>(static_cast<std::string>(*contents));
    Run([&]() -> Status {
      auto model = std::make_unique<onnx::Model>();
      ANYDML_RETURN_IF_ERROR(
          text ? onnx::ReadModel({std::as_bytes(std::span(*text)), text}, nullptr, model.get())
               : onnx::LoadModel(path, model.get()));
      tools::SessionOptions options;
      options.adapter = adapter;
      options.debug = false;
      ANYDML_RETURN_IF_ERROR(tools::Session::Create(options, &device_));
      return onnx::ModelSession::Create(std::move(model), device_.get(), &session_);
    });
  }

  std::vector<PySignature> Inputs() const { return Signatures(session_->inputs()); }
  std::vector<PySignature> Outputs() const { return Signatures(session_->outputs()); }

  std::vector<PyOutput> RunModel(const std::map<std::string, PyInput>& given) {
    std::map<std::string, onnx::Tensor> inputs;
    for (const auto& [name, input] : given) {
      const auto& [type, shape, address, bytes] = input;
      inputs[name] = {static_cast<onnx::ElementType>(type),
                      shape,
                      {reinterpret_cast<const std::byte*>(address), bytes},
                      nullptr};
    }
    std::vector<onnx::NamedResult> results;
    Run([&] {
      const std::lock_guard lock(mutex_);
      Status status = session_->Run(inputs, &results);
      if (!status.ok()) device_->Discard();
      return status;
    });
    std::vector<PyOutput> outputs;
    for (const onnx::NamedResult& result : results) {
      const std::span<const std::byte> data = result.tensor.data;
      outputs.emplace_back(result.name, static_cast<int32_t>(result.tensor.type), result.tensor.shape,
                           py::bytearray(reinterpret_cast<const char*>(data.data()), data.size()));
    }
    return outputs;
  }

 private:
  static std::vector<PySignature> Signatures(const std::vector<onnx::Signature>& signatures) {
    std::vector<PySignature> list;
    for (const onnx::Signature& signature : signatures) {
      std::optional<std::vector<std::optional<int64_t>>> shape;
      if (signature.has_shape) {
        shape.emplace();
        for (const int64_t size : signature.shape)
          shape->push_back(size < 0 ? std::nullopt : std::optional(size));
      }
      list.emplace_back(signature.name, static_cast<int32_t>(signature.type), shape);
    }
    return list;
  }

  std::mutex mutex_;
  std::unique_ptr<tools::Session> device_;
  std::unique_ptr<onnx::ModelSession> session_;
};

}  // namespace

void DefineOnnxModel(py::module_* m) {
  py::class_<OnnxModel>(*m, "OnnxModel")
      .def(py::init<const std::string&, const std::optional<py::bytes>&, const std::string&>())
      .def_property_readonly("inputs", &OnnxModel::Inputs)
      .def_property_readonly("outputs", &OnnxModel::Outputs)
      .def("run", &OnnxModel::RunModel);
}

}  // namespace anydml::python
