# SPDX-License-Identifier: Apache-2.0
"""Bad calls: xla_client, clusters, mesh_utils and pictures."""

from artifex_devices.errors import IndivisibleError

from bad_input.rows import Calls, bad

CALLS = [
    Calls(
        "xla_client.DeviceAssignment.create",
        "xla_client.DeviceAssignment.create(np.array([[0, 1]])).serialize()",
        [
            bad(
                "xla_client.DeviceAssignment.create(np.zeros((0, 2), int))",
                ValueError,
                "DeviceAssignment.create:",
                "0",
                "2",
            ),
            bad("xla_client.DeviceAssignment.create(np.array([0, 1]))", TypeError, "DeviceAssignment.create:", "1"),
            bad("xla_client.DeviceAssignment.create(np.array([[0, 0]]))", ValueError, "DeviceAssignment.create:", "0"),
            bad(
                "xla_client.DeviceAssignment.create(np.array([[-1, 0]]))",
                ValueError,
                "DeviceAssignment.create:",
                "-1",
                "0",
            ),
            bad(
                "xla_client.DeviceAssignment.create(np.array([[0.5, 1]]))",
                ValueError,
                "DeviceAssignment.create:",
                "expected",
            ),
            bad(
                "xla_client.DeviceAssignment.create('text')",
                TypeError,
                "DeviceAssignment.create:",
                "expected",
                repair="write (np\\.array)\\(",
                then="xla_client.DeviceAssignment.create({}([[0, 1]]))",
            ),
            bad("xla_client.DeviceAssignment.create(3)", TypeError, "DeviceAssignment.create:", "expected"),
            bad("xla_client.DeviceAssignment.create(None)", TypeError, "DeviceAssignment.create:", "expected"),
            bad("xla_client.DeviceAssignment.create(BAD_ARRAY)", ZeroDivisionError, "no array"),
        ],
    ),
    Calls(
        "xla_client.DeviceAssignment.deserialize",
        "xla_client.DeviceAssignment.deserialize(xla_client.DeviceAssignment.create(np.array([[0, 1]])).serialize())",
        [
            bad(
                "xla_client.DeviceAssignment.deserialize(b'spam')",
                ValueError,
                "DeviceAssignment.deserialize:",
                "expected",
            ),
            bad(
                "xla_client.DeviceAssignment.deserialize('text')",
                TypeError,
                "DeviceAssignment.deserialize:",
                "expected",
            ),
            bad(
                "xla_client.DeviceAssignment.deserialize(None)", TypeError, "DeviceAssignment.deserialize:", "expected"
            ),
            bad("xla_client.DeviceAssignment.deserialize(3)", TypeError, "DeviceAssignment.deserialize:", "expected"),
        ],
    ),
    Calls(
        "xla_client.DeviceAssignment.device_ordinal",
        "xla_client.DeviceAssignment.create(np.array([[0, 1]])).device_ordinal(0, 1)",
        [
            bad(
                "xla_client.DeviceAssignment.create(np.array([[0, 1]])).device_ordinal(1, 0)",
                IndexError,
                "device_ordinal:",
                "0",
                "1",
            ),
            bad(
                "xla_client.DeviceAssignment.create(np.array([[0, 1]])).device_ordinal(-1, 0)",
                IndexError,
                "device_ordinal:",
                "0",
                "1",
            ),
            bad(
                "xla_client.DeviceAssignment.create(np.array([[0, 1]])).device_ordinal('0', 0)",
                TypeError,
                "DeviceAssignment.device_ordinal:",
                "'0'",
            ),
            bad(
                "xla_client.DeviceAssignment.create(np.array([[0, 1]])).device_ordinal(0, 2**63)",
                TypeError,
                "DeviceAssignment.device_ordinal:",
                "expected",
            ),
            bad(
                "xla_client.DeviceAssignment.create(np.array([[0, 1]])).device_ordinal(0.5, 0)",
                TypeError,
                "DeviceAssignment.device_ordinal:",
                "0.5",
            ),
            bad(
                "xla_client.DeviceAssignment.create(np.array([[0, 1]])).device_ordinal(0)",
                TypeError,
                "DeviceAssignment.device_ordinal:",
                "expected",
            ),
        ],
    ),
    Calls(
        "xla_client.DeviceAssignment.logical_ids_for_device",
        "xla_client.DeviceAssignment.create(np.array([[0, 1]])).logical_ids_for_device(1)",
        [
            bad(
                "xla_client.DeviceAssignment.create(np.array([[0, 1]])).logical_ids_for_device(7)",
                ValueError,
                "logical_ids_for_device:",
                "0",
                "1",
            ),
            bad(
                "xla_client.DeviceAssignment.create(np.array([[0, 1]])).logical_ids_for_device('1')",
                TypeError,
                "DeviceAssignment.logical_ids_for_device:",
                "'1'",
            ),
            bad(
                "xla_client.DeviceAssignment.create(np.array([[0, 1]])).logical_ids_for_device(None)",
                TypeError,
                "DeviceAssignment.logical_ids_for_device:",
                "None",
            ),
            bad(
                "xla_client.DeviceAssignment.create(np.array([[0, 1]])).logical_ids_for_device(2**63)",
                TypeError,
                "DeviceAssignment.logical_ids_for_device:",
                "expected",
            ),
        ],
    ),
    Calls(
        "xla_client.DeviceAssignment",
        "xla_client.DeviceAssignment.create(np.array([[0, 1]])).replica_count()",
        [
            bad(
                "xla_client.DeviceAssignment()",
                TypeError,
                "DeviceAssignment:",
                "expected",
                repair="use (DeviceAssignment\\.create\\(array\\))",
                then="xla_client.{}",
                given="array = np.array([[0, 1]])",
            ),
            bad("xla_client.DeviceAssignment(np.array([[0, 1]]))", TypeError, "DeviceAssignment:", "expected"),
        ],
    ),
    Calls(
        "xla_client.DeviceList",
        "len(xla_client.DeviceList((d,)))",
        [
            bad("xla_client.DeviceList((1, 2))", TypeError, "DeviceList:", "1", "2"),
            bad(
                "xla_client.DeviceList(3)",
                TypeError,
                "DeviceList:",
                "3",
                repair="write (DeviceList\\(tuple\\(devices\\(\\)\\)\\))",
                then="xla_client.{}",
            ),
            bad("xla_client.DeviceList(None)", TypeError, "DeviceList:", "None"),
            bad("xla_client.DeviceList('cpu')", TypeError, "DeviceList:", "'cpu'"),
            bad("xla_client.DeviceList()", TypeError, "DeviceList:", "expected"),
            bad(
                "xla_client.DeviceList((NO_REPR,))",
                TypeError,
                "DeviceList:",
                "<NoRepr, whose repr raised ZeroDivisionError>",
            ),
        ],
    ),
    Calls(
        "xla_client.DeviceList.__getitem__",
        "xla_client.DeviceList((d,))[0]",
        [
            bad("xla_client.DeviceList((d,))[1]", IndexError, "DeviceList:", "1"),
            bad("xla_client.DeviceList((d,))[-2]", IndexError, "DeviceList:", "-2"),
            bad("xla_client.DeviceList((d,))['0']", TypeError, "DeviceList:", "'0'"),
            bad("xla_client.DeviceList((d,))[0.5]", TypeError, "DeviceList:", "0.5"),
            bad("xla_client.DeviceList((d,))[2**63]", IndexError, "DeviceList:", "expected"),
            bad("xla_client.DeviceList((d,))[BAD_INDEX]", ZeroDivisionError, "no int"),
        ],
    ),
    Calls(
        "xla_client.DeviceList.__contains__",
        "d in xla_client.DeviceList((d,))",
        [
            bad("xla_client.DeviceList((d,)).__contains__()", TypeError, "DeviceList.__contains__:", "expected"),
            bad("xla_client.DeviceList((d,)).__contains__(d, d)", TypeError, "DeviceList.__contains__:", "expected"),
        ],
    ),
    Calls(
        "xla_client.DeviceTopology.deserialize",
        "xla_client.DeviceTopology.deserialize(xla_client.get_topology_for_devices(devices).serialize())",
        [
            bad(
                "xla_client.DeviceTopology.deserialize(b'spam')", ValueError, "DeviceTopology.deserialize:", "expected"
            ),
            bad("xla_client.DeviceTopology.deserialize('text')", TypeError, "DeviceTopology.deserialize:", "expected"),
            bad("xla_client.DeviceTopology.deserialize(None)", TypeError, "DeviceTopology.deserialize:", "expected"),
            bad("xla_client.DeviceTopology.deserialize(b'')", ValueError, "DeviceTopology.deserialize:", "expected"),
        ],
    ),
    Calls(
        "xla_client.DeviceTopology",
        "xla_client.get_topology_for_devices(devices).platform",
        [
            bad(
                "xla_client.DeviceTopology()",
                TypeError,
                "DeviceTopology:",
                "expected",
                repair="use (xla_client\\.get_topology_for_devices\\(devices\\))",
                given="devices = devices()",
            ),
            bad("xla_client.DeviceTopology(devices)", TypeError, "DeviceTopology:", "expected"),
        ],
    ),
    Calls(
        "xla_client.get_topology_for_devices",
        "xla_client.get_topology_for_devices(devices)",
        [
            bad(
                "xla_client.get_topology_for_devices([])",
                ValueError,
                "get_topology_for_devices:",
                "expected",
                repair="write (devices\\(\\))",
                then="xla_client.get_topology_for_devices({})",
            ),
            bad("xla_client.get_topology_for_devices(3)", TypeError, "get_topology_for_devices:", "expected"),
            bad("xla_client.get_topology_for_devices(['cpu'])", TypeError, "get_topology_for_devices:", "expected"),
            bad("xla_client.get_topology_for_devices(None)", TypeError, "get_topology_for_devices:", "expected"),
            bad("xla_client.get_topology_for_devices([None])", TypeError, "get_topology_for_devices:", "expected"),
        ],
    ),
    Calls(
        "xla_client.make_cpu_client",
        "xla_client.make_cpu_client(num_devices=2).close()",
        [
            bad("xla_client.make_cpu_client(num_devices=0)", ValueError, "make_cpu_client:", "num_devices"),
            bad("xla_client.make_cpu_client(num_devices=-1)", ValueError, "make_cpu_client:", "num_devices"),
            bad(
                "xla_client.make_cpu_client(num_devices='2')",
                TypeError,
                "make_cpu_client:",
                "asynchronous",
                "num_devices",
            ),
            bad("xla_client.make_cpu_client(num_devices=2**63)", ValueError, "make_cpu_client:", "num_devices"),
            bad(
                "xla_client.make_cpu_client(num_devices=1.5)",
                TypeError,
                "make_cpu_client:",
                "asynchronous",
                "num_devices",
            ),
            bad(
                "xla_client.make_cpu_client(num_devices=True)",
                TypeError,
                "make_cpu_client:",
                "asynchronous",
                "num_devices",
            ),
            bad(
                "xla_client.make_cpu_client(asynchronous='yes')",
                TypeError,
                "make_cpu_client:",
                "asynchronous",
                "allocator_config",
            ),
            bad("xla_client.make_cpu_client(num_nodes=2)", NotImplementedError, "make_cpu_client:", "num_nodes"),
            bad("xla_client.make_cpu_client(node_id='a')", TypeError, "make_cpu_client:", "asynchronous", "node_id"),
            bad(
                "xla_client.make_cpu_client(collectives='spam')",
                NotImplementedError,
                "make_cpu_client:",
                "num_nodes",
                "collectives",
            ),
            bad(
                "xla_client.make_cpu_client(allocator_config=3)",
                TypeError,
                "make_cpu_client:",
                "asynchronous",
                "allocator_config",
            ),
            bad("xla_client.make_cpu_client(spam=1)", TypeError, "make_cpu_client", "unexpected"),
        ],
    ),
    Calls(
        "xla_client.GpuAllocatorConfig",
        "xla_client.GpuAllocatorConfig()",
        [
            bad("xla_client.GpuAllocatorConfig(kind='spam')", TypeError, "GpuAllocatorConfig:", "kind", "'spam'"),
            bad(
                "xla_client.GpuAllocatorConfig(memory_fraction=2)", ValueError, "GpuAllocatorConfig:", "memory_fraction"
            ),
            bad(
                "xla_client.GpuAllocatorConfig(memory_fraction=NAN)",
                ValueError,
                "GpuAllocatorConfig:",
                "memory_fraction",
            ),
            bad(
                "xla_client.GpuAllocatorConfig(memory_fraction='half')",
                TypeError,
                "GpuAllocatorConfig:",
                "memory_fraction",
                "'half'",
            ),
            bad(
                "xla_client.GpuAllocatorConfig(preallocate='yes')",
                TypeError,
                "GpuAllocatorConfig:",
                "preallocate",
                "'yes'",
            ),
            bad(
                "xla_client.GpuAllocatorConfig(collective_memory_size=-1)",
                ValueError,
                "GpuAllocatorConfig:",
                "collective_memory_size",
            ),
            bad(
                "xla_client.GpuAllocatorConfig(collective_memory_size='x')",
                TypeError,
                "GpuAllocatorConfig:",
                "collective_memory_size",
                "'x'",
            ),
        ],
    ),
    Calls(
        "xla_client.HostBufferSemantics",
        "xla_client.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL",
        [
            bad("xla_client.HostBufferSemantics('spam')", ValueError, "'spam'", "HostBufferSemantics"),
            bad("xla_client.HostBufferSemantics(99)", ValueError, "99", "HostBufferSemantics"),
            bad("xla_client.HostBufferSemantics(None)", ValueError, "HostBufferSemantics", "valid"),
        ],
    ),
    Calls(
        "cluster.Cluster",
        "ad.cluster.dgx('h100', nodes=1).describe()",
        [
            bad(
                "ad.cluster.Cluster()", TypeError, "Cluster:", "expected", repair="use (cluster\\.this_machine\\(\\)),"
            ),
            bad("ad.cluster.Cluster(3)", TypeError, "Cluster:", "expected"),
        ],
    ),
    Calls(
        "cluster.describe",
        "ad.cluster.describe(ad.cluster.dgx('h100', nodes=1))",
        [
            bad("ad.cluster.describe(3)", TypeError, "cluster.describe:", "3"),
            bad("ad.cluster.describe(None)", TypeError, "cluster.describe:", "None"),
            bad("ad.cluster.describe('h100')", TypeError, "cluster.describe:", "'h100'"),
        ],
    ),
    Calls(
        "cluster.dgx",
        "ad.cluster.dgx('h100', nodes=2)",
        [
            bad("ad.cluster.dgx('spam')", ValueError, "cluster.dgx:", "nodes", "'spam'"),
            bad("ad.cluster.dgx(3)", TypeError, "cluster.dgx:", "gpu"),
            bad("ad.cluster.dgx('h100', nodes=0)", ValueError, "cluster.gpus:", "nodes"),
            bad("ad.cluster.dgx('h100', nodes=-1)", ValueError, "cluster.gpus:", "nodes"),
            bad("ad.cluster.dgx('h100', nodes=1.5)", TypeError, "cluster.gpus:", "nodes", "1.5"),
            bad("ad.cluster.dgx('h100', nodes=2**63)", ValueError, "cluster.gpus:", "nodes"),
            bad("ad.cluster.dgx('h100', nodes=True)", TypeError, "cluster.gpus:", "nodes"),
            bad(
                "ad.cluster.dgx('h100', nodes=2, network_bandwidth=-1)",
                ValueError,
                "cluster.gpus:",
                "network_bandwidth",
            ),
            bad(
                "ad.cluster.dgx('h100', nodes=2, network_bandwidth=NAN)",
                ValueError,
                "cluster.gpus:",
                "network_bandwidth",
            ),
            bad(
                "ad.cluster.dgx('h100', nodes=2, network_bandwidth='fast')",
                TypeError,
                "cluster.gpus:",
                "network_bandwidth",
                "'fast'",
            ),
            bad("ad.cluster.dgx(TEXT)", ValueError, "cluster.dgx:", "<Text, whose repr raised ZeroDivisionError>"),
        ],
    ),
    Calls(
        "cluster.from_toml",
        "ad.cluster.from_toml",
        [
            bad("ad.cluster.from_toml(3)", TypeError, "from_toml:", "path"),
            bad(
                "ad.cluster.from_toml('/no/such.toml')",
                FileNotFoundError,
                "cluster.from_toml:",
                "path",
                "'/no/such.toml'",
            ),
            bad("ad.cluster.from_toml('')", FileNotFoundError, "cluster.from_toml:", "path", "''"),
            bad("ad.cluster.from_toml(None)", TypeError, "from_toml:", "path"),
            bad("ad.cluster.from_toml(str(folder))", IsADirectoryError, "cluster.from_toml:", "path"),
        ],
    ),
    Calls(
        "cluster.from_xml",
        "ad.cluster.from_xml",
        [
            bad("ad.cluster.from_xml(3)", TypeError, "from_xml:", "path"),
            bad("ad.cluster.from_xml('/no/such.xml')", FileNotFoundError, "from_xml:", "path"),
            bad("ad.cluster.from_xml(None)", TypeError, "from_xml:", "path"),
            bad("ad.cluster.from_xml('/no/such.xml', nodes=0)", ValueError, "cluster.from_xml:", "nodes"),
            bad("ad.cluster.from_xml('/no/such.xml', nodes='x')", TypeError, "cluster.from_xml:", "nodes", "'x'"),
            bad("ad.cluster.from_xml('/no/such.xml', bandwidth=-1)", ValueError, "cluster.from_xml:", "bandwidth"),
            bad("ad.cluster.from_xml('/no/such.xml', latency=NAN)", ValueError, "cluster.from_xml:", "latency"),
        ],
    ),
    Calls(
        "cluster.gpus",
        "ad.cluster.gpus('h100', nodes=1, chips_per_node=8)",
        [
            bad("ad.cluster.gpus('spam', nodes=1, chips_per_node=8)", ValueError, "cluster.gpus:", "expected"),
            bad("ad.cluster.gpus(3, nodes=1, chips_per_node=8)", TypeError, "cluster.gpus:", "3"),
            bad("ad.cluster.gpus('h100', nodes=0, chips_per_node=8)", ValueError, "cluster.gpus:", "nodes"),
            bad("ad.cluster.gpus('h100', nodes=1, chips_per_node=0)", ValueError, "cluster.gpus:", "chips_per_node"),
            bad(
                "ad.cluster.gpus('h100', nodes=1, chips_per_node='x')",
                TypeError,
                "cluster.gpus:",
                "chips_per_node",
                "'x'",
            ),
            bad(
                "ad.cluster.gpus('h100', nodes=1, chips_per_node=2**63)", ValueError, "cluster.gpus:", "chips_per_node"
            ),
            bad(
                "ad.cluster.gpus('h100', nodes=2**40, chips_per_node=2**40)",
                ValueError,
                "cluster.gpus:",
                "chips_per_node",
            ),
        ],
    ),
    Calls(
        "cluster.mi300x",
        "ad.cluster.mi300x(nodes=1)",
        [
            bad("ad.cluster.mi300x(nodes=0)", ValueError, "cluster.gpus:", "nodes"),
            bad("ad.cluster.mi300x(nodes='x')", TypeError, "cluster.gpus:", "nodes", "'x'"),
            bad("ad.cluster.mi300x(nodes=1.5)", TypeError, "cluster.gpus:", "nodes", "1.5"),
            bad("ad.cluster.mi300x(nodes=2, network_bandwidth=0)", ValueError, "cluster.gpus:", "network_bandwidth"),
        ],
    ),
    Calls(
        "cluster.nvl72",
        "ad.cluster.nvl72(racks=1)",
        [
            bad("ad.cluster.nvl72(racks=0)", ValueError, "cluster.nvl72:", "racks"),
            bad("ad.cluster.nvl72(racks='x')", TypeError, "cluster.nvl72:", "racks", "'x'"),
            bad("ad.cluster.nvl72(racks=None)", TypeError, "cluster.nvl72:", "racks"),
            bad("ad.cluster.nvl72(racks=2, network_bandwidth=INF)", ValueError, "cluster.gpus:", "network_bandwidth"),
        ],
    ),
    Calls(
        "cluster.this_machine",
        "ad.cluster.this_machine()",
        [
            bad("ad.cluster.this_machine(measured='yes')", TypeError, "cluster.this_machine:", "measured"),
            bad("ad.cluster.this_machine(latency=-1)", ValueError, "cluster.this_machine:", "latency"),
            bad("ad.cluster.this_machine(latency='x')", TypeError, "cluster.this_machine:", "latency", "'x'"),
            bad("ad.cluster.this_machine(latency=NAN)", ValueError, "cluster.this_machine:", "latency"),
            bad("ad.cluster.this_machine(calibration=3)", TypeError, "cluster.this_machine:", "calibration"),
        ],
    ),
    Calls(
        "cluster.tpu",
        "ad.cluster.tpu('v5e', (2, 2))",
        [
            bad("ad.cluster.tpu('spam', (2, 2))", ValueError, "cluster.tpu:", "generation"),
            bad("ad.cluster.tpu(3, (2, 2))", TypeError, "cluster.tpu:", "generation"),
            bad("ad.cluster.tpu('v5e', (2, 2, 2, 2))", ValueError, "cluster.tpu:", "shape"),
            bad("ad.cluster.tpu('v5e', (0, 2))", ValueError, "cluster.tpu:", "shape"),
            bad("ad.cluster.tpu('v5e', (-2, 2))", ValueError, "cluster.tpu:", "shape"),
            bad(
                "ad.cluster.tpu('v5e', 'x')",
                TypeError,
                "cluster.tpu:",
                "shape",
                "'x'",
                repair="write (cluster\\.tpu\\('v5p', \\(4, 4, 8\\)\\))",
            ),
            bad("ad.cluster.tpu('v5e', 3.5)", TypeError, "cluster.tpu:", "shape", "3.5"),
            bad("ad.cluster.tpu('v5e', (2**63, 2))", ValueError, "cluster.tpu:", "shape"),
            bad("ad.cluster.tpu('v5e', (2, 2), slices=0)", ValueError, "cluster.tpu:", "slices"),
            bad("ad.cluster.tpu('v5e', (2, 2), slices='x')", TypeError, "cluster.tpu:", "slices", "'x'"),
        ],
    ),
    Calls(
        "mesh_utils.create_device_mesh",
        "mesh_utils.create_device_mesh((2, 4)).shape",
        [
            bad("mesh_utils.create_device_mesh((3, 3))", ValueError, "mesh_shape", "devices"),
            bad("mesh_utils.create_device_mesh(None)", TypeError, "create_device_mesh:", "mesh_shape"),
            bad("mesh_utils.create_device_mesh((-2, -4))", ValueError, "create_device_mesh:", "mesh_shape"),
            bad("mesh_utils.create_device_mesh((2**63,))", ValueError, "mesh_shape", "devices"),
            bad(
                "mesh_utils.create_device_mesh((8,), devices=3)",
                TypeError,
                "create_device_mesh:",
                "devices",
                repair="give (devices\\(\\)) or",
                then="mesh_utils.create_device_mesh((8,), devices={})",
            ),
            bad(
                "mesh_utils.create_device_mesh((8,), devices=['cpu'] * 8)", TypeError, "mesh_utils:", "devices", "'cpu'"
            ),
            bad("mesh_utils.create_device_mesh((8,), devices=[])", ValueError, "mesh_shape", "devices"),
            bad(
                "mesh_utils.create_device_mesh((8,), search='spam')",
                ValueError,
                "create_device_mesh:",
                "search",
                "'spam'",
            ),
            bad(
                "mesh_utils.create_device_mesh((8,), traffic=3)", ValueError, "create_device_mesh:", "search", "traffic"
            ),
            bad(
                "mesh_utils.create_device_mesh((8,), traffic=[-1])",
                ValueError,
                "create_device_mesh:",
                "search",
                "traffic",
            ),
            bad(
                "mesh_utils.create_device_mesh((8,), traffic=[NAN])",
                ValueError,
                "create_device_mesh:",
                "search",
                "traffic",
            ),
        ],
    ),
    Calls(
        "mesh_utils.create_hybrid_device_mesh",
        "mesh_utils.create_hybrid_device_mesh((8,), (1,), devices=devices, process_is_granule=True).shape",
        [
            bad(
                "mesh_utils.create_hybrid_device_mesh((4,), (2,), process_is_granule=True)",
                ValueError,
                "dcn_mesh_shape",
                "product",
            ),
            bad(
                "mesh_utils.create_hybrid_device_mesh((4,), (2, 1), process_is_granule=True)",
                ValueError,
                "dcn_mesh_shape",
                "product",
            ),
            bad(
                "mesh_utils.create_hybrid_device_mesh('4', (2,), process_is_granule=True)",
                ValueError,
                "dcn_mesh_shape",
                "product",
            ),
            bad(
                "mesh_utils.create_hybrid_device_mesh((4,), None, process_is_granule=True)",
                TypeError,
                "create_hybrid_device_mesh:",
                "dcn_mesh_shape",
            ),
            bad(
                "mesh_utils.create_hybrid_device_mesh((4.5,), (2,), process_is_granule=True)",
                ValueError,
                "dcn_mesh_shape",
                "product",
            ),
            bad(
                "mesh_utils.create_hybrid_device_mesh((-4,), (2,), process_is_granule=True)",
                ValueError,
                "dcn_mesh_shape",
                "product",
            ),
            bad(
                "mesh_utils.create_hybrid_device_mesh((4,), (2,), devices=3)",
                TypeError,
                "create_hybrid_device_mesh:",
                "devices",
            ),
        ],
    ),
    Calls(
        "mesh_utils.explain",
        "mesh_utils.explain(pod_mesh)",
        [
            bad("mesh_utils.explain(3)", TypeError, "mesh_utils:", "3"),
            bad("mesh_utils.explain(None)", TypeError, "mesh_utils:", "None"),
            bad("mesh_utils.explain(np.array(devices), axis_names=('a', 'b'))", ValueError, "explain:", "mesh"),
            bad("mesh_utils.explain(pod_mesh, axis_names=3)", TypeError, "explain:", "axis_names"),
            bad("mesh_utils.explain(pod_mesh, traffic=[NAN, 1])", ValueError, "explain:", "traffic"),
        ],
        where="pod = ad.cluster.tpu('v5e', (2, 2)); pod_mesh = Mesh(np.array(pod.devices()).reshape(2, 2), ('x', 'y'))",
    ),
    Calls(
        "mesh_utils.MeshExplanation.to_svg",
        "mesh_utils.explain(pod_mesh).to_svg(max_cells=100)",
        [
            bad(
                "mesh_utils.explain(pod_mesh).to_svg(max_cells=1.5)", TypeError, "placed_mesh_svg:", "max_cells", "1.5"
            ),
            bad(
                "mesh_utils.explain(pod_mesh).to_svg(max_cells='x')", TypeError, "placed_mesh_svg:", "max_cells", "'x'"
            ),
        ],
        where="pod = ad.cluster.tpu('v5e', (2, 2)); pod_mesh = Mesh(np.array(pod.devices()).reshape(2, 2), ('x', 'y'))",
    ),
    Calls(
        "render.machine_svg",
        "render.machine_svg(ad.Machine.live())",
        [
            bad(
                "render.machine_svg(3)",
                TypeError,
                "machine_svg:",
                "3",
                repair="give (Machine\\.live\\(\\))",
                then="render.machine_svg({})",
            ),
            bad("render.machine_svg(None)", TypeError, "machine_svg:", "None"),
            bad("render.machine_svg(ad.Machine.live(), max_cells='x')", TypeError, "machine_svg:", "max_cells", "'x'"),
        ],
    ),
    Calls(
        "render.mesh_svg",
        "render.mesh_svg(grid)",
        [
            bad(
                "render.mesh_svg(3)",
                TypeError,
                "mesh_svg:",
                "3",
                repair="one by (make_mesh\\(\\(4,\\), \\('x',\\)\\))",
                then="render.mesh_svg({})",
            ),
            bad("render.mesh_svg(None)", TypeError, "mesh_svg:", "None"),
            bad("render.mesh_svg(grid, max_cells='x')", TypeError, "mesh_svg:", "max_cells", "'x'"),
            bad("render.mesh_svg(grid, max_cells=1.5)", TypeError, "mesh_svg:", "max_cells", "1.5"),
        ],
    ),
    Calls(
        "render.mesh_text",
        "render.mesh_text(grid)",
        [
            bad("render.mesh_text(3)", TypeError, "mesh_text:", "3"),
            bad("render.mesh_text(None)", TypeError, "mesh_text:", "None"),
            bad("render.mesh_text(grid, max_cells=1.5)", TypeError, "mesh_text:", "max_cells", "1.5"),
            bad("render.mesh_text(grid, max_cells='x')", TypeError, "mesh_text:", "max_cells", "'x'"),
        ],
    ),
    Calls(
        "render.placed_mesh_svg",
        "render.placed_mesh_svg(pod_mesh)",
        [
            bad("render.placed_mesh_svg(3)", TypeError, "placed_mesh_svg:", "3"),
            bad("render.placed_mesh_svg(None)", TypeError, "placed_mesh_svg:", "None"),
            bad("render.placed_mesh_svg(grid)", ValueError, "placed_mesh_svg:", "expected"),
            bad("render.placed_mesh_svg(pod_mesh, max_cells='x')", TypeError, "placed_mesh_svg:", "max_cells", "'x'"),
        ],
        where="pod = ad.cluster.tpu('v5e', (2, 2)); pod_mesh = Mesh(np.array(pod.devices()).reshape(2, 2), ('x', 'y'))",
    ),
    Calls(
        "render.sharding_svg",
        "render.sharding_svg(named('x'), (8, 8))",
        [
            bad("render.sharding_svg(3, (8, 8))", TypeError, "sharding_svg:", "3"),
            bad("render.sharding_svg(None, (8, 8))", TypeError, "sharding_svg:", "None"),
            bad("render.sharding_svg(named('x'), (7, 8))", IndivisibleError, "sharding_svg:", "shape", "'x'"),
            bad("render.sharding_svg(named('x'), '88')", TypeError, "sharding_svg:", "shape", "'88'"),
            bad("render.sharding_svg(named('x'), (8.5, 8))", TypeError, "sharding_svg:", "shape", "8.5"),
        ],
    ),
    Calls(
        "render.sharding_text",
        "render.sharding_text(named('x'), (8, 8))",
        [
            bad("render.sharding_text(3, (8, 8))", TypeError, "sharding_text:", "3"),
            bad("render.sharding_text(named('x'), (7, 8))", IndivisibleError, "visualize_sharding:", "shape", "'x'"),
            bad("render.sharding_text(named('x'), (8, 8), scale=-1)", ValueError, "visualize_sharding:", "scale"),
            bad("render.sharding_text(named('x'), (8, 8), scale='x')", TypeError, "sharding_text:", "scale", "'x'"),
            bad(
                "render.sharding_text(named('x'), (8, 8), max_columns='x')",
                TypeError,
                "sharding_text:",
                "max_columns",
                "'x'",
            ),
        ],
    ),
]
