# SPDX-License-Identifier: Apache-2.0
"""Hardware of this machine: accelerators, chips and recommended batch sizes."""
