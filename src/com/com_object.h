// The base of every COM object here: reference count, QueryInterface over a list
// of interfaces, identity, the live-object count.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>
#include <utility>

#include <d3d12.h>

#include "com/com_ptr.h"

namespace anydml {

uint64_t LiveObjectCount();

namespace com_internal {
void ObjectCreated();
void ObjectDestroyed();
}  // namespace com_internal

// `Main` is the most derived interface that the object implements; `Others` are those that it inherits from
// (IUnknown is implied). All are on one inheritance chain, so one pointer serves for all; objects with a
// second chain override QueryOther.
template <typename Main, typename... Others>
class ComObject : public Main {
 public:
  ComObject(const ComObject&) = delete;
  ComObject& operator=(const ComObject&) = delete;

  HRESULT STDMETHODCALLTYPE QueryInterface(REFIID iid, void** object) override {
    if (object == nullptr) return E_POINTER;
    *object = nullptr;
    if (iid == __uuidof(IUnknown) || iid == __uuidof(Main) || ((iid == __uuidof(Others)) || ...)) {
      *object = static_cast<Main*>(this);
    } else {
      *object = QueryOther(iid);
    }
    if (*object == nullptr) return E_NOINTERFACE;
    AddRef();
    return S_OK;
  }

  ULONG STDMETHODCALLTYPE AddRef() override {
    return references_.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  ULONG STDMETHODCALLTYPE Release() override {
    const ULONG left = references_.fetch_sub(1, std::memory_order_acq_rel) - 1;
    if (left == 0) delete this;
    return left;
  }

  // Adds a reference through a pointer that does not own one (a registry of singletons); false if the object
  // is already being destroyed.
  bool TryAddRef() {
    ULONG count = references_.load(std::memory_order_relaxed);
    while (count != 0) {
      if (references_.compare_exchange_weak(count, count + 1, std::memory_order_acquire,
                                            std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

 protected:
  ComObject() { com_internal::ObjectCreated(); }
  // Not part of the vtable layout that clients see: the interfaces declare no destructor, so its slots follow
  // all of theirs.
  virtual ~ComObject() { com_internal::ObjectDestroyed(); }

  // An interface of another chain, or null. The caller adds the reference.
  virtual void* QueryOther(REFIID) { return nullptr; }

 private:
  std::atomic<ULONG> references_{1};
};

// Creates a T, queries it for `iid` and drops the first reference. With a null `out` it returns S_FALSE, as
// Direct3D 12 does: the arguments were valid, nothing was created. May throw bad_alloc: call it inside a
// Guard (com/guard.h).
template <typename T, typename... Args>
HRESULT CreateComObject(REFIID iid, void** out, Args&&... args) {
  if (out == nullptr) return S_FALSE;
  *out = nullptr;
  auto object = ComPtr<T>::Adopt(new T(std::forward<Args>(args)...));
  return object->QueryInterface(iid, out);
}

}  // namespace anydml
