// The application's memory, with the function that tells the application when it is no longer used.
#pragma once

#include <functional>
#include <utility>

#include "backend/backend.h"

namespace anydml {

class ForeignMemory final : public Memory {
 public:
  ForeignMemory(void* memory, uint64_t bytes, bool on_host, std::function<void()> release)
      : release_(std::move(release)) {
    device_ = static_cast<std::byte*>(memory);
    host_ = on_host ? device_ : nullptr;
    size_ = bytes;
  }
  ~ForeignMemory() override { release_(); }

 private:
  const std::function<void()> release_;
};

}  // namespace anydml
