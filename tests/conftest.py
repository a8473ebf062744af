"""Options and fixtures of the whole suite."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

GOLDEN = Path(__file__).parent / "golden"
sys.path.insert(0, str(Path(__file__).parent.parent))  # for the tests' modules that are run by name

settings.register_profile("tinyfuse", deadline=None, database=None, derandomize=True)
settings.load_profile("tinyfuse")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the golden files anew instead of comparing",
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """golden(name, text): the text is that of tests/golden/<name>; --update-golden writes it."""
    update = request.config.getoption("--update-golden")

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        if not path.exists():
            pytest.fail(
                f"there is no {path}: run pytest --update-golden and look at what it writes"
            )
        assert text == path.read_text(), (
            f"{name} is no longer what it was; --update-golden accepts the change"
        )

    return check


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compiled code of the suite goes to a directory of its own, unless the user names one."""
    if "TINYFUSE_CACHE_DIR" not in os.environ:
        os.environ["TINYFUSE_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
