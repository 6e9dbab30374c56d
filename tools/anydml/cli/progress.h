// A progress line for long commands.
#pragma once

#include <cstddef>
#include <string>

namespace anydml::client {

// One line on standard error, drawn only when Show is called, and only on a terminal.
class Progress {
 public:
  explicit Progress(size_t total);
  ~Progress() { Clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Show(size_t done, const std::string& doing);
  // To be called before other output.
  void Clear();

 private:
  const size_t total_;
  const bool visible_;
};

}  // namespace anydml::client
