# SPDX-License-Identifier: Apache-2.0
"""Universal functions on Arrays."""
