// The owning handles of the Windows Implementation Library that samples use.
#ifndef ANYDML_SUPPORT_WIL_RESOURCE_H_
#define ANYDML_SUPPORT_WIL_RESOURCE_H_

#include <utility>

#include <anydml_support/win32.h>

namespace wil {
namespace details {

struct HandlePolicy {
  using pointer = HANDLE;
  // CreateEvent fails with null, other functions with INVALID_HANDLE_VALUE.
  static bool IsValid(HANDLE handle) { return handle != nullptr && handle != INVALID_HANDLE_VALUE; }
  static void Close(HANDLE handle) { CloseHandle(handle); }
};

struct ModulePolicy {
  using pointer = HMODULE;
  static bool IsValid(HMODULE module) { return module != nullptr; }
  static void Close(HMODULE module) { FreeLibrary(module); }
};

}  // namespace details

template <typename Policy>
class unique_any_t {
 public:
  using pointer = typename Policy::pointer;

  unique_any_t() noexcept = default;
  unique_any_t(decltype(nullptr)) noexcept {}
  explicit unique_any_t(pointer value) noexcept : value_(value) {}
  unique_any_t(unique_any_t&& other) noexcept : value_(other.release()) {}
  unique_any_t& operator=(unique_any_t&& other) noexcept {
    if (this != other.self()) reset(other.release());
    return *this;
  }
  unique_any_t& operator=(decltype(nullptr)) noexcept {
    reset();
    return *this;
  }
  unique_any_t(const unique_any_t&) = delete;
  unique_any_t& operator=(const unique_any_t&) = delete;
  ~unique_any_t() { reset(); }

  pointer get() const noexcept { return value_; }
  bool is_valid() const noexcept { return Policy::IsValid(value_); }
  explicit operator bool() const noexcept { return is_valid(); }

  pointer release() noexcept {
    pointer value = value_;
    value_ = nullptr;
    return value;
  }
  void reset(pointer value = nullptr) noexcept {
    if (is_valid()) Policy::Close(value_);
    value_ = value;
  }
  void swap(unique_any_t& other) noexcept { std::swap(value_, other.value_); }

  // For functions that return a handle through a pointer.
  pointer* put() noexcept {
    reset();
    return &value_;
  }
  pointer* addressof() noexcept { return &value_; }
  pointer* operator&() noexcept { return put(); }

  friend bool operator==(const unique_any_t& a, decltype(nullptr)) noexcept { return !a.is_valid(); }
  friend bool operator!=(const unique_any_t& a, decltype(nullptr)) noexcept { return a.is_valid(); }

 private:
  // operator& is taken, see above.
  unique_any_t* self() noexcept { return this; }

  pointer value_ = nullptr;
};

using unique_handle = unique_any_t<details::HandlePolicy>;
using unique_event = unique_handle;
using unique_hmodule = unique_any_t<details::ModulePolicy>;

template <typename Function>
class scope_exit_t {
 public:
  explicit scope_exit_t(Function&& function) : function_(std::forward<Function>(function)) {}
  scope_exit_t(scope_exit_t&& other) : function_(std::move(other.function_)), armed_(other.armed_) {
    other.release();
  }
  ~scope_exit_t() { reset(); }
  void release() noexcept { armed_ = false; }
  void reset() {
    if (armed_) {
      armed_ = false;
      function_();
    }
  }

 private:
  Function function_;
  bool armed_ = true;
};

template <typename Function>
scope_exit_t<Function> scope_exit(Function&& function) {
  return scope_exit_t<Function>(std::forward<Function>(function));
}

}  // namespace wil

#endif  // ANYDML_SUPPORT_WIL_RESOURCE_H_
