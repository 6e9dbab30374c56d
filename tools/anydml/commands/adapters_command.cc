#include <anydml.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "anydml/commands/commands.h"
#include "client/adapters.h"
#include "client/exit_status.h"

namespace anydml::client {
namespace {

std::string MemorySize(uint64_t bytes) {
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f GiB", static_cast<double>(bytes) / kGiB);
  return text;
}

constexpr Option kVerboseOption = {"--verbose", "", ValueKind::kText,
                                   "what each adapter can do, and which promises its driver cannot keep"};

std::string DataTypesOf(const AnyDmlAdapterTraits& traits) {
  std::string missing;
  for (uint32_t type = 1; type < kDataTypeCount; ++type) {
    if ((traits.DataTypes >> type & 1) == 0)
      missing += StrCat(missing.empty() ? "" : ", ", Name(static_cast<DataType>(type)));
  }
  return missing.empty() ? "all" : StrCat("all but ", missing, ", which run on the host");
}

// What docs/determinism.md promises and this adapter does not keep.
std::string DeviationsOf(const AnyDmlAdapterTraits& traits) {
  std::string deviations;
  if (traits.KeepsDenormals == 0) deviations = "FLOAT32 denormals may become zeros";
  if (traits.FusesMultiplyAdd == 0)
    deviations += StrCat(deviations.empty() ? "" : "; ", "fused multiplications and additions round twice");
  return deviations.empty() ? "none" : deviations;
}

std::string TraitsInWords(const AnyDmlAdapterTraits& traits) {
  return StrCat("      runs on     ", traits.RunsOnHost != 0 ? "threads of this process" : "a device",
                "\n      host memory ", traits.TakesHostMemory != 0 ? "is used as it is" : "is copied",
                "\n      units       of ", traits.UnitBytes, " bytes; subgroups of ", traits.SubgroupLanes,
                "\n      data types  ", DataTypesOf(traits), "\n      deviations  ", DeviationsOf(traits),
                "\n");
}

void WriteTraits(const AnyDmlAdapterTraits& traits, JsonWriter& json) {
  json.Key("traits").BeginObject();
  json.Key("runsOnHost").Bool(traits.RunsOnHost != 0);
  json.Key("takesHostMemory").Bool(traits.TakesHostMemory != 0);
  json.Key("unitBytes").Number(traits.UnitBytes);
  json.Key("subgroupLanes").Number(traits.SubgroupLanes);
  json.Key("dataTypes").Number(traits.DataTypes);
  json.Key("keepsDenormals").Bool(traits.KeepsDenormals != 0);
  json.Key("fusesMultiplyAdd").Bool(traits.FusesMultiplyAdd != 0);
  json.End();
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
    if (arguments.Has(kVerboseOption.name)) output->Text(TraitsInWords(adapter.traits));
    json.BeginObject();
    json.Key("index").Number(i);
    json.Key("id").String(adapter.id);
    json.Key("description").String(adapter.description);
    json.Key("dedicatedBytes").Number(adapter.dedicated_bytes);
    json.Key("sharedBytes").Number(adapter.shared_bytes);
    WriteTraits(adapter.traits, json);
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

constexpr Option kOptions[] = {kVerboseOption};

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
    .options = kOptions,
    .run = ListTheAdapters,
};

}  // namespace anydml::client
