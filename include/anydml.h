/* anydml.h: what AnyDML offers beyond DirectML.
 *
 * Plain C, exported by libanydml.so, which the other libraries load: a program
 * that also runs on other DirectML implementations finds these functions with
 * dlsym on libdirectml.so. Every string is UTF-8 and is never null; none is to
 * be freed.
 *
 * Environment variables, read when a device is created or before, and by no other
 * call, so that a program may change its environment while it uses devices:
 *
 *   ANYDML_FEATURE_LEVEL    Holds devices to a lower DirectML feature level,
 *                           for example "2.1": they then accept exactly what
 *                           that level's tables accept.
 *   ANYDML_IMPLEMENTATION   Forces one implementation by name, for example
 *                           "cpu.reference". An operator that cannot use it
 *                           fails to compile, and the failure says why.
 *   ANYDML_GRAPH_WITHOUT    Passes that are not run when a graph is compiled,
 *                           separated by commas, for comparing; "all".
 *   ANYDML_GRAPH_GUARDS     1: on the CPU a graph's parts run between memory pages
 *                           that nobody may touch, which finds a kernel that
 *                           leaves its tensors. Slow.
 *   ANYDML_ADAPTER          Chooses the adapter that is listed first ("cpu", "cuda:0");
 *                           else GPUs come before the CPU. Where it is not there,
 *                           no factory or device is created.
 *   ANYDML_ADAPTER_KIND     What adapters say they are, for programs that choose by
 *                           it: "gpu", "compute", "npu" or "software"; of one
 *                           adapter: "cpu=npu".
 *   ANYDML_CUDA_MODULE      Another libanydml_cuda.so than the one in the folder of
 *                           libanydml.so, or in the folder anydml there, by its
 *                           absolute path; ignored in programs with more rights
 *                           than their user has.
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

/* Declared in DirectML.h and d3d12.h, which need not be included here. */
struct DML_OPERATOR_DESC;
struct IDMLCompiledOperator;
struct ID3D12CommandQueue;
struct ID3D12Device;
struct ID3D12Resource;

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

/* What CreateOperator on a device of this feature level (DML_FEATURE_LEVEL) says of a
 * description: S_OK or E_INVALIDARG, with the sentence of the failure. Needs no device. */
ANYDML_API int32_t AnyDmlCheckOperator(const struct DML_OPERATOR_DESC* desc, uint32_t feature_level);

/* A tensor's type (DML_TENSOR_DATA_TYPE) and sizes. */
typedef struct AnyDmlTensor {
  uint32_t DataType;
  uint32_t DimensionCount;
  uint32_t Sizes[8];
} AnyDmlTensor;

/* The outputs that an operator has for its inputs and attributes, in binding order; `count`
 * is how many there are. In `desc` an output that is not known yet is null or has a
 * DimensionCount of 0, and then the DataType that is wanted where the operator leaves a choice
 * (0: none); others stay as they are. Optional outputs that are null are inferred, too.
 *
 * Returns an HRESULT: S_OK, E_INVALIDARG, E_OUTOFMEMORY. */
ANYDML_API int32_t AnyDmlInferOutputs(const struct DML_OPERATOR_DESC* desc, uint32_t count,
                                      AnyDmlTensor* outputs);

/* The names of an operator's (DML_OPERATOR_TYPE) implementations, fastest first, one per line:
 * what ANYDML_IMPLEMENTATION takes. "" for numbers of no operator. Valid for ever. */
ANYDML_API const char* AnyDmlGetImplementations(uint32_t operator_type);

/* The implementation that was chosen for `op`, for example "cpu.heap". Valid as
 * long as `op`. */
ANYDML_API const char* AnyDmlGetImplementation(struct IDMLCompiledOperator* op);

/* The implementations that were considered for `op`, one per line in order of
 * preference, each with "yes" or the reason why not. Of a graph: what was folded
 * and fused, the memory that is reused, and each step's implementation. Valid as
 * long as `op`. */
ANYDML_API const char* AnyDmlExplainImplementation(struct IDMLCompiledOperator* op);

/* A step of a compiled graph: one or several of its nodes, or a part of one. */
typedef struct AnyDmlStep {
  const char* Name;           /* of the nodes: node 0 "conv" (CONVOLUTION) + ... */
  const char* Implementation; /* that was chosen for it, for example "cpu.tiles" */
  uint32_t InputCount;
  uint32_t OutputCount;
} AnyDmlStep;

/* Where a tensor of a step is. */
enum {
  ANYDML_PLACE_NONE = 0,      /* an optional tensor that is absent */
  ANYDML_PLACE_INPUT = 1,     /* a graph input */
  ANYDML_PLACE_OUTPUT = 2,    /* a graph output; later steps may read it there */
  ANYDML_PLACE_TEMPORARY = 3, /* between steps only */
  ANYDML_PLACE_CONSTANT = 4   /* known when the graph was compiled */
};

typedef struct AnyDmlStepTensor {
  uint32_t Place; /* ANYDML_PLACE_... */
  uint32_t Index; /* of the graph input or output; otherwise a number that is this tensor's alone */
  uint64_t Bytes;
} AnyDmlStepTensor;

/* The steps that `op` runs one after the other, if CompileGraph made it: what is left of the
 * nodes once they are folded and fused. AnyDmlExplainImplementation says what was done. The
 * count is 0 for other operators. Of a step's tensors the inputs come first, then the outputs.
 * Both functions return S_OK or E_INVALIDARG; strings are valid as long as `op`. */
ANYDML_API uint32_t AnyDmlGetStepCount(struct IDMLCompiledOperator* op);
ANYDML_API int32_t AnyDmlGetStep(struct IDMLCompiledOperator* op, uint32_t step, AnyDmlStep* out);
ANYDML_API int32_t AnyDmlGetStepTensor(struct IDMLCompiledOperator* op, uint32_t step, uint32_t tensor,
                                       AnyDmlStepTensor* out);

/* Whether `op` may have this input and this output, counted in binding order, bound to
 * the identical region (1), or not (0). */
ANYDML_API int32_t AnyDmlMayRunInPlace(struct IDMLCompiledOperator* op, uint32_t input, uint32_t output);

/* The name of the adapter with this LUID (LowPart | HighPart << 32), as ANYDML_ADAPTER
 * takes it, for example "cpu" or "cuda:0"; "" if there is none. Valid for ever. */
ANYDML_API const char* AnyDmlGetAdapterId(uint64_t luid);

/* What an adapter can do, for programs that would otherwise ask for its name. */
typedef struct AnyDmlAdapterTraits {
  int32_t RunsOnHost; /* 1: operators run on threads of this process; runs are complete when they return */
  int32_t TakesHostMemory; /* 1: AnyDmlCreateBufferFromMemory and AnyDmlRun take host memory as it is */
  int32_t
      DlpackDeviceType; /* where its memory is: a DLDeviceType, for example 1 (CPU), 2 (CUDA), 12 (other) */
  int32_t DlpackDeviceId;
  uint32_t DataTypes;       /* those that its kernels take: bit 1 << DML_TENSOR_DATA_TYPE. Operators with others
                             * run on the host */
  uint32_t UnitBytes;       /* kernels load and store so many bytes at once; 1: where alignment does not matter */
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

/* A buffer over memory that the application has: host memory on the CPU adapter,
 * device memory of the same GPU on a CUDA one. Nothing is copied. It is like a
 * committed buffer in a DEFAULT heap with ALLOW_UNORDERED_ACCESS, in state COMMON.
 *
 * `memory` is aligned to the elements of the tensors that are bound to it; on a GPU
 * also to 16 bytes. The buffer's Width is `bytes` rounded up to 4, as a tensor's
 * TotalTensorSizeInBytes is; nothing touches what lies beyond `bytes`: operators only
 * their tensors' elements, and copies and clears end there.
 *
 * The memory has to stay until `release(context)` is called: once, from any thread,
 * when the buffer is gone and no command in flight uses it. It must not call back
 * into this library. `release` may be null. After a failure it is not called.
 *
 * Returns an HRESULT: S_OK, E_INVALIDARG, DXGI_ERROR_DEVICE_REMOVED, E_OUTOFMEMORY. */
ANYDML_API int32_t AnyDmlCreateBufferFromMemory(struct ID3D12Device* device, void* memory, uint64_t bytes,
                                                void (*release)(void* context), void* context,
                                                struct ID3D12Resource** buffer);

/* The cudaStream_t that the queue's work goes to; null when its adapter is no CUDA
 * device. A program may make it wait for an event of its own (cudaStreamWaitEvent)
 * while the queue is idle: what is executed on the queue afterwards comes after the
 * event. Nothing else is to be done with it. Valid as long as the queue. */
ANYDML_API void* AnyDmlGetCudaStream(struct ID3D12CommandQueue* queue);

/* What AnyDmlRun runs an operator on: addresses in memory of the adapter, in the order and as large as
 * they are bound. */
typedef struct AnyDmlRunDesc {
  uint32_t InputCount; /* of the operator, absent ones included */
  uint32_t OutputCount;
  void* const* Inputs; /* null: absent, or OWNED_BY_DML */
  void* const* Outputs;
  void* Temporary;  /* TemporaryResourceSize bytes at a multiple of 256; null when that is 0 */
  void* Persistent; /* what the operator's initialisation has filled; null when there is none */
  void* CudaStream; /* a stream of the same GPU (1, 2: CUDA's two default ones); ignored on the CPU */
  int32_t Wait;     /* on a GPU: 0 returns once the work is enqueued, 1 when it is complete. An operator that runs
                     * on the host because the GPU has no kernel for it is complete in either case */
} AnyDmlRunDesc;

/* Runs a compiled operator that has been initialised, without a command list and a queue: on the CPU
 * adapter on the calling thread (with the adapter's other threads, where there is much to do), on a GPU in
 * a stream of the application's, in order with what else is there. From any thread, also on one operator
 * at the same time, with other Temporary memory. Memory is aligned to the elements of its tensor, on a GPU
 * also to 16 bytes, and stays until the run is complete; which tensors may share it is as for a binding
 * table.
 *
 * Returns an HRESULT: S_OK; S_FALSE when data was found wrong (an index out of range), with the sentence
 * as the thread's last error, which on a GPU takes a Wait; E_INVALIDARG, and nothing was done;
 * DXGI_ERROR_DEVICE_REMOVED; or what the run failed with, which removes no device. */
ANYDML_API int32_t AnyDmlRun(struct IDMLCompiledOperator* op, const AnyDmlRunDesc* desc);

/* What is enqueued in the stream `after` from now on comes behind what `before` has now; the host does not
 * wait. Both are of the device's GPU. Nothing is done on the CPU. */
ANYDML_API int32_t AnyDmlOrderCudaStreams(struct ID3D12Device* device, void* before, void* after);

/* Waits until the stream has done what it has now; null: until every stream of the GPU has. */
ANYDML_API int32_t AnyDmlWaitForCudaStream(struct ID3D12Device* device, void* stream);

/* What is to be known of a stream by who remembers its handle. */
typedef struct AnyDmlCudaStreamInfo {
  uint64_t Id; /* no other stream of this process has or had it, while handles of destroyed ones come again;
                * of stream 2 the calling thread's. On the CPU: the handle */
  int32_t Capturing; /* 1: what is enqueued is not done but becomes part of a CUDA graph */
} AnyDmlCudaStreamInfo;

/* Of a stream that exists. */
ANYDML_API int32_t AnyDmlDescribeCudaStream(struct ID3D12Device* device, void* stream,
                                            AnyDmlCudaStreamInfo* info);

/* Marks the end of what a stream has now. The mark stays good when the stream is destroyed, of which nothing
 * can be asked then. `*mark` is null, or a mark that is moved; it is null on the CPU. A mark that was set in
 * a stream that is captured is of use in that capture only. */
ANYDML_API int32_t AnyDmlMarkCudaStream(struct ID3D12Device* device, void* stream, void** mark);

/* What is enqueued in the stream from now on comes behind the mark; null: the host waits for that. A null
 * mark is behind nothing. */
ANYDML_API int32_t AnyDmlWaitForCudaMark(struct ID3D12Device* device, void* mark, void* stream);

/* Nobody waits for the mark from now on; who does already goes on. */
ANYDML_API int32_t AnyDmlFreeCudaMark(struct ID3D12Device* device, void* mark);

/* For profilers: from now on `record` is called for every node of a graph that has run, one call at a time
 * per queue: with the node's name (what was fused, joined by " + ", and the implementation; valid during the
 * call), its beginning and its end in nanoseconds of CLOCK_MONOTONIC. On the CPU adapter after each node, on
 * the thread that ran it. On a GPU after each graph, whose end is waited for, by the GPU's clock; lists are
 * not replayed and nodes do not overlap meanwhile, so that the whole takes longer than usual. Null: no
 * longer. For the whole process, and to be called while nothing is executed. */
ANYDML_API void AnyDmlSetProfiler(void (*record)(void* context, const char* node, uint64_t begin,
                                                 uint64_t end),
                                  void* context);

/* The number of COM objects of this process that are alive; 0 after a program
 * has released everything. */
ANYDML_API uint64_t AnyDmlGetLiveObjectCount(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ANYDML_ANYDML_H_ */
