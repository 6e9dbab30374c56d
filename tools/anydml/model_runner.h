// Executes a model's commands.
#pragma once

#include "anydml/model.h"
#include "anydml/options.h"
#include "anydml/output.h"
#include "base/status.h"

namespace anydml::tools {

// Creates a session of its own. The document gets the members "dispatchables" and "commands".
Status RunModel(Model model, const ExecutionOptions& options, Output* output);

}  // namespace anydml::tools
