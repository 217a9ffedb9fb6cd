# SPDX-License-Identifier: Apache-2.0
"""The measured libraries: one module for each, with the same functions."""
