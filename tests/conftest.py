# SPDX-License-Identifier: Apache-2.0
"""Of the tests of all folders."""

import os

# Tests and the processes that they start share few cores. OpenBLAS starts a thread for each core when NumPy is
# imported, and such a thread keeps its core busy while it waits for work.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
