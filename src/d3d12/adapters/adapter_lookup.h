// Finds the backend behind a client's adapter object.
#pragma once

#include <d3d12.h>

#include "backend/backend.h"

namespace anydml::d3d12 {

// Takes an adapter of DXCore or DXGI; null if it is not ours.
Backend* BackendFromAdapter(IUnknown* adapter);

Backend* BackendFromLuid(const LUID& luid);
LUID LuidOf(const Backend& backend);

// Converts an adapter's UTF-8 property to wide characters, truncated to the capacity.
void CopyWide(const std::string& utf8, wchar_t* target, size_t capacity);

}  // namespace anydml::d3d12
