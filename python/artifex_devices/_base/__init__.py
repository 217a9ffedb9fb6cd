# SPDX-License-Identifier: Apache-2.0
"""Foundations that every other room may use: texts, checks, threads and caches."""
