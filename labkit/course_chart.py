"""The course as a picture: lessons in their order, and under each the parts of its exercises, filled where solved."""
import textwrap

from labkit.course import LESSONS
from labkit.figure import GROUND, INK, PALETTE, QUIET, WIDTH, Canvas

ACROSS, HIGH, PITCH = 4, 0.86, 0.17     # lessons in a row; inches of a row; from one part to the next

CASES = ("18", "19")                    # lessons whose exercises are the detective cases in them


def course(done):
    """done: [(Lab, [solved or not, of each part])]. A Figure."""
    rows = -(-len(LESSONS) // ACROSS)
    height = 0.62 + rows * (HIGH + 0.1) + 0.2
    parts = [solved for _, each in done for solved in each]
    exercises = sum(all(each) for _, each in done)
    title = f"{exercises} of {len(done)} exercises done, {sum(parts)} of {len(parts)} parts"
    following = next((lab for lab, each in done if not all(each)), None)
    below = f"next: {following.number} {following.title} (lesson {following.lesson}, about {following.minutes} minutes)" if following else "all done"
    wide = (WIDTH - 0.3 - 0.1 * (ACROSS - 1)) / ACROSS
    with Canvas(height) as canvas:
        canvas.title(title, below)
        ax = canvas.fig.add_axes([0, 0, 1, 1])
        ax.set_xlim(0, WIDTH)
        ax.set_ylim(0, height)
        ax.axis("off")
        for k, (number, name) in enumerate(LESSONS):
            left, top = 0.15 + k % ACROSS * (wide + 0.1), height - 0.62 - k // ACROSS * (HIGH + 0.1)
            own = [(lab, each) for lab, each in done if lab.lesson[:2] == number]
            complete = bool(own) and all(all(each) for _, each in own)
            _box(ax, left, top, wide, complete)
            ax.text(left + 0.08, top - 0.08, number, size=8, color=QUIET, va="top", weight="bold")
            ax.text(left + 0.32, top - 0.08, "\n".join(textwrap.wrap(name, 22)[:2]), size=8, color=INK, va="top", linespacing=1.15)
            if number in CASES:
                ax.text(left + 0.1, top - HIGH + 0.2, "eight cases in the lesson", size=7.5, color=QUIET, va="center")
            x, gap = left + 0.1, min(0.14, (wide - 0.25 - sum(_wide(each) for _, each in own)) / max(1, len(own) - 1))
            for lab, each in own:
                _exercise(ax, x, top - HIGH + 0.2, lab, each, lab is following)
                x += _wide(each) + gap
        listed = "; ".join(f"{lab.number} {lab.title} {sum(each)} of {len(each)}" for lab, each in done)
        source = {"figure": "progress", "done": {lab.slug: each for lab, each in done}}
        return canvas.done(f"The course. {title}; {below}. {listed}.", source, ["your own progress, kept in work/"])


def _wide(each):
    """Inches that an exercise takes."""
    return max(len(each) * PITCH, 0.2)


def _box(ax, left, top, wide, complete):
    from matplotlib.patches import FancyBboxPatch
    ax.add_patch(FancyBboxPatch((left, top - HIGH), wide, HIGH, boxstyle="round,pad=0,rounding_size=0.07", linewidth=1.8 if complete else 0.8,
                                edgecolor=PALETTE["update"] if complete else "#C9C4B6", facecolor="#DDEFE6" if complete else GROUND))


def _exercise(ax, x, y, lab, each, following):
    """Number above, one mark a part below."""
    ax.text(x, y + 0.22, lab.number, size=8, color=PALETTE["graph"] if following else QUIET, weight="bold" if following else "normal", va="center")
    for k, solved in enumerate(each):
        ax.plot([x + 0.06 + k * PITCH], [y], marker="s", markersize=8, markeredgecolor=PALETTE["update"], markeredgewidth=1.2,
                markerfacecolor=PALETTE["update"] if solved else GROUND)
        if solved:
            ax.text(x + 0.06 + k * PITCH, y - 0.008, "✓", size=7, color="white", ha="center", va="center")
