# SPDX-License-Identifier: Apache-2.0
"""Memory of a conversion: a few pieces, at any size of the checkpoint."""

import os
import subprocess
import sys

PROGRAM = """
import sys
import numpy as np
from artifex_devices import checkpoint
from artifex_devices.checkpoint import pieces, rules

folder = sys.argv[1]
pieces.PIECE_BYTES = 1 << 20


def peak_of(work):
    # Bytes by which the resident memory grew at most.
    def status(name):
        lines = open("/proc/self/status").read().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])

    open("/proc/self/clear_refs", "w").write("5")
    before = status("VmRSS")
    work()
    return status("VmHWM") - before


header = b'{"w":{"dtype":"F32","shape":[8192,4096],"data_offsets":[0,134217728]}}'
with open(f"{folder}/model.safetensors", "wb") as file:  # 128 MiB, without blocks on the disk
    file.write(len(header).to_bytes(8, "little") + header)
    file.truncate(8 + len(header) + (128 << 20))
checkpoint.save(f"{folder}/small", {"w": np.ones(3)})
checkpoint.convert(f"{folder}/small", f"{folder}/warm", rules=rules.cast("w", "bfloat16"))
peaks = []
for number, (changes, format) in enumerate(
    [
        ([], "artifex"),
        ([], "safetensors"),
        ([rules.transpose("w", (1, 0)), rules.cast("w", "bfloat16")], "artifex"),
        ([rules.split("w", ["a", "b"], 1, (1000, 3096))], "safetensors"),
    ]
):
    paths = f"{folder}/model.safetensors", f"{folder}/{number}"
    peaks.append(peak_of(lambda: checkpoint.convert(*paths, rules=changes, format=format)))
print(*peaks)
"""


def test_a_conversion_needs_a_few_pieces(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    peaks = list(map(int, done.stdout.split()))
    assert len(peaks) == 4
    assert max(peaks) < 32 << 20, peaks  # the array has 128 MiB
