"""The table of library_calls() as a picture: Calls.figure()."""
from labkit.figure import GROUND, INK, PALETTE, QUIET, Canvas, notice

ROW, HEAD, MODE, ANSWER = 0.34, 0.62, 0.85, 2.75     # inches: a row, above the rows, the columns of the mode and the answer
# verdict: (filled, colour, what became of the capture). Colour is never alone: the answer and the mark are text.
LOOKS = {"fine": (False, "graph", "✓"), "lives": (False, "update", "refused, goes on"), "lost": (True, "stream", "capture lost"),
         "silent": (True, "memory", "no error, wrong"), "later": (False, "stream", "refused later"), "not run": (False, None, "did not run")}


def chart(calls, title):
    """One row a program: what it does, the capture's mode, what it answered, what became of the capture: a Figure."""
    if not calls.rows:
        return notice(calls.missing or "Nothing is recorded.", "library calls")
    libraries = list(dict.fromkeys(row.program.library for row in calls.rows))
    many, height = len(libraries) > 1, HEAD + ROW * len(calls.rows) + 0.26 + 0.14 * len(calls.places)
    with Canvas(height) as canvas:
        width = canvas.inches[0]
        ax = canvas.fig.add_axes([0, 0, 1, 1])
        ax.set(xlim=(0, width), ylim=(height, 0))
        ax.axis("off")
        canvas.title(title)
        edge = width - ANSWER - 0.1
        for x, words in ((0.15, "inside the capture"), (edge - MODE, "mode"), (edge + 0.04, "what came back")):
            ax.text(x, HEAD - 0.14, words, size=8.5, color=QUIET, va="center")
        for k, row in enumerate(calls.rows):
            y = HEAD + ROW * (k + 0.5)
            name = f"{'CuPy' if row.program.library == 'cupy' else 'PyTorch'}: " * many
            words, size = canvas.fit(name + row.program.title, edge - MODE - 0.25, 9.5, 7.5)
            ax.text(0.15, y, words, size=size, color=INK, va="center")
            ax.text(edge - MODE, y, row.mode, size=8.5, color=QUIET, va="center")
            _cell(canvas, ax, edge, y, row)
        rows = [{"library": r.program.library, "title": r.program.title, "mode": r.mode, "answer": r.answer, "verdict": r.verdict} for r in calls.rows]
        alt = f"{title}. " + " ".join(f"{s['library']}, {s['title']} ({s['mode']}): {s['answer']}, {LOOKS[s['verdict']][2].replace('✓', 'fine')}." for s in rows)
        return canvas.done(alt, {"figure": "library calls", "rows": rows, "missing": calls.missing}, calls.places)


def _cell(canvas, ax, x, y, row):
    """The answer on the left of a box, what became of the capture on its right."""
    from matplotlib.patches import FancyBboxPatch
    filled, name, mark = LOOKS[row.verdict]
    ink = PALETTE.get(name, QUIET)
    ax.add_patch(FancyBboxPatch((x, y - ROW / 2 + 0.04), ANSWER, ROW - 0.08, boxstyle="round,pad=0,rounding_size=0.05", linewidth=1.2,
                                facecolor=ink if filled else GROUND, edgecolor=ink))
    ink, answer = GROUND if filled else ink, row.answer.replace("StreamCapture", "").replace("CUBLAS_STATUS_", "cuBLAS ")
    mark = "" if row.verdict in ("silent", "not run") else mark
    room = ANSWER - 0.2 - (canvas.wide(mark, 8.5) + 0.1 if mark else 0)
    words, size = canvas.fit(answer, room, 9, 7, "bold" if filled else "normal")
    ax.text(x + 0.1, y, words, size=size, color=ink, va="center", weight="bold" if filled else "normal")
    ax.text(x + ANSWER - 0.1, y, mark, size=8.5, color=ink, va="center", ha="right")
