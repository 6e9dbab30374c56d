/* anydml.h: what AnyDML offers beyond DirectML.
 *
 * Plain C, exported by libanydml.so, which the other libraries load: a program
 * that also runs on other DirectML implementations finds these functions with
 * dlsym on libdirectml.so. Every string is UTF-8 and is never null; none is to
 * be freed.
 *
 * Environment variables, read when a device is created (ANYDML_IMPLEMENTATION:
 * when an operator is compiled):
 *
 *   ANYDML_FEATURE_LEVEL    Holds devices to a lower DirectML feature level,
 *                           for example "2.1": they then accept exactly what
 *                           that level's tables accept.
 *   ANYDML_IMPLEMENTATION   Forces one implementation by name, for example
 *                           "cpu.reference". An operator that cannot use it
 *                           fails to compile, and the failure says why.
 *   ANYDML_ADAPTER          Chooses the adapter that is listed first ("cpu", "cuda:0");
 *                           else GPUs come before the CPU.
 *   ANYDML_THREADS          How many threads the CPU adapter computes with (read
 *                           once per process); else as many as the process may
 *                           use. Results do not depend on it.
 *   ANYDML_DEBUG            1: every failure sentence also goes to stderr.
 */
#ifndef ANYDML_ANYDML_H_
#define ANYDML_ANYDML_H_

#include <stdint.h>

#if defined(__GNUC__)
#define ANYDML_API __attribute__((visibility("default")))
#else
#define ANYDML_API
#endif

/* Declared in DirectML.h, which need not be included here. */
struct IDMLCompiledOperator;

#ifdef __cplusplus
extern "C" {
#endif

/* The sentence that explains this thread's latest failure: operator, field,
 * what was given and what is allowed. "" if there was none. Valid until the
 * next failing call on the same thread. */
ANYDML_API const char* AnyDmlGetLastErrorMessage(void);

/* Forgets this thread's failure sentence. */
ANYDML_API void AnyDmlClearLastError(void);

/* The version of this library, for example "0.1.0". Valid for ever. */
ANYDML_API const char* AnyDmlGetVersion(void);

/* The implementation that was chosen for `op`, for example "cpu.heap". Valid as
 * long as `op`. */
ANYDML_API const char* AnyDmlGetImplementation(struct IDMLCompiledOperator* op);

/* The implementations that were considered for `op`, one per line in order of
 * preference, each with "yes" or the reason why not. Valid as long as `op`. */
ANYDML_API const char* AnyDmlExplainImplementation(struct IDMLCompiledOperator* op);

/* The name of the adapter with this LUID (LowPart | HighPart << 32), as ANYDML_ADAPTER
 * takes it, for example "cpu" or "cuda:0"; "" if there is none. Valid for ever. */
ANYDML_API const char* AnyDmlGetAdapterId(uint64_t luid);

/* Why there is no GPU adapter, in one line; "" if there is one. Valid for ever. */
ANYDML_API const char* AnyDmlWhyNoGpu(void);

/* The number of COM objects of this process that are alive; 0 after a program
 * has released everything. */
ANYDML_API uint64_t AnyDmlGetLiveObjectCount(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ANYDML_ANYDML_H_ */
