# SPDX-License-Identifier: Apache-2.0
"""Who is measured: one module a library, with the same functions."""
