// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/topology/nvml_abi.h"

namespace artifex_devices {
namespace {

constexpr unsigned kMostGpus = 256;

// nvmlReturn_t. The library's own texts are untrusted pointers.
std::string reason_of(nvml::Return code) {
  static constexpr std::array<std::string_view, 29> kReasons = {
      "success",
      "not initialised",
      "invalid argument",
      "not supported",
      "no permission",
      "already initialised",
      "not found",
      "the buffer is too small",
      "insufficient external power",
      "the driver is not loaded",
      "timed out",
      "an interrupt cannot be handled",
      "a library was not found",
      "the function is not in this version of the library",
      "the info ROM is corrupted",
      "the GPU is lost: it has fallen off the bus",
      "the GPU must be reset",
      "the operating system or a cgroup blocks the GPU",
      "the library is of another version than the driver",
      "the GPU is in use",
      "out of memory",
      "no data",
      "not supported with ECC",
      "out of resources",
      "the frequency is not supported",
      "the version of an argument is not supported",
      "deprecated",
      "the driver is not ready",
      "no GPU found",
  };
  if (code == 999) return "unknown error (NVML error 999)";
  const bool is_known = code >= 0 && code < static_cast<int>(kReasons.size());
  return fmt::format("{} (NVML error {})", is_known ? kReasons[static_cast<size_t>(code)] : "an error unknown here",
                     code);
}

// Reads up to the zero byte or the end of the buffer.
std::string text_of(const char* buffer, size_t size) {
  std::string text(buffer, strnlen(buffer, size));
  std::ranges::replace_if(text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

class Library {
 public:
  Library(void* handle, std::vector<std::string>& problems) : handle_(handle), problems_(&problems) {}

  /// Returns the function, or null and adds a problem.
  template <class F>
  F* find(const char* name) const {
    void* symbol = dlsym(handle_, name);
    if (!symbol) problems_->push_back(fmt::format("{}: the library has no such function", name));
    return reinterpret_cast<F*>(symbol);
  }

 private:
  void* handle_;
  std::vector<std::string>* problems_;
};

// Functions called for each GPU. A function that the library lacks is null, and reported once.
struct Queries {
  nvml::GetHandle* handle;
  nvml::GetName* name;
  nvml::GetMemory* memory;
  nvml::GetPci* pci;
  nvml::GetCapability* capability;
  nvml::GetLinkState* link_state;
  nvml::GetLinkPci* link_pci;
  nvml::GetLinkPeerKind* link_peer_kind;
};

// Returns whether the call succeeded; otherwise adds the reason to `problems`.
bool answered(nvml::Return code, const char* function, std::vector<std::string>& problems) {
  if (code == nvml::kSuccess) return true;
  problems.push_back(fmt::format("{}: {}", function, reason_of(code)));
  return false;
}

std::string address_of(const nvml::PciInfo& info) {
  if (info.bus > 0xff || info.device > 0x1f) return "";
  return fmt::format("{:04x}:{:02x}:{:02x}.0", info.domain, info.bus, info.device);
}

std::string peer_kind(int kind) {
  switch (kind) {
    case nvml::kPeerGpu:
      return "gpu";
    case nvml::kPeerNpu:
      return "npu";
    case nvml::kPeerSwitch:
      return "switch";
    default:
      return "";
  }
}

void read_links(const Queries& queries, nvml::Device device, NvmlGpu& gpu) {
  if (!queries.link_state) return;
  // Like answered(); reports only the first of several links that fail in the same function.
  const auto link_answered = [&gpu](nvml::Return code, std::string_view function, unsigned link) {
    if (code == nvml::kSuccess) return true;
    const auto is_reported = [&](const std::string& problem) { return problem.starts_with(function); };
    if (std::ranges::none_of(gpu.problems, is_reported)) {
      gpu.problems.push_back(fmt::format("{} (link {}): {}", function, link, reason_of(code)));
    }
    return false;
  };
  for (unsigned link = 0; link < nvml::kMostLinks; ++link) {
    int state = nvml::kDisabled;
    const nvml::Return code = queries.link_state(device, link, &state);
    if (code == nvml::kInvalidArgument && link > 0) return;        // no more links
    if (code == nvml::kNotSupported && gpu.links.empty()) return;  // no links
    if (code == nvml::kNotSupported || !link_answered(code, "nvmlDeviceGetNvLinkState", link)) continue;
    NvLink found;
    found.link = static_cast<int>(link);
    found.is_active = state == nvml::kEnabled;
    if (found.is_active) {
      int kind = -1;
      nvml::PciInfo peer{};
      if (queries.link_peer_kind &&
          link_answered(queries.link_peer_kind(device, link, &kind), "nvmlDeviceGetNvLinkRemoteDeviceType", link)) {
        found.peer_kind = peer_kind(kind);
      }
      if (queries.link_pci &&
          link_answered(queries.link_pci(device, link, &peer), "nvmlDeviceGetNvLinkRemotePciInfo_v2", link)) {
        found.peer_pci_address = address_of(peer);
      }
    }
    gpu.links.push_back(std::move(found));
  }
}

NvmlGpu read_gpu(const Queries& queries, unsigned index) {
  NvmlGpu gpu;
  gpu.index = static_cast<int>(index);
  nvml::Device device = nullptr;
  if (!answered(queries.handle(index, &device), "nvmlDeviceGetHandleByIndex_v2", gpu.problems)) return gpu;

  std::array<char, 2 * nvml::kNameBytes> text{};
  if (queries.name && answered(queries.name(device, text.data(), nvml::kNameBytes), "nvmlDeviceGetName", gpu.problems))
    gpu.name = text_of(text.data(), nvml::kNameBytes);

  nvml::Memory memory{};
  if (queries.memory && answered(queries.memory(device, &memory), "nvmlDeviceGetMemoryInfo", gpu.problems)) {
    if (memory.total > 0 && memory.total <= uint64_t{1} << 50) {
      gpu.memory_bytes = static_cast<int64_t>(memory.total);
    } else {
      gpu.problems.push_back(fmt::format("nvmlDeviceGetMemoryInfo: {} bytes is not a memory size", memory.total));
    }
  }

  nvml::PciInfo pci{};
  if (queries.pci && answered(queries.pci(device, &pci), "nvmlDeviceGetPciInfo_v3", gpu.problems)) {
    gpu.pci_address = address_of(pci);
    gpu.vendor_id = static_cast<uint16_t>(pci.ids & 0xffff);
    gpu.device_id = static_cast<uint16_t>(pci.ids >> 16);
    if (gpu.pci_address.empty()) {
      gpu.problems.push_back(
          fmt::format("nvmlDeviceGetPciInfo_v3: bus {} and device {} are not a PCI address", pci.bus, pci.device));
    }
  }

  ComputeCapability capability;
  if (queries.capability && answered(queries.capability(device, &capability.major, &capability.minor),
                                     "nvmlDeviceGetCudaComputeCapability", gpu.problems)) {
    if (capability.major > 0 && capability.major < 100 && capability.minor >= 0 && capability.minor < 10) {
      gpu.compute_capability = capability;
    } else {
      gpu.problems.push_back(fmt::format("nvmlDeviceGetCudaComputeCapability: {}.{} is not a compute capability",
                                         capability.major, capability.minor));
    }
  }
  read_links(queries, device, gpu);
  return gpu;
}

void read_driver(const Library& library, NvmlReport& report) {
  auto* driver = library.find<nvml::GetText>("nvmlSystemGetDriverVersion");
  std::array<char, 2 * nvml::kVersionBytes> text{};
  if (driver && answered(driver(text.data(), nvml::kVersionBytes), "nvmlSystemGetDriverVersion", report.problems)) {
    report.driver_version = text_of(text.data(), nvml::kVersionBytes);
  }
  auto* cuda = library.find<nvml::GetCudaVersion>("nvmlSystemGetCudaDriverVersion");
  int version = 0;
  if (!cuda || !answered(cuda(&version), "nvmlSystemGetCudaDriverVersion", report.problems)) return;
  if (version >= 1000 && version < 1'000'000) {
    report.cuda_version = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  } else {
    report.problems.push_back(fmt::format("nvmlSystemGetCudaDriverVersion: {} is not a version", version));
  }
}

void read_gpus(const Library& library, nvml::GetCount* count_gpus, nvml::GetHandle* handle, NvmlReport& report) {
  unsigned count = 0;
  if (!answered(count_gpus(&count), "nvmlDeviceGetCount_v2", report.problems)) return;
  report.is_ready = true;
  if (count == 0) return;
  if (count > kMostGpus) {
    report.problems.push_back(
        fmt::format("nvmlDeviceGetCount_v2: {} GPUs; only the first {} were queried", count, kMostGpus));
    count = kMostGpus;
  }
  const Queries queries = {
      .handle = handle,
      .name = library.find<nvml::GetName>("nvmlDeviceGetName"),
      .memory = library.find<nvml::GetMemory>("nvmlDeviceGetMemoryInfo"),
      .pci = library.find<nvml::GetPci>("nvmlDeviceGetPciInfo_v3"),
      .capability = library.find<nvml::GetCapability>("nvmlDeviceGetCudaComputeCapability"),
      .link_state = library.find<nvml::GetLinkState>("nvmlDeviceGetNvLinkState"),
      .link_pci = library.find<nvml::GetLinkPci>("nvmlDeviceGetNvLinkRemotePciInfo_v2"),
      .link_peer_kind = library.find<nvml::GetLinkPeerKind>("nvmlDeviceGetNvLinkRemoteDeviceType"),
  };
  for (unsigned index = 0; index < count; ++index) report.gpus.push_back(read_gpu(queries, index));
}

}  // namespace

NvmlReport read_nvml(const std::string& library) {
  if ((!library.empty() && !library.starts_with('/')) || library.find('\0') != std::string::npos) {
    throw_error(
        "read_nvml: library {:?} is not an absolute path; expected one such as "
        "\"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1\"; leave it out for the driver's own",
        library);
  }
  NvmlReport report;
  report.library = library.empty() ? kNvmlSoname : library;
  // Never closed: the library has state that does not survive closing, and others may use it too.
  void* handle = dlopen(report.library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (!handle) {
    const char* why = dlerror();
    report.problems.push_back(
        fmt::format("cannot be loaded: {}", why ? text_of(why, 500) : std::string("no reason given")));
    return report;
  }
  const Library functions(handle, report.problems);
  auto* init = functions.find<nvml::Init>("nvmlInit_v2");
  auto* shut_down = functions.find<nvml::Shutdown>("nvmlShutdown");
  auto* count = functions.find<nvml::GetCount>("nvmlDeviceGetCount_v2");
  auto* by_index = functions.find<nvml::GetHandle>("nvmlDeviceGetHandleByIndex_v2");
  if (!init || !shut_down || !count || !by_index) return report;
  if (!answered(init(), "nvmlInit_v2", report.problems)) return report;
  try {
    read_driver(functions, report);
    read_gpus(functions, count, by_index, report);
  } catch (...) {
    shut_down();
    throw;
  }
  answered(shut_down(), "nvmlShutdown", report.problems);
  return report;
}

}  // namespace artifex_devices
