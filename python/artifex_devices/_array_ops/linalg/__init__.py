# SPDX-License-Identifier: Apache-2.0
"""Products, factorizations and transforms."""
