// AnyDmlRun: runs a compiled operator on addresses, without lists and queues.
#pragma once

#include <DirectML.h>
#include <anydml.h>

namespace anydml::dml {

HRESULT RunImmediately(IDMLCompiledOperator* op, const AnyDmlRunDesc* desc) noexcept;

}  // namespace anydml::dml
