#include "precompiled.h"  // CMake precompiles headers for the sources of a target; this is one
