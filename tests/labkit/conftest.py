"""A fixture for the tests of the pictures."""
import pytest


@pytest.fixture
def drawn(monkeypatch):
    """What reaches the axes: the sheet of every picture made in the test."""
    from labkit.figure import Canvas
    sheets, done = [], Canvas.done

    def spy(self, *args):
        sheets.append(self.fig)
        return done(self, *args)
    monkeypatch.setattr(Canvas, "done", spy)
    return sheets
