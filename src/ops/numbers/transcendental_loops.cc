#define ANYDML_GROUP ANYDML_TRANSCENDENTAL_FUNCTIONS
#define ANYDML_GROUP_FILE "ops/numbers/transcendental_loops.cc"
#define ANYDML_FIND_LOOP FindTranscendentalLoop
#define ANYDML_GROUP_STORES_BYTES false
#define ANYDML_GROUP_ASKS_AHEAD true
#include "ops/numbers/element_loops_group-inl.h"
