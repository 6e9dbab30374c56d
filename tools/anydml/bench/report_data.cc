#include "anydml/bench/report_data.h"

#include <algorithm>

#include "client/json/json_node.h"
#include "client/values/input_file.h"

namespace anydml::client {
namespace {

constexpr uint64_t kMaxPeersBytes = uint64_t{64} << 20;

Status ReadMilliseconds(const JsonNode& node, double* seconds) {
  double milliseconds = 0;
  ANYDML_RETURN_IF_ERROR(node.Get(&milliseconds));
  // Written so that NaN fails, too.
  if (!(milliseconds > 0 && milliseconds < 1e12)) return node.Error("a time in milliseconds is above 0");
  *seconds = milliseconds * 1e-3;
  return {};
}

Status ReadRequiredMilliseconds(const JsonNode& node, std::string_view key, double* seconds) {
  std::optional<JsonNode> value;
  ANYDML_RETURN_IF_ERROR(node.Require(key, &value));
  return ReadMilliseconds(*value, seconds);
}

Status ReadOptionalMilliseconds(const JsonNode& node, std::string_view key, double* seconds) {
  const std::optional<JsonNode> value = node.Find(key);
  return value ? ReadMilliseconds(*value, seconds) : Status();
}

void Erase(const std::string& part, std::string* text) {
  if (const size_t at = text->find(part); at != std::string::npos) text->erase(at, part.size());
}

// The name without the sizes and K, which the record has as separate members: "topk-ascending".
std::string Variant(const ReportCase& record) {
  std::string sizes;
  for (const uint64_t size : record.sizes) sizes += StrCat(sizes.empty() ? "-" : "x", size);
  std::string variant = record.name;
  Erase(sizes, &variant);
  if (record.k) Erase(StrCat("-k", *record.k), &variant);
  return variant;
}

Status ReadRecord(const JsonNode& node, ReportCase* out, uint32_t* threads) {
  ANYDML_RETURN_IF_ERROR(node.Expect(JsonNode::Kind::kObject, "a record of ./dev bench --json"));
  ANYDML_RETURN_IF_ERROR(node.GetRequired("case", &out->name));
  ANYDML_RETURN_IF_ERROR(node.GetRequired("operator", &out->op));
  ANYDML_RETURN_IF_ERROR(node.GetRequired("type", &out->type));
  ANYDML_RETURN_IF_ERROR(node.GetRequired("threads", threads));
  std::vector<uint32_t> sizes;
  ANYDML_RETURN_IF_ERROR(node.GetOptional("sizes", &sizes));
  out->sizes.assign(sizes.begin(), sizes.end());
  uint32_t k = 0;
  ANYDML_RETURN_IF_ERROR(node.GetOptional("k", &k));
  if (k > 0) out->k = k;
  out->variant = Variant(*out);

  ReportTime time;
  time.who = kOurs;
  time.floor_name = "floor";
  ANYDML_RETURN_IF_ERROR(ReadRequiredMilliseconds(node, "ours_ms", &time.seconds));
  ANYDML_RETURN_IF_ERROR(ReadRequiredMilliseconds(node, "floor_ms", &time.floor_seconds));
  ReportTime ours = time;
  ANYDML_RETURN_IF_ERROR(ReadOptionalMilliseconds(node, "ours_min_ms", &ours.low));
  ANYDML_RETURN_IF_ERROR(ReadOptionalMilliseconds(node, "ours_max_ms", &ours.high));
  ANYDML_RETURN_IF_ERROR(node.GetOptional("timings", &ours.iterations));
  ANYDML_RETURN_IF_ERROR(node.GetOptional("implementation", &ours.implementation));
  out->times.push_back(ours);
  const std::optional<JsonNode> marks = node.Find("marks");
  if (marks) ANYDML_RETURN_IF_ERROR(marks->Expect(JsonNode::Kind::kObject, "an object"));
  std::optional<JsonNode> peers;
  ANYDML_RETURN_IF_ERROR(node.Require("peers", &peers));
  ANYDML_RETURN_IF_ERROR(peers->Expect(JsonNode::Kind::kObject, "an object"));
  for (size_t i = 0; i < peers->value().keys.size(); ++i) {
    time.who = peers->value().keys[i];
    ANYDML_RETURN_IF_ERROR(ReadMilliseconds(peers->Member(i), &time.seconds));
    time.mark.clear();
    if (marks) ANYDML_RETURN_IF_ERROR(marks->GetOptional(time.who, &time.mark));
    out->times.push_back(time);
  }
  return {};
}

}  // namespace

Status ReadPeers(const std::string& path, std::vector<ReportSection>* out) {
  std::vector<std::byte> bytes;
  ANYDML_RETURN_IF_ERROR(ReadFile(path, kMaxPeersBytes, &bytes));
  JsonValue value;
  ANYDML_RETURN_IF_ERROR(
      ParseJson(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, &value));
  const JsonNode root(path, value);
  ANYDML_RETURN_IF_ERROR(root.Expect(JsonNode::Kind::kArray, "the array of records of ./dev bench --json"));
  const size_t first = out->size();
  return root.ForEach([&](const JsonNode& node) -> Status {
    ReportCase record;
    uint32_t threads = 0;
    ANYDML_RETURN_IF_ERROR(ReadRecord(node, &record, &threads));
    const std::string title = StrCat("Against peers, ", threads, threads == 1 ? " thread" : " threads");
    auto section =
        std::find_if(out->begin() + static_cast<ptrdiff_t>(first), out->end(),
                     [&title](const ReportSection& candidate) { return candidate.title == title; });
    if (section == out->end()) {
      std::string machine, command;
      ANYDML_RETURN_IF_ERROR(node.GetOptional("machine", &machine));
      ANYDML_RETURN_IF_ERROR(node.GetOptional("command", &command));
      out->push_back(
          {title,
           StrCat(
               "Medians of ", command.empty() ? "./dev bench" : command, ", from ", path, ", on ",
               machine.empty() ? "a machine that the file does not name" : machine,
               ". The floor is moving the bytes on as many threads, measured in the same run; the spread is "
               "from "
               "the fastest to the slowest timing. Behind a peer's time, where its result differs from ours: "
               "t, "
               "other indices of equal elements; d, another of several updates; n, another order of NaN; i, "
               "further from the true value."),
           {}});
      section = out->end() - 1;
    }
    section->cases.push_back(std::move(record));
    return {};
  });
}

}  // namespace anydml::client
