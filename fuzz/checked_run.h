// One valid use of a device from upload to readback, with its own objects.
#pragma once

#include <DirectML.h>
#include <wrl/client.h>

#include "fuzz.h"

namespace anydml::fuzz {

using Microsoft::WRL::ComPtr;

// Waits until `fence` reaches `value` or the time in milliseconds is over; returns whether it did.
bool WaitFor(ID3D12Fence* fence, uint64_t value, int milliseconds);

D3D12_RESOURCE_DESC BufferDesc(uint64_t bytes, D3D12_RESOURCE_FLAGS flags);
D3D12_RESOURCE_STATES InitialState(D3D12_HEAP_TYPE type);

// The K best elements of a row, on a separate queue. Other threads may remove the devices meanwhile;
// otherwise the result must be right.
void CheckedRun(ByteSource& source, ID3D12Device* d3d, IDMLDevice* dml);

}  // namespace anydml::fuzz
