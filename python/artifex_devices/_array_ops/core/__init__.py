# SPDX-License-Identifier: Apache-2.0
"""What every family of operations needs: shards of operands, dispatch, results."""
