# SPDX-License-Identifier: Apache-2.0
"""What is measured: one module a family, `rows(peer, quick=)` gives its lines."""
