#define ANYDML_GROUP ANYDML_TRANSCENDENTAL_FUNCTIONS
#define ANYDML_GROUP_FILE "ops/element/cpu/transcendental_loops.cc"
#define ANYDML_FIND_LOOP FindTranscendentalLoop
#define ANYDML_GROUP_STORES_BYTES false
#define ANYDML_GROUP_ASKS_AHEAD true
#include "ops/element/cpu/group-inl.h"
