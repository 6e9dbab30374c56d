#include "onnx_model.h"

#include <anydml.h>
#include <pybind11/stl.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>

#include "onnx/run/session.h"
#include "process.h"
#include "sealed_types.h"
#include "status.h"

namespace py = pybind11;

namespace anydml::python {
namespace {

// name, TensorProto.DataType, sizes (None for any size) or None
using PySignature = std::tuple<py::str, int32_t, std::optional<std::vector<std::optional<int64_t>>>>;
// TensorProto.DataType, sizes, address, bytes: packed elements that the caller keeps alive
using PyInput = std::tuple<int32_t, std::vector<int64_t>, uintptr_t, uint64_t>;
using PyOutput = std::tuple<py::str, int32_t, std::vector<int64_t>, py::object>;
// seconds of the run, and of its nodes: name, seconds, calls
using PyProfile = std::tuple<double, std::vector<std::tuple<py::str, double, uint64_t>>>;

// Collects what AnyDmlSetProfiler reports while it exists; one at a time per process.
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

  Status Read(std::map<std::string, Row>* rows) const {
    const std::lock_guard lock(TheActive().mutex);
    *rows = rows_;
    return status_;
  }

 private:
  static std::mutex& Mutex() {
    static std::mutex mutex;
    return mutex;
  }
  // A graph that another thread began earlier may end after the profile.
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
    NodeTimes* const times = TheActive().times;
    if (times == nullptr || !times->status_.ok()) return;
    times->status_ = Caught([&] {
      Row& row = times->rows_[node];
      row.seconds += static_cast<double>(end - begin) * 1e-9;
      ++row.calls;
      return Status();
    });
  }

  const std::lock_guard<std::mutex> lock_;
  std::map<std::string, Row> rows_;
  Status status_;
};

// A bytearray with a copy.
py::object ToBytes(std::span<const std::byte> data) {
  PyObject* const bytes = PyByteArray_FromStringAndSize(reinterpret_cast<const char*>(data.data()),
                                                        static_cast<Py_ssize_t>(data.size()));
  if (bytes == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(bytes);
}

class OnnxModel {
 public:
  // `contents` is the file if there is no path.
  OnnxModel(const std::string& path, const std::optional<py::bytes>& contents, const std::string& adapter) {
    // The file is read in place; its last user may be another thread.
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
      client::SessionOptions options;
      options.adapter = adapter;
      options.debug = false;
      ANYDML_RETURN_IF_ERROR(client::Session::Create(options, &device_));
      return onnx::ModelSession::Create(std::move(model), device_.get(), &session_);
    });
    session_->set_poll([this] { return Poll(); });
    for (const onnx::Signature& input : session_->inputs()) {
      const auto escaped = Text(input.name).cast<std::string>();
      if (escaped != input.name) escaped_.emplace(escaped, input.name);
    }
    // A name that matches exactly takes precedence.
    for (const onnx::Signature& input : session_->inputs()) escaped_.erase(input.name);
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
    const bool handles_signals = HandlesSignals();
    Run([&]() -> Status {
      ANYDML_RETURN_IF_ERROR(CheckProcess());
      ANYDML_RETURN_IF_ERROR(CheckNotRunning());
      const std::lock_guard lock(mutex_);
      const Running running(this, handles_signals);
      Status status = Caught([&] { return session_->Run(inputs, &results); });
      return Ended(std::move(status));
    });
    std::vector<PyOutput> outputs;
    for (const onnx::NamedResult& result : results) {
      outputs.emplace_back(Text(result.name), static_cast<int32_t>(result.tensor.type), result.tensor.shape,
                           ToBytes(result.tensor.data));
    }
    return outputs;
  }

  // Profiles a run, after an unprofiled run that compiles.
  PyProfile Profile(const std::map<std::string, PyInput>& given) {
    const std::map<std::string, onnx::Tensor> inputs = Tensors(given);
    double seconds = 0;
    std::map<std::string, NodeTimes::Row> rows;
    const bool handles_signals = HandlesSignals();
    Run([&]() -> Status {
      ANYDML_RETURN_IF_ERROR(CheckProcess());
      ANYDML_RETURN_IF_ERROR(CheckNotRunning());
      const std::lock_guard lock(mutex_);
      const Running running(this, handles_signals);
      Status status;
      for (int i = 0; i < 2 && status.ok(); ++i) {
        status = Caught([&] { return TimedRun(inputs, &seconds, &rows); });
      }
      return Ended(std::move(status));
    });
    PyProfile profile;
    std::get<0>(profile) = seconds;
    for (const auto& [name, row] : rows)
      std::get<1>(profile).emplace_back(Text(name), row.seconds, row.calls);
    return profile;
  }

 private:
  // While a thread runs the model.
  class Running {
   public:
    Running(OnnxModel* model, bool handles_signals) : model_(*model) {
      model_.handles_signals_ = handles_signals;
      model_.runner_ = std::this_thread::get_id();
    }
    ~Running() { model_.runner_ = std::thread::id(); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    OnnxModel& model_;
  };

  // Python handles signals in its main thread alone.
  static bool HandlesSignals() {
    const py::object main = py::module_::import("threading").attr("main_thread")();
    return main.attr("ident").cast<unsigned long>() == PyThread_get_thread_ident();
  }

  // Poll runs handlers of signals, which may call anything.
  Status CheckNotRunning() const {
    if (runner_.load() != std::this_thread::get_id()) return {};
    return Status(Code::kFail, "this thread is running the model; a signal handler cannot run it, too");
  }

  // Between the iterations of its loops: a KeyboardInterrupt ends a run. Not in each of them: the GIL may be
  // busy for milliseconds.
  Status Poll() {
    constexpr std::chrono::milliseconds kInterval(100);
    const auto now = std::chrono::steady_clock::now();
    if (!handles_signals_ || now - polled_ < kInterval) return {};
    polled_ = now;
    const py::gil_scoped_acquire gil;
    return PyErr_CheckSignals() == 0 ? Status() : Status(Code::kFail, "interrupted");
  }

  // Cleans up after a failed run, and says so if the device was lost.
  Status Ended(Status status) {
    if (status.ok()) return status;
    device_->Discard();
    if (!device_->removed()) return status;
    return Status(status.code(), StrCat(status.message(), "; the model has lost its device, load it anew"));
  }

  Status TimedRun(const std::map<std::string, onnx::Tensor>& inputs, double* seconds,
                  std::map<std::string, NodeTimes::Row>* rows) {
    const NodeTimes times;
    std::vector<onnx::NamedResult> results;
    const auto begin = std::chrono::steady_clock::now();
    ANYDML_RETURN_IF_ERROR(session_->Run(inputs, &results));
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    *seconds = taken.count();
    return times.Read(rows);
  }

  std::map<std::string, onnx::Tensor> Tensors(const std::map<std::string, PyInput>& given) const {
    std::map<std::string, onnx::Tensor> tensors;
    for (const auto& [name, input] : given) {
      const auto& [type, shape, address, bytes] = input;
      const auto escaped = escaped_.find(name);
      onnx::Tensor& tensor = tensors[escaped != escaped_.end() ? escaped->second : name];
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
      list.emplace_back(Text(signature.name), static_cast<int32_t>(signature.type), shape);
    }
    return list;
  }

  std::mutex mutex_;
  std::atomic<std::thread::id> runner_;
  bool handles_signals_ = false;                  // these are guarded by mutex_
  std::chrono::steady_clock::time_point polled_;  // when signals were looked at
  std::unique_ptr<client::Session> device_;
  std::unique_ptr<onnx::ModelSession> session_;
  std::map<std::string, std::string> escaped_;  // names of inputs that are not UTF-8, as Python sees them
};

}  // namespace

void DefineOnnxModel(py::module_* m) {
  py::class_<OnnxModel, std::shared_ptr<OnnxModel>>(*m, "OnnxModel")
      .def_property_readonly("inputs", OnObject(&OnnxModel::Inputs))
      .def_property_readonly("outputs", OnObject(&OnnxModel::Outputs))
      .def("run", OnObject(&OnnxModel::RunModel))
      .def("profile", OnObject(&OnnxModel::Profile));
  m->def("load_model",
         [](const std::string& path, const std::optional<py::bytes>& contents, const std::string& adapter) {
           return std::make_shared<OnnxModel>(path, contents, adapter);
         });
}

}  // namespace anydml::python
