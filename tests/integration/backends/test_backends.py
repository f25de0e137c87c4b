"""The backends that Tuneloom brings, by the contract of all."""

from tuneloom.testing.contracts.backend import BackendContract


class TestCpu(BackendContract):
    target = "cpu"


class TestAnotherCpu(BackendContract):
    target = '{"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mcpu": "skylake-avx512", "num-cores": 2}'
    runs_here = False


class TestCuda(BackendContract):
    target = '{"kind": "cuda", "arch": "sm_90"}'
    runs_here = False
