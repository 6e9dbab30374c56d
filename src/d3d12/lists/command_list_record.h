// The template behind every recording method; for the .cc files of CommandList.
#pragma once

#include <exception>

#include "d3d12/lists/command_list.h"

namespace anydml::d3d12 {

template <typename Body>
void CommandList::RecordIn(const char* method, Body&& body) {
  try {
    if (!open_) {
      device()->FailWith(
          E_FAIL, D3D12_MESSAGE_ID_COMMAND_LIST_CLOSED,
          StrCat("ID3D12GraphicsCommandList::", method, ": the list", QuotedName(), " is closed"));
      return;
    }
    const Status status = body();
    if (!status.ok()) SetError(E_INVALIDARG, method, status.message().c_str());
  } catch (const std::bad_alloc&) {
    SetError(E_OUTOFMEMORY, method, "out of memory");
  } catch (const std::exception& error) {
    SetError(E_FAIL, method, error.what());
  }
}

}  // namespace anydml::d3d12
