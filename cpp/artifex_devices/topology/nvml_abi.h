// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of NVML's C interface that read_nvml calls, declared here from its public description: "NVML API Reference
// Guide", docs.nvidia.com/deploy/nvml-api (vR590): Device Structs, Device Enums, Initialization and Cleanup, System
// Queries, Device Queries, NvLink Methods. The tests' stand-in library is compiled against the same declarations.
namespace artifex_devices::nvml {

using Return = int;  // an enumeration in NVML
inline constexpr Return kSuccess = 0, kInvalidArgument = 2, kNotSupported = 3;

using Device = void*;

inline constexpr unsigned kNameBytes = 96, kVersionBytes = 80;
inline constexpr unsigned kMostLinks = 18;  // NVML_NVLINK_MAX_LINKS

struct PciInfo {  // nvmlPciInfo_t, version 3
  char bus_id_legacy[16];
  unsigned domain, bus, device;
  unsigned ids;  // device id above, vendor id below
  unsigned subsystem_ids;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

struct Memory {  // nvmlMemory_t; bytes
  unsigned long long total, free, used;
};

// nvmlEnableState_t and nvmlIntNvLinkDeviceType_t
inline constexpr int kDisabled = 0, kEnabled = 1;
inline constexpr int kPeerGpu = 0, kPeerNpu = 1, kPeerSwitch = 2;

using Init = Return();                                             // nvmlInit_v2
using Shutdown = Return();                                         // nvmlShutdown
using GetText = Return(char* text, unsigned size);                 // nvmlSystemGetDriverVersion
using GetCudaVersion = Return(int* version);                       // nvmlSystemGetCudaDriverVersion: 12040 is 12.4
using GetCount = Return(unsigned* count);                          // nvmlDeviceGetCount_v2
using GetHandle = Return(unsigned index, Device* device);          // nvmlDeviceGetHandleByIndex_v2
using GetName = Return(Device, char* text, unsigned size);         // nvmlDeviceGetName
using GetMemory = Return(Device, Memory*);                         // nvmlDeviceGetMemoryInfo
using GetPci = Return(Device, PciInfo*);                           // nvmlDeviceGetPciInfo_v3
using GetCapability = Return(Device, int* major, int* minor);      // nvmlDeviceGetCudaComputeCapability
using GetLinkState = Return(Device, unsigned link, int* state);    // nvmlDeviceGetNvLinkState
using GetLinkPci = Return(Device, unsigned link, PciInfo*);        // nvmlDeviceGetNvLinkRemotePciInfo_v2
using GetLinkPeerKind = Return(Device, unsigned link, int* kind);  // nvmlDeviceGetNvLinkRemoteDeviceType

}  // namespace artifex_devices::nvml
