// The kind that an adapter reports.
#pragma once

#include "backend/backend.h"
#include "base/status.h"

namespace anydml::d3d12 {

enum class AdapterKind { kGpu, kComputeAccelerator, kNpu, kSoftware };

// Whether the environment variable ANYDML_ADAPTER_KIND is valid: `npu` applies to all adapters,
// `cpu=npu,cuda:0=gpu` to some. The functions below ignore invalid entries.
Status CheckAdapterKinds();

// The kind that the variable gives this adapter; by default GPUs are GPUs, and the CPU is a compute
// accelerator.
AdapterKind KindOf(const Backend& backend);

// No adapter here can draw, but programs filter by this attribute for devices of level 11_0 and would see no
// adapter at all. Programs that want an NPU choose adapters without it, so only the variable removes it.
bool ClaimsGraphics(const Backend& backend);

}  // namespace anydml::d3d12
