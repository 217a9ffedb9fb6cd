# SPDX-License-Identifier: Apache-2.0
"""Extra memory of a save and a restore."""

import os
import subprocess
import sys

PROGRAM = """
import sys
import numpy as np
import artifex_devices as ad
from artifex_devices import checkpoint


def peak_of(work):
    # Bytes by which the resident memory grew at most.
    def status(name):
        lines = open("/proc/self/status").read().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])

    open("/proc/self/clear_refs", "w").write("5")
    before = status("VmRSS")
    work()
    return status("VmHWM") - before


mesh = ad.make_mesh((4,), ("x",))
rows, columns = ad.NamedSharding(mesh, ad.P("x")), ad.NamedSharding(mesh, ad.P(None, "x"))
value = ad.device_put(np.ones((4096, 8192), np.float32), columns)  # 128 MiB
checkpoint.save(sys.argv[1] + "/warm", {"w": value})
saved = peak_of(lambda: checkpoint.save(sys.argv[1] + "/c", {"w": value}))
found = []
restored = peak_of(lambda: found.append(checkpoint.restore(sys.argv[1] + "/c", {"w": rows})))
assert np.asarray(found[0]["w"]).sum() == 4096 * 8192
found.clear()
ad._core.internal.trim()
header = b'{"w":{"dtype":"F32","shape":[4096,8192],"data_offsets":[0,134217728]}}'
with open(sys.argv[1] + "/model.safetensors", "wb") as file:  # as other programs write it
    file.write(len(header).to_bytes(8, "little") + header)
    for _ in range(128):
        file.write(np.ones(1 << 18, np.float32))
foreign = peak_of(lambda: found.append(checkpoint.restore(sys.argv[1] + "/model.safetensors", {"w": columns})))
assert np.asarray(found[0]["w"]).sum() == 4096 * 8192
print(saved, restored, foreign)
"""


def test_a_save_and_a_restore_need_less_than_64_mib(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "JAX_NUM_CPU_DEVICES": "4", "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    saved, restored, foreign = map(int, done.stdout.split())
    assert saved < 64 << 20
    assert restored < (128 + 64) << 20
    assert foreign < (128 + 64) << 20
