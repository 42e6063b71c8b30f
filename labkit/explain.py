"""What a code means, what usually causes it, what to do, and which lesson shows it: `explain()`.

    explain(900)                                    # a number
    explain("cudaErrorStreamCaptureUnsupported")    # a name, with or without its beginning
    explain(cudart.cudaStreamEndCapture(stream))    # what a call returned
    explain(error)                                  # an exception of labkit, CuPy or PyTorch
    explain("no error")                             # nothing was refused, and the value is wrong

The pages are in catalogue.py. Not here: which line it was (watch does that).
"""
import difflib
import re
import threading
from dataclasses import replace
from functools import cache
from numbers import Integral

from labkit.catalogue import CRASH, DRIVER_NAMES, PAGES, SILENT, SPOKEN, Page
from labkit.errors import LabError
from labkit.explanation import Explanation

_LOST = 901                                     # says only that an earlier call was refused


def explain(what):
    """The Explanation of a code, however you hold it. Raises LabError for anything that names none.

    what: a number, a member of cudaError_t or CUresult, a name or CUDA's own text, the tuple that a call returned, a LabError,
    an exception of CuPy or PyTorch, a watch object, what in_child() returned, or "no error".
    Stands for: CUDA Runtime API, Error Handling (cudaGetErrorName, cudaGetErrorString), and the page of the code.
    """
    if isinstance(what, Explanation):
        return what
    if isinstance(what, str):
        return _of_text(what)
    if isinstance(what, LabError):
        return _of_lab_error(what)
    if isinstance(what, BaseException):
        return _of_exception(what)
    if hasattr(what, "guilty") and hasattr(what, "left_out"):
        return _of_watch(what)
    if hasattr(what, "ended") and hasattr(what, "printed"):
        return _of_child(what)
    if isinstance(what, tuple) and what and _is_code(what[0]):
        means, fix = getattr(what[-1], "explained", None) or (None, None)      # exec_update knows more than the code says
        return _page(int(what[0]), means, fix)
    if _is_code(what):
        return _page(int(what))
    if isinstance(what, Integral) and not isinstance(what, bool) and type(what).__name__ not in _enums():
        return _page(int(what))
    raise LabError(f"explain() got {type(what).__name__} {what!r:.60}.", "It names no CUDA code.",
                   "Pass a number, a name, what a call returned, an exception that you caught, a watch object, or \"no error\".")


# ---- what CUDA calls things, as the simulator's tables have it: they are recorded from the hardware --------

@cache
def _names():
    """{code: name}, of the newest bindings."""
    from labkit.sim.enums import ENUMS, MORE_IN_13
    return {code: name for table in (ENUMS, MORE_IN_13) for name, code in table["cudaError_t"].items()}


@cache
def _enums():
    from labkit.sim.enums import ENUMS
    return set(ENUMS) | {"CUresult", "nvrtcResult"}


@cache
def _known():
    """{short spelling: code}: of names without their beginning, of the driver's names too, and of CUDA's texts."""
    from labkit.sim.texts import TEXTS
    found = {text.lower(): code for code, text in reversed(TEXTS.items())}
    found |= {_short(name): code for name, code in DRIVER_NAMES.items()}
    return found | {_short(name): code for code, name in _names().items()}


def _short(name):
    return re.sub(r"^(cuda_?error_?|cuda_)|_", "", name.strip().strip("'\"`").lower())


def _is_code(thing):
    return type(thing).__name__ in ("cudaError_t", "CUresult") and hasattr(thing, "name")


def _page(code, means=None, fix=None, where=""):
    if code == 0:
        return _explanation(SILENT, 0, "no error", where)
    page = PAGES.get(code)
    if page is None:
        from labkit.sim.texts import TEXTS
        if code not in TEXTS:
            raise LabError(f"explain() got the number {code}.", "CUDA has no code of this number.", "Codes go from 1 to 999; 900 to 910 are about captures and updates.")
        page = Page(f'CUDA\'s own words: "{TEXTS[code]}". The kit has no page of its own for this code.',
                    "Look the name up in the CUDA Runtime API, section Data types, cudaError_t.")
    page = page._replace(means=means or page.means, fix=fix or page.fix)
    return _explanation(page, code, _names()[code], where)


def _explanation(page, code, name, where=""):
    return Explanation(code, name, page.means, page.causes, page.fix, page.lessons, where)


# ---- what people hold in their hands ------------------------------------------------------------------

def _of_text(text):
    if re.fullmatch(r"\s*\d+\s*", text):
        return _page(int(text))
    if text.strip().lower() in ("no error", "noerror", "none", "nothing", "cudasuccess", "cuda_success", "success"):
        return _page(0)
    if text.strip() in ("SIGSEGV", "SIGABRT", "SIGBUS"):
        return _explanation(CRASH, None, text.strip())
    found = _known().get(text.strip().lower(), _known().get(_short(text)))
    if found is not None:
        return _page(found)
    said = _said(text)
    if said is not None:
        return said
    short = {_short(name): name for name in _names().values()}
    near = difflib.get_close_matches(_short(text), short, 3, 0.6) or [one for one in short if len(_short(text)) > 3 and _short(text) in one]
    names = [short[one] for one in near]
    raise LabError(f"explain() got {text!r:.80}.", "No CUDA code has this name or text." + (f" Close to it: {', '.join(names)}." if names else ""),
                   "Pass the number or the name that the call returned, or \"no error\".")


def _said(text):
    """The Explanation of a longer text that names a code, quotes CUDA, or is a library's own refusal; None for any other."""
    for part, (who, page) in SPOKEN.items():
        if part in text:
            return _explanation(page, None, who) if page else explain(who)
    for name in re.findall(r"cudaError[A-Z]\w+|CUDA_ERROR_\w+", text):
        if _short(name) in _known():
            return _page(_known()[_short(name)])
    if "cuda" in text.lower():                                      # "invalid argument" may be anyone's words
        from labkit.sim.texts import TEXTS
        quoted = [code for code, words in TEXTS.items() if code and re.search(rf"(?<!\w){re.escape(words.lower())}(?!\w)", text.lower())]
        if quoted:
            return _page(max(quoted, key=lambda code: len(TEXTS[code])))
    return None


def _of_lab_error(error):
    if error.code is not None:
        return _page(int(error.code), error.means, error.try_)
    return Explanation(None, type(error).__name__, f"{error.did} {error.means}", (), error.try_, ())


def _of_exception(error):
    """The first code in the chain of exceptions that is a reason: at the end of a lost capture comes 901, and it is none."""
    chain, found = [], None
    while error is not None and error not in chain:
        chain.append(error)
        said = _of_lab_error(error) if isinstance(error, LabError) else _of_status(error) or _said(str(error))
        found = found or said
        if said is not None and said.code != _LOST:
            return said
        error = error.__cause__ or error.__context__
    if found is not None:
        return found
    raise LabError(f"explain() got {type(chain[0]).__name__}, an exception that names no CUDA code.", "Its text is not CUDA's.",
                   "Pass the exception that CuPy, PyTorch or labkit raised, or the code that a call returned.")


def _of_status(error):
    """The page of the number that CuPy and PyTorch keep in their exceptions, or None."""
    if not re.search("cuda|cupy|torch", f"{type(error).__module__} {type(error).__name__}", re.I):
        return None                                                 # an HTTP status, say
    for number in (getattr(error, "status", None), getattr(error, "error_code", None)):
        if isinstance(number, Integral) and int(number) in _names() and int(number):
            return _page(int(number))
    return None


# what the call at the guilty line says about the class
_FITS = (("Synchronize|Query|synchronize|GetFlags|item|numpy", "SYNC"), ("Destroy", "TEARDOWN"), ("GraphLaunch|launch$", "COMPOSE"), ("Malloc|Free|HostAlloc|MemPool", "WARM"))


def _first(word, page):
    """The page with the causes of one class at the top; the others keep their order."""
    return replace(page, causes=tuple(sorted(page.causes, key=lambda cause: cause.word != word)))


def _fitting(one, page):
    """The page of a guilty line, with the class on top that its call and thread speak for."""
    if one.thread and one.thread != threading.main_thread().name:
        return _first("THREAD", page)
    return _first(next((word for names, word in _FITS if re.search(names, one.call or "")), ""), page)


def _of_watch(seen):
    """The page of the first thing that watch found: the loss, a refusal, a fork left loose, work left out. The cause that fits stands first."""
    if getattr(seen, "status", 0) is None:
        raise LabError("explain() got a watch that was never on.", "It has seen nothing.", "Write `with watch(stream) as w:` around the program, then explain(w).")
    def at(one):
        return f"{one.file}:{one.line}: {one.text.strip()}"
    for one in [seen.guilty, *getattr(seen, "refused", ())]:
        if one is not None and one.code is not None and int(one.code):
            return _fitting(one, _page(int(one.code), where=at(one)))
    if seen.guilty is not None:                                     # its code was not to be seen
        became = getattr(seen.guilty, "became", "Invalidated")
        lost = _page(_LOST, where=at(seen.guilty))
        return lost if became == "Invalidated" else replace(lost, code=None, name="no code", means=f"After this line: {became}.", causes=())
    if getattr(seen, "lost", False):
        return _page(_LOST)
    if seen.unjoined:
        return _page(904, where=at(seen.unjoined[0]))
    return _first("LEGACY", _page(0, where=at(seen.left_out[0]))) if seen.left_out else _page(0)


def _of_child(child):
    if child.last_error:
        said = _said(child.last_error)
        if said is not None:
            return said
    if child.ended.startswith("SIG"):
        return _explanation(CRASH, None, child.ended)
    raise LabError(f"The child ended with {child.ended}.", "That is no CUDA code.", "Read what it printed; print the code of each call in the program.")
