# SPDX-License-Identifier: Apache-2.0
"""Types of bound members that pybind11 does not know: the C++ code returns py::object, py::tuple, py::list or py::dict.

tools/make_stubs.py writes them into the stub and refuses an entry without a member. The test of types compares most of
them with values: tests/python/package/expected_types.py.
"""

NDARRAY = "numpy.typing.NDArray[typing.Any]"
SHAPE = "tuple[int, ...]"
INDEX = "tuple[slice, ...]"
NAMES = "tuple[collections.abc.Hashable, ...]"
AXIS_SIZES = "collections.OrderedDict[typing.Any, int]"  # as JAX; a name may be any hashable object
DEVICES = "list[Device]"
SELF = "typing_extensions.Self"

# The result of a function, the value of a property, or the type of a parameter ("Class.method(parameter)").
TYPES = {
    "AbstractMesh.axis_names": NAMES,
    "AbstractMesh.axis_sizes": SHAPE,
    "AbstractMesh.axis_types": "tuple[AxisType, ...]",
    "AbstractMesh.shape": AXIS_SIZES,
    "AbstractMesh.shape_tuple": "tuple[tuple[collections.abc.Hashable, int], ...]",
    "Array.__array__": NDARRAY,
    "Array.__complex__": "complex",
    "Array.__dlpack_device__": "tuple[int, int]",
    "Array.__index__": "int",
    "Array.__int__": "int",
    "Array.__str__": "str",
    "Array.addressable_shards": "list[Shard]",
    "Array.at": "artifex_devices._array_ops.index.updating.At",
    "Array.block_until_ready": "Array",
    "Array.copy_to_host_async": "artifex_devices._placement.async_copy.HostCopy",
    "Array.device": "Device | Sharding",
    "Array.devices": "set[Device]",
    "Array.dtype": "numpy.dtype[typing.Any]",
    "Array.format": "artifex_devices.layout.Format",
    "Array.global_shards": "list[Shard]",
    "Array.shape": SHAPE,
    "Client.__enter__": SELF,
    "Client.buffer_from_pyval": "Array",
    "Client.cluster": "Cluster | None",
    "Client.devices": DEVICES,
    "Client.get_default_layout": "PjRtLayout",
    "Client.live_arrays": "list[Array]",
    "Client.live_buffers": "list[Array]",
    "Client.local_devices": DEVICES,
    "Cluster.devices": DEVICES,
    "Cluster.dims": SHAPE,
    "Cluster.parts": "dict[str, typing.Any]",
    "Cluster.wraps": "tuple[bool, ...]",
    "Device.__call__": SELF,
    "Device.addressable_memories": "list[Memory]",
    "Device.live_buffers": "list[Array]",
    "Device.memory_stats": "dict[str, int]",
    "Device.numa_nodes": "list[int]",
    "DeviceAssignment.device_ordinals": NDARRAY,
    "DeviceList.__iter__": "collections.abc.Iterator[Device]",
    "DeviceList.addressable_device_list": "DeviceList",
    "DeviceList.memory_kinds": "tuple[str, ...]",
    "DeviceList.process_indices": "set[int]",
    "DeviceTopology.device_descriptions": DEVICES,
    "Machine.counts": "dict[str, int]",
    "Machine.cpu_domains": "list[dict[str, typing.Any]]",
    "Machine.missing_facts": "list[dict[str, typing.Any]]",
    "Machine.numa_nodes": "list[dict[str, typing.Any]]",
    "Machine.objects": "list[dict[str, typing.Any]]",
    "Memory.addressable_by_devices": DEVICES,
    "Memory.stats": "dict[str, int]",
    "Mesh.__enter__": SELF,
    "Mesh.axis_names": NAMES,
    "Mesh.axis_sizes": SHAPE,
    "Mesh.axis_types": "tuple[AxisType, ...]",
    "Mesh.device_ids": NDARRAY,
    "Mesh.devices": NDARRAY,
    "Mesh.local_devices": DEVICES,
    "Mesh.local_mesh": "Mesh",
    "Mesh.shape": AXIS_SIZES,
    "Mesh.shape_tuple": "tuple[tuple[collections.abc.Hashable, int], ...]",
    "PartitionSpec.__add__": "PartitionSpec",
    "PartitionSpec.__radd__": "PartitionSpec",
    "PartitionSpec.count": "int",
    "PartitionSpec.index": "int",
    "Shard.data": "Array | typing.Any",  # None for a shard of another process
    "Shard.index": INDEX,
    "Sharding.addressable_devices": "set[Device]",
    "Sharding.addressable_devices_indices_map": f"dict[Device, {INDEX}]",
    "Sharding.device_index": INDEX,
    "Sharding.device_set": "set[Device]",
    "Sharding.devices_indices_map": f"dict[Device, {INDEX}]",
    "Sharding.shard_shape": SHAPE,
    "Sharding.with_memory_kind": SELF,
    "SingleDeviceSharding.__init__(device)": "Device",
    "SharedMeeting.meet": "list[bytes] | None",
    "SharedMeeting.meet(flight)": "FlightGroup | None",
    "WorldScope.__enter__": "Client",
    "get_topology_for_devices(devices)": "collections.abc.Sequence[Device]",
    "live_arrays": "list[Array]",
}
