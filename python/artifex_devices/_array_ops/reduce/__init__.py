# SPDX-License-Identifier: Apache-2.0
"""Reductions, statistics and scans."""
