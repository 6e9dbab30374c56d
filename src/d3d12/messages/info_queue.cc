#include "d3d12/messages/info_queue.h"

#include <algorithm>
#include <cstring>

namespace anydml::d3d12 {
namespace {

constinit thread_local int callback_depth = 0;

struct CallbackScope {
  CallbackScope() { ++callback_depth; }
  ~CallbackScope() { --callback_depth; }
};

}  // namespace

bool InfoQueue::InCallback() { return callback_depth != 0; }

void InfoQueue::Add(D3D12_MESSAGE_CATEGORY category, D3D12_MESSAGE_SEVERITY severity, D3D12_MESSAGE_ID id,
                    const std::string& text) noexcept {
  try {
    const bool stored = Store({category, severity, id, text});
    std::lock_guard lock(callbacks_mutex_);
    const std::vector<Callback> callbacks = callbacks_;  // a copy, because a callback may change the list
    for (const Callback& callback : callbacks) {
      if (stored || (callback.flags & D3D12_MESSAGE_CALLBACK_IGNORE_FILTERS) != 0) {
        const CallbackScope scope;
        callback.function(category, severity, id, text.c_str(), callback.context);
      }
    }
  } catch (...) {
  }
}

bool InfoQueue::Store(const StoredMessage& message) {
  std::lock_guard lock(mutex_);
  if (!storage_.Passes(message.category, message.severity, message.id)) {
    ++denied_;
    return false;
  }
  ++allowed_;
  messages_.push_back(message);
  TrimLocked();
  return true;
}

void InfoQueue::TrimLocked() {
  while (messages_.size() > limit_) {  // a limit of UINT64_MAX means none
    messages_.pop_front();             // new messages push old ones out, as documented
    ++discarded_;
  }
}

HRESULT InfoQueue::SetMessageCountLimit(UINT64 limit) {
  std::lock_guard lock(mutex_);
  limit_ = limit;
  TrimLocked();
  return S_OK;
}

void InfoQueue::ClearStoredMessages() {
  std::lock_guard lock(mutex_);
  messages_.clear();
}

bool InfoQueue::Retrievable(const StoredMessage& message) const {
  return retrieval_.Passes(message.category, message.severity, message.id);
}

HRESULT InfoQueue::GetMessage(UINT64 index, D3D12_MESSAGE* message, SIZE_T* byte_length) {
  if (byte_length == nullptr) return E_INVALIDARG;
  std::lock_guard lock(mutex_);
  for (const StoredMessage& candidate : messages_) {
    if (Retrievable(candidate) && index-- == 0) return Write(candidate, message, byte_length);
  }
  return E_INVALIDARG;
}

HRESULT InfoQueue::Write(const StoredMessage& source, D3D12_MESSAGE* message, SIZE_T* byte_length) {
  const SIZE_T text_bytes = source.text.size() + 1;
  const SIZE_T needed = sizeof(*message) + text_bytes;
  const SIZE_T given = *byte_length;
  *byte_length = needed;
  if (message == nullptr) return S_FALSE;
  if (given < needed) return E_INVALIDARG;
  auto* text = reinterpret_cast<char*>(message + 1);
  std::memcpy(text, source.text.c_str(), text_bytes);
  *message = {source.category, source.severity, source.id, text, text_bytes};
  return S_OK;
}

UINT64 InfoQueue::GetNumMessagesAllowedByStorageFilter() {
  std::lock_guard lock(mutex_);
  return allowed_;
}

UINT64 InfoQueue::GetNumMessagesDeniedByStorageFilter() {
  std::lock_guard lock(mutex_);
  return denied_;
}

UINT64 InfoQueue::GetNumStoredMessages() {
  std::lock_guard lock(mutex_);
  return messages_.size();
}

UINT64 InfoQueue::GetNumStoredMessagesAllowedByRetrievalFilter() {
  std::lock_guard lock(mutex_);
  return static_cast<UINT64>(
      std::count_if(messages_.begin(), messages_.end(),
                    [this](const StoredMessage& message) { return Retrievable(message); }));
}

UINT64 InfoQueue::GetNumMessagesDiscardedByMessageCountLimit() {
  std::lock_guard lock(mutex_);
  return discarded_;
}

UINT64 InfoQueue::GetMessageCountLimit() {
  std::lock_guard lock(mutex_);
  return limit_;
}

HRESULT InfoQueue::AddMessage(D3D12_MESSAGE_CATEGORY category, D3D12_MESSAGE_SEVERITY severity,
                              D3D12_MESSAGE_ID id, LPCSTR description) {
  if (description == nullptr) return E_INVALIDARG;
  return Guard([&] {
    Add(category, severity, id, description);
    return S_OK;
  });
}

HRESULT InfoQueue::AddApplicationMessage(D3D12_MESSAGE_SEVERITY severity, LPCSTR description) {
  return AddMessage(D3D12_MESSAGE_CATEGORY_APPLICATION_DEFINED, severity,
                    D3D12_MESSAGE_ID_STRING_FROM_APPLICATION, description);
}

HRESULT InfoQueue::RegisterMessageCallback(D3D12MessageFunc function, D3D12_MESSAGE_CALLBACK_FLAGS flags,
                                           void* context, DWORD* cookie) {
  if (function == nullptr || cookie == nullptr) return E_INVALIDARG;
  return Guard([&] {
    std::lock_guard lock(callbacks_mutex_);
    callbacks_.push_back({next_cookie_, function, flags, context});
    *cookie = next_cookie_++;
    return S_OK;
  });
}

HRESULT InfoQueue::UnregisterMessageCallback(DWORD cookie) {
  std::lock_guard lock(callbacks_mutex_);
  const auto removed =
      std::remove_if(callbacks_.begin(), callbacks_.end(),
                     [cookie](const Callback& callback) { return callback.cookie == cookie; });
  if (removed == callbacks_.end()) return E_INVALIDARG;
  callbacks_.erase(removed, callbacks_.end());
  return S_OK;
}

}  // namespace anydml::d3d12
