/* Runs an ONNX model in onnxruntime, first with its own CPU provider, then with AnyDML's plugin, and tells
 * how long each takes and how far the results are apart.
 *
 *   run_model PLUGIN MODEL [--adapter ID] [--option KEY=VALUE] [--runs N] [--threads N] [NAME=1x3x224x224]
 * ...
 *
 * PLUGIN is the absolute path of libanydml_ort.so, options are its own. Sizes that the model leaves open are
 * 1 unless they are given; inputs are random numbers between 0 and 1, or the number behind a colon
 * (NAME=1:16000).
 *
 *   cc run_model.c -I ONNXRUNTIME/include -L ONNXRUNTIME/lib -lonnxruntime -lm -o run_model
 */
#include <math.h>
#include <onnxruntime_c_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kMaxTensors = 128, kMaxRank = 16, kMaxOptions = 8 };

typedef struct Arguments {
  const char* plugin;
  const char* model;
  const char* adapter; /* "cpu", "cuda:0"; null: the best one */
  const char* memory;  /* where tensors are: "host" or, with a GPU's adapter, "device" */
  const char* keys[kMaxOptions];
  const char* values[kMaxOptions];
  size_t option_count;
  int runs;
  int threads; /* of onnxruntime's own; 0: as many as there are cores */
  char** inputs;
  int input_count;
} Arguments;

typedef struct Tensors {
  size_t count;
  char* names[kMaxTensors];
  OrtValue* values[kMaxTensors];
} Tensors;

static const OrtApi* ort;

static void Check(OrtStatus* status) {
  if (status == NULL) return;
  fprintf(stderr, "%s\n", ort->GetErrorMessage(status));
  exit(1);
}

static double Now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static Arguments ReadArguments(int count, char** words) {
  Arguments arguments = {0};
  int i;
  if (count < 3) {
    fprintf(
        stderr,
        "usage: run_model PLUGIN MODEL [--adapter ID] [--memory host|device] [--option KEY=VALUE] [--runs N] "
        "[--threads N] [NAME=SIZES] ...\n");
    exit(2);
  }
  arguments.runs = 10;
  arguments.memory = "host";
  arguments.plugin = words[1];
  arguments.model = words[2];
  for (i = 3; i + 1 < count && words[i][0] == '-'; i += 2) {
    if (strcmp(words[i], "--adapter") == 0) arguments.adapter = words[i + 1];
    if (strcmp(words[i], "--memory") == 0) arguments.memory = words[i + 1];
    if (strcmp(words[i], "--option") == 0 && strchr(words[i + 1], '=') != NULL &&
        arguments.option_count < kMaxOptions) {
      arguments.keys[arguments.option_count] = words[i + 1];
      words[i + 1] = strchr(words[i + 1], '=');
      *words[i + 1]++ = 0;
      arguments.values[arguments.option_count++] = words[i + 1];
    }
    if (strcmp(words[i], "--runs") == 0) arguments.runs = atoi(words[i + 1]);
    if (strcmp(words[i], "--threads") == 0) arguments.threads = atoi(words[i + 1]);
  }
  arguments.inputs = words + i;
  arguments.input_count = count - i;
  return arguments;
}

/* What makes the difference: the plugin is registered once, and a session is told to use one of its devices.
 */
static const OrtEpDevice* FindDevice(OrtEnv* env, const Arguments* arguments) {
  const OrtEpDevice* const* devices;
  size_t count, i;
  Check(ort->RegisterExecutionProviderLibrary(env, "anydml", arguments->plugin));
  Check(ort->GetEpDevices(env, &devices, &count));
  for (i = 0; i < count; ++i) {
    const OrtKeyValuePairs* metadata = ort->EpDevice_EpMetadata(devices[i]);
    const char* adapter = ort->GetKeyValue(metadata, "adapter");
    if (strcmp(ort->EpDevice_EpName(devices[i]), "AnyDML") != 0) continue;
    if (strcmp(ort->GetKeyValue(metadata, "memory"), arguments->memory) != 0) continue;
    if (arguments->adapter == NULL || strcmp(arguments->adapter, adapter) == 0) return devices[i];
  }
  fprintf(stderr, "AnyDML has no such adapter and memory\n");
  exit(1);
}

/* Without a device: onnxruntime's own CPU provider. */
static OrtSession* Load(OrtEnv* env, const Arguments* arguments, const OrtEpDevice* device) {
  OrtSessionOptions* options;
  OrtSession* session;
  Check(ort->CreateSessionOptions(&options));
  if (arguments->threads > 0) Check(ort->SetIntraOpNumThreads(options, arguments->threads));
  if (device != NULL)
    Check(ort->SessionOptionsAppendExecutionProvider_V2(options, env, &device, 1, arguments->keys,
                                                        arguments->values, arguments->option_count));
  Check(ort->CreateSession(env, arguments->model, options, &session));
  ort->ReleaseSessionOptions(options);
  return session;
}

static void Fill(OrtValue* value, ONNXTensorElementDataType type, size_t elements, const char* given) {
  const double number = given == NULL ? 0 : atof(given);
  void* data;
  size_t i;
  Check(ort->GetTensorMutableData(value, &data));
  for (i = 0; i < elements; ++i) {
    const double drawn = given != NULL ? number : (double)rand() / RAND_MAX;
    switch (type) {
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
        ((float*)data)[i] = (float)drawn;
        break;
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE:
        ((double*)data)[i] = drawn;
        break;
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
        ((int64_t*)data)[i] = (int64_t)drawn;
        break;
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32:
        ((int32_t*)data)[i] = (int32_t)drawn;
        break;
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL:
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8:
        ((uint8_t*)data)[i] = (uint8_t)drawn;
        break;
      default:
        fprintf(stderr, "this example fills no tensors of ONNX's type %d\n", (int)type);
        exit(1);
    }
  }
}

static OrtValue* MakeInput(OrtSession* session, size_t index, const char* name, const Arguments* arguments) {
  OrtAllocator* allocator;
  OrtTypeInfo* info;
  const OrtTensorTypeAndShapeInfo* tensor;
  ONNXTensorElementDataType type;
  OrtValue* value;
  int64_t sizes[kMaxRank];
  const char* number = NULL;
  size_t rank, i, elements = 1;
  int k;
  Check(ort->GetAllocatorWithDefaultOptions(&allocator));
  Check(ort->SessionGetInputTypeInfo(session, index, &info));
  Check(ort->CastTypeInfoToTensorInfo(info, &tensor));
  if (tensor == NULL) {
    fprintf(stderr, "input %s is no tensor\n", name);
    exit(1);
  }
  Check(ort->GetTensorElementType(tensor, &type));
  Check(ort->GetDimensionsCount(tensor, &rank));
  if (rank > kMaxRank) exit(1);
  Check(ort->GetDimensions(tensor, sizes, rank));
  for (i = 0; i < rank; ++i) sizes[i] = sizes[i] < 0 ? 1 : sizes[i];
  for (k = 0; k < arguments->input_count; ++k) {
    const char* given = arguments->inputs[k];
    const size_t length = strlen(name);
    if (strncmp(given, name, length) != 0 || given[length] != '=') continue;
    number = strchr(given, ':');
    number = number == NULL ? NULL : number + 1;
    given += length;
    for (i = 0; i < rank && (*given == '=' || *given == 'x'); ++i)
      sizes[i] = strtoll(given + 1, (char**)&given, 10);
  }
  for (i = 0; i < rank; ++i) elements *= (size_t)sizes[i];
  Check(ort->CreateTensorAsOrtValue(allocator, sizes, rank, type, &value));
  Fill(value, type, elements, number);
  ort->ReleaseTypeInfo(info);
  return value;
}

static Tensors MakeInputs(OrtSession* session, const Arguments* arguments) {
  Tensors inputs = {0};
  OrtAllocator* allocator;
  size_t i;
  Check(ort->GetAllocatorWithDefaultOptions(&allocator));
  Check(ort->SessionGetInputCount(session, &inputs.count));
  if (inputs.count > kMaxTensors) exit(1);
  for (i = 0; i < inputs.count; ++i) {
    Check(ort->SessionGetInputName(session, i, allocator, &inputs.names[i]));
    inputs.values[i] = MakeInput(session, i, inputs.names[i], arguments);
  }
  return inputs;
}

/* Once, then as often as asked for; the last results are kept. */
static Tensors Run(OrtSession* session, const Tensors* inputs, int runs, const char* who) {
  Tensors outputs = {0};
  OrtAllocator* allocator;
  double begin = Now(CLOCK_MONOTONIC), first = 0, best = 1e30, processor = 0;
  size_t i;
  int run;
  Check(ort->GetAllocatorWithDefaultOptions(&allocator));
  Check(ort->SessionGetOutputCount(session, &outputs.count));
  if (outputs.count > kMaxTensors) exit(1);
  for (i = 0; i < outputs.count; ++i)
    Check(ort->SessionGetOutputName(session, i, allocator, &outputs.names[i]));
  for (run = 0; run <= runs; ++run) {
    double taken;
    for (i = 0; i < outputs.count; ++i) {
      if (outputs.values[i] != NULL) ort->ReleaseValue(outputs.values[i]);
      outputs.values[i] = NULL;
    }
    if (run == 1) processor = Now(CLOCK_PROCESS_CPUTIME_ID);
    begin = Now(CLOCK_MONOTONIC);
    Check(ort->Run(session, NULL, (const char* const*)inputs->names, (const OrtValue* const*)inputs->values,
                   inputs->count, (const char* const*)outputs.names, outputs.count, outputs.values));
    taken = Now(CLOCK_MONOTONIC) - begin;
    if (run == 0) first = taken;
    if (run > 0 && taken < best) best = taken;
  }
  if (runs > 0)
    printf("%-12s first run %9.2f ms, best of %d %9.3f ms, processor time %9.3f ms a run\n", who, first * 1e3,
           runs, best * 1e3, (Now(CLOCK_PROCESS_CPUTIME_ID) - processor) / runs * 1e3);
  return outputs;
}

/* The largest difference of floats, and the number of other elements that differ. */
static void Compare(const Tensors* a, const Tensors* b) {
  size_t i, k, count;
  for (i = 0; i < a->count; ++i) {
    OrtTensorTypeAndShapeInfo *info, *other;
    ONNXTensorElementDataType type;
    size_t elements, bytes;
    void *x, *y;
    double difference = 0, most = 0;
    Check(ort->GetTensorTypeAndShape(a->values[i], &info));
    Check(ort->GetTensorTypeAndShape(b->values[i], &other));
    Check(ort->GetTensorElementType(info, &type));
    Check(ort->GetTensorShapeElementCount(info, &elements));
    Check(ort->GetTensorShapeElementCount(other, &count));
    Check(ort->GetTensorSizeInBytes(a->values[i], &bytes));
    Check(ort->GetTensorMutableData(a->values[i], &x));
    Check(ort->GetTensorMutableData(b->values[i], &y));
    if (count != elements) printf("%s: %zu elements, %zu\n", a->names[i], elements, count);
    if (count == elements && type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) {
      for (k = 0; k < elements; ++k) {
        difference = fmax(difference, fabs((double)((float*)x)[k] - (double)((float*)y)[k]));
        most = fmax(most, fabs((double)((float*)x)[k]));
      }
      printf("%s: %zu elements up to %g, differences up to %g\n", a->names[i], elements, most, difference);
    } else if (count == elements) {
      printf("%s: %zu elements, %s\n", a->names[i], elements,
             memcmp(x, y, bytes) == 0 ? "the same" : "different");
    }
    ort->ReleaseTensorTypeAndShapeInfo(info);
    ort->ReleaseTensorTypeAndShapeInfo(other);
  }
}

static void Release(Tensors* tensors) {
  OrtAllocator* allocator;
  size_t i;
  Check(ort->GetAllocatorWithDefaultOptions(&allocator));
  for (i = 0; i < tensors->count; ++i) {
    ort->ReleaseValue(tensors->values[i]);
    Check(ort->AllocatorFree(allocator, tensors->names[i]));
  }
}

int main(int argc, char** argv) {
  const Arguments arguments = ReadArguments(argc, argv);
  OrtEnv* env;
  OrtSession *theirs, *ours;
  Tensors inputs, expected, computed;
  ort = OrtGetApiBase()->GetApi(ORT_API_VERSION);
  if (ort == NULL) return 1;
  Check(ort->CreateEnv(getenv("VERBOSE") ? ORT_LOGGING_LEVEL_VERBOSE : ORT_LOGGING_LEVEL_WARNING, "example",
                       &env));
  theirs = Load(env, &arguments, NULL);
  inputs = MakeInputs(theirs, &arguments);
  expected = Run(theirs, &inputs, arguments.runs, "onnxruntime");
  ort->ReleaseSession(theirs);
  ours = Load(env, &arguments, FindDevice(env, &arguments));
  computed = Run(ours, &inputs, arguments.runs, "AnyDML");
  ort->ReleaseSession(ours);
  Compare(&expected, &computed);
  Release(&inputs);
  Release(&expected);
  Release(&computed);
  Check(ort->UnregisterExecutionProviderLibrary(env, "anydml"));
  ort->ReleaseEnv(env);
  return 0;
}
