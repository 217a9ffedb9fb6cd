# SPDX-License-Identifier: Apache-2.0
"""Bad calls: layouts, memory kinds, guards and options."""

from artifex_devices.errors import IndivisibleError, TransferGuardError

from bad_input.rows import Calls, bad

CALLS = [
    Calls(
        "xla_client.Layout",
        "xla_client.Layout((1, 0)).minor_to_major()",
        [
            bad("xla_client.Layout((0, 0))", ValueError, "Layout:", "0"),
            bad("xla_client.Layout((-1,))", ValueError, "Layout:", "-1"),
            bad("xla_client.Layout((1,))", ValueError, "Layout:", "1", repair="write (Layout\\(\\(1, 0\\)\\)) for", given="Layout = xla_client.Layout"),
            bad("xla_client.Layout('01')", TypeError, "Layout:", "'01'", repair="write (Layout\\(.*\\))$", given="Layout = xla_client.Layout"),
            bad("xla_client.Layout(3.5)", TypeError, "Layout:", "3.5"),
            bad("xla_client.Layout((0.5, 1))", TypeError, "Layout:", "0.5"),
            bad("xla_client.Layout((2**63, 0))", ValueError, "Layout:", "0"),
            bad("xla_client.Layout(None)", TypeError, "Layout:", "None"),
            bad("xla_client.Layout((True, 0))", TypeError, "Layout:", "True", "0"),
            bad("xla_client.Layout((BAD_INDEX, 0))", ZeroDivisionError, "no int"),
        ],
    ),
    Calls(
        "xla_client.Layout.parse",
        "xla_client.Layout.parse('{1,0}').minor_to_major()",
        [
            bad("xla_client.Layout.parse(None)", TypeError, "Layout.parse:", "None"),
            bad("xla_client.Layout.parse(3)", TypeError, "Layout.parse:", "3"),
            bad("xla_client.Layout.parse('')", ValueError, "Layout.parse:", "expected", repair="such as '(\\{1,0\\})'", then="xla_client.Layout.parse('{}')"),
            bad("xla_client.Layout.parse('spam')", ValueError, "Layout.parse:", "expected"),
            bad("xla_client.Layout.parse('{1,1}')", ValueError, "Layout:", "expected"),
            bad("xla_client.Layout.parse('{1,0:T(8,128)}')", ValueError, "Layout.parse:", "expected"),
            bad("xla_client.Layout.parse(NO_REPR)", TypeError, "Layout.parse:", "expected"),
            bad("xla_client.Layout.parse()", TypeError, "incompatible function arguments"),
        ],
    ),
    Calls(
        "xla_client.PjRtLayout",
        "xla_client.PjRtLayout(xla_client.Layout((1, 0)))",
        [
            bad("xla_client.PjRtLayout(3)", TypeError, "PjRtLayout:", "3"),
            bad("xla_client.PjRtLayout(None)", TypeError, "PjRtLayout:", "None"),
            bad("xla_client.PjRtLayout()", TypeError, "incompatible constructor arguments"),
            bad("xla_client.PjRtLayout('{1,0}')", TypeError, "PjRtLayout:", "'{1,0}'"),
        ],
    ),
    Calls(
        "layout.Layout",
        "Layout((1, 0)).major_to_minor",
        [
            bad("Layout('10')", TypeError, "Layout:", "major_to_minor", "'10'", repair="write (\\(0, 1\\))", then="Layout({})"),
            bad("Layout(3)", TypeError, "Layout:", "major_to_minor"),
            bad("Layout(None)", TypeError, "Layout:", "major_to_minor"),
            bad("Layout((0.5, 1))", TypeError, "Layout:", "major_to_minor", "0.5", repair="write (\\(0, 1\\))"),
        ],
    ),
    Calls(
        "layout.Layout.from_pjrt_layout",
        "Layout.from_pjrt_layout(xla_client.PjRtLayout(xla_client.Layout((1, 0))))",
        [
            bad("Layout.from_pjrt_layout(3)", TypeError, "Layout.from_pjrt_layout:", "3", repair="write (PjRtLayout\\(layout\\))", then="Layout.from_pjrt_layout({})", given="PjRtLayout = xla_client.PjRtLayout; layout = xla_client.Layout((1, 0))"),
            bad("Layout.from_pjrt_layout(None)", TypeError, "Layout.from_pjrt_layout:", "None"),
            bad("Layout.from_pjrt_layout('{1,0}')", TypeError, "Layout.from_pjrt_layout:", "'{1,0}'"),
            bad("Layout.from_pjrt_layout(Layout((1, 0)))", TypeError, "Layout.from_pjrt_layout:", "1", "0"),
        ],
    ),
    Calls(
        "layout.Format",
        "Format(Layout((1, 0)), named('x'))",
        [
            bad("Format(3, named('x'))", TypeError, "Format:", "layout"),
            bad("Format('{1,0}', named('x'))", TypeError, "Format:", "layout", "'{1,0}'"),
            bad("Format(Layout((1, 0)), 'x')", TypeError, "Format:", "sharding", "'x'", repair="write (NamedSharding\\(mesh, P\\('data'\\)\\))", then="Format(Layout((1, 0)), {})", given="mesh = make_mesh((8,), ('data',))"),
            bad("Format(Layout((1, 0)), 3)", TypeError, "Format:", "sharding"),
            bad("Format(Layout((1, 0)), None)", ValueError, "Format:", "layout", "sharding"),
        ],
    ),
    Calls(
        "xla_client.Memory",
        "d.memory('device').stats()",
        [
            bad("xla_client.Memory()", TypeError, "Memory:", "expected", repair="use (Device\\.memory\\(kind\\))", then="d.memory('device')"),
            bad("xla_client.Memory('device')", TypeError, "Memory:", "expected"),
            bad("xla_client.Memory(d)", TypeError, "Memory:", "the class has no constructor", repair="use (Device\\.memory\\(kind\\))", given="Device, kind = d, 'device'"),
            bad("xla_client.Memory.__new__(xla_client.Memory).kind", TypeError, "no value", "__init__"),
        ],
    ),
    Calls(
        "xla_client.check_and_canonicalize_memory_kind",
        "xla_client.check_and_canonicalize_memory_kind('device', xla_client.DeviceList((d,)))",
        [
            bad("xla_client.check_and_canonicalize_memory_kind('gpu', xla_client.DeviceList((d,)))", ValueError, "check_and_canonicalize_memory_kind:", "expected"),
            bad(
                "xla_client.check_and_canonicalize_memory_kind(3, xla_client.DeviceList((d,)))",
                TypeError,
                "check_and_canonicalize_memory_kind:",
                "3",
                repair="write (DeviceList\\(tuple\\(devices\\)\\))",
                then="xla_client.check_and_canonicalize_memory_kind('device', {})",
                given="DeviceList = xla_client.DeviceList; devices = [d]",
            ),
            bad("xla_client.check_and_canonicalize_memory_kind('device', 3)", TypeError, "check_and_canonicalize_memory_kind:", "device_list"),
            bad("xla_client.check_and_canonicalize_memory_kind('device', None)", TypeError, "check_and_canonicalize_memory_kind:", "device_list"),
            bad("xla_client.check_and_canonicalize_memory_kind('', xla_client.DeviceList((d,)))", ValueError, "check_and_canonicalize_memory_kind:", "expected"),
        ],
    ),
    Calls(
        "memory.Space",
        "ad.memory.Space.Device",
        [
            bad("ad.memory.Space('spam')", ValueError, "'spam'", "MemorySpace"),
            bad("ad.memory.Space(99)", ValueError, "99", "MemorySpace"),
            bad("ad.memory.Space(None)", ValueError, "MemorySpace", "valid"),
            bad("ad.memory.Space['spam']", KeyError, "'spam'"),
        ],
    ),
    Calls(
        "memory_report",
        "ad.memory_report(3)",
        [
            bad("ad.memory_report('all')", TypeError, "memory_report:", "top", "'all'"),
            bad("ad.memory_report(-1)", ValueError, "memory_report:", "top"),
            bad("ad.memory_report(1.5)", TypeError, "memory_report:", "top", "1.5"),
            bad("ad.memory_report(None)", TypeError, "memory_report:", "top"),
            bad("ad.memory_report(True)", TypeError, "memory_report:", "top"),
            bad("ad.memory_report(BAD_INDEX)", ZeroDivisionError, "no int"),
        ],
    ),
    *(
        Calls(
            f"transfers.TransferReport.{count}",
            f"ad.transfers.record().{count}('host-to-device')",
            [
                bad(f"ad.transfers.record().{count}('up')", ValueError, f"TransferReport.{count}:", "direction", "'up'"),
                bad(f"ad.transfers.record().{count}('host_to_device')", ValueError, "'host-to-device'"),
                bad(f"ad.transfers.record().{count}(3)", TypeError, f"TransferReport.{count}:", "direction", "3"),
                bad(f"ad.transfers.record().{count}([])", TypeError, f"TransferReport.{count}:", "direction"),
                bad(f"ad.transfers.record().{count}(NO_REPR)", TypeError, "<NoRepr, whose repr raised ZeroDivisionError>"),
            ],
        )
        for count in ("calls", "bytes")
    ),
    Calls(
        "transfer_guard",
        "within(ad.transfer_guard('allow'), lambda: 1)",
        [
            bad("ad.transfer_guard('spam')", ValueError, "transfer_guard:", "'spam'"),
            bad("ad.transfer_guard(3)", ValueError, "transfer_guard:", "3"),
            bad("ad.transfer_guard(True)", ValueError, "transfer_guard:", "True"),
            bad("ad.transfer_guard(NO_REPR)", ValueError, "transfer_guard:", "<NoRepr, whose repr raised ZeroDivisionError>"),
            bad("within(ad.transfer_guard('disallow'), lambda: lax.psum is None or put(X) + X)", TransferGuardError, "add:", "level", repair='`with (transfer_guard_host_to_device\\(\\"allow\\"\\)):`', then="within({}, lambda: put(X) + X)"),
        ],
    ),
    Calls(
        "transfer_guard_device_to_device",
        "within(ad.transfer_guard_device_to_device('allow'), lambda: 1)",
        [
            bad("ad.transfer_guard_device_to_device('spam')", ValueError, "transfer_guard_device_to_device:", "'spam'"),
            bad("ad.transfer_guard_device_to_device(3)", ValueError, "transfer_guard_device_to_device:", "3"),
            bad("ad.transfer_guard_device_to_device('Allow')", ValueError, "transfer_guard_device_to_device:", "'Allow'", repair="expected None or one of (allow),", then="ad.transfer_guard_device_to_device({!r})"),
            bad("ad.transfer_guard_device_to_device(TEXT)", ValueError, "transfer_guard_device_to_device:", "<Text, whose repr raised ZeroDivisionError>"),
            bad("ad.transfer_guard_device_to_device()", TypeError, "level"),
        ],
    ),
    Calls(
        "transfer_guard_device_to_host",
        "within(ad.transfer_guard_device_to_host('allow'), lambda: 1)",
        [
            bad("ad.transfer_guard_device_to_host('spam')", ValueError, "transfer_guard_device_to_host:", "'spam'"),
            bad("ad.transfer_guard_device_to_host(3)", ValueError, "transfer_guard_device_to_host:", "3"),
            bad("ad.transfer_guard_device_to_host(['allow'])", ValueError, "transfer_guard_device_to_host:", "['allow']"),
            bad("ad.transfer_guard_device_to_host(True)", ValueError, "transfer_guard_device_to_host:", "True"),
        ],
    ),
    Calls(
        "transfer_guard_host_to_device",
        "within(ad.transfer_guard_host_to_device('allow'), lambda: 1)",
        [
            bad("ad.transfer_guard_host_to_device('spam')", ValueError, "transfer_guard_host_to_device:", "'spam'"),
            bad("ad.transfer_guard_host_to_device(3)", ValueError, "transfer_guard_host_to_device:", "3"),
            bad("ad.transfer_guard_host_to_device([])", ValueError, "transfer_guard_host_to_device:", "expected"),
            bad("within(ad.transfer_guard_host_to_device('disallow_explicit'), lambda: put(X))", TransferGuardError, "device_put:", "level", repair='`with (transfer_guard_host_to_device\\(\\"allow\\"\\)):`', then="within({}, lambda: put(X))"),
        ],
    ),
    Calls(
        "reproducible",
        "within(ad.reproducible(), lambda: 1)",
        [
            bad("ad.reproducible(True)", TypeError, "reproducible()", "1"),
            bad("ad.reproducible(enabled=False)", TypeError, "reproducible()", "'enabled'"),
            bad("within(ad.reproducible, lambda: 1)", TypeError, "context manager"),
        ],
    ),
    Calls(
        "enable_x64",
        "within(ad.enable_x64(True), lambda: 1)",
        [
            bad("ad.enable_x64('yes')", ValueError, "enable_x64:", "'yes'"),
            bad("ad.enable_x64(3)", ValueError, "enable_x64:", "3"),
            bad("ad.enable_x64(None)", ValueError, "enable_x64:", "None"),
            bad("ad.enable_x64(NO_REPR)", ValueError, "enable_x64:", "<NoRepr, whose repr raised ZeroDivisionError>"),
        ],
    ),
    Calls(
        "experimental.disable_x64",
        "within(ad.experimental.disable_x64(), lambda: 1)",
        [
            bad("ad.experimental.disable_x64(3)", TypeError, "positional", "arguments"),
            bad("ad.experimental.disable_x64(new_val=True)", TypeError, "disable_x64", "'new_val'"),
            bad("ad.experimental.disable_x64().__enter__(3)", TypeError, "positional"),
        ],
    ),
    Calls(
        "config.update",
        "ad.config.update('cache_bytes', ad.config.cache_bytes)",
        [
            bad("ad.config.update('spam', 1)", AttributeError, "config.update:", "name", "'spam'"),
            bad("ad.config.update(3, 1)", AttributeError, "config.update:", "name"),
            bad("ad.config.update('jax_enable_x64', 'maybe')", ValueError, "config.update:", "'maybe'"),
            bad("ad.config.update('jax_enable_x64', 3)", ValueError, "config.update:", "3"),
            bad("ad.config.update('cache_bytes', -2)", ValueError, "config.update:", "cache_bytes is -2"),
            bad("ad.config.update('cache_bytes', 2**63)", ValueError, "config.update:", "cache_bytes", "63"),
            bad("ad.config.update('cache_bytes', 1.5)", TypeError, "config.update:", "1.5"),
            bad("ad.config.update('jax_transfer_guard', 'spam')", ValueError, "config.update:", "'spam'"),
            bad("ad.config.update('jax_default_device', 'cpu:99')", ValueError, "config.update:", "'cpu:99'"),
            bad("ad.config.update('jax_default_device', 3)", ValueError, "config.update:", "3"),
            bad("ad.config.update('jax_num_cpu_devices', 'x')", TypeError, "config.update:", "'x'"),
            bad("ad.config.update(NO_REPR, 1)", AttributeError, "config.update:", "<NoRepr, whose repr raised ZeroDivisionError>"),
        ],
    ),
    Calls(
        "debug.visualize_sharding",
        "ad.debug.visualize_sharding((8, 8), named('x'), use_color=False)",
        [
            bad("ad.debug.visualize_sharding((7, 8), named('x'))", IndivisibleError, "visualize_sharding:", "shape"),
            bad("ad.debug.visualize_sharding('88', named('x'))", TypeError, "sharding_text:", "shape", "'88'"),
            bad("ad.debug.visualize_sharding((8, 8), 'x')", TypeError, "sharding_text:", "'x'"),
            bad("ad.debug.visualize_sharding((8, 8), None)", TypeError, "sharding_text:", "None"),
            bad("ad.debug.visualize_sharding((8, 8), named('x'), scale=-1)", ValueError, "visualize_sharding:", "scale"),
            bad("ad.debug.visualize_sharding((8, 8), named('x'), scale=NAN)", ValueError, "visualize_sharding:", "scale"),
            bad("ad.debug.visualize_sharding((8, 8), named('x'), scale='big')", TypeError, "sharding_text:", "scale", "'big'"),
            bad("ad.debug.visualize_sharding((8, 8), named('x'), max_width='wide')", TypeError, "sharding_text:", "'wide'"),
            bad("ad.debug.visualize_sharding((8, 8), named('x'), min_width=2**63)", ValueError, "sharding_text:", "min_width"),
        ],
    ),
    Calls(
        "debug.visualize_array_sharding",
        "ad.debug.visualize_array_sharding(put(X, 'x'), use_color=False)",
        [
            bad("ad.debug.visualize_array_sharding(X)", TypeError, "visualize_array_sharding:", "expected", repair="or use (visualize_sharding\\(shape, sharding\\))", then="ad.debug.{}", given="shape = (8, 8); sharding = named('x')"),
            bad("ad.debug.visualize_array_sharding('text')", TypeError, "visualize_array_sharding:", "expected"),
            bad("ad.debug.visualize_array_sharding(None)", TypeError, "visualize_array_sharding:", "expected"),
            bad("ad.debug.visualize_array_sharding(put(X, 'x'), scale=-1)", ValueError, "visualize_sharding:", "-1"),
        ],
    ),
]
