// Completions for the last word of a command line.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace anydml::client {

struct Candidate {
  std::string text;         // the whole word; after one that ends in '=' the word continues
  std::string description;  // may be empty
};

struct Candidates {
  std::vector<Candidate> list;
  bool files = false;  // file names, too (after the last '=' of the word)
};

// `words` are those after "anydml" up to the cursor; the last one is incomplete.
Candidates Complete(std::span<const std::string> words);

}  // namespace anydml::client
