// Microsoft::WRL of DirectX-Headers, plus what it lacks: RuntimeClass, which
// Windows code uses where DirectX-Headers has only Base, and comparison.
#ifndef ANYDML_SUPPORT_WRL_H_
#define ANYDML_SUPPORT_WRL_H_

#pragma GCC system_header

#include <anydml_support/win32.h>

#include <wsl/wrladapter.h>

namespace Microsoft {
namespace WRL {

// Without these, == compares two ComPtrs as booleans: any two that are not
// null would be equal.
template <typename T, typename U>
bool operator==(const ComPtr<T>& a, const ComPtr<U>& b) noexcept {
  return a.Get() == b.Get();
}

template <typename T, typename U>
bool operator!=(const ComPtr<T>& a, const ComPtr<U>& b) noexcept {
  return a.Get() != b.Get();
}

template <typename T, typename U>
bool operator<(const ComPtr<T>& a, const ComPtr<U>& b) noexcept {
  return a.Get() < b.Get();
}

enum RuntimeClassType { WinRt = 1, ClassicCom = 2, WinRtClassicComMix = 3 };

template <unsigned int kFlags>
struct RuntimeClassFlags {};

template <typename... Interfaces>
class RuntimeClass : public Base<Interfaces...> {};

// There is only classic COM here, so the flags say nothing.
template <unsigned int kFlags, typename... Interfaces>
class RuntimeClass<RuntimeClassFlags<kFlags>, Interfaces...> : public Base<Interfaces...> {};

}  // namespace WRL
}  // namespace Microsoft

#endif  // ANYDML_SUPPORT_WRL_H_
