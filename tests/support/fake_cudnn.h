// A cuDNN that offers the engines that a test specifies, and fails on request (fake_cudnn.cc), with the name
// of the real one.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "ops/device/cuda/cudnn/library.h"

namespace anydml::testing {

struct FakeCudnn {
  static constexpr int kNone = -1;

  struct Engine {
    int64_t index = 0;
    std::vector<int> notes = {};
    bool has_plan = true;
    int64_t workspace_bytes = 0;
  };
  std::map<int, std::vector<Engine>> engines;  // by the mode of the heuristics

  bool fails_to_start = false, fails_to_execute = false;
  int kind_not_created = kNone, kind_not_finalized = kNone;  // of descriptors
  int attribute_not_set = kNone;

  uintptr_t handles = 0;  // number created; they are numbered from 1
  // Of the last graph and plan, of the last execution and of the last stream that was set.
  void *maker = nullptr, *executor = nullptr, *with_stream = nullptr;
  int descriptors = 0;  // number of existing ones
  int executions = 0;
  int64_t operations = 0;                          // of the last graph
  std::map<int, std::vector<int64_t>> attributes;  // the last INT64 ones that were set
  std::vector<const void*> addresses;              // of the last variant pack
  // Sizes and strides of all tensors.
  std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>> tensors;

#ifdef ANYDML_FAKE_CUDNN
  // Opens it, so that later requests for a library of this name get it.
  static FakeCudnn* Find() {
    void* const library = dlopen(ANYDML_FAKE_CUDNN, RTLD_NOW | RTLD_LOCAL);
    return library == nullptr ? nullptr : static_cast<FakeCudnn*>(dlsym(library, "anydml_fake_cudnn"));
  }
#endif
};

}  // namespace anydml::testing
