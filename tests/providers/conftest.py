from __future__ import annotations

from collections.abc import Iterator

import pytest

from .running import ProviderServer


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProviderServer]:
    """One process for all tests here: they tell themselves apart by recipient."""
    with ProviderServer(tmp_path_factory.mktemp("providers")) as made:
        yield made
