#include "onnx/host/random.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <utility>

namespace anydml::onnx {
namespace {

uint32_t SeedOf(const NodeFacts& node) {
  static std::atomic<uint32_t> calls = 0;
  const Attribute* const given = node.proto().Find("seed");
  if (given == nullptr) return 0x9E3779B9u * ++calls;
  if (given->kind == AttributeKind::kInt || given->integer != 0) return static_cast<uint32_t>(given->integer);
  const float seed = given->number;
  return seed >= 0 && seed < 0x1p32f ? static_cast<uint32_t>(seed) : std::bit_cast<uint32_t>(seed);
}

}  // namespace

bool DrawsNumbers(const GraphProto& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const NodeProto& node) {
    return node.type.starts_with("Random") || node.type == "Bernoulli" || node.type == "Multinomial";
  });
}

RandomNumbers::RandomNumbers(const NodeFacts& node) : generator_(SeedOf(node)) {}

double RandomNumbers::Uniform() {
  const uint32_t high = generator_() >> 5, low = generator_() >> 6;
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

// Marsaglia's polar method.
double RandomNumbers::Normal() {
  if (next_) return *std::exchange(next_, std::nullopt);
  double x = 0, y = 0, square = 0;
  do {
    x = 2 * Uniform() - 1;
    y = 2 * Uniform() - 1;
    square = x * x + y * y;
  } while (square >= 1 || square == 0);
  const double factor = std::sqrt(-2 * std::log(square) / square);
  next_ = factor * x;
  return factor * y;
}

}  // namespace anydml::onnx
