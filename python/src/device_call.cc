// Calls on tensors in a GPU's memory. The operator is enqueued in the stream that was passed to the
// producers.
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
  return CallOnDevice(caller, &arrays, out, number, stream == Py_None);
}

py::object CallOnDevice(const Caller& caller, DeviceArrays* inputs, PyObject* out, const StreamNumber& number,
                        bool wait) {
  MemoryPool& pool = caller.op->device->memory();
  Stream stream;
  Check(pool.Describe(number.handle, &stream));
  uintptr_t ordered = 0;
  Addresses from{}, to{};
  for (size_t i = 0; i < caller.inputs.size(); ++i) {
    if (!caller.inputs[i]) continue;
    from[i] = (*inputs)[i].address();
    Check((*inputs)[i].Use(stream, pool, &ordered));
  }
  const size_t count = caller.outputs.size();
  Objects results;  // first the given ones
  if (!SplitOut(out, count, &results)) return {};
  DeviceArrays places;
  std::array<std::shared_ptr<Memory>, kMaxTensors> memory;  // of new results
  for (size_t i = 0; i < count; ++i) {
    if (!caller.outputs[i]) {
      if (results[i]) return {};
      results[i] = py::none();
    } else if (results[i]) {
      if (!places[i].Open(results[i].ptr(), number) || !places[i].Is(caller, caller.outputs[i]->tensor))
        return {};
      to[i] = places[i].address();
      Check(places[i].Use(stream, pool, &ordered));
    } else {
      Check(pool.Take(caller.outputs[i]->bytes, stream, &memory[i]));
      to[i] = reinterpret_cast<void*>(memory[i]->address());
    }
  }
  if (!RunQuickly(caller, from, to, stream, wait)) return {};
  for (size_t i = 0; i < count; ++i) {
    if (memory[i])
      results[i] = caller.make_tensor(memory[i], caller.outputs[i]->shape, caller.outputs[i]->dtype);
  }
  return Joined({results.data(), count});
}

}  // namespace anydml::python
