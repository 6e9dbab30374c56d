// One filter of the info queue: allow and deny lists by category, severity and id.
#pragma once

#include <vector>

#include <d3d12.h>

namespace anydml::d3d12 {

class MessageFilter {
 public:
  void Add(const D3D12_INFO_QUEUE_FILTER& filter);

  // A message passes if no deny list matches it and every non-empty allow list does.
  bool Passes(D3D12_MESSAGE_CATEGORY category, D3D12_MESSAGE_SEVERITY severity, D3D12_MESSAGE_ID id) const;

  // The two-call protocol of GetStorageFilter: the arrays follow the struct in
  // the caller's buffer.
  HRESULT Write(D3D12_INFO_QUEUE_FILTER* filter, SIZE_T* byte_length) const;

 private:
  struct Lists {
    std::vector<D3D12_MESSAGE_CATEGORY> categories;
    std::vector<D3D12_MESSAGE_SEVERITY> severities;
    std::vector<D3D12_MESSAGE_ID> ids;

    void Add(const D3D12_INFO_QUEUE_FILTER_DESC& desc);
    size_t ByteSize() const;
    std::byte* Write(D3D12_INFO_QUEUE_FILTER_DESC* desc, std::byte* arrays) const;
  };

  Lists allow_;
  Lists deny_;
};

}  // namespace anydml::d3d12
