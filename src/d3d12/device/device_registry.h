// One Direct3D device per adapter: as on Windows, creating it again returns the same object while it lives,
// so that libraries which create "their own" device can share buffers with the program. A removed device is
// never returned again.
#pragma once

#include <d3d12.h>

#include "backend/backend.h"

namespace anydml::d3d12 {

class Device;

// The live device of this adapter (with or without debug layer), or a new one.
HRESULT OpenDevice(Backend& backend, bool debug, REFIID iid, void** out);

// Called by the device's destructor.
void ForgetDevice(Device* device);

}  // namespace anydml::d3d12
