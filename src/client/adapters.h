// The machine's adapters, as DXCore lists them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <DirectML.h>
#include <anydml.h>
#include <wrl/client.h>

#include "base/status.h"

namespace anydml::client {

struct Adapter {
  Microsoft::WRL::ComPtr<IDXCoreAdapter> adapter;
  std::string id;  // "cpu", "cuda:0"
  std::string description;
  AnyDmlAdapterTraits traits = {};
  uint64_t dedicated_bytes = 0;  // its own memory
  uint64_t shared_bytes = 0;     // host memory that the adapter can use
};

// Best first.
Status ListAdapters(std::vector<Adapter>* out);

// By index in the list, by id, by kind (the id up to its colon), or by a part of the description (ignoring
// case); the first one if `wanted` is empty.
Status ChooseAdapter(const std::string& wanted, Adapter* out);

}  // namespace anydml::client
