# SPDX-License-Identifier: Apache-2.0
"""Writers of checkpoints, one for each format."""
