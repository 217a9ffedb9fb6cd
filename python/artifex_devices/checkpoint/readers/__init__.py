# SPDX-License-Identifier: Apache-2.0
"""Readers of checkpoints, one file for each family of formats; `opening` chooses one."""
