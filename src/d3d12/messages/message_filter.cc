#include "d3d12/messages/message_filter.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace anydml::d3d12 {
namespace {

template <typename T>
void Append(std::vector<T>* list, const T* items, UINT count) {
  if (items != nullptr) list->insert(list->end(), items, items + count);
}

template <typename T>
bool Contains(const std::vector<T>& list, T item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

template <typename T>
std::byte* WriteList(const std::vector<T>& list, UINT* count, T** pointer, std::byte* target) {
  *count = static_cast<UINT>(list.size());
  *pointer = list.empty() ? nullptr : reinterpret_cast<T*>(target);
  if (!list.empty()) std::memcpy(target, list.data(), list.size() * sizeof(T));
  return target + list.size() * sizeof(T);
}

}  // namespace

void MessageFilter::Lists::Add(const D3D12_INFO_QUEUE_FILTER_DESC& desc) {
  Append(&categories, desc.pCategoryList, desc.NumCategories);
  Append(&severities, desc.pSeverityList, desc.NumSeverities);
  Append(&ids, desc.pIDList, desc.NumIDs);
}

size_t MessageFilter::Lists::ByteSize() const {
  return categories.size() * sizeof(D3D12_MESSAGE_CATEGORY) +
         severities.size() * sizeof(D3D12_MESSAGE_SEVERITY) + ids.size() * sizeof(D3D12_MESSAGE_ID);
}

std::byte* MessageFilter::Lists::Write(D3D12_INFO_QUEUE_FILTER_DESC* desc, std::byte* arrays) const {
  arrays = WriteList(categories, &desc->NumCategories, &desc->pCategoryList, arrays);
  arrays = WriteList(severities, &desc->NumSeverities, &desc->pSeverityList, arrays);
  return WriteList(ids, &desc->NumIDs, &desc->pIDList, arrays);
}

void MessageFilter::Add(const D3D12_INFO_QUEUE_FILTER& filter) {
  allow_.Add(filter.AllowList);
  deny_.Add(filter.DenyList);
}

bool MessageFilter::Passes(D3D12_MESSAGE_CATEGORY category, D3D12_MESSAGE_SEVERITY severity,
                           D3D12_MESSAGE_ID id) const {
  if (Contains(deny_.categories, category) || Contains(deny_.severities, severity) ||
      Contains(deny_.ids, id)) {
    return false;
  }
  return (allow_.categories.empty() || Contains(allow_.categories, category)) &&
         (allow_.severities.empty() || Contains(allow_.severities, severity)) &&
         (allow_.ids.empty() || Contains(allow_.ids, id));
}

HRESULT MessageFilter::Write(D3D12_INFO_QUEUE_FILTER* filter, SIZE_T* byte_length) const {
  if (byte_length == nullptr) return E_INVALIDARG;
  const SIZE_T needed = sizeof(*filter) + allow_.ByteSize() + deny_.ByteSize();
  const SIZE_T given = *byte_length;
  *byte_length = needed;
  if (filter == nullptr) return S_OK;
  if (given < needed) return E_INVALIDARG;
  *filter = {};
  deny_.Write(&filter->DenyList, allow_.Write(&filter->AllowList, reinterpret_cast<std::byte*>(filter + 1)));
  return S_OK;
}

}  // namespace anydml::d3d12
