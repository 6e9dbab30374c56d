// What the library registers with onnxruntime: a device for each adapter, and providers.
#pragma once

#include <memory>

#include "ort/device_memory.h"
#include "ort/provider.h"

namespace anydml::ort {

class Factory : public OrtEpFactory {
 public:
  explicit Factory(const Api& api);

 private:
  Status ListDevices(const OrtHardwareDevice* const* hardware, size_t count, OrtEpDevice** out,
                     size_t max_out, size_t* out_count);
  Status AddDevice(const client::Adapter& adapter, const OrtHardwareDevice* hardware, bool own_memory,
                   OrtEpDevice** out);
  Status AddMemory(const client::Adapter& adapter, OrtEpDevice* device);
  Status ReadOptions(const OrtSessionOptions* session, ProviderOptions* out) const;

  Status MakeAllocator(const OrtMemoryInfo* info, OrtAllocator** out) const;

  const Api api_;
  DeviceMemories memories_;  // of the GPUs
};

}  // namespace anydml::ort
