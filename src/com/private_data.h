// GetPrivateData, SetPrivateData, SetPrivateDataInterface and SetName. NamedObject serves
// Direct3D; DirectML declares them with a non-const interface and has its own mixin.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "com/com_object.h"

namespace anydml {

class PrivateData {
 public:
  HRESULT Get(REFGUID guid, UINT* size, void* data) const;
  HRESULT Set(REFGUID guid, UINT size, const void* data);
  HRESULT SetInterface(REFGUID guid, const IUnknown* object);
  HRESULT SetName(const wchar_t* name);

  // The name in UTF-8, for messages; empty when there is none.
  std::string name() const;

 private:
  struct GuidLess {
    bool operator()(const GUID& a, const GUID& b) const { return memcmp(&a, &b, sizeof(GUID)) < 0; }
  };
  struct Entry {
    std::vector<uint8_t> bytes;
    ComPtr<IUnknown> object;  // if set, the entry is an interface
  };

  HRESULT Store(REFGUID guid, Entry entry);

  mutable std::mutex mutex_;
  std::map<GUID, Entry, GuidLess> entries_;
};

template <typename Main, typename... Others>
class NamedObject : public ComObject<Main, Others...> {
 public:
  HRESULT STDMETHODCALLTYPE GetPrivateData(REFGUID guid, UINT* size, void* data) override {
    return private_data_.Get(guid, size, data);
  }
  HRESULT STDMETHODCALLTYPE SetPrivateData(REFGUID guid, UINT size, const void* data) override {
    return private_data_.Set(guid, size, data);
  }
  HRESULT STDMETHODCALLTYPE SetPrivateDataInterface(REFGUID guid, const IUnknown* object) override {
    return private_data_.SetInterface(guid, object);
  }
  HRESULT STDMETHODCALLTYPE SetName(LPCWSTR name) override { return private_data_.SetName(name); }

  std::string name() const { return private_data_.name(); }

 private:
  PrivateData private_data_;
};

}  // namespace anydml
