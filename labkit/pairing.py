"""Which node of one graph stands for which node of another."""


def pairs(old, new):
    """Pairs (i, j) of positions: node i of `old` and node j of `new` stand for one another, in the order of `new`.

    As cudaGraphExecUpdate pairs them (seen on an H200, driver 580.159): the last nodes in the order of their
    making, and from there backwards what they wait for. Where that does not work out: by position
    in graphs of one size, else in their order, like nodes first.
    """
    count = len(old.kinds)
    if count == len(new.kinds):
        found = _backwards(old.before, new.before)
        return sorted(found or [(i, i) for i in range(count)], key=lambda pair: pair[1])
    return _aligned(old, new)


def _backwards(before, after):
    """Pairs found from the last nodes backwards, or None where the graphs do not have one form."""
    waited_for = [{j for waits in b for j in waits} for b in (before, after)]
    ends = [[i for i in range(len(b)) if i not in known] for b, known in zip((before, after), waited_for)]
    queue, found, taken = list(zip(*ends)), {}, set()
    for i, j in queue:                                  # it grows on the way
        if i in found or j in taken:
            if found.get(i) != j:
                return None
            continue
        if len(before[i]) != len(after[j]):
            return None
        found[i] = j
        taken.add(j)
        queue += zip(before[i], after[j])
    return list(found.items()) if len(found) == len(before) and len(ends[0]) == len(ends[1]) else None


def _aligned(old, new):
    """The pairs in order that have most in common: the same kind, better the same kernel, best the same parameters."""
    first, last = 0, 0
    a, b = list(zip(old.kinds, old.parameters)), list(zip(new.kinds, new.parameters))
    while first < min(len(a), len(b)) and a[first] == b[first]:
        first += 1
    while last < min(len(a), len(b)) - first and a[-1 - last] == b[-1 - last]:
        last += 1
    rest = _best(a[first:len(a) - last], b[first:len(b) - last])
    return ([(k, k) for k in range(first)] + [(first + i, first + j) for i, j in rest]
            + [(len(a) - last + k, len(b) - last + k) for k in range(last)])


def _best(a, b):
    """Longest common subsequence of (kind, parameters), weighed by likeness."""
    if len(a) * len(b) > 1_000_000:                     # too long to compare each with each
        return [(k, k) for k in range(min(len(a), len(b))) if a[k][0] == b[k][0]]
    best = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) - 1, -1, -1):
        for j in range(len(b) - 1, -1, -1):
            same = _likeness(a[i], b[j])
            best[i][j] = max(best[i + 1][j], best[i][j + 1], best[i + 1][j + 1] + same if same else 0)
    found, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        same = _likeness(a[i], b[j])
        if same and best[i][j] == best[i + 1][j + 1] + same:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return found


def _likeness(one, other):
    (kind, parameters), (other_kind, other_parameters) = one, other
    if kind != other_kind:
        return 0
    if parameters == other_parameters:
        return 5
    return 4 if parameters.get("kernel") == other_parameters.get("kernel") else 3


def together(pairs, olds, news):
    """All nodes of both graphs in one order: (i, j), (i, None) for one that is gone, (None, j) for a new one."""
    partner, paired = {j: i for i, j in pairs}, dict(pairs)
    rows, last = [((j, 0, 0), (partner.get(j), j)) for j in range(news)], -1
    for i in range(olds):
        last = paired.get(i, last)
        if i not in paired:                             # after the one that stood before it
            rows.append(((last, 1, i), (i, None)))
    return [row for _, row in sorted(rows, key=lambda entry: entry[0])]
