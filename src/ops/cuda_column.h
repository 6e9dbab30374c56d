#pragma once

#include "ops/column.h"

namespace anydml {

const Column& CudaColumn();

}  // namespace anydml
