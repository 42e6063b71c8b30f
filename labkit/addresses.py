"""Where in memory the allocations of a graph lie, and from when to when: draw.addresses()."""
from labkit.allocations import read
from labkit.errors import LabError
from labkit.figure import INK, PALETTE, QUIET, WIDTH, Canvas
from labkit.layout import machine
from labkit.strategies import size

FEW, MOST, PANELS = 8, 40, 4             # allocations that get letters, and at most, in one graph; graphs in one picture
GAP, FOOT = 0.16, 0.68                   # inches: between panels, below them
LEAST, TALLEST = 0.27, 3.6               # inches: of a block that can be read, of all together
HALF = 0.36                              # of a place in the order: half of what the bar of one node covers, at most


def addresses(graph):
    """The allocations of a graph, or of {name: graph} side by side, as bars: a Figure.

    Upwards: addresses, from the lowest of each graph; at the same height is the same memory. To the right: the place in the
    order of work, the longest way from the graph's start. A bar begins at a MemAlloc node and ends at the MemFree node of its
    address; without one it is open and says so. Up to 8 allocations are lettered, in the order of work. Raises LabError for what is no graph, more than 4 of them, and more than 40 allocations.
    Stands for: CUDA Runtime API, cudaGraphMemAllocNodeGetParams, cudaGraphMemFreeNodeGetParams.
    """
    if isinstance(graph, (list, tuple)):
        raise LabError(f"draw.addresses() got a {type(graph).__name__} of {len(graph)}.", "Graphs side by side need a name over each.",
                       'Pass one graph, or a dict: draw.addresses({"in turn": graph, "side by side": other}).')
    graphs = graph if isinstance(graph, dict) else {"": graph}
    if not 1 <= len(graphs) <= PANELS or not all(isinstance(name, str) for name in graphs):
        raise LabError(f"draw.addresses() got {len(graphs)} graphs.", f"It draws one graph, or a dict of 1 to {PANELS} with a name for each.",
                       'Pass graph, or {"in turn": graph, "side by side": other}.')
    plans = {name: read(each) for name, each in graphs.items()}
    blocks = [block for plan in plans.values() for block in plan.blocks]
    large = max((len(plan.blocks) for plan in plans.values()), default=0)
    if large > MOST:
        raise LabError(f"draw.addresses() got a graph with {large} allocations.", f"More than {MOST} can't be told apart.", "Draw a smaller graph of the same form.")
    alt = f"{_says(plans)}. " + " ".join(f"{name or 'The graph'}: {', '.join(_told(plan))}" + "".join(
        f"; {letter}{': ' * bool(letter)}{size(b.bytes)} at +{_exact(b.offset)}, from place {b.begin + 1} {'on, not freed' if b.end is None else f'to {b.end + 1}'}" for letter, b in zip(_letters(plan), plan.blocks)) + "."
        for name, plan in plans.items())
    series = [{"name": name, "bytes": b.bytes, "offset": b.offset, "begin": b.begin, "end": b.end} for name, plan in plans.items() for b in plan.blocks]
    height_of, tall, true = _scale(blocks)
    below = f"Upwards: address{'' if true else ', not to scale'}; same height, same memory. To the right: place, the longest chain of nodes up to it." if blocks else ""
    head = 0.68 if "" in plans else 1.02
    with Canvas(head + tall + FOOT) as canvas:
        canvas.title(_says(plans), below)
        ticks = _ticks([block.offset for block in blocks], height_of)
        left = 0.3 + max((canvas.wide(text, 9.5) for text in ticks.values()), default=0)
        wide = (WIDTH - left - 0.15 + GAP) / len(plans) - GAP
        told = [_told(plan) for plan in plans.values()]
        skip = next((skip for skip in (0, 1) if all(canvas.wide(", ".join(parts[skip:]), 8.5) <= wide for parts in told)), 2)
        for k, (name, plan) in enumerate(plans.items()):
            ax = canvas.axes(left + k * (wide + GAP), FOOT, WIDTH - left - k * (wide + GAP) - wide, head)
            ax.set(ylim=(0, tall), yticks=list(ticks))
            ax.set_yticklabels(list(ticks.values()) if k == 0 else [""] * len(ticks))
            _panel(canvas, ax, plan, height_of, wide)
            if name:
                _head(canvas, ax, name, _told(plan)[skip:] or _told(plan)[-1:], wide)
        if blocks:
            canvas.fig.text((left + (WIDTH - left - 0.15) / 2) / WIDTH, 0.3 / canvas.inches[1], "place in the order of work", size=10, ha="center")
        return canvas.done(alt, {"figure": "addresses", "series": series}, [machine()])


# ---- words --------------------------------------------------------------------------------------

def _count(number, word, more="s"):
    return f"{number} {word}{more * (number != 1)}"


def _exact(offset):
    """An offset as people write it, exact enough to tell neighbours apart: 20 MiB, 20.0039 MiB, 512 B."""
    unit, each = next(((unit, each) for unit, each in (("GiB", 2 ** 30), ("MiB", 2 ** 20), ("KiB", 2 ** 10)) if offset >= each), ("B", 1))
    return f"{offset / each:.6g} {unit}" if offset else "0"


def _told(plan):
    """One graph in a few words, in parts; the later ones say what matters."""
    n, sizes = len(plan.blocks), {block.bytes for block in plan.blocks}
    parts = [f"frees {plan.foreign} of another graph"] if plan.foreign else []
    if not n:
        return parts or ["no node allocates memory"]
    if plan.kept:
        parts.insert(0, "not freed" if n == 1 else f"{plan.kept if plan.kept < n else 'none'} {'not ' * (plan.kept < n)}freed")
    if n > 1:
        parts.insert(0, _count(plan.addresses, "address", "es"))
    return [_count(n, "allocation") + (f" of {size(*sizes)}" if len(sizes) == 1 else f", {size(sum(b.bytes for b in plan.blocks))} in all"), *parts]


def _letters(plan):
    """a, b, c for the allocations in the order of work, where there are a few."""
    return "abcdefgh" if 1 < len(plan.blocks) <= FEW else [""] * len(plan.blocks)


def _says(plans):
    """The point of the picture in one line."""
    if len(plans) == 1:
        told = ", ".join(_told(*plans.values()))
        return told[0].upper() + told[1:]
    several = {name: plan for name, plan in plans.items() if len(plan.blocks) > 1}
    if not several:
        n, kept = sum(len(plan.blocks) for plan in plans.values()), sum(plan.kept for plan in plans.values())
        return f"{_count(n, 'allocation')} in {_count(len(plans), 'graph')}" + f", {kept} not freed" * bool(kept)
    again = [name for name, plan in several.items() if plan.again]
    plain = all(plan.addresses in (1, len(plan.blocks)) for plan in several.values())
    if not again:
        return "No address is used twice"
    where = f"{len(again)} of {_count(len(several), 'graph')}: " * (len(several) > 1) + ", ".join(f"“{name}”" for name in again)
    return f"{'One address' if plain else 'Memory used again'} in {where}"


# ---- painting -----------------------------------------------------------------------------------

def _scale(blocks):
    """(inches above the axis of an offset, inches in all, whether they are true to scale): every block is high enough to be read."""
    edges = sorted({0} | {edge for block in blocks for edge in (block.offset, block.top)})
    spans = list(zip(edges, edges[1:]))
    if not spans:
        return {0: 0}, 0.3, True
    least = min(LEAST, TALLEST / max(1, len(spans)))
    tall = min(TALLEST, max(0.9, 0.5 * len(spans)))
    free, whole = tall - least * len(spans), edges[-1] or 1
    each = [(b - a) / whole * tall for a, b in spans]
    true = all(inches >= least - 1e-9 for inches in each)
    if not true:
        each = [least + (b - a) / whole * free for a, b in spans]
    at = {edge: sum(each[:k]) for k, edge in enumerate(edges)}
    return at, tall, true


def _ticks(offsets, height_of):
    """{inches: text} for the addresses; texts that would touch are left out."""
    shown = {}
    for offset in sorted(set(offsets)):
        if not shown or height_of[offset] - max(shown) > 0.17:
            shown[height_of[offset]] = f"{'+' * bool(offset)}{_exact(offset)}"
    return shown


def _head(canvas, ax, name, told, wide):
    """Over a panel: the graph's name, and as much about it as there is room for in all panels."""
    for text, points, weight, ink, up in ((name, 9.5, "bold", INK, 20), (", ".join(told), 8.5, "normal", QUIET, 7)):
        text, points = canvas.fit(text, wide, points, 7, weight)
        ax.annotate(text, (0, 1), xycoords="axes fraction", xytext=(0, up), textcoords="offset points", size=points, weight=weight, color=ink)


def _panel(canvas, ax, plan, height_of, wide):
    """The bars of one graph."""
    from matplotlib.patches import FancyArrowPatch, Polygon
    end = max(plan.places - 1 + 0.6, 2.6)
    for block in (b for b in plan.blocks if b.end is None):       # room for the words in the open ones
        text = 0.28 + max(canvas.wide(words, 7.5, "bold") for words in ("not freed", size(block.bytes)))
        end = max(end, (0.6 * text + wide * (block.begin - HALF)) / max(wide - text, 0.3))
    ax.set(xlim=(-0.6, end), xticks=_places(plan.places), xticklabels=[str(k + 1) for k in _places(plan.places)])
    ax.grid(axis="x", visible=False)
    inch = (end + 0.6) / wide
    half = max(0.2, min(HALF, 0.5 - 0.04 * inch))           # the narrower the places, the more of them is left for arrows
    for letter, block in zip(_letters(plan), plan.blocks):
        low, high = height_of[block.offset] + 0.02, height_of[block.top] - 0.02
        left, right = block.begin - half, end if block.end is None else max(block.end, block.begin) + half
        tip = right - min(0.12 * inch, right - left) if block.end is None else right
        ax.add_patch(Polygon([(left, low), (tip, low), (right, (low + high) / 2), (tip, high), (left, high)], closed=True,
                             facecolor=PALETTE["memory"], linewidth=0, zorder=3))
        _label(canvas, ax, letter, block, (left + tip) / 2, (low + high) / 2, (tip - left) / inch, high - low)
        for earlier in block.after:
            low, high = max(earlier.offset, block.offset), min(earlier.top, block.top)
            between = any(earlier in b.after and b in block.after and b.offset < high and low < b.top for b in plan.blocks)
            if low < high and not between and left - earlier.end - half > 0.03 * inch:
                y = (height_of[low] + height_of[high]) / 2
                ax.add_patch(FancyArrowPatch((earlier.end + half, y), (left, y), arrowstyle="-|>", mutation_scale=8, shrinkA=1, shrinkB=1,
                                             color=QUIET, linewidth=1.1, zorder=2))
    if not plan.blocks:
        ax.axis("off")


def _places(count):
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 1000, count) if count / step <= 9)
    return list(range(0, count, step))


def _label(canvas, ax, letter, block, x, y, wide, tall):
    """Letter and size in the bar, and whether it is not freed, as far as there is room."""
    whole = size(block.bytes)
    shapes = [f"{whole}, not freed", f"{whole}\nnot freed", "not freed"] if block.end is None else [whole]
    if letter:
        shapes = [*(f"{letter}: {shape}" for shape in shapes), *(f"{letter}:\n{shape}" for shape in shapes), *shapes]
    for turned, shapes in (False, shapes), (True, shapes), (False, [letter] * bool(letter)):
        along, across = (tall, wide) if turned else (wide, tall)
        for shape in shapes:
            for points in (9, 8, 7.5, 7):
                lines = shape.split("\n")
                if max(canvas.wide(line, points, "bold") for line in lines) <= along - 0.06 and len(lines) * points * 1.2 / 72 <= across:
                    ax.text(x, y, shape, ha="center", va="center", size=points, weight="bold", color="#FFFFFF", linespacing=1.05, zorder=4, rotation=90 * turned)
                    return
