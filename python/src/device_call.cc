// Calls on tensors in a GPU's memory. The operator is enqueued in the stream that the producers are told of.
#include "device_array.h"
#include "status.h"

namespace py = pybind11;

namespace anydml::python {

py::object CallOnDevice(const Caller& caller, std::span<PyObject* const> inputs, PyObject* out,
                        PyObject* stream) {
  const StreamNumber number = StreamNumber::Of(stream);
  DeviceArrays arrays;
  size_t given = 0;
  for (size_t i = 0; i < caller.inputs.size(); ++i) {
    if (!caller.inputs[i]) continue;
    if (!arrays[i].Open(inputs[given++], number) || !arrays[i].Is(caller, caller.inputs[i]->tensor))
      return {};
  }
  return CallOnDevice(caller, arrays, out, number, stream == Py_None);
}

py::object CallOnDevice(const Caller& caller, const DeviceArrays& inputs, PyObject* out,
                        const StreamNumber& stream, bool wait) {
  Addresses from{}, to{};
  for (size_t i = 0; i < caller.inputs.size(); ++i) {
    if (caller.inputs[i]) from[i] = inputs[i].address();
  }
  const size_t count = caller.outputs.size();
  std::array<PyObject*, kMaxTensors> given;
  if (!SplitOut(out, count, &given)) return {};
  DeviceArrays places;
  std::array<std::shared_ptr<Memory>, kMaxTensors> memory;  // of new results
  for (size_t i = 0; i < count; ++i) {
    if (!caller.outputs[i]) {
      if (given[i] != nullptr) return {};
    } else if (given[i] != nullptr) {
      if (!places[i].Open(given[i], stream) || !places[i].Is(caller, caller.outputs[i]->tensor)) return {};
      to[i] = places[i].address();
    } else {
      Check(caller.op->device->memory().Take(caller.outputs[i]->bytes, stream.handle, &memory[i]));
      to[i] = reinterpret_cast<void*>(memory[i]->address());
    }
  }
  if (!RunQuickly(caller, from, to, stream.handle, wait)) return {};
  std::array<py::object, kMaxTensors> results;
  for (size_t i = 0; i < count; ++i) {
    if (memory[i]) {
      results[i] = caller.make_tensor(memory[i], caller.outputs[i]->shape, caller.outputs[i]->dtype);
    } else {
      results[i] = given[i] != nullptr ? py::reinterpret_borrow<py::object>(given[i]) : py::none();
    }
  }
  return Joined({results.data(), count});
}

}  // namespace anydml::python
