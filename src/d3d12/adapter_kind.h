// What an adapter says it is.
#pragma once

#include "backend/backend.h"
#include "base/status.h"

namespace anydml::d3d12 {

enum class AdapterKind { kGpu, kComputeAccelerator, kNpu, kSoftware };

// Whether the environment variable ANYDML_ADAPTER_KIND can be understood: `npu` is what all adapters say,
// `cpu=npu,cuda:0=gpu` what some do. The functions below pass over what cannot.
Status CheckAdapterKinds();

// What the variable says of this adapter; else GPUs are GPUs, and the CPU is a compute accelerator.
AdapterKind KindOf(const Backend& backend);

// Nothing is drawn on any of them, but programs filter by this attribute for devices of level 11_0 and would
// see no adapter at all. Those that want an NPU take adapters without it, so only the variable takes it away.
bool ClaimsGraphics(const Backend& backend);

}  // namespace anydml::d3d12
