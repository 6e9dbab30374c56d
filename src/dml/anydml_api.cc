// The functions of anydml.h.
#include <anydml.h>

#include "backend/backend.h"
#include "base/report.h"
#include "com/com_object.h"
#include "dml/compiled_operator.h"

namespace {

const anydml::dml::Program* ProgramOf(IDMLCompiledOperator* op) {
  const auto* compiled = anydml::dml::ImplementationOf<anydml::dml::CompiledOperator>(op);
  return compiled != nullptr ? compiled->program().get() : nullptr;
}

}  // namespace

extern "C" {

const char* AnyDmlGetLastErrorMessage() { return anydml::LastErrorMessage(); }

void AnyDmlClearLastError() { anydml::ClearLastErrorMessage(); }

const char* AnyDmlGetVersion() { return ANYDML_VERSION; }

const char* AnyDmlGetImplementation(IDMLCompiledOperator* op) {
  const auto* program = ProgramOf(op);
  return program != nullptr ? program->lowered.implementation.c_str() : "";
}

const char* AnyDmlExplainImplementation(IDMLCompiledOperator* op) {
  const auto* program = ProgramOf(op);
  return program != nullptr ? program->lowered.explanation.c_str() : "";
}

const char* AnyDmlGetAdapterId(uint64_t luid) {
  for (const anydml::Backend* backend : anydml::Backends()) {
    if (backend->adapter().luid == luid) return backend->adapter().id.c_str();
  }
  return "";
}

const char* AnyDmlWhyNoGpu() { return anydml::WhyNoGpu().c_str(); }

uint64_t AnyDmlGetLiveObjectCount() { return anydml::LiveObjectCount(); }

}  // extern "C"
