# SPDX-License-Identifier: Apache-2.0
"""Bad calls: members of meshes, shardings and Arrays, and smaller names, that programs for JAX use."""

from artifex_devices.errors import TransferGuardError

from bad_input.rows import Calls, bad

CALLS = [
    Calls(
        "Mesh.update",
        "line.update(axis_names=('a',))",
        [
            bad("line.update(devices=devices[:4], axis_names=('a', 'b'))", ValueError, "Mesh:", "('a', 'b')"),
            bad("line.update(devices=[1])", TypeError, "Mesh:", "devices[0]"),
            bad("line.update(axis_types=3)", TypeError, "Mesh:", "axis_types"),
        ],
    ),
    Calls(
        "AbstractMesh.update",
        "AbstractMesh((2, 4), ('x', 'y')).update(axis_sizes=(4, 4))",
        [
            bad("AbstractMesh((2,), ('x',)).update(axis_sizes=(0,))", ValueError, "AbstractMesh:", "0"),
            bad("AbstractMesh((2,), ('x',)).update(axis_names=('a', 'b'))", ValueError, "AbstractMesh:", "2"),
            bad("AbstractMesh((2,), ('x',)).update(axis_types='Automatic')", TypeError, "AbstractMesh:", "'Automatic'"),
        ],
    ),
    Calls(
        "AbstractMesh.update_axis_types",
        "AbstractMesh((2, 4), ('x', 'y')).update_axis_types({'x': AxisType.Explicit})",
        [
            bad("AbstractMesh((2,), ('x',)).update_axis_types(['x'])", TypeError, "update_axis_types: name_to_type is ['x'] (list)"),
            bad("AbstractMesh((2,), ('x',)).update_axis_types(None)", TypeError, "update_axis_types:", "None"),
            bad("AbstractMesh((2,), ('x',)).update_axis_types({'x': 'Automatic'})", TypeError, "AbstractMesh:", "'Automatic'"),
        ],
    ),
    Calls(
        "Sharding.check_compatible_aval",
        "named('x').check_compatible_aval((8,))",
        [
            bad("named('x', 'y').check_compatible_aval((8,))", ValueError, "check_compatible_aval:", "expected 2 at least, got 1"),
            bad("named('x').check_compatible_aval(())", ValueError, "check_compatible_aval:", "P()"),
            bad("named('x').check_compatible_aval(3)", TypeError, "len()"),
        ],
    ),
    Calls(
        "NamedSharding.update",
        "named('x').update(spec=P('y'))",
        [
            bad("named('x').update(sepc=P())", TypeError, "update:", "sepc"),
            bad("named('x').update(spec=P('q'))", ValueError, "NamedSharding:", "'q'"),
            bad("named('x').update(memory_kind='gpu')", ValueError, '"gpu"', "pinned_host"),
            bad("named('y').update(mesh=line)", ValueError, "NamedSharding:", "'y'"),
        ],
    ),
    Calls(
        "P.update",
        "P('x').update(partitions=('y',))",
        [
            bad("P('x').update(partitions='y')", TypeError, "update:", "'y'"),
            bad("P('x').update(partitions=3)", TypeError, "update:", "partitions is 3 (int)"),
            bad("P('x').update(partitions=[(None,)])", ValueError, "PartitionSpec:", "None"),
            bad("P('x').update(partitions=BAD_ITER)", ZeroDivisionError, "no more"),
        ],
    ),
    Calls(
        "sharding.make_single_device_sharding",
        "ad.sharding.make_single_device_sharding(d)",
        [
            bad("ad.sharding.make_single_device_sharding('cpu:0')", TypeError, "SingleDeviceSharding:", "'cpu:0'"),
            bad("ad.sharding.make_single_device_sharding(devices)", TypeError, "SingleDeviceSharding:", "list"),
            bad("ad.sharding.make_single_device_sharding(d, memory_kind='gpu')", ValueError, "SingleDeviceSharding:", '"gpu"'),
        ],
    ),
    Calls(
        "Array.view",
        "put(X, 'x').view(np.int32)",
        [
            bad("put(X, 'x').view('bogus')", TypeError, "bogus"),
            bad("put(X, 'x').view(object)", TypeError, "view", "object"),
            bad("put(X[:, :3], 'x').view(np.float64)", ValueError, "view:", "12 bytes"),
            bad("put(X[0, 0]).view(np.int8)", ValueError, "view:", "x.reshape(1)"),
            bad("put(X).view(np.int32, np.ndarray)", NotImplementedError, "view:", "type"),
        ],
    ),
    Calls(
        "smap",
        "within(ad.set_mesh(line), lambda: ad.smap(lambda a: a, in_axes=0, out_axes=0, axis_name='x')(X))",
        [
            bad("ad.smap(lambda a: a, in_axes=0, axis_name='x')", TypeError, "smap: out_axes is missing"),
            bad("ad.smap(lambda a: a, in_axes=0, out_axes=0)", TypeError, "smap:", "axis_name='x'"),
            bad("ad.smap(lambda a: a, in_axes=[0], out_axes=0, axis_name='x')", TypeError, "smap:", "in_axes", "[0]"),
            bad("ad.smap(lambda a: a, in_axes=-1, out_axes=0, axis_name='x')", ValueError, "smap:", "in_axes", "-1"),
            bad("ad.smap(lambda a: a, in_axes=0, out_axes='a', axis_name='x')", TypeError, "smap:", "out_axes", "'a'"),
            bad("ad.smap(lambda a: a, in_axes=0, out_axes=0, axis_name=['x'])", TypeError, "smap: axis_name", "['x']"),
            bad("ad.smap(lambda a: a, in_specs=P(), out_axes=0, axis_name='x')", TypeError, "smap: in_specs"),
            bad("ad.smap(3, in_axes=0, out_axes=0, axis_name='x')", TypeError, "f is 3 (int); expected a function"),
            bad("within(ad.set_mesh(line), lambda: ad.smap(lambda a: a, in_axes=0, out_axes=0, axis_name='q')(X))", ValueError, "'q'"),
        ],
    ),
    Calls(
        "debug.print",
        "ad.debug.print('{} {y}', 1, y=put(X))",
        [
            bad("ad.debug.print(3)", TypeError, "debug.print: fmt is 3", repair="write (.*)$", then="ad.{}", given="x = 1"),
            bad("ad.debug.print('x', 3)", ValueError, "debug.print: the text does not use 3"),
            bad("ad.debug.print(x=3)", TypeError, "debug.print: values are given without a text"),
            bad("ad.debug.print('{x}', x=1, ordered='yes')", TypeError, "debug.print: ordered is 'yes'"),
            bad("ad.debug.print('{y}', x=1)", KeyError, "y"),
        ],
    ),
    Calls(
        "typeof",
        "ad.typeof(put(X))",
        [
            bad("ad.typeof('text')", TypeError, "typeof: x is 'text' (str)"),
            bad("ad.typeof(None)", TypeError, "typeof: x is None"),
            bad("ad.typeof([1.0])", TypeError, "typeof: x is [1.0] (list)", repair="write (ad.tree.map\\(ad.typeof, x\\))", given="x = [1.0]"),
        ],
    ),
    Calls(
        "disable_jit",
        "within(ad.disable_jit(), lambda: 1)",
        [
            bad("ad.disable_jit('yes')", TypeError, "disable_jit: disable is 'yes'"),
            bad("ad.disable_jit(None)", TypeError, "disable_jit: disable is None"),
            bad("ad.disable_jit(1)", TypeError, "disable_jit: disable is 1"),
        ],
    ),
    Calls(
        "print_environment_info",
        "ad.print_environment_info(return_string=True)",
        [
            bad("ad.print_environment_info('text')", TypeError, "print_environment_info: return_string is 'text'"),
            bad("ad.print_environment_info(None)", TypeError, "print_environment_info: return_string is None"),
            bad("ad.print_environment_info(1)", TypeError, "print_environment_info: return_string is 1"),
        ],
    ),
    Calls(
        "debug.inspect_array_sharding",
        "ad.debug.inspect_array_sharding(put(X), callback=lambda sharding: None)",
        [
            bad("ad.debug.inspect_array_sharding(X, callback=print)", TypeError, "inspect_array_sharding:", "ndarray"),
            bad("ad.debug.inspect_array_sharding({'a': 3}, callback=print)", TypeError, "inspect_array_sharding:", "value['a']"),
            bad("ad.debug.inspect_array_sharding(put(X), callback=3)", TypeError, "inspect_array_sharding:", "3"),
            bad("ad.debug.inspect_array_sharding(put(X), callback=lambda s: 1 / 0)", ZeroDivisionError, "division by zero"),
        ],
    ),
    Calls(
        "dlpack.is_supported_dtype",
        "ad.dlpack.is_supported_dtype('float32')",
        [
            bad("ad.dlpack.is_supported_dtype(None)", TypeError, "is_supported_dtype:", "'float32'"),
            bad("ad.dlpack.is_supported_dtype('bogus')", TypeError, "bogus"),
            bad("ad.dlpack.is_supported_dtype(3)", TypeError, "3"),
        ],
    ),
    *[
        Calls(
            f"multihost_utils.{name}",
            f"ad.multihost_utils.{name}(X, line, P('x'))",
            [
                bad(f"ad.multihost_utils.{name}(X, line, None)", ValueError, f"{name}: pspecs is None", "P()"),
                bad(f"ad.multihost_utils.{name}([X], line, ['x'])", TypeError, f"{name}: pspecs[0]", "'x'"),
                bad(f"ad.multihost_utils.{name}(X, 3, P('x'))", TypeError, f"{name}: global_mesh", "3"),
                bad(f"ad.multihost_utils.{name}([X], line, [P(), P()])", ValueError, "expected"),
                bad(f"ad.multihost_utils.{name}(X, line, P('q'))", ValueError, "'q'"),
                bad(f"ad.multihost_utils.{name}('text', line, P())", TypeError, name, "a leaf of type str"),
                bad(f"within(ad.transfer_guard('disallow'), lambda: ad.multihost_utils.{name}(X, line, P('x')))", TransferGuardError, name, "disallowed implicit"),
            ],
        )
        for name in ("host_local_array_to_global_array", "global_array_to_host_local_array")
    ],
    Calls(
        "profiler.trace",
        "ad.profiler.trace(folder / 'trace.json')",
        [
            bad("ad.profiler.trace(3)", TypeError, "trace: path", "3", "write trace('trace.json')"),
            bad("ad.profiler.trace(b'trace.json')", TypeError, "trace: path"),
            bad("ad.profiler.trace(folder / 'a' / 'b').__enter__()", FileNotFoundError, "for the trace"),
            bad("ad.profiler.trace().__exit__(None, None, None)", RuntimeError, "left without having been entered"),
        ],
    ),
    Calls(
        "profiler.Trace.plot",
        "trace.plot()",
        [
            bad("trace.plot(ax=3)", TypeError, "Trace.plot:", "ax", "3"),
            bad("trace.plot(ax='x')", TypeError, "Trace.plot:", "ax", "'x'"),
            bad("trace.plot(3)", TypeError, "positional"),
        ],
        where="block = ad.profiler.trace(); trace = block.__enter__(); put(X).block_until_ready(); block.__exit__(None, None, None)",
    ),
    Calls(
        "profiler.annotate",
        "ad.profiler.annotate('step', number=3)",
        [
            bad("ad.profiler.annotate(3)", TypeError, "annotate: name", "3", "write annotate('step')"),
            bad("ad.profiler.annotate(None)", TypeError, "annotate: name", "None"),
            bad("ad.profiler.annotate(b'step')", TypeError, "annotate: name", "b'step'"),
        ],
    ),
    Calls(
        "profiler.device_memory_profile",
        "ad.profiler.device_memory_profile()",
        [
            bad("ad.profiler.device_memory_profile('gpu')", RuntimeError, "device_memory_profile:", "'gpu'"),
            bad("ad.profiler.device_memory_profile('CPU')", RuntimeError, "lower case"),
            bad("ad.profiler.device_memory_profile(3)", TypeError, "device_memory_profile:", "3"),
        ],
    ),
    Calls(
        "profiler.save_device_memory_profile",
        "ad.profiler.save_device_memory_profile(folder / 'memory.prof')",
        [
            bad("ad.profiler.save_device_memory_profile(folder)", IsADirectoryError, "directory"),
            bad("ad.profiler.save_device_memory_profile(folder / 'a' / 'b')", FileNotFoundError, "a/b"),
            bad("ad.profiler.save_device_memory_profile(folder / 'a', 'gpu')", RuntimeError, "'gpu'"),
        ],
    ),
]
