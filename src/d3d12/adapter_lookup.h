// From a client's adapter object to the backend it stands for.
#pragma once

#include <d3d12.h>

#include "backend/backend.h"

namespace anydml::d3d12 {

// An adapter of DXCore or DXGI; null when it is not ours.
Backend* BackendFromAdapter(IUnknown* adapter);

Backend* BackendFromLuid(const LUID& luid);
LUID LuidOf(const Backend& backend);

// Every property of an adapter in wide characters is cut from UTF-8 like this.
void CopyWide(const std::string& utf8, wchar_t* target, size_t capacity);

}  // namespace anydml::d3d12
