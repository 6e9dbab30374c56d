// A command's output: text or, with --json, one JSON document.
#pragma once

#include <string>
#include <string_view>

#include "anydml/cli/style.h"
#include "base/status.h"
#include "client/json/json_writer.h"

namespace anydml::client {

class Output {
 public:
  // `quiet`: prints nothing, for callers who need only the exit code.
  explicit Output(bool json, bool quiet = false);

  bool json() const { return json_; }

  // Text goes to standard output at once; with --json it is omitted.
  void Text(std::string_view text);
  std::string Paint(Style style, std::string_view text) const { return client::Paint(stdout, style, text); }

  // A text that is the whole answer; with --json the member "text".
  void Page(std::string_view text);

  // The document: an object, open from the start, to which members are added. Without --json it is not
  // printed.
  JsonWriter& document() { return document_; }

  // "anydml: note: ..." on standard error.
  void Note(const std::string& sentence) const;

  // Ends the command: writes the document, with "error" if there is one, or the message. Returns the status,
  // or an error if standard output could not be written.
  Status Finish(const Status& status);

 private:
  void Write(std::string_view text);
  Status Flush();

  const bool json_;
  const bool quiet_;
  int write_error_ = 0;  // errno of the first failure
  JsonWriter document_;
};

}  // namespace anydml::client
