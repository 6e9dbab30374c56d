#include "d3d12/adapters/adapter_kind.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

namespace anydml::d3d12 {
namespace {

constexpr char kVariable[] = "ANYDML_ADAPTER_KIND";

struct Entry {
  std::string_view adapter;  // empty: all adapters
  std::optional<AdapterKind> kind;
};

std::optional<AdapterKind> ParseKind(std::string_view name) {
  constexpr std::pair<std::string_view, AdapterKind> kNames[] = {
      {"gpu", AdapterKind::kGpu},
      {"compute", AdapterKind::kComputeAccelerator},
      {"npu", AdapterKind::kNpu},
      {"software", AdapterKind::kSoftware},
  };
  for (const auto& [known, kind] : kNames) {
    if (name == known) return kind;
  }
  return std::nullopt;
}

// Removes the first entry of a list that is not empty.
Entry NextEntry(std::string_view* list) {
  const std::string_view text = list->substr(0, list->find(','));
  list->remove_prefix(std::min(list->size(), text.size() + 1));
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return {{}, ParseKind(text)};
  return {text.substr(0, equals), ParseKind(text.substr(equals + 1))};
}

std::string_view Variable() {
  const char* text = std::getenv(kVariable);
  return text != nullptr ? text : "";
}

// The last matching entry decides.
std::optional<AdapterKind> SaidOf(const Backend& backend) {
  std::optional<AdapterKind> said;
  for (std::string_view rest = Variable(); !rest.empty();) {
    const Entry entry = NextEntry(&rest);
    const bool fits = entry.adapter.empty() || entry.adapter == backend.adapter().id;
    if (fits && entry.kind.has_value()) said = entry.kind;
  }
  return said;
}

}  // namespace

Status CheckAdapterKinds() {
  for (std::string_view rest = Variable(); !rest.empty();) {
    if (NextEntry(&rest).kind.has_value()) continue;
    return InvalidArgument(
        "the environment variable ", kVariable, " is \"", Variable(),
        "\" but must be gpu, compute, npu or software, or a list such as cpu=npu,cuda:0=gpu");
  }
  return {};
}

AdapterKind KindOf(const Backend& backend) {
  const AdapterKind usual = backend.adapter().is_gpu ? AdapterKind::kGpu : AdapterKind::kComputeAccelerator;
  return SaidOf(backend).value_or(usual);
}

bool ClaimsGraphics(const Backend& backend) {
  const AdapterKind kind = SaidOf(backend).value_or(AdapterKind::kGpu);
  return kind == AdapterKind::kGpu || kind == AdapterKind::kSoftware;
}

}  // namespace anydml::d3d12
