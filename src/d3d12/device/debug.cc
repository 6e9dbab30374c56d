#include "d3d12/device/debug.h"

#include <atomic>

namespace anydml::d3d12 {
namespace {

std::atomic<bool> requested{false};

}  // namespace

bool DebugLayerRequested() { return requested.load(std::memory_order_relaxed); }

void Debug::EnableDebugLayer() { requested.store(true, std::memory_order_relaxed); }

void Debug::DisableDebugLayer() { requested.store(false, std::memory_order_relaxed); }

void* Debug::QueryOther(REFIID iid) {
  if (iid == __uuidof(ID3D12Debug1)) return static_cast<ID3D12Debug1*>(&debug1_);
  if (iid == __uuidof(ID3D12Debug2)) return static_cast<ID3D12Debug2*>(&debug2_);
  return nullptr;
}

}  // namespace anydml::d3d12
