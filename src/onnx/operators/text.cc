// Counts of words that have become numbers.
#include <algorithm>
#include <map>

#include "onnx/host/host_numbers.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

// The weights of n-grams, and their positions in the result.
struct Grams {
  std::map<std::vector<int64_t>, size_t> numbers;
  std::vector<int64_t> indexes;
  std::vector<float> weights;  // or empty
  int64_t longest = 0;
};

// The limit of n-grams that are looked up.
constexpr double kMostLookups = 0x1p30;

// The pool has all 1-grams, then all 2-grams, ...; `ngram_counts` has the begin of each.
Status ReadGrams(const HostCall& call, Grams* out) {
  const std::vector<int64_t> pool = call.Ints("pool_int64s"), begins = call.Ints("ngram_counts");
  out->indexes = call.Ints("ngram_indexes");
  out->weights = call.Floats("weights");
  if (call.HasAttribute("pool_strings")) return Unsupported("strings");
  size_t number = 0;
  for (size_t i = 0; i < begins.size(); ++i) {
    const int64_t begin = begins[i],
                  end = i + 1 < begins.size() ? begins[i + 1] : static_cast<int64_t>(pool.size());
    const auto words = static_cast<int64_t>(i + 1);
    if (begin < 0 || begin > end || end > static_cast<int64_t>(pool.size()) || (end - begin) % words != 0)
      return InvalidArgument("ngram_counts[", i, "] is ", begin, ", with ", pool.size(),
                             " words in the pool");
    if (begin < end) out->longest = words;
    for (int64_t at = begin; at < end; at += words)
      out->numbers.try_emplace({pool.begin() + at, pool.begin() + at + words}, number++);
  }
  const bool in_range = std::all_of(out->indexes.begin(), out->indexes.end(),
                                    [](int64_t i) { return i >= 0 && i < host::kMostHostNumbers; });
  if (out->indexes.size() != number || !in_range || (!out->weights.empty() && out->weights.size() != number))
    return InvalidArgument("there are ", out->indexes.size(), " ngram_indexes and ", out->weights.size(),
                           " weights for ", number, " n-grams");
  return {};
}

// Words may be skipped between those of an n-gram, the same number each time.
Status TfIdfVectorizer(HostCall& call) {
  Grams grams;
  ANYDML_RETURN_IF_ERROR(ReadGrams(call, &grams));
  const Shape& given = call.In(0).shape;
  const std::vector<int64_t> words = ToInts(call.In(0));
  const std::string mode = call.Text("mode", "TF");
  int64_t least = call.Int("min_gram_length", 1);
  if (given.empty() || given.size() > 2 || words.size() != static_cast<size_t>(call.In(0).count()) ||
      least < 1)
    return InvalidArgument("an input of ", ShapeToString(given));
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") return InvalidArgument("mode ", mode.substr(0, 40));
  const int64_t length = given.back(), rows = given.size() == 2 ? given[0] : 1;
  const int64_t most = std::min({call.Int("max_gram_length", 1), grams.longest, length}),
                skips = std::min(call.Int("max_skip_count", 0), length);
  if (static_cast<double>(words.size()) * static_cast<double>(most) * static_cast<double>(skips + 1) >
      kMostLookups)
    return Unsupported("n-grams of up to ", most, " words with up to ", skips, " left out, in ", words.size(),
                       " words");
  int64_t width = 0;
  for (const int64_t index : grams.indexes) width = std::max(width, index + 1);
  Shape shape = given;
  shape.back() = width;
  if (!ElementCount(shape) || *ElementCount(shape) > host::kMostHostNumbers)
    return Unsupported("a result of ", ShapeToString(shape));
  std::vector<double> result(static_cast<size_t>(rows * width), 0);
  const auto count = [&](int64_t row, const std::vector<int64_t>& gram) {
    const auto found = grams.numbers.find(gram);
    if (found == grams.numbers.end()) return;
    double& sum = result[static_cast<size_t>(row * width + grams.indexes[found->second])];
    const double weight = mode == "TF" || grams.weights.empty() ? 1 : grams.weights[found->second];
    sum = mode == "IDF" ? weight : sum + weight;
  };
  for (int64_t skip = 1; skip - 1 <= skips && least <= length && (least - 1) * skip < length; ++skip) {
    for (int64_t at = 0; at < rows * length; ++at) {
      const int64_t row = at / length, end = (row + 1) * length;
      std::vector<int64_t> gram;
      for (int64_t next = at; next < end && static_cast<int64_t>(gram.size()) < most; next += skip) {
        gram.push_back(words[static_cast<size_t>(next)]);
        if (static_cast<int64_t>(gram.size()) >= least) count(row, gram);
      }
    }
    if (least == 1 && ++least > most) break;  // a single word is the same for any number of skips
  }
  call.outputs[0] = FromDoubles(ElementType::kFloat, std::move(shape), result);
  return {};
}

constexpr OperatorRow kTextRows[] = {
    {.domain = kOnnx,
     .name = "TfIdfVectorizer",
     .min_inputs = 1,
     .max_inputs = 1,
     .lower = OnHost,
     .evaluate = TfIdfVectorizer,
     .on_host = true},
};

}  // namespace

std::span<const OperatorRow> TextOperators() { return kTextRows; }

}  // namespace anydml::onnx
