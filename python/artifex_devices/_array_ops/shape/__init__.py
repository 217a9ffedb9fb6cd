# SPDX-License-Identifier: Apache-2.0
"""Functions that change shapes, and creation."""
