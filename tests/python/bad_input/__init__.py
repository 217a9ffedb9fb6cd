# SPDX-License-Identifier: Apache-2.0
"""Tables of bad calls by area; test_bad_calls.py runs them."""
