// wil::MakeOrThrow, for Microsoft::WRL classes.
#ifndef ANYDML_SUPPORT_WIL_WRL_H_
#define ANYDML_SUPPORT_WIL_WRL_H_

#include <utility>

#include <wil/result.h>
#include <wrl/client.h>
#include <wrl/implements.h>

namespace wil {

template <typename T, typename... Arguments>
Microsoft::WRL::ComPtr<T> MakeOrThrow(Arguments&&... arguments) {
  auto object = Microsoft::WRL::Make<T>(std::forward<Arguments>(arguments)...);
  THROW_IF_NULL_ALLOC(object.Get());
  return object;
}

}  // namespace wil

#endif  // ANYDML_SUPPORT_WIL_WRL_H_
