#define ANYDML_GROUP ANYDML_LOGICAL_FUNCTIONS
#define ANYDML_GROUP_FILE "ops/element/cpu/logical_loops.cc"
#define ANYDML_FIND_LOOP FindLogicalLoop
#include "ops/element/cpu/group-inl.h"
