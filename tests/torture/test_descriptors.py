# SPDX-License-Identifier: Apache-2.0
"""A process that cannot open files at its first use of a device: it gets an error, and later sees the machine."""

import errno
import resource


def first_use_without_descriptors():
    import artifex_devices as ad
    from artifex_devices import _core
    from artifex_devices._hardware.system_files import SystemFiles

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    for left in (0, 1, 3, 8):  # hwloc opens several at once
        resource.setrlimit(resource.RLIMIT_NOFILE, (3 + left, before[1]))
        calls = [ad.devices, ad.device_count, _core.Machine.live, lambda: ad.simulate(2).__enter__()]
        if left == 0:
            calls.append(lambda: SystemFiles().read("/proc/cpuinfo"))
        for call in calls:
            try:
                call()
            except OSError as error:
                assert error.errno == errno.EMFILE, error
                assert left > 0 or call is calls[-1] or "close files, or raise the limit (ulimit -n)" in str(error)
            else:
                raise AssertionError(f"{call} raised nothing with {left} descriptors")
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    print(_core.Machine.live().counts)
    print(len(ad.devices()))


def first_use():
    import artifex_devices as ad
    from artifex_devices import _core

    print(_core.Machine.live().counts)
    print(len(ad.devices()))


def test_a_first_use_without_descriptors_is_an_error_that_is_forgotten(own_process):
    found = own_process(first_use_without_descriptors)
    assert found == own_process(first_use)
    assert found[1] == "8"
