// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

namespace cuda_stand_in {
namespace {

// Never destroyed: threads may call the driver while the process ends.
std::string& problems() {
  static auto* all = new std::string;
  return *all;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t start = 0;
  for (size_t end; (end = text.find(separator, start)) != std::string::npos; start = end + 1) {
    parts.push_back(text.substr(start, end - start));
  }
  parts.push_back(text.substr(start));
  return parts;
}

}  // namespace

Settings& settings() {
  static auto* all = new Settings;  // never destroyed
  return *all;
}

void read_settings(const char* text) {
  Settings all;
  for (const std::string& entry : split(text != nullptr ? text : "", ';')) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;
    const std::string key = entry.substr(0, equals);
    const std::string value = entry.substr(equals + 1);
    if (key == "gpus") all.gpus = std::atoi(value.c_str());
    if (key == "memory") all.memory = std::atoll(value.c_str());
    if (key == "name") all.name = value;
    if (key == "version") all.version = std::atoi(value.c_str());
    if (key == "peers") all.peers = value != "0";
    if (key == "pools") all.pools = value != "0";
    if (key == "seed") all.seed = static_cast<uint64_t>(std::atoll(value.c_str()));
    if (key == "problems") all.records_problems = value == "record";
    if (key == "slow") {
      const std::vector<std::string> parts = split(value + ":0", ':');
      all.slow_function = parts[0];
      all.slow_ms = std::atoi(parts[1].c_str());
    }
    if (key == "fail") {
      const std::vector<std::string> parts = split(value + ":999:1", ':');
      all.failures.push_back(
          {parts[0], std::atoi(parts[1].c_str()), parts.size() > 4 ? std::atoll(parts[2].c_str()) : 1});
    }
  }
  settings() = std::move(all);
}

int injected_error(const char* function) {
  for (Failure& failure : settings().failures) {
    if (failure.function == function && ++failure.calls >= failure.first) return failure.error;
  }
  return 0;
}

void sleep_if_slow(const char* function) {
  if (settings().slow_function == function) {
    std::this_thread::sleep_for(std::chrono::milliseconds(settings().slow_ms));
  }
}

void problem(const std::string& text) {
  if (settings().records_problems) {
    problems() += text + "\n";
    return;
  }
  std::fprintf(stderr, "cuda stand-in: %s\n", text.c_str());
  std::abort();
}

std::string taken_problems() { return std::exchange(problems(), {}); }

}  // namespace cuda_stand_in
