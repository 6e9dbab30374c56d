#include "anydml/cli/output.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "client/exit_status.h"
#include "client/text.h"

namespace anydml::client {
namespace {

const char* ErrorKind(const Status& status) {
  if (status.code() == kInterrupted) return "interrupted";
  constexpr const char* kKinds[] = {"none", "failed", "usage", "unsupported"};
  return kKinds[ExitCode(status)];
}

// Messages quote names and paths from files.
std::string Lines(std::string_view text) {
  std::string result;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    result += StrCat(start > 0 ? "\n" : "", ForTerminal(text.substr(start, end - start)));
    start = end + 1;
  }
  return result;
}

}  // namespace

void Output::Write(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) < text.size() && write_error_ == 0)
    write_error_ = errno;
}

Status Output::Flush() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  const int error = write_error_ != 0 ? write_error_ : errno;
  return Status(Code::kFail, StrCat("standard output cannot be written: ", std::strerror(error)));
}

Output::Output(bool json, bool quiet) : json_(json), quiet_(quiet) { document_.BeginObject(); }

void Output::Text(std::string_view text) {
  if (!json_ && !quiet_) Write(text);
}

void Output::Page(std::string_view text) {
  Text(text);
  if (json_) document_.Key("text").String(text);
}

void Output::Note(const std::string& sentence) const {
  if (quiet_) return;
  std::fprintf(stderr, "%s note: %s\n", client::Paint(stderr, Style::kYellow, "anydml:").c_str(),
               Lines(sentence).c_str());
}

Status Output::Finish(const Status& status) {
  if (json_) {
    while (document_.depth() > 1) document_.End();  // closes what is open where the command stopped
    if (!status.ok()) {
      document_.Key("error").BeginObject();
      document_.Key("kind").String(ErrorKind(status));
      document_.Key("exitCode").Number(static_cast<uint64_t>(ExitCode(status)));
      document_.Key("message").String(status.message());
      document_.End();
    }
    document_.End();
    Write(document_.text());
    Write("\n");
  }
  const Status flushed = Flush();
  const Status& result = status.ok() ? flushed : status;
  if (!result.ok()) {
    std::fprintf(stderr, "%s %s\n", client::Paint(stderr, Style::kRed, "anydml:").c_str(),
                 Lines(result.message()).c_str());
  }
  return result;
}

}  // namespace anydml::client
