#include "anydml/describe/why.h"

#include <algorithm>

#include "client/text.h"

namespace anydml::client {

void WriteWhy(std::string_view explanation, JsonWriter* json) {
  json->Key("why").BeginArray();
  while (!explanation.empty()) {
    const std::string_view line = explanation.substr(0, explanation.find('\n'));
    explanation.remove_prefix(std::min(line.size() + 1, explanation.size()));
    const size_t colon = std::min(line.find(": "), line.size());
    json->BeginObject();
    json->Key("implementation").String(line.substr(0, colon));
    json->Key("reason").String(line.substr(std::min(colon + 2, line.size())));
    json->End();
  }
  json->End();
}

void WriteGraphWhy(std::string_view lines, Output* output) {
  output->Text("what was done\n");
  JsonWriter& json = output->document();
  json.Key("explanation").BeginArray();
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    output->Text(StrCat("  ", ForTerminal(line), "\n"));
    json.String(line);
  }
  json.End();
}

}  // namespace anydml::client
