// A benchmark report as one HTML page that needs nothing else: no script, no font, no picture.
#pragma once

#include <string>

#include "anydml/bench/report_data.h"

namespace anydml::tools {

std::string HtmlReport(const Report& report);

}  // namespace anydml::tools
