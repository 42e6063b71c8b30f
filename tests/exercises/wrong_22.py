"""Wrong answers to exercise 22, and what check() says of each."""
import contextlib

from labkit import LabError, cudart, ok, recover

GLOBAL, RELAXED = (getattr(cudart.cudaStreamCaptureMode, f"cudaStreamCaptureMode{mode}") for mode in ("Global", "Relaxed"))
NOT_READY = cudart.cudaError_t.cudaErrorNotReady
EXPECT = {
    "first_failure__asks_at_the_end": "none, because the last of these fails",
    "first_failure__goes_on": "none, because the last of these fails",
    "first_failure__the_last_one": "none, because the last of these fails",
    "first_failure__asks_the_last_error": "none, because the last of these fails",
    "first_failure__asks_the_last_error_cleared_first": "none, because the last of these fails",
    "first_failure__not_ready_is_a_failure": "cudaStreamQuery",
    "first_failure__calls_it_twice": "3. cudaMalloc, 3. cudaMalloc",
    "first_failure__a_dictionary": "1. cudaStreamBeginCapture, 4. launch, 3. cudaMalloc",
    "first_failure__leaves_the_last_error": "cudaGetLastError says 0 cudaSuccess afterwards",
    "first_failure__clears_only_after_a_failure": "still has an older failure",
    "first_failure__peeks": "cudaGetLastError says 0 cudaSuccess afterwards",
    "first_failure__last_error_as_the_code": "back come 'launch' and 1 cudaErrorInvalidValue",
    "first_failure__only_the_code": "back come 'cudaMalloc' and 900",
    "first_failure__the_code_as_a_number": "'cudaMalloc', 900",
    "first_failure__the_tuple_as_the_code": "back come",
    "first_failure__expects_one_value": "ValueError",
    "first_failure__raises": "900 cudaErrorStreamCaptureUnsupported",
    "first_failure__nothing_called": "no call made",
    "guarded__ends_only_a_good_one": "the stream is still capturing",
    "guarded__swallows": "nothing was raised",
    "guarded__returns_in_finally": "nothing was raised",
    "guarded__finally_looks_at_the_end": "that same exception goes on, with 900",
    "guarded__exceptions_only": "work raises OwnInterrupt: no capture is open",
    "guarded__labels_it": "that same exception goes on",
    "guarded__lab_errors_only": "no capture is open afterwards",
    "guarded__leaves_the_graph": "a graph that nobody gets is destroyed",
    "guarded__end_unread": "the end is refused, and the LabError with 901",
    "guarded__begin_unread": "work is not called",
    "guarded__tries_first": "one call of work",
    "guarded__tries_again": "one call of work",
    "guarded__relaxed": "a capture of mode Global",
    "guarded__relaxed_thread": "it was let through",
    "guarded__thread_local": "a capture of mode Global",
    "guarded__takes_the_interrupt": "work raises KeyboardInterrupt: no capture",
    "guarded__another_lab_error": "goes on, with 900",
    "guarded__runs_at_once": "one call of work",
    "guarded__empty": "one call of work",
    "guarded__exits": "SystemExit",
    "guarded__an_executable": "expected back: graph",
}
RIGHT = ("first_failure__other_way", "first_failure__by_name", "first_failure__clears_each_time", "guarded__other_way", "guarded__finally_with_care", "guarded__recovers")


def _failed(code):
    return int(code) not in (0, int(NOT_READY))


def first_failure__asks_at_the_end(calls):
    for _, call in calls:
        call()
    code, = cudart.cudaGetLastError()
    return (calls[-1][0], code) if int(code) else None


def first_failure__goes_on(calls):
    codes = [(name, call()[0]) for name, call in calls]
    cudart.cudaGetLastError()
    return next(((name, code) for name, code in codes if _failed(code)), None)


def first_failure__the_last_one(calls):
    failed = None
    for name, call in calls:
        code = call()[0]
        failed = (name, code) if _failed(code) else failed
    cudart.cudaGetLastError()
    return failed


def first_failure__asks_the_last_error(calls):
    for name, call in calls:
        call()
        code, = cudart.cudaGetLastError()
        if int(code):
            return name, code
    return None


def first_failure__asks_the_last_error_cleared_first(calls):
    cudart.cudaGetLastError()
    return first_failure__asks_the_last_error(calls)


def first_failure__not_ready_is_a_failure(calls):
    failed = None
    for name, call in calls:
        code = call()[0]
        if int(code):
            failed = name, code
            break
    cudart.cudaGetLastError()
    return failed


def first_failure__calls_it_twice(calls):
    failed = None
    for name, call in calls:
        if _failed(call()[0]):
            failed = name, call()[0]
            break
    cudart.cudaGetLastError()
    return failed


def first_failure__a_dictionary(calls):
    return first_failure__other_way(list(dict(calls).items()))


def first_failure__leaves_the_last_error(calls):
    for name, call in calls:
        code = call()[0]
        if _failed(code):
            return name, code
    return None


def first_failure__clears_only_after_a_failure(calls):
    for name, call in calls:
        code = call()[0]
        if _failed(code):
            cudart.cudaGetLastError()
            return name, code
    return None


def first_failure__peeks(calls):
    failed = first_failure__leaves_the_last_error(calls)
    cudart.cudaPeekAtLastError()
    return failed


def first_failure__last_error_as_the_code(calls):
    for name, call in calls:
        if _failed(call()[0]):
            return name, cudart.cudaGetLastError()[0]
    cudart.cudaGetLastError()
    return None


def first_failure__only_the_code(calls):
    failed = first_failure__other_way(calls)
    return failed and failed[1]


def first_failure__the_code_as_a_number(calls):
    failed = first_failure__other_way(calls)
    return failed and (failed[0], int(failed[1]))


def first_failure__the_tuple_as_the_code(calls):
    failed = None
    for name, call in calls:
        result = call()
        if _failed(result[0]):
            failed = name, result
            break
    cudart.cudaGetLastError()
    return failed


def first_failure__expects_one_value(calls):
    failed = None
    for name, call in calls:
        code, = call()
        if _failed(code):
            failed = name, code
            break
    cudart.cudaGetLastError()
    return failed


def first_failure__raises(calls):
    for _, call in calls:
        ok(call())


def first_failure__nothing_called(calls):
    cudart.cudaGetLastError()
    return None


def first_failure__other_way(calls):
    """With ok, and a list handed back."""
    try:
        for name, call in calls:
            try:
                ok(call())
            except LabError as error:
                if error.code != NOT_READY:
                    return [name, error.code]
    finally:
        cudart.cudaGetLastError()


def first_failure__clears_each_time(calls):
    cudart.cudaGetLastError()
    for name, call in calls:
        code, *_ = call()
        cudart.cudaGetLastError()
        if code not in (cudart.cudaError_t.cudaSuccess, NOT_READY):
            return name, code


def first_failure__by_name(calls):
    for name, call in calls:
        code = call()[0]
        if code.name not in ("cudaSuccess", "cudaErrorNotReady"):
            cudart.cudaGetLastError()
            return name, code
    cudart.cudaGetLastError()


def _begin(stream, mode=GLOBAL):
    ok(cudart.cudaStreamBeginCapture(stream, mode))


def _drop(stream):
    code, graph = cudart.cudaStreamEndCapture(stream)
    if not int(code):
        ok(cudart.cudaGraphDestroy(graph))


def guarded__ends_only_a_good_one(stream, work):
    _begin(stream)
    work(stream)
    return ok(cudart.cudaStreamEndCapture(stream))


def guarded__swallows(stream, work):
    _begin(stream)
    try:
        work(stream)
    except BaseException:
        return _drop(stream)
    return ok(cudart.cudaStreamEndCapture(stream))


def guarded__returns_in_finally(stream, work):
    graph = None
    _begin(stream)
    try:
        work(stream)
    finally:
        code, graph = cudart.cudaStreamEndCapture(stream)
        return graph                                             # noqa: B012


def guarded__finally_looks_at_the_end(stream, work):
    done = False
    _begin(stream)
    try:
        work(stream)
        done = True
    finally:
        graph = ok(cudart.cudaStreamEndCapture(stream))          # its 901 takes the place of the reason
        if not done:
            ok(cudart.cudaGraphDestroy(graph))
    return graph


def guarded__exceptions_only(stream, work):
    _begin(stream)
    try:
        work(stream)
    except Exception:
        _drop(stream)
        raise
    return ok(cudart.cudaStreamEndCapture(stream))


def guarded__labels_it(stream, work):
    _begin(stream)
    try:
        work(stream)
    except BaseException as error:
        _drop(stream)
        raise RuntimeError("the capture failed") from error
    return ok(cudart.cudaStreamEndCapture(stream))


def guarded__lab_errors_only(stream, work):
    _begin(stream)
    try:
        work(stream)
    except LabError:
        _drop(stream)
        raise
    return ok(cudart.cudaStreamEndCapture(stream))


def guarded__leaves_the_graph(stream, work):
    _begin(stream)
    try:
        work(stream)
    except BaseException:
        cudart.cudaStreamEndCapture(stream)
        raise
    return ok(cudart.cudaStreamEndCapture(stream))


def guarded__end_unread(stream, work):
    _begin(stream)
    try:
        work(stream)
    except BaseException:
        _drop(stream)
        raise
    return cudart.cudaStreamEndCapture(stream)[1]


def guarded__begin_unread(stream, work):
    cudart.cudaStreamBeginCapture(stream, GLOBAL)
    try:
        work(stream)
    except BaseException:
        _drop(stream)
        raise
    return ok(cudart.cudaStreamEndCapture(stream))


def guarded__tries_first(stream, work):
    work(stream)
    ok(cudart.cudaStreamSynchronize(stream))
    return guarded__other_way(stream, work)


def guarded__tries_again(stream, work):
    for _ in range(2):
        with contextlib.suppress(Exception):
            return guarded__other_way(stream, work)
    return guarded__other_way(stream, work)


def guarded__relaxed(stream, work):
    _begin(stream, RELAXED)
    try:
        work(stream)
    except BaseException:
        _drop(stream)
        raise
    return ok(cudart.cudaStreamEndCapture(stream))


def guarded__relaxed_thread(stream, work):
    before = ok(cudart.cudaThreadExchangeStreamCaptureMode(RELAXED))
    try:
        return guarded__other_way(stream, work)
    finally:
        cudart.cudaThreadExchangeStreamCaptureMode(before)


def guarded__thread_local(stream, work):
    _begin(stream, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal)
    try:
        work(stream)
    except BaseException:
        _drop(stream)
        raise
    return ok(cudart.cudaStreamEndCapture(stream))


def guarded__takes_the_interrupt(stream, work):
    """As if an interrupt were the only thing that need not be tidied up after."""
    _begin(stream)
    try:
        work(stream)
    except KeyboardInterrupt:
        raise
    except BaseException:
        _drop(stream)
        raise
    return ok(cudart.cudaStreamEndCapture(stream))


def guarded__another_lab_error(stream, work):
    _begin(stream)
    try:
        work(stream)
    except LabError as error:
        _drop(stream)
        raise LabError(error.did, error.means, error.try_, error.code) from None
    except BaseException:
        _drop(stream)
        raise
    return ok(cudart.cudaStreamEndCapture(stream))


def guarded__runs_at_once(stream, work):
    work(stream)
    _begin(stream)
    return ok(cudart.cudaStreamEndCapture(stream))


def guarded__empty(stream, work):
    _begin(stream)
    return ok(cudart.cudaStreamEndCapture(stream))


def guarded__exits(stream, work):
    _begin(stream)
    try:
        work(stream)
    except BaseException:
        _drop(stream)
        raise SystemExit from None
    return ok(cudart.cudaStreamEndCapture(stream))


def guarded__an_executable(stream, work):
    return ok(cudart.cudaGraphInstantiate(guarded__other_way(stream, work), 0))


@contextlib.contextmanager
def _captured(stream):
    _begin(stream)
    plan = []
    try:
        yield plan
    except BaseException:
        _drop(stream)
        raise
    plan.append(ok(cudart.cudaStreamEndCapture(stream)))


def guarded__other_way(stream, work):
    """Lesson 15's context manager."""
    with _captured(stream) as plan:
        work(stream)
    return plan[0]


def guarded__finally_with_care(stream, work):
    """One end for both ways; looked at only where work came through."""
    done = False
    _begin(stream)
    try:
        work(stream)
        done = True
    finally:
        end = cudart.cudaStreamEndCapture(stream)
        if not done and not int(end[0]):
            ok(cudart.cudaGraphDestroy(end[1]))
    return ok(end)


def guarded__recovers(stream, work):
    """The kit's own recover, and the begin inside of the try."""
    try:
        _begin(stream)
        work(stream)
        return ok(cudart.cudaStreamEndCapture(stream))
    except BaseException:
        recover(stream)
        raise
