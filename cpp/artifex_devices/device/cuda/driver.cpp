// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cuda/driver.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <memory>

#include "artifex_devices/base/fork.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices::cuda {
namespace {

struct Loaded {
  Driver functions;
  Generation made_in;
};

constinit std::atomic<const Loaded*> g_loaded{nullptr};  // never freed

/// Null and a problem where the library lacks a function.
std::unique_ptr<Loaded> load(const std::string& library, DriverProblem* problem) {
  // Never closed: the library has state that does not survive closing, and others may use it too.
  void* handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    *problem = explain_missing_library(library, reason ? reason : "", read_driver_surroundings());
    return nullptr;
  }
  auto loaded = std::make_unique<Loaded>();
  Driver& functions = loaded->functions;
  std::string missing;
#define ARTIFEX_CUDA_FIND(member, name, parameters)                                      \
  functions.member = reinterpret_cast<decltype(functions.member)>(dlsym(handle, #name)); \
  if (functions.member == nullptr) missing += missing.empty() ? #name : ", " #name;
  ARTIFEX_CUDA_FUNCTIONS(ARTIFEX_CUDA_FIND)
#undef ARTIFEX_CUDA_FIND
  functions.library = library;
  if (missing.empty()) return loaded;
  int version = 0;  // this function may be called before cuInit
  if (functions.driver_version == nullptr || functions.driver_version(&version) != kSuccess) version = 0;
  *problem = explain_old_driver(library, missing, version);
  return nullptr;
}

}  // namespace

std::string Driver::text_of(Result error) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (error_name(error, &name) != kSuccess || name == nullptr) return fmt::format("CUDA error {}", error);
  if (error_string(error, &text) != kSuccess || text == nullptr) text = "no description";
  return fmt::format("{} ({}): {}", name, error, text);
}

void Driver::check(Result result, std::string_view operation, std::string_view function) const {
  if (result == kSuccess) return;
  const char* fix = result == kIllegalAddress || result == kUnknown
                        ? "the CUDA context of this process is lost; restart the process"
                        : "see the messages of the kernel: sudo dmesg | grep -i nvrm";
  throw_error<Unavailable>("{}: {} failed: {}; expected CUDA_SUCCESS; {}", operation, function, text_of(result), fix);
}

const Driver* find_driver(DriverProblem* problem) {
  if (const Loaded* loaded = g_loaded.load(std::memory_order_acquire)) {
    if (!loaded->made_in.is_of_parent()) return &loaded->functions;
    *problem = {"the parent of this forked process has used CUDA", "start the process by multiprocessing's \"spawn\""};
    return nullptr;
  }
  const char* path = std::getenv(kDriverVariable);
  if (path != nullptr && *path != '/') {
    *problem = {
        fmt::format("the environment variable {} is {:?}, which is not an absolute path", kDriverVariable, path),
        fmt::format("correct {} or unset it", kDriverVariable)};
    return nullptr;
  }
  std::unique_ptr<Loaded> loaded = load(path != nullptr ? path : kDriverSoname, problem);
  if (!loaded) return nullptr;
  Driver& functions = loaded->functions;
  if (const Result error = functions.init(0); error != kSuccess) {
    *problem =
        explain_error(fmt::format("cuInit failed: {}", functions.text_of(error)), error, read_driver_surroundings());
    return nullptr;
  }
  int count = 0;
  Result error = functions.driver_version(&functions.version);
  if (error == kSuccess) error = functions.device_count(&count);
  if (error == kSuccess && count == 0) error = kNoDevice;
  if (error != kSuccess) {
    *problem =
        explain_error(fmt::format("no GPU is usable: {}", functions.text_of(error)), error, read_driver_surroundings());
    return nullptr;
  }
  const Loaded* other = nullptr;  // of another thread
  if (g_loaded.compare_exchange_strong(other, loaded.get(), std::memory_order_acq_rel)) {
    other = loaded.release();
  }
  return &other->functions;
}

const Driver& driver(std::string_view operation) {
  if (const Driver* functions = driver_for_release()) return *functions;
  throw_error<Unavailable>(
      "{}: the memory belongs to the parent of this forked process, which has used CUDA; expected the process that "
      "placed it; start processes by multiprocessing's \"spawn\"",
      operation);
}

const Driver* driver_for_release() noexcept {
  const Loaded* loaded = g_loaded.load(std::memory_order_acquire);
  return loaded != nullptr && !loaded->made_in.is_of_parent() ? &loaded->functions : nullptr;
}

}  // namespace artifex_devices::cuda
