# SPDX-License-Identifier: Apache-2.0
"""Functions that all families of operations share: shards of operands, dispatch, results."""
