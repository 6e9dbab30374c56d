#include "support/child_process.h"

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>

#include <gtest/gtest.h>

namespace anydml::testing {
namespace {

[[noreturn]] void RunChild(int to_parent, const std::function<std::string()>& body) {
  std::string text;
  try {
    text = body();
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = write(to_parent, text.data() + at, text.size() - at);
    if (written <= 0) break;
    at += static_cast<size_t>(written);
  }
  std::fflush(nullptr);
  _exit(::testing::Test::HasFailure() ? 1 : 0);
}

}  // namespace

std::string InChild(uint32_t threads, const std::function<std::string()>& body) {
  int ends[2];
  if (pipe(ends) != 0) {
    ADD_FAILURE() << "there is no pipe";
    return {};
  }
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    setenv("ANYDML_THREADS", std::to_string(threads).c_str(), 1);
    RunChild(ends[1], body);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "in the process with " << threads << " threads"
                       << (WIFSIGNALED(status) ? ", which a signal ended" : "");
  return text;
}

std::vector<int> WorkerThreads() {
  std::vector<int> ids;
  DIR* const tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return ids;
  while (const dirent* const task = readdir(tasks)) {
    std::string name;
    std::ifstream(std::string("/proc/self/task/") + task->d_name + "/comm") >> name;
    if (name == "anydml-worker") ids.push_back(std::atoi(task->d_name));
  }
  closedir(tasks);
  return ids;
}

}  // namespace anydml::testing
