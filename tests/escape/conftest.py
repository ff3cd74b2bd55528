"""One siege for all attacks of this directory."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from escape.siege import Siege, sieges


# Not for the session: other tests count the children of this process.
@pytest.fixture(scope="package")
def _siege() -> Iterator[Siege]:
    # Not the fixture for temporary directories: others cannot enter those, and what holds
    # must not be that.
    place = Path(tempfile.mkdtemp(prefix="toolcell-escape-")).resolve()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ESCAPE_TOKEN", "a secret of the controller")
        patch.setenv("SSH_AUTH_SOCK", str(place / "agent"))
        try:
            yield from sieges(place)
        finally:
            shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def siege(_siege: Siege) -> Siege:
    """The siege; the controllers are started with secrets in their environment."""
    assert "ESCAPE_TOKEN" in os.environ
    return _siege
