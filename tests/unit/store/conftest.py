"""Failures of the contract suite show what was compared."""

import pytest

pytest.register_assert_rewrite("tuneloom.testing.store_contract")
