# SPDX-License-Identifier: Apache-2.0
"""Trees of containers: nodes, key paths, structures and registration."""
