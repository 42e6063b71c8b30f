"""A table of what CUDA answered, as a picture: draw.answers()."""
import re

from labkit import recordings
from labkit.backend import backend
from labkit.errors import LabError
from labkit.figure import GROUND, INK, PALETTE, QUIET, Canvas

NARROW = 0.9      # inches: a cell below this holds the number alone, and the names stand below the table
GAP = 0.16        # inches between two groups of columns


def answers(table, title):
    """{row: {column: (code,) or code}} as a table picture: a Figure.

    A cell says "success", or the number and the name of the code. A column may be a pair (group, name): columns of
    one group stand together below its heading. Where there are many columns, a cell says "ok" or the number, and the
    names stand below the table. Codes are what cudart returned; anything else raises LabError, so that the picture
    shows answers and nothing made up.
    """
    if not isinstance(table, dict) or not all(isinstance(cells, dict) for cells in table.values()):
        raise LabError(f"draw.answers() got {table!r:.60}.", "A table is {row: {column: code}}, with what each call returned.",
                       'Write for example {"cudaMalloc": {"Global": cudart.cudaMalloc(4)}}.')
    rows, columns = list(table), list(dict.fromkeys(column for cells in table.values() for column in cells))
    if not rows or not columns:
        raise LabError("draw.answers() got an empty table.", "There is nothing to show.", "Pass {row: {column: code}}.")
    codes = {(row, column): _code(table[row].get(column), row, column) for row in rows for column in columns}
    groups = list(dict.fromkeys(map(_group, columns)))
    columns.sort(key=lambda column: groups.index(_group(column)))
    with Canvas(1) as canvas:
        width = canvas.inches[0]
        left, gaps = 2.75, GAP * (len(groups) - 1)
        short = (width - left - 0.15 - gaps) / len(columns) < NARROW
        if short or len(columns) > 3:
            left = min(left, max(canvas.wide(line, 9.5) for row in rows for line in row.split("\n")) + 0.3)
        wide = (width - left - 0.15 - gaps) / len(columns)
        top, step = 0.95 + 0.36 * (groups != [None]), 0.34 if short or len(rows) > 10 else 0.46
        height = top + step * len(rows) + (0.56 if short else 0.4)
        canvas.inches = (width, height)
        canvas.fig.set_size_inches(width, height)
        ax = canvas.fig.add_axes([0, 0, 1, 1])
        ax.set(xlim=(0, width), ylim=(height, 0))
        ax.axis("off")
        at = {column: left + k * wide + GAP * groups.index(_group(column)) for k, column in enumerate(columns)}
        _headings(canvas, ax, at, wide, top)
        for r, row in enumerate(rows):
            ax.text(left - 0.14, top + (r + 0.5) * step, row, ha="right", va="center", size=9.5, color=INK)
            for column in columns:
                _cell(canvas, ax, at[column], top + r * step, wide, step, codes[row, column], short)
        ax.text(0.15, 0.3, title, weight="bold", size=11, va="center", color=INK)
        names = [f"{number} {name}" for number, name in sorted({(int(code), code.name.removeprefix("cudaError")) for code in codes.values() if int(code)})] if short else []
        ax.text(left, height - 0.4, "   ".join(names), size=8, va="center", color=QUIET)
        said = {key: (str(int(code)) if int(code) else "ok") if short else code.name for key, code in codes.items()}
        alt = f"{title}. " + " ".join(f"{row}: {_row(said, row, columns)}." for row in rows) + " ".join(["", *names])
        series = [{"row": row, "column": _flat(column), "code": code.name} for (row, column), code in codes.items()]
        where = str(recordings.here()).replace(" · measured", "") if backend.name == "gpu" else "answered by labkit's capture simulator"
        return canvas.done(alt, {"figure": "answers", "series": series}, [where])


def _code(answer, row, column):
    """The code of one cell: what a call returned, or its first entry."""
    code = answer[0] if isinstance(answer, tuple) and answer else answer
    if not hasattr(code, "name"):
        raise LabError(f"draw.answers() got {code!r:.40} for {row!r}, {column!r}.", "A cell is the code a call returned.",
                       "Pass what cudart returned, or its first entry.")
    return code


def _group(column):
    return column[0] if isinstance(column, tuple) else None


def _flat(column):
    return ", ".join(column) if isinstance(column, tuple) else column


def _row(said, row, columns):
    """One row in words; the name of a group stands once, before its columns."""
    parts = []
    for group in dict.fromkeys(map(_group, columns)):
        cells = [f"{column[1] if group else column} {said[row, column]}" for column in columns if _group(column) == group]
        parts.append((f"{group}: " if group else "") + ", ".join(cells))
    return "; ".join(parts)


def _headings(canvas, ax, at, wide, top):
    """The columns' names, and above them the groups', each with a line over its columns."""
    names = {column: column[1] if isinstance(column, tuple) else column for column in at}
    if any(canvas.wide(name, 10, "bold") > wide - 0.06 for name in names.values()):
        names = {column: re.sub(r"(?<=[a-z])(?=[A-Z])", "\n", name, count=1) for column, name in names.items()}        # ThreadLocal, in two lines
    size = min(canvas.fit(line, wide - 0.06, 10, 7, "bold")[1] for name in names.values() for line in name.split("\n"))
    for column, x in at.items():
        lines = "\n" in names[column]
        ax.text(x + wide / 2, top - (0.16 if lines else 0.11), names[column], ha="center", va="center" if lines else "baseline", weight="bold", size=size, color=INK, linespacing=1.05)
    for group in dict.fromkeys(map(_group, at)):
        xs = [x for column, x in at.items() if _group(column) == group]
        if group is not None:
            text, fits = canvas.fit(group, xs[-1] + wide - xs[0], 10, 7)
            ax.text((xs[0] + xs[-1] + wide) / 2, top - 0.51, text, ha="center", va="baseline", size=fits, color=INK)
            ax.plot([xs[0] + 0.05, xs[-1] + wide - 0.05], [top - 0.43] * 2, color=QUIET, linewidth=0.8)


def _cell(canvas, ax, x, y, wide, step, code, short=False):
    """One cell: blue and "success", or filled in the stream colour with the code's number and name."""
    from matplotlib.patches import FancyBboxPatch
    good = int(code) == 0
    ax.add_patch(FancyBboxPatch((x + 0.04, y + 0.04), wide - 0.08, step - 0.08, boxstyle="round,pad=0,rounding_size=0.06", linewidth=1.2,
                                facecolor=GROUND if good else PALETTE["stream"], edgecolor=PALETTE["graph"] if good else PALETTE["stream"]))
    name = "" if short else f" {code.name.removeprefix('cudaError').replace('StreamCapture', '')}"
    words = ("ok" if short else "success") if good else f"{int(code)}{name}"
    words, size = canvas.fit(words, wide - 0.14, 9.5, 7, "normal" if good else "bold")
    ax.text(x + wide / 2, y + step / 2, words, ha="center", va="center", size=size, color=PALETTE["graph"] if good else GROUND,
            weight="normal" if good else "bold")
