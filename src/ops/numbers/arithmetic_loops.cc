#define ANYDML_GROUP ANYDML_ARITHMETIC_FUNCTIONS
#define ANYDML_GROUP_FILE "ops/numbers/arithmetic_loops.cc"
#define ANYDML_FIND_LOOP FindArithmeticLoop
#define ANYDML_GROUP_STORES_BYTES false
#define ANYDML_GROUP_ASKS_AHEAD true
#include "ops/numbers/element_loops_group-inl.h"
