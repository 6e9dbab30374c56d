// What a command says: text for people or, with --json, one JSON document.
#pragma once

#include <string>
#include <string_view>

#include "anydml/cli/style.h"
#include "anydml/json/json_writer.h"
#include "base/status.h"

namespace anydml::tools {

class Output {
 public:
  // `quiet`: nothing is printed, for whoever only wants to know how it ends.
  explicit Output(bool json, bool quiet = false);

  bool json() const { return json_; }

  // Text goes to standard output at once; with --json it is left out.
  void Text(std::string_view text);
  std::string Paint(Style style, std::string_view text) const { return tools::Paint(stdout, style, text); }

  // A text that is the whole answer; with --json the member "text".
  void Page(std::string_view text);

  // The document: an object, open from the start, to add members to. Without --json
  // nobody reads it.
  JsonWriter& document() { return document_; }

  // "anydml: note: ..." on standard error.
  void Note(const std::string& sentence) const;

  // Ends the command: writes the document, with "error" where there is one, or the sentence.
  // Returns the status, or that standard output could not be written.
  Status Finish(const Status& status);

 private:
  void Write(std::string_view text);
  Status Flush();

  const bool json_;
  const bool quiet_;
  int write_error_ = 0;  // errno of the first failure
  JsonWriter document_;
};

}  // namespace anydml::tools
