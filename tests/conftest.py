"""Failures of the contract suites show what was compared."""

import pytest

pytest.register_assert_rewrite("tuneloom.testing.store_contract", "tuneloom.testing.tuner_contract")
