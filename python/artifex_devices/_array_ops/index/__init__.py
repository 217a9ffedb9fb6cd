# SPDX-License-Identifier: Apache-2.0
"""Indexing, selection, updates and sorting."""
