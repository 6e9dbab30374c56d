#include "ops/column.h"

namespace anydml {

// One line for each family; families.generated.h lists the folders in src/ops/CMakeLists.txt.
#define ANYDML_FAMILY(name)         \
  namespace family::name {          \
  void RegisterCpu(Column* column); \
  }
#include "ops/families.generated.h"
#undef ANYDML_FAMILY

const Column& HostColumn() {
  static const Column column = [] {
    Column all;
#define ANYDML_FAMILY(name) family::name::RegisterCpu(&all);
#include "ops/families.generated.h"
#undef ANYDML_FAMILY
    return all;
  }();
  return column;
}

}  // namespace anydml
