// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

// A stand-in for the CUDA driver: a shared library named libcuda.so.1 with the functions that the library calls,
// without kernels. Memory of a "GPU" is memory of this process; its reported address is reserved without access, so
// that a read by the host is a segmentation fault. Copies are queued, and run only when somebody waits for them, in an
// order that is random except for what streams and events order: what is read without a wait is not there.
//
// The environment variable CUDA_STAND_IN is read by cuInit, and cuda_stand_in_configure(text) replaces it, a list of
// key=value with ";":
//
//   gpus=4   memory=1073741824 (bytes of each)   name=<text>   version=12040
//   peers=0   no GPU can access the memory of another    pools=0   no stream-ordered allocation    seed=7
//   fail=<function>:<error>[:<n>]   that function returns this error, from its n-th call on (default: the first)
//   slow=<function>:<milliseconds>   each call of that function sleeps first, without the lock of the library
//   problems=record   misuse is recorded for cuda_stand_in_problems(); without it, it is printed and ends the process
namespace cuda_stand_in {

struct Failure {
  std::string function;
  int error = 0;
  int64_t first = 1;  // number of the call
  int64_t calls = 0;
};

struct Settings {
  int gpus = 2;
  int64_t memory = int64_t{1} << 30;
  std::string name = "Stand-in GPU";
  int version = 12040;
  bool peers = true;
  bool pools = true;
  uint64_t seed = 7;
  bool records_problems = false;
  std::vector<Failure> failures;
  std::string slow_function;
  int slow_ms = 0;
};

/// The settings, which the caller reads under the lock of the library.
Settings& settings();
void read_settings(const char* text);

/// The error to return from this call of a function; 0 for none.
int injected_error(const char* function);

/// Sleeps if the function is the slow one. Called without the lock of the library.
void sleep_if_slow(const char* function);

/// Reports misuse of the driver: ends the process, or records it.
void problem(const std::string& text);
/// What was recorded since the last call.
std::string taken_problems();

}  // namespace cuda_stand_in
