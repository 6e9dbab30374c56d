// What libanydml_cuda.so exports.
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/stream_clock.h"
#include "kernel/module.h"
#include "ops/operator_table.h"

extern "C" __attribute__((visibility("default")))
const anydml::Module AnyDmlModule = {ANYDML_VERSION, anydml::cuda::FindCudaBackends, anydml::OwnOperatorTable,
                                     anydml::cuda::CreateStreamClock};
