#include "client/suggest.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <vector>

#include "base/status.h"

namespace anydml::client {
namespace {

bool SameLetter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

// The Levenshtein distance, one row at a time.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (SameLetter(a[i], b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), SameLetter);
}

std::string_view Nearest(std::string_view name, std::span<const std::string_view> candidates) {
  // Limits, because files may contain any number of names of any length, and the cost is the product.
  constexpr size_t kLongest = 64, kMost = 1000;
  if (name.size() > kLongest) return {};
  std::string_view best;
  size_t best_distance = std::max<size_t>(2, name.size() / 2) + 1;
  for (const std::string_view candidate : candidates.first(std::min(candidates.size(), kMost))) {
    if (candidate.size() > kLongest) continue;
    const size_t distance = Distance(name, candidate);
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = candidate;
  }
  return best;
}

std::string DidYouMean(std::string_view name, std::span<const std::string_view> candidates) {
  const std::string_view nearest = Nearest(name, candidates);
  return nearest.empty() ? "" : StrCat("; did you mean ", nearest, "?");
}

}  // namespace anydml::client
