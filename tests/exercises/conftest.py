"""Each test has a work/ of its own: nobody's real one is read or written."""
import pytest


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch):
    monkeypatch.setenv("LABKIT_WORK", str(tmp_path / "work"))
    return tmp_path / "work"
