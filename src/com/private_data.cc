#include "com/private_data.h"

#include <cstring>
#include <cwchar>

#include "com/guard.h"

namespace anydml {
namespace {

// WKPDID_D3DDebugObjectNameW: SetName stores under it, so that tools can read the name back.
constexpr GUID kDebugObjectNameW = {
    0x4cca5fd8, 0x921f, 0x42c8, {0x85, 0x66, 0x70, 0xca, 0xf2, 0xa9, 0xb7, 0x41}};

void AppendUtf8(uint32_t c, std::string* out) {
  if (c < 0x80) {
    *out += static_cast<char>(c);
  } else if (c < 0x800) {
    *out += static_cast<char>(0xC0 | (c >> 6));
    *out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    *out += static_cast<char>(0xE0 | (c >> 12));
    *out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    *out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    *out += static_cast<char>(0xF0 | ((c >> 18) & 7));
    *out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    *out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    *out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

}  // namespace

HRESULT PrivateData::Get(REFGUID guid, UINT* size, void* data) const {
  if (size == nullptr) return E_INVALIDARG;
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(guid);
  if (found == entries_.end()) {
    *size = 0;
    return DXGI_ERROR_NOT_FOUND;
  }
  const Entry& entry = found->second;
  const UINT needed = entry.object ? sizeof(IUnknown*) : static_cast<UINT>(entry.bytes.size());
  const UINT given = *size;
  *size = needed;
  if (data == nullptr) return S_OK;
  if (given < needed) return DXGI_ERROR_MORE_DATA;
  if (entry.object) {
    IUnknown* object = entry.object.get();
    object->AddRef();
    memcpy(data, &object, sizeof(object));
  } else if (needed != 0) {
    memcpy(data, entry.bytes.data(), needed);
  }
  return S_OK;
}

HRESULT PrivateData::Set(REFGUID guid, UINT size, const void* data) {
  return Guard([&] {
    if (data == nullptr) return size == 0 ? Store(guid, {}) : E_INVALIDARG;
    const auto* bytes = static_cast<const uint8_t*>(data);
    Entry entry;
    entry.bytes.assign(bytes, bytes + size);
    // An empty entry deletes: there would be nothing to read back.
    return Store(guid, std::move(entry));
  });
}

HRESULT PrivateData::SetInterface(REFGUID guid, const IUnknown* object) {
  return Guard([&] {
    Entry entry;
    entry.object = const_cast<IUnknown*>(object);
    return Store(guid, std::move(entry));
  });
}

HRESULT PrivateData::SetName(const wchar_t* name) {
  if (name == nullptr) return Set(kDebugObjectNameW, 0, nullptr);
  return Set(kDebugObjectNameW, static_cast<UINT>((wcslen(name) + 1) * sizeof(wchar_t)), name);
}

std::string PrivateData::name() const {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(kDebugObjectNameW);
  std::string utf8;
  if (found == entries_.end()) return utf8;
  const auto& bytes = found->second.bytes;
  for (size_t i = 0; i + sizeof(wchar_t) <= bytes.size(); i += sizeof(wchar_t)) {
    wchar_t c;
    memcpy(&c, &bytes[i], sizeof(c));
    if (c == 0) break;
    AppendUtf8(static_cast<uint32_t>(c), &utf8);
  }
  return utf8;
}

HRESULT PrivateData::Store(REFGUID guid, Entry entry) {
  // The old entry's object is released outside the lock, because it may call back.
  Entry old;
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(guid);
  if (found != entries_.end()) {
    old = std::move(found->second);
    entries_.erase(found);
  }
  if (entry.object || !entry.bytes.empty()) entries_.emplace(guid, std::move(entry));
  return S_OK;
}

}  // namespace anydml
