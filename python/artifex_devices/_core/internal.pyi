# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_stubs.py --generate from the built extension.
"""
Classes and functions of the core for the Python files of the package.
"""

import collections.abc
import contextvars
import typing

import artifex_devices._base.leaf_types
import numpy.typing
import typing_extensions
from artifex_devices._core import (
    Array,
    AxisType,
    Client,
    Cluster,
    Device,
    DeviceAssignment,
    DeviceList,
    DeviceTopology,
    Layout,
    Machine,
    Memory,
    Mesh,
    Rendezvous,
    Sharding,
)

__all__: list[str] = [
    "EXACT_WORDS",
    "JOINED_BY_PCI",
    "MEETING_HEAD_BYTES",
    "SHARED_TRACE_MEETING",
    "UNCONSTRAINED",
    "Backend",
    "Chain",
    "ConversionPart",
    "ConversionPlan",
    "FlightEvent",
    "FlightGroup",
    "FlightRecord",
    "FlightRecorder",
    "FolderLock",
    "HostLeaf",
    "MemoryWindow",
    "MeshDevices",
    "MessageChain",
    "OpenWorld",
    "Participant",
    "ProcessMap",
    "SavePart",
    "Scheduler",
    "SharedChannels",
    "SharedMeetingPoint",
    "StoredCheckpoint",
    "StreamedBoxes",
    "StreamedFile",
    "TraceRecording",
    "TransferRecording",
    "Unconstrained",
    "WorldScope",
    "abandon_scope",
    "adopt",
    "all_reduce",
    "allocate_and_free",
    "any_explicit",
    "array_from_callback",
    "array_from_dlpack",
    "array_from_parts",
    "array_from_pickle",
    "array_memory",
    "arrive",
    "axis_groups",
    "bar_chart_svg",
    "base_client_exists",
    "batch_share",
    "broadcast_specs",
    "buffers_at",
    "build_facts",
    "cached_host_value",
    "call_sleeping_at_exit",
    "canonical_memory_kind",
    "cgroup_report",
    "check_allocator",
    "check_cuda_device",
    "check_int",
    "check_scope",
    "check_transfer",
    "client_of_cluster",
    "client_of_named_platform",
    "client_of_platform",
    "clock_difference",
    "close",
    "cluster_from_tables",
    "cluster_from_text",
    "compare_flight_records",
    "config_read",
    "config_write",
    "contract_specs",
    "copy_isa",
    "copy_to_host",
    "copy_views",
    "covers",
    "crc32c",
    "create_channels",
    "creation_line",
    "cuda_backend",
    "cuda_report",
    "current_client",
    "default_device",
    "describe_gpus",
    "describe_process",
    "device_assignment",
    "device_list_from_pickle",
    "device_topology",
    "devices",
    "divide",
    "empty",
    "emulated_gpu_backend",
    "enter_scope",
    "entered_meshes",
    "exact_add",
    "exact_all_reduce",
    "exact_reduce",
    "exact_round",
    "exchange_paths",
    "find_accelerators",
    "find_device",
    "find_memory",
    "flight_timeline",
    "fold",
    "forget_recent",
    "get_leaf",
    "gpu_buffers",
    "gpu_cluster",
    "have_elements",
    "heap_profile",
    "holds_complete_runs",
    "host_element",
    "host_empty",
    "host_operand",
    "host_result",
    "host_value",
    "hybrid_mesh_order",
    "inverse_rules",
    "is_constant",
    "is_on_cuda",
    "is_same_meeting",
    "is_tracing",
    "join_gpu_world",
    "join_world",
    "last_level_cache_bytes",
    "layout_from_text",
    "leaf_repair",
    "leave_scope",
    "likeness",
    "local_arrays",
    "machine_node",
    "make_client",
    "make_cluster",
    "make_mesh",
    "make_shared_client",
    "matching_names",
    "measure_gemm",
    "measure_streams",
    "measured_scope",
    "meeting_record",
    "memory_policy",
    "mesh_from_pickle",
    "moments",
    "moved",
    "named_sharding_from_pickle",
    "narrowed",
    "new_scheduler",
    "owned_boxes",
    "parse_world",
    "part_of_box",
    "placed_mesh_svg",
    "plan_cpu_shares",
    "plan_gpu_shares",
    "platform_option",
    "pop_world",
    "prefers_gpus",
    "process_groups",
    "process_parts",
    "push_world",
    "put_leaf",
    "put_leaves",
    "read_flight_record",
    "read_meeting_record",
    "read_nvml",
    "real_path",
    "reinterpreted",
    "release_dropped_owners",
    "reshape_spec",
    "reshard_bytes",
    "rule_dtype",
    "rule_text",
    "run_parallel",
    "safe_repr",
    "safetensors_type",
    "schedule_svg",
    "scoped_option",
    "select",
    "set_num_cpu_devices",
    "set_thread_caller",
    "set_trace_process",
    "sharding_with",
    "shutdown",
    "single_device_sharding_from_pickle",
    "slab_array",
    "spec_in",
    "supported_isas",
    "take",
    "take_cpu_share",
    "tiling",
    "totals",
    "tpu_cluster",
    "trace_begin",
    "trace_clock",
    "trace_collective",
    "trace_event",
    "trace_meetings",
    "transfer_is_guarded",
    "tree_build",
    "tree_collect",
    "tree_compose",
    "tree_equal",
    "tree_num_leaves",
    "tree_of_rows",
    "tree_open",
    "tree_paths",
    "tree_rows",
    "tree_text",
    "trim",
    "use_participant_variable",
    "value_digest",
    "widen",
    "write_platform_option",
    "write_scoped_option",
    "x64_enabled",
]

class OpenWorld:
    pass

class Backend:
    """
    Kind of the devices of a client. CPU devices by default.
    """

class WorldScope:
    """
    Context manager of `simulate`: opens a world and leaves it.
    """

    def __enter__(self) -> Client:
        """
        Opens the world and returns its client.
        """

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """
        Returns to the enclosing world.
        """

    def __init__(
        self,
        make: collections.abc.Callable[[], Client],
        all_threads: bool,
        make_outer: collections.abc.Callable[[], Client | None] | None = None,
    ) -> None:
        """
        Creates the context manager.

        `make` creates the client of the world. `make_outer` creates the client of a world around it, or is None.
        """

class MemoryWindow:
    """
    Memory use of arrays on the devices of the current world, from now to close().
    """

    def __init__(self) -> None: ...
    def close(self) -> None:
        """
        Stops counting. A second call does nothing.
        """

    def live(self, top: int) -> tuple[int, int, list[tuple[int, Array]]]:
        """
        Returns the number and bytes of the live Arrays of its world, and (bytes, Array) of the largest `top` ones.
        """

    def physical_bytes(self) -> int:
        """
        Returns the bytes now in use, by all worlds, in the memories of the world's devices.
        """

    def use(self) -> list[tuple[int, int, int, int, int]]:
        """
        Returns (at_start, in_use, peak, allocated, freed) in bytes for each device.
        """

    @property
    def devices(self) -> tuple[Device, ...]:
        """
        Devices of the window, by id (tuple of Device).
        """

class Unconstrained:
    """
    The type of PartitionSpec.UNCONSTRAINED.
    """

    def __reduce__(self) -> str: ...
    def __repr__(self) -> str: ...

class HostLeaf:
    """
    An asynchronous copy of one Array to the host.
    """

    def done(self) -> bool: ...
    def value(self) -> numpy.typing.NDArray[typing.Any]: ...
    def wait(self, seconds: float | None) -> bool: ...

class TransferRecording:
    """
    Records the transfers of this process from now to stop().
    """

    def __init__(self) -> None: ...
    def lines(self) -> list[tuple[str, str, int, int, int, int]]:
        """
        Returns rows of (direction, file, line, calls, bytes, bytes that device_put could share).
        """

    def routes(self) -> list[tuple[str, str, str, str, str, int, int]]:
        """
        Returns rows of (direction, source, its device kind, destination, its device kind, calls, bytes).
        """

    def stop(self) -> None: ...

class SavePart:
    """
    Part of a checkpoint that one process writes.
    """

    def __init__(self, operation: str) -> None: ...
    def add_arrays(self, leaves: list[typing.Any]) -> tuple[Client | None, list[int]]:
        """
        Adds the boxes that this process must write of the Arrays among the leaves.

        Returns:
            (client of the first Array that spans processes, or None; positions of the leaves that are not Arrays).
        """

    def add_ndarrays(self, ndarrays: dict[int, typing.Any], operation: str) -> None:
        """
        Adds complete ndarrays and NumPy scalars: a dict by their position among the leaves.

        The ndarrays must not change before write() has returned.
        """

    def write(self, folder: str, names: collections.abc.Sequence[str], process: int) -> None:
        """
        Writes the files of a process, with a name for each leaf, and waits until the data is on storage.
        """

    @property
    def bytes(self) -> int:
        """
        Bytes of all boxes.
        """

    @property
    def bytes_written(self) -> int:
        """
        Bytes written so far.
        """

class StoredCheckpoint:
    """
    The headers of all files of a checkpoint.
    """

    @staticmethod
    def of_parts(paths: collections.abc.Sequence[str], parts: list[typing.Any], operation: str) -> StoredCheckpoint:
        """
        Returns the checkpoint of row-major parts in files of another format, after checks of their places.

        A part is (name, dtype, shape of the array, origin of the box, shape of the box, number of the file, first byte).
        """

    def __init__(self, path: str, operation: str) -> None:
        """
        Reads the headers of a folder, of one safetensors file, or of the files of an index.
        """

    def arrays(self, type: type[typing.Any]) -> dict[str, typing.Any]:
        """
        Returns a dict of name to `type`(shape, dtype or None, stored type, number), for each stored array.
        """

    def describe(self, array_type: type[typing.Any], part_type: type[typing.Any]) -> dict[str, typing.Any]:
        """
        Returns a dict of name to `array_type`, for each stored array.

        `array_type` is a NamedTuple class of (shape, dtype or None, stored type, parts, whether the shape is derived from the
        parts); `part_type`, of its parts, is one of (file, origin, shape, bytes).
        """

    def read(self, requests: list[typing.Any], verify: bool, operation: str) -> int:
        """
        Reads stored arrays into Arrays of empty() and ndarrays. Returns the number of bytes read.

        `requests` has (number of the stored array, destination) for each.
        """

    def read_box(self, number: int, destination: typing.Any, origin: typing.Any, verify: bool, operation: str) -> int:
        """
        Reads a box of a stored array into an ndarray of the shape of the box. Returns the number of bytes read.

        `origin` is the index in the array of the first element of the box. Checksums of the pieces that a contiguous box
        contains are compared; with `verify`, all pieces that the box touches are read completely and compared.
        """

    @property
    def bytes_read(self) -> int:
        """
        Bytes that were read into arrays so far.
        """

    @property
    def derived_shapes(self) -> list[str]:
        """
        Names of the arrays whose shape no file states.
        """

    @property
    def paths(self) -> str:
        """
        JSON of the paths of the leaves whose path is not just their name.
        """

    @property
    def process_count(self) -> typing.Any:
        """
        Number of processes that saved it; None without checkpoint.json.
        """

    @property
    def states_boxes(self) -> bool:
        """
        Whether a file states which box of an array a tensor is.
        """

    @property
    def values(self) -> str:
        """
        JSON of the Python values.
        """

    @property
    def without_checksums(self) -> list[str]:
        """
        Names of the arrays with elements that have no checksum.
        """

class StreamedFile:
    """
    A new file that is written from its beginning to its end, with checksums.
    """

    def __init__(self, path: str, operation: str, head_bytes: int) -> None: ...
    def finish(self, head: str) -> None:
        """
        Writes the first bytes, and waits until everything is on storage.
        """

    def write(self, data: typing_extensions.Buffer) -> None:
        """
        Appends bytes behind the head.
        """

    @property
    def bytes(self) -> int:
        """
        Bytes so far, with the head.
        """

    @property
    def checksum(self) -> int:
        """
        CRC-32C of the bytes behind the head.
        """

class StreamedBoxes:
    """
    A file of a checkpoint whose boxes are written one after another, behind their header.
    """

    def __init__(self, boxes: list[typing.Any], operation: str) -> None:
        """
        Takes rows (name, dtype, shape of the array, origin of the box, shape of the box).
        """

    def add(self, data: typing_extensions.Buffer) -> None:
        """
        Computes checksums of the next bytes of the boxes.
        """

    def header(self) -> bytes:
        """
        Returns the first bytes of the file; their number does not depend on the checksums.
        """

class FolderLock:
    """
    The lock of one save on a folder, which keeps other saves out of it. Forked children do not hold it.
    """

    @staticmethod
    def is_taken_by_this_thread(folder: str) -> bool:
        """
        Returns whether this thread has locked a folder: then a signal handler interrupted it, and runs this.
        """

    def __init__(self) -> None: ...
    def is_at(self, path: str) -> bool:
        """
        Returns whether the locked folder is still at a path; False without a lock.
        """

    def release(self) -> None:
        """
        Unlocks the folder, if it is locked.
        """

    def take(self, folder: str) -> bool:
        """
        Locks a folder; returns False if it does not exist. Raises BlockingIOError if another save has locked it.
        """

    @property
    def is_held(self) -> bool:
        """
        Whether a folder is locked.
        """

class ConversionPart:
    """
    What a box of a source contributes to a box of a target.
    """

    def copy(self, source: typing.Any, target: typing.Any) -> None:
        """
        Copies elements between dense row-major ndarrays of both boxes, permutes axes and changes values.

        Drops the GIL. `source` is None for a constant. Bits are kept where no rule changes values.
        """

    @property
    def is_identity(self) -> bool:
        """
        Whether both boxes have the same bytes, so that the target is the source, reshaped.
        """

class ConversionPlan:
    """
    A conversion before a byte is read: each target array as boxes of sources.
    """

    def __init__(
        self,
        operation: str,
        sources: list[typing.Any],
        rules: list[typing.Any],
        floats: typing.Any,
        like: list[typing.Any] | None,
        allow_missing: collections.abc.Sequence[str],
        allow_extra: collections.abc.Sequence[str],
    ) -> None:
        """
        Applies the fields of rules to rows (name, shape, dtype) and compares the result with rows `like`.

        Arrays of floating-point numbers are then cast to `floats`, unless it is None.
        """

    def itemsize(self, target: int) -> int:
        """
        Returns the largest number of bytes of an element of a target array and its sources.
        """

    def memory_bytes(self, workers: int) -> int:
        """
        Returns the largest number of bytes that the pieces of so many workers take.
        """

    def parts(self, target: int, origin: typing.Any, shape: collections.abc.Sequence[int]) -> list[typing.Any]:
        """
        Returns what to read and copy for a box of a target array, by the array's number.

        Each is (name of the source or None for a constant, origin and shape of a box of the source, ConversionPart). Together they
        write each element of the box once.
        """

    def targets(self) -> list[typing.Any]:
        """
        Returns a row (name, shape, dtype) for each target array.
        """

    def text(self, workers: int) -> str:
        """
        Returns the table of a dry run.
        """

    @property
    def bytes_read(self) -> int:
        """
        Bytes of all boxes in the sources.
        """

    @property
    def bytes_written(self) -> int:
        """
        Bytes of all target arrays.
        """

    @property
    def extra(self) -> list[str]:
        """
        Names that `like` lacks.
        """

    @property
    def missing(self) -> list[str]:
        """
        Names in `like` without a source.
        """

    @property
    def unread(self) -> list[str]:
        """
        Names of sources that no target reads.
        """

class ProcessMap:
    """
    Assignment of the participants of a mesh to processes.
    """

    def __init__(
        self,
        process: int,
        sizes: collections.abc.Sequence[int],
        holders: collections.abc.Sequence[collections.abc.Sequence[int]],
    ) -> None: ...
    def groups_across(self, groups: collections.abc.Sequence[collections.abc.Sequence[int]]) -> typing.Any:
        """
        Returns the fields of a CrossProcessGroups for the groups that span processes, or None if there are none.
        """

    def meeting_sets(self) -> tuple[typing.Any, ...]:
        """
        Returns every set of processes, including this process, that run collectives over axes of the mesh together.
        """

    def same_parts(self, unnamed: collections.abc.Sequence[int]) -> typing.Any:
        """
        Returns the fields of a CrossProcessGroups for the processes that hold the same parts of a value, or None.

        The value is sharded over all axes except `unnamed`.
        """

    @property
    def here(self) -> tuple[typing.Any, ...]:
        """
        Participants of this process.
        """

    @property
    def processes(self) -> tuple[typing.Any, ...]:
        """
        All processes that run a participant, ascending.
        """

class Participant:
    """
    One run of a body; created by a scheduler.
    """

class Scheduler:
    """
    The participants of a session; see new_scheduler.
    """

    def begin_turns(
        self, executor: typing.Any, caller: typing.Any, context: typing.Any, fibers: list[typing.Any]
    ) -> None:
        """
        Starts turns of participants that share a thread. A fiber is (switch, [executor]).
        """

    def close(self) -> None:
        """
        Ends the call: its participants cannot call collectives any more, and their objects are released.
        """

    def end_turns(self) -> None:
        """
        Clears the executor of each fiber.
        """

    def ended(self, me: typing.Any, outcome: typing.Any) -> typing.Any:
        """
        Returns the participant that begins in its fiber, or None.
        """

    def enter(self) -> typing.Any:
        """
        Returns the participant that begins in the fiber of the calling greenlet, or None.
        """

    def keep_order(self) -> list[typing.Any]:
        """
        Makes only the caller choose the next participant. Returns those already chosen, the next one last.
        """

    def know(
        self,
        operation: str,
        axis_name: typing.Any,
        x: typing.Any,
        argument: typing.Any,
        options: tuple[typing.Any, ...],
        collective: typing.Any,
        groups: list[typing.Any],
        signature: int,
        reduction: str,
    ) -> None:
        """
        Makes arrive handle arrays like x, with one group for each participant or one for all. `reduction` is "" unless all members get the total of their blocks.
        """

    def next(self) -> typing.Any:
        """
        Returns the switch to the participant with the next turn, or to the caller.
        """

    def open(self, session: typing.Any, outcomes: list[typing.Any], rows: list[typing.Any]) -> None:
        """
        Starts a call.
        """

    def participants(self) -> list[typing.Any]:
        """
        Returns the participants of the call; none after its end.
        """

    def plain(self, code: typing.Any) -> None:
        """
        Makes waits of this body plain where the code `root` calls it.
        """

    def prepare(
        self,
        me: typing.Any,
        operation: str,
        groups: typing.Any,
        argument: typing.Any,
        indices: typing.Any,
        prepared: typing.Any,
    ) -> typing.Any:
        """
        Stores the prepared form of an argument. Returns it, or the stored form of equal indices.
        """

    def prepared(self, me: typing.Any, operation: str, groups: typing.Any, argument: typing.Any) -> typing.Any:
        """
        Returns the prepared form of equal indices, or None.
        """

    def raised(self, me: typing.Any, is_own: bool) -> typing.Any:
        """
        Records that the participant's body raised. Returns None, because no participant begins after a failure.
        """

    def resumed(self, me: typing.Any) -> None:
        """
        Records that the participant has the turn again.
        """

    def suspend(self, me: typing.Any) -> typing.Any:
        """
        Suspends the participant. Returns the switch to the participant with the next turn, or to the caller.
        """

    def suspended(self) -> list[typing.Any]:
        """
        Returns the positions of the waiting participants, in the order of suspension.
        """

    def turn_of(self, position: int) -> typing.Any:
        """
        Returns the switch to a participant that has begun.
        """

    def wait_by(self, wait: typing.Any, root: typing.Any, foreign: tuple[typing.Any, ...]) -> None:
        """
        Makes waits call wait(me, frame), unless they are plain. All are plain while no module of `foreign` is imported.
        """

class Chain:
    """
    This process's part of a reduction over the processes of one host.
    """

    def advance(self, seconds: float) -> bool:
        """
        Continues, waiting at most `seconds` for other processes. Returns whether everything is done.
        """

    @property
    def progress(self) -> int:
        """
        Number of pieces combined or received so far.
        """

class MessageChain:
    """
    This process's part of a reduction over processes that share no memory.

    Channel 0 comes from and channel 3 goes to the previous process; channel 1 goes to and channel 2 comes from the next process.
    """

    def __init__(
        self, memory: list[typing.Any], kind: str, blocks: list[typing.Any], out: typing.Any, begin: int, handed_on: int
    ) -> None:
        """
        Creates the object.

        `memory` has a uint8 ndarray of shape (slots, bytes of a piece), or None, for each channel. The other arguments are the same as
        the arguments of SharedChannels.chain().
        """

    def advance(self) -> bool:
        """
        Does the work that the messages so far allow. Returns whether everything except the last messages is done.
        """

    def begin_messages(self) -> list[typing.Any]:
        """
        Returns (channel, number, bytes) of the messages to begin now; the slot is number % slots.
        """

    def ended(self, channel: int, number: int) -> None:
        """
        Records that a message has been sent or received.
        """

class SharedChannels:
    """
    Messages and streams between the processes of one host.
    """

    max_message_bytes: typing.ClassVar[int] = 8000

    def __init__(self, me: int, files: collections.abc.Sequence[int]) -> None: ...
    def chain(
        self, before: int, after: int, kind: str, blocks: list[typing.Any], out: typing.Any, begin: int, handed_on: int
    ) -> Chain:
        """
        Creates this process's part of a reduction of flat blocks.

        Args:
            before: Process before this one in the chain, or -1.
            after: Process after this one in the chain, or -1.
            kind: "sum", "prod", "max" or "min".
            blocks: Flat ndarrays to reduce.
            out: This process's share of the result.
            begin: Number of the first element of that share.
            handed_on: End of the elements that processes before it need.
        """

    def post(self, receivers: collections.abc.Sequence[int], message: bytes) -> None:
        """
        Sends a message to each receiver. Never waits.
        """

    def skip(self, senders: collections.abc.Sequence[int]) -> None:
        """
        Discards the next message of each sender.
        """

    def take(self, senders: collections.abc.Sequence[int]) -> list[typing.Any]:
        """
        Returns the oldest message of each sender (bytes), which must have arrived.
        """

    def wait(self, senders: collections.abc.Sequence[int], seconds: float) -> bool:
        """
        Waits at most `seconds`. Returns whether a message of each sender has arrived.
        """

class FlightGroup:
    """
    A set of processes that run operations together.
    """

    def meet(self, text: str, digest: bytes) -> None:
        """
        Records that a meeting begins; `last` is its number.
        """

    @property
    def last(self) -> int:
        """
        The number of the meeting that began last.
        """

class FlightRecorder:
    """
    File with the last operations of this process. Raises OSError if it cannot be created.
    """

    def __init__(self, path: str, process: int, process_count: int, host: str) -> None: ...
    def end(self, number: int, bytes: int = 0) -> None:
        """
        Records that an event has succeeded, and the bytes that this process sent and received.
        """

    def exchange(self, text: str, in_shared_memory: bool) -> int:
        """
        Records that bytes begin to move; returns the number of the event.
        """

    def fail(self, number: int, bytes: int = 0) -> None:
        """
        Records that an event has failed.
        """

    def group(self, processes: collections.abc.Sequence[int]) -> FlightGroup:
        """
        Returns a group of processes, given their numbers, ascending.
        """

    def leave(self) -> None:
        """
        Records that this process has left its job.
        """

class FlightEvent:
    """
    A recorded operation between processes.
    """

    @property
    def begin_ns(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def digest(self) -> int: ...
    @property
    def end_ns(self) -> int: ...
    @property
    def file(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def number(self) -> int: ...
    @property
    def operation(self) -> str: ...
    @property
    def outcome(self) -> str: ...
    @property
    def processes(self) -> str: ...
    @property
    def route(self) -> str: ...
    @property
    def turn(self) -> int: ...

class FlightRecord:
    """
    The last operations of a process.
    """

    @property
    def begin_ns(self) -> int: ...
    @property
    def event_count(self) -> int: ...
    @property
    def events(self) -> list[FlightEvent]: ...
    @property
    def has_left(self) -> bool: ...
    @property
    def host(self) -> str: ...
    @property
    def pid(self) -> int: ...
    @property
    def process(self) -> int: ...
    @property
    def process_count(self) -> int: ...

class SharedMeetingPoint:
    """
    Meetings of processes of one host, through shared memory.
    """

    def __init__(
        self, channels: SharedChannels, others: collections.abc.Sequence[int], mine: int, group: int, max_text: int
    ) -> None:
        """
        Creates the object.

        `others` has the numbers of the other members in the channels; `mine` is the position of this process among all members.
        """

    def meet(
        self, kind: int, digest: bytes, payload: bytes, text: str, flight: FlightGroup | None = None
    ) -> list[bytes] | None:
        """
        Sends a record and waits shortly for the records of the other members.

        Returns:
            The payload of each member (bytes) if all of them soon reach the same operation, else None. After None, the caller must
            take the records of the others from the channels, and end the event that began in the flight record, if there is one.
        """

    def start(self, kind: int, digest: bytes, payload: bytes, text: str) -> None:
        """
        Sends a record. The caller must take the records of the other members from the channels.
        """

    @property
    def sent(self) -> bytes:
        """
        The record that was sent last.
        """

class TraceRecording:
    """
    Records events of this process, and memory of the current world's devices, until stop().
    """

    def __init__(self, process: int) -> None: ...
    def events(self) -> list[typing.Any]:
        """
        Returns a row for each recorded event.

        A row is (kind, process, device, thread, name, detail, begin, end, time that a participant ran before, planned bytes,
        moved bytes, meeting, file, line), with times in ns.
        """

    def memory(self) -> list[typing.Any]:
        """
        Returns rows of (process, device, time in ns, bytes of arrays from that time on).
        """

    def stop(self) -> None:
        """
        Ends the recording. A second call does nothing.
        """

    @property
    def dropped(self) -> int:
        """
        Number of events and values that were not recorded, for lack of space.
        """

class MeshDevices:
    """
    Devices to lay a mesh over.
    """

    @staticmethod
    def of_cluster(devices: list[typing.Any], text: collections.abc.Callable[..., typing.Any]) -> MeshDevices | None:
        """
        Creates the object for the devices of one cluster; returns None for other devices.
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
        Creates the object.

        `rows` has (id, x, y, z, core_on_chip, slice_index) of each device; `text` formats a device for error messages.
        """

    def exact_order(
        self, shape: collections.abc.Sequence[int], traffic: collections.abc.Sequence[float], split: bool
    ) -> typing.Any:
        """
        Returns the position of the device at each place of the mesh with the least modelled time, as an int64 ndarray.
        """

    def explain(
        self, shape: collections.abc.Sequence[int], traffic: collections.abc.Sequence[float]
    ) -> tuple[typing.Any, ...]:
        """
        Returns (title, source, network, wraps, axes, axes by id, places) for the devices in a mesh of `shape`.
        """

    def jax_order(
        self, shape: collections.abc.Sequence[int], contiguous: bool, split: bool
    ) -> numpy.typing.NDArray[typing.Any]:
        """
        Returns the position of the device at each place of the mesh, by JAX's rule, as an int64 ndarray.
        """

    @property
    def platform(self) -> str:
        """
        Platform of the last device.
        """

def abandon_scope(owner: object) -> None:
    """
    Skips the scopes of this owner from now on, in all contexts.
    """

def adopt(
    shape: collections.abc.Sequence[int],
    dtype: numpy.typing.DTypeLike,
    sharding: Sharding,
    parts: list[numpy.typing.NDArray[typing.Any]],
    given: list[typing.Any],
    operation: str,
) -> Array:
    """
    Returns an Array from one ndarray for each distinct buffer, sharing memory where no one else can write it.
    """

def all_reduce(
    kind: str, inputs: list[numpy.typing.NDArray[typing.Any]], out: numpy.typing.NDArray[typing.Any]
) -> None:
    """
    Combines the inputs in their order, element by element, into `out`. Strided inputs are copied.

    `kind` is "sum", "prod", "max" or "min".
    """

def allocate_and_free(nbytes: int, times: int, touch: bool) -> None:
    """
    Allocates and frees a block of memory `times` times, for the benchmark family `threads`.

    With `touch`, it writes to each page of the block.
    """

def any_explicit(sharding: Sharding, axes: tuple[collections.abc.Hashable, ...]) -> bool:
    """
    Returns whether one of the axes is Explicit.

    An operation changes the sharding over Explicit axes only if the caller asks for it.
    """

def array_from_callback(
    operation: str,
    shape: collections.abc.Sequence[int],
    sharding: Sharding,
    callback: collections.abc.Callable[..., typing.Any],
    dtype: typing.Any,
) -> Array: ...
def array_from_dlpack(capsule: typing.Any, device: Device | Sharding | None, copy: bool | None) -> Array: ...
def array_from_parts(
    operation: str,
    shape: collections.abc.Sequence[int],
    sharding: Sharding,
    parts: collections.abc.Sequence[typing.Any],
    dtype: typing.Any,
    is_stack: bool = False,
    ours: collections.abc.Sequence[bool] = [],
) -> Array: ...
def array_from_pickle(
    value: object, sharding: typing.Any, committed: bool, layout: str | None = None
) -> typing.Any: ...
def array_memory(array: Array) -> artifex_devices._base.leaf_types.Record: ...
def arrive(
    operation: str, axis_name: typing.Any, x: typing.Any, argument: typing.Any = None, *options: typing.Any
) -> typing.Any:
    """
    Returns the function to call before take, or None for an unknown collective. `argument` has indices that are the same for all participants, such as a permutation.
    """

def axis_groups(
    sizes: collections.abc.Sequence[int], axes: collections.abc.Sequence[int]
) -> tuple[tuple[int, ...], ...]:
    """
    Returns the groups of participants that differ along these axes only.

    The members of a group are row-major over the axes, in the order in which the axes are listed.
    """

def bar_chart_svg(
    title: str,
    kinds: collections.abc.Sequence[str],
    bars: collections.abc.Sequence[
        tuple[str, collections.abc.Sequence[float], collections.abc.Sequence[str], str, bool]
    ],
    limit: float,
    limit_text: str,
    is_waterfall: bool,
    notes: collections.abc.Sequence[str],
) -> str:
    """
    Returns a chart of stacked bars, or a waterfall, as a stand-alone SVG picture.

    `bars` has (label, parts, texts, total, is_aside) of each bar.
    """

def base_client_exists() -> bool: ...
def batch_share(sharding: Sharding, length: int, dimension: int) -> tuple[int, int]:
    """
    Returns (begin, end) of the rows of a dimension that this process holds.
    """

def broadcast_specs(
    operation: str, placement: Sharding, shape: collections.abc.Sequence[int], arrays: collections.abc.Sequence[Array]
) -> tuple[tuple[collections.abc.Hashable, ...], ...]:
    """
    Returns the mesh axes that shard each dimension of an element-wise result of shape `shape`.
    """

def buffers_at(sharding: Sharding, positions: collections.abc.Sequence[int]) -> tuple[int, ...]:
    """
    Returns the number of the buffer at each position.
    """

def build_facts() -> dict[str, str]:
    """
    Returns the versions that the core was built with (dict of texts).
    """

def cached_host_value(array: Array) -> numpy.typing.NDArray[typing.Any] | None:
    """
    Returns the value that np.asarray(array) has gathered and cached, or None.
    """

def call_sleeping_at_exit(function: typing.Any, x: typing.Any) -> typing.Any:
    """
    Calls function(x), and lets the thread sleep forever if CPython ends it meanwhile, at interpreter exit.

    Otherwise CPython would unwind the frames of other extensions that called this function.
    """

def canonical_memory_kind(kind: str | None, devices: collections.abc.Sequence[Device]) -> str | None: ...
def cgroup_report(root: str = "") -> artifex_devices._base.leaf_types.Record:
    """
    Returns the limits of the process's cgroups (dict), their files, and the files that cannot be read.
    """

def check_allocator(kind: int, memory_fraction: float, preallocate: bool, collective_memory_size: int) -> None: ...
def check_cuda_device(number: int, device: Device | Sharding | None) -> None:
    """
    Raises BufferError for memory of a GPU that this program does not have.
    """

def check_int(x: int, operation: str) -> None:
    """
    Raises OverflowError for an int that neither int64 nor uint64 holds.
    """

def check_scope(name: str, value: object, operation: str) -> typing.Any: ...
def check_transfer(
    direction: str,
    explicit: bool,
    shape: object,
    dtype: object,
    source: object,
    target: object,
    operation: str = "transfer",
) -> None:
    """
    Raises TransferGuardError or logs, as the guards of this context say. Call it before data moves.

    Args:
        direction: "host_to_device", "device_to_device" or "device_to_host".
        explicit: Whether the user asked for the transfer by name (the device_put family).
        shape: Shape of the value, for the message; turned into text only when a message is needed, as the next three.
        dtype: Dtype of the value.
        source: Where the value is.
        target: Where the value is to be placed.
        operation: Name of the function that the user called.

    Raises:
        TransferGuardError: The guards refuse the transfer.
    """

def client_of_cluster(cluster: Cluster) -> Client:
    """
    Returns the client of a cluster's devices.
    """

def client_of_named_platform() -> Client:
    """
    Returns the current client for a call that names its platform, without checking jax_platform_name.
    """

def client_of_platform(platform: str) -> Client | None:
    """
    Returns the client of a platform in the calling context, or None. The CPU is available in addition to GPUs.
    """

def clock_difference(trips: collections.abc.Sequence[tuple[int, int, int]]) -> tuple[int, int] | None:
    """
    Returns (ns that the other clock is ahead, error in ns) from round trips (sent, answered, returned), or None.
    """

def close() -> None:
    """
    Ends all workers, within a time limit. Registered with atexit.
    """

def cluster_from_tables(content: artifex_devices._base.leaf_types.Record, source: str) -> Cluster:
    """
    Creates a Cluster from the tables of a cluster file, whose keys and types the caller has checked.
    """

def cluster_from_text(text: str) -> Cluster:
    """
    Describes a cluster of the catalogue as people write it.
    """

def compare_flight_records(records: collections.abc.Sequence[FlightRecord]) -> list[typing.Any]:
    """
    Compares the records of a job's processes, group by group.

    Returns:
        list of (processes, last common meeting, [(process, next meeting)], processes behind, whether they are apart).
    """

def config_read(name: str) -> int: ...
def config_write(name: str, value: int) -> None: ...
def contract_specs(
    operation: str,
    placement: Sharding,
    arrays: collections.abc.Sequence[Array],
    labels: collections.abc.Sequence[collections.abc.Sequence[int]],
    sizes: collections.abc.Sequence[int],
    out_rank: int,
) -> tuple[tuple[collections.abc.Hashable, ...], ...]:
    """
    Returns the mesh axes of each label of a contraction; the first `out_rank` labels are the result's dimensions.
    """

def copy_isa() -> str:
    """
    Returns the instruction set that copies use.
    """

def copy_to_host(array: Array) -> HostLeaf: ...
def copy_views(
    destinations: list[numpy.typing.NDArray[typing.Any]], sources: list[numpy.typing.NDArray[typing.Any]]
) -> None:
    """
    Copies each source ndarray to the destination of its index, on several threads. They must not overlap.
    """

def covers(held: Sharding, wanted: Sharding, shape: collections.abc.Sequence[int], operation: str) -> bool:
    """
    Returns whether each device, of any process, already holds the part that `wanted` gives it.

    Both shardings have the same devices in the same order.
    """

def crc32c(data: typing_extensions.Buffer, before: int) -> int:
    """
    Returns the CRC-32C of contiguous bytes; `before` is of the bytes before.
    """

def create_channels(count: int) -> int:
    """
    Creates a memory file for the messages of one of `count` processes of a host. Returns its descriptor. The caller must close it.
    """

def creation_line(array: Array) -> tuple[str, int] | None: ...
def cuda_backend(devices_per_gpu: int = 1) -> Backend:
    """
    Returns the GPUs of this machine. `devices_per_gpu`: more than one for tests.
    """

def cuda_report() -> artifex_devices._base.leaf_types.Record:
    """
    Returns what the CUDA driver reports, and why CUDA is not usable ("problem" and "fix", else empty).
    """

def current_client() -> Client: ...
def default_device() -> Device: ...
def describe_gpus(
    ordinals: collections.abc.Sequence[int],
) -> tuple[str, int, list[tuple[list[int], list[int], list[int], int, int]], list[int], list[tuple[str, int | None]]]:
    """
    Returns a tuple as describe_process does, for a process that uses the GPUs of these numbers.
    """

def describe_process(
    machine: Machine | None = None, num_devices: int | None = None, backend: Backend | None = None
) -> tuple[str, int, list[tuple[list[int], list[int], list[int], int, int]], list[int], list[tuple[str, int | None]]]:
    """
    Returns a tuple, which can be pickled, that describes the devices of this process.

    Without a machine, it describes the devices of the base client.
    """

def device_assignment(data: bytes) -> DeviceAssignment: ...
def device_list_from_pickle(platform: str, device_ids: collections.abc.Sequence[int]) -> DeviceList: ...
def device_topology(data: bytes) -> DeviceTopology: ...
def devices() -> list[Device]: ...
def divide(array: numpy.typing.NDArray[typing.Any], by: float) -> None:
    """
    Divides a dense array of 16-bit floats in place, each number in float32.
    """

def empty(
    shape: collections.abc.Sequence[int],
    dtype: numpy.typing.DTypeLike,
    sharding: Sharding,
    committed: bool,
    operation: str,
) -> Array:
    """
    Returns an uninitialized Array. The caller fills it by local_arrays(), slab_array() or StoredCheckpoint.read().
    """

def emulated_gpu_backend(device_kind: str | None = None) -> Backend:
    """
    Returns GPUs that the CPU emulates. `device_kind`: one of the catalogue.
    """

def enter_scope(names: collections.abc.Sequence[str], value: object, owner: object) -> None: ...
def entered_meshes() -> tuple[Mesh, ...]: ...
def exact_add(
    term: str, array: typing.Any, others: typing.Any, axes: collections.abc.Sequence[int], states: typing.Any
) -> None:
    """
    Adds the terms of float32 or float64 over `axes` to states, exactly.

    `term` is "value", "absolute", "square", "product" by `others`, or "deviation": the square of the difference from
    `others`, which are float64. `states` are int64, with EXACT_WORDS in the last dimension and
    one row for each element of the result. States of parts add up to the state of the whole.
    """

def exact_all_reduce(inputs: list[typing.Any], dtype: typing.Any, divisor: int, out: typing.Any) -> None:
    """
    Writes the exact sums of float32 or float64, element by element, divided and rounded once to a dtype.
    """

def exact_reduce(
    term: str,
    arrays: list[typing.Any],
    others: list[typing.Any],
    axes: collections.abc.Sequence[int],
    dtype: typing.Any,
    divisor: int,
    out: typing.Any,
) -> None:
    """
    Writes the exact sums of the terms of all arrays over `axes`, divided and rounded once to a dtype, as float64.
    """

def exact_round(states: typing.Any, dtype: typing.Any, divisors: typing.Any, out: typing.Any) -> None:
    """
    Writes sums divided by int64, rounded once to a dtype, as float64.
    """

def exchange_paths(a: str, b: str, operation: str) -> bool:
    """
    Exchanges two folders in one step. Returns False where the file system cannot.
    """

def find_accelerators(
    machine: Machine | None, root: str, nvml_library: str | None
) -> artifex_devices._base.leaf_types.Record: ...
def find_device(platform: str, id: int) -> Device: ...
def find_memory(platform: str, id: int, kind: str) -> Memory: ...
def flight_timeline(
    records: collections.abc.Sequence[FlightRecord],
) -> tuple[list[typing.Any], list[int], list[typing.Any]]:
    """
    Returns the clocks of the hosts, the clock of each record, and the meetings of the job.

    Returns:
        ([(host, ns that its clock is ahead, error in ns or -1)], number of each record's clock, [(operation, processes,
        [(record, event, begin in ns, end in ns)], position of the last member, ns that other members waited)]).
    """

def fold(
    kind: str, array: numpy.typing.NDArray[typing.Any], first: int, last: int, out: numpy.typing.NDArray[typing.Any]
) -> None:
    """
    Reduces 16-bit floats in float32 over dimensions [first, last).
    """

def forget_recent() -> None:
    """
    Clears the caches of meshes, shardings and index maps.
    """

def get_leaf(array: Array) -> numpy.typing.NDArray[typing.Any]: ...
def gpu_buffers(array: Array, writable: bool = False, some: bool = False) -> typing.Any:
    """
    Returns (interface for CUDA, owner, number of the GPU) of each distinct buffer of an Array on CUDA devices, else None.

    The arguments are the same as the arguments of local_arrays().
    """

def gpu_cluster(
    gpu: str,
    nodes: int,
    chips_per_node: int | None,
    network_bandwidth: tuple[float, str] | None,
    host_memory: tuple[float, str] | None,
) -> Cluster: ...
def have_elements(containers: list[typing.Any], elements: list[typing.Any]) -> bool:
    """
    Returns whether each list, dict or set has exactly the objects of its tuple, in their order; the elements of a dict are its keys, then its values.
    """

def heap_profile(samples: collections.abc.Sequence[tuple[str, int, int, str, int, str]], time_ns: int) -> bytes: ...
def holds_complete_runs(sharding: Sharding, run: int) -> bool:
    """
    Returns whether the tiles that each process holds form complete runs of `run` consecutive tiles.
    """

def host_element(array: Array, operation: str) -> None:
    """
    Checks the transfer guards for one element that is read from an Array, and records its transfer.
    """

def host_empty(shape: collections.abc.Sequence[int], dtype: numpy.typing.DTypeLike) -> numpy.typing.NDArray[typing.Any]:
    """
    Returns a writable ndarray in memory of the library's cache; locked by CUDA in a world of its GPUs.
    """

def host_operand(
    shape: collections.abc.Sequence[int], dtype: numpy.typing.DTypeLike, sharding: Sharding, operation: str
) -> None:
    """
    Checks the transfer guards for an ndarray that a computation on devices reads, and records its transfer.

    Args:
        shape: Shape of the ndarray.
        dtype: Its dtype.
        sharding: Sharding whose devices read it, each its part.
        operation: Name of the function that the user called.

    Raises:
        TransferGuardError: The guards refuse the transfer.
    """

def host_result(
    sharding: Sharding,
    shape: collections.abc.Sequence[int],
    dtype: numpy.typing.DTypeLike,
    operation: str,
    repair: str = "",
) -> None:
    """
    Checks the transfer guards for a result that is written to an ndarray, and records its transfer.

    Args:
        sharding: Sharding with which the result is computed.
        shape: Shape of the result.
        dtype: Dtype of the ndarray.
        operation: Name of the function that the user called.
        repair: How to read explicitly, for the error of a guard; empty for the usual way.

    Raises:
        TransferGuardError: The guards refuse the transfer.
    """

def host_value(array: Array, operation: str, repair: str) -> numpy.typing.NDArray[typing.Any]:
    """
    Returns the value of an argument that an operation reads on the host, as a read-only ndarray.

    Args:
        array: The Array.
        operation: Name of the function that the user called.
        repair: How to read it explicitly, for the error of a transfer guard.

    Raises:
        TransferGuardError: The guards refuse the transfer.
    """

def hybrid_mesh_order(
    granule_orders: collections.abc.Sequence[collections.abc.Sequence[int]],
    inside: collections.abc.Sequence[int],
    outside: collections.abc.Sequence[int],
) -> numpy.typing.NDArray[typing.Any]:
    """
    Returns the position of the device at each place of a mesh over several granules, as an int64 ndarray.
    """

def inverse_rules(rules: list[typing.Any]) -> list[typing.Any]:
    """
    Returns the fields of the rules that undo rules.
    """

def is_constant(array: numpy.typing.NDArray[typing.Any]) -> bool:
    """
    Returns whether an ndarray is a view of the library's memory, and neither it nor its bases can be written.
    """

def is_on_cuda(sharding: Sharding) -> bool:
    """
    Returns whether Arrays with a sharding are in the memory of CUDA devices.
    """

def is_same_meeting(record: bytes, other: bytes) -> bool:
    """
    Returns whether two records are of the same operation.
    """

def is_tracing() -> bool:
    """
    Returns whether a trace is open.
    """

def join_gpu_world(
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
            collections.abc.Sequence[tuple[str, int | None]],
        ]
    ],
    process_index: int,
    ordinals: collections.abc.Sequence[int],
) -> Client:
    """
    Creates the base client with the GPUs of all processes, from what describe_gpus returned in each of them.
    """

def join_world(
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
            collections.abc.Sequence[tuple[str, int | None]],
        ]
    ],
    process_index: int,
) -> Client:
    """
    Creates the base client with the devices of all processes, from what describe_process returned in each of them.
    """

def last_level_cache_bytes() -> int:
    """
    Returns the bytes of the last-level caches of all devices' cores, or 0 if the system does not report them.
    """

def layout_from_text(text: str) -> Layout: ...
def leaf_repair(value: object) -> str:
    """
    Returns what to write in place of a value that is not an array.
    """

def leave_scope(names: collections.abc.Sequence[str], owner: object, operation: str) -> None: ...
def likeness(parts: list[typing.Any]) -> int:
    """
    Returns 2 if all parts are the same ndarray, 1 if they are ndarrays of one dtype and shape, else 0.
    """

def local_arrays(array: Array, writable: bool = False, some: bool = False) -> list[numpy.typing.NDArray[typing.Any]]:
    """
    Returns an ndarray on each distinct buffer of an Array in this process.

    Args:
        array: The Array. This process must hold all of its tiles unless `some` is set.
        writable: Whether the ndarrays may be written. Only the function that created the Array by empty() may set it.
        some: Whether other processes may hold some of the tiles.
    """

def machine_node(
    machine: Machine, accelerators: list[typing.Any], source: str
) -> artifex_devices._base.leaf_types.Record:
    """
    Returns the parts of a node with the machine's accelerators, or its CPU domains if it has no accelerators.
    """

def make_client(
    machine: Machine | None,
    num_devices: int | None,
    bytes_limit: int | None,
    compile_only: bool,
    allocator: tuple[int, float, bool, int] | None = None,
    asynchronous: bool = True,
    backend: Backend | None = None,
    seed: int | None = None,
    operation: str = "simulate",
) -> Client:
    """
    Creates a client.

    Args:
        machine: Machine of the devices; None for this machine.
        num_devices: Number of devices, or None for the machine's default.
        bytes_limit: Limit of each device in bytes, or None.
        compile_only: Whether the devices have no memory.
        allocator: Fields of a GpuAllocatorConfig (kind, fraction, preallocate, collective bytes), or None.
        asynchronous: Whether copies may still run when their call has returned.
        backend: What the devices are; None for CPU devices.
        seed: For tests: copies are deferred, in an order drawn from this seed.
        operation: Begins the messages of errors.
    """

def make_cluster(parts: artifex_devices._base.leaf_types.Record) -> Cluster:
    """
    Creates a Cluster from a dict such as `Cluster.parts`.
    """

def make_mesh(
    axis_shapes: int | collections.abc.Sequence[int],
    axis_names: collections.abc.Hashable | collections.abc.Sequence[collections.abc.Hashable],
    axis_types: AxisType
    | typing.Literal["auto", "explicit", "manual"]
    | collections.abc.Sequence[AxisType | typing.Literal["auto", "explicit", "manual"]]
    | None,
    devices: Device | numpy.typing.NDArray[typing.Any] | collections.abc.Sequence[typing.Any] | None,
) -> Mesh: ...
def make_shared_client(
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
            collections.abc.Sequence[tuple[str, int | None]],
        ]
    ],
    process_index: int,
    backend: Backend | None = None,
) -> Client:
    """
    Creates the client of one process of several; one process may create any number of clients.
    """

def matching_names(
    patterns: collections.abc.Sequence[str], names: collections.abc.Sequence[str], operation: str
) -> list[str]:
    """
    Returns the names that a pattern matches.
    """

def measure_gemm(
    device: Device | None, isa: str, dtype: str, seconds: float, window_seconds: float
) -> artifex_devices._base.leaf_types.Record:
    """
    Measures the FLOP/s of matrix products on the workers of a device, or of all devices for None.

    Returns:
        dict of `rates`, `shares`, `workers` and `bound_workers`.
    """

def measure_streams(
    device: Device | None, seconds: float, window_seconds: float
) -> tuple[dict[str, typing.Any], int, int]:
    """
    Measures the memory bandwidth of STREAM's loops on the workers of a device, or of all devices for None.

    Returns:
        (dict of kernel to series in bytes/s, bytes of an array, bytes of the last-level caches).
    """

def measured_scope(device: Device | None) -> tuple[list[int], int, int]:
    """
    Returns (lanes of the worker pool that a measurement uses, number of workers on them, number of all lanes).
    """

def meeting_record(kind: int, digest: bytes, group: int, payload: bytes, text: str, max_text: int) -> bytes:
    """
    Returns the bytes that a process sends in a meeting; at most max_text bytes of the text.
    """

def memory_policy() -> tuple[str | None, list[int], str | None]:
    """
    Returns (policy for new pages of this thread, its NUMA nodes by OS number, why it cannot be read).
    """

def mesh_from_pickle(
    platform: str,
    device_ids: numpy.typing.NDArray[typing.Any],
    axis_names: collections.abc.Hashable | collections.abc.Sequence[collections.abc.Hashable],
    axis_types: AxisType
    | typing.Literal["auto", "explicit", "manual"]
    | collections.abc.Sequence[AxisType | typing.Literal["auto", "explicit", "manual"]]
    | None,
) -> Mesh: ...
def moments(array: typing.Any, axes: typing.Any, out: typing.Any) -> bool:
    """
    Writes means over ascending axes, what is missing from them, and sums of squared differences from them, to float64. Returns False as totals does.
    """

def moved(array: Array, sharding: Sharding, committed: bool) -> Array:
    """
    Returns an Array with another sharding of the same world, as device_put does. Shares the buffers that are already in place.
    """

def named_sharding_from_pickle(
    kind: type[typing.Any], mesh: typing.Any, spec: typing.Any, memory_kind: typing.Any, uneven: typing.Any
) -> typing.Any: ...
def narrowed(x: typing.Any, operation: str, path: str = "") -> typing.Any:
    """
    Returns the ndarray to place in this context for an array or number; narrows 64-bit data if x64 is off.
    """

def new_scheduler(
    rendezvous: typing.Any,
    participant_class: type[typing.Any],
    payloads: list[typing.Any],
    results: list[typing.Any],
    pending: typing.Any,
) -> typing.Any:
    """
    Creates the scheduler of a session's participants, with their payloads and results by position, `pending` without a result.
    """

def owned_boxes(sharding: Sharding, shape: collections.abc.Sequence[int], process: int) -> list[typing.Any]:
    """
    Returns (origin, shape) of the boxes of an array that a process saves.
    """

def parse_world(text: str) -> tuple[Machine, int | None, str | None]:
    """
    Parses the text of a world.

    Returns:
        (Machine, or None for this machine; number of devices, or None; name of the GPUs, or None).
    """

def part_of_box(shape: collections.abc.Sequence[int], index: int, count: int) -> typing.Any:
    """
    Returns (origin, shape) of part `index` of `count` of an array, or None for a part without elements.
    """

def placed_mesh_svg(
    title: str,
    axes: collections.abc.Sequence[tuple[str, int, str]],
    network: str,
    wraps: collections.abc.Sequence[bool],
    platform: str,
    places: collections.abc.Sequence[tuple[int, int, collections.abc.Sequence[int], int]],
    max_cells: int = 2048,
) -> str: ...
def plan_cpu_shares(
    places: collections.abc.Sequence[tuple[str, collections.abc.Sequence[int]]], bind_flag: str
) -> list[tuple[int, list[int]]]:
    """
    Returns (part, processes that split the affinity mask) for each process.
    """

def plan_gpu_shares(
    places: collections.abc.Sequence[tuple[str, collections.abc.Sequence[str], collections.abc.Sequence[int] | None]],
) -> tuple[list[list[int]], list[tuple[str, list[int]]]]:
    """
    Returns the numbers of the GPUs that each process uses, and (PCI address, processes) of each shared GPU.

    `places` has (machine, PCI addresses of the visible GPUs, chosen numbers or None) of each process.
    """

def platform_option(name: str) -> str | None: ...
def pop_world(world: OpenWorld) -> None: ...
def prefers_gpus() -> bool:
    """
    Returns whether jax_platforms or jax_platform_name names GPUs first.
    """

def process_groups(sharding: Sharding, ndim: int, operation: str) -> list[list[list[int]] | None]:
    """
    Returns, for each dimension, the groups of processes that hold the same parts of it.

    The entry of a dimension is None if processes hold different numbers of parts of it.
    """

def process_parts(
    sharding: Sharding, shape: collections.abc.Sequence[int], operation: str
) -> dict[int, list[list[tuple[int, int]]]]:
    """
    Returns a dict of process to the distinct parts that it holds of each dimension.

    The parts of a dimension are a list of (begin, end), ascending.
    """

def push_world(client: Client) -> OpenWorld: ...
def put_leaf(x: typing.Any, device: typing.Any, donate: typing.Any, may_alias: typing.Any) -> typing.Any: ...
def put_leaves(
    leaves: list[typing.Any],
    targets: typing.Any,
    donate: typing.Any,
    may_alias: typing.Any,
    path_of: typing.Any,
    explicit: bool = True,
) -> list[typing.Any]: ...
def read_flight_record(path: str) -> FlightRecord:
    """
    Reads the record of a process. Raises ValueError if the file is not a record.
    """

def read_meeting_record(record: bytes) -> tuple[int, bytes, str]:
    """
    Returns kind, payload and text of a record.
    """

def read_nvml(library: str = "") -> artifex_devices._base.leaf_types.Record: ...
def real_path(path: str) -> str | None:
    """
    Returns os.path.realpath of a path of which only the last name may be missing, else None.
    """

def reinterpreted(array: Array, shape: collections.abc.Sequence[int], sharding: Sharding, operation: str) -> Array:
    """
    Returns an Array of another shape on the same memory: each device's elements stay in place, in their order.
    """

def release_dropped_owners() -> None:
    """
    Releases borrowed memory that workers have dropped. Calls of the library do so too.
    """

def reshape_spec(
    sharding: Sharding, shape: collections.abc.Sequence[int], new_shape: collections.abc.Sequence[int]
) -> tuple[tuple[collections.abc.Hashable, ...], ...]:
    """
    Returns the mesh axes of each dimension with which an Array takes another shape while each device keeps its elements.
    """

def reshard_bytes(
    source: Sharding, destination: Sharding, global_shape: collections.abc.Sequence[int], itemsize: int
) -> dict[str, int]:
    """
    Returns the bytes that devices must receive: bytes_in (in all), most_bytes_in (largest of one device), devices_that_receive.
    """

def rule_dtype(dtype: typing.Any, operation: str) -> typing.Any:
    """
    Returns the dtype of any argument of np.dtype(), also for "bfloat16".
    """

def rule_text(fields: dict[str, typing.Any]) -> str:
    """
    Returns the call that creates a rule; ValueError for members that cannot be right.
    """

def run_parallel(tasks: list[collections.abc.Callable[[], typing.Any]]) -> None:
    """
    Calls each task once, on threads of the library and the calling thread. Raises the first exception.
    """

def safe_repr(object: typing.Any) -> str:
    """
    Returns the repr of an object for messages: shortened if it is long, replaced if it raises.
    """

def safetensors_type(dtype: typing.Any) -> str:
    """
    Returns the type of a dtype in safetensors files; an empty text if the format lacks it.
    """

def schedule_svg(
    title: str,
    rows: collections.abc.Sequence[str],
    kinds: collections.abc.Sequence[str],
    tiles: collections.abc.Sequence[tuple[int, int, float, float, str]],
    notes: collections.abc.Sequence[str],
) -> str:
    """
    Returns a chart of tiles over time as a stand-alone SVG picture.

    `tiles` has (row, kind, start, end, label) of each tile.
    """

def scoped_option(name: str) -> typing.Any: ...
def select(
    out: numpy.typing.NDArray[typing.Any], condition: typing.Any, one: typing.Any, other: typing.Any, stream: bool
) -> None:
    """
    Writes `one` where `condition`, else `other`, to `out`: dense ndarrays, or choices of shape ().
    """

def set_num_cpu_devices(count: int | None) -> None: ...
def set_thread_caller(file: str, line: int) -> None:
    """
    Records the line that started this thread, for transfers outside of user code.
    """

def set_trace_process(process: int) -> None:
    """
    Sets the process of this thread's events; -1 for the process of the trace.
    """

def sharding_with(placement: Sharding, spec: tuple[tuple[collections.abc.Hashable, ...], ...]) -> Sharding:
    """
    Returns the sharding on the devices of `placement` with a spec in the form that spec_in returns.
    """

def shutdown() -> None:
    """
    Ends the workers after the copies in progress.
    """

def single_device_sharding_from_pickle(
    kind: type[typing.Any], device: typing.Any, memory_kind: typing.Any
) -> typing.Any: ...
def slab_array(array: Array, writable: bool = False) -> numpy.typing.NDArray[typing.Any] | None:
    """
    Returns all tiles, in their order, as one ndarray of shape (tiles, *shard shape), or None.

    It is None unless the tiles are in one slab of this process, each in one buffer.
    """

def spec_in(sharding: Sharding, ndim: int) -> tuple[tuple[collections.abc.Hashable, ...], ...]:
    """
    Returns the mesh axes that shard each of `ndim` dimensions, as a tuple of tuples.
    """

def supported_isas() -> list[str]:
    """
    Returns the instruction sets that loops are compiled for and this processor supports, the oldest first.
    """

def take(proceeded: typing.Any) -> typing.Any:
    """
    Returns the result of the collective that the body has arrived at. `proceeded` is the result of the function that arrive returned.
    """

def take_cpu_share(
    places: collections.abc.Sequence[tuple[str, collections.abc.Sequence[int]]], bind_flag: str, process: int
) -> list[int]:
    """
    Restricts this process to its share of the CPUs of its machine. Returns them, ascending.
    """

def tiling(
    sharding: Sharding, shape: collections.abc.Sequence[int], operation: str
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[tuple[slice, ...], ...]]:
    """
    Returns (parts of each dimension, positions, tiles, boxes as slices) of the distinct buffers of an array.
    """

def totals(kind: str, array: typing.Any, axes: typing.Any, out: typing.Any) -> bool:
    """
    Writes totals over ascending axes to `out`: int64 or uint64 of integers, float64 of floats.

    `kind` is "sum", "prod", "abs" or "squares". Returns False where NumPy's loop has to do the work: for other layouts than
    row-major, and where that loop has a floating-point error to report.
    """

def tpu_cluster(
    generation: str, shape: collections.abc.Sequence[int], slices: int, host_memory: tuple[float, str] | None
) -> Cluster: ...
def trace_begin() -> int:
    """
    Returns the time in ns while a trace is open, else 0.
    """

def trace_clock() -> int:
    """
    Returns the time in ns.
    """

def trace_collective(
    rendezvous: Rendezvous,
    position: int,
    name: str,
    operation: str,
    members: collections.abc.Sequence[tuple[str, str]],
    process: int,
    meeting: int,
) -> None:
    """
    Adds the collective that a participant completes to open traces.

    `members` has the device and the line of each member, in their order; `meeting` is 0 for a collective within the process.
    """

def trace_event(
    kind: str, name: str, detail: str, begin: int, process: int = -1, bytes: int = 0, meeting: int = 0
) -> None:
    """
    Adds an event that ends now to open traces, with the line of the program.
    """

def trace_meetings(
    events: collections.abc.Sequence[tuple[str, int, str, int, str, str, int, int, int, int, int, int, str, int]],
) -> list[typing.Any]:
    """
    Returns (rows of the members, row of the slowest, ns that other members waited) for each meeting.
    """

def transfer_is_guarded(direction: str, explicit: bool) -> bool:
    """
    Returns whether the guards of this context log or refuse a transfer in this direction.
    """

def tree_build(
    node: typing.Any, leaves: list[typing.Any], make_node: collections.abc.Callable[..., typing.Any]
) -> typing.Any:
    """
    Returns the tree of a node with these leaves.
    """

def tree_collect(
    node: typing.Any, tree: typing.Any, children_of: collections.abc.Callable[..., typing.Any]
) -> list[typing.Any] | None:
    """
    Returns the subtrees at the leaves of the node, or None if the tree has another structure.
    """

def tree_compose(node: typing.Any, inner: typing.Any) -> typing.Any:
    """
    Returns the node with `inner` in place of each leaf.
    """

def tree_equal(first: typing.Any, second: typing.Any) -> bool:
    """
    Returns whether two nodes are equal.
    """

def tree_num_leaves(node: typing.Any) -> int:
    """
    Returns the number of leaves of a node. Raises RecursionError if it has too many levels.
    """

def tree_of_rows(rows: list[typing.Any]) -> typing.Any:
    """
    Returns the node from which tree_rows() made these rows. Raises TypeError for other lists.
    """

def tree_open(
    tree: typing.Any,
    plain: set[typing.Any],
    one_level: collections.abc.Callable[..., typing.Any],
    is_leaf: collections.abc.Callable[..., typing.Any] | None,
    keys_of: collections.abc.Callable[..., typing.Any] | None,
) -> tuple[typing.Any, ...] | None:
    """
    Returns (leaves, node) of a tree, or None for a tree of too many levels. The node of a leaf is None.
    """

def tree_paths(node: typing.Any, keys_of: collections.abc.Callable[..., typing.Any]) -> list[tuple[typing.Any, ...]]:
    """
    Returns the path of each leaf (tuple of keys).
    """

def tree_rows(node: typing.Any) -> list[tuple[typing.Any, ...] | None]:
    """
    Returns the rows of a node for a pickle.
    """

def tree_text(node: typing.Any) -> str:
    """
    Returns the text of a node, with * for each leaf.
    """

def trim() -> int: ...
def use_participant_variable(variable: contextvars.ContextVar[typing.Any]) -> None:
    """
    Sets the context variable of the current participant, permanently.
    """

def value_digest(array: typing.Any) -> bytes:
    """
    Returns 16 bytes that are equal for ndarrays of equal shape, dtype and bits.
    """

def widen(array: numpy.typing.NDArray[typing.Any], out: numpy.typing.NDArray[typing.Any]) -> None:
    """
    Converts 16-bit floats to float32.
    """

def write_platform_option(name: str, names: str | None) -> None: ...
def write_scoped_option(name: str, value: object) -> None: ...
def x64_enabled() -> bool: ...

EXACT_WORDS: int = 72
JOINED_BY_PCI: str = (
    "GPUs are taken to be joined by PCI Express: the file has no NVLink or xGMI links that join all of them"
)
MEETING_HEAD_BYTES: int = 48
SHARED_TRACE_MEETING: int = 4611686018427387904
UNCONSTRAINED: Unconstrained
