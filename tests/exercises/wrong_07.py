"""Wrong answers to exercise 07, and what check() says of each."""
import numpy as np

from labkit import cudart, ok

GLOBAL = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
UPLOAD = int(cudart.cudaGraphInstantiateFlags.cudaGraphInstantiateFlagUpload)
EXPECT = {
    "ready__not_uploaded": "the executable is uploaded",
    "ready__launched": "before any launch",
    "ready__plain_flag": "InvalidValue",
    "ready__other_stream": "one in another stream",
    "ready__no_wait": "still had work to do",
    "ready__waits_too_early": "still had work to do",
    "ready__graph_left": "it is still there",
    "ready__graph_goes_first": "destroyed graph",
    "ready__executable_gone": "has destroyed",
    "ready__uploads_another": "the executable is uploaded",
    "ready__another_left": "1 executable not destroyed",
    "ready__tuple": "found: cudaError_t",
    "with_flags__without_them": "an executable made with 1",
    "with_flags__plain_call": "InvalidValue",
    "with_flags__drops_upload": "an upload in the stream",
    "with_flags__uploads_elsewhere": "in another stream",
    "with_flags__uploads_in_the_default_stream": "in the default stream",
    "with_flags__wrong_way_round": "the executable and the flags that are read back, in this order",
    "with_flags__says_what_was_asked": "as what is read back",
    "with_flags__executable_only": "the flags that are read back",
    "with_flags__always_auto_free": "made with 0",
    "with_flags__a_word": "as what is read back",
    "with_flags__always_zero": "1 as what is read back",
    "with_flags__destroys_the_graph": "the graph is left alone",
    "with_flags__another_left": "1 executable not destroyed",
    "with_flags__a_truth": "as what is read back",
    "with_flags__launches": "before any launch",
    "outlive__captures_in_the_queue": "called with the queue",
    "outlive__no_graph": "called with the queue",
    "outlive__own_stream_no_graph": "1 launch of an executable",
    "outlive__waits": "nothing is waited for",
    "outlive__waits_for_the_device": "cudaDeviceSynchronize",
    "outlive__waits_by_asking": "the queue is still busy",
    "outlive__waits_by_freeing": "the queue is still busy",
    "outlive__waits_for_an_event": "cudaEventSynchronize",
    "outlive__blocking_stream": "a non-blocking stream",
    "outlive__blocking_stream_with_flags": "a non-blocking stream",
    "outlive__launches_in_its_own": "in another stream",
    "outlive__stream_left": "1 stream not destroyed",
    "outlive__executable_left": "1 executable not destroyed",
    "outlive__graph_left": "1 graph not destroyed",
    "outlive__executable_goes_first": "destroyed executable",
    "outlive__graph_goes_first": "destroyed graph",
    "outlive__never_launched": "expected y",
    "outlive__twice": "expected y",
    "outlive__left_open": "left a capture open",
    "outlive__stream_goes_first": "destroyed stream",
}
RIGHT = ("ready__other_way", "ready__graph_goes_before_the_upload", "with_flags__other_way", "with_flags__short_form_where_it_can", "with_flags__a_number_of_numpy", "with_flags__through_a_clone", "outlive__other_way")


def _made(graph):
    return ok(cudart.cudaGraphInstantiate(graph, 0))


def _upload(executable, stream):
    ok(cudart.cudaGraphUpload(executable, stream))
    ok(cudart.cudaStreamSynchronize(stream))


def _drop(graph):
    ok(cudart.cudaGraphDestroy(graph))


def _stream():
    return ok(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))


def ready__not_uploaded(stream, graph):
    executable = _made(graph)
    ok(cudart.cudaStreamSynchronize(stream))
    _drop(graph)
    return executable


def ready__launched(stream, graph):
    executable = _made(graph)
    ok(cudart.cudaGraphLaunch(executable, stream))         # it is uploaded now, and has run
    ok(cudart.cudaStreamSynchronize(stream))
    _drop(graph)
    return executable


def ready__plain_flag(stream, graph):
    return ok(cudart.cudaGraphInstantiate(graph, UPLOAD))


def ready__other_stream(stream, graph):
    executable = _made(graph)
    _upload(executable, 0)
    ok(cudart.cudaDeviceSynchronize())
    _drop(graph)
    return executable


def ready__no_wait(stream, graph):
    executable = _made(graph)
    ok(cudart.cudaGraphUpload(executable, stream))
    _drop(graph)
    return executable


def ready__graph_left(stream, graph):
    executable = _made(graph)
    _upload(executable, stream)
    return executable


def ready__graph_goes_first(stream, graph):
    _drop(graph)
    return _made(graph)


def ready__executable_gone(stream, graph):
    executable = _made(graph)
    _upload(executable, stream)
    _drop(graph)
    ok(cudart.cudaGraphExecDestroy(executable))
    return executable


def ready__uploads_another(stream, graph):
    _upload(_made(graph), stream)
    executable = _made(graph)
    _drop(graph)
    return executable


def ready__tuple(stream, graph):
    made = cudart.cudaGraphInstantiate(graph, 0)
    _upload(made[1], stream)
    _drop(graph)
    return made


def _with_params(stream, graph, flags):
    params = cudart.cudaGraphInstantiateParams()
    params.flags, params.uploadStream = int(flags), stream
    return ok(cudart.cudaGraphInstantiateWithParams(graph, params))


def ready__other_way(stream, graph):
    """The long form uploads by itself."""
    executable = _with_params(stream, graph, UPLOAD)
    ok(cudart.cudaDeviceSynchronize())
    _drop(graph)
    return executable


def ready__graph_goes_before_the_upload(stream, graph):
    executable = _made(graph)
    _drop(graph)
    _upload(executable, stream)
    return executable


def _read(executable):
    return executable, ok(cudart.cudaGraphExecGetFlags(executable))


def with_flags__without_them(stream, graph, flags):
    return _read(_made(graph))


def with_flags__plain_call(stream, graph, flags):
    return _read(ok(cudart.cudaGraphInstantiate(graph, flags)))


def with_flags__drops_upload(stream, graph, flags):
    return _read(ok(cudart.cudaGraphInstantiate(graph, flags & ~UPLOAD)))


def with_flags__uploads_elsewhere(stream, graph, flags):
    return _read(_with_params(_stream(), graph, flags))


def with_flags__uploads_in_the_default_stream(stream, graph, flags):
    return _read(_with_params(0, graph, flags))


def with_flags__wrong_way_round(stream, graph, flags):
    return _read(_with_params(stream, graph, flags))[::-1]


def with_flags__says_what_was_asked(stream, graph, flags):
    return _with_params(stream, graph, flags), flags


def with_flags__executable_only(stream, graph, flags):
    return _with_params(stream, graph, flags)


def with_flags__always_auto_free(stream, graph, flags):
    return _read(_with_params(stream, graph, flags | 1))


def with_flags__a_word(stream, graph, flags):
    executable = _with_params(stream, graph, flags)
    return executable, str(_read(executable)[1])


def with_flags__always_zero(stream, graph, flags):
    return _with_params(stream, graph, flags), 0


def with_flags__destroys_the_graph(stream, graph, flags):
    executable = _with_params(stream, graph, flags)
    _drop(graph)
    return _read(executable)


def with_flags__launches(stream, graph, flags):
    executable = _with_params(stream, graph, flags)
    ok(cudart.cudaGraphLaunch(executable, stream))
    return _read(executable)


def with_flags__other_way(stream, graph, flags):
    """The short form for what it takes, then an upload by a call of its own."""
    executable = ok(cudart.cudaGraphInstantiate(graph, flags & ~UPLOAD))
    if flags & UPLOAD:
        ok(cudart.cudaGraphUpload(executable, stream))
    return list(_read(executable))


def with_flags__short_form_where_it_can(stream, graph, flags):
    return _read(_with_params(stream, graph, flags) if flags & UPLOAD else ok(cudart.cudaGraphInstantiateWithFlags(graph, flags)))


def _capture(stream, work):
    ok(cudart.cudaStreamBeginCapture(stream, GLOBAL))
    work(stream)
    return ok(cudart.cudaStreamEndCapture(stream))


def _outlive(queue, work, capture=None, run=None, wait=None, left=(), runs=1):
    own = _stream()
    graph = _capture(capture or own, work)
    executable = _made(graph)
    for _ in range(runs):
        ok(cudart.cudaGraphLaunch(executable, run(own) if run else queue))
    if wait:
        wait(queue)
    for name, destroy, made in (("graph", cudart.cudaGraphDestroy, graph), ("stream", cudart.cudaStreamDestroy, own), ("executable", cudart.cudaGraphExecDestroy, executable)):
        if name not in left:
            ok(destroy(made))


def outlive__captures_in_the_queue(queue, work):
    _outlive(queue, work, capture=queue)


def outlive__no_graph(queue, work):
    work(queue)


def outlive__own_stream_no_graph(queue, work):
    own = _stream()
    work(own)
    ok(cudart.cudaStreamDestroy(own))


def outlive__waits(queue, work):
    _outlive(queue, work, wait=lambda queue: ok(cudart.cudaStreamSynchronize(queue)))


def outlive__waits_for_the_device(queue, work):
    _outlive(queue, work, wait=lambda queue: ok(cudart.cudaDeviceSynchronize()))


def outlive__launches_in_its_own(queue, work):
    _outlive(queue, work, run=lambda own: own)


def outlive__stream_left(queue, work):
    _outlive(queue, work, left=("stream",))


def outlive__executable_left(queue, work):
    _outlive(queue, work, left=("executable",))


def outlive__graph_left(queue, work):
    _outlive(queue, work, left=("graph",))


def outlive__executable_goes_first(queue, work):
    own = _stream()
    graph = _capture(own, work)
    executable = _made(graph)
    for destroy, made in ((cudart.cudaGraphDestroy, graph), (cudart.cudaGraphExecDestroy, executable), (cudart.cudaStreamDestroy, own)):
        ok(destroy(made))
    ok(cudart.cudaGraphLaunch(executable, queue))


def outlive__graph_goes_first(queue, work):
    own = _stream()
    graph = _capture(own, work)
    _drop(graph)
    ok(cudart.cudaGraphLaunch(_made(graph), queue))


def outlive__never_launched(queue, work):
    _outlive(queue, work, runs=0)


def outlive__twice(queue, work):
    _outlive(queue, work, runs=2)


def outlive__left_open(queue, work):
    own = _stream()
    ok(cudart.cudaStreamBeginCapture(own, GLOBAL))
    work(own)


def outlive__stream_goes_first(queue, work):
    own = _stream()
    ok(cudart.cudaStreamDestroy(own))
    _made(_capture(own, work))


def outlive__other_way(queue, work):
    """Everything is destroyed at the end, the stream first."""
    own = ok(cudart.cudaStreamCreateWithPriority(cudart.cudaStreamNonBlocking, 0))
    graph = _capture(own, work)
    ok(cudart.cudaStreamDestroy(own))
    executable = ok(cudart.cudaGraphInstantiateWithFlags(graph, 0))
    ok(cudart.cudaGraphLaunch(executable, queue))
    ok(cudart.cudaGraphExecDestroy(executable))
    ok(cudart.cudaGraphDestroy(graph))


def ready__another_left(stream, graph):
    _made(graph)
    return ready__other_way(stream, graph)


def with_flags__another_left(stream, graph, flags):
    _made(graph)
    return _read(_with_params(stream, graph, flags))


def with_flags__a_truth(stream, graph, flags):
    executable, read = _read(_with_params(stream, graph, flags))
    return executable, bool(read)


def with_flags__a_number_of_numpy(stream, graph, flags):
    executable, read = _read(_with_params(stream, graph, flags))
    return executable, np.int64(read)


def with_flags__through_a_clone(stream, graph, flags):
    """A copy of one's own, which one destroys; the given graph stays."""
    clone = ok(cudart.cudaGraphClone(graph))
    executable = _with_params(stream, clone, flags)
    _drop(clone)
    return _read(executable)


def outlive__waits_by_asking(queue, work):
    def ask(queue):
        while int(cudart.cudaStreamQuery(queue)[0]):
            pass
    _outlive(queue, work, wait=ask)


def outlive__waits_by_freeing(queue, work):
    _outlive(queue, work, wait=lambda queue: ok(cudart.cudaFree(ok(cudart.cudaMalloc(64)))))


def outlive__waits_for_an_event(queue, work):
    event = ok(cudart.cudaEventCreate())
    _outlive(queue, work, wait=lambda queue: (ok(cudart.cudaEventRecord(event, queue)), ok(cudart.cudaEventSynchronize(event))))
    ok(cudart.cudaEventDestroy(event))


def _own(queue, work, own):
    graph = _capture(own, work)
    executable = _made(graph)
    ok(cudart.cudaGraphLaunch(executable, queue))
    ok(cudart.cudaGraphExecDestroy(executable))
    _drop(graph)
    ok(cudart.cudaStreamDestroy(own))


def outlive__blocking_stream(queue, work):
    _own(queue, work, ok(cudart.cudaStreamCreate()))


def outlive__blocking_stream_with_flags(queue, work):
    _own(queue, work, ok(cudart.cudaStreamCreateWithFlags(flags=cudart.cudaStreamDefault)))


def ready__waits_too_early(stream, graph):
    executable = _made(graph)
    ok(cudart.cudaStreamSynchronize(stream))
    ok(cudart.cudaGraphUpload(executable, stream))
    _drop(graph)
    return executable
