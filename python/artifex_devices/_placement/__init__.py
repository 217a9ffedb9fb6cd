# SPDX-License-Identifier: Apache-2.0
"""Placing and moving data: device_put, reshard, constructors of global arrays, asynchronous copies."""
