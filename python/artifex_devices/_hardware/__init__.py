# SPDX-License-Identifier: Apache-2.0
"""What this machine has: accelerators, chips and batch sizes that suit them."""
