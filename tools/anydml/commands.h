// The commands of the anydml tool.
#pragma once

#include <span>
#include <string>

#include "base/status.h"

namespace anydml::tools {

// Each takes what follows its name on the command line.
Status RunModelCommand(std::span<const std::string> arguments);
Status OpCommand(std::span<const std::string> arguments);
Status OperatorsCommand(std::span<const std::string> arguments);
Status AdaptersCommand(std::span<const std::string> arguments);

extern const char* const kRunHelp;
extern const char* const kOpHelp;
extern const char* const kOperatorsHelp;
extern const char* const kAdaptersHelp;

}  // namespace anydml::tools
