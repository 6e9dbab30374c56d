// anydml._anydml: devices, compiled operators, device memory, DLPack. The public interface is Python
// (../anydml); this is its C++ part. Long calls release the GIL.
#include <anydml.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "caller.h"
#include "client/describe/operator_facts.h"
#include "device.h"
#include "dlpack.h"
#include "exact_sum.h"
#include "onnx_model.h"
#include "sealed_types.h"
#include "status.h"
#include "tensor_tuple.h"

namespace py = pybind11;

namespace anydml::python {
namespace {

py::object Outputs(const CompiledOperator& op) {
  std::vector<std::optional<PyTensor>> list;
  for (const auto& output : op.outputs) {
    list.push_back(output ? std::optional(FromTensor(*output)) : std::nullopt);
  }
  return ToPython(list);
}

template <typename T>
using Named = std::vector<std::pair<std::string, T>>;
using PyNested = std::pair<std::string, Named<std::string>>;
using PyAttribute = std::variant<std::string, std::vector<PyNested>>;

std::shared_ptr<CompiledOperator> Compile(Device& device, const std::string& name,
                                          const Named<PyTensor>& inputs, const Named<PyAttribute>& attributes,
                                          const Named<std::vector<PyTensor>>& outputs) {
  Request request;
  request.name = name;
  for (const auto& [field, tensor] : inputs) request.inputs.emplace_back(field, ToTensor(tensor));
  for (const auto& [field, value] : attributes) {
    if (const auto* text = std::get_if<std::string>(&value)) {
      request.attributes.emplace_back(field, *text);
      continue;
    }
    std::vector<NestedOperator> operators;
    for (const auto& [op, fields] : std::get<std::vector<PyNested>>(value)) operators.push_back({op, fields});
    request.attributes.emplace_back(field, std::move(operators));
  }
  for (const auto& [field, tensors] : outputs) {
    client::OutputRequest& output = request.outputs.emplace_back(field, client::OutputRequest()).second;
    for (const PyTensor& tensor : tensors) output.push_back(ToTensor(tensor));
  }
  std::shared_ptr<CompiledOperator> compiled;
  Run([&] { return device.Compile(request, &compiled); });
  return compiled;
}

// Absent tensors have address 0.
void RunOperator(const CompiledOperator& compiled, const std::vector<uintptr_t>& inputs,
                 const std::vector<uintptr_t>& outputs, uintptr_t handle, bool wait) {
  const auto addresses = [](const std::vector<uintptr_t>& list) {
    std::vector<void*> result;
    for (const uintptr_t address : list) result.push_back(reinterpret_cast<void*>(address));
    return result;
  };
  std::string data_error;
  Run([&]() -> Status {
    Stream stream;
    ANYDML_RETURN_IF_ERROR(compiled.device->memory().Describe(handle, &stream));
    return compiled.device->Run(compiled, addresses(inputs), addresses(outputs), stream, wait, &data_error);
  });
  if (!data_error.empty()) Raise(PyExc_IndexError, data_error);
}

// Calls `make` for a stream, which is given by its handle.
template <typename Make>
std::shared_ptr<Memory> MakeMemory(Device& device, uintptr_t handle, Make&& make) {
  std::shared_ptr<Memory> memory;
  Run([&]() -> Status {
    Stream stream;
    ANYDML_RETURN_IF_ERROR(device.memory().Describe(handle, &stream));
    return make(stream, &memory);
  });
  return memory;
}

std::shared_ptr<Memory> Allocate(Device& device, uint64_t bytes, uintptr_t handle, bool zeros) {
  return MakeMemory(device, handle, [&](const Stream& stream, std::shared_ptr<Memory>* out) {
    return zeros ? device.memory().TakeNew(bytes, stream, out) : device.memory().Take(bytes, stream, out);
  });
}

std::shared_ptr<Memory> Upload(Device& device, uintptr_t address, uint64_t bytes, uintptr_t handle) {
  return MakeMemory(device, handle, [&](const Stream& stream, std::shared_ptr<Memory>* out) {
    return device.Upload({address, bytes}, stream, out);
  });
}

std::shared_ptr<Memory> Duplicate(Device& device, uintptr_t address, uint64_t bytes, uintptr_t handle) {
  return MakeMemory(device, handle, [&](const Stream& stream, std::shared_ptr<Memory>* out) {
    return device.Duplicate({address, bytes}, stream, out);
  });
}

std::shared_ptr<MemoryUse> UseIn(const std::shared_ptr<Memory>& memory, uintptr_t handle, bool exported) {
  if (memory == nullptr) Raise(PyExc_TypeError, "use_in is a method of Memory, not of None");
  std::shared_ptr<MemoryUse> use;
  Run([&]() -> Status {
    Stream stream;
    ANYDML_RETURN_IF_ERROR(memory->pool()->Describe(handle, &stream));
    return MemoryUse::Begin(memory, stream, exported, &use);
  });
  return use;
}

std::shared_ptr<Device> Open(const std::string& adapter) {
  std::shared_ptr<Device> device;
  const Status status = WithoutGil([&] { return Device::Open(adapter, &device); });
  // A missing adapter is not a NotImplementedError.
  if (status.code() == Code::kUnsupported || status.code() == Code::kNotImplemented) {
    Raise(PyExc_RuntimeError, status.message());
  }
  Check(status);
  return device;
}

// The adapter that DLPack's device number means; "" if there is none.
std::string AdapterWithMemory(int32_t type, int32_t id) {
  std::vector<client::Adapter> adapters;
  Run([&] { return client::ListAdapters(&adapters); });
  for (const client::Adapter& adapter : adapters) {
    if (adapter.traits.DlpackDeviceType == type && adapter.traits.DlpackDeviceId == id) return adapter.id;
  }
  return "";
}

std::vector<std::pair<std::string, std::string>> Adapters() {
  std::vector<client::Adapter> adapters;
  Run([&] { return client::ListAdapters(&adapters); });
  std::vector<std::pair<std::string, std::string>> list;
  for (const client::Adapter& adapter : adapters) list.emplace_back(adapter.id, adapter.description);
  return list;
}

std::vector<std::string> OperatorNames() {
  std::vector<std::string> names;
  for (const OperatorSchema& schema : AllOperators()) names.emplace_back(schema.name);
  return names;
}

std::vector<std::string> DataTypeNames() {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < kDataTypeCount; ++i) names.emplace_back(Name(static_cast<DataType>(i)));
  return names;
}

// Adds the numbers of each row to its digits; infinities and NaNs of a row are added separately.
void AddRowsExactly(uintptr_t numbers, size_t rows, size_t columns, uintptr_t digits, size_t digit_count,
                    uintptr_t special) {
  Run([&] {
    for (size_t row = 0; row < rows; ++row) {
      reinterpret_cast<float*>(special)[row] +=
          AddExactly({reinterpret_cast<const float*>(numbers) + row * columns, columns},
                     {reinterpret_cast<int64_t*>(digits) + row * digit_count, digit_count});
    }
    return Status();
  });
}

// The exception of pybind11 for an object that Python could not make; Python's own error is already set.
void TranslateException(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(std::move(thrown));
  } catch (const std::runtime_error&) {
    if (PyErr_Occurred() == nullptr) throw;
  }
}

}  // namespace

PYBIND11_MODULE(_anydml, m) {
  py::register_exception_translator(TranslateException);
  m.def("version", AnyDmlGetVersion);
  m.def("adapters", Adapters);
  m.def("adapter_with_memory", AdapterWithMemory);
  m.def("operators", OperatorNames);
  m.def("data_types", DataTypeNames);

  // Classes have no constructors: functions make the objects (SealTypes).
  py::class_<CompiledOperator, std::shared_ptr<CompiledOperator>>(m, "CompiledOperator")
      .def_property_readonly("outputs", Outputs)
      .def_property_readonly(
          "implementation",
          [](const CompiledOperator& op) { return AnyDmlGetImplementation(op.op.compiled.Get()); })
      .def_property_readonly("explanation", [](const CompiledOperator& op) { return op.op.explanation; })
      .def("may_run_in_place",
           [](const CompiledOperator& op, uint32_t input, uint32_t output) {
             return AnyDmlMayRunInPlace(op.op.compiled.Get(), input, output) != 0;
           })
      .def("run", RunOperator);

  py::class_<Memory, std::shared_ptr<Memory>>(m, "Memory")
      .def_property_readonly("address", OnObject(&Memory::address))
      .def_property_readonly("bytes", OnObject(&Memory::bytes))
      .def_property_readonly("stream", OnObject(&Memory::latest_stream))
      .def("use_in", UseIn);
  [[maybe_unused]] const py::class_<MemoryUse, std::shared_ptr<MemoryUse>> memory_use(m, "MemoryUse");

  py::class_<Device, std::shared_ptr<Device>>(m, "Device")
      .def_property_readonly("id", [](const Device& device) { return device.adapter().id; })
      .def_property_readonly("description", [](const Device& device) { return device.adapter().description; })
      .def_property_readonly("runs_on_host",
                             [](const Device& device) { return device.adapter().traits.RunsOnHost != 0; })
      .def_property_readonly("dlpack_device",
                             [](const Device& device) {
                               const AnyDmlAdapterTraits& traits = device.adapter().traits;
                               return std::pair(traits.DlpackDeviceType, traits.DlpackDeviceId);
                             })
      .def_property_readonly("feature_level",
                             [](const Device& device) { return FeatureLevelName(device.feature_level()); })
      .def_property_readonly("removed", OnObject(&Device::removed))
      .def("remove", OnObject(&Device::Remove))
      .def("compile", Compile)
      .def("allocate", Allocate)
      .def("upload", Upload)
      .def("duplicate", Duplicate)
      .def("download", [](Device& device, const Memory& memory, uint64_t bytes, uintptr_t to) {
        Run([&] { return device.Download(memory, bytes, reinterpret_cast<std::byte*>(to)); });
      });
  m.def("open_device", Open);
  DefineCaller(&m);

  py::class_<ImportedTensor, std::shared_ptr<ImportedTensor>>(m, "ImportedTensor")
      .def_property_readonly("address", OnObject(&ImportedTensor::address))
      .def_property_readonly("device", OnObject(&ImportedTensor::device))
      .def_property_readonly("shape", OnObject(&ImportedTensor::shape))
      .def_property_readonly("strides", OnObject(&ImportedTensor::strides))
      .def_property_readonly("type", OnObject(&ImportedTensor::type));
  m.def("import_tensor", [](const py::object& capsule, const std::string& what) {
    return std::make_shared<ImportedTensor>(capsule, what);
  });
  m.def("export_tensor", ExportTensor);
  m.def("add_exactly", AddRowsExactly);
  DefineOnnxModel(&m);
  SealTypes();
}

}  // namespace anydml::python
