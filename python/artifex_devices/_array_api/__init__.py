# SPDX-License-Identifier: Apache-2.0
"""The parts of the public module array_api: creation functions, the extensions, and what it reports about itself."""
