// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cuda/driver_problem.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices::cuda {
namespace {

constexpr int kOldestVersion = 11020;  // the first with cuMemAllocAsync

bool exists(const std::string& path) noexcept { return access(path.c_str(), F_OK) == 0; }

std::string version_text(int version) { return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10); }

std::string container_fix(const DriverSurroundings& surroundings) {
  if (surroundings.is_kubernetes) return "request a GPU for the container: resources: {limits: {nvidia.com/gpu: 1}}";
  return "in a container start it with access to the GPUs: docker run --gpus all (NVIDIA Container Toolkit)";
}

std::string permission_fix(const std::string& device) {
  return fmt::format(
      "this user may not open {0}; add it to the group of that file and log in again: sudo usermod -aG \"$(stat -c %G "
      "{0})\" \"$USER\"",
      device);
}

std::string fix_for(Result error, const DriverSurroundings& surroundings) {
  switch (error) {
    case kNoDevice:
      if (!surroundings.denied_device.empty()) return permission_fix(surroundings.denied_device);
      if (surroundings.visible_gpus) {
        return fmt::format("unset CUDA_VISIBLE_DEVICES, which is {:?}, or name an existing GPU in it",
                           *surroundings.visible_gpus);
      }
      return fmt::format("check that nvidia-smi lists a GPU; {}", container_fix(surroundings));
    case kOperatingSystem:
    case kNotPermitted:
      if (!surroundings.denied_device.empty()) return permission_fix(surroundings.denied_device);
      return "check that this user may read and write /dev/nvidia*, such as by: sudo nvidia-modprobe -u -c=0";
    case kStubLibrary:
      return "a stub of the CUDA toolkit was loaded; remove its folder (.../stubs) from LD_LIBRARY_PATH";
    case kSystemNotReady:
      return "start NVIDIA's fabric manager: sudo systemctl start nvidia-fabricmanager";
    case kSystemDriverMismatch:
      return "the library and the kernel module are of different versions; restart the machine";
    case kCompatNotSupported:
      return "remove the folder of the CUDA compatibility libraries from LD_LIBRARY_PATH, or update the driver";
    default:
      return "check that nvidia-smi works, and see the messages of the kernel: sudo dmesg | grep -i nvrm";
  }
}

}  // namespace

DriverSurroundings read_driver_surroundings(const std::string& root) {
  DriverSurroundings found;
  found.has_kernel_module = exists(root + "/proc/driver/nvidia/version");
  found.is_kubernetes = std::getenv("KUBERNETES_SERVICE_HOST") != nullptr;
  found.is_container = found.is_kubernetes || exists(root + "/.dockerenv") || exists(root + "/run/.containerenv");
  for (const char* name : {"/dev/nvidiactl", "/dev/nvidia0"}) {
    const std::string device = root + name;
    if (!exists(device) || faccessat(AT_FDCWD, device.c_str(), R_OK | W_OK, AT_EACCESS) == 0) continue;
    found.denied_device = device;
    break;
  }
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) found.visible_gpus = visible;
  return found;
}

DriverProblem explain_missing_library(const std::string& library, const std::string& reason,
                                      const DriverSurroundings& surroundings) {
  const bool is_hidden = surroundings.has_kernel_module || surroundings.is_container;
  std::string fix = is_hidden ? container_fix(surroundings) : "on a machine with an NVIDIA GPU install NVIDIA's driver";
  if (surroundings.has_kernel_module && !surroundings.is_container) {
    fix = fmt::format("install the driver's user-space libraries (Debian: apt-get install libcuda1); {}", fix);
  }
  return {fmt::format("{} cannot be loaded ({}){}", library, reason.empty() ? "no reason given" : reason,
                      surroundings.has_kernel_module ? "; the kernel module of the driver is loaded" : ""),
          std::move(fix)};
}

DriverProblem explain_old_driver(const std::string& library, const std::string& missing, int version) {
  const std::string from = version > 0 ? fmt::format(" (of {})", version_text(version)) : std::string();
  return {fmt::format("{}{} has no function {}", library, from, missing),
          fmt::format("update NVIDIA's driver to one for {} or newer", version_text(kOldestVersion))};
}

DriverProblem explain_error(std::string what, Result error, const DriverSurroundings& surroundings) {
  return {std::move(what), fix_for(error, surroundings)};
}

}  // namespace artifex_devices::cuda
