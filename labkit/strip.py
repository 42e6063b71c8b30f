"""How a film looks: a strip of small pictures on one fixed layout, and a slider over them."""

import textwrap
from types import SimpleNamespace

from labkit import draw
from labkit.figure import INK, QUIET, WIDTH, Canvas
from labkit.film import NO_GRAPH, shorten
from labkit.layout import GHOST, ghosts

MOST, HEAD = 12, 10  # pictures in a strip; of a longer film the first HEAD and the last MOST - HEAD
RED = "#B3261E"
SIZE, LETTER, LEADING = 7.2, 0.0625, 0.14  # of code: points; inches a character and a line
PAD, TOP, FOOT = 0.12, 0.42, 0.34


def wrap(code, wide):
    """`code` on one or two lines: broken at a space, or where there is none nearby, before one of . ( [."""
    if len(code) <= wide:
        return [code]
    cut = code.rfind(" ", 0, wide + 1)
    if cut < wide // 2:
        cut = max([cut, *(code.rfind(mark, 1, wide) for mark in ".([")])
    cut = wide if cut < 1 else cut
    rest = code[cut:].strip()
    return [code[:cut].rstrip(), "  " + (rest if len(rest) <= wide - 2 else rest[:wide - 4] + " …")]


def captions(reel, wide):
    """For each shot: ([grey lines of code that changed nothing], [its own code, wrapped])."""
    out, quiet = [], []
    for frame in reel.told:
        if not frame.changed:
            quiet.append(textwrap.shorten(shorten(frame.code), wide, placeholder=" …"))
            continue
        if len(quiet) > 3:
            quiet = [f"… {len(quiet) - 2} lines", *quiet[-2:]]
        own = wrap(shorten(frame.code), wide)
        out.append((quiet, own))
        quiet = []
    return out


def panel(ax, layout, texts, frame, scale):
    """One picture: the nodes that are not there as ghosts, the graph so far, the new nodes marked."""
    here = {number: k for k, number in enumerate(frame.nodes)}
    edges = {(here[a], here[b]): layout.path[a, b] for a, b in frame.edges}
    part = SimpleNamespace(at=[layout.at[i] for i in here], path=edges, width=layout.width, height=layout.height, size=layout.size)
    draw.paint(ax, part, [texts[i] for i in here], edges, {here[i] for i in frame.new}, min(1, scale * 1.45))
    ghosts(ax, layout, [i for i in range(len(layout.at)) if i not in here])


def paint(shots, told, reel, columns, layout, texts, title):
    """A Figure of `shots` in `columns` columns, all on one layout."""
    cell = (WIDTH - PAD) / columns
    scale = min(draw.SCALE if columns == 1 else 0.55, (cell - 2 * PAD) / (layout.size[0] + 0.2))
    wide, tall = ((side + 0.2) * scale for side in layout.size)
    rows = [list(zip(shots, told))[k:k + columns] for k in range(0, len(shots), columns)]
    heights = [(max(len(quiet) + len(own) for _, (quiet, own) in row) + 1) * LEADING + tall + 3 * PAD for row in rows]
    height = TOP + sum(heights) + FOOT
    with Canvas(height) as canvas:
        fig, top = canvas.fig, height - TOP
        fig.text(PAD / WIDTH, 1 - 0.12 / height, title, size=10.5, weight="bold", va="top")
        for row, room in zip(rows, heights):
            for place, (frame, (quiet, own)) in enumerate(row):
                left = PAD + place * cell
                red = frame.status == "Invalidated" or NO_GRAPH in frame.note or "raised" in frame.note
                _border(fig, (left, top - room + PAD / 2, cell - PAD, room - PAD / 2), height, RED if red else GHOST, 2.2 if red else 0.8)
                y = top - PAD / 2
                for text, ink, weight in [*((q, QUIET, "normal") for q in quiet), *((o, INK, "bold") for o in own)]:
                    fig.text((left + PAD / 2) / WIDTH, y / height, text, size=SIZE, family="monospace", color=ink, weight=weight, va="top", parse_math=False)
                    y -= LEADING
                fig.text((left + PAD / 2) / WIDTH, (top - room + PAD) / height, frame.note or ("" if frame.new else reel.words(frame)),
                         size=8, color=RED if red else QUIET, va="bottom", weight="bold" if red else "normal")
                box = [(left + (cell - PAD - wide) / 2) / WIDTH, (top - room + PAD + LEADING) / height, wide / WIDTH, tall / height]
                panel(fig.add_axes(box), layout, texts, frame, scale)
            top -= room
        if any(quiet for quiet, _ in told):
            fig.text(PAD / WIDTH, 0.1 / height, "grey: lines that added nothing to the graph", size=7.5, color=QUIET, va="bottom")
        words = ". ".join(f"{k}: {shorten(f.code)}: {reel.words(f)}" for k, f in enumerate(reel.shots, 1) if f in shots)
        source = {"figure": "film", "kinds": reel.kinds, "frames": [
            {"line": f.line, "code": f.code, "status": f.status, "nodes": list(f.nodes), "new": list(f.new), "edges": [list(e) for e in f.edges]}
            for f in reel.shots]}
        return canvas.done(f"{title}. {words}.", source, [draw.machine()])


def _border(fig, box, height, ink, width):
    from matplotlib.patches import Rectangle
    x, y, w, h = box
    fig.add_artist(Rectangle((x / WIDTH, y / height), w / WIDTH, h / height, transform=fig.transFigure, facecolor="none",
                             edgecolor=ink, linewidth=width, zorder=0))


def _layout(reel, columns, least):
    """(layout, texts) for a cell of `columns` in a row, folded where it would be smaller than `least`."""
    texts = draw.texts_of(reel.kinds)
    return draw.Layout(texts, sorted(reel.edges), ((WIDTH - PAD) / columns - 2 * PAD) / least - 0.2), texts


def _many(count, word):
    return f"{count} {word}{'s' * (count != 1)}"


def strip(reel):
    """The whole film as one Figure: at most MOST pictures, three to a row, or two where the graph is long."""
    shots, last = reel.shots, reel.shots[-1]
    columns = 3
    layout, texts = _layout(reel, 3, 0.5)
    if max(layout.row, default=0):
        unfolded, _ = _layout(reel, 2, 0.46)
        if not max(unfolded.row):
            columns, layout = 2, unfolded
    told = captions(reel, int(((WIDTH - PAD) / columns - 2 * PAD) / LETTER))
    title = f"The capture in {_many(len(shots), 'step')}: "
    title += f"{_many(len(last.nodes), 'node')}, {_many(len(last.edges), 'edge')}" if last.nodes else "no graph"
    if reel.cut:
        title += "; larger than a film can show, so it stops there"
    if len(shots) > MOST:
        kept = [*range(HEAD), *range(len(shots) - MOST + HEAD, len(shots))]
        title += f"; steps {HEAD + 1} to {len(shots) - MOST + HEAD} left out"
        shots, told = [shots[k] for k in kept], [told[k] for k in kept]
    return paint(shots, told, reel, columns, layout, texts, title)


def slider(reel):
    """A slider over the shots, one large picture each; None where widgets don't run."""
    try:
        import ipywidgets
        from IPython import get_ipython
    except ImportError:
        return None
    if getattr(get_ipython(), "kernel", None) is None:
        return None
    shots, told = reel.shots, captions(reel, int((WIDTH - 3 * PAD) / LETTER))
    layout, texts = _layout(reel, 1, 0.6)
    drawn = {}

    def picture(number):
        if number not in drawn:
            k = number - 1
            drawn[number] = paint(shots[k:k + 1], told[k:k + 1], reel, 1, layout, texts, f"Step {number} of {len(shots)}").png
        return drawn[number]

    image = ipywidgets.Image(value=picture(1), format="png", width=round(WIDTH * 96))
    pick = ipywidgets.IntSlider(value=1, min=1, max=len(shots), description="step")
    pick.observe(lambda change: setattr(image, "value", picture(change["new"])), "value")
    return ipywidgets.VBox([pick, image])
