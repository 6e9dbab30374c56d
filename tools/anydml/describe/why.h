// The library's explanation of a choice: a line per implementation, "NAME: chosen" or why not.
#pragma once

#include <string_view>

#include "anydml/json/json_writer.h"

namespace anydml::tools {

// The member "why": [{"implementation": NAME, "reason": TEXT}...]
void WriteWhy(std::string_view explanation, JsonWriter* json);

}  // namespace anydml::tools
