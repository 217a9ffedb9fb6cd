# SPDX-License-Identifier: Apache-2.0
"""Methods and texts of Array that are written in Python."""
