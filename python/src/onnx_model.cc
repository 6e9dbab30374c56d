#include "onnx_model.h"

#include <anydml.h>
#include <pybind11/stl.h>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "onnx/session.h"
#include "process.h"
#include "status.h"

namespace py = pybind11;

namespace anydml::python {
namespace {

// name, TensorProto.DataType, sizes (None where any is fine) or None
using PySignature = std::tuple<std::string, int32_t, std::optional<std::vector<std::optional<int64_t>>>>;
// TensorProto.DataType, sizes, address, bytes: packed elements that the caller keeps
using PyInput = std::tuple<int32_t, std::vector<int64_t>, uintptr_t, uint64_t>;
using PyOutput = std::tuple<std::string, int32_t, std::vector<int64_t>, py::bytearray>;
// seconds of the run, and of its nodes: name, seconds, calls
using PyProfile = std::tuple<double, std::vector<std::tuple<std::string, double, uint64_t>>>;

// What AnyDmlSetProfiler reports while it exists: one at a time, in this process.
class NodeTimes {
 public:
  struct Row {
    double seconds = 0;
    uint64_t calls = 0;
  };

  NodeTimes() : lock_(Mutex()) {
    SetActive(this);
    AnyDmlSetProfiler(Record, nullptr);
  }
  ~NodeTimes() {
    AnyDmlSetProfiler(nullptr, nullptr);
    SetActive(nullptr);
  }
  NodeTimes(const NodeTimes&) = delete;
  NodeTimes& operator=(const NodeTimes&) = delete;

  std::map<std::string, Row> rows() const {
    const std::lock_guard lock(TheActive().mutex);
    return rows_;
  }

 private:
  static std::mutex& Mutex() {
    static std::mutex mutex;
    return mutex;
  }
  // A graph that another thread began before may end after the profile.
  struct Active {
    std::mutex mutex;
    NodeTimes* times = nullptr;
  };
  static Active& TheActive() {
    static Active active;
    return active;
  }
  static void SetActive(NodeTimes* times) {
    const std::lock_guard lock(TheActive().mutex);
    TheActive().times = times;
  }
  static void Record(void*, const char* node, uint64_t begin, uint64_t end) {
    const std::lock_guard lock(TheActive().mutex);
    if (TheActive().times == nullptr) return;
    Row& row = TheActive().times->rows_[node];
    row.seconds += static_cast<double>(end - begin) * 1e-9;
    ++row.calls;
  }

  const std::lock_guard<std::mutex> lock_;
  std::map<std::string, Row> rows_;
};

class OnnxModel {
 public:
  // `contents` is the file where there is no path.
  OnnxModel(const std::string& path, const std::optional<py::bytes>& contents, const std::string& adapter) {
    // Read where they are; whoever is the last to need them may be another thread.
    std::span<const char> text;
    std::shared_ptr<const py::bytes> owner;
    if (contents) {
      text = std::string_view(*contents);
      owner = {new py::bytes(*contents), [](const py::bytes* bytes) {
                 const py::gil_scoped_acquire gil;
                 delete bytes;
               }};
    }
    Run([&]() -> Status {
      ANYDML_RETURN_IF_ERROR(CheckProcess());
      WatchForks();
      auto model = std::make_unique<onnx::Model>();
      ANYDML_RETURN_IF_ERROR(owner ? onnx::ReadModel({std::as_bytes(text), owner}, nullptr, model.get())
                                   : onnx::LoadModel(path, model.get()));
      tools::SessionOptions options;
      options.adapter = adapter;
      options.debug = false;
      ANYDML_RETURN_IF_ERROR(tools::Session::Create(options, &device_));
      return onnx::ModelSession::Create(std::move(model), device_.get(), &session_);
    });
  }

  ~OnnxModel() {
    if (!Forked()) return;
    session_.release();
    device_.release();
  }
  OnnxModel(const OnnxModel&) = delete;
  OnnxModel& operator=(const OnnxModel&) = delete;

  std::vector<PySignature> Inputs() const { return Signatures(session_->inputs()); }
  std::vector<PySignature> Outputs() const { return Signatures(session_->outputs()); }

  std::vector<PyOutput> RunModel(const std::map<std::string, PyInput>& given) {
    const std::map<std::string, onnx::Tensor> inputs = Tensors(given);
    std::vector<onnx::NamedResult> results;
    Run([&]() -> Status {
      ANYDML_RETURN_IF_ERROR(CheckProcess());
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

  // A run, after one that compiles.
  PyProfile Profile(const std::map<std::string, PyInput>& given) {
    const std::map<std::string, onnx::Tensor> inputs = Tensors(given);
    PyProfile profile;
    Run([&]() -> Status {
      ANYDML_RETURN_IF_ERROR(CheckProcess());
      const std::lock_guard lock(mutex_);
      Status status;
      for (int i = 0; i < 2 && status.ok(); ++i) {
        const NodeTimes times;
        std::vector<onnx::NamedResult> results;
        const auto begin = std::chrono::steady_clock::now();
        status = session_->Run(inputs, &results);
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
        std::get<0>(profile) = taken.count();
        std::get<1>(profile).clear();
        for (const auto& [name, row] : times.rows())
          std::get<1>(profile).emplace_back(name, row.seconds, row.calls);
      }
      if (!status.ok()) device_->Discard();
      return status;
    });
    return profile;
  }

 private:
  static std::map<std::string, onnx::Tensor> Tensors(const std::map<std::string, PyInput>& given) {
    std::map<std::string, onnx::Tensor> tensors;
    for (const auto& [name, input] : given) {
      const auto& [type, shape, address, bytes] = input;
      onnx::Tensor& tensor = tensors[name];
      tensor.type = static_cast<onnx::ElementType>(type);
      tensor.shape = shape;
      tensor.data = {reinterpret_cast<const std::byte*>(address), bytes};
    }
    return tensors;
  }

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
      .def("run", &OnnxModel::RunModel)
      .def("profile", &OnnxModel::Profile);
}

}  // namespace anydml::python
