// Compiled once per DML_TARGET_VERSION; compiling is the test.
#include <DirectML.h>

#include "declarations_check.h"
