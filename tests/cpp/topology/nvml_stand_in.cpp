// SPDX-License-Identifier: Apache-2.0
// A stand-in for NVIDIA's management library: a shared library with the entry points that read_nvml calls. What it
// answers stands in the environment variable NVML_STAND_IN, read at each nvmlInit_v2, a list of key=value with ";":
//
//   driver=550.54.15   cuda=12040   count=3 (instead of the number of GPUs)
//   gpu=<name>|<bytes>|<major>.<minor>|<domain>:<bus>:<device>|<device id><vendor id>|<link>,<link>...
//     the name "*" is one without an end; bytes "N/A" are not supported; numbers of PCI are hexadecimal; a link is
//     "off", or its peer's kind and address: gpu@0:36:0, switch@0:b0:0, npu@4:0:0, other@0:0:0
//   fail=<function>:<error>   that function returns this error
//   wait=<fifo>   nvmlInit_v2 returns once somebody has opened that named pipe for writing
//   log=<file>    the name of each function that is called is appended there
//
// Compiled with -DNVML_STAND_IN_BARE it has only what read_nvml cannot do without; with -DNVML_STAND_IN_EMPTY nothing.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "artifex_devices/topology/nvml_abi.h"

#define ENTRY extern "C" __attribute__((visibility("default")))

#ifndef NVML_STAND_IN_EMPTY

namespace nvml = artifex_devices::nvml;
using nvml::Return;

namespace {

struct Settings {
  std::string driver = "550.54.15", log, wait;
  int cuda = 12040;
  long long count = -1;
  std::vector<std::vector<std::string>> gpus;  // the fields of each
  std::vector<std::pair<std::string, int>> failures;
};

Settings g_settings;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t start = 0;
  for (size_t end; (end = text.find(separator, start)) != std::string::npos; start = end + 1) {
    parts.push_back(text.substr(start, end - start));
  }
  parts.push_back(text.substr(start));
  return parts;
}

void read_settings() {
  g_settings = Settings();
  const char* text = std::getenv("NVML_STAND_IN");
  for (const std::string& entry : split(text ? text : "", ';')) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;
    const std::string key = entry.substr(0, equals), value = entry.substr(equals + 1);
    if (key == "driver") g_settings.driver = value;
    if (key == "cuda") g_settings.cuda = std::atoi(value.c_str());
    if (key == "count") g_settings.count = std::atoll(value.c_str());
    if (key == "gpu") g_settings.gpus.push_back(split(value + "|||||", '|'));
    if (key == "log") g_settings.log = value;
    if (key == "wait") g_settings.wait = value;
    if (key == "fail") {
      const std::vector<std::string> parts = split(value + ":999", ':');
      g_settings.failures.emplace_back(parts[0], std::atoi(parts[1].c_str()));
    }
  }
}

// Writes the call down, and returns the error that was asked for.
Return called(const char* function) {
  if (!g_settings.log.empty()) {
    if (FILE* file = std::fopen(g_settings.log.c_str(), "a")) {
      std::fprintf(file, "%s\n", function);
      std::fclose(file);
    }
  }
  for (const auto& [name, error] : g_settings.failures) {
    if (name == function) return error;
  }
  return nvml::kSuccess;
}

[[maybe_unused]] const std::vector<std::string>& fields_of(nvml::Device device) {
  return g_settings.gpus[reinterpret_cast<size_t>(device) - 1];
}

[[maybe_unused]] Return put_text(const std::string& text, char* buffer, unsigned size) {
  if (text == "*") {
    std::memset(buffer, 'x', size);
    return nvml::kSuccess;
  }
  if (text.size() + 1 > size) return 7;
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  return nvml::kSuccess;
}

[[maybe_unused]] void put_address(const std::string& text, nvml::PciInfo* info) {
  std::sscanf(text.c_str(), "%x:%x:%x", &info->domain, &info->bus, &info->device);
}

}  // namespace

ENTRY Return nvmlInit_v2() {
  read_settings();
  if (!g_settings.wait.empty()) close(open(g_settings.wait.c_str(), O_RDONLY));
  return called(__func__);
}

ENTRY Return nvmlShutdown() { return called(__func__); }

ENTRY Return nvmlDeviceGetCount_v2(unsigned* count) {
  *count =
      g_settings.count >= 0 ? static_cast<unsigned>(g_settings.count) : static_cast<unsigned>(g_settings.gpus.size());
  return called(__func__);
}

ENTRY Return nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml::Device* device) {
  if (const Return error = called(__func__)) return error;
  if (index >= g_settings.gpus.size()) return nvml::kInvalidArgument;
  *device = reinterpret_cast<nvml::Device>(static_cast<size_t>(index) + 1);
  return nvml::kSuccess;
}

static_assert(std::is_same_v<decltype(nvmlInit_v2), nvml::Init>);
static_assert(std::is_same_v<decltype(nvmlShutdown), nvml::Shutdown>);
static_assert(std::is_same_v<decltype(nvmlDeviceGetCount_v2), nvml::GetCount>);
static_assert(std::is_same_v<decltype(nvmlDeviceGetHandleByIndex_v2), nvml::GetHandle>);

#ifndef NVML_STAND_IN_BARE

ENTRY Return nvmlSystemGetDriverVersion(char* text, unsigned size) {
  if (const Return error = called(__func__)) return error;
  return put_text(g_settings.driver, text, size);
}

ENTRY Return nvmlSystemGetCudaDriverVersion(int* version) {
  *version = g_settings.cuda;
  return called(__func__);
}

ENTRY Return nvmlDeviceGetName(nvml::Device device, char* text, unsigned size) {
  if (const Return error = called(__func__)) return error;
  return put_text(fields_of(device)[0], text, size);
}

ENTRY Return nvmlDeviceGetMemoryInfo(nvml::Device device, nvml::Memory* memory) {
  if (const Return error = called(__func__)) return error;
  if (fields_of(device)[1] == "N/A") return nvml::kNotSupported;
  memory->total = static_cast<unsigned long long>(std::atoll(fields_of(device)[1].c_str()));
  return nvml::kSuccess;
}

ENTRY Return nvmlDeviceGetPciInfo_v3(nvml::Device device, nvml::PciInfo* info) {
  if (const Return error = called(__func__)) return error;
  put_address(fields_of(device)[3], info);
  info->ids = static_cast<unsigned>(std::strtoul(fields_of(device)[4].c_str(), nullptr, 16));
  return nvml::kSuccess;
}

ENTRY Return nvmlDeviceGetCudaComputeCapability(nvml::Device device, int* major, int* minor) {
  if (const Return error = called(__func__)) return error;
  std::sscanf(fields_of(device)[2].c_str(), "%d.%d", major, minor);
  return nvml::kSuccess;
}

namespace {

// "" where the GPU has no such link.
std::string link_of(nvml::Device device, unsigned link) {
  const std::vector<std::string> links = split(fields_of(device)[5], ',');
  return link < links.size() ? links[link] : "";
}

}  // namespace

ENTRY Return nvmlDeviceGetNvLinkState(nvml::Device device, unsigned link, int* state) {
  if (const Return error = called(__func__)) return error;
  if (fields_of(device)[5].empty()) return nvml::kNotSupported;
  const std::string found = link_of(device, link);
  if (found.empty()) return nvml::kInvalidArgument;
  *state = found == "off" ? nvml::kDisabled : nvml::kEnabled;
  return nvml::kSuccess;
}

ENTRY Return nvmlDeviceGetNvLinkRemoteDeviceType(nvml::Device device, unsigned link, int* kind) {
  if (const Return error = called(__func__)) return error;
  const std::string name = split(link_of(device, link), '@')[0];
  *kind = name == "gpu" ? nvml::kPeerGpu : name == "npu" ? nvml::kPeerNpu : name == "switch" ? nvml::kPeerSwitch : 0xff;
  return nvml::kSuccess;
}

ENTRY Return nvmlDeviceGetNvLinkRemotePciInfo_v2(nvml::Device device, unsigned link, nvml::PciInfo* info) {
  if (const Return error = called(__func__)) return error;
  put_address(split(link_of(device, link) + "@", '@')[1], info);
  return nvml::kSuccess;
}

static_assert(std::is_same_v<decltype(nvmlSystemGetDriverVersion), nvml::GetText>);
static_assert(std::is_same_v<decltype(nvmlSystemGetCudaDriverVersion), nvml::GetCudaVersion>);
static_assert(std::is_same_v<decltype(nvmlDeviceGetName), nvml::GetName>);
static_assert(std::is_same_v<decltype(nvmlDeviceGetMemoryInfo), nvml::GetMemory>);
static_assert(std::is_same_v<decltype(nvmlDeviceGetPciInfo_v3), nvml::GetPci>);
static_assert(std::is_same_v<decltype(nvmlDeviceGetCudaComputeCapability), nvml::GetCapability>);
static_assert(std::is_same_v<decltype(nvmlDeviceGetNvLinkState), nvml::GetLinkState>);
static_assert(std::is_same_v<decltype(nvmlDeviceGetNvLinkRemoteDeviceType), nvml::GetLinkPeerKind>);
static_assert(std::is_same_v<decltype(nvmlDeviceGetNvLinkRemotePciInfo_v2), nvml::GetLinkPci>);

#endif  // NVML_STAND_IN_BARE

#endif  // NVML_STAND_IN_EMPTY

ENTRY int nvml_stand_in() { return 1; }  // so that no variant is empty
