// Microsoft::WRL; see anydml_support/wrl.h.
#ifndef ANYDML_SUPPORT_WRL_CLIENT_H_WRAPPER_
#define ANYDML_SUPPORT_WRL_CLIENT_H_WRAPPER_
#include <anydml_support/wrl.h>
#endif  // ANYDML_SUPPORT_WRL_CLIENT_H_WRAPPER_
