// A stack of filters; the info queue has one for storage and one for retrieval.
#pragma once

#include <vector>

#include "com/guard.h"
#include "d3d12/messages/message_filter.h"

namespace anydml::d3d12 {

class FilterStack {
 public:
  // An empty stack lets everything pass.
  bool Passes(D3D12_MESSAGE_CATEGORY category, D3D12_MESSAGE_SEVERITY severity, D3D12_MESSAGE_ID id) const {
    return filters_.empty() || filters_.back().Passes(category, severity, id);
  }

  HRESULT AddEntries(const D3D12_INFO_QUEUE_FILTER* filter) {
    if (filter == nullptr) return E_INVALIDARG;
    return Guard([&] {
      if (filters_.empty()) filters_.emplace_back();
      filters_.back().Add(*filter);
      return S_OK;
    });
  }

  HRESULT Get(D3D12_INFO_QUEUE_FILTER* filter, SIZE_T* byte_length) const {
    return filters_.empty() ? MessageFilter().Write(filter, byte_length)
                            : filters_.back().Write(filter, byte_length);
  }

  void Clear() {
    if (!filters_.empty()) filters_.back() = MessageFilter();
  }

  HRESULT PushEmpty() {
    return Guard([&] {
      filters_.emplace_back();
      return S_OK;
    });
  }

  HRESULT PushCopy() {
    return Guard([&] {
      filters_.push_back(filters_.empty() ? MessageFilter() : filters_.back());
      return S_OK;
    });
  }

  HRESULT Push(const D3D12_INFO_QUEUE_FILTER* filter) {
    if (filter == nullptr) return E_INVALIDARG;
    return Guard([&] {
      filters_.emplace_back().Add(*filter);
      return S_OK;
    });
  }

  void Pop() {
    if (!filters_.empty()) filters_.pop_back();
  }

  UINT size() const { return static_cast<UINT>(filters_.size()); }

 private:
  std::vector<MessageFilter> filters_;
};

}  // namespace anydml::d3d12
