// SPDX-License-Identifier: Apache-2.0
// Threads that do random things until the time is over.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace artifex_devices::test {

inline double number_from(const char* variable, double otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtod(text, nullptr);
}

inline uint64_t stress_seed() { return static_cast<uint64_t>(number_from("ARTIFEX_STRESS_SEED", 1)); }

/// The end of one test; everybody does one round at least.
class Deadline {
 public:
  bool is_over() const { return std::chrono::steady_clock::now() >= end_; }

 private:
  std::chrono::steady_clock::time_point end_ =
      std::chrono::steady_clock::now() +
      std::chrono::milliseconds(static_cast<int64_t>(1000 * number_from("ARTIFEX_STRESS_SECONDS", 1)));
};

/// Runs body(thread, random) again and again on so many threads, each with random numbers of its own.
template <class Body>
void in_threads(int count, const Deadline& deadline, const Body& body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(stress_seed() * 1000 + static_cast<uint64_t>(t));
      try {
        do {
          body(t, random);
        } while (!deadline.is_over() && !testing::Test::HasFailure());
      } catch (const std::exception& error) {
        ADD_FAILURE() << "thread " << t << " of seed " << stress_seed() << ": " << error.what();
      }
    });
  }
  for (std::thread& each : threads) each.join();
}

}  // namespace artifex_devices::test
