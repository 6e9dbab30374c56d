// Our own model, which recognises digits (examples/digits).
#pragma once

#include "client/session.h"

namespace anydml::client {

// Prints pictures and the model's answers; `wrong` is the number of wrong answers.
Status RunDigits(Session* session, int* wrong);

}  // namespace anydml::client
