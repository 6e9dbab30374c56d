// A model of our own, which tells digits apart (examples/digits).
#pragma once

#include "common/session.h"

namespace anydml::tools {

// Prints pictures and what the model makes of them; `wrong` is how many answers are.
Status RunDigits(Session* session, int* wrong);

}  // namespace anydml::tools
