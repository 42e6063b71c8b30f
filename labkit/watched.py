"""What watch() has seen: the guilty line, work left out, forks nobody joined, frozen values, and the report in words."""
import threading
from collections import Counter
from typing import NamedTuple

from labkit.errors import CATALOGUE


class Guilty:
    """A line and the call on it. file, line, text: the learner's. call: its name, or "". thread: its name. code: what CUDA
    answered, or None where that was not to be seen. inside, destructor: see Place. became: what the capture was afterwards."""

    def __init__(self, place, call, thread, code, became):
        self.place, self.call, self.thread, self.code, self.became = place, call, thread, code, became
        self.file, self.line, self.text, self.inside, self.destructor = place.file, place.line, place.text, place.inside, place.destructor
        self.mine, self.weight = True, 2

    def __repr__(self):
        code = "" if self.code is None else f" -> {self.code.name} ({int(self.code)})"
        return f"{self.place}: {self.text}  [{self.call or 'no call seen'}{code}]"


class LeftOut(NamedTuple):
    """Work that ran at once. stream: "the legacy default stream" or "another stream"."""
    file: str
    line: int
    text: str
    call: str
    stream: str
    thread: str
    place: object


class Frozen(NamedTuple):
    """The numbers that one launch() keeps for every replay, by position among the kernel's arguments."""
    kernel: str
    values: tuple
    file: str
    line: int
    text: str


class Fork(NamedTuple):
    """A stream that was drawn into the capture, and the line that did it."""
    stream: str
    file: str
    line: int
    text: str
    place: object


class Report:
    """The report of a watch, as text."""

    def __init__(self, watch):
        self.watch = watch

    def __str__(self):
        watch = self.watch
        if watch.status is None:
            return "watch: not on yet. Write `with watch(stream) as w:` around the program."
        lines = [*self._guilty(), *self._unjoined(), *self._left_out(), *self._refused()]
        if watch.trouble is not None:
            lines.append(f"watch itself stumbled ({type(watch.trouble).__name__}): this may not be all.")
        if not lines:
            if watch.lost:
                return "watch: the capture was lost, and no line was seen doing it: it was lost before this block, or by a thread that is not followed."
            if watch.ended is not None and int(watch.ended):
                return f"watch: the end of the capture answered {watch.ended.name} ({int(watch.ended)}), and no line was seen that caused it."
            if not watch.captures:
                return "watch: no capture began on this stream."
            return f"watch: {watch.nodes} node{'s' * (watch.nodes != 1)}, nothing to report." + " The capture is still open." * (watch.status == 1)
        if watch.older:
            lines.append(f"Not followed: {', '.join(watch.older)}. Python 3.11 shows only threads that start inside the block; 3.12 shows all.")
        return "watch: " + "\n".join(lines)

    def _meaning(self, code):
        if code is None or not int(code):
            return []
        try:
            from labkit.explain import explain
            means = explain(code).means
        except Exception:  # the catalogue says less, and is always there
            means = CATALOGUE.get(int(code), ("",))[0]
        return [f"  it answered:   {code.name} ({int(code)})", *([f"  which means:   {means}"] if means else [])]

    def _guilty(self):
        one = self.watch.guilty
        if one is None:
            return []
        what = {"Invalidated": "the capture was lost here (Active -> Invalidated)"}.get(one.became, f"the capture failed here: {one.became}")
        if one.code is not None and int(one.code) == 901:
            what = "the capture was lost before this line answered, by a call that was not seen, perhaps in another thread"
        rows = [f"{what}:", f"  {one.place}:   {one.text}"]
        rows.append(f"  the call:      {one.call}" if one.call else "  the call:      none was seen: an operator, an attribute or a destructor did it")
        if one.inside:
            rows.append(f"  inside:        {one.inside}")
        if one.destructor:
            rows.append(f"  it ran in:     {one.destructor}; a destructor runs wherever Python lets go of the object")
        if one.thread and one.thread != threading.main_thread().name:
            rows.append(f"  in the thread: {one.thread}")
        return rows + self._meaning(one.code)

    def _unjoined(self):
        rule = "  the end of the capture answers 904 unless the origin waits for an event recorded on it after its last work"
        yet = " yet (the capture is still open)" * (self.watch.status == 1)
        return [f"not joined{yet}: {f.stream}, forked at {f.place}:   {f.text}\n{rule}" for f in self.watch.unjoined]

    def _left_out(self):
        found = Counter(f"ran at once, on {one.stream}, and is not in the graph: {one.place}:   {one.text}" for one in self.watch.left_out)
        return [f"{text}  ({count} times)" if count > 1 else text for text, count in found.items()]

    def _refused(self):
        return [f"refused with {int(one.code)} {one.code.name}, and the capture went on: {one.place}:   {one.text}"
                for one in self.watch.refused if one is not None]
