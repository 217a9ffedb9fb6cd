// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

namespace artifex_devices {

// Under the thread sanitizer a child of a process with threads cannot start threads of its own. The address sanitizer
// does not guard its own locks at a fork: a child of a parent with threads hangs once in some hundred times.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define ARTIFEX_SKIP_WITHOUT_FORK() GTEST_SKIP() << "sanitizers do not support a fork of a process with threads"
#else
#define ARTIFEX_SKIP_WITHOUT_FORK() static_cast<void>(0)
#endif

/// Runs `body` in a forked child and gives what it returned, or how the child died. A child that hangs is ended by an
/// alarm after 30 s.
inline std::string in_forked_child(const std::function<std::string()>& body) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child < 0) return "no child";
  if (child == 0) {
    alarm(30);
    std::string said;
    try {
      said = body();
    } catch (const std::exception& error) {
      said = std::string("exception: ") + error.what();
    }
    if (write(ends[1], said.data(), said.size()) != static_cast<ssize_t>(said.size())) _exit(2);
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  char part[512];
  for (ssize_t got = 0; (got = read(ends[0], part, sizeof(part))) > 0;) said.append(part, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) return "exit code " + std::to_string(WEXITSTATUS(status));
  return said;
}

}  // namespace artifex_devices
