# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_stubs.py --generate from the built extension.
"""
The compiled core of artifex_devices. Use the names that the package re-exports.
"""

import collections.abc
import enum
import typing

import typing_extensions

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
    "batch_size_advice",
    "catalogue_sources",
    "critical_batch",
    "detect_hardware_type",
    "exact_critical_batch",
    "find_accelerator",
    "get_topology_for_devices",
    "live_arrays",
    "machine_svg",
    "max_memory_batch_size",
    "mesh_svg",
    "mesh_text",
    "placed_mesh_svg",
    "sharding_svg",
    "sharding_text",
    "validate_batch_size",
]

class Machine:
    """
    A machine as hwloc describes it.

    The live one, one read from an hwloc XML file, or a made-up one. Binding acts on the live machine only.

    Example:
        >>> from artifex_devices import Machine
        >>> machine = Machine.from_synthetic("pack:2 numa:1 core:4 pu:2")
        >>> [domain["cpus"] for domain in machine.cpu_domains]
        ['0-7', '8-15']
    """

    @staticmethod
    def from_synthetic(description: str) -> Machine:
        """
        Makes a machine from hwloc's synthetic form, such as "pack:2 numa:2 core:4 pu:2".

        Raises:
            ValueError: the text is malformed or describes more than 4,096 processing units.
        """

    @staticmethod
    def from_xml(path: str) -> Machine:
        """
        Reads an hwloc XML file (format 1 or 2).

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is no hwloc XML, is larger than 64 MiB, or declares entities.
        """

    @staticmethod
    def live() -> Machine:
        """
        The machine of this process, less what affinity and cgroups forbid.
        """

    def __repr__(self) -> str: ...
    def to_xml(self) -> str:
        """
        The machine as hwloc XML text, format 2.
        """

    @property
    def counts(self) -> dict[typing.Any, typing.Any]:
        """
        Number of objects by type (dict), as hwloc counts them.
        """

    @property
    def cpu_domains(self) -> list[typing.Any]:
        """
        Natural CPU devices (list of dicts): each minimal set of CPUs that has a NUMA node.
        """

    @property
    def is_live(self) -> bool:
        """
        Whether this is the machine that the process runs on.
        """

    @property
    def missing_facts(self) -> list[typing.Any]:
        """
        What the system does not show to this process (list of dicts); empty where it shows all.

        Keys: fact, reason (which file, and why), assumed (what is taken instead). Of the live machine, read anew at each call.
        """

    @property
    def numa_nodes(self) -> list[typing.Any]:
        """
        NUMA nodes (list of dicts); memory in bytes.
        """

    @property
    def objects(self) -> list[typing.Any]:
        """
        Every object that hwloc knows (list of dicts), parents before their children.

        Keys: depth (0: the machine), type ("Package", "NUMANode", "L3Cache", "Core", "PU", "PCIDev", "OSDev", ...), logical,
        os_index, name, subtype, model, pci, cpus, bytes (memory of a node, size of a cache); None where there is none.
        """

    @property
    def source(self) -> str:
        """
        "live", the path, or the synthetic description.
        """

    @property
    def usable_cpus(self) -> int:
        """
        CPUs that the process may keep busy: affinity and cgroup quota counted.
        """

    @property
    def usable_memory_bytes(self) -> int:
        """
        Bytes that the process may use: cgroup and address-space limits counted.
        """

class _WorldFrame:
    pass

class Client:
    """
    Devices that belong together: a world, or what `xla_client.make_cpu_client` makes.

    Devices of different clients do not mix in one Array, Mesh or operation. A client lives as long as anything on its devices.

    Example:
        >>> from artifex_devices import xla_client
        >>> with xla_client.make_cpu_client(num_devices=2) as client:
        ...     client.devices(), client.platform
        ([CpuDevice(id=0), CpuDevice(id=1)], 'cpu')
    """

    def __enter__(self) -> typing.Any: ...
    def __exit__(self, *args: typing.Any) -> None: ...
    def __repr__(self) -> str: ...
    def buffer_from_pyval(
        self,
        argument: typing.Any,
        device: typing.Any = None,
        force_copy: typing.Any = False,
        host_buffer_semantics: typing.Any = None,
    ) -> typing.Any:
        """
        Places one array or number on one device.

        The source has been read when it returns, but for HostBufferSemantics.ZERO_COPY.

        Args:
            argument: ndarray of any strides, number, or Array; no tree.
            device: One of this client's devices; None for its first.
            force_copy: Copy in any case, also where the semantics allow to share memory.
            host_buffer_semantics: A HostBufferSemantics: what the library may do with the memory of `argument`. None is
                IMMUTABLE_ONLY_DURING_CALL.

        Returns:
            Array on that device, committed.

        Raises:
            TypeError: an argument is of another type.
            ValueError: the device belongs to another client.
            ResourceExhaustedError: out of memory (a MemoryError and a RuntimeError).
            RuntimeError: the client was closed.

        Example:
            >>> import numpy as np
            >>> from artifex_devices import xla_client
            >>> client = xla_client.make_cpu_client(num_devices=2)
            >>> client.buffer_from_pyval(np.arange(3), device=client.devices()[1]).device
            CpuDevice(id=1)
        """

    def close(self) -> None:
        """
        Deletes its Arrays, and refuses to place others; twice is fine.

        Memory goes back when the last view of it is gone. Arrays that other threads make at this moment may stay.

        Raises:
            RuntimeError: it is an open world: the base client, or what a `simulate` block has opened.
        """

    def defragment(self) -> None:
        """
        Gives freed memory that is kept for reuse back to the system, that of other clients too. Arrays do not move.
        """

    def device_count(self) -> int:
        """
        How many devices there are, in all processes.
        """

    def device_from_local_hardware_id(self, local_hardware_id: int) -> Device:
        """
        The device of this process with a number; RuntimeError where there is none.
        """

    def devices(self) -> list[typing.Any]:
        """
        All devices, in order of id: a new list.
        """

    def get_default_layout(self, dtype: typing.Any, shard_shape: typing.Any, device: typing.Any) -> typing.Any:
        """
        The PjRtLayout in which a part of an Array is stored where no layout is asked for: row-major.

        Args:
            dtype: np.dtype, or what makes one.
            shard_shape: Sequence of int: the shape of the part.
            device: One of this client's devices.

        Raises:
            TypeError: an argument is of another type.
            ValueError: a negative size, or a device of another client.
        """

    def heap_profile(self) -> bytes:
        """
        What its Arrays hold, as a pprof profile: bytes in the protocol buffer of google/pprof, not compressed.

        One sample for each device and line of the program that made Arrays, with their number and logical bytes of all memory kinds
        (counted); lines are known for Arrays that were made while `config.trace_allocations` was set.
        """

    def host_id(self) -> int:
        """
        The older name of process_index.
        """

    def live_arrays(self) -> list[typing.Any]:
        """
        The Arrays on its devices that are alive and not deleted, oldest first.

        Example:
            >>> import numpy as np
            >>> from artifex_devices import xla_client
            >>> with xla_client.make_cpu_client(num_devices=1) as client:
            ...     x = client.buffer_from_pyval(np.arange(3))
            ...     client.live_arrays()
            [Array([0, 1, 2], dtype=int64)]
        """

    def live_buffers(self) -> list[typing.Any]:
        """
        The older name of live_arrays.
        """

    def local_device_count(self) -> int:
        """
        How many devices this process has.
        """

    def local_devices(self, process_index: int | None = None) -> list[typing.Any]:
        """
        The devices of one process, this one unless another is named, in order of id: a new list.

        Raises:
            ValueError: there is no such process.
        """

    def process_count(self) -> int:
        """
        How many processes share the world.
        """

    def process_host(self, process_index: int) -> str:
        """
        The name of the machine that a process runs on, as it told the others; "" in a world that one process has alone.

        Raises:
            ValueError: there is no such process.
        """

    def process_index(self) -> int:
        """
        Number of this process.
        """

    @property
    def _uid(self) -> int: ...
    @property
    def allocator_config(self) -> typing.Any:
        """
        The GpuAllocatorConfig that it was made with, or None.
        """

    @property
    def cluster(self) -> typing.Any:
        """
        The Cluster that its devices are of; None for those of a machine.
        """

    @property
    def is_closed(self) -> bool:
        """
        Whether close() was called.
        """

    @property
    def is_compile_only(self) -> bool:
        """
        Whether its devices have no memory.
        """

    @property
    def machine_source(self) -> str:
        """
        "live", the path of an hwloc XML file, or a synthetic description.
        """

    @property
    def platform(self) -> str:
        """
        "cpu".
        """

    @property
    def platform_version(self) -> str:
        """
        Versions of the library, its compiler and what it is built on, as text.
        """

class _WorldScope:
    """
    What `simulate` is made of: opens a world and returns from it.
    """

    def __enter__(self) -> typing.Any:
        """
        Makes the world and returns its client.
        """

    def __exit__(self, kind: typing.Any, error: typing.Any, trace: typing.Any) -> None:
        """
        Returns to the world around this one.
        """

    def __init__(self, make: typing.Any, all_threads: bool) -> None: ...

class Device:
    """
    One device: on CPU a set of cores and the memory near them.

    Two Devices are equal when they are the same device of the same world. A Device is callable and returns itself, so that
    `array.device` and `array.device()` both give it.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(2):
        ...     ad.devices()
        [CpuDevice(id=0), CpuDevice(id=1)]
    """

    def __call__(self) -> typing.Any:
        """
        The device itself.
        """

    def __copy__(self) -> typing.Any: ...
    def __deepcopy__(self, memo: typing.Any) -> typing.Any: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    def __repr__(self) -> str: ...
    def __str__(self) -> str: ...
    def addressable_memories(self) -> list[typing.Any]:
        """
        Its memories of all kinds, the default one first.
        """

    def default_memory(self) -> Memory:
        """
        The memory that arrays are placed in when no kind is asked for.
        """

    def get_stream_for_external_ready_events(self) -> int:
        """
        The stream that tells when data is there; a CPU has none.

        Raises:
            RuntimeError: always.
        """

    def live_buffers(self) -> list[typing.Any]:
        """
        What Arrays hold on this device, oldest Array first.

        Returns:
            list of Array, each on this device alone: an Array that lies here only, or the part of one that lies on several. Deleting
            a part deletes its Array.

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
        Its memory of one kind.

        Args:
            kind: "device" (also "default"), "pinned_host" (also "pinned") or "unpinned_host".

        Raises:
            RuntimeError: Another kind, as in JAX.
        """

    def memory_stats(self) -> dict[typing.Any, typing.Any]:
        """
        Memory of the device in bytes, never None.

        `bytes_in_use`, `peak_bytes_in_use`, `bytes_limit`, `bytes_reserved`, `largest_alloc_size` and `num_allocs` count what arrays
        hold here in the kind `device`, each replica in full; without a limit, `bytes_limit` is `memory_bytes`. `pool_*` are the
        physical bytes of the NUMA node, which its devices share.

        Returns:
            dict of str to int. Source: counted by the library.

        Raises:
            RuntimeError: the device belongs to another process.
        """

    def set_bytes_limit(self, limit: int | None) -> None:
        """
        Sets how many bytes arrays may hold on this device; None removes the limit.

        Beyond it, placing raises ResourceExhaustedError (a MemoryError and a RuntimeError). What is in use stays.

        Raises:
            TypeError: no int, or a bool.
            ValueError: a negative number, or one beyond 64 bits.
            RuntimeError: the device belongs to another process.
        """

    @property
    def bytes_limit(self) -> int | None:
        """
        Bytes that arrays may hold on it, as set_bytes_limit or simulate set it; None for no limit.
        """

    @property
    def client(self) -> Client:
        """
        The world that the device belongs to.
        """

    @property
    def coords(self) -> tuple[int, int, int]:
        """
        Where its chip is in the torus, (x, y, z). Only devices of a cluster with a torus have it (AttributeError).
        """

    @property
    def core_on_chip(self) -> int:
        """
        Its number on its chip. Only devices of a cluster with a torus have it (AttributeError).
        """

    @property
    def cpuset(self) -> str:
        """
        CPUs that the device owns, by operating-system number: "0-3,8"; "" for a cluster's.
        """

    @property
    def device_kind(self) -> str:
        """
        What the hardware calls itself: "cpu", "TPU v5p".
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
        Bytes: the memory of its NUMA node, or of the cgroup, divided by the devices on it; in a cluster the chip's memory, 0 where it is not known.
        """

    @property
    def numa_nodes(self) -> list[typing.Any]:
        """
        NUMA nodes of its memory (logical numbers), the one that it allocates from first; none for a cluster's.
        """

    @property
    def platform(self) -> str:
        """
        "cpu"; of a cluster's devices also "tpu" or "gpu".
        """

    @property
    def process_index(self) -> int:
        """
        Number of the process that owns the device.
        """

    @property
    def slice_index(self) -> int:
        """
        Number of its slice, or of its domain of switches. Only devices of a cluster have it (AttributeError).
        """

class Memory:
    """
    One kind of memory as one device sees it; from `Device.memory(kind)`.

    The kinds of a CPU device: `device`, pages near its cores and advised to be huge; `pinned_host`, the same locked in RAM as
    far as RLIMIT_MEMLOCK lets this process; `unpinned_host`, ordinary pages. Arrays are placed in one by a sharding with that
    `memory_kind`. Two Memories are equal when they are the same kind of the same device.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(2):
        ...     ad.devices()[1].addressable_memories()
        [CPU_DEVICE_3, PINNED_HOST_4, UNPINNED_HOST_5]
    """

    def __copy__(self) -> typing.Any: ...
    def __deepcopy__(self, memo: typing.Any) -> typing.Any: ...
    def __eq__(self, arg0: typing.Any) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    def __repr__(self) -> str: ...
    def __str__(self) -> str: ...
    def addressable_by_devices(self) -> list[typing.Any]:
        """
        The devices that see it: the one that it was asked of, as in JAX.
        """

    def stats(self) -> dict[typing.Any, typing.Any]:
        """
        What lies in this memory, in bytes.

        `bytes_in_use`, `peak_bytes_in_use`, `bytes_reserved`, `largest_alloc_size` and `num_allocs` count what arrays of this kind
        hold on this device, each replica in full; `bytes_limit` is the device's limit, of a host kind its share of the machine's
        memory: limits of a device are for its kind `device` alone. `pool_*` are the physical bytes of this kind near the device's
        NUMA node, which its devices share: of them `pool_bytes_locked` are locked in RAM, and `pool_bytes_not_locked` are in use
        but could not be. `lock_limit_bytes` is RLIMIT_MEMLOCK, -1 for none; it does not hold for privileged processes.

        Returns:
            dict of str to int. Source: counted by the library.
        """

    @property
    def kind(self) -> str:
        """
        "device", "pinned_host" or "unpinned_host".
        """

    @property
    def platform(self) -> str:
        """
        "cpu".
        """

    @property
    def process_index(self) -> int:
        """
        Number of the process that owns it.
        """

class DeviceList:
    """
    Devices of one client in an order that counts. Immutable and hashable.

    Args:
        device_assignment: tuple or list of Device, or a DeviceList.

    Raises:
        TypeError: something in it is no Device.
        ValueError: it is empty, a device comes twice, or the devices are of different clients.

    Example:
        >>> from artifex_devices import xla_client
        >>> client = xla_client.make_cpu_client(num_devices=4)
        >>> devices = xla_client.DeviceList(tuple(client.devices()))
        >>> len(devices), devices[-1], devices.memory_kinds
        (4, CpuDevice(id=3), ('device', 'pinned_host', 'unpinned_host'))
    """

    def __contains__(self, arg0: typing.Any) -> bool: ...
    def __copy__(self) -> typing.Any: ...
    def __deepcopy__(self, memo: typing.Any) -> typing.Any: ...
    def __eq__(self, arg0: typing.Any) -> bool: ...
    def __getitem__(self, index: typing.Any) -> typing.Any:
        """
        A Device, or a tuple of them for a slice.
        """

    def __hash__(self) -> int: ...
    def __init__(self, device_assignment: typing.Any) -> None: ...
    def __iter__(self) -> collections.abc.Iterator[typing.Any]: ...
    def __len__(self) -> int: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    def __repr__(self) -> str: ...
    @property
    def addressable_device_list(self) -> typing.Any:
        """
        Those that belong to this process, as a DeviceList; the list itself where that is all. ValueError where it is none.
        """

    @property
    def default_memory_kind(self) -> str:
        """
        The kind of memory that data goes to where none is named: "device".
        """

    @property
    def device_kind(self) -> str:
        """
        What the hardware calls itself; "cpu".
        """

    @property
    def is_fully_addressable(self) -> bool:
        """
        Whether all of them belong to this process.
        """

    @property
    def memory_kinds(self) -> tuple[typing.Any, ...]:
        """
        The kinds of memory that all of them see: tuple of str.
        """

    @property
    def process_indices(self) -> set[typing.Any]:
        """
        Numbers of the processes that own them: set of int.
        """

class DeviceAssignment:
    """
    Which device runs which replica of which computation.

    A value: equal assignments are equal, hash alike and have equal bytes, which are those of XLA's DeviceAssignmentProto.

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
    def create(array: typing.Any) -> DeviceAssignment:
        """
        Makes an assignment.

        Args:
            array: Device ordinals, shape (replicas, computations): integers from 0, or floats and bools that are such integers.

        Raises:
            TypeError: `array` is no array, or not of 2 dimensions, or of another dtype.
            ValueError: It is empty, or numbers are negative, there twice, not whole, or beyond 64 bits.
        """

    @staticmethod
    def deserialize(data: typing.Any) -> DeviceAssignment:
        """
        Reads the bytes of an XLA DeviceAssignmentProto.

        Raises:
            TypeError: `data` is no bytes-like object.
            ValueError: The bytes are no such message, or the assignment is none that `create` would make.
        """

    def __eq__(self, arg0: typing.Any) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    def __repr__(self) -> str: ...
    def computation_count(self) -> int:
        """
        Number of computations of each replica.
        """

    def device_ordinal(self, replica: int, computation: int) -> int:
        """
        The device of one replica of one computation; IndexError where there is none.
        """

    def logical_ids_for_device(self, device_ordinal: int) -> tuple[int, int]:
        """
        The (replica, computation) that a device runs; ValueError where it runs none.
        """

    def replica_count(self) -> int:
        """
        Number of replicas.
        """

    def serialize(self) -> bytes:
        """
        The bytes of XLA's DeviceAssignmentProto.
        """

    @property
    def device_ordinals(self) -> typing.Any:
        """
        A new ndarray of int64, shape (replicas, computations), as given to `create`.
        """

class DeviceTopology:
    """
    The devices of a client and the machine that they lie on, as a value.

    It can be kept or sent as bytes, read elsewhere, and planned with there. Topologies with equal bytes are equal.

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
    def deserialize(data: typing.Any) -> DeviceTopology:
        """
        Reads what `serialize` returned, here or elsewhere.

        What a newer version added is skipped.

        Raises:
            TypeError: `data` is no bytes-like object.
            ValueError: The bytes are damaged, of another major version, or no topology.
        """

    def __eq__(self, arg0: typing.Any) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    def __repr__(self) -> str: ...
    def _make_compile_only_devices(self) -> list[typing.Any]:
        """
        New devices like these, to plan with.

        Returns:
            A list of Device of a client of its own: meshes and shardings work, placing raises RuntimeError.

        Raises:
            RuntimeError: The devices are of a platform or kind that this version cannot make.
        """

    def fingerprint(self) -> int:
        """
        64 bits that equal topologies share, in all processes.
        """

    def serialize(self) -> bytes:
        """
        The topology as bytes, a protobuf message: docs/formats/README.md. Equal topologies give equal bytes.
        """

    @property
    def device_descriptions(self) -> list[typing.Any]:
        """
        A dict a device: id, kind, process_index, cpu_domain, cpuset, numa_nodes, memory_bytes, memory_kinds.
        """

    @property
    def machine(self) -> Machine:
        """
        The machine: its counts, NUMA nodes and CPU domains, without hwloc's tree (to_xml raises RuntimeError).
        """

    @property
    def platform(self) -> str:
        """
        "cpu".
        """

    @property
    def platform_version(self) -> str:
        """
        What the platform of the described devices said of itself.
        """

class AxisType(enum.Enum):
    """
    How sharded code treats a mesh axis. Kept, compared and shown as in JAX: Auto, Explicit, Manual.
    """

    Auto = 0
    Explicit = 1
    Manual = 2

    def __reduce_ex__(self, protocol: typing.Any) -> tuple[typing.Any, ...]: ...
    def __repr__(self) -> str: ...

class _Unconstrained:
    """
    The type of PartitionSpec.UNCONSTRAINED.
    """

    def __reduce__(self) -> str: ...
    def __repr__(self) -> str: ...

class PartitionSpec:
    """
    Which mesh axes cut which dimension of an array: one entry a dimension.

    An entry is None (not cut), an axis name, a tuple of names (the first is the major one) or UNCONSTRAINED. Dimensions
    beyond the entries are not cut. It is no tuple, and P('x') and P('x', None) are unequal, as in JAX.

    Raises:
        TypeError: a name is not hashable.
        ValueError: None stands inside a tuple.

    Example:
        >>> from artifex_devices.sharding import PartitionSpec as P
        >>> P("data", None, ("x", "y"))
        P('data', None, ('x', 'y'))
        >>> P("data") + P("model")
        P('data', 'model')
    """

    UNCONSTRAINED: typing.ClassVar[_Unconstrained]

    def __add__(self, arg0: typing.Any) -> typing.Any: ...
    def __contains__(self, arg0: typing.Any) -> bool: ...
    def __eq__(self, other: object) -> bool: ...
    def __getitem__(self, index: typing.Any) -> typing.Any: ...
    def __hash__(self) -> int: ...
    def __init__(self, *args: typing.Any) -> None: ...
    def __iter__(self) -> collections.abc.Iterator[typing.Any]: ...
    def __len__(self) -> int: ...
    def __radd__(self, arg0: typing.Any) -> typing.Any: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    def __repr__(self) -> str: ...
    def count(self, value: typing.Any) -> typing.Any:
        """
        How many entries equal `value`.
        """

    def index(self, value: typing.Any) -> typing.Any:
        """
        First position of an entry; ValueError if it is not there.
        """

    def update(self, partitions: collections.abc.Iterable[typing.Any] | None = None) -> PartitionSpec:
        """
        A PartitionSpec with other entries; without them itself.

            Raises:
                TypeError: partitions cannot be iterated over.

            Example:
                >>> import artifex_devices as ad
                >>> ad.P("x").update(partitions=("y", None))
                P('y', None)

        """

    @property
    def partitions(self) -> tuple[typing.Any, ...]:
        """
        The entries as a tuple.
        """

class AbstractMesh:
    """
    Names and sizes of mesh axes, without devices.

    Args:
        axis_sizes: one int an axis, at least 1.
        axis_names: one hashable an axis, all different.
        axis_types: AxisType for all or one an axis; default Auto.

    Raises:
        ValueError: lists of unequal length, a repeated name, a size below 1, a product beyond 64 bits.

    Example:
        >>> from artifex_devices.sharding import AbstractMesh
        >>> AbstractMesh((2, 4), ("x", "y")).size
        8
    """

    def __eq__(self, arg0: typing.Any) -> bool: ...
    def __hash__(self) -> int: ...
    def __init__(self, axis_sizes: typing.Any, axis_names: typing.Any, axis_types: typing.Any = None) -> None: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    def __repr__(self) -> str: ...
    def update(
        self, axis_sizes: typing.Any = None, axis_names: typing.Any = None, axis_types: typing.Any = None
    ) -> AbstractMesh:
        """
        A mesh with other sizes, names or axis types; what is left out stays.

            Raises:
                TypeError, ValueError: As AbstractMesh.

            Example:
                >>> from artifex_devices.sharding import AbstractMesh
                >>> AbstractMesh((2, 4), ("x", "y")).update(axis_sizes=(4, 4)).size
                16

        """

    def update_axis_types(
        self, name_to_type: collections.abc.Mapping[collections.abc.Hashable, AxisType]
    ) -> AbstractMesh:
        """
        A mesh in which the axes that `name_to_type` names have other types.

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
    def axis_names(self) -> tuple[typing.Any, ...]:
        """
        Names, major to minor (tuple).
        """

    @property
    def axis_sizes(self) -> tuple[typing.Any, ...]:
        """
        Sizes, major to minor (tuple of int).
        """

    @property
    def axis_types(self) -> tuple[typing.Any, ...]:
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
    def shape(self) -> typing.Any:
        """
        OrderedDict of name to size.
        """

    @property
    def shape_tuple(self) -> tuple[typing.Any, ...]:
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
    Devices laid out over named axes.

    Equal meshes that are alive at the same time are one object. Axis types are Auto unless given; `make_mesh` gives Explicit.

    Args:
        devices: ndarray or nested lists of Device, one dimension an axis.
        axis_names: one hashable a dimension, all different; one str for a single axis.
        axis_types: one AxisType for all axes, or a tuple of them.

    Raises:
        TypeError: something in `devices` is no Device.
        ValueError: names and dimensions do not fit, a name or a device comes twice, devices of two worlds.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(8):
        ...     print(ad.Mesh(np.array(ad.devices()).reshape(2, 4), ("data", "model")))
        Mesh('data': 2, 'model': 4, axis_types=(Auto, Auto))
    """

    @classmethod
    def __new__(
        cls: typing.Any, devices: typing.Any, axis_names: typing.Any, axis_types: typing.Any = None
    ) -> Mesh: ...
    def __copy__(self) -> typing.Any: ...
    def __deepcopy__(self, memo: typing.Any) -> typing.Any: ...
    def __enter__(self) -> typing.Any: ...
    def __eq__(self, other: object) -> bool: ...
    def __exit__(self, *args: typing.Any) -> None: ...
    def __hash__(self) -> int: ...
    def __init__(self, devices: typing.Any, axis_names: typing.Any, axis_types: typing.Any = None) -> None: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    def __repr__(self) -> str: ...
    def __setattr__(self, arg0: str, arg1: typing.Any) -> None: ...
    def __str__(self) -> str: ...
    def _repr_html_(self) -> typing.Any: ...
    def update(self, devices: typing.Any = None, axis_names: typing.Any = None, axis_types: typing.Any = None) -> Mesh:
        """
        A mesh with other devices, names or axis types; what is left out stays.

            Raises:
                TypeError, ValueError: As Mesh.

            Example:
                >>> import artifex_devices as ad
                >>> with ad.simulate(8):
                ...     mesh = ad.make_mesh((8,), ("x",))
                ...     mesh.update(axis_names=("data",)).axis_names
                ('data',)

        """

    @property
    def _flat_devices_tuple(self) -> tuple[typing.Any, ...]:
        """
        All devices in the mesh's order.
        """

    @property
    def _internal_device_list(self) -> DeviceList:
        """
        All devices in the mesh's order, as a DeviceList.
        """

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """
        The axes without the devices.
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
    def axis_names(self) -> tuple[typing.Any, ...]:
        """
        Names, major to minor (tuple).
        """

    @property
    def axis_sizes(self) -> tuple[typing.Any, ...]:
        """
        Sizes, major to minor (tuple of int).
        """

    @property
    def axis_types(self) -> tuple[typing.Any, ...]:
        """
        AxisType of each axis (tuple).
        """

    @property
    def device_ids(self) -> typing.Any:
        """
        ndarray of the devices' ids in the mesh's shape.
        """

    @property
    def devices(self) -> typing.Any:
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
        Whether other processes than this one take part.
        """

    @property
    def local_devices(self) -> list[typing.Any]:
        """
        Devices of this process (list).
        """

    @property
    def local_mesh(self) -> typing.Any:
        """
        The box of this process's devices; in one process the mesh itself. ValueError where they are no box.
        """

    @property
    def manual_axes(self) -> tuple[collections.abc.Hashable, ...]:
        """
        Names of the axes of type Manual (tuple).
        """

    @property
    def shape(self) -> typing.Any:
        """
        OrderedDict of axis name to size.
        """

    @property
    def shape_tuple(self) -> tuple[typing.Any, ...]:
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
    How arrays of any shape lie on devices: the base of NamedSharding and
    SingleDeviceSharding. Immutable and hashable.
    """

    def __copy__(self) -> typing.Any: ...
    def __deepcopy__(self, memo: typing.Any) -> typing.Any: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...
    def __repr__(self) -> str: ...
    def _repr_html_(self) -> typing.Any: ...
    def _same_devices(self, other: Sharding) -> bool:
        """
        Whether the same devices come in the same order, in the same kind of memory.
        """

    def addressable_devices_indices_map(self, global_shape: typing.Any) -> dict[typing.Any, typing.Any]:
        """
        devices_indices_map of the devices of this process.
        """

    def check_compatible_aval(self, aval_shape: collections.abc.Sequence[int]) -> None:
        """
        Checks that a value of this shape has a dimension for each entry of the spec.

            Raises:
                ValueError: It has too few.

            Example:
                >>> import artifex_devices as ad
                >>> with ad.simulate(2):
                ...     ad.NamedSharding(ad.make_mesh((2,), ("x",)), ad.P("x")).check_compatible_aval((4, 3))

        """

    def device_index(self, device: typing.Any, global_shape: typing.Any) -> tuple[typing.Any, ...]:
        """
        Which part of an array of `global_shape` one device holds: devices_indices_map(global_shape)[device].

        Takes the same time on any number of devices.

        Returns:
            tuple of slices.

        Raises:
            TypeError: `device` is no Device.
            ValueError: the sharding does not lie on it; and as shard_shape.
        """

    def devices_indices_map(self, global_shape: typing.Any) -> dict[typing.Any, typing.Any]:
        """
        Which part of an array of `global_shape` each device holds.

        Returns:
            dict of Device to a tuple of slices, in mesh order; a dimension that is not cut is slice(None).

        Raises:
            as shard_shape.
        """

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """
        Whether the same devices hold the same parts of every array of rank `ndim`; names do not count.
        """

    def shard_shape(self, global_shape: typing.Any) -> tuple[typing.Any, ...]:
        """
        The shape of each device's part of an array of `global_shape`.

        With uneven="last-short" that of the first part, which is the biggest.

        Raises:
            IndivisibleError: a dimension is not divisible by its axes (a ValueError).
            ValueError: the spec has more entries than the shape dimensions.
            TypeError: a size is no int.
        """

    def with_memory_kind(self, kind: str) -> Sharding:
        """
        The same sharding in another kind of memory; ValueError for a kind that there is not.
        """

    @property
    def _device_assignment(self) -> tuple[typing.Any, ...]:
        """
        All devices in mesh order.
        """

    @property
    def _internal_device_list(self) -> DeviceList:
        """
        All devices in mesh order, as a DeviceList.
        """

    @property
    def addressable_devices(self) -> set[typing.Any]:
        """
        Set of the devices of this process.
        """

    @property
    def device_set(self) -> set[typing.Any]:
        """
        Set of all devices.
        """

    @property
    def has_addressable_devices(self) -> bool:
        """
        Whether some of them are of this process.
        """

    @property
    def is_fully_addressable(self) -> bool:
        """
        Whether all devices belong to this process.
        """

    @property
    def is_fully_replicated(self) -> bool:
        """
        Whether each device holds all of it.
        """

    @property
    def memory_kind(self) -> str | None:
        """
        "device", "pinned_host" or "unpinned_host"; None on an AbstractMesh unless it was given.
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
        mesh: a Mesh; or an AbstractMesh, which tells shard shapes but has no devices to place data on.
        spec: PartitionSpec; axes that it does not name replicate.
        memory_kind: None or "device", "pinned_host", "unpinned_host".
        uneven: None refuses dimensions that do not divide (as JAX); "last-short" cuts them into chunks of ceil(size / parts),
            the last ones shorter or empty.

    Raises:
        ValueError: an axis that the mesh does not have; an unknown memory kind; an empty mesh.
        DuplicateSpecError: an axis used twice (a ValueError).

    Example:
        >>> import artifex_devices as ad
        >>> from artifex_devices.sharding import NamedSharding, PartitionSpec as P
        >>> with ad.simulate(8):
        ...     mesh = ad.make_mesh((2, 4), ("data", "model"))
        ...     NamedSharding(mesh, P("data", "model")).shard_shape((8, 16))
        (4, 4)
    """

    def __init__(
        self, mesh: Mesh | AbstractMesh, spec: typing.Any, *, memory_kind: str | None = None, uneven: str | None = None
    ) -> None: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    def update(self, **changes: typing.Any) -> NamedSharding:
        """
        A NamedSharding with another mesh, spec, memory_kind or uneven; what is left out stays.

            Args:
                self: The sharding.
                **changes: `mesh`, `spec` (a PartitionSpec or its entries), `memory_kind`, `uneven`.

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
        The Mesh, or the AbstractMesh.
        """

    @property
    def spec(self) -> PartitionSpec:
        """
        The PartitionSpec.
        """

    @property
    def uneven(self) -> str | None:
        """
        None or "last-short".
        """

class SingleDeviceSharding(Sharding):
    """
    All of an array on one device.

    Raises:
        TypeError: `device` is no Device.

    Example:
        >>> import artifex_devices as ad
        >>> ad.sharding.SingleDeviceSharding(ad.devices()[0]).num_devices
        1
    """

    def __init__(self, device: typing.Any, *, memory_kind: str | None = None) -> None: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    @property
    def _device(self) -> Device: ...

class Array:
    """
    An immutable array that lies on devices.

    Made by `device_put` and its family, never directly. `np.asarray(x)` gives its value as a read-only ndarray, without a
    copy where one buffer holds it all.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> x = ad.device_put(np.arange(4.0))
        >>> x.shape, x.dtype, x.device == ad.devices()[0]
        ((4,), dtype('float64'), True)
    """

    __hash__: typing.ClassVar[None] = None  # type: ignore[assignment]

    def __abs__(self) -> typing.Any:
        """
        np.absolute, element by element.
        """

    def __add__(self, other: typing.Any) -> typing.Any:
        """
        np.add, element by element.
        """

    def __and__(self, other: typing.Any) -> typing.Any:
        """
        np.bitwise_and, element by element.
        """

    def __array__(self, dtype: typing.Any = None, copy: typing.Any = None) -> typing.Any: ...
    def __array_function__(
        self, function: typing.Any, types: typing.Any, args: typing.Any, kwargs: typing.Any
    ) -> typing.Any:
        """
        NumPy functions: those of the guide's table; others raise TypeError with the explicit way.
        """

    def __array_namespace__(self, *, api_version: str | None = None) -> typing.Any:
        """
        The module `artifex_devices.array_api`: the Array API standard's functions for Arrays.

            Raises:
                ValueError: The version is not known.

        """

    def __array_ufunc__(self, ufunc: typing.Any, method: str, *inputs: typing.Any, **options: typing.Any) -> typing.Any:
        """
        Ufuncs: each shard is worked on where it lies (guide: NumPy on Arrays).
        """

    def __bool__(self) -> bool: ...
    def __complex__(self) -> typing.Any: ...
    def __contains__(self, value: typing.Any) -> bool:
        """
        Whether an element equals the value.
        """

    def __copy__(self) -> Array: ...
    def __deepcopy__(self, memo: typing.Any) -> Array: ...
    def __delitem__(self, index: typing.Any) -> typing.NoReturn:
        """
        Raises TypeError: Arrays do not change.
        """

    def __divmod__(self, other: typing.Any) -> typing.Any:
        """
        np.divmod, element by element.
        """

    def __dlpack__(
        self,
        *,
        stream: typing.Any = None,
        max_version: typing.Any = None,
        dl_device: typing.Any = None,
        copy: typing.Any = None,
    ) -> typing_extensions.CapsuleType:
        """
        A DLPack capsule on the memory of an Array on one device, without a copy unless copy=True.

        The consumer's view keeps the memory, also past delete(). For consumers that know DLPack 1.0 (max_version) it is marked
        read-only; older ones cannot be told, and must not write.

        Raises:
            BufferError: the Array lies on several devices; another device than the host is asked for.
            RuntimeError: the Array was deleted; a stream is given.
            TypeError: max_version or dl_device is no pair of ints.
        """

    def __dlpack_device__(self) -> tuple[typing.Any, ...]:
        """
        (1, 0): the host's memory, in DLPack's numbers.
        """

    def __eq__(self, other: typing.Any) -> typing.Any:
        """
        np.equal, element by element.
        """

    def __float__(self) -> float: ...
    def __floordiv__(self, other: typing.Any) -> typing.Any:
        """
        np.floor_divide, element by element.
        """

    def __format__(self, spec: str) -> str:
        """
        f"{loss:.3f}" of an Array without dimensions, as of its number; others take no format but the empty one.
        """

    def __ge__(self, other: typing.Any) -> typing.Any:
        """
        np.greater_equal, element by element.
        """

    def __getitem__(self, index: typing.Any) -> Array:
        """
        A part, by NumPy's rules; only the shards that hold it are read (guide: NumPy on Arrays).
        """

    def __gt__(self, other: typing.Any) -> typing.Any:
        """
        np.greater, element by element.
        """

    def __index__(self) -> typing.Any: ...
    def __int__(self) -> typing.Any: ...
    def __invert__(self) -> typing.Any:
        """
        np.invert, element by element.
        """

    def __iter__(self) -> collections.abc.Iterator[Array]:
        """
        x[0], x[1], ... ; TypeError without a dimension.
        """

    def __le__(self, other: typing.Any) -> typing.Any:
        """
        np.less_equal, element by element.
        """

    def __len__(self) -> int: ...
    def __lshift__(self, other: typing.Any) -> typing.Any:
        """
        np.left_shift, element by element.
        """

    def __lt__(self, other: typing.Any) -> typing.Any:
        """
        np.less, element by element.
        """

    def __matmul__(self, other: typing.Any) -> typing.Any:
        """
        np.matmul, element by element.
        """

    def __mod__(self, other: typing.Any) -> typing.Any:
        """
        np.remainder, element by element.
        """

    def __mul__(self, other: typing.Any) -> typing.Any:
        """
        np.multiply, element by element.
        """

    def __ne__(self, other: typing.Any) -> typing.Any:
        """
        np.not_equal, element by element.
        """

    def __neg__(self) -> typing.Any:
        """
        np.negative, element by element.
        """

    def __or__(self, other: typing.Any) -> typing.Any:
        """
        np.bitwise_or, element by element.
        """

    def __pos__(self) -> typing.Any:
        """
        np.positive, element by element.
        """

    def __pow__(self, other: typing.Any) -> typing.Any:
        """
        np.power, element by element; `x ** 2` is np.square and `x ** 0.5` np.sqrt, as for ndarrays.
        """

    def __radd__(self, other: typing.Any) -> typing.Any:
        """
        np.add, element by element.
        """

    def __rand__(self, other: typing.Any) -> typing.Any:
        """
        np.bitwise_and, element by element.
        """

    def __rdivmod__(self, other: typing.Any) -> typing.Any:
        """
        np.divmod, element by element.
        """

    def __reduce__(self) -> tuple[typing.Any, ...]:
        """
        The value, the sharding and whether it is committed.
        """

    def __repr__(self) -> str: ...
    def __reversed__(self) -> collections.abc.Iterator[Array]:
        """
        x[len(x) - 1], ..., x[0].
        """

    def __rfloordiv__(self, other: typing.Any) -> typing.Any:
        """
        np.floor_divide, element by element.
        """

    def __rlshift__(self, other: typing.Any) -> typing.Any:
        """
        np.left_shift, element by element.
        """

    def __rmatmul__(self, other: typing.Any) -> typing.Any:
        """
        np.matmul, element by element.
        """

    def __rmod__(self, other: typing.Any) -> typing.Any:
        """
        np.remainder, element by element.
        """

    def __rmul__(self, other: typing.Any) -> typing.Any:
        """
        np.multiply, element by element.
        """

    def __ror__(self, other: typing.Any) -> typing.Any:
        """
        np.bitwise_or, element by element.
        """

    def __round__(self, ndigits: int | None = None) -> Array:
        """
        np.round; without ndigits the result has integers, as in JAX.
        """

    def __rpow__(self, other: typing.Any) -> typing.Any:
        """
        np.power, element by element.
        """

    def __rrshift__(self, other: typing.Any) -> typing.Any:
        """
        np.right_shift, element by element.
        """

    def __rshift__(self, other: typing.Any) -> typing.Any:
        """
        np.right_shift, element by element.
        """

    def __rsub__(self, other: typing.Any) -> typing.Any:
        """
        np.subtract, element by element.
        """

    def __rtruediv__(self, other: typing.Any) -> typing.Any:
        """
        np.divide, element by element.
        """

    def __rxor__(self, other: typing.Any) -> typing.Any:
        """
        np.bitwise_xor, element by element.
        """

    def __setitem__(self, index: typing.Any, value: typing.Any) -> typing.NoReturn:
        """
        Raises TypeError: Arrays do not change.
        """

    def __str__(self) -> typing.Any: ...
    def __sub__(self, other: typing.Any) -> typing.Any:
        """
        np.subtract, element by element.
        """

    def __truediv__(self, other: typing.Any) -> typing.Any:
        """
        np.divide, element by element.
        """

    def __xor__(self, other: typing.Any) -> typing.Any:
        """
        np.bitwise_xor, element by element.
        """

    def _repr_html_(self) -> typing.Any: ...
    def addressable_data(self, index: int) -> Array:
        """
        The part of the device at `index` in mesh order, of those of this process, as an Array.
        """

    def all(
        self, axis: typing.Any = None, out: typing.Any = None, keepdims: bool = False, *, where: typing.Any = True
    ) -> typing.Any:
        """
        np.all.
        """

    def any(
        self, axis: typing.Any = None, out: typing.Any = None, keepdims: bool = False, *, where: typing.Any = True
    ) -> typing.Any:
        """
        np.any.
        """

    def argmax(self, axis: typing.Any = None, out: typing.Any = None, *, keepdims: bool = False) -> typing.Any:
        """
        np.argmax: the first of equal ones, the first NaN where there is one.
        """

    def argmin(self, axis: typing.Any = None, out: typing.Any = None, *, keepdims: bool = False) -> typing.Any:
        """
        np.argmin: the first of equal ones, the first NaN where there is one.
        """

    def argpartition(self, kth: typing.Any, axis: typing.Any = -1) -> typing.Any:
        """
        np.argpartition: positions; the dimension must be whole.
        """

    def argsort(
        self, axis: int = -1, kind: typing.Any = None, order: None = None, *, stable: typing.Any = None
    ) -> typing.Any:
        """
        np.argsort, along a dimension that is not cut.
        """

    def astype(self, dtype: typing.Any, copy: bool = True, device: typing.Any = None) -> typing.Any:
        """
        np.astype: each shard is converted where it lies.
        """

    def block_until_ready(self) -> typing.Any:
        """
        Waits until the data is written, and returns the Array. Ctrl-C ends the wait.

        Raises:
            RuntimeError: it was deleted, or the transfer that makes it failed.
        """

    def clip(self, min: typing.Any = None, max: typing.Any = None, out: typing.Any = None) -> typing.Any:
        """
        np.clip.
        """

    def clone(self) -> Array:
        """
        Another Array of the same memory, which stays when x is deleted.
        """

    def compress(self, condition: typing.Any, axis: typing.Any = None, out: typing.Any = None) -> typing.Any:
        """
        np.compress(condition, x, axis): the parts along one dimension where the condition is True.
        """

    def conj(self) -> typing.Any:
        """
        np.conjugate; bools stay bools.
        """

    def conjugate(self) -> typing.Any:
        """
        np.conjugate; bools stay bools.
        """

    def copy(self) -> typing.Any:
        """
        np.copy: new memory, the same layout.
        """

    def copy_to_host_async(self) -> typing.Any:
        """
        Begins to bring the value to the host and returns a HostCopy at once; np.asarray(x) then finds it.
        """

    def cumprod(self, axis: typing.Any = None, dtype: typing.Any = None, out: typing.Any = None) -> typing.Any:
        """
        np.cumprod: along a cut dimension only the products of the shards meet.
        """

    def cumsum(self, axis: typing.Any = None, dtype: typing.Any = None, out: typing.Any = None) -> typing.Any:
        """
        np.cumsum: along a cut dimension only the totals of the shards meet.
        """

    def delete(self) -> None:
        """
        Ends the Array and its shards in this process; memory returns when the last view of it is gone. Twice is fine.
        """

    def describe(self) -> str:
        """
        Where the Array lies, as a text of a few lines: dtype, shape, spec, mesh, bytes a device, aliasing, state.

        Reads no element and waits for nothing; works on deleted Arrays too.

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

    def devices(self) -> set[typing.Any]:
        """
        Set of the devices that hold it.
        """

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """
        The diagonal of two dimensions, as the last dimension of a new Array.
        """

    def dot(self, b: typing.Any, out: typing.Any = None) -> typing.Any:
        """
        np.dot(x, b): each device multiplies what it holds, only partial sums travel.
        """

    def flatten(self, order: str = "C") -> Array:
        """
        The elements in one dimension, copied.
        """

    def is_deleted(self) -> bool:
        """
        Whether delete() or donation ended it.
        """

    def is_ready(self) -> bool:
        """
        Whether its data is written; never waits.
        """

    def item(self, *index: typing.Any) -> typing.Any:
        """
        The only element as a number of Python; with a flat position or an index, that element.

            Raises:
                ValueError: No index, and not one element; another number of indices than dimensions.
                IndexError: There is no such element.

            Example:
                >>> import numpy as np, artifex_devices as ad
                >>> x = ad.device_put(np.arange(6).reshape(2, 3))
                >>> x.item(4), x.item(1, 0), x[0, 2].item()
                (4, 3, 2)

        """

    def max(
        self,
        axis: typing.Any = None,
        out: typing.Any = None,
        keepdims: bool = False,
        initial: typing.Any = ...,
        where: typing.Any = True,
    ) -> typing.Any:
        """
        np.max: NaN wins.
        """

    def mean(
        self,
        axis: typing.Any = None,
        dtype: typing.Any = None,
        out: typing.Any = None,
        keepdims: bool = False,
        *,
        where: typing.Any = True,
    ) -> typing.Any:
        """
        np.mean: floats of 16 bits are added up in float32, integers in float64.
        """

    def min(
        self,
        axis: typing.Any = None,
        out: typing.Any = None,
        keepdims: bool = False,
        initial: typing.Any = ...,
        where: typing.Any = True,
    ) -> typing.Any:
        """
        np.min: NaN wins.
        """

    def on_device_size_in_bytes(self) -> int:
        """
        Bytes on all devices, replicas counted.
        """

    def prod(
        self,
        axis: typing.Any = None,
        dtype: typing.Any = None,
        out: typing.Any = None,
        keepdims: bool = False,
        initial: typing.Any = ...,
        where: typing.Any = True,
    ) -> typing.Any:
        """
        np.prod: cut dimensions that are reduced become whole.
        """

    def ptp(self, axis: typing.Any = None, out: typing.Any = None, keepdims: bool = False) -> typing.Any:
        """
        np.ptp: the greatest less the least.
        """

    def ravel(self, order: str = "C", *, out_sharding: typing.Any = None) -> Array:
        """
        The elements in one dimension, on the same memory; as reshape(-1), with its out_sharding.
        """

    def repeat(self, repeats: typing.Any, axis: typing.Any = None, *, out_sharding: typing.Any = None) -> Array:
        """
        np.repeat(x, repeats, axis): each part along one dimension several times, placed by out_sharding if given.
        """

    def reshape(
        self, *shape: typing.Any, order: str = "C", copy: bool | None = None, out_sharding: typing.Any = None
    ) -> Array:
        """
        The same elements in another shape, on the same memory.

            Args:
                self: The Array.
                *shape: Sizes, as ints or as one tuple; one of them may be -1.
                order: "C".
                copy: True for memory of its own.
                out_sharding: NamedSharding or PartitionSpec of the result, which is moved to it. Where the shards do not allow
                    the new shape, the whole Array is gathered on each of its devices first.

            Returns:
                An Array whose dimensions are cut as those whose place they take, or as out_sharding says.

            Raises:
                ValueError: The sizes are for another number of elements.
                ShardingTypeError: A device would need elements of another one; the text names the dimensions (a ValueError).

            Example:
                >>> import numpy as np, artifex_devices as ad
                >>> ad.device_put(np.arange(6)).reshape(2, -1).shape
                (2, 3)

        """

    def round(self, decimals: int = 0, out: typing.Any = None) -> typing.Any:
        """
        np.round.
        """

    def searchsorted(self, v: typing.Any, side: typing.Any = "left", sorter: typing.Any = None) -> typing.Any:
        """
        np.searchsorted(x, v): the result lies as v does; x must be whole.
        """

    def sort(
        self, axis: int = -1, kind: typing.Any = None, order: None = None, *, stable: typing.Any = None
    ) -> typing.Any:
        """
        np.sort: a sorted copy, as in JAX, since Arrays do not change; along a dimension that is not cut.
        """

    def squeeze(self, axis: typing.Any = None) -> Array:
        """
        Without the dimensions of size 1 (or those of them that axis names), on the same memory.
        """

    def std(
        self,
        axis: typing.Any = None,
        dtype: typing.Any = None,
        out: typing.Any = None,
        ddof: typing.Any = 0,
        keepdims: bool = False,
        *,
        where: typing.Any = True,
        mean: typing.Any = ...,
        correction: typing.Any = ...,
    ) -> typing.Any:
        """
        np.std.
        """

    def sum(
        self,
        axis: typing.Any = None,
        dtype: typing.Any = None,
        out: typing.Any = None,
        keepdims: bool = False,
        initial: typing.Any = ...,
        where: typing.Any = True,
    ) -> typing.Any:
        """
        np.sum: cut dimensions that are summed become whole.
        """

    def swapaxes(self, axis1: int, axis2: int) -> Array:
        """
        Two dimensions change places.
        """

    def take(
        self, indices: typing.Any, axis: typing.Any = None, out: typing.Any = None, mode: str = "raise"
    ) -> typing.Any:
        """
        np.take(x, indices, axis): parts along one dimension.
        """

    def to_device(self, device: typing.Any, *, stream: typing.Any = None) -> Array:
        """
        The Array on a Device or as a Sharding says, as `device_put(x, device)` places it.

            `device` is a Device or a Sharding, as `Array.device` gives them; `stream` must be None.

            Raises:
                TypeError: device is something else.
                ValueError: stream is given.

            Example:
                >>> import numpy as np, artifex_devices as ad
                >>> ad.device_put(np.ones(3)).to_device(ad.devices()[0]).committed
                True

        """

    def tobytes(self) -> bytes:
        """
        The bytes of the value in the order of rows, read as by np.asarray(x).
        """

    def tolist(self) -> typing.Any:
        """
        Nested lists of Python numbers.
        """

    def trace(
        self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: typing.Any = None, out: typing.Any = None
    ) -> typing.Any:
        """
        The sum of a diagonal.
        """

    def transpose(self, *axes: typing.Any) -> Array:
        """
        The dimensions in another order; the cuts go with them.

            Args:
                self: The Array.
                *axes: The dimensions in their new order, as ints or as one tuple; none of them: reversed.

            Returns:
                An Array; x itself where nothing moves.

            Example:
                >>> import numpy as np, artifex_devices as ad
                >>> ad.device_put(np.ones((2, 3, 4))).transpose(0, 2, 1).shape
                (2, 4, 3)

        """

    def unsafe_buffer_pointer(self) -> int:
        """
        Address of the data of an Array on one device; valid as long as the Array is.
        """

    def var(
        self,
        axis: typing.Any = None,
        dtype: typing.Any = None,
        out: typing.Any = None,
        ddof: typing.Any = 0,
        keepdims: bool = False,
        *,
        where: typing.Any = True,
        mean: typing.Any = ...,
        correction: typing.Any = ...,
    ) -> typing.Any:
        """
        np.var.
        """

    def view(self, dtype: typing.Any = None, type: typing.Any = None) -> Array:
        """
        The bits as another dtype, in memory of their own; the last dimension changes with the size of an item.

            Args:
                self: The Array.
                dtype: The dtype; None for x itself.
                type: None; NumPy's argument, which has no meaning here.

            Raises:
                NotImplementedError: type is given.
                TypeError: No device holds this dtype.
                ValueError: The bytes of the last dimension, or of one shard of it, are not a multiple of the new item size.

            Example:
                >>> import numpy as np, artifex_devices as ad
                >>> ad.device_put(np.array([1.0], np.float32)).view(np.int32).tolist()
                [1065353216]

        """

    @property
    def T(self) -> Array:
        """
        The dimensions in reverse order; their cuts go with them.
        """

    @property
    def _pjrt_layout(self) -> PjRtLayout:
        """
        In which order the elements of each shard are stored.
        """

    @property
    def addressable_shards(self) -> list[typing.Any]:
        """
        A Shard for each device of this process, in mesh order.
        """

    @property
    def at(self) -> typing.Any:
        """
        Copies with some elements updated: `x.at[index].set(values)`.

            Besides set there are add, subtract, multiply, divide, power, min, max and get. The index follows NumPy's rules; one
            beyond the shape is an IndexError. The result is sharded as x, and each device updates its own shard.
            `out_sharding=` places the result otherwise.

            Raises:
                IndexError: The index does not fit x.
                ValueError: The values do not broadcast to x[index].
                TypeError: The result is of a dtype that x cannot hold.

            Example:
                >>> import numpy as np, artifex_devices as ad
                >>> x = ad.device_put(np.zeros(4))
                >>> x.at[1:3].set(5.0).at[0].add(2.0).tolist()
                [2.0, 5.0, 5.0, 0.0]

        """

    @property
    def committed(self) -> bool:
        """
        Whether a device or sharding was asked for.
        """

    @property
    def device(self) -> typing.Any:
        """
        The Device that holds it; the sharding where there are several.
        """

    @property
    def dtype(self) -> typing.Any:
        """
        np.dtype.
        """

    @property
    def format(self) -> typing.Any:
        """
        A layout.Format: the order in which the elements of each shard are stored, and the sharding.
        """

    @property
    def global_shards(self) -> list[typing.Any]:
        """
        A Shard for each device of all processes, in mesh order; the `data` of others is None.
        """

    @property
    def imag(self) -> typing.Any:
        """
        np.imag: the imaginary parts, a copy.
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
        Bytes of one element.
        """

    @property
    def mT(self) -> Array:
        """
        The last two dimensions change places.
        """

    @property
    def nbytes(self) -> int:
        """
        Bytes of the value, each element once.
        """

    @property
    def ndim(self) -> int:
        """
        Number of dimensions.
        """

    @property
    def real(self) -> typing.Any:
        """
        np.real: the real parts, a copy.
        """

    @property
    def shape(self) -> tuple[typing.Any, ...]:
        """
        Tuple of int.
        """

    @property
    def sharding(self) -> Sharding:
        """
        How it lies on its devices.
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
    One device's part of an Array.
    """

    def __repr__(self) -> str: ...
    @property
    def data(self) -> typing.Any:
        """
        The part as an Array of its device, sharing the memory; deleting either deletes both. None in another process.
        """

    @property
    def device(self) -> Device:
        """
        The Device that holds it.
        """

    @property
    def index(self) -> tuple[typing.Any, ...]:
        """
        Which part of the whole it is: a tuple of slices.
        """

    @property
    def replica_id(self) -> int:
        """
        How many earlier devices hold the same part.
        """

class Layout:
    """
    The order of an array's elements in memory, in XLA's words.

    Args:
        minor_to_major: Dimension numbers, the fastest first: (1, 0) is row-major for two dimensions.
        tiling: Tiles, each a tuple of sizes for the most minor dimensions; further ones cut what the ones before made.
            Layout.COMBINE, "*" in text, merges a dimension into the next more minor one.
        element_size_in_bits: 0, or what an element takes in memory.

    Raises:
        TypeError: an argument is no sequence of ints.
        ValueError: minor_to_major is no permutation of 0 to n - 1; a size or number is out of range.

    Example:
        >>> from artifex_devices.xla_client import Layout
        >>> layout = Layout((1, 0), [(8, 128)])
        >>> layout.to_string(), layout.physical_shape((10, 200)), layout.byte_size((10, 200), "float32")
        ('{1,0:T(8,128)}', (2, 2, 8, 128), 16384)
    """

    COMBINE: typing.ClassVar[int] = -9223372036854775808

    @staticmethod
    def parse(text: str) -> Layout:
        """
        The Layout of XLA's text: minor_to_major, then tiles T, tail alignment L, element bits E, memory space S.

        Raises:
            ValueError: the text is of another form, or too long; the position is told. Parts of sparse layouts, split and
                physical shapes are not known.

        Example:
            >>> from artifex_devices.xla_client import Layout
            >>> Layout.parse("{1,0:T(8,128)(2,1)}").tiling()
            [(8, 128), (2, 1)]
        """

    def __eq__(self, arg0: typing.Any) -> bool: ...
    def __hash__(self) -> int: ...
    def __init__(
        self, minor_to_major: typing.Any, tiling: typing.Any = (), element_size_in_bits: typing.Any = 0
    ) -> None: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    def __repr__(self) -> str: ...
    def __str__(self) -> str: ...
    def byte_size(self, shape: typing.Any, dtype: typing.Any) -> int:
        """
        Bytes that an array takes in memory, padding counted. Raises as pack and unpack do.
        """

    def element_size_in_bits(self) -> int:
        """
        What an element takes in memory; 0: as the dtype is stored.
        """

    def memory_space(self) -> int:
        """
        S(n) in text, else 0; kept, without a meaning here.
        """

    def minor_to_major(self) -> tuple[typing.Any, ...]:
        """
        Dimension numbers, the fastest first.
        """

    def pack(self, x: typing.Any) -> typing.Any:
        """
        The memory of an array in this layout.

        Padding is zeros. Elements of fewer bits than a byte (element_size_in_bits 4 for int4, 2 for int2, 1 for bool) share
        bytes, the first in the low-order bits, as XLA packs them.

        Args:
            x: An ndarray of any strides and of this layout's rank.

        Returns:
            A new ndarray of uint8, of byte_size(x.shape, x.dtype) bytes.

        Raises:
            ValueError: another rank; element bits that do not fit the dtype.

        Example:
            >>> import numpy as np
            >>> from artifex_devices.xla_client import Layout
            >>> Layout((1, 0), [(2, 2)]).pack(np.array([[1, 2, 3], [4, 5, 6]], np.uint8))
            array([1, 2, 4, 5, 3, 0, 6, 0], dtype=uint8)
        """

    def physical_shape(self, shape: typing.Any) -> tuple[typing.Any, ...]:
        """
        The shape of the row-major array that memory holds, padding counted.

        Raises:
            ValueError: `shape` is of another rank, or too big.

        Example:
            >>> from artifex_devices.xla_client import Layout
            >>> Layout((1, 0), [(2, 2)]).physical_shape((3, 5))
            (2, 3, 2, 2)
        """

    def tail_padding_alignment_in_elements(self) -> int:
        """
        The number of elements is padded to a multiple of it: L(n) in text, else 1.
        """

    def tiling(self) -> list[typing.Any]:
        """
        The tiles, outermost first; COMBINE stands for '*'.
        """

    def to_string(self) -> str:
        """
        As XLA writes it: '{1,0:T(8,128)}'.
        """

    def unpack(self, memory: typing.Any, shape: typing.Any, dtype: typing.Any) -> typing.Any:
        """
        The array whose memory in this layout is given; the exact inverse of pack.

        Args:
            memory: Contiguous bytes: bytes, a memoryview, an ndarray of uint8.
            shape: Of the array.
            dtype: Of the array.

        Returns:
            A new row-major ndarray.

        Raises:
            ValueError: the number of bytes is not byte_size(shape, dtype); and as pack.

        Example:
            >>> from artifex_devices.xla_client import Layout
            >>> Layout((0, 1)).unpack(bytes([1, 2, 3, 4]), (2, 2), "uint8").tolist()
            [[1, 3], [2, 4]]
        """

class PjRtLayout:
    """
    A Layout as a client hands it out.

    Args:
        layout: A Layout.

    Example:
        >>> from artifex_devices.xla_client import Layout, PjRtLayout
        >>> str(PjRtLayout(Layout((0, 1)))), PjRtLayout(Layout((0, 1)))._xla_layout().minor_to_major()
        ('{0,1}', (0, 1))
    """

    def __eq__(self, arg0: typing.Any) -> bool: ...
    def __hash__(self) -> int: ...
    def __init__(self, layout: Layout) -> None: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    def __repr__(self) -> str: ...
    def __str__(self) -> str: ...
    def _xla_layout(self) -> Layout:
        """
        The Layout itself.
        """

class _CrossReshard:
    """
    This process's part of a reshard between processes.
    """

    def __init__(self, source: Array, sharding: Sharding) -> None: ...
    def begin(self) -> None:
        """
        Takes memory and begins the copies within the process.
        """

    def finish(self) -> Array:
        """
        The Array, once all messages have come.
        """

    def pack(self, i: int, buffer: typing.Any) -> None:
        """
        Writes the bytes to send to a dense uint8 ndarray.
        """

    def receive_in_place(self, i: int) -> typing.Any:
        """
        Where to receive in the result, or None: unpack them.
        """

    def send_in_place(self, i: int) -> typing.Any:
        """
        The bytes to send as they lie in the source, or None: pack them.
        """

    def unpack(self, i: int, buffer: typing.Any) -> None:
        """
        Puts received bytes where they belong.
        """

    @property
    def client(self) -> Client:
        """
        The world that it is of.
        """

    @property
    def identity(self) -> str:
        """
        Equal in processes that plan the same.
        """

    @property
    def planned_bytes(self) -> int:
        """
        Bytes of all messages of all processes.
        """

    @property
    def processes(self) -> list[int]:
        """
        Those that send or receive anything, ascending (list of int).
        """

    @property
    def receives(self) -> list[typing.Any]:
        """
        (peer, bytes) of each message to receive, in the order of all processes.
        """

    @property
    def sends(self) -> list[typing.Any]:
        """
        (peer, bytes) of each message to send, in the order of all processes.
        """

    @property
    def text(self) -> str:
        """
        What it does, for messages.
        """

class _HostLeaf:
    """
    The value of one Array on its way to the host.
    """

    def done(self) -> bool: ...
    def value(self) -> typing.Any: ...
    def wait(self, seconds: float | None) -> bool: ...

class Rendezvous:
    """
    Where the participants of one program meet for collectives.
    """

    def __init__(self, participants: int) -> None: ...
    def arrive(self, participant: int, group: int, signature: int) -> int:
        """
        0: the last one, which does the work and says delivered; 1: wait; 2: the program has failed.
        """

    def cancel(self) -> None:
        """
        Ends all waits.
        """

    def delivered(self, participant: int) -> None:
        """
        The work of the collective is done.
        """

    def expire(self) -> None:
        """
        Ends all waits: they took too long.
        """

    def finished(self, participant: int) -> None:
        """
        The participant's body returned.
        """

    def group(self, members: collections.abc.Sequence[int]) -> int:
        """
        The number of a group of participants.
        """

    def may_go(self, participant: int) -> bool:
        """
        Whether a participant need not wait longer.
        """

    def raised(self, participant: int) -> None:
        """
        The participant's body raised.
        """

    def standings(self) -> list[typing.Any]:
        """
        (state, group, signature, number of collectives) of each participant, as they were when it failed.
        """

    def wait(self, participant: int, seconds: float | None) -> bool:
        """
        Waits until may_go; False when the program failed or the time is over. Ctrl-C ends it.
        """

    @property
    def failure(self) -> str:
        """
        "", "mismatch", "early exit", "deadlock", "deadline", "body" or "cancelled".
        """

class _Participant:
    """
    One run of a body; made by a stage.
    """

class _Stage:
    """
    The participants of a program; see _new_stage.
    """

    def begin_turns(self, host: typing.Any, hub: typing.Any, context: typing.Any, seats: list[typing.Any]) -> None:
        """
        Participants share a thread; a seat is (switch, [host]).
        """

    def close(self) -> None:
        """
        The participants cannot meet any more; nothing of theirs is kept.
        """

    def end_turns(self) -> None:
        """
        The seats name their host no more.
        """

    def ended(self, me: typing.Any, outcome: typing.Any) -> typing.Any:
        """
        Who begins in its seat, or None.
        """

    def enter(self) -> typing.Any:
        """
        The participant that begins in the seat of the calling greenlet, or None.
        """

    def keep_order(self) -> list[typing.Any]:
        """
        The hub alone says who goes on; those who might have, the next one last.
        """

    def know(
        self,
        operation: str,
        axis_name: typing.Any,
        x: typing.Any,
        meeting: typing.Any,
        groups: list[typing.Any],
        signature: int,
    ) -> None:
        """
        From now on _arrive answers for arrays like x; one group a participant, or one.
        """

    def next(self) -> typing.Any:
        """
        The switch to whoever has the next turn, or to the hub.
        """

    def open(self, program: typing.Any, outcomes: list[typing.Any], rows: list[typing.Any]) -> None:
        """
        A call begins.
        """

    def participants(self) -> list[typing.Any]:
        """
        The participants of the call; none after its end.
        """

    def plain(self, code: typing.Any) -> None:
        """
        Waits of this body are plain, where the code `root` calls it.
        """

    def raised(self, me: typing.Any, is_own: bool) -> typing.Any:
        """
        None, as nobody begins any more.
        """

    def resumed(self, me: typing.Any) -> None:
        """
        It has the turn again.
        """

    def suspend(self, me: typing.Any) -> typing.Any:
        """
        It waits; the switch to whoever has the next turn, or the hub.
        """

    def suspended(self) -> list[typing.Any]:
        """
        The positions of those who wait, in the order of suspension.
        """

    def turn_of(self, position: int) -> typing.Any:
        """
        The switch to a participant that has begun.
        """

    def wait_by(self, wait: typing.Any, root: typing.Any) -> None:
        """
        A wait is wait(me, frame), unless it is plain.
        """

class _Chain:
    """
    This process's part of a reduction over processes of one host.
    """

    def advance(self, seconds: float) -> bool:
        """
        Goes on, and waits at most so long for what others have to do; whether all is done.
        """

    @property
    def progress(self) -> int:
        """
        Pieces combined or received so far.
        """

class _SharedLanes:
    """
    Letters and streams between the processes of one host.
    """

    most_letter_bytes: typing.ClassVar[int] = 8000

    def __init__(self, me: int, files: collections.abc.Sequence[int]) -> None: ...
    def chain(
        self, before: int, after: int, kind: str, blocks: list[typing.Any], out: typing.Any, begin: int, handed_on: int
    ) -> _Chain:
        """
        This process's part of a reduction of flat blocks. before and after: its neighbours in the row, or -1; out: its share of the result, from the element `begin` on; those before it want elements below `handed_on`.
        """

    def post(self, receivers: collections.abc.Sequence[int], letter: bytes) -> None:
        """
        Sends a letter to each of these neighbours; never waits.
        """

    def skip(self, senders: collections.abc.Sequence[int]) -> None:
        """
        The next letter of each of them is for nobody.
        """

    def take(self, senders: collections.abc.Sequence[int]) -> list[typing.Any]:
        """
        The oldest letter of each (bytes), which must be here.
        """

    def wait(self, senders: collections.abc.Sequence[int], seconds: float) -> bool:
        """
        Whether a letter of each of them is here, at once or within the time given.
        """

class Cluster:
    """
    Chips that one does not own, to plan with: an immutable value.

    Make one by `artifex_devices.cluster`: `tpu`, `dgx`, `mi300x`, `from_toml`, `from_xml` or `this_machine`. Bandwidths are
    bytes/s in one direction.

    Example:
        >>> from artifex_devices import cluster
        >>> pod = cluster.tpu("v5p", (4, 4, 8), slices=2)
        >>> pod
        <Cluster 2 x TPU v5p 4x4x8: 256 tpu devices>
        >>> pod.devices()[130]
        TpuDevice(id=130, process_index=33, coords=(2,0,0), core_on_chip=0)
    """

    def __copy__(self) -> typing.Any: ...
    def __deepcopy__(self, memo: typing.Any) -> typing.Any: ...
    def __eq__(self, arg0: typing.Any) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[typing.Any, ...]: ...
    def __repr__(self) -> str: ...
    def describe(self) -> str:
        """
        What it is made of, as lines of text: each number with its source.
        """

    def devices(self) -> list[typing.Any]:
        """
        Its devices, to plan with: a new list, in order of id. They have no memory: placing data on them raises.

        A device has `coords` and `core_on_chip` (in a torus), `slice_index`, `process_index` (of its host), `device_kind`,
        `platform` and `memory_bytes`. Ids count slice by slice, in a slice chip by chip with x fastest, on a chip core by core. As
        long as one of them lives, further calls give the same.
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
        What its devices call themselves.
        """

    @property
    def dims(self) -> tuple[typing.Any, ...]:
        """
        Chips of a slice along each axis of the torus; one number without one.
        """

    @property
    def name(self) -> str:
        """
        What it is called.
        """

    @property
    def network(self) -> str:
        """
        How the chips of a slice are joined: "torus", "switch" or "full mesh".
        """

    @property
    def parts(self) -> dict[typing.Any, typing.Any]:
        """
        All that it is made of: dict. Figures are (value, source) or, where not known, None.

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
        Number of slices, or of nodes.
        """

    @property
    def wraps(self) -> tuple[typing.Any, ...]:
        """
        Of each axis of the torus, whether its ends are joined; () without one.
        """

class _MeshDevices:
    """
    Devices to lay a mesh over.
    """

    @staticmethod
    def of_cluster(devices: list[typing.Any], text: collections.abc.Callable[..., typing.Any]) -> _MeshDevices | None:
        """
        None unless all devices are of one cluster.
        """

    def __init__(
        self,
        devices: list[typing.Any],
        text: collections.abc.Callable[..., typing.Any],
        platform: str,
        device_kind: str,
        rows: collections.abc.Sequence[collections.abc.Sequence[int]],
        without_coords: int,
    ) -> None:
        """
        Rows are (id, x, y, z, core_on_chip, slice_index); `text` describes a device in error messages.
        """

    def exact_order(
        self, shape: collections.abc.Sequence[int], traffic: collections.abc.Sequence[float], split: bool
    ) -> typing.Any:
        """
        Positions of the devices for each place of the mesh, with the least modelled time.
        """

    def explain(
        self, shape: collections.abc.Sequence[int], traffic: collections.abc.Sequence[float]
    ) -> tuple[typing.Any, ...]:
        """
        (title, source, network, wraps, axes, axes by id, places).
        """

    def jax_order(self, shape: collections.abc.Sequence[int], contiguous: bool, split: bool) -> typing.Any:
        """
        Positions of the devices for each place of the mesh, by JAX's rule.
        """

    @property
    def platform(self) -> str:
        """
        Platform of the last device.
        """

class _MemoryWindow:
    """
    What arrays hold on the devices of the calling context's world, from now to close().
    """

    def __init__(self) -> None: ...
    def close(self) -> None:
        """
        Fixes the numbers; the second time does nothing.
        """

    def live(self, top: int) -> tuple[int, int, list[typing.Any]]:
        """
        Number and bytes of the live Arrays of its world, and (bytes, Array) of the biggest.
        """

    def physical_bytes(self) -> int:
        """
        In use now in the memories that the world's devices lie on, by all worlds.
        """

    def use(self) -> list[typing.Any]:
        """
        By device: bytes (at_start, in_use, peak, allocated, freed).
        """

    @property
    def devices(self) -> tuple[typing.Any, ...]:
        """
        Tuple of Device, by id.
        """

def _accelerator_links(machine: Machine, addresses: collections.abc.Sequence[str]) -> typing.Any:
    """
    ("NVLink" or "xGMI", whether behind switches, bytes/s) of a recorded machine, or None.
    """

def _adopt(
    shape: typing.Any,
    dtype: typing.Any,
    sharding: Sharding,
    parts: list[typing.Any],
    given: collections.abc.Sequence[bool],
    operation: str,
) -> Array:
    """
    An Array out of one ndarray a distinct buffer, sharing memory where nobody else can write it.
    """

def _all_reduce(kind: str, inputs: list[typing.Any], out: typing.Any) -> None:
    """
    out = the inputs combined in their order, element by element; sum, prod, max or min. Strided ones are copied.
    """

def _allocate_and_free(nbytes: int, times: int, touch: bool) -> None:
    """
    Takes a block of memory, writes to each of its pages where `touch` is set, and frees it, so many times; for the family threads of bench/.
    """

def _array_from_callback(
    operation: str,
    shape: typing.Any,
    sharding: Sharding,
    callback: collections.abc.Callable[..., typing.Any],
    dtype: typing.Any,
) -> Array: ...
def _array_from_dlpack(capsule: typing.Any, device: typing.Any, copy: typing.Any) -> Array: ...
def _array_from_parts(
    operation: str,
    shape: typing.Any,
    sharding: Sharding,
    parts: collections.abc.Sequence[typing.Any],
    dtype: typing.Any,
    is_stack: bool = False,
    ours: collections.abc.Sequence[bool] = [],
) -> Array: ...
def _array_from_pickle(
    value: typing.Any, sharding: typing.Any, committed: bool, layout: str | None = None
) -> typing.Any: ...
def _array_memory(array: Array) -> dict[typing.Any, typing.Any]: ...
def _arrive(operation: str, axis_name: typing.Any, x: typing.Any) -> typing.Any:
    """
    What to call before _take; None for a kind that is not known.
    """

def _base_client_exists() -> bool: ...
def _buffers_at(sharding: Sharding, positions: collections.abc.Sequence[typing.Any]) -> tuple[typing.Any, ...]:
    """
    The number of the buffer at each position.
    """

def _build_facts() -> dict[typing.Any, typing.Any]:
    """
    What the core was built with (dict of texts).
    """

def _cached_host_value(array: Array) -> typing.Any:
    """
    What np.asarray(array) has gathered and cached, or None.
    """

def _canonical_memory_kind(kind: str | None, devices: collections.abc.Sequence[Device]) -> str | None: ...
def _cgroup_cpus() -> float | None:
    """
    CPUs that the cgroup's quota leaves, or None.
    """

def _cgroup_report(root: str = "") -> dict[typing.Any, typing.Any]:
    """
    Limits of the process's cgroups (dict), the files they are from, and what cannot be read.
    """

def _check_allocator(kind: int, memory_fraction: float, preallocate: bool, collective_memory_size: int) -> None: ...
def _check_scope(name: str, value: typing.Any, operation: str) -> typing.Any: ...
def _check_transfer(
    direction: str,
    explicit: bool,
    shape: typing.Any,
    dtype: typing.Any,
    source: typing.Any,
    target: typing.Any,
    operation: str = "transfer",
) -> None:
    """
    To be called before data moves: raises TransferGuardError or logs, as the guards of this context say.

    Args:
        direction: "host_to_device", "device_to_device" or "device_to_host".
        explicit: Whether the user asked for the transfer by name (the device_put family).
        shape, dtype, source, target: For the message; made text only when one is needed.
        operation: What the user called.
    """

def _client_of_cluster(cluster: Cluster) -> Client:
    """
    The world of its devices.
    """

def _client_of_named_platform() -> Client:
    """
    The current client for a call that names its platform: jax_platform_name does not matter.
    """

def _close() -> None:
    """
    Ends all workers; registered with atexit.
    """

def _cluster_from_tables(content: dict[typing.Any, typing.Any], source: str) -> Cluster:
    """
    A Cluster of the tables of a cluster file, whose keys and types are checked.
    """

def _cluster_of_device(device: Device) -> Cluster:
    """
    The Cluster that a device is of, or None.
    """

def _collective_terms(op: str, bytes: float, devices: int, groups: int, executor: str, cache_bytes: int) -> list[float]:
    """
    _COPY_TERMS, then _PROGRAM_TERMS, of one program with one collective.
    """

def _config_read(name: str) -> int: ...
def _config_write(name: str, value: int) -> None: ...
def _copy_isa() -> str:
    """
    The one that copies use.
    """

def _copy_isas() -> list[typing.Any]:
    """
    Instruction sets that copies are compiled for and this processor runs, least first.
    """

def _copy_terms(
    shape: typing.Any, itemsize: int, source: Sharding, destination: Sharding, cache_bytes: int
) -> tuple[typing.Any, ...]:
    """
    (terms, [(memory from, memory to, bytes)]) of the direct copies between devices of this process.
    """

def _copy_to_host(array: Array) -> _HostLeaf: ...
def _copy_views(destinations: list[typing.Any], sources: list[typing.Any]) -> None:
    """
    Copies each ndarray of a list to its like in another, on several threads; they must not overlap.
    """

def _create_lanes(count: int) -> int:
    """
    A file in memory for what one of `count` processes of a host writes; its descriptor, to be closed.
    """

def _creation_line(array: Array) -> typing.Any: ...
def _current_client() -> Client: ...
def _default_device() -> Device: ...
def _derived_batch_size(hardware: str) -> typing.Any: ...
def _describe_process(
    machine: Machine | None = None, num_devices: int | None = None
) -> tuple[str, int, list[tuple[list[int], list[int], list[int], int, int]], list[int]]:
    """
    What a process with these devices (without arguments: the base client's) tells the others: a tuple that pickles.
    """

def _device_assignment(data: typing.Any) -> DeviceAssignment: ...
def _device_count() -> int: ...
def _device_list_from_pickle(platform: str, device_ids: collections.abc.Sequence[int]) -> DeviceList: ...
def _device_topology(data: typing.Any) -> DeviceTopology: ...
def _devices() -> list[typing.Any]: ...
def _divide(array: typing.Any, by: float) -> None:
    """
    Divides a dense array of floats of 16 bits in place, each number in float32.
    """

def _empty(shape: typing.Any, dtype: typing.Any, sharding: Sharding, committed: bool, operation: str) -> Array:
    """
    An Array whose memory is to be written through _local_arrays or _slab_array.
    """

def _enter_scope(names: collections.abc.Sequence[str], value: typing.Any, owner: typing.Any) -> None: ...
def _entered_meshes() -> tuple[typing.Any, ...]: ...
def _executor_for(op: str, bytes: float, devices: int, threads_bytes: float) -> str:
    """
    The executor that shard_map chooses for such blocks.
    """

def _find_accelerators(
    machine: Machine | None, root: str, nvml_library: str | None
) -> dict[typing.Any, typing.Any]: ...
def _find_device(platform: str, id: int) -> Device: ...
def _find_memory(platform: str, id: int, kind: str) -> Memory: ...
def _fit_relative(
    terms: collections.abc.Sequence[collections.abc.Sequence[float]], seconds: collections.abc.Sequence[float]
) -> tuple[typing.Any, ...]:
    """
    (coefficients, relative errors): non-negative least squares of relative errors; a list of terms a sample.
    """

def _fold(kind: str, array: typing.Any, first: int, last: int, out: typing.Any) -> None:
    """
    Floats of 16 bits reduced in float32 over dimensions [first, last).
    """

def _forget_recent() -> None:
    """
    Lets go of the meshes, shardings and index maps that were kept for the next call.
    """

def _gemm(isa: str, dtype: str, a: bytes, b: bytes, m: int, k: int, n: int) -> bytes:
    """
    The measured product itself, on the bytes of packed row-major matrices. For tests.
    """

def _gemm_isas() -> list[typing.Any]:
    """
    Instruction sets of the product that this processor runs, least first.
    """

def _get_leaf(array: Array) -> typing.Any: ...
def _gpu_cluster(gpu: str, nodes: int, chips_per_node: int | None, network_bandwidth: float | None) -> Cluster: ...
def _heap_profile(samples: collections.abc.Sequence[tuple[str, int, int, str, int, str]], time_ns: int) -> bytes: ...
def _host_empty(shape: typing.Any, dtype: typing.Any) -> typing.Any:
    """
    An ndarray to write, on memory of the library's cache.
    """

def _hybrid_mesh_order(
    granule_orders: collections.abc.Sequence[collections.abc.Sequence[int]],
    inside: collections.abc.Sequence[int],
    outside: collections.abc.Sequence[int],
) -> typing.Any:
    """
    Positions of the devices for each place of a mesh over several granules.
    """

def _is_constant(array: typing.Any) -> bool:
    """
    Whether an ndarray shows memory of Arrays or results that nobody can write.
    """

def _join_world(
    processes: collections.abc.Sequence[
        tuple[
            str,
            int,
            collections.abc.Sequence[
                tuple[
                    collections.abc.Sequence[int],
                    collections.abc.Sequence[int],
                    collections.abc.Sequence[int],
                    int,
                    int,
                ]
            ],
            collections.abc.Sequence[int],
        ]
    ],
    process_index: int,
) -> Client:
    """
    Makes the base client, of the devices of all processes; each is described by its _describe_process.
    """

def _last_level_cache_bytes() -> int:
    """
    Of the cores of all devices together; 0 where the system does not say.
    """

def _layout_from_text(text: str) -> Layout: ...
def _leave_scope(names: collections.abc.Sequence[str], owner: typing.Any, operation: str) -> None: ...
def _likeness(parts: list[typing.Any]) -> int:
    """
    2 for a list of one and the same ndarray, 1 for ndarrays of the very same dtype and shape, else 0.
    """

def _local_arrays(array: Array, writable: bool = False, some: bool = False) -> list[typing.Any]:
    """
    An ndarray on each distinct buffer of an Array; writable only for who has just made it by _empty. Those of this process, which must have all tiles unless `some` will do.
    """

def _machine_node(machine: Machine, accelerators: list[typing.Any], source: str) -> dict[typing.Any, typing.Any]:
    """
    Parts of a node of the machine's accelerators or, without any, of its CPU domains.
    """

def _make_client(
    machine: Machine | None,
    num_devices: int | None,
    bytes_limit: int | None,
    compile_only: bool,
    allocator: tuple[int, float, bool, int] | None = None,
    asynchronous: bool = True,
) -> Client: ...
def _make_cluster(parts: dict[typing.Any, typing.Any]) -> Cluster:
    """
    A Cluster of a dict as `Cluster.parts` gives it.
    """

def _make_mesh(
    axis_shapes: typing.Any, axis_names: typing.Any, axis_types: typing.Any, devices: typing.Any
) -> Mesh: ...
def _make_shared_client(
    machine: Machine,
    processes: collections.abc.Sequence[
        tuple[
            str,
            int,
            collections.abc.Sequence[
                tuple[
                    collections.abc.Sequence[int],
                    collections.abc.Sequence[int],
                    collections.abc.Sequence[int],
                    int,
                    int,
                ]
            ],
            collections.abc.Sequence[int],
        ]
    ],
    process_index: int,
) -> Client:
    """
    A client as one process of several has it, for tests: any number of them may be in one process.
    """

def _measure_gemm(
    device: Device | None, isa: str, dtype: str, seconds: float, window_seconds: float
) -> dict[typing.Any, typing.Any]:
    """
    FLOP/s on the workers of a device (None: of all devices), as a dict of rates, shares, workers, bound_workers.
    """

def _measure_streams(
    device: Device | None, seconds: float, window_seconds: float
) -> tuple[dict[typing.Any, typing.Any], int, int]:
    """
    (dict of kernel to series in bytes/s, bytes of an array, bytes of the last-level caches).
    """

def _measured_scope(device: Device | None) -> tuple[list[int], int, int]:
    """
    (lanes of the worker pool that a measurement uses, workers on them, all lanes).
    """

def _memory_policy() -> tuple[typing.Any, list[int], typing.Any]:
    """
    Policy for new pages of this thread, its nodes by the system's numbers, and why it cannot be read.
    """

def _mesh_from_pickle(
    platform: str, device_ids: typing.Any, axis_names: typing.Any, axis_types: typing.Any
) -> Mesh: ...
def _mesh_shapes(devices: int, most_axes: int) -> list[list[int]]:
    """
    Every ordered product of 1 to `most_axes` factors of 2 or more.
    """

def _moved(array: Array, sharding: Sharding, committed: bool) -> Array:
    """
    The Array in another layout of the same world; buffers that are right already are shared.
    """

def _named_sharding_from_pickle(
    kind: type[typing.Any], mesh: typing.Any, spec: typing.Any, memory_kind: typing.Any, uneven: typing.Any
) -> typing.Any: ...
def _narrowed(x: typing.Any, operation: str, path: str = "") -> typing.Any:
    """
    An array or number as the ndarray that may be placed in this context: 64-bit data narrowed where x64 is off.
    """

def _new_stage(
    rendezvous: typing.Any,
    participant_class: type[typing.Any],
    payloads: list[typing.Any],
    results: list[typing.Any],
    pending: typing.Any,
) -> typing.Any:
    """
    The participants of a program: their payloads and results by position, `pending` where there is none.
    """

def _parse_world(text: str) -> tuple[Machine, int | None]: ...
def _placed_dtype(dtype: typing.Any) -> typing.Any:
    """
    The dtype that data of `dtype` has once it is placed in this context.
    """

def _placed_mesh_svg(
    title: str,
    axes: collections.abc.Sequence[tuple[str, int, str]],
    network: str,
    wraps: collections.abc.Sequence[bool],
    platform: str,
    places: collections.abc.Sequence[tuple[int, int, collections.abc.Sequence[int], int]],
    max_cells: int = 2048,
) -> str: ...
def _plan_collective(
    op: str,
    bytes: float,
    cluster: Cluster,
    axes: collections.abc.Sequence[str],
    groups: collections.abc.Sequence[collections.abc.Sequence[int]],
    pairs: collections.abc.Sequence[tuple[int, int]],
) -> dict[typing.Any, typing.Any]:
    """
    Algorithms of one collective, cheapest first, with its bound, as a dict. `groups` empty: those along `axes`.
    """

def _plan_of_reshard(source: Array, sharding: Sharding) -> dict[typing.Any, typing.Any]: ...
def _plan_reshard(
    shape: typing.Any,
    itemsize: int,
    source: Sharding,
    destination: Sharding,
    cluster: Cluster | None,
    memory_limit: int | None,
    all_copies: bool,
) -> dict[typing.Any, typing.Any]:
    """
    Both ways from one sharding to another, with bytes, prices and bounds, as a dict.
    """

def _plan_step(
    model: dict[typing.Any, typing.Any],
    cluster: Cluster,
    mesh: Mesh,
    mesh_names: collections.abc.Sequence[str],
    rules: collections.abc.Sequence[int],
) -> dict[typing.Any, typing.Any]:
    """
    What a step comes to on each device of a mesh, as a dict. `rules`: axes of the mesh as bits, one number a logical axis.
    """

def _platform_option(name: str) -> str | None: ...
def _pop_world(frame: typing.Any) -> None: ...
def _push_world(client: Client) -> typing.Any: ...
def _put_leaf(x: typing.Any, device: typing.Any, donate: typing.Any, may_alias: typing.Any) -> typing.Any: ...
def _put_leaves(
    leaves: list[typing.Any],
    targets: typing.Any,
    donate: typing.Any,
    may_alias: typing.Any,
    path_of: typing.Any,
    explicit: bool = True,
) -> list[typing.Any]: ...
def _read_nvml(library: str = "") -> dict[typing.Any, typing.Any]: ...
def _recent_sizes() -> dict[typing.Any, typing.Any]:
    """
    How many of each are kept, by what they are.
    """

def _reinterpreted(array: Array, shape: typing.Any, sharding: Sharding, operation: str) -> Array:
    """
    An Array of another shape on the same memory: each device's elements stay as they are, in their order.
    """

def _release_dropped_owners() -> None:
    """
    Releases borrowed memory that workers have dropped; calls of the library do so by themselves.
    """

def _reshard_bytes(
    source: Sharding, destination: Sharding, global_shape: typing.Any, itemsize: int
) -> dict[typing.Any, typing.Any]:
    """
    Bytes that devices lack for the destination: bytes_in (all), most_bytes_in (of one device), devices_that_receive.
    """

def _reshard_copies(
    shape: typing.Any, itemsize: int, source: Sharding, destination: Sharding, cluster: Cluster | None
) -> list[typing.Any]:
    """
    (source device, destination device, box, bytes) of every direct copy.
    """

def _reshard_ingress(
    shape: typing.Any, itemsize: int, source: Sharding, destination: Sharding
) -> tuple[typing.Any, ...]:
    """
    (ids of the destination's devices, bytes that each must receive at least): int64 ndarrays.
    """

def _reshard_svg(
    title: str,
    steps: collections.abc.Sequence[str],
    shape: typing.Any,
    itemsize: int,
    source: Sharding,
    destination: Sharding,
    cluster: Cluster | None,
    is_copies: bool,
    bytes_by_link: collections.abc.Sequence[tuple[str, int]],
) -> str:
    """
    A reshard as a stand-alone SVG picture.
    """

def _restrict_live_machine(
    mine: collections.abc.Sequence[int], all: collections.abc.Sequence[collections.abc.Sequence[int]]
) -> None:
    """
    Leaves the live machine the CPUs `mine` (ascending); `all`: those of every process on it.
    """

def _roofline_svg(
    title: str,
    roofs: collections.abc.Sequence[tuple[str, float, bool]],
    points: collections.abc.Sequence[tuple[str, float, float, bool, int]],
    notes: collections.abc.Sequence[str],
) -> str: ...
def _run_parallel(tasks: list[typing.Any]) -> None:
    """
    Calls each of a list once, on threads of the library and this one; raises the first exception.
    """

def _running_workers() -> int: ...
def _scoped_option(name: str) -> typing.Any: ...
def _select(out: typing.Any, condition: typing.Any, one: typing.Any, other: typing.Any, stream: bool) -> None:
    """
    out = one where condition, else other, for dense ndarrays or choices of shape ().
    """

def _set_num_cpu_devices(count: int | None) -> None: ...
def _share_cpus(machine: Machine, parts: int) -> list[list[int]]:
    """
    The CPUs that each of `parts` processes has of a machine.
    """

def _share_of_live_cpus(part: int, parts: int) -> list[int]:
    """
    The CPUs that one of `parts` processes has of this process's affinity mask.
    """

def _shown(object: typing.Any) -> str:
    """
    An object as messages tell it: its repr, cut where it is long, or that its repr raised.
    """

def _shutdown() -> None:
    """
    Ends the workers, after the copies under way.
    """

def _single_device_sharding_from_pickle(
    kind: type[typing.Any], device: typing.Any, memory_kind: typing.Any
) -> typing.Any: ...
def _slab_array(array: Array, writable: bool = False) -> typing.Any:
    """
    All buffers as one ndarray of shape (buffers, *shard shape) where they lie in one slab, else None; also where other processes have some.
    """

def _suggest_steps(
    model: dict[typing.Any, typing.Any],
    cluster: Cluster,
    meshes: collections.abc.Sequence[tuple[collections.abc.Sequence[int], collections.abc.Sequence[int]]],
    may_cut: collections.abc.Sequence[int],
    overlaps: bool,
    top: int,
    progress: typing.Any,
) -> dict[typing.Any, typing.Any]:
    """
    The best meshes and rules for a step, as (mesh, rules, bytes). `meshes`: sizes, and ids by position.
    """

def _suggestion_candidates(
    model: dict[typing.Any, typing.Any],
    meshes: collections.abc.Sequence[tuple[collections.abc.Sequence[int], collections.abc.Sequence[int]]],
    may_cut: collections.abc.Sequence[int],
) -> int:
    """
    What `progress` of _suggest_steps counts up to.
    """

def _take() -> typing.Any:
    """
    The result of the collective that the body has arrived at.
    """

def _tiling(sharding: Sharding, shape: typing.Any, operation: str) -> tuple[typing.Any, ...]:
    """
    (parts a dimension, positions, tiles, boxes as slices) of the distinct buffers of an array.
    """

def _tpu_cluster(generation: str, shape: collections.abc.Sequence[int], slices: int) -> Cluster: ...
def _transfer_counters() -> dict[typing.Any, typing.Any]: ...
def _transfer_is_guarded(direction: str, explicit: bool) -> bool: ...
def _tree_build(
    node: typing.Any, leaves: list[typing.Any], make_node: collections.abc.Callable[..., typing.Any]
) -> typing.Any:
    """
    The tree of a node with these leaves.
    """

def _tree_check_levels(node: typing.Any) -> None:
    """
    Raises RecursionError where a node has too many levels.
    """

def _tree_collect(
    node: typing.Any, tree: typing.Any, children_of: collections.abc.Callable[..., typing.Any]
) -> list[typing.Any] | None:
    """
    What stands in the tree at the leaves of the node; None where it has another structure.
    """

def _tree_equal(first: typing.Any, second: typing.Any) -> bool:
    """
    Whether two nodes are equal.
    """

def _tree_open(
    tree: typing.Any,
    plain: set[typing.Any],
    is_node: collections.abc.Callable[..., typing.Any],
    open_other: collections.abc.Callable[..., typing.Any],
    sorted_keys: collections.abc.Callable[..., typing.Any],
) -> tuple[typing.Any, ...]:
    """
    Leaves and node of a tree; the node of a leaf is None.
    """

def _tree_paths(node: typing.Any, keys_of: collections.abc.Callable[..., typing.Any]) -> list[typing.Any]:
    """
    The path of each leaf, a tuple of keys.
    """

def _trim() -> int: ...
def _under_our_frame(function: typing.Any, x: typing.Any) -> typing.Any:
    """
    function(x). Frames of other extensions around it are not unwound when the interpreter goes down.
    """

def _use_copy_isa(name: str) -> None:
    """
    Lets all later copies use one of them.
    """

def _use_participant_variable(variable: typing.Any) -> None:
    """
    The context variable that says who runs in a context, for good.
    """

def _widen(array: typing.Any, out: typing.Any) -> None:
    """
    Floats of 16 bits as float32.
    """

def _write_platform_option(name: str, names: str | None) -> None: ...
def _write_scoped_option(name: str, value: typing.Any) -> None: ...
def _x64_enabled() -> bool: ...
def accelerator_catalogue() -> list[typing.Any]:
    """
    The accelerators as dicts, per chip; bytes, bytes/s, dense FLOP/s. What is not published is missing or None.
    """

def batch_size_advice(hardware_type: str) -> tuple[int, int, int, int | None, str]:
    """
    (min, optimal, critical, max_memory or None, notes) of the table; sizes in examples.
    """

def catalogue_sources() -> list[typing.Any]:
    """
    (id, title, address) of the catalogue's sources.
    """

def critical_batch(peak_flops: float, memory_bandwidth: float, weight_bytes: float) -> float:
    """
    Batch from which on arithmetic is the limit, where it is far below the weight matrix's sides.
    """

def detect_hardware_type(platform: str, device_kind: str) -> str:
    """
    The HardwareType value that a device's platform and kind say; "unknown" for chips that the table does not have.
    """

def exact_critical_batch(
    peak_flops: float,
    memory_bandwidth: float,
    inputs: int,
    outputs: int,
    input_bytes: float,
    weight_bytes: float,
    output_bytes: float,
) -> float | None:
    """
    The same with activations counted; None: never compute-bound.
    """

def find_accelerator(by: str, text: str) -> str | None:
    """
    Name of the accelerator that `text` means, or None; `by` is "name", "kind" (what the device calls itself), "pci" ("10de:2330") or "type" (a HardwareType's value).
    """

def get_topology_for_devices(devices: typing.Any) -> DeviceTopology:
    """
    The topology of the client that the devices are of: all of its devices, as in JAX.

    Raises:
        TypeError: `devices` is no sequence of Device.
        ValueError: It is empty, or the devices are of different clients.
    """

def live_arrays() -> list[typing.Any]:
    """
    All Arrays that are alive and not deleted, oldest first; shards taken out of one do not count.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> x = ad.device_put(np.ones(3))
        >>> any(x is y for y in ad.live_arrays())
        True
    """

def machine_svg(machine: Machine, max_cells: int = 1024) -> str:
    """
    A machine as a stand-alone SVG picture, coloured by CPU device; what does not fit is said.
    """

def max_memory_batch_size(free_bytes: int, bytes_per_example: int, model_state_bytes: int) -> int:
    """
    How many examples fit beside the model state. A model, not a measurement.
    """

def mesh_svg(mesh: Mesh, max_cells: int = 1024) -> str:
    """
    A mesh as a stand-alone SVG picture; what does not fit is said.
    """

def mesh_text(mesh: Mesh, max_cells: int = 256) -> str:
    """
    A mesh as a plain-text table of device numbers; what does not fit is said.
    """

def placed_mesh_svg(mesh: Mesh, max_cells: int = 2048) -> str:
    """
    A mesh of a cluster's devices on its torus, or on its nodes, as a stand-alone SVG picture; what is left out is said.

    For each axis the devices where they are: those that work together along it in one colour, with their place along it.
    Raises ValueError for a mesh whose devices are no cluster's.
    """

def sharding_svg(sharding: Sharding, shape: typing.Any) -> str:
    """
    Which devices hold which part of an array of `shape`, as a stand-alone SVG picture. Raises as Sharding.shard_shape.
    """

def sharding_text(
    sharding: Sharding, shape: typing.Any, max_columns: int = 80, min_width: int = 9, scale: float = 1.0
) -> str:
    """
    Which devices hold which part of an array of `shape`, drawn in characters. Raises as Sharding.shard_shape.
    """

def validate_batch_size(
    batch_size: int,
    hardware: str,
    min_batch_size: int,
    optimal_batch_size: int,
    critical_batch_size: int,
    warn_suboptimal: bool,
) -> tuple[bool, str]:
    """
    (is_valid, message), by these sizes of hardware with this name.
    """

_COPY_TERMS: tuple[typing.Any, ...]
_JOINED_BY_PCI: str
_PROGRAM_COLLECTIVES: tuple[typing.Any, ...]
_PROGRAM_TERMS: tuple[typing.Any, ...]
_UNCONSTRAINED: _Unconstrained

class DuplicateSpecError(ValueError):
    """A mesh axis used twice in one PartitionSpec. A ValueError here, unlike in JAX."""

class IndivisibleError(ValueError):
    """A dimension that its mesh axes do not divide. A ValueError, as in JAX."""

class JaxRuntimeError(RuntimeError):
    """What JAX's runtime raises under this name. A RuntimeError."""

class ResourceExhaustedError(MemoryError, JaxRuntimeError):
    """No memory: of a device's limit or of the machine. Both a MemoryError and, as in JAX, a JaxRuntimeError; its text begins with RESOURCE_EXHAUSTED."""

class ShardingTypeError(ValueError):
    """Operands that are cut differently over Explicit mesh axes. A ValueError here, unlike in JAX."""

class TransferGuardError(JaxRuntimeError):
    """A transfer that a transfer guard does not let pass. A JaxRuntimeError, as in JAX."""
