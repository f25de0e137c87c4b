"""Every policy that ships keeps the contract."""

from tuneloom.scheduling.policies import Policy
from tuneloom.scheduling.policies.interleaved import Interleaved
from tuneloom.scheduling.policies.load_aware.policy import LoadAware
from tuneloom.scheduling.policies.sequential import Sequential
from tuneloom.scheduling.policies.synchronous import Synchronous
from tuneloom.testing.contracts.policy import PolicyContract


class TestLoadAware(PolicyContract):
    def policy(self) -> Policy:
        return LoadAware()


class TestInterleaved(PolicyContract):
    def policy(self) -> Policy:
        return Interleaved()


class TestSequential(PolicyContract):
    def policy(self) -> Policy:
        return Sequential()


class TestSynchronous(PolicyContract):
    def policy(self) -> Policy:
        return Synchronous()
