#include "d3d12/adapters/adapter_lookup.h"

#include <algorithm>

#include "d3d12/adapters/dxcore_adapter.h"
#include "d3d12/adapters/dxgi_adapter.h"
#include "d3d12/implementation_of.h"

namespace anydml::d3d12 {

Backend* BackendFromAdapter(IUnknown* adapter) {
  if (const auto dxcore = ImplementationOf<DxCoreAdapter>(adapter)) return &dxcore->backend();
  if (const auto dxgi = ImplementationOf<DxgiAdapter>(adapter)) return &dxgi->backend();
  return nullptr;
}

Backend* BackendFromLuid(const LUID& luid) {
  const auto backends = Backends();
  const auto found = std::find_if(backends.begin(), backends.end(), [&luid](const Backend* backend) {
    const LUID candidate = LuidOf(*backend);
    return candidate.LowPart == luid.LowPart && candidate.HighPart == luid.HighPart;
  });
  return found == backends.end() ? nullptr : *found;
}

LUID LuidOf(const Backend& backend) {
  const uint64_t luid = backend.adapter().luid;
  return {static_cast<ULONG>(luid), static_cast<LONG>(luid >> 32)};
}

void CopyWide(const std::string& utf8, wchar_t* target, size_t capacity) {
  size_t length = 0;
  for (const char c : utf8) {
    if (length + 1 >= capacity) break;
    // Names of processors are ASCII, so there is no decoder.
    target[length++] = static_cast<unsigned char>(c) < 0x80 ? static_cast<wchar_t>(c) : L'?';
  }
  std::fill(target + length, target + capacity, L'\0');
}

}  // namespace anydml::d3d12
