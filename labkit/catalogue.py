"""What each code means, what usually causes it, what to do, and which lesson shows it: data for ok() and explain().

A cause belongs to a class of public reports: GitHub issues of CuPy, cuda-python, PyTorch, JAX, Warp, vLLM, llama.cpp,
RMM, NCCL and others, 143 in all. The causes of a page stand in the order of these counts. A cause without a class stands last: no
report was about it. tests/labkit/test_explain.py holds each cause to the recording or the measurement that shows it.
"""
from typing import NamedTuple

# class: (public reports, of these silent: no call gave an error)
REPORTS = {
    "LIB": (12, 0), "DEVPTR": (11, 3), "TEARDOWN": (11, 0), "SYNC": (10, 0), "LEGACY": (9, 3), "UPDATE": (9, 2), "JOIN": (9, 0),
    "THREAD": (8, 0), "WARM": (8, 0), "MEMNODE": (6, 0), "FROZEN": (6, 2), "NCCL": (6, 0), "ALIAS": (5, 4), "RESOURCE": (5, 0),
    "HOSTMEM": (4, 3), "ERRCHK": (4, 2), "EVENT": (4, 0), "COMPOSE": (4, 0), "RNG": (3, 1), "HOSTCB": (3, 2), "DRIVER": (3, 1),
    "DEVICE": (2, 1), "SHARE": (1, 0),
}


class Cause(NamedTuple):
    """word: the class, "" for none. text: one sentence. lesson: the two digits of the lesson that shows it, "" for none; section: its heading."""
    word: str
    text: str
    lesson: str = ""
    section: str = ""

    @property
    def reports(self):
        """How many public reports are of this class."""
        return REPORTS.get(self.word, (0, 0))[0]

    @property
    def silent(self):
        """How many of them showed no error."""
        return REPORTS.get(self.word, (0, 0))[1]


class Page(NamedTuple):
    """means: what the code says. fix: what to do. causes: of Cause, the most reported first. more: lessons beside those of the causes."""
    means: str
    fix: str
    causes: tuple = ()
    more: tuple = ()

    @property
    def lessons(self):
        """The lessons that show it, the most usual cause's first, each once."""
        return tuple(dict.fromkeys([cause.lesson for cause in self.causes if cause.lesson] + list(self.more)))


_GONE = "The context is broken for the rest of the process: almost every later call says the same."

PAGES = {
    1: Page("An argument is outside what this call accepts, or an object is in a state that forbids it.",
            "Check sizes, grid and block (1 to 1024 threads), whether the handle still exists, and, for a launch, whether memory that the last one left is freed.",
            (Cause("LIB", "cuBLAS makes its handle during a Global capture: CuPy passes this code on.", "17", "CuPy and PyTorch"),
             Cause("DEVPTR", "A memset node's buffer was freed before the graph was instantiated.", "14", "Symptom: a memset is refused"),
             Cause("UPDATE", "A setter got a node of another kind or graph, or sizes that it refuses.", "13", "One code, three causes"),
             Cause("JOIN", "A stream waits for an event whose capture has ended.", "03", "An event that is a node"),
             Cause("MEMNODE", "A relaunch with memory that the last launch left, or a second free.", "09", "Left allocated, freed elsewhere"),
             Cause("ERRCHK", "A null graph or executable, from a call whose code nobody read.", "15", "Call by call"),
             Cause("EVENT", "The time of events that a capture recorded the ordinary way.", "11", "How long did it take?"),
             Cause("", "A launch whose grid, block or shared memory no GPU can run.", "05", "What do setters refuse?"))),
    2: Page("The GPU has no free block of memory of this size.",
            "Free what you no longer need, restart other notebooks on this GPU, or use a smaller size. If a graph asked for more than the GPU has, restart this kernel: nothing else gives it back.",
            (Cause("MEMNODE", "A graph allocates more than the GPU has; its launch says so, not the capture.", "10", "More than the GPU has"),
             Cause("RESOURCE", "Executables pile up, one for each shape, and each holds memory.", "17", "64 shapes"),
             Cause("", "One allocation is larger than what is free.", "08", "Bad sizes, bad frees"))),
    3: Page("The CUDA runtime could not start, or the process is shutting down.",
            "Restart the kernel; `labkit doctor` shows whether the driver answers.",
            (Cause("", "The driver does not answer, or a call is made while Python exits.", "00", "When something breaks"),)),
    21: Page("The direction of the copy is not one that CUDA knows.",
             "Use a member of cudaMemcpyKind, such as cudaMemcpyHostToDevice.",
             (Cause("", "A number stands where a cudaMemcpyKind belongs.", "05", "What do setters refuse?"),)),
    35: Page("The installed NVIDIA driver is older than this CUDA version needs, or there is none.",
             "Update the driver, install the matching extra (cuda12 for drivers from 525), or set LABKIT_BACKEND=sim.",
             (Cause("DRIVER", "No driver, or one that is older than the CUDA packages.", "00", "Where does this run?"),)),
    36: Page("The installed NVIDIA driver is older than this one call needs.",
             "Update the driver, or do without the call.",
             (Cause("DRIVER", "A call of a newer CUDA version, on a driver that lacks it.", "00", "Where does this run?"),)),
    46: Page("The GPU is there, but takes no work of this process now.",
             "Restart the kernel; else nvidia-smi shows whether another process holds the GPU for itself.",
             (Cause("", "A device reset after a kernel's crash, or another process that holds the GPU.", "15", "An error that comes later"),)),
    98: Page("The function handle does not name a kernel that the runtime itself loaded.",
             "Kernels launched from Python come from the driver; keep the parameters you launched with.",
             (Cause("UPDATE", "The parameters of a kernel launched from Python were read back from its node.", "05", "What does a node hold?"),)),
    100: Page("The driver is there, but it offers no GPU to this process.",
              "Look at nvidia-smi and CUDA_VISIBLE_DEVICES, or set LABKIT_BACKEND=sim.",
              (Cause("", "CUDA_VISIBLE_DEVICES hides it, or the container has none.", "00", "Where does this run?"),)),
    101: Page("There is no GPU with this number.", "Device numbers start at 0; `cudaGetDeviceCount` says how many there are.",
              (Cause("", "A device number from a machine with more GPUs.", "00", "Where does this run?"),)),
    200: Page("The compiled kernel does not fit this GPU.", "Restart the kernel so that labkit compiles it again for this GPU.",
              (Cause("", "The kernel was compiled for another GPU, or its file is damaged.", "00", "When something breaks"),)),
    201: Page("This thread has no CUDA context yet.", "Call cudaSetDevice(0) once in each new thread before driver calls.",
              (Cause("THREAD", "The first CUDA call of a new thread is a driver call.", "12", "Work from another thread"),)),
    209: Page("No compiled code for this GPU is inside the kernel image.", "Restart the kernel so that labkit compiles it again.",
              (Cause("", "A library was built for other GPUs than this one.", "00", "When something breaks"),)),
    218: Page("The compiled kernel text (PTX) could not be read by this driver.", "Update the driver, or use the cuda12 extra.",
              (Cause("", "The kernel was compiled for a newer driver.", "00", "When something breaks"),)),
    222: Page("The compiled kernel text (PTX) is newer than this driver can read.", "Update the driver, or use the cuda12 extra.",
              (Cause("", "The kernel was compiled for a newer driver.", "00", "When something breaks"),)),
    304: Page("A call of the operating system failed, for example a file that cannot be written.",
              "Check that the folder exists and that you may write there.",
              (Cause("", "cudaGraphDebugDotPrint got a file in a folder that is not there."),)),
    400: Page("The handle is not, or no longer, a live CUDA object of this kind.",
              "Check that nothing destroyed it, and that a stream is not passed where an event is expected.",
              (Cause("ERRCHK", "A null event or stream, from a call whose code nobody read.", "15", "ok, as a habit"),
               Cause("EVENT", "The time between two events, one of them never recorded or without timing.", "11", "How long did it take?"))),
    401: Page("The object is in a state that does not allow this call: an End without a Begin, say, or a second Begin.",
              "Ask cudaStreamIsCapturing first; recover() ends captures that were left open.",
              (Cause("TEARDOWN", "A capture begins on a stream whose lost capture nobody ended.", "17", "After a failed capture"),
               Cause("LEGACY", "An end after a begin that was refused: the legacy stream cannot capture.", "02", "Which streams can capture?"),
               Cause("JOIN", "A capture begins on a stream that another capture drew in.", "03", "What makes a stream part of a capture?"),
               Cause("THREAD", "An end after another thread's end took the capture away (908).", "12", "Ending in another thread"),
               Cause("ERRCHK", "An end without a begin, or two begins.", "15", "ok, as a habit"),
               Cause("EVENT", "An external record or wait on a stream that is not capturing.", "03", "An event that is a node"))),
    500: Page("No symbol of this name exists.", "Check the kernel's name against its source; it needs extern \"C\".",
              (Cause("", "The kernel's name is misspelt, or lacks extern \"C\".", "00", "When something breaks"),)),
    600: Page("The work has been queued and has not finished yet. This is an answer, not a failure.",
              "Query again later, or synchronize.",
              (Cause("", "A stream or event was asked before its work was done.", "15", "ok, as a habit"),)),
    700: Page(f"A kernel touched memory that is not its own. {_GONE}",
              "Restart the kernel; run the program with in_child(), or with compute-sanitizer to find the access.",
              (Cause("DEVPTR", "A graph was replayed after its buffer was freed and the memory was gone.", "14", "Symptom: it worked until the collector ran"),
               Cause("MEMNODE", "A graph's memory was used before its launch, or after its free and a trim.", "14", "Symptom: a memset is refused"),
               Cause("", "A null or wrong pointer, or an index past the end of a buffer.", "15", "An error that comes later"))),
    701: Page("A kernel asks for more registers or shared memory than one multiprocessor has.", "Use a smaller block.",
              (Cause("", "The block is too large for a kernel of this size."),)),
    702: Page("The kernel ran longer than the display driver allows.", "Use a smaller size; restart the kernel.",
              (Cause("", "A kernel of seconds on a GPU that also drives a screen."),)),
    709: Page("The object belongs to a context that is gone, or was destroyed itself.", "Make a new one; a destroyed event or stream can't be used again.",
              (Cause("TEARDOWN", "An event was used after it was destroyed, by hand or by its owner.", "17", "Garbage"),)),
    710: Page(f"A kernel's own assert failed. {_GONE}", "Restart the kernel; the assert's line is printed where the program writes its errors.",
              (Cause("", "An assert in the kernel, such as PyTorch's check of an index.", "15", "An error that comes later"),)),
    716: Page(f"A kernel read or wrote at an address that its type does not allow. {_GONE}",
              "Restart the kernel; check that pointers are multiples of the size of what they point to.",
              (Cause("", "A pointer into the middle of a value.", "15", "An error that comes later"),)),
    719: Page(f"A kernel stopped with an error. {_GONE}",
              "Restart the kernel and look at the launch before this call.",
              (Cause("HOSTMEM", "A copy node's pinned buffer was freed, and another one took its place.", "14", "Symptom: somebody else's batch"),
               Cause("", "A trap, or a fault for which CUDA has no closer word.", "15", "An error that comes later"))),
    800: Page("CUDA forbids this call here, for example any CUDA call from inside a host function.",
              "Let the host function set a flag, and make the CUDA call in ordinary code.",
              (Cause("HOSTCB", "A host function, of a stream or of a graph, calls CUDA.", "16", "8 · The log"),)),
    801: Page("This kind of call or combination is not supported, for example cloning a graph that allocates memory.",
              "Lesson 09 shows what can be combined with memory nodes, and what to do instead.",
              (Cause("MEMNODE", "A graph with memory nodes is cloned, changed, or instantiated twice at once.", "09", "What can a graph with memory nodes not do?"),
               Cause("COMPOSE", "A graph that allocates becomes a child of another.", "17", "Graphs in graphs")), ("14",)),
    803: Page("The parts of the NVIDIA driver on this machine do not fit each other.", "Restart the machine after an update of the driver.",
              (Cause("", "The driver was updated and the machine not restarted.", "00", "When something breaks"),)),
    804: Page("The CUDA compatibility package on this machine does not serve this GPU.", "Take it off the library path, or update the driver itself.",
              (Cause("", "A container brings the compatibility package, and this GPU is none that it serves.", "00", "When something breaks"),)),
    900: Page("This call must not be made while a stream is capturing: it would have to wait for, or change, something outside the graph.",
              "Move it before the capture or after it; for memory use cudaMallocAsync on the capturing stream. The capture is lost: end it, then begin again.",
              (Cause("LIB", "A library makes its handle or workspace during the capture.", "17", "A library in ten lines"),
               Cause("TEARDOWN", "An old executable is destroyed during the capture, often by Python's collector.", "17", "Garbage"),
               Cause("SYNC", "A wait or a query: of a stream, of an event, of the device.", "11", "All of them"),
               Cause("LEGACY", "The capture was to begin on the legacy default stream.", "02", "Which streams can capture?"),
               Cause("THREAD", "Another thread allocates, waits or queries beside a Global capture.", "12", "Mode, thread, call"),
               Cause("WARM", "An allocation with cudaMalloc: your own, or of a pool that grows.", "17", "What is hidden in a first call?"),
               Cause("COMPOSE", "A graph is launched into the capturing stream.", "17", "Graphs in graphs")), ("08",)),
    901: Page("The capture was already broken by an earlier call; this one only reports it.",
              "Look at the first call that did not return cudaSuccess: its code is the reason. End the capture, then begin again.",
              (Cause("TEARDOWN", "Something was destroyed during the capture, and its code went nowhere.", "17", "Garbage"),
               Cause("SYNC", "A library waited or queried, and kept the code to itself.", "11", "Which line was it?"),
               Cause("THREAD", "Another thread made the call and got 900; this one gets 901.", "12", "The failing program"),
               Cause("ERRCHK", "The code of the first refused call was not read.", "15", "Call by call"))),
    902: Page("Waiting on this event would merge two captures that began separately.",
              "Begin one capture only, and let the second stream join by waiting on an event of the first.",
              (Cause("JOIN", "A stream with a capture of its own waits on another capture's event.", "03", "Three more ways to lose it"),)),
    903: Page("This stream did not begin the capture: it was drawn in by an event.",
              "Call cudaStreamEndCapture on the stream on which you called cudaStreamBeginCapture.",
              (Cause("JOIN", "The end was called on a forked stream.", "03", "Three more ways to lose it"),)),
    904: Page("A stream that the capture forked into was not joined back.",
              "Record an event on the forked stream after its last work, and let the origin stream wait on it before EndCapture.",
              (Cause("JOIN", "No event leads from the fork's last work back, or the fork was destroyed.", "03", "Forgetting the join"),), ("17",)),
    905: Page("The capture would depend on work outside it: the event was recorded outside this capture.",
              "Record the event on a capturing stream, or synchronize before the capture begins.",
              (Cause("JOIN", "The event was recorded before the capture, or on a stream outside it.", "03", "Three more ways to lose it"),)),
    906: Page("The call uses the legacy default stream, which would have to wait for your capturing (blocking) stream.",
              "Use an Async call on the capturing stream, or create that stream with cudaStreamNonBlocking; then the call runs at once and is NOT in the graph.",
              (Cause("SYNC", "A synchronous copy or memset: it runs on the legacy stream.", "11", "The copy that answers success"),
               Cause("LEGACY", "Work on stream 0 beside the capture of a blocking stream.", "02", "The silent one")), ("16",)),
    907: Page("The event was recorded during a capture, so it stands for a point in a graph, not in time.",
              "Do not query or synchronize it; record it again outside a capture first.",
              (Cause("SYNC", "The host waits for an event of a capture that is still on.", "11", "All of them"),
               Cause("THREAD", "A watchdog thread queries an event of the capture.", "12", "The failing program"),
               Cause("EVENT", "The time between events of a capture that is still on.", "11", "How long did it take?"))),
    908: Page("A capture in this mode must be ended by the thread that began it.",
              "End it in that thread, or begin it with cudaStreamCaptureModeRelaxed.",
              (Cause("THREAD", "One thread began the capture and another ends it.", "12", "Ending in another thread"),)),
    910: Page("The new graph differs from the executable in a way that an update cannot follow.",
              "Ask exec_update(executable, graph): it names the reason and the node. Keep the same nodes in the same order, or instantiate again.",
              (Cause("UPDATE", "Another number, kind or order of nodes, or a copy turned round.", "06", "Why was it refused?"),
               Cause("MEMNODE", "The free node is missing, or there is one allocation more.", "09", "What can a graph with memory nodes not do?")), ("13",)),
    999: Page("The driver gives no better reason.", "Restart the kernel; `labkit doctor` shows whether the driver answers.",
              (Cause("", "The driver or the GPU is in a state that only a restart ends.", "00", "When something breaks"),)),
}

# No code at all: the silent classes, in the order of their silent reports.
SILENT = Page("Every call returned cudaSuccess, and the value is wrong: a sixth of all reports.",
              "Compare with a plain run; watch lists work left out, its .frozen the numbers kept.",
              (Cause("ALIAS", "A result kept from the last replay changes with the next one.", "16", "6 · The three results"),
               Cause("DEVPTR", "A value never changes, or is a stranger's: the graph has the old address.", "16", "5 · The new input"),
               Cause("LEGACY", "Work is missing from every replay: it ran once, beside the capture.", "16", "1 · The tenfold"),
               Cause("HOSTMEM", "A replay copies what the host buffer holds now, not what it held then.", "16", "7 · The three batches"),
               Cause("UPDATE", "An update reaches another node than the one meant.", "13", "One code, three causes"),
               Cause("FROZEN", "A number, branch, print or counter of Python stays as it was captured.", "16", "2 · The rate"),
               Cause("ERRCHK", "Nothing happens: an earlier call was refused and nobody read its code.", "15", "The failing program"),
               Cause("HOSTCB", "A callback sees Python's values as they are at the replay.", "16", "8 · The log"),
               Cause("RNG", "Random numbers repeat with every replay.", "16", "4 · The dice"),
               Cause("DRIVER", "The result differs from one driver to the next."),
               Cause("DEVICE", "The result is wrong where there is more than one GPU.")))

# No code either: the process is gone.
CRASH = Page("The process died inside CUDA or Python: no call came back, so no code was given.",
             "Run the program with in_child(), print before each call, and look at the last line it printed.",
             (Cause("DEVPTR", "A graph with a copy of freed memory was instantiated, or an update led to one.", "14", "Symptom: it worked until the collector ran"),
              Cause("HOSTMEM", "A replay copied from a pinned buffer that was freed.", "14", "Symptom: somebody else's batch"),
              Cause("COMPOSE", "A graph was added to itself as a child.", "17", "Graphs in graphs"),
              Cause("HOSTCB", "A graph called a Python callback that nobody had kept alive.", "16", "8 · The log"),
              Cause("", "A null or destroyed handle, or parameters that are not there.", "15", "An error that comes later")))

# What libraries say by themselves, without a code of CUDA's: {part of the text: (who, Page)}.
_ALIVE = "CUDA was not asked, so the capture is still active."
SPOKEN = {
    "the current stream is capturing, so": ("CuPy's own refusal", Page(
        f"CuPy does not copy to or from the host during a capture. {_ALIVE}",
        "Move the copy out of the capture; inside, keep values on the GPU.",
        (Cause("SYNC", "A copy during the capture: .get(), .item(), .set(), a boolean mask, nonzero.", "11", "In CuPy and PyTorch"),))),
    "during stream capture is currently unsupported": ("CuPy's own refusal", Page(
        f"CuPy does not use this library in a capture. {_ALIVE}",
        "Make this step outside the graph, or write it as kernels.",
        (Cause("LIB", "cuBLAS (a matrix product) or cuRAND (random numbers) during the capture.", "17", "CuPy and PyTorch"),))),
    "during CUDA graph capture unless the CPU tensor is pinned": ("PyTorch's own refusal", Page(
        f"PyTorch does not copy to or from ordinary host memory during a capture. {_ALIVE}",
        "Move the copy out of the capture, or copy from a pinned tensor and keep it alive: it is read at each replay.",
        (Cause("SYNC", "A copy to the host during the capture, such as x.cpu().", "11", "In CuPy and PyTorch"),
         Cause("HOSTMEM", "A tensor is made from a Python list, or from another tensor on the host.", "17", "CuPy and PyTorch")))),
    "can be called during stream capture only if new seed": ("PyTorch's own refusal", Page(
        f"PyTorch does not change the seed during a capture. {_ALIVE}",
        "Set the seed before the capture. A replay then goes on in the sequence.",
        (Cause("RNG", "manual_seed() during the capture.", "16", "4 · The dice"),))),
    "for a CUDA generator not in capture mode": ("PyTorch's own refusal", Page(
        f"PyTorch takes random numbers in a capture from generators that the graph knows. {_ALIVE}",
        "Call graph.register_generator_state(generator) before the capture, or use the default generator.",
        (Cause("RNG", "A generator of one's own during the capture.", "16", "4 · The dice"),))),
    "CUBLAS_STATUS_NOT_INITIALIZED": ("CUBLAS_STATUS_NOT_INITIALIZED", Page(
        "cuBLAS could not make its handle. During a Global or ThreadLocal capture its allocation is refused, and the capture is lost.",
        "Make one matrix product before the capture: the handle stays.",
        (Cause("LIB", "The first matrix product happens during the capture.", "17", "CuPy and PyTorch"),))),
    "an error has invalidated the capture sequence": ("cudaErrorStreamCaptureInvalidated", None),       # CuPy's words for 901
}

# The driver API's names for the same numbers, where they differ by more than their spelling.
DRIVER_NAMES = {
    "CUDA_ERROR_OUT_OF_MEMORY": 2, "CUDA_ERROR_NOT_INITIALIZED": 3, "CUDA_ERROR_DEINITIALIZED": 4, "CUDA_ERROR_DEVICE_UNAVAILABLE": 46,
    "CUDA_ERROR_INVALID_IMAGE": 200, "CUDA_ERROR_INVALID_CONTEXT": 201, "CUDA_ERROR_MAP_FAILED": 205, "CUDA_ERROR_UNMAP_FAILED": 206,
    "CUDA_ERROR_NO_BINARY_FOR_GPU": 209, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE": 216, "CUDA_ERROR_INVALID_HANDLE": 400, "CUDA_ERROR_NOT_FOUND": 500,
    "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE": 708, "CUDA_ERROR_LAUNCH_FAILED": 719,
}

# code: (what it means, what to try), for ok()
CATALOGUE = {code: (page.means, page.fix) for code, page in PAGES.items()}
# code 1, where the learner's line names one of these calls: what to try
_WORK = "Check sizes and the direction. Memory of a graph is there only from its launch to its free; before and after, its address is no memory."
ARGUMENT = {
    "cudaGraphLaunch": "If the graph allocates memory: free what its last launch left before the next, or instantiate with cudaGraphInstantiateFlagAutoFreeOnLaunch. Else check that the executable exists.",
    "cudaFree": "Check whether it was freed already, whether the graph that allocates it has been launched, and that it is the address that an allocation returned.",
    "cudaMemset": _WORK, "cudaMemcpy": _WORK,
}
UNKNOWN = ("The kit has no page for this code.", "Look the name up in the CUDA Runtime API, section Data types, cudaError_t.")
