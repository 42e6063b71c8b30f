"""What the tests of the pictures share: made-up measurements, and whether all of a picture can be read."""
import io
import itertools

import numpy as np
from PIL import Image

from labkit.measurement import Figures, Measurement, Stages, Stat
from labkit.recordings import Provenance

NOW = Provenance("Made Up 9000", "1.2.3", "13.3", "13.4.4", "3.11", "2026-03-04", "measured")
THEN = Provenance("Made Up 9000", "1.2.3", "13.0", "nvcc", "C++", "2026-01-02", "recorded")
MISSING = "No recording for this code."

# prepare, launch (CPU), and until the GPU was done, in microseconds
BATCH = {"fixed replay": (0, 2.2, 17.5), "one executable per size": (0.4, 2.2, 18.3), "pad to the largest": (0, 2.2, 18.5),
         "size in device memory": (2, 2.2, 20.6), "cached ExecUpdate": (7.4, 14.1, 42), "node updates": (11.9, 14.1, 51),
         "re-capture + update": (17.9, 14.1, 95), "plain stream": (0, 48.3, 96), "re-instantiate": (40.5, 17.4, 122)}


def stat(us):
    return Stat(us, us * 0.95, us * 1.08, 30)


def measured(rows=BATCH, experiment="dynamic batch", where=NOW, **params):
    """A Measurement of {variant: (prepare, launch, end to end)}; a variant that prepares nothing marks no stages."""
    return Measurement(experiment, params, Figures({k: stat(v[0] + v[1]) for k, v in rows.items()}), Figures({k: stat(v[2]) for k, v in rows.items()}),
                       where, "", Figures({k: Stages(prepare=stat(v[0]), launch=stat(v[1])) if v[0] else Stages() for k, v in rows.items()}))


def missing(**params):
    return Measurement("dynamic batch", params, missing=MISSING)


def long_names(rows=BATCH):
    return {f"a way to do it whose name goes on and on, number {k}": v for k, v in enumerate(rows.values())}


def look(figure):
    """A picture is not blank, has an alt text, and says where its figures come from."""
    image = Image.open(io.BytesIO(figure.png))
    assert image.width > 600 and len(set(np.asarray(image.convert("L")).ravel())) > 20
    assert len(figure.alt) > 20 and figure.source["provenance"] and all(figure.source["provenance"])
    return figure


def texts(sheet):
    """{text: its box in pixels} of all that is written on a sheet; tick labels are Matplotlib's own care."""
    from matplotlib.text import Text
    renderer = sheet.canvas.get_renderer()
    ticks = {id(label) for ax in sheet.axes for label in [*ax.get_xticklabels(), *ax.get_yticklabels()]}
    found = [t for t in sheet.findobj(Text) if t.get_visible() and t.get_text().strip() and id(t) not in ticks]
    return [(t.get_text(), Text.get_window_extent(t, renderer)) for t in found]


def readable(sheet):
    """Every text lies on the sheet, and no two overlap."""
    found = texts(sheet)
    assert found
    for words, box in found:
        assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= sheet.bbox.x1 + 1 and box.y1 <= sheet.bbox.y1 + 1, f"{words!r} is off the sheet"
    for (one, a), (other, b) in itertools.combinations(found, 2):
        wide, tall = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert wide < 2 or tall < 2, f"{one!r} and {other!r} overlap"
