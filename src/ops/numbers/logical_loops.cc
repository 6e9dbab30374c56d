#define ANYDML_GROUP ANYDML_LOGICAL_FUNCTIONS
#define ANYDML_GROUP_FILE "ops/numbers/logical_loops.cc"
#define ANYDML_FIND_LOOP FindLogicalLoop
#define ANYDML_GROUP_STORES_BYTES true
#define ANYDML_GROUP_ASKS_AHEAD true
#include "ops/numbers/element_loops_group-inl.h"
