# SPDX-License-Identifier: Apache-2.0
"""Simulated processes: a job in one interpreter, with a thread for each process. A seeded scheduler gives turns."""
