"""What the picture of a memory log says: its title, and the values in it. MiB throughout, and smaller units for less than one."""
from labkit.memory_log import MIB, mib, title
from labkit.strategies import size


def amount(level):
    """0, 100 B, 4 KiB, 1,536 MiB: from 1 MiB on the unit of the axis."""
    return f"{mib(level)} MiB" if level >= MIB else size(level) if level else "0"


def value(used, reserved):
    """One level in words: 32 MiB where all that is reserved is used, else 20 of 32 MiB."""
    if used == reserved:
        return amount(used)
    if used > reserved:
        return f"{amount(used)}, reserved {amount(reserved)}"
    few, whole = amount(used), amount(reserved)
    return f"{few.removesuffix(whole[-4:])} of {whole}"


def runs(levels):
    """(begin, end) of the samples in a row that are the same."""
    begins = [k for k in range(len(levels)) if k == 0 or levels[k] != levels[k - 1]]
    return list(zip(begins, [*begins[1:], len(levels)]))


def says(series, labels):
    """What happened, in one line: for one panel with the samples at which it did."""
    for one in series:
        over = [k for k, (used, reserved) in enumerate(zip(one["used"], one["reserved"])) if used > reserved]
        if over:
            return f"More used than reserved in “{title(one['name'])}”: {amount(one['used'][over[-1]])} and {amount(one['reserved'][over[-1]])} at “{labels[over[-1]]}”"
    levels, graph = series[0]["reserved"], series[0]["name"] == "graph"
    top = levels.index(max(levels))
    if len(series) == 1 and len(set(levels)) > 1 and levels == sorted(levels[:top]) + sorted(levels[top:], reverse=True):     # up, and down once
        return ("Graph memory: " if graph else f"Reserved in “{series[0]['name']}”: ") + _story(levels, labels)
    if len(series) == 1 and graph and series[0]["used"] == levels:
        return f"Graph memory {_course(levels)}"
    return "Reserved: " + "; ".join(f"{title(s['name'])} {_course(s['reserved'])}" for s in series)


def _course(levels):
    """The levels in turn, 0 → 64 → 32 MiB, or where there are many the highest."""
    turns = [levels[begin] for begin, _ in runs(levels)]
    if len(turns) == 1:
        return f"stays at {amount(turns[0])}"
    if len(turns) > 7:
        return f"up to {amount(max(turns))}"
    return " → ".join(mib(level) for level in turns) + " MiB"


def _story(levels, labels):
    """When it rose to its highest, how long it stayed, and when it fell to where it is now."""
    most, last, first, fell = max(levels), levels[-1], levels.index(max(levels)), runs(levels)[-1][0]
    if last < most and first < fell - 1 and set(levels[first:fell]) == {most} and set(levels[:first]) <= {0}:       # what came between changed nothing
        return f"{amount(most)} from “{labels[first]}” to “{labels[fell - 1]}”, {amount(last)} only at “{labels[fell]}”"
    rise = next(k for k, level in enumerate(levels) if level)
    told = (f"nothing before “{labels[rise]}”, then {'up to ' * (levels[rise] != most)}{amount(most)}" if levels[0] == 0
            else f"{amount(levels[0])} at “{labels[0]}”" + (f", {amount(most)} at “{labels[first]}”" if most != levels[0] else ""))
    return told if last == most else f"{told}, {amount(last) if last else '0 again'} at “{labels[fell]}”"
