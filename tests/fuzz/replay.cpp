// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over the files of a folder, whole, cut off and with single bits changed: what the ordinary test
// run does where there is no libFuzzer. Usage: fuzz_<target> <folder>
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
  // A copy of its own, so that a sanitizer sees a read past the end.
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
    const std::string whole{std::istreambuf_iterator<char>(file), {}};
    run(whole);
    for (size_t i = 0; i < kCuts; ++i) run(whole.substr(0, whole.size() * i / kCuts));
    for (size_t i = 0; i < kChanges && !whole.empty(); ++i) {
      std::string changed = whole;
      const size_t bit = whole.size() * 8 * i / kChanges + i % 8;
      changed[std::min(bit / 8, whole.size() - 1)] ^= static_cast<char>(1 << bit % 8);
      run(changed);
    }
  }
  std::printf("%zu inputs\n", paths.size());
  return paths.empty() ? 1 : 0;
}
