// Executes a model's commands.
#pragma once

#include "anydml/cli/options.h"
#include "anydml/cli/output.h"
#include "anydml/model/model.h"
#include "base/status.h"

namespace anydml::client {

// Creates its own session. The document gets the members "dispatchables" and "commands".
Status RunModel(Model model, const ExecutionOptions& options, Output* output);

// The same with all dispatches as one graph, and without output.
Status RunModelAsGraph(Model model, const ExecutionOptions& options);

}  // namespace anydml::client
