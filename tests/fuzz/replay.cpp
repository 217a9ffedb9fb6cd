// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over the files of a folder, complete, truncated and with single bits changed. Test runs use this
// instead of libFuzzer. Usage: fuzz_<target> <folder>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz.h"

namespace {

constexpr size_t kCuts = 16;
constexpr size_t kChanges = 64;

void run(const std::string& input) {
  // A separate copy, so that a sanitizer detects a read past the end.
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: %s <folder of inputs>\n", arguments[0]);
    return 2;
  }
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(arguments[1])) paths.push_back(entry.path());
  std::ranges::sort(paths);
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::string complete{std::istreambuf_iterator<char>(file), {}};
    run(complete);
    for (size_t i = 0; i < kCuts; ++i) run(complete.substr(0, complete.size() * i / kCuts));
    for (size_t i = 0; i < kChanges && !complete.empty(); ++i) {
      std::string changed = complete;
      const size_t bit = complete.size() * 8 * i / kChanges + i % 8;
      changed[std::min(bit / 8, complete.size() - 1)] ^= static_cast<char>(1 << bit % 8);
      run(changed);
    }
  }
  std::printf("%zu inputs\n", paths.size());
  return paths.empty() ? 1 : 0;
}
