"""Let a graph hold Python objects: keep_alive().

    x = cupy.arange(4.0)                   # its memory is freed when Python lets go of it
    ... capture work that reads x, end the capture ...
    kept = keep_alive(graph, x)            # from here on the graph holds x
    executable = ok(cudart.cudaGraphInstantiate(graph, 0))
    del x                                  # the replay still finds its numbers
    kept.alive                             # True, until graph and executable are destroyed

A graph keeps addresses, not owners. A CUDA user object is a reference count with a destructor: graphs hold
it, and so do their clones, the copies in child nodes and the executables made from them.

CUDA may run the destructor in a thread of its own, forbids it to call CUDA, and runs it at any time, at the end
of the process too. So it is no Python function: it is PyThread_release_lock, which wants neither the
interpreter nor its lock and opens a lock that stands for the objects. They are dropped later, in ordinary
code, by the next keep_alive(), empty(), to_device() or recover() that finds the lock open.
"""
import ctypes
import numbers
import threading

from labkit.backend import cudart
from labkit.errors import CATALOGUE, UNKNOWN, LabError, ok

_python = ctypes.PyDLL(None, handle=ctypes.pythonapi._handle)      # Python's C functions, with argument types of our own
_new_lock, _try_lock = _python.PyThread_allocate_lock, _python.PyThread_acquire_lock
_new_lock.argtypes, _new_lock.restype = [], ctypes.c_void_p
_try_lock.argtypes, _try_lock.restype = [ctypes.c_void_p, ctypes.c_int], ctypes.c_int
_DESTRUCTOR = ctypes.cast(_python.PyThread_release_lock, ctypes.c_void_p).value

_kept = set()                   # what graphs hold, and what nobody has dropped yet
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_kept))     # for ever: at the end of the process what a graph holds is not dropped
_shut = []                      # shut locks to use again; none is ever freed: CUDA may open one at the end of the process
_books = threading.RLock()
_HANDLES = tuple(getattr(cudart, name) for name in ("cudaStream_t", "cudaEvent_t", "cudaGraph_t", "cudaGraphNode_t", "cudaGraphExec_t", "cudaMemPool_t"))


class Kept:
    """What keep_alive() returned. .alive: does a graph or an executable still hold the objects?

    False comes with the call that destroys the last graph, or an executable that was never launched. After one that
    was launched it comes when its last launch is done, a moment later: no call of CUDA waits for that.
    """

    def __init__(self, objects):
        self._objects, self._count = objects, len(objects)
        with _books:
            self._lock = _shut.pop() if _shut else None
        if self._lock is None:
            self._lock = _new_lock()
            _try_lock(self._lock, 0)

    @property
    def alive(self):
        return self._look()

    def _look(self):
        with _books:
            if self._lock is not None and _try_lock(self._lock, 0):     # CUDA has opened it; now it is shut again
                _shut.append(self._lock)
                self._lock = None
            return self._lock is not None

    def __repr__(self):
        return f"Kept({self._count} object{'s' * (self._count != 1)}, {'alive' if self.alive else 'let go'})"


def keep_alive(graph, *objects):
    """The graph holds Python objects from now on: buffers that its nodes use, or whatever owns them.

    graph: a cudaGraph_t, before it is instantiated: executables take what their graph holds at that moment, and
    nothing later. objects: any that own something. Returns a Kept.
    Call it after the capture: it drops what other graphs have let go of, and an object that queues its own free
    in the capturing stream would put that into the capture. (Other frees do no harm, see drain().)
    Raises LabError, and then holds nothing: for what is no graph that exists, and for objects that own nothing.
    A buffer from empty() or to_device() is freed by its free() only, whoever holds it.
    Stands for: CUDA Runtime API, Graph Management: cudaUserObjectCreate, cudaGraphRetainUserObject.
    """
    _check_graph(graph)
    _check_objects(objects)
    drain()
    kept = Kept(objects)
    _kept.add(kept)
    made, code = None, None
    try:
        made = ok(cudart.cudaUserObjectCreate(kept._lock, cudart.cudaHostFn_t(_DESTRUCTOR), 1, int(cudart.cudaUserObjectFlags.cudaUserObjectNoDestructorSync)))
        code, = cudart.cudaGraphRetainUserObject(graph, made, 1, int(cudart.cudaUserObjectRetainFlags.cudaGraphUserObjectMove))
    finally:
        if code is None or int(code):
            _forget(kept, made)
    if int(code):
        means, try_ = CATALOGUE.get(int(code), UNKNOWN)
        if int(code) == 1:
            means, try_ = "There is no such graph: it was destroyed, or its capture failed.", "Call keep_alive() between cudaStreamEndCapture and cudaGraphDestroy."
        raise LabError("keep_alive() could not give the objects to this graph.", means, try_, code)
    return kept


def _forget(kept, made):
    """Nothing came of it: the destructor opens the lock, if it is there to be run."""
    _kept.discard(kept)
    kept._objects = ()
    if made is not None:
        cudart.cudaUserObjectRelease(made, 1)
        kept._look()
    else:
        with _books:
            _shut.append(kept._lock)
            kept._lock = None


def _check_graph(graph):
    if isinstance(graph, cudart.cudaGraphExec_t):
        raise LabError("keep_alive() got an executable.", "Graphs hold objects. An executable takes those of its graph when it is instantiated, and none later.",
                       "Pass the graph, before cudaGraphInstantiate.")
    if graph is None or isinstance(graph, cudart.cudaGraph_t) and not int(graph):
        raise LabError("keep_alive() got no graph, but a null handle.", "A capture that failed ends without a graph.",
                       "Find the first call in it whose code is not cudaSuccess, run recover(), and capture again.")
    if not isinstance(graph, cudart.cudaGraph_t) and type(graph).__name__ != "CUgraph":     # the driver's name for the same handle
        raise LabError(f"keep_alive() got {type(graph).__name__} where a graph is expected.", "A graph's handle is what cudaStreamEndCapture or cudaGraphCreate returned.",
                       "Pass the graph first, then the objects: keep_alive(graph, x, y). An address from another library: cudart.cudaGraph_t(address).")


def _check_objects(objects):
    from labkit.arrays import DeviceArray               # it imports this file
    if not objects:
        raise LabError("keep_alive() got a graph and nothing to keep.", "The graph would hold nothing.", "Pass the buffers that its nodes use: keep_alive(graph, x, y).")
    for one in objects:
        if one is None or isinstance(one, (numbers.Number, *_HANDLES)):
            raise LabError(f"keep_alive() got {one!r:.40} to keep.", "An address or a handle is a number that owns nothing: what it stands for can go at any time.",
                           "Pass the object that owns the memory: the buffer, not buffer.ptr.")
        if isinstance(one, str):
            raise LabError(f"keep_alive() got the text {one!r:.40} to keep.", "A text owns no memory that a node of the graph could use.", "Pass the buffers themselves, not their names.")
        if isinstance(one, DeviceArray):
            one.ptr                                     # a freed one raises


def drain():
    """Drop the objects that CUDA has let go of: how many keep_alive() calls are over. Raises nothing.

    For the moment of dropping this thread's capture mode is Relaxed: a cudaFree that an object makes then breaks no
    capture. Does nothing where CUDA may not be called.
    """
    gone = [kept for kept in tuple(_kept) if not kept.alive]
    if not gone:
        return 0
    code, mode = cudart.cudaThreadExchangeStreamCaptureMode(cudart.cudaStreamCaptureMode.cudaStreamCaptureModeRelaxed)
    if int(code):
        return 0
    try:
        for kept in gone:
            _kept.discard(kept)
            kept._objects = ()
    finally:
        cudart.cudaThreadExchangeStreamCaptureMode(mode)
    return len(gone)
