// The library's explanation of its choice: a line per implementation, "NAME: chosen" or why not.
#pragma once

#include <string_view>

#include "anydml/cli/output.h"
#include "client/json/json_writer.h"

namespace anydml::client {

// The member "why": [{"implementation": NAME, "reason": TEXT}...]
void WriteWhy(std::string_view explanation, JsonWriter* json);

// What was done with graphs: as text, and as the member "explanation", an array of lines.
void WriteGraphWhy(std::string_view lines, Output* output);

}  // namespace anydml::client
