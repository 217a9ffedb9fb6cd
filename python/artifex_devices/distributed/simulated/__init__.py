# SPDX-License-Identifier: Apache-2.0
"""Simulated processes: a job in one interpreter, whose processes are threads that take turns under a seeded scheduler."""
