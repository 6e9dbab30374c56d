// From a client's interface pointer to our class. Every class answers a private IID (kImplementation) with
// its own `this`. Foreign objects do not know that IID, so they are recognised without assumptions about
// their memory layout.
#pragma once

#include <d3d12.h>

#include "com/com_ptr.h"

namespace anydml::d3d12 {

template <typename T>
ComPtr<T> ImplementationOf(IUnknown* object) {
  void* found = nullptr;
  if (object == nullptr || FAILED(object->QueryInterface(T::kImplementation, &found))) return {};
  return ComPtr<T>::Adopt(static_cast<T*>(found));
}

}  // namespace anydml::d3d12
