"""The cases as data: what was reported, what a learner has to find, and hints that ask.

code: the first that was not cudaSuccess, whoever got it; 0 where every call succeeded. lines: pieces of
text, each of one guilty line of the program; where several lines can be called guilty, any of them is right.
"""
from typing import NamedTuple


class Report(NamedTuple):
    kind: str
    code: int
    lines: tuple
    symptom: str
    hints: tuple


REPORTS = {
    "01": Report(
        "SYNC", 900, ("cudart.cudaStreamQuery",),
        "A program with a progress bar. Captured, its last launch is refused: the capture was broken before. No earlier line complained.",
        ("901 is never the first code. Which lines before the refused launch drop the code they get?",
         "While a stream captures, nothing runs. What could a question about its progress be answered with?",
         "Does the progress have to be known at that moment, or could the question be asked before or after?")),
    "02": Report(
        "THREAD", 900, ("cudart.cudaStreamBeginCapture",),
        "In the notebook it works. In the service the capture breaks in the middle of the model. The service has a watchdog thread that asks now and then whether an event is done.",
        ("The program's own calls are fine. Who else calls CUDA while the capture is on, and what did he get?",
         "Which argument says what other threads may do while this capture is on?",
         "Lesson 02 lists three modes. Which of them mind what another thread asks?")),
    "03": Report(
        "MEMNODE", 1, ("cudart.cudaMallocAsync", "cudart.cudaGraphInstantiate"),
        "The first request is answered and right. The second launch of the same executable answers 1.",
        ("What kinds of nodes does this graph have? What does each launch take, and what does it give back?",
         "What did the first launch leave behind that the second cannot take again?",
         "Lesson 09 shows two ways out: one is a call inside the capture, one is a flag. Which fits here?")),
    "04": Report(
        "JOIN", 904, ("cudart.cudaEventRecord(join", "ok(launch(side, cases.shift"),
        "A second stream does half of the work. Every call succeeds but the last: the end of the capture is refused. The join is there, one can see it.",
        ("What does an event stand for: for the whole stream, or for what was in it when the event was recorded?",
         "For which of the kernels on the side stream does the first stream wait?",
         "In which order would record, wait and the last kernel of the side stream have to come?")),
    "05": Report(
        "ERRCHK", 1, ("launch(stream, kernels.scale",),
        "Tested with a thousand floats, and all is well. With 1025 floats, instantiating the graph answers 1, and the graph is blamed.",
        ("Which codes does this program look at, and which does it drop?",
         "What would you see if each of its calls stood in ok( )? Which would be the first to complain?",
         "What changes in the launches when there are 1025 floats and not 1024? What is the most that CUDA takes there?")),
    "06": Report(
        "EVENT", 1, ("cudart.cudaEventRecord(start", "cudart.cudaEventRecord(stop"),
        "The result is right. Asked for the time between the two events, CUDA refuses, and does not say why.",
        ("How many nodes does the graph have? Is there one for each event?",
         "What does an ordinary record in a capture stand for: a moment, or a place in the graph?",
         "Lesson 03 ends with an event that really happens at each replay. What was different about its record?")),
    "07": Report(
        "TEARDOWN", 900, ('held["step"] = None',),
        "The first capture works, each later one is lost in its middle. No line of the program destroys anything.",
        ("What is different at the second call? What does `held` hold by then?",
         "Which line runs code that you do not see, and when does Python run it?",
         "May an executable be destroyed while a capture is on? When could the old Step go instead?")),
    "08": Report(
        "COMPOSE", 900, ("cudart.cudaGraphLaunch",),
        "One team has a graph and its executable, the other captures its own work after it. Launched one after the other both work; captured together they don't.",
        ("Which call of the capture is the first that is refused? What does its code mean?",
         "Is an executable something that a capture can take in? Is a graph?",
         "How can a whole graph be one node of another? And how can the second kernel be made to wait for that node?")),
    "09": Report(
        "LEGACY", 0, ("ok(add_bias(y, bias))", "def add_bias", "return launch(stream"),
        "No error. The bias was seen to be added once, during the capture. In every launch it is missing.",
        ("How many nodes does the graph have, and how many kernels did you want?",
         "The helper says which stream it uses. Which, in this call?",
         "What does a launch in the default stream do while a non-blocking stream captures?")),
    "10": Report(
        "DEVPTR", 0, ("x = to_device(new)", "nonlocal x"),
        "No error. The loss never changes after the first batch, whatever is fed.",
        ("What does the captured kernel know of x: its name, its contents, or its address?",
         "After a feed, where do the new numbers lie, and where does the kernel read?",
         "Could the new numbers come to the old place?")),
    "11": Report(
        "HOSTMEM", 0, ("cudart.cudaMemcpyAsync",),
        "No error, and the first launch is right. After the caller has gone on with his own work, the same launch gives his new numbers.",
        ("When is the host array read: when the copy is captured, or at each launch?",
         "Who else may write into that array between two launches?",
         "Where could the table be kept so that only the graph uses it, and who keeps it alive there?")),
    "12": Report(
        "FROZEN", 0, ("ok(launch(stream, kernels.axpy", "rate[0] = r"),
        "No error. The learning rate is lowered in each epoch, and the training goes on as if it were not.",
        ("When is rate[0] read: at each launch, or once?",
         "What does the node hold: the list, or the number that was in it?",
         "Name two ways to tell a captured kernel another number: one changes the node, one lets the kernel read memory. Which do you like?")),
    "13": Report(
        "RNG", 0, ("seed = int", "ok(launch(stream, cases.noise"),
        "No error, and good noise. But it is the same noise in every launch; a new process gives other noise.",
        ("How often is a seed drawn: at each launch, or once?",
         "Where would the seed have to be so that a launch can change it?",
         "`cases.noise_at` takes (y, address of a seed, n) and `cases.advance` (address of a seed, what to add). Who would have to move the seed on, and when?")),
    "14": Report(
        "ALIAS", 0, ("results.append(y)",),
        "No error. Four batches, four results, and all four are the last one's.",
        ("How many buffers are in the list at the end?",
         "Where does each launch write its result? What happens to the one before?",
         "At what moment would a result have to be taken to safety?")),
    "15": Report(
        "HOSTCB", 800, ("cudart.cudaMemcpy(first",),
        "No error is seen. The function is called at each launch, and what it logs is always 0.",
        ("The function makes a call. Does anybody look at its code?",
         "What may a function that a graph calls not do?",
         "The graph itself can bring y[0] to the host before it calls. Which kind of node does that?")),
    "16": Report(
        "UPDATE", 0, ("cudart.cudaGraphKernelNodeSetParams",),
        "No error: the setter succeeds each time. Yet every launch doubles all of y, whatever count was set.",
        ("What was changed by the setter: the graph, or the executable? Which of them is launched?",
         "Lesson 05 reads a node back. What does this one say after the call, and does that reach what is launched?",
         "Which setter of lesson 05 takes three arguments, and why does it need one more?")),
}

# class word: what would be there to be seen
KINDS = {
    "SYNC": "a call that waits for the capturing stream, or asks about it", "LEGACY": "work in the default stream beside the capture",
    "THREAD": "another thread, or a mode that minds what it does", "UPDATE": "a change of an executable that is refused, or reaches something else",
    "DEVPTR": "a device address that no longer is the buffer that was meant", "HOSTMEM": "host memory that changes between capture and launch",
    "MEMNODE": "an allocation in the graph, and who frees it", "ERRCHK": "codes that nobody looks at", "LIB": "a library that allocates behind your back",
    "WARM": "something that is done for the first time in a capture", "TEARDOWN": "something that is destroyed while a capture is on",
    "JOIN": "a stream that was forked and not joined with all its work", "FROZEN": "a Python value that was read once",
    "RNG": "random numbers that are drawn once", "ALIAS": "one buffer for several results", "HOSTCB": "a Python function that a graph calls",
    "EVENT": "an event that stands for a place in a graph", "RESOURCE": "more memory or executables than there is room for",
    "COMPOSE": "a graph inside a graph",
}
