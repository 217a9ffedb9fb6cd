# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_stubs.py --generate from the built extension.
"""
The compiled core of artifex_devices. Use the names that the package re-exports.
"""

import collections.abc
import enum
import types
import typing

import artifex_devices._array_ops.index.updating
import artifex_devices._base.leaf_types
import artifex_devices._placement.async_copy
import artifex_devices._runtime.client_members
import artifex_devices.layout
import artifex_devices.xla_client
import numpy.typing
import typing_extensions

from . import data, hlo, internal

__all__: list[str] = [
    "AbstractMesh",
    "Array",
    "AxisType",
    "Client",
    "Cluster",
    "Device",
    "DeviceAssignment",
    "DeviceList",
    "DeviceTopology",
    "DuplicateSpecError",
    "IndivisibleError",
    "JaxRuntimeError",
    "Layout",
    "Machine",
    "Memory",
    "Mesh",
    "NamedSharding",
    "PartitionSpec",
    "PjRtLayout",
    "Rendezvous",
    "ResourceExhaustedError",
    "Shard",
    "Sharding",
    "ShardingTypeError",
    "SingleDeviceSharding",
    "TransferGuardError",
    "accelerator_catalogue",
    "catalogue_sources",
    "data",
    "detect_hardware_type",
    "find_accelerator",
    "get_topology_for_devices",
    "hlo",
    "internal",
    "live_arrays",
    "machine_svg",
    "mesh_svg",
    "mesh_text",
    "placed_mesh_svg",
    "sharding_svg",
    "sharding_text",
]

class Machine:
    """
    A machine as hwloc describes it.

    The live machine, a machine read from an hwloc XML file, or a synthetic one. Threads are bound on the live machine only.

    Example:
        >>> from artifex_devices import Machine
        >>> machine = Machine.from_synthetic("pack:2 numa:1 core:4 pu:2")
        >>> [domain["cpus"] for domain in machine.cpu_domains]
        ['0-7', '8-15']
    """

    @staticmethod
    def from_synthetic(description: str) -> Machine:
        """
        Creates a machine from hwloc's synthetic description, such as "pack:2 numa:2 core:4 pu:2".

        Raises:
            ValueError: The text is malformed or describes more than 4,096 processing units.
        """

    @staticmethod
    def from_xml(path: str) -> Machine:
        """
        Reads an hwloc XML file (format 1 or 2).

        Raises:
            FileNotFoundError: The file does not exist.
            ValueError: The file is not hwloc XML, is larger than 64 MiB, or declares entities.
        """

    @staticmethod
    def live() -> Machine:
        """
        Returns the machine of this process, without the parts that affinity and cgroups forbid.
        """

    def __repr__(self) -> str: ...
    def to_xml(self) -> str:
        """
        Returns the machine as hwloc XML text, format 2.
        """

    @property
    def counts(self) -> dict[str, int]:
        """
        Number of objects by type (dict), as hwloc counts them.
        """

    @property
    def cpu_domains(self) -> list[artifex_devices._base.leaf_types.Record]:
        """
        CPU domains (list of dicts), the default CPU devices: each minimal set of CPUs that has a NUMA node.
        """

    @property
    def is_live(self) -> bool:
        """
        Whether this is the machine that the process runs on.
        """

    @property
    def missing_facts(self) -> list[artifex_devices._base.leaf_types.Record]:
        """
        Facts that the system hides from this process (list of dicts).

        Keys: fact, reason (which file, and why), assumed (the value used instead). For the live machine only, read again at each
        access.
        """

    @property
    def numa_nodes(self) -> list[artifex_devices._base.leaf_types.Record]:
        """
        NUMA nodes (list of dicts); memory in bytes.
        """

    @property
    def objects(self) -> list[artifex_devices._base.leaf_types.Record]:
        """
        Every object that hwloc reports (list of dicts), parents before their children.

        Keys: depth (0: the machine), type ("Package", "NUMANode", "L3Cache", "Core", "PU", "PCIDev", "OSDev", ...), logical,
        os_index, name, subtype, model, pci, cpus, bytes (memory of a node, size of a cache). Missing values are None.
        """

    @property
    def source(self) -> str:
        """
        Source of the description: "live", the path, or the synthetic description.
        """

    @property
    def usable_cpus(self) -> int:
        """
        Number of CPUs that the process may use, by affinity and cgroup quota.
        """

    @property
    def usable_memory_bytes(self) -> int:
        """
        Number of bytes of memory that the process may use, by cgroup and address-space limits.
        """

class Client:
    """
    Devices that belong together: a world, or the result of `xla_client.make_cpu_client`.

    One Array, Mesh or operation cannot mix devices of different clients. A client lives as long as anything on its devices.

    Example:
        >>> from artifex_devices import xla_client
        >>> with xla_client.make_cpu_client(num_devices=2) as client:
        ...     client.devices(), client.platform
        ([CpuDevice(id=0), CpuDevice(id=1)], 'cpu')
    """

    def __enter__(self) -> typing.Self: ...
    def __exit__(self, *args: object) -> None: ...
    def __repr__(self) -> str: ...
    def buffer_from_pyval(
        self,
        argument: numpy.typing.ArrayLike,
        device: Device | None = None,
        force_copy: bool = False,
        host_buffer_semantics: artifex_devices._runtime.client_members.HostBufferSemantics | None = None,
    ) -> Array:
        """
        Places one array or number on one device.

        The source has been read when it returns, except with HostBufferSemantics.ZERO_COPY.

        Args:
            argument: ndarray of any strides, number, or Array, but not a tree.
            device: One of this client's devices, or None for the first.
            force_copy: Whether to copy even where the semantics allow sharing memory.
            host_buffer_semantics: HostBufferSemantics that says how the library may use the memory of `argument`, or None for
                IMMUTABLE_ONLY_DURING_CALL.

        Returns:
            Array on that device, committed.

        Raises:
            TypeError: An argument has another type.
            ValueError: The device belongs to another client.
            ResourceExhaustedError: Memory is exhausted (a MemoryError and a RuntimeError).
            RuntimeError: The client was closed.

        Example:
            >>> import numpy as np
            >>> from artifex_devices import xla_client
            >>> client = xla_client.make_cpu_client(num_devices=2)
            >>> client.buffer_from_pyval(np.arange(3), device=client.devices()[1]).device
            CpuDevice(id=1)
        """

    def close(self) -> None:
        """
        Deletes the client's Arrays and refuses to place others. A second call does nothing.

        Memory is freed when its last view is gone. Arrays that other threads create at the same time may remain.

        Raises:
            RuntimeError: The client is an open world: the base client, or the client of an open `simulate` block.
        """

    def defragment(self) -> None:
        """
        Returns cached free memory of all clients to the operating system. Arrays do not move.
        """

    def device_count(self) -> int:
        """
        Returns the number of devices in all processes.
        """

    def device_from_local_hardware_id(self, local_hardware_id: int) -> Device:
        """
        Returns the device of this process with this local_hardware_id. Raises RuntimeError if there is none.
        """

    def devices(self) -> list[Device]:
        """
        Returns a new list of all devices, in order of id.
        """

    def get_default_layout(
        self, dtype: numpy.typing.DTypeLike, shard_shape: collections.abc.Sequence[int], device: Device
    ) -> PjRtLayout:
        """
        Returns the PjRtLayout in which shards are stored by default: row-major.

        Args:
            dtype: np.dtype, or an argument of np.dtype().
            shard_shape: Shape of the shard (sequence of int).
            device: One of this client's devices.

        Raises:
            TypeError: An argument has another type.
            ValueError: A size is negative, or the device belongs to another client.
        """

    def heap_profile(self) -> bytes:
        """
        Returns the memory of its Arrays as a pprof profile: bytes of google/pprof's protocol buffer, not compressed.

        It has one sample for each device and line of the program that created Arrays, with their number and their bytes in all
        memory kinds, replicas counted. Lines are known for Arrays created while `config.trace_allocations` was set.
        """

    def host_id(self) -> int:
        """
        Returns process_index(). This is its older name.
        """

    def live_arrays(self) -> list[Array]:
        """
        Returns the Arrays on its devices that are alive and not deleted, oldest first.

        Example:
            >>> import numpy as np
            >>> from artifex_devices import xla_client
            >>> with xla_client.make_cpu_client(num_devices=1) as client:
            ...     x = client.buffer_from_pyval(np.arange(3))
            ...     client.live_arrays()
            [Array([0, 1, 2], dtype=int64)]
        """

    def live_buffers(self) -> list[Array]:
        """
        Returns live_arrays(). This is its older name.
        """

    def local_device_count(self) -> int:
        """
        Returns the number of devices of this process.
        """

    def local_devices(self, process_index: int | None = None) -> list[Device]:
        """
        Returns a new list of the devices of one process, by default this process, in order of id.

        Raises:
            ValueError: The process does not exist.
        """

    def process_count(self) -> int:
        """
        Returns the number of processes that share the world.
        """

    def process_host(self, process_index: int) -> str:
        """
        Returns the host name of the machine that a process runs on; "" in a world of one process.

        Raises:
            ValueError: The process does not exist.
        """

    def process_index(self) -> int:
        """
        Returns the rank of this process.
        """

    @property
    def _is_emulated(self) -> bool:
        """
        Whether the devices are GPUs that the CPU emulates.
        """

    @property
    def _uid(self) -> int: ...
    @property
    def allocator_config(self) -> artifex_devices.xla_client.GpuAllocatorConfig | None:
        """
        GpuAllocatorConfig that it was created with, or None.
        """

    @property
    def cluster(self) -> Cluster | None:
        """
        Cluster that its devices belong to, or None for devices of a machine.
        """

    @property
    def is_closed(self) -> bool:
        """
        Whether close() was called.
        """

    @property
    def is_compile_only(self) -> bool:
        """
        Whether its devices have no memory (planning only).
        """

    @property
    def machine_source(self) -> str:
        """
        Source of the machine's description: "live", the path of an hwloc XML file, or a synthetic description.
        """

    @property
    def platform(self) -> str:
        """
        Name of the platform, such as "cpu".
        """

    @property
    def platform_version(self) -> str:
        """
        Versions of the library, its compiler and its dependencies, as text.
        """

class Device:
    """
    One device: on a CPU, a set of cores and the memory near them.

    Two Devices are equal when they are the same device of the same world. A Device is callable and returns itself:
    `array.device` and `array.device()` are both valid.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(2):
        ...     ad.devices()
        [CpuDevice(id=0), CpuDevice(id=1)]
    """

    def __call__(self) -> typing.Self:
        """
        Returns the device itself.
        """

    def __copy__(self) -> typing.Self: ...
    def __deepcopy__(self, memo: dict[int, typing.Any]) -> typing.Self: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    def __repr__(self) -> str: ...
    def __str__(self) -> str: ...
    def addressable_memories(self) -> list[Memory]:
        """
        Returns its memories of all kinds, the default one first.
        """

    def default_memory(self) -> Memory:
        """
        Returns the memory that arrays are placed in by default.
        """

    def get_stream_for_external_ready_events(self) -> int:
        """
        Returns the stream whose events report when data is ready; CPU devices and emulated GPUs have none.

        Raises:
            RuntimeError: Always.
        """

    def live_buffers(self) -> list[Array]:
        """
        Returns the data of Arrays on this device, oldest Array first.

        Returns:
            list of Array, each on this device alone: an Array of this device, or the shard of an Array on several devices. Deleting
            a shard deletes its Array.

        Example:
            >>> import numpy as np
            >>> from artifex_devices import xla_client
            >>> client = xla_client.make_cpu_client(num_devices=2)
            >>> buffer = client.buffer_from_pyval(np.arange(3), device=client.devices()[1])
            >>> [len(device.live_buffers()) for device in client.devices()]
            [0, 1]
        """

    def memory(self, kind: str) -> Memory:
        """
        Returns its memory of one kind.

        Args:
            kind: "device" or "default", "pinned_host" or "pinned", or "unpinned_host".

        Raises:
            RuntimeError: The kind is unknown, as in JAX.
        """

    def memory_stats(self) -> dict[str, int]:
        """
        Returns statistics of the device's memory in bytes, never None.

        `bytes_in_use`, `peak_bytes_in_use`, `bytes_limit`, `bytes_reserved`, `largest_alloc_size` and `num_allocs` count the memory
        of arrays of the kind `device` here, each replica in full; without a limit, `bytes_limit` is `memory_bytes`. `pool_*` are the
        physical bytes of the NUMA node, which its devices share.

        Returns:
            dict of str to int. Source: counted by the library.

        Raises:
            RuntimeError: The device belongs to another process.
        """

    def set_bytes_limit(self, limit: int | None) -> None:
        """
        Sets the number of bytes that arrays may use on this device; None removes the limit.

        Beyond it, placing raises ResourceExhaustedError (a MemoryError and a RuntimeError). Memory in use is not affected.

        Raises:
            TypeError: `limit` is not an int, or is a bool.
            ValueError: `limit` is negative or does not fit 64 bits.
            RuntimeError: The device belongs to another process.
        """

    @property
    def bytes_limit(self) -> int | None:
        """
        Number of bytes that arrays may use on it, as set by set_bytes_limit or simulate, or None for no limit.
        """

    @property
    def client(self) -> Client:
        """
        Client (world) that the device belongs to.
        """

    @property
    def coords(self) -> tuple[int, int, int]:
        """
        Coordinates (x, y, z) of its chip in the torus. AttributeError unless the device belongs to a cluster with a torus.
        """

    @property
    def core_on_chip(self) -> int:
        """
        Number of the device on its chip. AttributeError unless the device belongs to a cluster with a torus.
        """

    @property
    def cpuset(self) -> str:
        """
        CPUs that the device owns, by operating-system number, such as "0-3,8"; "" for devices of a cluster.
        """

    @property
    def device_kind(self) -> str:
        """
        Name of the hardware, such as "cpu" or "TPU v5p".
        """

    @property
    def host_id(self) -> int:
        """
        The older name of process_index.
        """

    @property
    def id(self) -> int:
        """
        Number of the device in its world, from 0.
        """

    @property
    def is_compile_only(self) -> bool:
        """
        Whether the device has no memory (planning).
        """

    @property
    def local_hardware_id(self) -> int:
        """
        Number of the device in its process.
        """

    @property
    def memory_bytes(self) -> int:
        """
        Number of bytes of memory: the device's share of its NUMA node or cgroup.

        For a device of a cluster, the memory of its chip, or 0 if unknown.
        """

    @property
    def numa_nodes(self) -> list[int]:
        """
        NUMA nodes of its memory (logical numbers), the preferred node first; empty for devices of a cluster.
        """

    @property
    def platform(self) -> str:
        """
        Name of the platform: "cpu", and for devices of a cluster also "tpu" or "gpu".
        """

    @property
    def process_index(self) -> int:
        """
        Rank of the process that owns the device.
        """

    @property
    def slice_index(self) -> int:
        """
        Number of its slice, or of its switch domain. AttributeError unless the device belongs to a cluster.
        """

class Memory:
    """
    One kind of memory of one device. Returned by `Device.memory(kind)`.

    The kinds of a CPU device: `device`, pages near its cores and advised to be huge; `pinned_host`, the same locked in RAM as
    far as RLIMIT_MEMLOCK allows; `unpinned_host`, ordinary pages. A sharding with that `memory_kind` places Arrays in one. Two
    Memories are equal when they are the same kind of the same device.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(2):
        ...     ad.devices()[1].addressable_memories()
        [CPU_DEVICE_3, PINNED_HOST_4, UNPINNED_HOST_5]
    """

    def __copy__(self) -> typing.Self: ...
    def __deepcopy__(self, memo: dict[int, typing.Any]) -> typing.Self: ...
    def __eq__(self, arg0: object) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    def __repr__(self) -> str: ...
    def __str__(self) -> str: ...
    def addressable_by_devices(self) -> list[Device]:
        """
        Returns the devices that address it: its own device, as in JAX.
        """

    def stats(self) -> dict[str, int]:
        """
        Returns statistics of this memory in bytes.

        `bytes_in_use`, `peak_bytes_in_use`, `bytes_reserved`, `largest_alloc_size` and `num_allocs` count the
        memory of arrays of this kind on this device, each replica in full. `bytes_limit` is the device's limit; for a host kind,
        which has no limit, it is the device's share of the machine's memory. `pool_*` are the physical bytes of this kind near the
        device's NUMA node, which its devices share: `pool_bytes_locked` of them are locked in RAM, and `pool_bytes_not_locked` are
        in use but could not be locked. `lock_limit_bytes` is RLIMIT_MEMLOCK, or -1 for no limit; privileged processes ignore it.

        Returns:
            dict of str to int. Source: counted by the library.
        """

    @property
    def kind(self) -> str:
        """
        Memory kind: "device", "pinned_host" or "unpinned_host".
        """

    @property
    def platform(self) -> str:
        """
        Name of the platform, such as "cpu".
        """

    @property
    def process_index(self) -> int:
        """
        Rank of the process that owns it.
        """

class DeviceList:
    """
    An ordered list of devices of one client. Immutable and hashable.

    Args:
        device_assignment: Tuple or list of Device, or a DeviceList.

    Raises:
        TypeError: An item is not a Device.
        ValueError: The list is empty, a device is repeated, or the devices belong to different clients.

    Example:
        >>> from artifex_devices import xla_client
        >>> client = xla_client.make_cpu_client(num_devices=4)
        >>> devices = xla_client.DeviceList(tuple(client.devices()))
        >>> len(devices), devices[-1], devices.memory_kinds
        (4, CpuDevice(id=3), ('device', 'pinned_host', 'unpinned_host'))
    """

    def __contains__(self, arg0: object) -> bool: ...
    def __copy__(self) -> typing.Self: ...
    def __deepcopy__(self, memo: dict[int, typing.Any]) -> typing.Self: ...
    def __eq__(self, arg0: object) -> bool: ...
    def __getitem__(self, index: typing.SupportsIndex | slice) -> typing.Any:
        """
        Returns a Device, or a tuple of Devices for a slice.
        """

    def __hash__(self) -> int: ...
    def __init__(self, device_assignment: collections.abc.Iterable[Device]) -> None: ...
    def __iter__(self) -> collections.abc.Iterator[Device]: ...
    def __len__(self) -> int: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    def __repr__(self) -> str: ...
    @property
    def addressable_device_list(self) -> DeviceList:
        """
        DeviceList of the devices of this process; the same object if it has all devices. Raises ValueError if this process has no devices.
        """

    @property
    def default_memory_kind(self) -> str:
        """
        Default memory kind of data: "device".
        """

    @property
    def device_kind(self) -> str:
        """
        Name of the hardware, such as "cpu".
        """

    @property
    def is_fully_addressable(self) -> bool:
        """
        Whether all devices belong to this process.
        """

    @property
    def memory_kinds(self) -> tuple[str, ...]:
        """
        Memory kinds of all the devices (tuple of str).
        """

    @property
    def process_indices(self) -> set[int]:
        """
        Ranks of the processes that own the devices (set of int).
        """

class DeviceAssignment:
    """
    Assignment of devices to the replicas of computations.

    An immutable value. Equal assignments have equal hashes and, as XLA's DeviceAssignmentProto, equal bytes.

    Example:
        >>> import numpy as np
        >>> from artifex_devices import xla_client
        >>> assignment = xla_client.DeviceAssignment.create(np.array([[0, 1], [2, 3]]))
        >>> assignment
        DeviceAssignment{replica_count=2, computation_count=2, Computation0{0 2} Computation1{1 3}}
        >>> assignment.device_ordinal(1, 0), assignment.logical_ids_for_device(1)
        (2, (0, 1))
        >>> xla_client.DeviceAssignment.deserialize(assignment.serialize()) == assignment
        True
    """

    @staticmethod
    def create(array: numpy.typing.ArrayLike) -> DeviceAssignment:
        """
        Creates an assignment.

        Args:
            array: Device ordinals of shape (replicas, computations): integers from 0, or floats and bools equal to such integers.

        Raises:
            TypeError: `array` is not an array, does not have 2 dimensions, or has another dtype.
            ValueError: It is empty, or a number is negative, repeated, not an integer, or beyond 64 bits.
        """

    @staticmethod
    def deserialize(data: bytes) -> DeviceAssignment:
        """
        Reads the bytes of an XLA DeviceAssignmentProto.

        Raises:
            TypeError: `data` is not a bytes-like object.
            ValueError: The bytes are not such a message, or `create` would refuse the assignment.
        """

    def __eq__(self, arg0: object) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    def __repr__(self) -> str: ...
    def computation_count(self) -> int:
        """
        Returns the number of computations of each replica.
        """

    def device_ordinal(self, replica: int, computation: int) -> int:
        """
        Returns the device of one replica of one computation. Raises IndexError if the number is out of range.
        """

    def logical_ids_for_device(self, device_ordinal: int) -> tuple[int, int]:
        """
        Returns the (replica, computation) that a device runs. Raises ValueError if it runs none.
        """

    def replica_count(self) -> int:
        """
        Returns the number of replicas.
        """

    def serialize(self) -> bytes:
        """
        Returns the bytes of XLA's DeviceAssignmentProto.
        """

    @property
    def device_ordinals(self) -> numpy.typing.NDArray[typing.Any]:
        """
        Device ordinals as a new int64 ndarray of shape (replicas, computations).
        """

class DeviceTopology:
    """
    The devices of a client and their machine, as a value.

    It can be stored or sent as bytes and used elsewhere to plan. Topologies with equal bytes are equal.

    Example:
        >>> import artifex_devices as ad
        >>> from artifex_devices import xla_client
        >>> with ad.simulate("2 nodes x 4"):
        ...     topology = xla_client.get_topology_for_devices(ad.devices())
        >>> same = xla_client.DeviceTopology.deserialize(topology.serialize())
        >>> same == topology, same.device_descriptions[7]["cpuset"], same.device_descriptions[7]["numa_nodes"]
        (True, '4-7', [1])
        >>> mesh = ad.Mesh(same._make_compile_only_devices(), ("data",))
        >>> ad.NamedSharding(mesh, ad.P("data")).shard_shape((32, 3))
        (4, 3)
    """

    @staticmethod
    def deserialize(data: bytes) -> DeviceTopology:
        """
        Reads the bytes of `serialize`. Skips fields that a newer version added.

        Raises:
            TypeError: `data` is not a bytes-like object.
            ValueError: The bytes are damaged, of another major version, or not a topology.
        """

    def __eq__(self, arg0: object) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    def __repr__(self) -> str: ...
    def _make_compile_only_devices(self) -> list[Device]:
        """
        Returns new devices like these, to plan with.

        Returns:
            list of Device of a new client: meshes and shardings work, placing raises RuntimeError.

        Raises:
            RuntimeError: This version has no devices of that platform or kind.
        """

    def fingerprint(self) -> int:
        """
        Returns a 64-bit number that is equal for equal topologies, in all processes.
        """

    def serialize(self) -> bytes:
        """
        Returns the topology as a protobuf message (docs/formats/README.md). Equal topologies have equal bytes.
        """

    @property
    def device_descriptions(self) -> list[Device]:
        """
        List of one dict for each device: id, kind, process_index, cpu_domain, cpuset, numa_nodes, memory_bytes, memory_kinds.
        """

    @property
    def machine(self) -> Machine:
        """
        Machine with its counts, NUMA nodes and CPU domains, but without hwloc's tree (to_xml raises RuntimeError).
        """

    @property
    def platform(self) -> str:
        """
        Name of the platform, such as "cpu".
        """

    @property
    def platform_version(self) -> str:
        """
        Version text of the platform of the described devices.
        """

class AxisType(enum.Enum):
    """
    Type of a mesh axis for code on sharded arrays: Auto, Explicit or Manual, as in JAX.
    """

    Auto = 0
    Explicit = 1
    Manual = 2

    def __reduce_ex__(self, protocol: typing.Any) -> tuple[typing.Any, ...]: ...
    def __repr__(self) -> str: ...

class PartitionSpec:
    """
    The mesh axes that each dimension of an array is sharded over, with one entry for each dimension.

    An entry is None (not sharded), an axis name, a tuple of names (the first is the major one) or UNCONSTRAINED. Dimensions
    beyond the entries are not sharded. As in JAX it is not a tuple, and P('x') and P('x', None) are unequal.

    Raises:
        TypeError: A name is not hashable.
        ValueError: A tuple contains None.

    Example:
        >>> from artifex_devices.sharding import PartitionSpec as P
        >>> P("data", None, ("x", "y"))
        P('data', None, ('x', 'y'))
        >>> P("data") + P("model")
        P('data', 'model')
    """

    UNCONSTRAINED: typing.ClassVar[internal.Unconstrained]

    def __add__(self, arg0: PartitionSpec | tuple[typing.Any, ...]) -> PartitionSpec: ...
    def __contains__(self, arg0: object) -> bool: ...
    def __eq__(self, other: object) -> bool: ...
    def __getitem__(self, index: typing.SupportsIndex | slice) -> typing.Any: ...
    def __hash__(self) -> int: ...
    def __init__(
        self, *args: collections.abc.Hashable | collections.abc.Sequence[collections.abc.Hashable]
    ) -> None: ...
    def __iter__(self) -> collections.abc.Iterator[typing.Any]: ...
    def __len__(self) -> int: ...
    def __radd__(self, arg0: tuple[typing.Any, ...]) -> PartitionSpec: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    def __repr__(self) -> str: ...
    def count(self, value: object) -> int:
        """
        Returns the number of entries equal to `value`.
        """

    def index(self, value: object) -> int:
        """
        Returns the first position of an entry. Raises ValueError if the entry is not in it.
        """

    def update(self, partitions: collections.abc.Iterable[typing.Any] | None = None) -> PartitionSpec:
        """
        Returns a PartitionSpec with other entries, or itself for None. Raises TypeError unless they are iterable.

        Example:
            >>> import artifex_devices as ad
            >>> ad.P("x").update(partitions=("y", None))
            P('y', None)
        """

    @property
    def partitions(self) -> tuple[typing.Any, ...]:
        """
        Entries (tuple).
        """

class AbstractMesh:
    """
    Names and sizes of mesh axes, without devices.

    Args:
        axis_sizes: Sizes of the axes, each at least 1.
        axis_names: Distinct hashable names, one for each axis.
        axis_types: AxisType of all axes, or one for each axis; Auto by default.

    Raises:
        ValueError: The lengths differ, a name is repeated, a size is below 1, or the product does not fit 64 bits.

    Example:
        >>> from artifex_devices.sharding import AbstractMesh
        >>> AbstractMesh((2, 4), ("x", "y")).size
        8
    """

    def __eq__(self, arg0: object) -> bool: ...
    def __hash__(self) -> int: ...
    def __init__(
        self,
        axis_sizes: collections.abc.Sequence[int],
        axis_names: collections.abc.Hashable | collections.abc.Sequence[collections.abc.Hashable],
        axis_types: AxisType
        | typing.Literal["auto", "explicit", "manual"]
        | collections.abc.Sequence[AxisType | typing.Literal["auto", "explicit", "manual"]]
        | None = None,
    ) -> None: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    def __repr__(self) -> str: ...
    def update(
        self,
        axis_sizes: collections.abc.Sequence[int] | None = None,
        axis_names: collections.abc.Hashable | collections.abc.Sequence[collections.abc.Hashable] | None = None,
        axis_types: AxisType | collections.abc.Sequence[AxisType] | None = None,
    ) -> AbstractMesh:
        """
        Returns a mesh with other sizes, names or axis types. Raises TypeError and ValueError as AbstractMesh does.

        Example:
            >>> from artifex_devices.sharding import AbstractMesh
            >>> AbstractMesh((2, 4), ("x", "y")).update(axis_sizes=(4, 4)).size
            16
        """

    def update_axis_types(
        self,
        name_to_type: collections.abc.Mapping[str, AxisType]
        | collections.abc.Mapping[collections.abc.Hashable, AxisType],
    ) -> AbstractMesh:
        """
        Returns a mesh with other types of the axes in `name_to_type`, a dict of axis name to AxisType.

        Raises:
            TypeError: name_to_type is not a mapping, or a value is not an AxisType.

        Example:
            >>> from artifex_devices.sharding import AbstractMesh, AxisType
            >>> AbstractMesh((2, 4), ("x", "y")).update_axis_types({"y": AxisType.Explicit}).explicit_axes
            ('y',)
        """

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """
        The mesh itself: it has no devices.
        """

    @property
    def are_all_axes_auto(self) -> bool:
        """
        Whether every axis is of type Auto; False without axes.
        """

    @property
    def are_all_axes_explicit(self) -> bool:
        """
        Whether every axis is of type Explicit; False without axes.
        """

    @property
    def are_all_axes_manual(self) -> bool:
        """
        Whether every axis is of type Manual; False without axes.
        """

    @property
    def auto_axes(self) -> tuple[collections.abc.Hashable, ...]:
        """
        Names of the axes of type Auto (tuple).
        """

    @property
    def axis_names(self) -> tuple[collections.abc.Hashable, ...]:
        """
        Names, major to minor (tuple).
        """

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """
        Sizes, major to minor (tuple of int).
        """

    @property
    def axis_types(self) -> tuple[AxisType, ...]:
        """
        AxisType of each axis (tuple).
        """

    @property
    def empty(self) -> bool:
        """
        Whether there are no axes.
        """

    @property
    def explicit_axes(self) -> tuple[collections.abc.Hashable, ...]:
        """
        Names of the axes of type Explicit (tuple).
        """

    @property
    def manual_axes(self) -> tuple[collections.abc.Hashable, ...]:
        """
        Names of the axes of type Manual (tuple).
        """

    @property
    def shape(self) -> collections.OrderedDict[collections.abc.Hashable, int]:
        """
        OrderedDict of name to size.
        """

    @property
    def shape_tuple(self) -> tuple[tuple[collections.abc.Hashable, int], ...]:
        """
        ((name, size), ...).
        """

    @property
    def size(self) -> int:
        """
        Product of the sizes; 0 without axes, as in JAX.
        """

class Mesh:
    """
    Devices arranged over named axes.

    Equal meshes that are alive at the same time are one object. Axis types are Auto by default; in `make_mesh` Explicit.

    Args:
        devices: ndarray or nested lists of Device, with one dimension for each axis.
        axis_names: Distinct hashable names, one for each dimension; a str for a single axis.
        axis_types: AxisType of all axes, or a tuple of one AxisType for each axis.

    Raises:
        TypeError: An item of `devices` is not a Device.
        ValueError: The numbers of names and dimensions differ, a name or a device is repeated, or the devices belong to two worlds.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(8):
        ...     print(ad.Mesh(np.array(ad.devices()).reshape(2, 4), ("data", "model")))
        Mesh('data': 2, 'model': 4, axis_types=(Auto, Auto))
    """

    @classmethod
    def __new__(
        cls: type[Mesh],
        devices: Device | numpy.typing.NDArray[typing.Any] | collections.abc.Sequence[typing.Any],
        axis_names: collections.abc.Hashable | collections.abc.Sequence[collections.abc.Hashable] | None = None,
        axis_types: AxisType
        | typing.Literal["auto", "explicit", "manual"]
        | collections.abc.Sequence[AxisType | typing.Literal["auto", "explicit", "manual"]]
        | None = None,
    ) -> Mesh: ...
    def __copy__(self) -> typing.Self: ...
    def __deepcopy__(self, memo: dict[int, typing.Any]) -> typing.Self: ...
    def __enter__(self) -> typing.Self: ...
    def __eq__(self, other: object) -> bool: ...
    def __exit__(self, *args: object) -> None: ...
    def __hash__(self) -> int: ...
    def __init__(
        self,
        devices: Device | numpy.typing.NDArray[typing.Any] | collections.abc.Sequence[typing.Any],
        axis_names: collections.abc.Hashable | collections.abc.Sequence[collections.abc.Hashable] | None = None,
        axis_types: AxisType
        | typing.Literal["auto", "explicit", "manual"]
        | collections.abc.Sequence[AxisType | typing.Literal["auto", "explicit", "manual"]]
        | None = None,
    ) -> None: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    def __repr__(self) -> str: ...
    def __setattr__(self, arg0: str, arg1: typing.Any) -> None: ...
    def __str__(self) -> str: ...
    def _repr_html_(self) -> str | None: ...
    def update(
        self,
        devices: numpy.typing.NDArray[typing.Any] | collections.abc.Sequence[typing.Any] | None = None,
        axis_names: collections.abc.Hashable | collections.abc.Sequence[collections.abc.Hashable] | None = None,
        axis_types: AxisType | collections.abc.Sequence[AxisType] | None = None,
    ) -> Mesh:
        """
        Returns a mesh with other devices, names or axis types. Raises TypeError and ValueError as Mesh does.

        Example:
            >>> import artifex_devices as ad
            >>> with ad.simulate(8):
            ...     mesh = ad.make_mesh((8,), ("x",))
            ...     mesh.update(axis_names=("data",)).axis_names
            ('data',)
        """

    @property
    def _flat_devices_tuple(self) -> tuple[Device, ...]:
        """
        Tuple of all devices in the mesh's order.
        """

    @property
    def _internal_device_list(self) -> DeviceList:
        """
        DeviceList of all devices in the mesh's order.
        """

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """
        AbstractMesh of the axes, without devices.
        """

    @property
    def are_all_axes_auto(self) -> bool:
        """
        Whether every axis is of type Auto; False without axes.
        """

    @property
    def are_all_axes_explicit(self) -> bool:
        """
        Whether every axis is of type Explicit; False without axes.
        """

    @property
    def are_all_axes_manual(self) -> bool:
        """
        Whether every axis is of type Manual; False without axes.
        """

    @property
    def auto_axes(self) -> tuple[collections.abc.Hashable, ...]:
        """
        Names of the axes of type Auto (tuple).
        """

    @property
    def axis_names(self) -> tuple[collections.abc.Hashable, ...]:
        """
        Names, major to minor (tuple).
        """

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """
        Sizes, major to minor (tuple of int).
        """

    @property
    def axis_types(self) -> tuple[AxisType, ...]:
        """
        AxisType of each axis (tuple).
        """

    @property
    def device_ids(self) -> numpy.typing.NDArray[typing.Any]:
        """
        ndarray of the devices' ids in the mesh's shape.
        """

    @property
    def devices(self) -> numpy.typing.NDArray[typing.Any]:
        """
        Read-only ndarray of Device in the mesh's shape.
        """

    @property
    def empty(self) -> bool:
        """
        Whether there are no devices.
        """

    @property
    def explicit_axes(self) -> tuple[collections.abc.Hashable, ...]:
        """
        Names of the axes of type Explicit (tuple).
        """

    @property
    def is_multi_process(self) -> bool:
        """
        Whether it has devices of other processes.
        """

    @property
    def local_devices(self) -> list[Device]:
        """
        List of the devices of this process.
        """

    @property
    def local_mesh(self) -> Mesh:
        """
        Mesh of this process's devices; the same object in one process. Raises ValueError if they are not a box of the mesh.
        """

    @property
    def manual_axes(self) -> tuple[collections.abc.Hashable, ...]:
        """
        Names of the axes of type Manual (tuple).
        """

    @property
    def shape(self) -> collections.OrderedDict[collections.abc.Hashable, int]:
        """
        OrderedDict of axis name to size.
        """

    @property
    def shape_tuple(self) -> tuple[tuple[collections.abc.Hashable, int], ...]:
        """
        ((name, size), ...).
        """

    @property
    def size(self) -> int:
        """
        Number of devices.
        """

class Sharding:
    """
    Placement of arrays of any shape on devices. Immutable and hashable; the base of NamedSharding and SingleDeviceSharding.
    """

    def __copy__(self) -> typing.Self: ...
    def __deepcopy__(self, memo: dict[int, typing.Any]) -> typing.Self: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...
    def __repr__(self) -> str: ...
    def _repr_html_(self) -> str | None: ...
    def _same_devices(self, other: Sharding) -> bool:
        """
        Returns whether both have the same devices in the same order and the same memory kind.
        """

    def addressable_devices_indices_map(
        self, global_shape: collections.abc.Sequence[int]
    ) -> dict[Device, tuple[slice, ...]]:
        """
        Returns devices_indices_map for the devices of this process only.
        """

    def check_compatible_aval(self, aval_shape: collections.abc.Sequence[int]) -> None:
        """
        Raises ValueError unless a value of this shape has a dimension for each entry of the spec.

        Example:
            >>> import artifex_devices as ad
            >>> with ad.simulate(2):
            ...     ad.NamedSharding(ad.make_mesh((2,), ("x",)), ad.P("x")).check_compatible_aval((4, 3))
        """

    def device_index(self, device: Device, global_shape: collections.abc.Sequence[int]) -> tuple[slice, ...]:
        """
        Returns the part of an array of `global_shape` on one device: devices_indices_map(global_shape)[device].

        Takes the same time for any number of devices.

        Returns:
            tuple of slices.

        Raises:
            TypeError: `device` is not a Device.
            ValueError: The sharding does not include the device, or shard_shape() raises ValueError.
        """

    def devices_indices_map(self, global_shape: collections.abc.Sequence[int]) -> dict[Device, tuple[slice, ...]]:
        """
        Returns the part of an array of `global_shape` that each device holds.

        Returns:
            dict of Device to tuple of slices, in mesh order; the slice of a dimension that is not sharded is slice(None).

        Raises:
            ValueError: As shard_shape.
        """

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """
        Returns whether the same devices hold the same parts of every array of rank `ndim`. Axis names do not matter.
        """

    def shard_shape(self, global_shape: collections.abc.Sequence[int]) -> tuple[int, ...]:
        """
        Returns the shape of each device's shard of an array of `global_shape`.

        With uneven="last-short", returns the shape of the first shard, which is the largest.

        Raises:
            IndivisibleError: A dimension is not divisible by its axes (a ValueError).
            ValueError: The spec has more entries than the shape has dimensions.
            TypeError: A size is not an int.
        """

    def with_memory_kind(self, kind: str) -> typing.Self:
        """
        Returns the same sharding in another memory kind. Raises ValueError for an unknown kind.
        """

    @property
    def _device_assignment(self) -> tuple[Device, ...]:
        """
        Tuple of all devices in mesh order.
        """

    @property
    def _internal_device_list(self) -> DeviceList:
        """
        DeviceList of all devices in mesh order.
        """

    @property
    def addressable_devices(self) -> set[Device]:
        """
        Set of the devices of this process.
        """

    @property
    def device_set(self) -> set[Device]:
        """
        Set of all devices.
        """

    @property
    def has_addressable_devices(self) -> bool:
        """
        Whether it has devices of this process.
        """

    @property
    def is_fully_addressable(self) -> bool:
        """
        Whether all devices belong to this process.
        """

    @property
    def is_fully_replicated(self) -> bool:
        """
        Whether each device holds the global array.
        """

    @property
    def memory_kind(self) -> str | None:
        """
        Memory kind: "device", "pinned_host" or "unpinned_host"; on an AbstractMesh None by default.
        """

    @property
    def num_devices(self) -> int:
        """
        Number of devices.
        """

class NamedSharding(Sharding):
    """
    A mesh and a PartitionSpec over its axes.

    Args:
        mesh: Mesh, or AbstractMesh, which has shard shapes but no devices to place data on.
        spec: PartitionSpec. Data is replicated over axes that it does not name.
        memory_kind: "device", "pinned_host", "unpinned_host", or None for "device".
        uneven: None to raise for dimensions that their axes do not divide (as JAX), or "last-short" for chunks of
            ceil(size / parts), the last ones shorter or empty.

    Raises:
        ValueError: The mesh does not have an axis of the spec or is empty, or the memory kind is unknown.
        DuplicateSpecError: An axis is used twice (a ValueError).

    Example:
        >>> import artifex_devices as ad
        >>> from artifex_devices.sharding import NamedSharding, PartitionSpec as P
        >>> with ad.simulate(8):
        ...     mesh = ad.make_mesh((2, 4), ("data", "model"))
        ...     NamedSharding(mesh, P("data", "model")).shard_shape((8, 16))
        (4, 4)
    """

    def __init__(
        self,
        mesh: Mesh | AbstractMesh,
        spec: PartitionSpec,
        *,
        memory_kind: str | None = None,
        uneven: str | None = None,
    ) -> None: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    def update(self, **kwargs: object) -> NamedSharding:
        """
        Returns a NamedSharding with another mesh, spec, memory_kind or uneven.

        The arguments are named: `mesh`, `spec` (a PartitionSpec or its entries), `memory_kind`, `uneven`.

        Raises:
            TypeError: An argument has another name.
            ValueError: As NamedSharding.

        Example:
            >>> import artifex_devices as ad
            >>> with ad.simulate(2):
            ...     ad.NamedSharding(ad.make_mesh((2,), ("x",)), ad.P()).update(spec=ad.P("x")).spec
            P('x',)
        """

    @property
    def mesh(self) -> Mesh | AbstractMesh:
        """
        Mesh or AbstractMesh.
        """

    @property
    def spec(self) -> PartitionSpec:
        """
        PartitionSpec.
        """

    @property
    def uneven(self) -> str | None:
        """
        Treatment of uneven shapes: None or "last-short".
        """

class SingleDeviceSharding(Sharding):
    """
    A sharding with the global array on one device.

    Raises:
        TypeError: `device` is not a Device.

    Example:
        >>> import artifex_devices as ad
        >>> ad.sharding.SingleDeviceSharding(ad.devices()[0]).num_devices
        1
    """

    def __init__(self, device: Device, *, memory_kind: str | None = None) -> None: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    @property
    def _device(self) -> Device: ...

class Array:
    """
    An immutable array on devices.

    Created by `device_put` and its family, never directly. `np.asarray(x)` returns its value as a read-only ndarray, without a
    copy where one buffer holds all of it.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> x = ad.device_put(np.arange(4.0))
        >>> x.shape, x.dtype, x.device == ad.devices()[0]
        ((4,), dtype('float64'), True)
    """

    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]

    def __abs__(self) -> Array:
        """
        Calls np.absolute, element by element.
        """

    def __add__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.add, element by element.
        """

    def __and__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.bitwise_and, element by element.
        """

    def __array__(
        self, dtype: numpy.typing.DTypeLike | None = None, copy: bool | None = None
    ) -> numpy.typing.NDArray[typing.Any]: ...
    def __array_function__(
        self, function: typing.Any, types: typing.Any, args: typing.Any, kwargs: typing.Any
    ) -> typing.Any:
        """
        Calls a NumPy function that the guide lists; raises TypeError with the code to gather first for others.
        """

    def __array_namespace__(self, *, api_version: str | None = None) -> types.ModuleType:
        """
        Returns the module `artifex_devices.array_api`: the Array API standard's functions for Arrays.

                Raises:
                    ValueError: The version is not supported.

        """

    def __array_ufunc__(self, ufunc: typing.Any, method: str, *inputs: typing.Any, **options: typing.Any) -> typing.Any:
        """
        Calls a ufunc; each device computes its own shard (guide: NumPy on Arrays).
        """

    def __bool__(self) -> bool: ...
    def __complex__(self) -> complex: ...
    def __contains__(self, value: object) -> bool:
        """
        Returns whether an element equals the value.
        """

    def __copy__(self) -> Array: ...
    def __deepcopy__(self, memo: dict[int, typing.Any]) -> Array: ...
    def __divmod__(self, other: numpy.typing.ArrayLike) -> tuple[Array, Array]:
        """
        Calls np.divmod, element by element.
        """

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> typing_extensions.CapsuleType:
        """
        Returns a DLPack capsule on the memory of an Array on one device, without a copy unless copy=True.

        The memory is host memory, or GPU memory for an Array on a CUDA device. The value is complete: no `stream` has to wait for
        it. Before the memory is released, the library waits for GPU work that its consumers have started.

        The consumer's view keeps the memory alive, even after delete(). From DLPack 1.0 on (max_version) the capsule is marked
        read-only; consumers of older versions must not write either.

        Raises:
            BufferError: The Array is on several devices or emulated GPUs, or dl_device is not where it is.
            RuntimeError: The Array was deleted, or a stream is given for memory of the host.
            ValueError: `stream` is 0, which CUDA has two meanings for.
            TypeError: max_version or dl_device is not a pair of ints.
        """

    def __dlpack_device__(self) -> tuple[int, int]:
        """
        Returns DLPack's numbers for the memory: (1, 0) for host memory, (2, n) for the memory of CUDA device n.
        """

    def __eq__(self, other: object) -> Array:  # type: ignore[override]
        """
        Calls np.equal, element by element.
        """

    def __float__(self) -> float: ...
    def __floordiv__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.floor_divide, element by element.
        """

    def __format__(self, spec: str) -> str:
        """
        Formats the number of an Array without dimensions, as in f"{loss:.3f}"; others take an empty format only.
        """

    def __ge__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.greater_equal, element by element.
        """

    def __getitem__(
        self,
        index: tuple[typing.SupportsIndex | slice | types.EllipsisType | numpy.typing.ArrayLike | None, ...]
        | typing.SupportsIndex
        | slice
        | types.EllipsisType
        | numpy.typing.ArrayLike
        | None,
    ) -> Array:
        """
        Returns x[index] by NumPy's rules; reads only the shards that hold the elements (guide: NumPy on Arrays).
        """

    def __gt__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.greater, element by element.
        """

    def __index__(self) -> int: ...
    def __int__(self) -> int: ...
    def __invert__(self) -> Array:
        """
        Calls np.invert, element by element.
        """

    def __iter__(self) -> collections.abc.Iterator[Array]:
        """
        Iterates over x[0], x[1], ...; raises TypeError for an Array without dimensions.
        """

    def __le__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.less_equal, element by element.
        """

    def __len__(self) -> int: ...
    def __lshift__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.left_shift, element by element.
        """

    def __lt__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.less, element by element.
        """

    def __matmul__(self, other: numpy.typing.ArrayLike) -> Array: ...
    def __mod__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.remainder, element by element.
        """

    def __mul__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.multiply, element by element.
        """

    def __ne__(self, other: object) -> Array:  # type: ignore[override]
        """
        Calls np.not_equal, element by element.
        """

    def __neg__(self) -> Array:
        """
        Calls np.negative, element by element.
        """

    def __or__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.bitwise_or, element by element.
        """

    def __pos__(self) -> Array:
        """
        Calls np.positive, element by element.
        """

    def __pow__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.power, element by element; `x ** 2` is np.square and `x ** 0.5` np.sqrt, as for ndarrays.
        """

    def __radd__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.add, element by element.
        """

    def __rand__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.bitwise_and, element by element.
        """

    def __rdivmod__(self, other: numpy.typing.ArrayLike) -> tuple[Array, Array]:
        """
        Calls np.divmod, element by element.
        """

    def __reduce__(self) -> tuple[typing.Any, ...]:
        """
        Returns the value, the sharding and whether it is committed.
        """

    def __repr__(self) -> str: ...
    def __reversed__(self) -> collections.abc.Iterator[Array]:
        """
        Iterates over x[len(x) - 1], ..., x[0].
        """

    def __rfloordiv__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.floor_divide, element by element.
        """

    def __rlshift__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.left_shift, element by element.
        """

    def __rmatmul__(self, other: numpy.typing.ArrayLike) -> Array: ...
    def __rmod__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.remainder, element by element.
        """

    def __rmul__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.multiply, element by element.
        """

    def __ror__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.bitwise_or, element by element.
        """

    def __round__(self, ndigits: int | None = None) -> Array:
        """
        Calls np.round; the result has integers where ndigits is None, as in JAX.
        """

    def __rpow__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.power, element by element.
        """

    def __rrshift__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.right_shift, element by element.
        """

    def __rshift__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.right_shift, element by element.
        """

    def __rsub__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.subtract, element by element.
        """

    def __rtruediv__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.divide, element by element.
        """

    def __rxor__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.bitwise_xor, element by element.
        """

    def __str__(self) -> str: ...
    def __sub__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.subtract, element by element.
        """

    def __truediv__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.divide, element by element.
        """

    def __xor__(self, other: numpy.typing.ArrayLike) -> Array:
        """
        Calls np.bitwise_xor, element by element.
        """

    def _repr_html_(self) -> str | None: ...
    def addressable_data(self, index: int) -> Array:
        """
        Returns the shard of the `index`-th device of this process, in mesh order, as an Array.
        """

    def all(
        self,
        axis: typing.SupportsIndex | collections.abc.Sequence[typing.SupportsIndex] | None = None,
        out: numpy.typing.NDArray[typing.Any] | None = None,
        keepdims: bool = ...,
        *,
        where: numpy.typing.ArrayLike = ...,
    ) -> Array:
        """
        Calls np.all.
        """

    def any(
        self,
        axis: typing.SupportsIndex | collections.abc.Sequence[typing.SupportsIndex] | None = None,
        out: numpy.typing.NDArray[typing.Any] | None = None,
        keepdims: bool = ...,
        *,
        where: numpy.typing.ArrayLike = ...,
    ) -> Array:
        """
        Calls np.any.
        """

    def argmax(
        self,
        axis: typing.SupportsIndex | None = None,
        out: numpy.typing.NDArray[typing.Any] | None = None,
        *,
        keepdims: bool = ...,
    ) -> Array:
        """
        Calls np.argmax: position of the first largest element, or of the first NaN.
        """

    def argmin(
        self,
        axis: typing.SupportsIndex | None = None,
        out: numpy.typing.NDArray[typing.Any] | None = None,
        *,
        keepdims: bool = ...,
    ) -> Array:
        """
        Calls np.argmin: position of the first smallest element, or of the first NaN.
        """

    def argpartition(
        self, kth: numpy.typing.ArrayLike, axis: int = -1, kind: str = "introselect", order: str | None = None
    ) -> Array:
        """
        Calls np.argpartition. The dimension must not be sharded.
        """

    def argsort(
        self, axis: int = -1, kind: str | None = None, order: str | None = None, *, stable: bool | None = None
    ) -> Array:
        """
        Calls np.argsort. The dimension must not be sharded.
        """

    def astype(
        self, dtype: numpy.typing.DTypeLike, copy: bool = True, device: Device | Sharding | None = None
    ) -> Array:
        """
        Calls np.astype; each device converts its own shard.
        """

    def block_until_ready(self) -> Array:
        """
        Waits until the data is written, and returns the Array. Ctrl-C ends the wait.

        Raises:
            RuntimeError: The Array was deleted, or the transfer into it failed.
        """

    def clip(
        self,
        min: numpy.typing.ArrayLike | None = None,
        max: numpy.typing.ArrayLike | None = None,
        out: numpy.typing.NDArray[typing.Any] | None = None,
    ) -> Array:
        """
        Calls np.clip.
        """

    def clone(self) -> Array:
        """
        Returns another Array on the same memory, which remains valid when x is deleted.
        """

    def compress(
        self,
        condition: numpy.typing.ArrayLike,
        axis: int | None = None,
        out: numpy.typing.NDArray[typing.Any] | None = None,
    ) -> Array:
        """
        Calls np.compress(condition, x, axis): takes the parts along one dimension where the condition is True.
        """

    def conj(self) -> Array:
        """
        Calls np.conjugate; bools stay bools.
        """

    def conjugate(self) -> Array:
        """
        Calls np.conjugate; bools stay bools.
        """

    def copy(self) -> Array:
        """
        Calls np.copy; the copy has its own memory and the same sharding.
        """

    def copy_to_host_async(self) -> artifex_devices._placement.async_copy.HostCopy:
        """
        Starts to copy the value to the host, and returns a HostCopy at once, which np.asarray(x) then uses.
        """

    def cumprod(
        self,
        axis: typing.SupportsIndex | None = None,
        dtype: numpy.typing.DTypeLike | None = None,
        out: numpy.typing.NDArray[typing.Any] | None = None,
    ) -> Array:
        """
        Calls np.cumprod: along a sharded dimension devices exchange only their products.
        """

    def cumsum(
        self,
        axis: typing.SupportsIndex | None = None,
        dtype: numpy.typing.DTypeLike | None = None,
        out: numpy.typing.NDArray[typing.Any] | None = None,
    ) -> Array:
        """
        Calls np.cumsum: along a sharded dimension devices exchange only their totals.
        """

    def delete(self) -> None:
        """
        Deletes the Array and its shards in this process. Memory is freed when its last view is gone. A second call does nothing.
        """

    def describe(self) -> str:
        """
        Returns a text of a few lines about its placement: dtype, shape, spec, mesh, bytes per device, aliasing, state.

        Reads no element and never waits. Works for deleted Arrays too.

        Example:
            >>> import numpy as np, artifex_devices as ad
            >>> print(ad.device_put(np.ones((2, 3)), ad.devices()[0]).describe())
            Array float64(2, 3), 48 bytes
              sharding  SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
              devices   cpu:0
              shards    1 of (2, 3)
              memory    48 bytes
              aliasing  none
              state     committed, ready
        """

    def devices(self) -> set[Device]:
        """
        Returns the set of the devices that hold the Array.
        """

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """
        Calls np.diagonal: the diagonal of two dimensions, as the last dimension of a new Array.
        """

    def dot(self, b: numpy.typing.ArrayLike, out: numpy.typing.NDArray[typing.Any] | None = None) -> Array:
        """
        Calls np.dot(x, b); each device multiplies its own blocks, and only partial sums are sent.
        """

    def flatten(self, order: str = "C") -> Array:
        """
        Returns a copy of the elements in one dimension.
        """

    def is_deleted(self) -> bool:
        """
        Returns whether the Array was deleted or donated.
        """

    def is_ready(self) -> bool:
        """
        Returns whether the data is written. Never waits.
        """

    def item(
        self, *index: typing.SupportsIndex | tuple[typing.SupportsIndex, ...]
    ) -> artifex_devices._base.leaf_types.PythonNumber:
        """
        Returns one element as a Python number: the only element, or that at a flat position or an index.

                Raises:
                    ValueError: There is no index and x has not exactly one element, or the number of indices is wrong.
                    IndexError: The index is out of range.

                Example:
                    >>> import numpy as np, artifex_devices as ad
                    >>> x = ad.device_put(np.arange(6).reshape(2, 3))
                    >>> x.item(4), x.item(1, 0), x[0, 2].item()
                    (4, 3, 2)

        """

    def max(
        self,
        axis: typing.SupportsIndex | collections.abc.Sequence[typing.SupportsIndex] | None = None,
        out: numpy.typing.NDArray[typing.Any] | None = None,
        keepdims: bool = ...,
        initial: numpy.typing.ArrayLike = ...,
        where: numpy.typing.ArrayLike = ...,
    ) -> Array:
        """
        Calls np.max: NaN where an element is NaN.
        """

    def mean(
        self,
        axis: typing.SupportsIndex | collections.abc.Sequence[typing.SupportsIndex] | None = None,
        dtype: numpy.typing.DTypeLike | None = None,
        out: numpy.typing.NDArray[typing.Any] | None = None,
        keepdims: bool = ...,
        *,
        where: numpy.typing.ArrayLike = ...,
    ) -> Array:
        """
        Calls np.mean: 16-bit floats are added up in float32, integers in float64.
        """

    def min(
        self,
        axis: typing.SupportsIndex | collections.abc.Sequence[typing.SupportsIndex] | None = None,
        out: numpy.typing.NDArray[typing.Any] | None = None,
        keepdims: bool = ...,
        initial: numpy.typing.ArrayLike = ...,
        where: numpy.typing.ArrayLike = ...,
    ) -> Array:
        """
        Calls np.min: NaN where an element is NaN.
        """

    def on_device_size_in_bytes(self) -> int:
        """
        Returns the number of bytes on all devices, replicas counted.
        """

    def prod(
        self,
        axis: typing.SupportsIndex | collections.abc.Sequence[typing.SupportsIndex] | None = None,
        dtype: numpy.typing.DTypeLike | None = None,
        out: numpy.typing.NDArray[typing.Any] | None = None,
        keepdims: bool = ...,
        initial: numpy.typing.ArrayLike = ...,
        where: numpy.typing.ArrayLike = ...,
    ) -> Array:
        """
        Calls np.prod: the result is replicated over the axes of the reduced dimensions.
        """

    def ptp(
        self,
        axis: typing.SupportsIndex | collections.abc.Sequence[typing.SupportsIndex] | None = None,
        out: numpy.typing.NDArray[typing.Any] | None = None,
        keepdims: bool = ...,
    ) -> Array:
        """
        Calls np.ptp: the maximum minus the minimum.
        """

    def ravel(self, order: str = "C", *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
        """
        Returns the elements in one dimension, on the same memory: reshape(-1), with its out_sharding.
        """

    def repeat(
        self,
        repeats: numpy.typing.ArrayLike,
        axis: int | None = None,
        *,
        out_sharding: Sharding | PartitionSpec | None = None,
    ) -> Array:
        """
        Calls np.repeat(x, repeats, axis); the result is placed by out_sharding if that is not None.
        """

    def reshape(
        self,
        *shape: typing.SupportsIndex | collections.abc.Sequence[typing.SupportsIndex],
        order: str = "C",
        copy: bool | None = None,
        out_sharding: Sharding | PartitionSpec | None = None,
    ) -> Array:
        """
        Returns the same elements in another shape, on the same memory.

                Args:
                    self: The Array.
                    *shape: Sizes, as ints or as one tuple; one of them may be -1.
                    order: "C".
                    copy: True for new memory.
                    out_sharding: NamedSharding or PartitionSpec of the result. If the shards do not allow the new shape, the
                        global array is first gathered on each of the devices.

                Returns:
                    An Array. Each new dimension is sharded as the dimension that it replaces, or as out_sharding says.

                Raises:
                    ValueError: The sizes are for another number of elements.
                    ShardingTypeError: A device would need elements of another device; the text names the dimensions (a
                        ValueError).

                Example:
                    >>> import numpy as np, artifex_devices as ad
                    >>> ad.device_put(np.arange(6)).reshape(2, -1).shape
                    (2, 3)

        """

    def round(self, decimals: int = 0, out: numpy.typing.NDArray[typing.Any] | None = None) -> Array:
        """
        Calls np.round.
        """

    def searchsorted(
        self, v: numpy.typing.ArrayLike, side: str = "left", sorter: numpy.typing.ArrayLike | None = None
    ) -> Array:
        """
        Calls np.searchsorted(x, v): the result is sharded as v; x must not be sharded.
        """

    def sort(
        self, axis: int = -1, kind: str | None = None, order: str | None = None, *, stable: bool | None = None
    ) -> Array:
        """
        Calls np.sort: a sorted copy, as in JAX, because Arrays are immutable. The dimension must not be sharded.
        """

    def squeeze(
        self, axis: typing.SupportsIndex | collections.abc.Sequence[typing.SupportsIndex] | None = None
    ) -> Array:
        """
        Calls np.squeeze: removes the dimensions of size 1 (only dimensions in axis, if passed), on the same memory.
        """

    def std(
        self,
        axis: typing.SupportsIndex | collections.abc.Sequence[typing.SupportsIndex] | None = None,
        dtype: numpy.typing.DTypeLike | None = None,
        out: numpy.typing.NDArray[typing.Any] | None = None,
        ddof: int = 0,
        keepdims: bool = ...,
        *,
        where: numpy.typing.ArrayLike = ...,
        mean: numpy.typing.ArrayLike = ...,
        correction: float = ...,
    ) -> Array:
        """
        Calls np.std.
        """

    def sum(
        self,
        axis: typing.SupportsIndex | collections.abc.Sequence[typing.SupportsIndex] | None = None,
        dtype: numpy.typing.DTypeLike | None = None,
        out: numpy.typing.NDArray[typing.Any] | None = None,
        keepdims: bool = ...,
        initial: numpy.typing.ArrayLike = ...,
        where: numpy.typing.ArrayLike = ...,
    ) -> Array:
        """
        Calls np.sum: the result is replicated over the axes of the summed dimensions.
        """

    def swapaxes(self, axis1: typing.SupportsIndex, axis2: typing.SupportsIndex) -> Array:
        """
        Calls np.swapaxes: two dimensions swapped.
        """

    def take(
        self,
        indices: numpy.typing.ArrayLike,
        axis: typing.SupportsIndex | None = None,
        out: numpy.typing.NDArray[typing.Any] | None = None,
        mode: str = "raise",
    ) -> Array:
        """
        Calls np.take(x, indices, axis): parts along one dimension.
        """

    def to_device(self, device: Device | Sharding, *, stream: None = None) -> Array:
        """
        Returns the Array placed on a Device or by a Sharding, as `device_put(x, device)` places it.

                `device` is a Device or a Sharding, as `Array.device` returns them, or another target of `device_put`; `stream`
                must be None.

                Raises:
                    TypeError: device is not a target of `device_put`.
                    ValueError: stream is not None.

                Example:
                    >>> import numpy as np, artifex_devices as ad
                    >>> ad.device_put(np.ones(3)).to_device(ad.devices()[0]).committed
                    True

        """

    def tobytes(self) -> bytes:
        """
        Returns the bytes of np.asarray(x) in row-major order.
        """

    def tolist(self) -> artifex_devices._base.leaf_types.NestedNumbers:
        """
        Returns the elements as nested lists of Python numbers.
        """

    def trace(
        self,
        offset: int = 0,
        axis1: int = 0,
        axis2: int = 1,
        dtype: numpy.typing.DTypeLike | None = None,
        out: numpy.typing.NDArray[typing.Any] | None = None,
    ) -> Array:
        """
        Calls np.trace: the sum of a diagonal.
        """

    def transpose(self, *axes: typing.SupportsIndex | collections.abc.Sequence[typing.SupportsIndex] | None) -> Array:
        """
        Returns the dimensions in another order; their shardings move with them.

                Args:
                    self: The Array.
                    *axes: The dimensions in their new order, as ints or as one tuple; without them the order is reversed.

                Returns:
                    An Array; x itself if the order does not change.

                Example:
                    >>> import numpy as np, artifex_devices as ad
                    >>> ad.device_put(np.ones((2, 3, 4))).transpose(0, 2, 1).shape
                    (2, 4, 3)

        """

    def unsafe_buffer_pointer(self) -> int:
        """
        Returns the address of the data of an Array on one device, which is valid while the Array is alive.

        Reading GPU memory through the address ends the process with a segmentation fault.
        """

    def var(
        self,
        axis: typing.SupportsIndex | collections.abc.Sequence[typing.SupportsIndex] | None = None,
        dtype: numpy.typing.DTypeLike | None = None,
        out: numpy.typing.NDArray[typing.Any] | None = None,
        ddof: int = 0,
        keepdims: bool = ...,
        *,
        where: numpy.typing.ArrayLike = ...,
        mean: numpy.typing.ArrayLike = ...,
        correction: float = ...,
    ) -> Array:
        """
        Calls np.var.
        """

    def view(self, dtype: numpy.typing.DTypeLike | None = None, type: None = None) -> Array:
        """
        Returns the bits as another dtype, in new memory; the last dimension changes with the item size.

                Args:
                    self: The Array.
                    dtype: The dtype of the result; None returns x itself.
                    type: NumPy's argument, which must be None.

                Raises:
                    NotImplementedError: type is not None.
                    TypeError: Devices do not support the dtype.
                    ValueError: The bytes of the last dimension, or of one shard of it, are not a multiple of the new item size.

                Example:
                    >>> import numpy as np, artifex_devices as ad
                    >>> ad.device_put(np.array([1.0], np.float32)).view(np.int32).tolist()
                    [1065353216]

        """

    @property
    def T(self) -> Array:
        """
        The dimensions in reverse order; their shardings move with them.
        """

    @property
    def __cuda_array_interface__(self) -> artifex_devices._base.leaf_types.Record:
        """
        Address, shape, strides and dtype of an Array on one CUDA device, version 3 of the interface: read-only, and complete. Raises AttributeError for other Arrays.
        """

    @property
    def _pjrt_layout(self) -> PjRtLayout:
        """
        PjRtLayout in which the elements of each shard are stored.
        """

    @property
    def addressable_shards(self) -> list[Shard]:
        """
        List of one Shard for each device of this process, in mesh order.
        """

    @property
    def at(self) -> artifex_devices._array_ops.index.updating.At:
        """
        Updated copies: `x.at[index].set(values)`.

                Besides set there are add, subtract, multiply, divide, power, min, max and get. Indices follow NumPy's rules;
                an index out of range raises IndexError. The result is sharded as x, or as `out_sharding=` says, and each
                device updates its own shard.

                Raises:
                    IndexError: The index does not fit x.
                    ValueError: The values do not broadcast to x[index].
                    TypeError: The dtype of the result cannot be cast to the dtype of x.

                Example:
                    >>> import numpy as np, artifex_devices as ad
                    >>> x = ad.device_put(np.zeros(4))
                    >>> x.at[1:3].set(5.0).at[0].add(2.0).tolist()
                    [2.0, 5.0, 5.0, 0.0]

        """

    @property
    def committed(self) -> bool:
        """
        Whether the caller chose its device or sharding.
        """

    @property
    def device(self) -> Device | Sharding:
        """
        Device that holds it, or its sharding if it is on several devices.
        """

    @property
    def dtype(self) -> numpy.dtype[typing.Any]:
        """
        Element type (np.dtype).
        """

    @property
    def format(self) -> artifex_devices.layout.Format:
        """
        layout.Format of the order in which the elements of each shard are stored, and the sharding.
        """

    @property
    def global_shards(self) -> list[Shard]:
        """
        List of one Shard for each device of all processes, in mesh order; the `data` of other processes' shards is None.
        """

    @property
    def imag(self) -> Array:
        """
        np.imag: a copy of the imaginary parts.
        """

    @property
    def is_fully_addressable(self) -> bool:
        """
        Whether all its devices belong to this process.
        """

    @property
    def is_fully_replicated(self) -> bool:
        """
        Whether each device holds all of it.
        """

    @property
    def itemsize(self) -> int:
        """
        Number of bytes of one element.
        """

    @property
    def mT(self) -> Array:
        """
        The last two dimensions swapped.
        """

    @property
    def nbytes(self) -> int:
        """
        Number of bytes of the value, replicas not counted.
        """

    @property
    def ndim(self) -> int:
        """
        Number of dimensions.
        """

    @property
    def real(self) -> Array:
        """
        np.real: a copy of the real parts.
        """

    @property
    def shape(self) -> tuple[int, ...]:
        """
        Global shape (tuple of int).
        """

    @property
    def sharding(self) -> Sharding:
        """
        Its sharding: how it is placed on its devices.
        """

    @property
    def size(self) -> int:
        """
        Number of elements.
        """

    @property
    def weak_type(self) -> bool:
        """
        Always False: dtypes follow NumPy.
        """

class Shard:
    """
    One device's shard of an Array.
    """

    def __repr__(self) -> str: ...
    def _repr_html_(self) -> str | None: ...
    @property
    def data(self) -> Array | typing.Any:
        """
        The shard as an Array on its device, sharing the memory; deleting either deletes both. It is None for a shard of another process.
        """

    @property
    def device(self) -> Device:
        """
        Device that holds the shard.
        """

    @property
    def index(self) -> tuple[slice, ...]:
        """
        Position of the shard in the global array: a tuple of slices.
        """

    @property
    def replica_id(self) -> int:
        """
        Number of earlier devices that hold the same part.
        """

class Layout:
    """
    The order of an array's dimensions in memory, in XLA's terms.

    Args:
        minor_to_major: Dimension numbers, the fastest varying first: (1, 0) is row-major for two dimensions.

    Raises:
        TypeError: The argument is not a sequence of ints.
        ValueError: minor_to_major is not a permutation of 0 to n - 1.

    Example:
        >>> from artifex_devices.xla_client import Layout
        >>> Layout((0, 1)).minor_to_major(), Layout((0, 1)).to_string()
        ((0, 1), '{0,1}')
    """

    @staticmethod
    def parse(text: str) -> Layout:
        """
        Returns the Layout of XLA's text, such as '{1,0}'.

        Raises:
            ValueError: The text has another form. XLA's tiles, element bits, tails and memory spaces are refused, because Arrays
                do not have them.

        Example:
            >>> from artifex_devices.xla_client import Layout
            >>> Layout.parse("{1,0}").minor_to_major()
            (1, 0)
        """

    def __eq__(self, arg0: object) -> bool: ...
    def __hash__(self) -> int: ...
    def __init__(self, minor_to_major: collections.abc.Sequence[int]) -> None: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    def __repr__(self) -> str: ...
    def __str__(self) -> str: ...
    def element_size_in_bits(self) -> int:
        """
        Returns 0: elements are not packed.
        """

    def minor_to_major(self) -> tuple[int, ...]:
        """
        Returns the dimension numbers, the fastest varying first.
        """

    def tiling(self) -> list[typing.Any]:
        """
        Returns the tiles: none, as Arrays have none.
        """

    def to_string(self) -> str:
        """
        Returns XLA's text of the layout, such as '{1,0}'.
        """

class PjRtLayout:
    """
    A Layout as a client returns it.

    Args:
        layout: The Layout.

    Example:
        >>> from artifex_devices.xla_client import Layout, PjRtLayout
        >>> str(PjRtLayout(Layout((0, 1)))), PjRtLayout(Layout((0, 1)))._xla_layout().minor_to_major()
        ('{0,1}', (0, 1))
    """

    def __eq__(self, arg0: object) -> bool: ...
    def __hash__(self) -> int: ...
    def __init__(self, layout: Layout) -> None: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    def __repr__(self) -> str: ...
    def __str__(self) -> str: ...
    def _xla_layout(self) -> Layout:
        """
        Returns the Layout.
        """

class Rendezvous:
    """
    State machine that synchronizes the participants of a session in collectives.
    """

    def __init__(self, participants: int) -> None: ...
    def arrive(self, participant: int, group: int, signature: int) -> int:
        """
        Returns 0 if this participant is the last: it does the work and calls deliver(); 1 if it must wait; 2 if the session failed.
        """

    def cancel(self) -> None:
        """
        Ends all waits.
        """

    def deliver(
        self, participant: int, results: list[typing.Any], members: tuple[typing.Any, ...], made: list[typing.Any]
    ) -> None:
        """
        Stores the collective's results in `results`, at the positions of its members, and lets the members continue.

        Ctrl-C interrupts it before it has stored anything or after it has stored everything.
        """

    def finished(self, participant: int) -> None:
        """
        Reports that the participant's body returned.
        """

    def group(self, members: collections.abc.Sequence[int]) -> int:
        """
        Returns the number of a group of participants.
        """

    def may_go(self, participant: int) -> bool:
        """
        Returns whether a participant may stop waiting.
        """

    def raised(self, participant: int) -> None:
        """
        Reports that the participant's body raised.
        """

    def standings(self) -> list[tuple[typing.Any, ...]]:
        """
        Returns (state, group, signature, number of collectives) of each participant at the time of the failure, or now.
        """

    def wait(self, participant: int, seconds: float | None) -> bool:
        """
        Waits until may_go() is true. Returns False if the session failed or the timeout expired. Ctrl-C interrupts it.
        """

    @property
    def failure(self) -> str:
        """
        Kind of failure: "mismatch", "early exit", "deadlock", "deadline", "body", "cancelled", or "" for none.
        """

class Cluster:
    """
    An immutable description of chips to plan with, whether or not you have them.

    Create one by `artifex_devices.cluster`: `tpu`, `dgx`, `mi300x`, `from_toml`, `from_xml` or `this_machine`. Bandwidths are
    bytes/s in one direction.

    Example:
        >>> from artifex_devices import cluster
        >>> pod = cluster.tpu("v5p", (4, 4, 8), slices=2)
        >>> pod
        <Cluster 2 x TPU v5p 4x4x8: 256 tpu devices>
        >>> pod.devices()[130]
        TpuDevice(id=130, process_index=33, coords=(2,0,0), core_on_chip=0)
    """

    def __copy__(self) -> typing.Self: ...
    def __deepcopy__(self, memo: dict[int, typing.Any]) -> typing.Self: ...
    def __eq__(self, arg0: object) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    def __repr__(self) -> str: ...
    def _repr_html_(self) -> str | None: ...
    def describe(self) -> str:
        """
        Returns a text with one line for each part of the cluster, with the source of each number.
        """

    def devices(self) -> list[Device]:
        """
        Returns a new list of devices to plan with, in order of id. Placing data on them raises RuntimeError.

        A device has `coords` and `core_on_chip` (in a torus), `slice_index`, `process_index` (of its host), `device_kind`,
        `platform` and `memory_bytes`. Ids count slice by slice, in a slice chip by chip with x fastest, on a chip core by core. As
        long as one of them is alive, further calls return the same devices.
        """

    @property
    def chip_count(self) -> int:
        """
        Number of chips.
        """

    @property
    def device_count(self) -> int:
        """
        Number of devices.
        """

    @property
    def device_kind(self) -> str:
        """
        Name that its devices report.
        """

    @property
    def dims(self) -> tuple[int, ...]:
        """
        Number of chips of a slice along each axis of the torus; a single number without a torus.
        """

    @property
    def name(self) -> str:
        """
        Name of the cluster.
        """

    @property
    def network(self) -> str:
        """
        Network between the chips of a slice: "torus", "switch" or "full mesh".
        """

    @property
    def parts(self) -> artifex_devices._base.leaf_types.Record:
        """
        Parts of the cluster: dict. Numbers are (value, source), or None if not known.

        Sources are ids of the catalogue ("S5"), "measured", "model", "given", or the path of a file.

        Example:
            >>> from artifex_devices import cluster
            >>> cluster.tpu("v5e", (4, 4)).parts["bandwidth"]
            (45000000000.0, 'S2 S5')
        """

    @property
    def platform(self) -> str:
        """
        "tpu", "gpu" or "cpu".
        """

    @property
    def process_count(self) -> int:
        """
        Number of hosts, one process each.
        """

    @property
    def slices(self) -> int:
        """
        Number of slices or nodes.
        """

    @property
    def wraps(self) -> tuple[bool, ...]:
        """
        Whether the ends of each axis of the torus are joined; () without a torus.
        """

def accelerator_catalogue() -> list[artifex_devices._base.leaf_types.Record]:
    """
    Returns the accelerators as dicts, per chip; bytes, bytes/s, dense FLOP/s. Unpublished values are missing or None.
    """

def catalogue_sources() -> list[tuple[str, str, str]]:
    """
    Returns (id, title, address) of the catalogue's sources.
    """

def detect_hardware_type(platform: str, device_kind: str) -> str:
    """
    Returns the HardwareType value for a device's platform and kind; "unknown" for chips that are not in the table.
    """

def find_accelerator(by: str, text: str) -> str | None:
    """
    Returns the name of an accelerator in the catalogue, or None.

    Args:
        by: What `text` is: "name", "kind" (the device_kind), "pci" (such as "10de:2330") or "type" (a HardwareType's value).
        text: The text to look up.
    """

def get_topology_for_devices(devices: collections.abc.Sequence[Device]) -> DeviceTopology:
    """
    Returns the topology of all devices of the client that `devices` belong to, as in JAX.

    Raises:
        TypeError: `devices` is not a sequence of Device.
        ValueError: `devices` is empty, or they belong to different clients.
    """

def live_arrays() -> list[Array]:
    """
    Returns all Arrays that are alive and not deleted, oldest first; shards of an Array are not counted.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> x = ad.device_put(np.ones(3))
        >>> any(x is y for y in ad.live_arrays())
        True
    """

def machine_svg(machine: Machine, max_cells: int = 1024) -> str:
    """
    Returns a machine as a stand-alone SVG picture, coloured by CPU device. Omitted parts are mentioned.
    """

def mesh_svg(mesh: Mesh, max_cells: int = 1024) -> str:
    """
    Returns a mesh as a stand-alone SVG picture. Omitted parts are mentioned.
    """

def mesh_text(mesh: Mesh, max_cells: int = 256) -> str:
    """
    Returns a mesh as a plain-text table of device numbers. Omitted parts are mentioned.
    """

def placed_mesh_svg(mesh: Mesh, max_cells: int = 2048) -> str:
    """
    Returns a mesh of a cluster's devices on its torus or nodes as a stand-alone SVG picture. Omitted parts are mentioned.

    For each axis it shows the devices in their places, with one colour for each group along the axis and the position in the
    group. Raises ValueError for a mesh whose devices do not belong to a cluster.
    """

def sharding_svg(sharding: Sharding, shape: collections.abc.Sequence[int]) -> str:
    """
    Returns the part of an array of `shape` on each device as a stand-alone SVG picture. Raises as Sharding.shard_shape.
    """

def sharding_text(
    sharding: Sharding,
    shape: collections.abc.Sequence[int],
    max_columns: int = 80,
    min_width: int = 9,
    scale: float = 1.0,
) -> str:
    """
    Returns a drawing in characters of the part of an array of `shape` on each device. Raises as Sharding.shard_shape.
    """

__version__: str = "0.1.0"

class DuplicateSpecError(ValueError):
    """A mesh axis is used twice in one PartitionSpec. A ValueError here, unlike in JAX."""

class IndivisibleError(ValueError):
    """A dimension is not divisible by its mesh axes. A ValueError, as in JAX."""

class JaxRuntimeError(RuntimeError):
    """An error of the runtime, with the name that it has in JAX. A RuntimeError."""

class ResourceExhaustedError(MemoryError, JaxRuntimeError):
    """The memory of the machine or a device's limit is exhausted. Both a MemoryError and, as in JAX, a JaxRuntimeError; its text begins with RESOURCE_EXHAUSTED."""

class ShardingTypeError(ValueError):
    """Operands are sharded differently over Explicit mesh axes. A ValueError here, unlike in JAX."""

class TransferGuardError(JaxRuntimeError):
    """A transfer guard refused a transfer. A JaxRuntimeError, as in JAX."""
