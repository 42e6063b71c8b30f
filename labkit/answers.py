"""A table of what CUDA answered, as a picture: draw.answers()."""
from labkit import recordings
from labkit.backend import backend
from labkit.errors import LabError
from labkit.figure import GROUND, INK, PALETTE, Canvas


def answers(table, title):
    """{row: {column: (code,) or code}} as a table picture: a Figure.

    A cell says "success", or the number and the name of the code. Codes are what cudart returned;
    anything else raises LabError, so that the picture shows answers and nothing made up.
    """
    if not isinstance(table, dict) or not all(isinstance(cells, dict) for cells in table.values()):
        raise LabError(f"draw.answers() got {table!r:.60}.", "A table is {row: {column: code}}, with what each call returned.",
                       'Write for example {"cudaMalloc": {"Global": cudart.cudaMalloc(4)}}.')
    rows, columns = list(table), list(dict.fromkeys(column for cells in table.values() for column in cells))
    if not rows or not columns:
        raise LabError("draw.answers() got an empty table.", "There is nothing to show.", "Pass {row: {column: code}}.")
    left, top, step, height = 2.75, 0.95, 0.46, 1.35 + 0.46 * len(rows)
    with Canvas(height) as canvas:
        width = canvas.inches[0]
        wide = (width - left - 0.15) / len(columns)
        ax = canvas.fig.add_axes([0, 0, 1, 1])
        ax.set(xlim=(0, width), ylim=(height, 0))
        ax.axis("off")
        for k, column in enumerate(columns):
            ax.text(left + (k + 0.5) * wide, top - 0.16, column, ha="center", va="center", weight="bold", size=10, color=INK)
        series = []
        for r, row in enumerate(rows):
            ax.text(left - 0.14, top + (r + 0.5) * step, row, ha="right", va="center", size=9.5, color=INK)
            for k, column in enumerate(columns):
                code = table[row].get(column)
                code = code[0] if isinstance(code, tuple) and code else code
                if not hasattr(code, "name"):
                    raise LabError(f"draw.answers() got {code!r:.40} for {row!r}, {column!r}.", "A cell is the code a call returned.",
                                   "Pass what cudart returned, or its first entry.")
                _cell(ax, left + k * wide, top + r * step, wide, step, code)
                series.append({"row": row, "column": column, "code": code.name})
        ax.text(0.15, 0.3, title, weight="bold", size=11, va="center", color=INK)
        alt = f"{title}. " + " ".join(f"{row}: " + ", ".join(f"{s['column']} {s['code']}" for s in series if s["row"] == row) + "." for row in rows)
        where = str(recordings.here()).replace(" · measured", "") if backend.name == "gpu" else "answered by labkit's capture simulator"
        return canvas.done(alt, {"figure": "answers", "series": series}, [where])


def _cell(ax, x, y, wide, step, code):
    """One cell: blue and "success", or filled in the stream colour with the code's number and name."""
    from matplotlib.patches import FancyBboxPatch
    good = int(code) == 0
    ax.add_patch(FancyBboxPatch((x + 0.04, y + 0.04), wide - 0.08, step - 0.08, boxstyle="round,pad=0,rounding_size=0.06", linewidth=1.2,
                                facecolor=GROUND if good else PALETTE["stream"], edgecolor=PALETTE["graph"] if good else PALETTE["stream"]))
    name = "success" if good else code.name.removeprefix("cudaError").replace("StreamCapture", "")
    ink = PALETTE["graph"] if good else GROUND
    ax.text(x + wide / 2, y + step / 2, name if good else f"{int(code)} {name}", ha="center", va="center", size=9.5, color=ink,
            weight="normal" if good else "bold")
