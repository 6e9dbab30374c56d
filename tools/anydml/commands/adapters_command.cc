#include <anydml.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "anydml/cli/exit_status.h"
#include "anydml/commands/commands.h"
#include "common/adapters.h"

namespace anydml::tools {
namespace {

std::string MemorySize(uint64_t bytes) {
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f GiB", static_cast<double>(bytes) / kGiB);
  return text;
}

Status ListTheAdapters(const Arguments& arguments, Output* output) {
  if (!arguments.operands().empty()) return UsageError("adapters takes no arguments");
  std::vector<Adapter> adapters;
  ANYDML_RETURN_IF_ERROR(ListAdapters(&adapters));
  JsonWriter& json = output->document();
  json.Key("adapters").BeginArray();
  for (size_t i = 0; i < adapters.size(); ++i) {
    const Adapter& adapter = adapters[i];
    std::string id = adapter.id;
    id.resize(std::max<size_t>(id.size(), 8), ' ');
    output->Text(StrCat(i, "  ", output->Paint(Style::kBold, id), " ", adapter.description, " (",
                        MemorySize(adapter.dedicated_bytes), " of its own, ",
                        MemorySize(adapter.shared_bytes), " shared)\n"));
    json.BeginObject();
    json.Key("index").Number(i);
    json.Key("id").String(adapter.id);
    json.Key("description").String(adapter.description);
    json.Key("dedicatedBytes").Number(adapter.dedicated_bytes);
    json.Key("sharedBytes").Number(adapter.shared_bytes);
    json.End();
  }
  json.End();
  const std::string why = AnyDmlWhyNoGpu();
  json.Key("whyNoGpu");
  if (why.empty()) {
    json.Null();
  } else {
    json.String(why);
    output->Text(StrCat("no GPU: ", why, "\n"));
  }
  return {};
}

}  // namespace

const Command kAdaptersCommand = {
    .name = "adapters",
    .operands = "",
    .summary = "list the adapters",
    .description = R"(Lists the adapters of this machine, best first; the first one is used by default.
Where there is no GPU among them, the last line says why.
)",
    .operand_kind = ValueKind::kText,
    .executes = false,
    .options = {},
    .run = ListTheAdapters,
};

}  // namespace anydml::tools
