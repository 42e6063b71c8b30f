"""What the builder, the recorder and the tests agree on about the cells of a notebook.

A cell is the dictionary the notebook format describes. Nothing here imports Jupyter, so the
tests can read a notebook with `json` alone. Not here: running cells (record.py does that).
"""

import copy
import hashlib
import json

CHECKED = "nbval-check-output"  # the text must equal the recorded text
FIGURE = "expects-figure"  # the run must produce a picture
TAGS = (CHECKED, FIGURE)

_WIDGET = "application/vnd.jupyter.widget-view+json"


def tags(cell):
    """The tags of a cell, an empty list where it has none."""
    return list(cell.get("metadata", {}).get("tags", []))


def text(field):
    """A source or output text as one string; the file format also allows a list of lines."""
    return "".join(field) if isinstance(field, list) else (field or "")


def code_cells(notebook):
    """The code cells in order; nbval counts cells the same way, so `Cell 3` is index 3 here."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def digests(notebook):
    """One digest a code cell, over its own source and every earlier code cell's.

    Tags that only say how to check (TAGS) do not count: they change no output. Any other tag
    might, so it does. Text cells do not count. Because it accumulates, no two cells of one
    notebook share a digest, and an edit changes the digest of every later cell.
    """
    so_far, out = hashlib.sha256(), []
    for cell in code_cells(notebook):
        others = sorted(set(tags(cell)) - set(TAGS))
        so_far.update(repr((text(cell["source"]).rstrip(), others)).encode())
        out.append(so_far.hexdigest()[:16])
    return out


def settle(outputs):
    """`outputs` without what differs from run to run for no reason: widget views and their ids.

    A widget needs a live kernel; the picture shown beside it is what a reader keeps. Streams of
    one name are joined, as nbval joins them before it compares.
    """
    kept, streams = [], {}
    for output in outputs:
        output = copy.copy(output)  # keeps the notebook library's own type
        output.pop("transient", None)
        if _WIDGET in output.get("data", {}):
            continue
        if output["output_type"] == "stream":
            name = output["name"]
            if name in streams:
                streams[name]["text"] = text(streams[name]["text"]) + text(output["text"])
                continue
            streams[name] = output
        kept.append(output)
    return kept


def recorded(cell):
    """Where and when the cell's outputs were recorded ("NVIDIA H200, driver ..."), or None.

    None too where the outputs are not, to the letter, those that were recorded: nothing recorded is edited by hand.
    """
    mark = cell.get("metadata", {}).get("labkit", {})
    if cell.get("execution_count") is None or "recorded" not in mark:
        return None
    return mark["recorded"] if mark.get("outputs") == seal(cell["outputs"], mark["recorded"]) else None


def seal(outputs, where):
    """A digest of settled outputs and of where they were recorded."""
    def plain(output):
        data = {kind: value if kind.endswith("+json") else text(value) for kind, value in output.get("data", {}).items()}
        return [output["output_type"], text(output.get("text")), data, output.get("name"), output.get("ename")]
    whole = json.dumps([where, *map(plain, outputs)], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def printed(outputs):
    """The text a cell printed or returned, without pictures: what a checked cell is held to."""
    parts = []
    for output in outputs:
        if output["output_type"] == "stream" and output["name"] == "stdout":
            parts.append(text(output["text"]))
        elif output["output_type"] == "execute_result" and "image/png" not in output["data"]:
            parts.append(text(output["data"].get("text/plain", "")))
    return "".join(parts).rstrip("\n")
