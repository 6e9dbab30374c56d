// The info queue's filters and break settings: locked forwarding.
#include <algorithm>

#include "d3d12/messages/info_queue.h"

namespace anydml::d3d12 {

HRESULT InfoQueue::AddStorageFilterEntries(D3D12_INFO_QUEUE_FILTER* filter) {
  std::lock_guard lock(mutex_);
  return storage_.AddEntries(filter);
}

HRESULT InfoQueue::GetStorageFilter(D3D12_INFO_QUEUE_FILTER* filter, SIZE_T* byte_length) {
  std::lock_guard lock(mutex_);
  return storage_.Get(filter, byte_length);
}

void InfoQueue::ClearStorageFilter() {
  std::lock_guard lock(mutex_);
  storage_.Clear();
}

HRESULT InfoQueue::PushEmptyStorageFilter() {
  std::lock_guard lock(mutex_);
  return storage_.PushEmpty();
}

HRESULT InfoQueue::PushCopyOfStorageFilter() {
  std::lock_guard lock(mutex_);
  return storage_.PushCopy();
}

HRESULT InfoQueue::PushStorageFilter(D3D12_INFO_QUEUE_FILTER* filter) {
  std::lock_guard lock(mutex_);
  return storage_.Push(filter);
}

void InfoQueue::PopStorageFilter() {
  std::lock_guard lock(mutex_);
  storage_.Pop();
}

UINT InfoQueue::GetStorageFilterStackSize() {
  std::lock_guard lock(mutex_);
  return storage_.size();
}

HRESULT InfoQueue::AddRetrievalFilterEntries(D3D12_INFO_QUEUE_FILTER* filter) {
  std::lock_guard lock(mutex_);
  return retrieval_.AddEntries(filter);
}

HRESULT InfoQueue::GetRetrievalFilter(D3D12_INFO_QUEUE_FILTER* filter, SIZE_T* byte_length) {
  std::lock_guard lock(mutex_);
  return retrieval_.Get(filter, byte_length);
}

void InfoQueue::ClearRetrievalFilter() {
  std::lock_guard lock(mutex_);
  retrieval_.Clear();
}

HRESULT InfoQueue::PushEmptyRetrievalFilter() {
  std::lock_guard lock(mutex_);
  return retrieval_.PushEmpty();
}

HRESULT InfoQueue::PushCopyOfRetrievalFilter() {
  std::lock_guard lock(mutex_);
  return retrieval_.PushCopy();
}

HRESULT InfoQueue::PushRetrievalFilter(D3D12_INFO_QUEUE_FILTER* filter) {
  std::lock_guard lock(mutex_);
  return retrieval_.Push(filter);
}

void InfoQueue::PopRetrievalFilter() {
  std::lock_guard lock(mutex_);
  retrieval_.Pop();
}

UINT InfoQueue::GetRetrievalFilterStackSize() {
  std::lock_guard lock(mutex_);
  return retrieval_.size();
}

HRESULT InfoQueue::SetFlag(std::vector<UINT>* set, UINT item, BOOL enable) {
  return Guard([&] {
    set->erase(std::remove(set->begin(), set->end(), item), set->end());
    if (enable) set->push_back(item);
    return S_OK;
  });
}

HRESULT InfoQueue::SetBreakOnCategory(D3D12_MESSAGE_CATEGORY category, BOOL enable) {
  std::lock_guard lock(mutex_);
  return SetFlag(&break_categories_, category, enable);
}

HRESULT InfoQueue::SetBreakOnSeverity(D3D12_MESSAGE_SEVERITY severity, BOOL enable) {
  std::lock_guard lock(mutex_);
  return SetFlag(&break_severities_, severity, enable);
}

HRESULT InfoQueue::SetBreakOnID(D3D12_MESSAGE_ID id, BOOL enable) {
  std::lock_guard lock(mutex_);
  return SetFlag(&break_ids_, id, enable);
}

BOOL InfoQueue::GetBreakOnCategory(D3D12_MESSAGE_CATEGORY category) {
  std::lock_guard lock(mutex_);
  return std::count(break_categories_.begin(), break_categories_.end(), static_cast<UINT>(category)) != 0;
}

BOOL InfoQueue::GetBreakOnSeverity(D3D12_MESSAGE_SEVERITY severity) {
  std::lock_guard lock(mutex_);
  return std::count(break_severities_.begin(), break_severities_.end(), static_cast<UINT>(severity)) != 0;
}

BOOL InfoQueue::GetBreakOnID(D3D12_MESSAGE_ID id) {
  std::lock_guard lock(mutex_);
  return std::count(break_ids_.begin(), break_ids_.end(), static_cast<UINT>(id)) != 0;
}

}  // namespace anydml::d3d12
