"""Reading and writing recordings: JSON, one line a trace, sorted, so that a diff shows what changed."""
import datetime
import json
import platform
from importlib import metadata
from pathlib import Path

TRACES = Path(__file__).parent / "traces"


def unrecorded():
    """What waits for a GPU: scenarios, their variants and probes that were written since the last recording, one a line."""
    return [line for line in (Path(__file__).parent / "unrecorded.txt").read_text(encoding="utf-8").splitlines() if line]


def dumps(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def write(path, provenance, entries):
    """Write {key: anything} with where and when it was recorded."""
    lines = [f"{dumps(key)}:{dumps(value)}" for key, value in sorted(entries.items())]
    text = '{"provenance":' + dumps(provenance) + ',\n"recorded":{\n' + ",\n".join(lines) + "\n}}\n"
    Path(path).write_text(text, encoding="utf-8")


def read(path):
    """(provenance, {key: value}) of a recording."""
    found = json.loads(Path(path).read_text(encoding="utf-8"))
    return found["provenance"], found["recorded"]


def write_traces(path, provenance, traces):
    """Write {scenario/case: trace}: a line for the cases of a scenario, a line for each different trace."""
    scenarios = {}
    for key, trace in sorted(traces.items()):
        name, case = key.split("/", 1)
        cases, different = scenarios.setdefault(name, ({}, []))
        if trace not in different:
            different.append(trace)
        cases[case] = different.index(trace)
    lines = [dumps(name) + ":{" + f'"cases":{dumps(cases)},"traces":[\n' + ",\n".join(map(dumps, different)) + "]}"
             for name, (cases, different) in scenarios.items()]
    text = '{"provenance":' + dumps(provenance) + ',\n"recorded":{\n' + ",\n".join(lines) + "\n}}\n"
    Path(path).write_text(text, encoding="utf-8")


def read_traces(path):
    """(provenance, {scenario/case: trace})."""
    where, scenarios = read(path)
    return where, {f"{name}/{case}": one["traces"][number] for name, one in scenarios.items()
                   for case, number in one["cases"].items()}


def provenance(cudart):
    """Where a recording was made: GPU, driver, runtime, bindings, Python, date."""
    properties = cudart.cudaGetDeviceProperties(0)[1]
    return {"gpu": properties.name.decode().strip("\0"), "driver": driver_release(), "driver_api": cudart.cudaDriverGetVersion()[1],
            "runtime": cudart.cudaRuntimeGetVersion()[1], "bindings": metadata.version("cuda-bindings"),
            "python": platform.python_version(), "date": datetime.date.today().isoformat()}


def driver_release():
    """The driver's release, such as 580.159.04, or "unknown"."""
    import subprocess
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                              capture_output=True, text=True, timeout=20)
        return done.stdout.splitlines()[0].strip() or "unknown"
    except (OSError, IndexError, subprocess.SubprocessError):
        return "unknown"
