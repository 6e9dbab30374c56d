// The real library splits its error macros over two headers.
#ifndef ANYDML_SUPPORT_WIL_RESULT_MACROS_H_
#define ANYDML_SUPPORT_WIL_RESULT_MACROS_H_
#include <wil/result.h>
#endif  // ANYDML_SUPPORT_WIL_RESULT_MACROS_H_
