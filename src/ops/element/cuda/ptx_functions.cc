#include "ops/element/cuda/ptx_functions.h"

#include <algorithm>

namespace anydml::element_cuda {
namespace {

constexpr std::string_view kPrefix = "anydml_";
constexpr std::string_view kFunction = ".visible .func";
constexpr std::string_view kLoad = "ld.param.";

// The next line of *text, without leading blanks.
std::string_view TakeLine(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return line;
}

// For a line that loads a parameter: the instruction that moves a 32-bit register instead, up to its target;
// empty for other lines.
std::string MoveLike(std::string_view line) {
  const std::string_view type = line.substr(kLoad.size(), line.find_first_of(" \t") - kLoad.size());
  const size_t at = std::min(line.find('%'), line.size());
  const std::string target(line.substr(at, line.find(',') - at));
  if (type == "f32") return "mov.b32 " + target;
  const bool is_integer = type.starts_with("u") || type.starts_with("s");
  const std::string width = target.starts_with("%rd") ? "64" : target.starts_with("%rs") ? "16" : "32";
  if (type == "b32" || type == "u32" || type == "s32") {
    if (width == "32") return "mov.b32 " + target;
  }
  if (!is_integer || !target.starts_with("%r")) return {};
  return "cvt." + std::string(type.substr(0, 1)) + width + "." + std::string(type) + " " + target;
}

}  // namespace

PtxFunctions::PtxFunctions(std::string_view ptx) {
  size_t at = std::min(ptx.find(kFunction), ptx.size());
  std::string_view before = ptx.substr(0, at);
  while (!before.empty()) {
    const std::string_view line = TakeLine(&before);
    if (line.starts_with(".version") || line.starts_with(".target") || line.starts_with(".address_size")) {
      header_.append(line).append("\n");
    }
  }
  while (at < ptx.size()) {
    const size_t next = std::min(ptx.find(kFunction, at + 1), ptx.size());
    const std::string_view function = ptx.substr(at, next - at);
    at = next;
    const size_t name = function.find(kPrefix);
    if (name == std::string_view::npos) continue;
    const std::string_view full_name = function.substr(name, function.find('(', name) - name);
    const size_t begin = function.find('{');
    // Helper functions may follow the last visible one.
    const size_t end = function.rfind('}', function.find("\n.func"));
    if (begin == std::string_view::npos || end == std::string_view::npos) continue;
    Body body = Read(full_name, function.substr(begin + 1, end - begin - 1));
    if (!body.empty()) bodies_.emplace(full_name.substr(kPrefix.size()), std::move(body));
  }
}

PtxFunctions::Body PtxFunctions::Read(std::string_view name, std::string_view body) {
  std::string parameter("[");
  parameter.append(name).append("_param_");
  Body pieces(1);
  bool has_returned = false;
  while (!body.empty()) {
    const std::string_view line = TakeLine(&body);
    if (line.empty() || line.starts_with("//")) continue;
    if (has_returned || line.starts_with("call")) return {};
    std::string& text = pieces.back().text;
    if (line.starts_with(kLoad)) {
      const size_t number = line.find(parameter) + parameter.size();  // one digit
      const std::string move = MoveLike(line);
      if (line.find(parameter) == line.npos || line.substr(number + 1, 1) != "]" || move.empty()) return {};
      text.append(move).append(", ");
      pieces.back().next = line[number] - '0';
      pieces.push_back({";\n"});
    } else if (line.starts_with("st.param")) {
      if (!line.starts_with("st.param.b32") && !line.starts_with("st.param.f32")) return {};
      text.append("mov.b32 ");
      pieces.back().next = kTarget;
      pieces.push_back({", " + std::string(line.substr(line.rfind(' ') + 1)) + "\n"});
    } else if (line.starts_with("ret;")) {
      has_returned = true;
    } else if (line.find("ret;") != std::string_view::npos) {
      return {};
    } else {
      text.append(line).append("\n");
    }
  }
  return has_returned ? pieces : Body();
}

void PtxFunctions::AppendInLine(const std::string& name, std::string_view target,
                                std::span<const std::string> sources, std::string* text) const {
  text->append("{\n");
  for (const Piece& piece : bodies_.at(name)) {
    text->append(piece.text);
    if (piece.next == kTarget) {
      text->append(target);
    } else if (piece.next != kNone) {
      const auto source = static_cast<size_t>(piece.next);
      text->append(source < sources.size() ? std::string_view(sources[source]) : "0");
    }
  }
  text->append("}\n");
}

}  // namespace anydml::element_cuda
