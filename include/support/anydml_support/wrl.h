// Microsoft::WRL of DirectX-Headers, plus RuntimeClass, which Windows code uses
// where DirectX-Headers has only Base.
#ifndef ANYDML_SUPPORT_WRL_H_
#define ANYDML_SUPPORT_WRL_H_

#pragma GCC system_header

#include <anydml_support/win32.h>

#include <wsl/wrladapter.h>

namespace Microsoft {
namespace WRL {

enum RuntimeClassType { WinRt = 1, ClassicCom = 2, WinRtClassicComMix = 3 };

template <unsigned int kFlags>
struct RuntimeClassFlags {};

template <typename... Interfaces>
class RuntimeClass : public Base<Interfaces...> {};

// There is only classic COM here, so the flags say nothing.
template <unsigned int kFlags, typename... Interfaces>
class RuntimeClass<RuntimeClassFlags<kFlags>, Interfaces...>
    : public Base<Interfaces...> {};

}  // namespace WRL
}  // namespace Microsoft

#endif  // ANYDML_SUPPORT_WRL_H_
