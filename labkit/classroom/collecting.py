"""For nbgrader's zip_collect: whose notebook is it? Read from the names that learning platforms give to what they hand out.

    Anna Meier_12345_assignsubmission_file_/05_diamond.ipynb       Moodle: a folder each               Anna Meier
    05_diamond_zara_attempt_2026-01-30-15-00-00_05_diamond.ipynb   Blackboard: with a time             zara
    meieranna_4711_81234_05_diamond-1.ipynb                        Canvas: up to the first line below  meieranna
    zara/05_diamond (1).ipynb                                      a folder each; a browser's copy     zara
"""
import re
from pathlib import Path

from nbgrader.plugins import FileNameCollectorPlugin

_COPY = r"(?:[ _]?\((\d+)\)|-Copy(\d+)|-(\d+))?"           # what browsers, JupyterLab and Canvas add
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)-(\d\d)-(\d\d)-(\d\d)")


def read(path, top, assignment):
    """(student, time or "", number of the copy) of a file below `top`; None where no student is named, or it is another exercise's."""
    def of(stem):
        return re.fullmatch(rf"(.*?)_?{re.escape(assignment)}{_COPY}", stem)

    found = of(path.stem) if path.suffix == ".ipynb" else None
    if not found:
        return None
    folders = [name for name in path.parent.relative_to(top).parts if name != assignment]
    before, attempt, rest = (found[1] or (folders[-1] if folders else "")).partition("_attempt_")
    student = before.rpartition("_")[2] if attempt else before.partition("_")[0]
    time = _TIME.match(rest)
    copy = int(next(filter(None, found.groups()[1:]), 0))
    return (student, time.expand(r"\1 \2:\3:\4") if time else "", copy) if student.strip(".") else None


class Names(FileNameCollectorPlugin):
    """The plugin. A regular expression of your own (c.FileNameCollectorPlugin.named_regexp) goes before."""

    def collect(self, submitted_file):
        if self.named_regexp:
            return super().collect(submitted_file)
        path, assignment = Path(submitted_file), self.parent.coursedir.assignment_id
        top = Path(self.parent._format_collect_path(self.parent.extracted_directory))
        found = read(path, top, assignment)
        if found is None:
            return None
        later = [other.name for other in path.parent.iterdir() if (more := read(other, top, assignment)) and more[:2] == found[:2] and more[2] > found[2]]
        if later:
            self.log.warning("%s handed in %s and %s: the first was left out", found[0], path.name, later[0])
            return None
        return {"student_id": found[0], "file_id": assignment, **({"timestamp": found[1]} if found[1] else {})}
