/* anydml.h: what AnyDML offers beyond DirectML.
 *
 * Plain C, exported by libanydml.so, which the other libraries load. A program
 * that also runs on other DirectML implementations looks these functions up with
 * dlsym on libdirectml.so. Every string is UTF-8, never null, and owned by the
 * library: do not free it.
 *
 * Environment variables. They are read when a device is created or before, and by
 * no other call, so that a program may change its environment while it uses devices.
 *
 *   ANYDML_FEATURE_LEVEL    Limits devices to a lower DirectML feature level, for
 *                           example "2.1": they accept exactly what that level's
 *                           tables accept.
 *   ANYDML_IMPLEMENTATION   Forces one implementation by name, for example
 *                           "cpu.reference". An operator that cannot use it
 *                           fails to compile, and the error says why.
 *   ANYDML_GRAPH_WITHOUT    Graph passes to skip, separated by commas, or "all";
 *                           for comparing results and times.
 *   ANYDML_GRAPH_GUARDS     1: on the CPU, each part of a graph runs with its tensors
 *                           between inaccessible memory pages, so that a kernel
 *                           that reads or writes outside them crashes. Slow.
 *   ANYDML_ADAPTER          The adapter to list first ("cpu", "cuda:0"). By default
 *                           GPUs come before the CPU. If the adapter does not exist,
 *                           creating a factory or a device fails.
 *   ANYDML_ADAPTER_KIND     The kind that adapters report, for programs that choose
 *                           by it: "gpu", "compute", "npu" or "software"; for one
 *                           adapter only: "cpu=npu".
 *   ANYDML_CUDA_MODULE      Absolute path of the libanydml_cuda.so to load. By default
 *                           it is searched in the folder of libanydml.so and in the
 *                           folder anydml there. Ignored in programs that run with
 *                           more privileges than their user has.
 *   ANYDML_CUDA_COMPILE     Whether the CUDA driver compiles element-wise programs:
 *                           "never", "always"; else where it is worth the time
 *                           (read once per process). Results do not depend on it.
 *   ANYDML_THREADS          How many threads the CPU adapter computes with (read
 *                           once per process); else as many as the process may
 *                           use. Results do not depend on it.
 *   ANYDML_HOST_FALLBACK    0: an operator that the adapter has no implementation
 *                           for does not compile. Otherwise it runs on the host,
 *                           on copies of its tensors.
 *   ANYDML_OTHER_MODULE     A module with another backend, built for this version,
 *                           by its absolute path; ignored in programs with more
 *                           rights than their user has. Its adapters come last.
 *   ANYDML_DEBUG            1: every failure sentence also goes to stderr.
 *   ANYDML_ONNX_ITERATIONS  How many iterations the loops of an ONNX model take in a
 *                           run at most, all of them together; else a million (read
 *                           when the importer is loaded).
 *   ANYDML_ORT_DEVICE_MEMORY  Any value: onnxruntime's plugin offers a device with
 *                           memory of its own for the CPU, too, for tests.
 */
#ifndef ANYDML_ANYDML_H_
#define ANYDML_ANYDML_H_

#include <stdint.h>

#if defined(__GNUC__)
#define ANYDML_API __attribute__((visibility("default")))
#else
#define ANYDML_API
#endif

/* Declared in DirectML.h and d3d12.h. */
struct DML_OPERATOR_DESC;
struct IDMLCompiledOperator;
struct ID3D12CommandQueue;
struct ID3D12Device;
struct ID3D12Resource;

#ifdef __cplusplus
extern "C" {
#endif

/* The message of this thread's latest failure: operator, field, the value given
 * and the values allowed. "" if there was none. Valid until the next failing call
 * on the same thread. */
ANYDML_API const char* AnyDmlGetLastErrorMessage(void);

/* Clears this thread's error message. */
ANYDML_API void AnyDmlClearLastError(void);

/* The version of this library, for example "0.1.0". Valid forever. */
ANYDML_API const char* AnyDmlGetVersion(void);

/* What CreateOperator on a device of this feature level (DML_FEATURE_LEVEL) returns for a
 * description: S_OK, or E_INVALIDARG with an error message. Needs no device. */
ANYDML_API int32_t AnyDmlCheckOperator(const struct DML_OPERATOR_DESC* desc, uint32_t feature_level);

/* A tensor's type (DML_TENSOR_DATA_TYPE) and sizes. */
typedef struct AnyDmlTensor {
  uint32_t DataType;
  uint32_t DimensionCount;
  uint32_t Sizes[8];
} AnyDmlTensor;

/* Infers an operator's outputs from its inputs and attributes, in binding order; `count` is
 * their number. In `desc`, an output to infer is null or has a DimensionCount of 0; in the
 * latter case its DataType requests a type where the operator leaves a choice (0: no request).
 * Other outputs are returned as they are. Optional outputs that are null are inferred, too.
 *
 * Returns an HRESULT: S_OK, E_INVALIDARG, E_OUTOFMEMORY. */
ANYDML_API int32_t AnyDmlInferOutputs(const struct DML_OPERATOR_DESC* desc, uint32_t count,
                                      AnyDmlTensor* outputs);

/* The names of the implementations of an operator (DML_OPERATOR_TYPE), fastest first, one per
 * line, as ANYDML_IMPLEMENTATION takes them. "" if there is no such operator. Valid forever. */
ANYDML_API const char* AnyDmlGetImplementations(uint32_t operator_type);

/* The implementation that was chosen for `op`, for example "cpu.heap". Valid while
 * `op` exists. */
ANYDML_API const char* AnyDmlGetImplementation(struct IDMLCompiledOperator* op);

/* The implementations that were considered for `op`, one per line in order of
 * preference, each with "yes" or the reason why not. For a graph: what was folded
 * and fused, how memory is reused, and each step's implementation. Valid while
 * `op` exists. */
ANYDML_API const char* AnyDmlExplainImplementation(struct IDMLCompiledOperator* op);

/* A step of a compiled graph: one node, several fused nodes, or a part of a node. */
typedef struct AnyDmlStep {
  const char* Name;           /* its nodes: node 0 "conv" (CONVOLUTION) + ... */
  const char* Implementation; /* the chosen one, for example "cpu.tiles" */
  uint32_t InputCount;
  uint32_t OutputCount;
} AnyDmlStep;

/* Where a step's tensor is stored. */
enum {
  ANYDML_PLACE_NONE = 0,      /* an optional tensor that is absent */
  ANYDML_PLACE_INPUT = 1,     /* a graph input */
  ANYDML_PLACE_OUTPUT = 2,    /* a graph output; later steps may read it there */
  ANYDML_PLACE_TEMPORARY = 3, /* exists between steps only */
  ANYDML_PLACE_CONSTANT = 4   /* known when the graph was compiled */
};

typedef struct AnyDmlStepTensor {
  uint32_t Place; /* ANYDML_PLACE_... */
  uint32_t Index; /* of the graph input or output; otherwise a number unique to this tensor */
  uint64_t Bytes;
} AnyDmlStepTensor;

/* The steps that `op` runs one after the other, if CompileGraph made it: what remains of the
 * nodes after folding and fusion, which AnyDmlExplainImplementation describes. The count is 0
 * for other operators. A step's tensors are its inputs, then its outputs. AnyDmlGetStep and
 * AnyDmlGetStepTensor return S_OK or E_INVALIDARG; strings are valid while `op` exists. */
ANYDML_API uint32_t AnyDmlGetStepCount(struct IDMLCompiledOperator* op);
ANYDML_API int32_t AnyDmlGetStep(struct IDMLCompiledOperator* op, uint32_t step, AnyDmlStep* out);
ANYDML_API int32_t AnyDmlGetStepTensor(struct IDMLCompiledOperator* op, uint32_t step, uint32_t tensor,
                                       AnyDmlStepTensor* out);

/* 1 if this input and this output of `op`, counted in binding order, may be bound to the
 * same region of memory; else 0. */
ANYDML_API int32_t AnyDmlMayRunInPlace(struct IDMLCompiledOperator* op, uint32_t input, uint32_t output);

/* The name of the adapter with this LUID (LowPart | HighPart << 32), as ANYDML_ADAPTER
 * takes it, for example "cpu" or "cuda:0"; "" if there is none. Valid forever. */
ANYDML_API const char* AnyDmlGetAdapterId(uint64_t luid);

/* What an adapter can do, for programs that would otherwise ask for its name. */
typedef struct AnyDmlAdapterTraits {
  int32_t RunsOnHost; /* 1: operators run on threads of this process; runs are complete when they return */
  int32_t TakesHostMemory; /* 1: AnyDmlCreateBufferFromMemory and AnyDmlRun take host memory as it is */
  int32_t
      DlpackDeviceType; /* where its memory is: a DLDeviceType, for example 1 (CPU), 2 (CUDA), 12 (other) */
  int32_t DlpackDeviceId;
  uint32_t DataTypes; /* those that its kernels take: bit 1 << DML_TENSOR_DATA_TYPE. Operators with others
                       * run on the host */
  uint32_t UnitBytes; /* kernels load and store so many bytes at once; 1: where alignment does not matter */
  uint32_t SubgroupLanes;   /* threads of a kernel that go in step; 1: none */
  int32_t KeepsDenormals;   /* 0: the driver may take FLOAT32 denormals for zeros */
  int32_t FusesMultiplyAdd; /* 0: the driver may round between a multiplication and an addition */
} AnyDmlAdapterTraits;

/* Describes the adapter with this LUID. `bytes` is sizeof(*traits): later versions append members, and a
 * library that knows fewer leaves the rest 0. Returns an HRESULT: S_OK, or E_INVALIDARG if there is no such
 * adapter. */
ANYDML_API int32_t AnyDmlGetAdapterTraits(uint64_t luid, AnyDmlAdapterTraits* traits, uint64_t bytes);

/* Why there is no GPU adapter, in one line; "" if there is one. Valid for ever. */
ANYDML_API const char* AnyDmlWhyNoGpu(void);

/* Creates a buffer over the application's memory, without a copy: host memory on the
 * CPU adapter, memory of the same GPU on a CUDA adapter. The buffer behaves like a
 * committed one in a DEFAULT heap with ALLOW_UNORDERED_ACCESS, in state COMMON.
 *
 * `memory` must be aligned to the elements of the tensors that are bound to it; on a
 * GPU also to 16 bytes. The buffer's Width is `bytes` rounded up to 4, as a tensor's
 * TotalTensorSizeInBytes is. Nothing reads or writes beyond `bytes`: operators touch
 * only the elements of their tensors, and copies and clears end there.
 *
 * The memory must stay valid until `release(context)` is called: once, from any thread,
 * when the buffer is released and no command in flight uses it. `release` must not call
 * this library; it may be null. It is not called if this function fails.
 *
 * Returns an HRESULT: S_OK, E_INVALIDARG, DXGI_ERROR_DEVICE_REMOVED, E_OUTOFMEMORY. */
ANYDML_API int32_t AnyDmlCreateBufferFromMemory(struct ID3D12Device* device, void* memory, uint64_t bytes,
                                                void (*release)(void* context), void* context,
                                                struct ID3D12Resource** buffer);

/* The cudaStream_t of the queue; null if its adapter is not a CUDA device. While the
 * queue is idle, a program may make the stream wait for an event (cudaStreamWaitEvent):
 * work that the queue executes later then runs after the event. No other use is
 * allowed. Valid while the queue exists. */
ANYDML_API void* AnyDmlGetCudaStream(struct ID3D12CommandQueue* queue);

/* The operands of AnyDmlRun: addresses in the adapter's memory, in binding order and of the sizes that a
 * binding table requires. */
typedef struct AnyDmlRunDesc {
  uint32_t InputCount; /* including absent optional inputs */
  uint32_t OutputCount;
  void* const* Inputs; /* null: absent or OWNED_BY_DML */
  void* const* Outputs;
  void* Temporary;  /* TemporaryResourceSize bytes at a multiple of 256; null when that is 0 */
  void* Persistent; /* what the operator's initialisation has filled; null when there is none */
  void* CudaStream; /* a stream of the same GPU (1, 2: CUDA's two default ones); ignored on the CPU */
  int32_t Wait; /* on a GPU: 0 returns once the work is enqueued, 1 when it is complete. An operator that runs
                 * on the host because the GPU has no kernel for it is complete in either case */
} AnyDmlRunDesc;

/* Runs an initialised operator without a command list and a queue: on the CPU adapter on the calling thread
 * (and on the adapter's other threads for large problems), on a GPU in a stream of the application, in
 * stream order. Any thread may call it, and several may run the same operator at once if each brings its
 * own Temporary memory. Memory must be aligned to the elements of its tensor, on a GPU also to 16 bytes, and
 * must stay valid until the run is complete; tensors may overlap as in a binding table.
 *
 * Returns an HRESULT: S_OK; S_FALSE if the data were wrong (an index out of range), with the message as the
 * thread's last error (on a GPU only with Wait); E_INVALIDARG, and nothing was run;
 * DXGI_ERROR_DEVICE_REMOVED; or the error of the run, which does not remove the device. */
ANYDML_API int32_t AnyDmlRun(struct IDMLCompiledOperator* op, const AnyDmlRunDesc* desc);

/* Makes work that is enqueued in the stream `after` from now on wait for the work that `before` has now; the
 * host does not wait. Both streams belong to the device's GPU. Does nothing on the CPU. */
ANYDML_API int32_t AnyDmlOrderCudaStreams(struct ID3D12Device* device, void* before, void* after);

/* Waits until the stream has finished the work it has now; null: every stream of the GPU. */
ANYDML_API int32_t AnyDmlWaitForCudaStream(struct ID3D12Device* device, void* stream);

/* Identifies a stream for code that keeps its handle. */
typedef struct AnyDmlCudaStreamInfo {
  uint64_t Id; /* unique in this process, while CUDA reuses the handles of destroyed streams; for stream 2,
                * that of the calling thread. On the CPU: the handle */
  int32_t Capturing; /* 1: enqueued work is not executed but captured into a CUDA graph */
} AnyDmlCudaStreamInfo;

/* The stream must exist. */
ANYDML_API int32_t AnyDmlDescribeCudaStream(struct ID3D12Device* device, void* stream,
                                            AnyDmlCudaStreamInfo* info);

/* Marks the end of the work that a stream has now. The mark stays valid after the stream is destroyed. On
 * entry `*mark` is null or an existing mark, which is moved; on the CPU the result is null. A mark that was
 * set in a stream under capture is usable in that capture only. */
ANYDML_API int32_t AnyDmlMarkCudaStream(struct ID3D12Device* device, void* stream, void** mark);

/* Makes work that is enqueued in the stream from now on wait for the mark; with a null stream the host
 * waits. A null mark needs no wait. */
ANYDML_API int32_t AnyDmlWaitForCudaMark(struct ID3D12Device* device, void* mark, void* stream);

/* Frees a mark that nobody will wait for again. Waits that are already enqueued remain. */
ANYDML_API int32_t AnyDmlFreeCudaMark(struct ID3D12Device* device, void* mark);

/* For profilers: calls `record` for every graph node that has run, one call at a time per queue, with the
 * node's name (the fused nodes, joined by " + ", and the implementation; valid during the call), its
 * beginning and its end in nanoseconds of CLOCK_MONOTONIC. On the CPU adapter the call follows each node, on
 * the thread that ran it. On a GPU the calls follow each graph, which is waited for, and times are those of
 * the GPU's clock; command lists are not replayed and nodes do not overlap while a profiler is set, so that
 * everything takes longer. Null removes the profiler. Affects the whole process; call it while nothing
 * executes. */
ANYDML_API void AnyDmlSetProfiler(void (*record)(void* context, const char* node, uint64_t begin,
                                                 uint64_t end),
                                  void* context);

/* The number of live COM objects of this process; 0 after a program has released
 * everything. */
ANYDML_API uint64_t AnyDmlGetLiveObjectCount(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ANYDML_ANYDML_H_ */
