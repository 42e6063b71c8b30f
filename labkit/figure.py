"""One look for every picture, and what a picture carries besides its pixels.

A Figure shows itself in a notebook as a PNG with an alt text. The same output holds, as
application/vnd.labkit+json, the series that were plotted and where they come from: the tests read
it, and so can you (`figure.source`).
"""
import base64
import io
import textwrap
from pathlib import Path

INK, QUIET, GROUND = "#22211E", "#5E5B52", "#FBFAF6"
# One fixed colour each, apart from one another for colour-blind eyes, dark enough for text on GROUND.
PALETTE = {"stream": "#B8480B", "graph": "#0F62A8", "update": "#0E7C5A", "memory": "#8C316E"}
_SPARE = ["#6B6A1F", "#3F3F9E", "#7A4A21"]
WIDTH = 7.6      # inches: the width of a notebook
STYLE = Path(__file__).parent / "labkit.mplstyle"


def colour(name, place=0):
    """The fixed colour of a variant: by its name, or by the first of the fixed words in it."""
    for word, value in PALETTE.items():
        if word in name.lower():
            return value
    return _SPARE[place % len(_SPARE)]


class Figure:
    """A finished picture: .png (bytes), .alt (text), .source (what was plotted), .show(), .save(path)."""

    def __init__(self, png, size, alt, source):
        self.png, self.size, self.alt, self.source = png, size, alt, source

    def _repr_mimebundle_(self, include=None, exclude=None):
        # nbconvert puts the alt text on the image; JupyterLab 4 has no place for it and keeps the text/plain.
        data = {"image/png": base64.b64encode(self.png).decode(), "text/plain": self.alt, "application/vnd.labkit+json": self.source}
        return data, {"image/png": {"alt": self.alt, "width": self.size[0], "height": self.size[1]}}

    def __repr__(self):
        return self.alt

    def show(self):
        """Show the picture now, for a cell that goes on after it."""
        from IPython.display import display
        display(self)

    def save(self, path):
        Path(path).write_bytes(self.png)


class Canvas:
    """`with Canvas(height) as canvas:` draw on canvas.fig in labkit's style, then canvas.done(...).

    The learner's own Matplotlib settings neither change the picture nor are changed by it.
    """

    def __init__(self, height, width=WIDTH):
        self.inches = (width, height)

    def __enter__(self):
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Sheet
        self._context = matplotlib.rc_context(fname=STYLE)
        self._context.__enter__()
        self.fig = Sheet(figsize=self.inches)
        FigureCanvasAgg(self.fig)
        return self

    def __exit__(self, *error):
        return self._context.__exit__(*error)

    def axes(self, left, bottom, right, top):
        """Axes with these margins, in inches."""
        width, height = self.inches
        return self.fig.add_axes([left / width, bottom / height, (width - left - right) / width, (height - bottom - top) / height])

    def wide(self, text, size, weight="normal"):
        """How wide a line of text is, in inches."""
        from matplotlib.font_manager import FontProperties
        pixels = self.fig.canvas.get_renderer().get_text_width_height_descent(text, FontProperties(size=size, weight=weight), False)[0]
        return pixels / self.fig.dpi

    def fit(self, text, inches, size, least, weight="normal"):
        """(text, size) that fit into `inches`: smaller down to `least` points, and then cut."""
        while size > least and self.wide(text, size, weight) > inches:
            size -= 0.5
        whole = text
        while len(text) > 1 and self.wide(text, size, weight) > inches:
            text = whole = whole[:-1]
            text = text.rstrip() + "…"
        return text, size

    def wrap(self, text, inches, size, most, weight="normal"):
        """`text` as at most `most` lines, none wider than `inches`; what has no room ends in "…"."""
        lines, full = [""], [" ".join(part.split()) for part in str(text).split("\n")]
        for part in full:
            for word in part.split(" "):
                longer = f"{lines[-1]} {word}".strip()
                if lines[-1] and self.wide(longer, size, weight) > inches:
                    lines.append(word)
                else:
                    lines[-1] = longer
            lines.append("")
        lines.pop()
        if len(lines) > most:
            lines = [*lines[:most - 1], " ".join(lines[most - 1:])]
        return [self.fit(line, inches, size, size, weight)[0] for line in lines]

    def title(self, text, below=""):
        """What the picture says, in one line, and a smaller line below it."""
        text, size = self.fit(text, self.inches[0] - 0.3, 11, 8.5, "bold")
        self.fig.text(0.15 / self.inches[0], 1 - 0.12 / self.inches[1], text, size=size, weight="bold", va="top")
        self.fig.text(0.15 / self.inches[0], 1 - 0.34 / self.inches[1], below, size=9, va="top", linespacing=1.3)

    def done(self, alt, source, provenance):
        """The Figure, with `provenance` (lines of text) in the corner."""
        lines = list(dict.fromkeys(provenance))
        alt = " ".join(alt.split())
        self.fig.text(1 - 0.08 / self.inches[0], 0.06 / self.inches[1], "\n".join(lines), ha="right", va="bottom",
                      size=7.5, color=QUIET, linespacing=1.3)
        out = io.BytesIO()
        self.fig.savefig(out, format="png", metadata={"Software": None, "Description": alt})
        size = [round(side * 96) for side in self.inches]
        return Figure(out.getvalue(), size, alt, {**source, "provenance": lines, "alt": alt})


def notice(text, figure, provenance=("nothing was measured here",)):
    """A picture that says why there is nothing to plot."""
    with Canvas(2.1) as canvas:
        canvas.fig.text(0.5, 0.57, textwrap.fill(" ".join(text.split()), 74), ha="center", va="center", size=11, linespacing=1.6)
        return canvas.done(text, {"figure": figure, "series": [], "missing": text}, provenance)
