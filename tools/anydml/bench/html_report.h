// A benchmark report as one self-contained HTML page: no script, font or picture.
#pragma once

#include <string>

#include "anydml/bench/report_data.h"

namespace anydml::client {

std::string HtmlReport(const Report& report);

}  // namespace anydml::client
