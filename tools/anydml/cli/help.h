// The text of --help and of the manual page, from the commands' tables.
#pragma once

#include <string>

#include "anydml/commands/commands.h"

namespace anydml::client {

std::string Overview();
std::string HelpText(const Command& command);
std::string ManPage();  // in troff

}  // namespace anydml::client
