"""Ways to do one thing, side by side: draw.strategies()."""
from labkit.errors import LabError
from labkit.figure import GROUND, INK, PALETTE, QUIET, Canvas, notice
from labkit.plotting import GROUNDS, one, places, record, setting, stages_of
from labkit.predict import OrderPrediction, number

NEAR = 0.1                                     # within so much of the reference a way counts as close
ROW, BAR = 0.43, 0.25                          # inches a variant, inches of its bar
_PARTS = {"prepare": PALETTE["update"], "launch": PALETTE["graph"]}
_SPARE = ["#6B6A1F", "#3F3F9E", "#7A4A21", PALETTE["memory"]]
_WHOLE, _WAIT = "all calls", "waiting for the GPU"     # a variant that marks no stages; what is left when the calls are done
_BAND, _GREY = "#F3ECD4", "#D3CFC3"


def parts(m, name):
    """[(stage, microseconds)] of one variant, ending in the wait for the GPU; together its end-to-end time."""
    whole = m.e2e[name].median
    calls = [(stage, stat.median) for stage, stat in stages_of(m, name).items()] or [(_WHOLE, m.cpu[name].median)]
    out, left = [], whole
    for stage, spent in calls:
        out.append((stage, min(spent, left)))
        left -= out[-1][1]
    return [*out, (_WAIT, left)]


def size(count):
    """Bytes as people write them: 640 B, 64 KiB, 2.5 MiB."""
    for unit, each in (("GiB", 2 ** 30), ("MiB", 2 ** 20), ("KiB", 2 ** 10)):
        if count >= each:
            return f"{count / each:.3g} {unit}"
    return f"{count:,.0f} B"


def strategies(m, footprint=None, guess=None, reference=None, about=None):
    """The variants of one measurement as stacked bars, fastest first: a Figure.

    A bar is the median time end to end: the stages that the variant marks with yield, then the wait for the GPU.
    reference: the variant that the others are compared with. about: the one the title names, else the fastest of the others. guess: what predict_order() returned.
    footprint: a Footprint, for a column of device memory. Raises LabError for a bare number and an unknown reference.
    """
    m = one(m, "strategies")
    if guess is not None and not isinstance(guess, OrderPrediction):
        raise LabError(f"draw.strategies() got {guess!r:.40} as a guess.", "It shows what predict_order() returned.",
                       "Write guess=predict_order(question, [names, fastest first], of=[names]).")
    memory = _memory(footprint)
    if m.missing:
        return notice(m.missing, "strategies")
    for name in {reference, about} - {None}:
        m.e2e[name]                            # a LabError that names the variants, where it is none of them
    names = sorted(m.e2e, key=lambda name: m.e2e[name].median)
    stages = list(dict.fromkeys(stage for name in names for stage, _ in parts(m, name)))
    stages.sort(key=lambda stage: [*_PARTS, stage].index(stage) if stage in _PARTS else len(_PARTS) + (stage == _WHOLE) + 2 * (stage == _WAIT))
    where = places([m]) + ([str(footprint.provenance)] if memory else [])
    where = list(dict.fromkeys(where))
    missing = "no recording of the memory for this code" if footprint is not None and footprint.missing else ""
    title, below = _title(m, names, reference, about), setting(m) + f"; {missing}" * bool(missing)
    series = [record(m, name, what) for name in names for what in ("e2e", "cpu", *stages_of(m, name))]
    source = {"figure": "strategies", "experiment": m.experiment, "params": dict(m.params), "order": names, "reference": reference, "series": series,
              "guess": list(guess.order) if guess is not None and guess.order else [], "missing": missing,
              "memory": [{"name": name, "bytes": memory[name], "experiment": footprint.experiment, "params": dict(footprint.params)}
                         for name in names if name in memory]}
    alt = f"{title}. " + " ".join(f"{name}: {number(m.e2e[name].median)} µs end to end ("
                                  + ", ".join(f"{stage} {number(us)}" for stage, us in parts(m, name)) + ")"
                                  + (f", {size(memory[name])} of device memory" if name in memory else "") + "." for name in names)
    with Canvas(1.7 + ROW * len(names) + 0.14 * len(where)) as canvas:
        _paint(canvas, m, names, stages, memory, guess, reference, 0.68 + 0.14 * (len(where) - 1))
        canvas.title(title, canvas.fit(below, canvas.inches[0] - 0.3, 9, 9)[0])
        return canvas.done(alt, source, where)


def _memory(footprint):
    """{variant: bytes} of a Footprint; {} where there is none."""
    from labkit.footprint import Footprint
    if footprint is not None and not isinstance(footprint, Footprint):
        raise LabError(f"draw.strategies() got {footprint!r:.40} as a footprint.", *GROUNDS, "Pass what footprint() returned.")
    return {} if footprint is None or footprint.missing else dict(footprint.device)


def _title(m, names, reference, about):
    chosen = about or next((name for name in names if name != reference), names[0])
    best = f"{chosen}: {m.e2e[chosen]}"
    if reference not in (None, chosen):
        return f"{best}, {m.speedup(chosen, reference):.2f} times {reference}"
    return best if len(names) == 1 else f"{best}; {names[-1]}: {m.e2e[names[-1]]}, {m.speedup(names[-1], names[0]):.1f} times as long"


def _paint(canvas, m, names, stages, memory, guess, reference, foot):
    """The bars on their axes, with what stands left and right of them in inches."""
    from matplotlib.patheffects import withStroke
    width, height = canvas.inches
    ranks = guess.places(m) if guess is not None else {}
    points, lines = 9.5, {name: canvas.wrap(name, 2.05, 9.5, 2, "bold") for name in names}
    if any(part[-1].endswith("…") for part in lines.values()):
        points, lines = 8, {name: canvas.wrap(name, 2.05, 8, 3, "bold") for name in names}
    wide = max(canvas.wide(line, points, "bold") for part in lines.values() for line in part)
    left, right = 0.15 + (0.55 if ranks else 0) + wide + 0.12, 0.15 + (0.95 if memory else 0)
    ax = canvas.axes(left, foot, right, height - foot - ROW * len(names))
    ends = {name: _says(m, name, reference) for name in names}
    room = width - left - right
    text = max(canvas.wide(words, 9, "bold") for words in ends.values()) + 0.15
    most = max(max(stat.high, stat.median) for stat in m.e2e.values())
    ax.set(xlim=(0, most * room / max(room - text, 0.5)), ylim=(len(names) - 0.5, -0.5), yticks=[], xlabel="microseconds, end to end")
    ax.grid(axis="y", visible=False)
    ax.spines["left"].set_visible(False)
    inch = ax.get_xlim()[1] / room
    if reference is not None:
        line = m.e2e[reference].median
        ax.axvspan(line, line * (1 + NEAR), color=_BAND, zorder=0, linewidth=0)
        ax.axvline(line, color=INK, linewidth=1, linestyle=(0, (4, 3)), zorder=2)
        words, small = canvas.fit(f"{reference}, and {NEAR * 100:.0f} % more", room - 0.1, 8.5, 7)
        at = min(line, ax.get_xlim()[1] - canvas.wide(words, small) * inch)      # from the line to the right, as far as there is room
        ax.text(at, -0.6, words, size=small, color=INK, va="bottom")
    for row, name in enumerate(names):
        _bar(canvas, ax, m, name, row, stages, inch)
        stat, y = m.e2e[name], row
        ax.plot([stat.low, stat.high], [y, y], color=INK, linewidth=1.1, zorder=5)
        ax.text(max(stat.median, stat.high) + 0.07 * inch, y, ends[name], va="center", size=9, weight="bold", zorder=6,
                path_effects=[withStroke(linewidth=3, foreground=GROUND)])
        ax.text(-0.12 * inch, y, "\n".join(lines[name]), ha="right", va="center", size=points, linespacing=1.1,
                weight="bold" if name == reference else "normal")
        if ranks and name in guess.of:
            place, hit = ranks.get(name, ("–", False))
            ax.text(-(left - 0.35) * inch, y, str(place), ha="center", va="center", size=9,
                    color=INK if hit else QUIET, weight="bold" if hit else "normal", bbox={"boxstyle": "circle,pad=0.25", "facecolor": "#FFE08A" if hit else "none", "edgecolor": QUIET, "linewidth": 0.8})
        if memory:
            words = size(memory[name]) if name in memory else "–"
            ax.text((room + right - 0.15) * inch, y, words, ha="right", va="center", size=9, color=PALETTE["memory"])
    head = (foot + ROW * len(names) + 0.04) / height
    if ranks:
        canvas.fig.text(0.15 / width, head, "your order", size=7.5, color=QUIET, va="bottom")
    if memory:
        canvas.fig.text(1 - 0.15 / width, head, "device memory", size=7.5, color=PALETTE["memory"], ha="right", va="bottom")
    _legend(canvas, stages, 1 - 0.66 / height)


def _says(m, name, reference):
    ratio = f"  {m.e2e[name].median / m.e2e[reference].median:.2f}×" if reference not in (None, name) else ""
    return f"{m.e2e[name]}{ratio}"


def _look(stage, stages):
    """(face, edge, hatch, ink of a number in it)"""
    if stage == _WAIT:
        return _GREY, _GREY, "", INK
    if stage == _WHOLE:
        return PALETTE["graph"], "#FFFFFF", "////", ""
    spare = [s for s in stages if s not in (*_PARTS, _WHOLE, _WAIT)]
    face = _PARTS.get(stage) or _SPARE[spare.index(stage) % len(_SPARE)]
    return face, face, "", "#FFFFFF"


def _bar(canvas, ax, m, name, row, stages, inch):
    begin = 0.0
    for stage, us in parts(m, name):
        face, edge, hatch, ink = _look(stage, stages)
        ax.barh(row, us, left=begin, height=BAR / ROW * 1.15, facecolor=face, edgecolor=edge, hatch=hatch, linewidth=0, zorder=3)
        if begin:
            ax.plot([begin, begin], [row - BAR / ROW * 0.575, row + BAR / ROW * 0.575], color="#FFFFFF", linewidth=1.2, zorder=3.5)
        if ink and canvas.wide(number(us), 8) + 0.1 < us / inch:
            ax.text(begin + us / 2, row, number(us), ha="center", va="center", size=8, color=ink, zorder=6)
        begin += us


def _legend(canvas, stages, top):
    """The parts of a bar, in the order in which they follow one another."""
    from matplotlib.patches import Rectangle
    (width, height), x = canvas.inches, 0.15
    for stage in stages:
        face, edge, hatch, _ = _look(stage, stages)
        canvas.fig.add_artist(Rectangle((x / width, top - 0.13 / height), 0.24 / width, 0.13 / height, transform=canvas.fig.transFigure,
                                        facecolor=face, edgecolor=edge, hatch=hatch, linewidth=0))
        words = f"{stage}, no stages marked" if stage == _WHOLE else f"next {stage}" if stage == "launch" else stage
        words = canvas.fit(words, 1.9, 9, 8)[0]
        canvas.fig.text((x + 0.3) / width, top - 0.065 / height, words, size=9, va="center")
        x += 0.3 + canvas.wide(words, 9) + 0.25
