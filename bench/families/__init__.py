# SPDX-License-Identifier: Apache-2.0
"""Measurements: one module for each family, whose `rows(peer, quick=)` yields its rows."""
