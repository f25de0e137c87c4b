"""The simulator is compiled once for all tests, in a folder of theirs."""

from collections.abc import Iterator

import pytest

from tuneloom_vta.simulator import library


@pytest.fixture(scope="session", autouse=True)
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    if library.compiler() is None:
        pytest.skip("the VTA simulator needs a C compiler")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TUNELOOM_VTA_CACHE", str(tmp_path_factory.mktemp("simulator")))
        library.library.cache_clear()
        library.library()
        yield
    library.library.cache_clear()
