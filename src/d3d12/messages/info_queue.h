// ID3D12InfoQueue1: stores a device's messages. Unlike on Windows it exists without the debug layer, too,
// because every failure has a message.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "d3d12/messages/filter_stack.h"

namespace anydml::d3d12 {

// A second interface chain of the device: references and QueryInterface are the device's, so there is one
// identity.
class InfoQueue final : public ID3D12InfoQueue1 {
 public:
  explicit InfoQueue(IUnknown* device) : device_(device) {}

  // Stores the message if the filters pass it, and calls the callbacks. Never throws: if memory runs out, the
  // message is lost.
  void Add(D3D12_MESSAGE_CATEGORY category, D3D12_MESSAGE_SEVERITY severity, D3D12_MESSAGE_ID id,
           const std::string& text) noexcept;

  // Whether this thread is in a callback of any device.
  static bool InCallback();

  HRESULT STDMETHODCALLTYPE QueryInterface(REFIID iid, void** object) override {
    return device_->QueryInterface(iid, object);
  }
  ULONG STDMETHODCALLTYPE AddRef() override { return device_->AddRef(); }
  ULONG STDMETHODCALLTYPE Release() override { return device_->Release(); }

  HRESULT STDMETHODCALLTYPE SetMessageCountLimit(UINT64 limit) override;
  void STDMETHODCALLTYPE ClearStoredMessages() override;
  HRESULT STDMETHODCALLTYPE GetMessage(UINT64 index, D3D12_MESSAGE* message, SIZE_T* byte_length) override;
  UINT64 STDMETHODCALLTYPE GetNumMessagesAllowedByStorageFilter() override;
  UINT64 STDMETHODCALLTYPE GetNumMessagesDeniedByStorageFilter() override;
  UINT64 STDMETHODCALLTYPE GetNumStoredMessages() override;
  UINT64 STDMETHODCALLTYPE GetNumStoredMessagesAllowedByRetrievalFilter() override;
  UINT64 STDMETHODCALLTYPE GetNumMessagesDiscardedByMessageCountLimit() override;
  UINT64 STDMETHODCALLTYPE GetMessageCountLimit() override;

  HRESULT STDMETHODCALLTYPE AddStorageFilterEntries(D3D12_INFO_QUEUE_FILTER* filter) override;
  HRESULT STDMETHODCALLTYPE GetStorageFilter(D3D12_INFO_QUEUE_FILTER* filter, SIZE_T* byte_length) override;
  void STDMETHODCALLTYPE ClearStorageFilter() override;
  HRESULT STDMETHODCALLTYPE PushEmptyStorageFilter() override;
  HRESULT STDMETHODCALLTYPE PushCopyOfStorageFilter() override;
  HRESULT STDMETHODCALLTYPE PushStorageFilter(D3D12_INFO_QUEUE_FILTER* filter) override;
  void STDMETHODCALLTYPE PopStorageFilter() override;
  UINT STDMETHODCALLTYPE GetStorageFilterStackSize() override;
  HRESULT STDMETHODCALLTYPE AddRetrievalFilterEntries(D3D12_INFO_QUEUE_FILTER* filter) override;
  HRESULT STDMETHODCALLTYPE GetRetrievalFilter(D3D12_INFO_QUEUE_FILTER* filter, SIZE_T* byte_length) override;
  void STDMETHODCALLTYPE ClearRetrievalFilter() override;
  HRESULT STDMETHODCALLTYPE PushEmptyRetrievalFilter() override;
  HRESULT STDMETHODCALLTYPE PushCopyOfRetrievalFilter() override;
  HRESULT STDMETHODCALLTYPE PushRetrievalFilter(D3D12_INFO_QUEUE_FILTER* filter) override;
  void STDMETHODCALLTYPE PopRetrievalFilter() override;
  UINT STDMETHODCALLTYPE GetRetrievalFilterStackSize() override;

  HRESULT STDMETHODCALLTYPE AddMessage(D3D12_MESSAGE_CATEGORY category, D3D12_MESSAGE_SEVERITY severity,
                                       D3D12_MESSAGE_ID id, LPCSTR description) override;
  HRESULT STDMETHODCALLTYPE AddApplicationMessage(D3D12_MESSAGE_SEVERITY severity,
                                                  LPCSTR description) override;

  // A library should not break into a debugger; the settings are only stored.
  HRESULT STDMETHODCALLTYPE SetBreakOnCategory(D3D12_MESSAGE_CATEGORY category, BOOL enable) override;
  HRESULT STDMETHODCALLTYPE SetBreakOnSeverity(D3D12_MESSAGE_SEVERITY severity, BOOL enable) override;
  HRESULT STDMETHODCALLTYPE SetBreakOnID(D3D12_MESSAGE_ID id, BOOL enable) override;
  BOOL STDMETHODCALLTYPE GetBreakOnCategory(D3D12_MESSAGE_CATEGORY category) override;
  BOOL STDMETHODCALLTYPE GetBreakOnSeverity(D3D12_MESSAGE_SEVERITY severity) override;
  BOOL STDMETHODCALLTYPE GetBreakOnID(D3D12_MESSAGE_ID id) override;
  void STDMETHODCALLTYPE SetMuteDebugOutput(BOOL mute) override { muted_ = mute != FALSE; }
  BOOL STDMETHODCALLTYPE GetMuteDebugOutput() override { return muted_ ? TRUE : FALSE; }

  HRESULT STDMETHODCALLTYPE RegisterMessageCallback(D3D12MessageFunc function,
                                                    D3D12_MESSAGE_CALLBACK_FLAGS flags, void* context,
                                                    DWORD* cookie) override;
  HRESULT STDMETHODCALLTYPE UnregisterMessageCallback(DWORD cookie) override;

 private:
  struct StoredMessage {
    D3D12_MESSAGE_CATEGORY category;
    D3D12_MESSAGE_SEVERITY severity;
    D3D12_MESSAGE_ID id;
    std::string text;
  };
  struct Callback {
    DWORD cookie;
    D3D12MessageFunc function;
    D3D12_MESSAGE_CALLBACK_FLAGS flags;
    void* context;
  };

  bool Store(const StoredMessage& message);
  void TrimLocked();
  bool Retrievable(const StoredMessage& message) const;
  static HRESULT Write(const StoredMessage& source, D3D12_MESSAGE* message, SIZE_T* byte_length);
  static HRESULT SetFlag(std::vector<UINT>* set, UINT item, BOOL enable);

  IUnknown* const device_;  // owns this object
  std::atomic<bool> muted_{false};

  mutable std::mutex mutex_;  // guards everything down to the callbacks
  std::deque<StoredMessage> messages_;
  UINT64 limit_ = 1024;
  UINT64 allowed_ = 0;
  UINT64 denied_ = 0;
  UINT64 discarded_ = 0;
  FilterStack storage_;
  FilterStack retrieval_;
  std::vector<UINT> break_categories_;
  std::vector<UINT> break_severities_;
  std::vector<UINT> break_ids_;

  // Held while callbacks run, so that none runs after it was unregistered;
  // recursive, because a callback may post messages or unregister itself.
  std::recursive_mutex callbacks_mutex_;
  std::vector<Callback> callbacks_;
  DWORD next_cookie_ = 1;
};

}  // namespace anydml::d3d12
