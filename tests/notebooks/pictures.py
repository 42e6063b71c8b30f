"""What a picture in a notebook must be: decodable, not blank, described, and of known origin."""

import base64
import io
import json
import math
import re

from labkit import cells
from labkit.recordings import DATA

PLOTTED = "application/vnd.labkit+json"  # draw's plotted series and where they come from
SMALLEST = (300, 100)  # pixels
BARE = re.compile(r"<Figure size|<.* at 0x|<IPython|Figure\(\d")


def pictures(outputs):
    """The data of every output that holds a PNG."""
    shown = [o for o in outputs if o["output_type"] in ("display_data", "execute_result")]
    return [o["data"] for o in shown if "image/png" in o["data"]]


def look(png):
    """What is wrong with PNG bytes (base64 text), as sentences."""
    from PIL import Image
    try:
        image = Image.open(io.BytesIO(base64.b64decode(png, validate=False)))
        image.load()
    except Exception as error:
        yield f"a picture that does not decode: {error}"
        return
    width, height = image.size
    if width < SMALLEST[0] or height < SMALLEST[1]:
        yield f"a picture of {width} x {height} pixels, too small to read"
    if image.mode in ("RGBA", "LA", "P"):
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    colours = image.convert("L").histogram()
    if max(colours) > 0.998 * width * height:
        yield "a blank picture"


def entries(kind, experiment, data=DATA):
    """What was recorded for an experiment; kind: "measurements", "timelines" or "footprints"."""
    found = [json.loads(p.read_text(encoding="utf-8")) for p in sorted((data / kind).glob("*.json"))]
    return [entry for file in found if file["experiment"] == experiment for entry in file["entries"]]


def _same(plotted, recorded):
    return len(plotted) == len(recorded) and all(map(math.isclose, plotted, recorded))


def _times(entry, name, what):
    """(median, low, high) of a series in a measurement entry: of one variant or one of its stages, or of the ratio "slow/fast"."""
    stages = {name: {stage.pop("stage"): stage for stage in map(dict, found)} for name, found in entry.get("stages", {}).items()}
    stats = entry[what] if what in ("cpu", "e2e") else {name: found[what] for name, found in stages.items() if what in found}
    if name in stats:
        return [stats[name][key] for key in ("median", "low", "high")]
    slow, _, fast = name.rpartition("/")
    if slow not in stats or fast not in stats:
        return []
    return [stats[slow][a] / stats[fast][b] for a, b in (("median", "median"), ("low", "high"), ("high", "low"))]


def unbacked(source, data=DATA):
    """Which plotted numbers of a recorded figure are not in the recordings, as sentences."""
    kind = "timelines" if source["figure"] == "timeline" else "measurements"
    known = entries(kind, source.get("experiment"), data)
    if not source["series"]:
        yield f"a {source['figure']} without a series"
    for series in source["series"]:
        name = series["name"]
        if "params" in series:                              # one figure of one measurement, which it names itself
            numbers = [series[key] for key in ("y", "low", "high")]
            same = [e for e in entries(kind, series["experiment"], data) if e["params"] == series["params"]]
            if not any(_same(numbers, _times(e, name, series["what"])) for e in same):
                yield f"{name}, {series['what']}, shows {numbers}, which no recording of {series['experiment']!r} holds"
            continue
        if kind == "timelines":
            points = {"its kernels": [*series["starts"], *series["ends"]]}
            found = {"its kernels": [[*e["starts"][name], *e["ends"][name]] for e in known if name in e["starts"]]}
        else:
            points = {x: triple for x, *triple in zip(*(series[k] for k in ("x", "y", "low", "high")))}
            found = {x: [_times(e, name, series["what"]) for e in known if e["params"].get(source["x"]) == x] for x in points}
        for x, numbers in points.items():
            if not any(_same(numbers, recorded) for recorded in found[x]):
                yield f"{name} at {x} plots {numbers[:3]}, which no recording of {source.get('experiment')!r} holds"
    for size in source.get("memory", []):
        kept = [e["device"].get(size["name"]) for e in entries("footprints", size["experiment"], data) if e["params"] == size["params"]]
        if size["bytes"] not in kept:
            yield f"{size['name']} shows {size['bytes']} bytes, which no footprint of {size['experiment']!r} holds"


def _recorded(provenance):
    """Every figure of this picture was recorded; a line of what was read or found here may stand beside them."""
    ends = {line.rpartition(" ")[2] for line in provenance}
    return "recorded" in ends and "measured" not in ends


def origin(source, recorded):
    """What is wrong with where a picture's content comes from; `recorded`: its cell has a recording."""
    provenance = source.get("provenance") or []
    if not all(isinstance(line, str) and line.strip() for line in provenance) or not provenance:
        yield "a picture that does not say where it comes from"
    elif source.get("missing") and recorded:
        yield f"a picture without its figures: {source['missing']}"
    elif "series" in source and not source.get("missing") and _recorded(provenance):
        yield from unbacked(source)


def problems(outputs, recorded=True):
    """What is wrong with the pictures among a cell's outputs; a cell without one is wrong."""
    shown = pictures(outputs)
    if not shown:
        yield "expects a figure, and this run made none"
    for data in shown:
        yield from look(cells.text(data["image/png"]))
        alt = cells.text(data.get("text/plain", ""))
        if len(alt) < 20 or BARE.search(alt):
            yield f"a picture whose alt text says nothing: {alt[:60]!r}"
        if PLOTTED not in data:
            yield "a picture without its data: draw it with labkit.draw or labkit.film"
        else:
            yield from origin(data[PLOTTED], recorded)
