// Microsoft::WRL from DirectX-Headers.
#ifndef ANYDML_SUPPORT_WRL_H_WRAPPER_
#define ANYDML_SUPPORT_WRL_H_WRAPPER_
#include <wrl/client.h>
#include <wrl/implements.h>
#endif  // ANYDML_SUPPORT_WRL_H_WRAPPER_
