# SPDX-License-Identifier: Apache-2.0
"""The world of devices: clients, devices, memory kinds, scopes, caches and shutdown."""
