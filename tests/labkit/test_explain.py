"""explain(): every code that anything recorded ever returned has its page, and each cause on a page was seen to give that code."""
import json
import re
from types import SimpleNamespace

import pytest

from labkit import LabError, cudart, exec_update, explain, ok, watch
from labkit.catalogue import CATALOGUE, CRASH, DRIVER_NAMES, PAGES, REPORTS, SILENT, SPOKEN
from labkit.cases.reports import REPORTS as CASES
from labkit.errors import Undefined
from tests.conformance.store import TRACES, read, read_traces
from tests.kit.helpers import ROOT

ERRORS = cudart.cudaError_t
CODES = {name: int(code) for name, code in ERRORS.__members__.items()}
NAMES = {code: name for name, code in CODES.items()}
LESSONS = {path.name[:2]: path.read_text(encoding="utf-8") for path in (ROOT / "authoring/lessons").glob("*.py")}


def scenarios():
    """{scenario: codes in its traces}, of both lines."""
    found = {}
    for path in sorted(TRACES.glob("traces_*.json")):
        for key, trace in read_traces(path)[1].items():
            found.setdefault(key.split("/")[0], set()).update(named(trace))
    return found


def probes():
    """{what was called in a capture: its codes, and those of the end}, of both lines."""
    found = {}
    for path in sorted(TRACES.glob("in_capture_*.json")):
        for key, rows in read(path)[1].items():
            found.setdefault(key, set()).update(named(rows[0]))
    return found


def programs():
    """The codes of the random programs: each step answers a code, or a list that begins with one (a launch may be two)."""
    found = set()
    for path in sorted(TRACES.glob("random_*.json")):
        for text, answers in read(path)[1].values():
            steps = text.split("; ")
            for step, answer in zip(steps, answers):
                row = answer if isinstance(answer, list) else [answer]
                row = row if step.split()[0] in ("launch", "follow") else row[:1]
                found |= {code for code in row if isinstance(code, int) and code and step.split()[0] != "info"}
    return found


def lessons():
    """The codes in the outputs of the lessons' checked cells."""
    found = set()
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if "nbval-check-output" in cell["metadata"].get("tags", []):
                found |= {CODES[name] for name in re.findall(r"cudaError\w+", json.dumps(cell["outputs"])) if name in CODES}
    return found


def named(trace):
    """The codes whose names stand somewhere in a recorded answer."""
    if isinstance(trace, str):
        return {CODES[trace]} if CODES.get(trace) else set()
    return set().union(*map(named, trace)) if isinstance(trace, list) else set()


def spoken():
    """The pages for what libraries say by themselves."""
    return [page for _, page in SPOKEN.values() if page]


# ---- the catalogue ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("source, at_least", [(scenarios, 24), (probes, 11), (programs, 9), (lessons, 9)])
def test_every_code_that_anything_ever_returned_has_causes_a_fix_and_a_lesson(source, at_least):
    found = source()
    codes = set().union(*found.values()) if isinstance(found, dict) else found
    assert len(codes) >= at_least and codes <= set(NAMES), codes
    pages = {code: PAGES.get(code) for code in codes}
    assert not [code for code, page in pages.items() if page is None or not page.causes or not page.fix]
    assert [code for code, page in pages.items() if not page.lessons] == ([304] if 304 in codes else [])      # a file, not CUDA


def test_every_code_of_the_clinic_has_a_page():
    for code in (*range(900, 909), 910, 1, 2, 35, 100, 400, 401, 600, 700, 709, 719, 800, 801, 98, 201):
        page = explain(code)
        assert page.code == code and page.causes and page.fix and page.lessons, code


# (code, class): the scenario, or the call inside a capture, that gave the code
SEEN = {
    (1, "DEVPTR"): "a_node_on_freed_memory", (1, "UPDATE"): "a_setter_takes_its_own_kind", (1, "JOIN"): "waiting_late_for_a_captured_event",
    (1, "MEMNODE"): "relaunching_with_an_unfreed_allocation", (1, "ERRCHK"): "a_graph_that_is_null", (1, "EVENT"): "the_time_between_events",
    (1, ""): "an_impossible_launch_is_refused", (2, "MEMNODE"): "a_graph_larger_than_the_device", (2, ""): "allocating_nothing_and_too_much",
    (21, ""): "a_direction_that_does_not_exist", (98, "UPDATE"): "reading_parameters", (101, ""): "device_calls", (304, ""): "printing_a_graph",
    (400, "ERRCHK"): "a_null_handle", (400, "EVENT"): "the_time_between_events", (401, "TEARDOWN"): "begin_on_an_invalidated_stream",
    (401, "LEGACY"): "begin_on_the_legacy_stream_is_refused", (401, "JOIN"): "begin_on_a_forked_stream", (401, "THREAD"): "end_from_another_thread",
    (401, "ERRCHK"): "end_without_begin_is_an_illegal_state", (401, "EVENT"): "external_flags_outside_a_capture", (709, "TEARDOWN"): "a_destroyed_event",
    (800, "HOSTCB"): "a_host_function_may_not_call_cuda", (801, "MEMNODE"): "instantiating_an_allocating_graph_twice",
    (801, "COMPOSE"): "cloning_an_allocating_graph", (900, "TEARDOWN"): "destroying_an_executable_beside_a_capture",
    (900, "SYNC"): "waiting_for_the_capturing_stream", (900, "LEGACY"): "begin_on_the_legacy_stream_is_refused",
    (900, "THREAD"): "querying_an_event_beside_a_capture", (900, "WARM"): "malloc_beside_a_capture", (900, "COMPOSE"): "graph_launch_inside_a_capture",
    (901, "TEARDOWN"): "destroying_an_executable_beside_a_capture", (901, "SYNC"): "waiting_for_the_capturing_stream",
    (901, "THREAD"): "captures_of_two_threads", (901, "ERRCHK"): "later_work_on_an_invalidated_stream_says_so", (902, "JOIN"): "two_captures_cannot_merge",
    (903, "JOIN"): "ending_on_a_forked_stream_is_unmatched", (904, "JOIN"): "destroying_a_forked_stream",
    (905, "JOIN"): "waiting_for_an_event_from_outside_breaks_isolation", (906, "SYNC"): "synchronous_host_copies_beside_a_capture",
    (906, "LEGACY"): "the_legacy_stream_beside_a_capture", (907, "SYNC"): "a_captured_event_inside_the_capture",
    (907, "THREAD"): "cudaEventQuery: captured", (907, "EVENT"): "cudaEventElapsedTime: captured", (908, "THREAD"): "end_from_another_thread",
    (910, "UPDATE"): "a_whole_update_that_does_not_fit", (910, "MEMNODE"): "a_whole_update_of_an_allocating_graph",
}
# (code, class): how else it is known
ELSEWHERE = {
    (900, "LIB"): "CuPy 14.2 on the H200: a first FFT in a Global capture", (1, "LIB"): "CuPy 14.2 on the H200: a first matrix product in a Global capture",
    **{(700, word): "on the H200, each in a process of its own" for word in ("DEVPTR", "MEMNODE", "")}, (719, "HOSTMEM"): "on the H200, in a process of its own",
    **{(code, ""): "on the H200, in a process of its own" for code in (710, 716, 719)}, (46, ""): "on the H200: a device reset after 700", (201, "THREAD"): "on the H200: cuCtxSynchronize in a new thread",
    (2, "RESOURCE"): "bytes per executable: lesson 04's footprint",
    (35, "DRIVER"): "the bindings without a driver",
    **{(code, PAGES[code].causes[-1].word): "CUDA's documentation" for code in (3, 36, 100, 200, 209, 218, 222, 500, 600, 701, 702, 803, 804, 999)},
}


def test_every_cause_was_seen_to_give_its_code():
    recorded = {**scenarios(), **probes()}
    causes = {(code, cause.word) for code, page in PAGES.items() for cause in page.causes}
    assert len(causes) >= 65 and causes == set(SEEN) | set(ELSEWHERE) and not set(SEEN) & set(ELSEWHERE)
    assert len(SEEN) >= 45
    for (code, word), name in SEEN.items():
        assert code in recorded[name], f"{code} {word}: {name} never gave it"


def test_causes_stand_in_the_order_of_the_reports():
    assert sum(reports for reports, _ in REPORTS.values()) == 143 and sum(silent for _, silent in REPORTS.values()) == 24
    pages = [*PAGES.values(), CRASH, *spoken()]
    assert len(pages) >= 49
    for page in pages:
        assert [cause.reports for cause in page.causes] == sorted((cause.reports for cause in page.causes), reverse=True), page
        assert {cause.word for cause in page.causes} <= {*REPORTS, ""} and len({c.word for c in page.causes}) == len(page.causes)


def test_without_an_error_the_silent_classes_come_in_the_order_of_their_silence():
    page = explain("no error")
    order = sorted((word for word, (_, silent) in REPORTS.items() if silent), key=lambda word: (-REPORTS[word][1], -REPORTS[word][0]))
    assert len(order) == 11 and [cause.word for cause in page.causes] == order
    assert page == explain(0) == explain((ERRORS.cudaSuccess,)) == explain(ERRORS.cudaSuccess) and page.code == 0
    assert "ALIAS    4 of 5 " in repr(page) and page.lessons == SILENT.lessons


def test_every_lesson_that_a_page_names_is_there():
    named_lessons = {lesson for page in [*PAGES.values(), SILENT, CRASH, *spoken()] for lesson in page.lessons}
    assert len(named_lessons) >= 15 and named_lessons <= LESSONS.keys(), named_lessons - LESSONS.keys()


def test_every_section_that_a_cause_names_is_a_heading_of_its_lesson():
    """A heading that changes changes in labkit/catalogue.py too."""
    causes = [cause for page in [*PAGES.values(), SILENT, CRASH, *spoken()] for cause in page.causes if cause.lesson]
    assert len(causes) >= 80
    assert [cause for cause in causes if f"# ## {cause.section}\n" not in LESSONS[cause.lesson]] == []


def test_ok_says_what_the_page_says():
    with pytest.raises(LabError) as error:
        ok((ERRORS.cudaErrorStreamCaptureUnjoined,))
    page = explain(904)
    assert (error.value.means, error.value.try_) == (page.means, page.fix) == CATALOGUE[904]
    assert len(CATALOGUE) == len(PAGES) >= 40


# ---- what can be asked ---------------------------------------------------------------------------------

def test_a_code_is_found_by_number_member_name_and_text():
    assert len(CODES) >= 120
    for name, code in CODES.items():
        if code:
            text = cudart.cudaGetErrorString(ERRORS(code))[1].decode()
            torch = f"CUDA error: {text}\nCUDA kernel errors might be asynchronously reported at some other API call."
            asked = [explain(code), explain(ERRORS(code)), explain((ERRORS(code), None)), explain(name), explain(name.removeprefix("cudaError")),
                     explain(str(code)), explain(f"{name}: {text}"), explain(explain(code))]
            if code != 300:                                     # its text is that of 200
                asked += [explain(text), explain(RuntimeError(torch))]
            assert {(page.code, page.name) for page in asked} == {(code, name)}, asked


def test_the_drivers_names_are_known_too():
    driver = pytest.importorskip("cuda.bindings.driver", reason="the driver's names come with the CUDA bindings")
    asked = {name: int(code) for name, code in driver.CUresult.__members__.items() if int(code) in NAMES and int(code)}
    assert len(asked) >= 80 and set(DRIVER_NAMES) <= {*asked, "CUDA_ERROR_DEVICE_UNAVAILABLE"}
    for name, code in asked.items():
        assert explain(name).code == explain(driver.CUresult(code)).code == code, name


def exception(name, module, text, **fields):
    """An exception as a library would raise it."""
    error = type(name, (RuntimeError,), {"__module__": module})(text)
    error.__dict__.update(fields)
    return error


def test_exceptions_of_cupy_and_pytorch_are_understood():
    text = ("CUDA error: operation not permitted when stream is capturing\nSearch for `cudaErrorStreamCaptureUnsupported' in "
            "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information.\n")
    assert explain(exception("AcceleratorError", "torch", text)).code == 900
    assert explain(exception("AcceleratorError", "torch", "no text that helps", error_code=904)).code == 904
    assert explain(exception("CUDARuntimeError", "cupy_backends.cuda.api.runtime", "", status=906)).code == 906
    assert explain(exception("CUDADriverError", "cupy_backends.cuda.api.driver", "CUDA_ERROR_OUT_OF_MEMORY: out of memory", status=2)).code == 2


# what the libraries said on an H200 (CuPy 14.2, PyTorch 2.11): the class, and whether the capture lived
@pytest.mark.parametrize("text, word, lives", [
    ("the current stream is capturing, so D2H transfers are disallowed", "SYNC", True), ("the current stream is capturing, so H2D transfers are disallowed", "SYNC", True),
    ("calling cuBLAS API during stream capture is currently unsupported", "LIB", True), ("calling cuRAND API during stream capture is currently unsupported", "LIB", True),
    ("Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is pinned. Please use tensor.pin_memory() or allocate the tensor with pin_memory=True.", "SYNC", True),
    ("CUDAGeneratorImpl::set_current_seed can be called during stream capture only if new seed is the same as the original seed.", "RNG", True),
    ("Attempt to increase offset for a CUDA generator not in capture mode.", "RNG", True),
    ("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`", "LIB", False)])
def test_what_a_library_says_by_itself_has_a_page_without_a_code(text, word, lives):
    for page in (explain(RuntimeError(text)), explain(text)):
        assert page.code is None and page.causes[0].word == word and page.lessons and page.fix
        assert ("capture is still active" in page.means) == lives and ("capture is lost" in page.means) != lives


def test_what_cupy_says_of_a_lost_capture_is_901():
    assert explain(RuntimeError("the stream was capturing, but an error has invalidated the capture sequence")).code == 901


def test_at_the_end_of_a_lost_capture_the_first_reason_counts():
    def lost(first, second):
        try:
            try:
                raise first
            finally:
                raise second
        except RuntimeError as error:
            return error
    end = "CUDA error: operation failed due to a previous error during capture"
    assert explain(lost(RuntimeError("CUDA error: invalid argument"), RuntimeError(end))).code == 1
    assert explain(lost(KeyError("x"), RuntimeError(end))).code == 901
    assert explain(lost(RuntimeError("CUDA error: invalid argument"), RuntimeError("CUDA error: capturing stream has unjoined work"))).code == 904


def test_a_lab_error_keeps_what_it_knows():
    with pytest.raises(LabError) as error:
        ok((ERRORS.cudaErrorInvalidValue, SimpleNamespace(explained=("Because.", "Do that."))))
    page = explain(error.value)
    assert (page.code, page.means, page.fix, page.causes) == (1, "Because.", "Do that.", PAGES[1].causes)
    page = explain(Undefined("You read freed memory.", "Nobody knows what is there.", "Keep it."))
    assert (page.code, page.name, page.fix) == (None, "Undefined", "Keep it.") and "You read freed memory." in repr(page)


def test_a_refused_update_keeps_its_reason():
    stream = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    small, large = ok(cudart.cudaGraphCreate(0)), ok(cudart.cudaGraphCreate(0))
    ok(cudart.cudaGraphAddEmptyNode(small, [], 0))
    executable = ok(cudart.cudaGraphInstantiate(large, 0))
    page = explain(exec_update(executable, small))
    assert page.code == 910 and "TopologyChanged" in page.means
    ok(cudart.cudaGraphExecDestroy(executable))
    for graph in (small, large):
        ok(cudart.cudaGraphDestroy(graph))
    ok(cudart.cudaStreamDestroy(stream))


GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal


def line(text, code=None, **more):
    return SimpleNamespace(**{"file": "<cell 3>", "line": 7, "text": text, "call": "", "thread": "MainThread", "code": code, "became": "Invalidated", **more})


def seen(guilty=None, **more):
    """What watch() keeps, as far as explain() reads it."""
    return SimpleNamespace(**{"guilty": guilty, "refused": [], "left_out": [], "frozen": [], "unjoined": [], **more})


def test_what_watch_saw_is_explained_with_its_line():
    page = explain(seen(line("    y = x.sum().item()\n")))
    assert page.code == 901 and "At:            <cell 3>:7: y = x.sum().item()" in repr(page)
    assert explain(seen(line("y", ERRORS.cudaErrorStreamCaptureImplicit))).code == 906
    assert explain(seen(refused=[line("y", ERRORS.cudaErrorInvalidValue)])).code == 1
    page = explain(seen(line("destroy", became="its stream was destroyed")))
    assert page.code is None and "its stream was destroyed" in page.means and "<cell 3>:7: destroy" in repr(page)
    page = explain(seen(unjoined=[line("wait(other)")]))
    assert page.code == 904 and page.where == "<cell 3>:7: wait(other)"
    page = explain(seen(left_out=[line("launch(0)")]))
    assert page.code == 0 and page.where == "<cell 3>:7: launch(0)"
    assert explain(seen()) == explain("no error")


def test_a_watched_capture_that_was_lost_is_explained(capsys):
    stream, event = ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)), ok(cudart.cudaEventCreate())
    with watch(stream) as w:
        ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
        cudart.cudaEventRecord(event, stream)
        cudart.cudaEventSynchronize(event)
        cudart.cudaStreamEndCapture(stream)
    page = explain(w)
    assert page.code == 907 and page.where.endswith(": cudart.cudaEventSynchronize(event)") and "test_explain.py:" in page.where
    assert "907" in capsys.readouterr().out
    ok(cudart.cudaEventDestroy(event))
    ok(cudart.cudaStreamDestroy(stream))


def test_what_a_child_ended_with_is_explained():
    def child(ended, last_error=""):
        return SimpleNamespace(printed="", ended=ended, last_error=last_error)
    assert explain(child("exit 1", "LabError: cudaErrorIllegalAddress (700)")).code == 700
    assert explain(child("SIGSEGV")).causes == CRASH.causes == explain("SIGSEGV").causes
    with pytest.raises(LabError, match="ended with finished"):
        explain(child("finished"))


@pytest.mark.parametrize("thing", [None, True, 1.5, 12345, -1, (), (0, 5), [900], "", "hello", "invalid", object(), ValueError("invalid argument"), KeyError(900),
                                   cudart.cudaStreamCaptureStatus.cudaStreamCaptureStatusInvalidated, exception("HTTPError", "urllib.error", "Bad request", status=400)])
def test_what_names_no_code_says_what_can_be_passed(thing):
    with pytest.raises(LabError, match="Pass |Codes go from"):
        explain(thing)


@pytest.mark.parametrize("typed, meant", [("StreamCaptureUnjoind", "cudaErrorStreamCaptureUnjoined"), ("cudaErrorInvalidValu", "cudaErrorInvalidValue"),
                                          ("Unjoined", "cudaErrorStreamCaptureUnjoined"), ("CUDA_ERROR_STREAM_CAPTURE_IMPLICT", "cudaErrorStreamCaptureImplicit")])
def test_a_misspelt_name_is_told_what_is_near(typed, meant):
    with pytest.raises(LabError, match="Close to it") as error:
        explain(typed)
    assert meant in str(error.value)


# ---- how it looks ----------------------------------------------------------------------------------------

def test_a_page_fits_on_a_screen_and_holds_all_it_knows():
    pages = [explain(what) for what in [0, "SIGSEGV", *PAGES, *SPOKEN]]
    assert len(pages) >= 50
    for page in pages:
        lines = repr(page).splitlines()
        assert len(lines) <= 16 and max(map(len, lines)) <= 100, page
        assert lines[0] == page.title and all(f"  {cause.text}" in repr(page) for cause in page.causes)
        shown = page._repr_markdown_()
        assert shown.count("\n| ") == len(page.causes) + 1 and all(f"| {cause.word} | {page.number(cause)} |" in shown for cause in page.causes)
        assert (f"**Lessons:** {', '.join(page.lessons)}" in shown) == bool(page.lessons)


def test_signs_of_markdown_in_a_line_of_code_are_shown_as_they_are():
    page = explain(seen(line("y[0] = a*b*c | d_e")))
    assert r"y\[0\] = a\*b\*c \| d\_e" in page._repr_markdown_() and r"\<cell 3\>" in page._repr_markdown_()


# ---- the detective cases ---------------------------------------------------------------------------------

def test_the_class_of_every_case_is_on_the_page_of_its_code():
    assert len(CASES) >= 15
    for number, report in CASES.items():
        assert report.kind in {cause.word for cause in explain(report.code).causes}, number
