#include "support/fake_cudnn.h"

#include <algorithm>

using anydml::testing::FakeCudnn;

namespace {

constexpr int kBadParameter = 2000, kNotSupported = 3000, kInternalError = 4000, kExecutionFailed = 5000;

struct FakeDescriptor {
  int kind;
  int mode = 0;                               // of heuristics
  const FakeCudnn::Engine* engine = nullptr;  // of an engine, its configuration and its plan
};

}  // namespace

extern "C" {

#define ANYDML_FAKE __attribute__((visibility("default")))

ANYDML_FAKE FakeCudnn anydml_fake_cudnn;

ANYDML_FAKE size_t cudnnGetVersion() { return 91002; }

ANYDML_FAKE const char* cudnnGetErrorString(int status) {
  switch (status) {
    case kBadParameter:
      return "CUDNN_STATUS_BAD_PARAM";
    case kNotSupported:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case kExecutionFailed:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
      return "CUDNN_STATUS_INTERNAL_ERROR";
  }
}

ANYDML_FAKE int cudnnCreate(void** handle) {
  *handle = reinterpret_cast<void*>(++anydml_fake_cudnn.handles);
  return anydml_fake_cudnn.fails_to_start ? kInternalError : 0;
}
ANYDML_FAKE int cudnnSetStream(void* handle, void*) {
  anydml_fake_cudnn.with_stream = handle;
  return 0;
}

ANYDML_FAKE int cudnnBackendCreateDescriptor(int kind, void** descriptor) {
  if (kind == anydml_fake_cudnn.kind_not_created) return kInternalError;
  *descriptor = new FakeDescriptor{kind};
  ++anydml_fake_cudnn.descriptors;
  return 0;
}
ANYDML_FAKE int cudnnBackendDestroyDescriptor(void* descriptor) {
  delete static_cast<FakeDescriptor*>(descriptor);
  --anydml_fake_cudnn.descriptors;
  return 0;
}

ANYDML_FAKE int cudnnBackendFinalize(void* descriptor) {
  const auto& self = *static_cast<FakeDescriptor*>(descriptor);
  if (self.kind == anydml_fake_cudnn.kind_not_finalized) return kNotSupported;
  if (self.kind == anydml::cudnn::kTensor) {
    auto& attributes = anydml_fake_cudnn.attributes;
    anydml_fake_cudnn.tensors.emplace_back(attributes[anydml::cudnn::kTensorDimensions],
                                           attributes[anydml::cudnn::kTensorStrides]);
  }
  return self.kind == anydml::cudnn::kExecutionPlan && !self.engine->has_plan ? kNotSupported : 0;
}

ANYDML_FAKE int cudnnBackendSetAttribute(void* descriptor, int attribute, int type, int64_t count,
                                         const void* values) {
  auto& self = *static_cast<FakeDescriptor*>(descriptor);
  FakeCudnn& fake = anydml_fake_cudnn;
  if (attribute == fake.attribute_not_set) return kBadParameter;
  if (type == anydml::cudnn::kTypeInt64) {
    const auto* const numbers = static_cast<const int64_t*>(values);
    fake.attributes[attribute].assign(numbers, numbers + count);
  }
  if (type == anydml::cudnn::kTypeHandle) fake.maker = *static_cast<void* const*>(values);
  if (attribute == anydml::cudnn::kHeuristicsMode) self.mode = *static_cast<const int*>(values);
  if (attribute == anydml::cudnn::kGraphOperations) fake.operations = count;
  if (attribute == anydml::cudnn::kPlanConfig) {
    self.engine = (*static_cast<FakeDescriptor* const*>(values))->engine;
  }
  if (attribute == anydml::cudnn::kPackAddresses) {
    const auto* const addresses = static_cast<const void* const*>(values);
    fake.addresses.assign(addresses, addresses + count);
  }
  return 0;
}

ANYDML_FAKE int cudnnBackendGetAttribute(void* descriptor, int attribute, int, int64_t room, int64_t* count,
                                         void* values) {
  const auto& self = *static_cast<FakeDescriptor*>(descriptor);
  *count = 1;
  switch (attribute) {
    case anydml::cudnn::kHeuristicsResults: {
      const auto& engines = anydml_fake_cudnn.engines[self.mode];
      *count = static_cast<int64_t>(engines.size());
      for (int64_t i = 0; i < std::min(room, *count); ++i) {
        static_cast<FakeDescriptor**>(values)[i]->engine = &engines[static_cast<size_t>(i)];
      }
      return 0;
    }
    case anydml::cudnn::kConfigEngine:
      (*static_cast<FakeDescriptor**>(values))->engine = self.engine;
      return 0;
    case anydml::cudnn::kEngineNumericalNote:
      *count = static_cast<int64_t>(self.engine->notes.size());
      std::copy(self.engine->notes.begin(), self.engine->notes.end(), static_cast<int*>(values));
      return 0;
    case anydml::cudnn::kEngineGlobalIndex:
      *static_cast<int64_t*>(values) = self.engine->index;
      return 0;
    case anydml::cudnn::kPlanWorkspaceSize:
      *static_cast<int64_t*>(values) = self.engine->workspace_bytes;
      return 0;
    default:
      return kBadParameter;
  }
}

ANYDML_FAKE int cudnnBackendExecute(void* handle, void*, void*) {
  anydml_fake_cudnn.executor = handle;
  ++anydml_fake_cudnn.executions;
  return anydml_fake_cudnn.fails_to_execute ? kExecutionFailed : 0;
}
}
