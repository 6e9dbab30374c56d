// The implementations in libanydml_cuda.so.
#include "ops/cuda_column.h"

namespace anydml {

// One line for each family that has a folder cuda/.
#define ANYDML_FAMILY(name)          \
  namespace family::name {           \
  void RegisterCuda(Column* column); \
  }
#include "ops/cuda_families.generated.h"
#undef ANYDML_FAMILY

const Column& CudaColumn() {
  static const Column column = [] {
    Column all;
#define ANYDML_FAMILY(name) family::name::RegisterCuda(&all);
#include "ops/cuda_families.generated.h"
#undef ANYDML_FAMILY
    return all;
  }();
  return column;
}

// This library has no implementations for the host.
const Column& HostColumn() {
  static const Column none;
  return none;
}

}  // namespace anydml
