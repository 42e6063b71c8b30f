"""How a page of the catalogue is shown: plain text in a terminal, a table in a notebook. explain() makes them."""
import re
import textwrap
from dataclasses import dataclass

WIDTH = 100


@dataclass(frozen=True, repr=False)
class Explanation:
    """One page: code (None where CUDA gave none), name, means, causes (of Cause), fix, lessons. where: the line at fault, if known."""
    code: int | None
    name: str
    means: str
    causes: tuple
    fix: str
    lessons: tuple
    where: str = ""

    @property
    def title(self):
        return self.name if not self.code else f"{self.name} ({self.code})"

    @property
    def counted(self):
        """What the number beside a cause counts."""
        return "of its reports silent" if self.code == 0 else "public reports"

    def number(self, cause):
        return f"{cause.silent} of {cause.reports}" if self.code == 0 else str(cause.reports or "")

    def __repr__(self):
        lines = [self.title]
        for word, text in (("At:", self.where), ("What it means:", self.means)):
            lines += _wrapped(word, text) if text else []
        if self.causes:
            lines.append(f"Usual causes: class, {self.counted}, what happened [lesson]")
            wide = max(len(cause.word) for cause in self.causes)
            count = max(len(self.number(cause)) for cause in self.causes)
            lines += [f"  {cause.word:{wide}} {self.number(cause):>{count}}  {cause.text}" + (f" [{cause.lesson}]" if cause.lesson else "")
                      for cause in self.causes]
        lines += _wrapped("What to do:", self.fix)
        if self.lessons:
            lines.append(f"{'Lessons:':15}" + ", ".join(self.lessons))
        return "\n".join(lines)

    def _repr_markdown_(self):
        def plain(text):
            return re.sub(r"([\\`*_{}\[\]<>|$#])", r"\\\1", text)
        parts = [f"**{plain(self.title)}**", *([f"at {plain(self.where)}"] if self.where else []), plain(self.means)]
        if self.causes:
            rows = [f"| {cause.word} | {self.number(cause)} | {plain(cause.text)} | {plain(cause.lesson + cause.section and f'{cause.lesson}, {cause.section}')} |" for cause in self.causes]
            parts.append("\n".join([f"| class | {self.counted} | usual cause | lesson |", "|---|--:|---|---|", *rows]))
        parts.append(f"**What to do:** {plain(self.fix)}")
        if self.lessons:
            parts.append("**Lessons:** " + ", ".join(self.lessons))
        return "\n\n".join(parts)


def _wrapped(word, text):
    return textwrap.wrap(text, WIDTH, initial_indent=f"{word:15}", subsequent_indent=" " * 15)
