"""Wrong answers to exercise 19, and what check() says of each."""
import threading

from labkit import cudart, ok

MODES = {mode.name.removeprefix("cudaStreamCaptureMode"): mode for mode in cudart.cudaStreamCaptureMode}
EXPECT = {
    "beside_a_helper__global": "refused with 900",
    "beside_a_helper__global_unchecked": "refused with 900",
    "beside_a_helper__own_mode_only": "refused with 900",
    "beside_a_helper__relaxed": "still refused",
    "beside_a_helper__mode_left_relaxed": "your thread's own mode",
    "beside_a_helper__helper_never_called": "it was not called",
    "beside_a_helper__helper_before": "did not capture",
    "beside_a_helper__helper_after": "did not capture",
    "beside_a_helper__helper_first": "after 0 calls of work",
    "beside_a_helper__helper_twice": "2 calls",
    "beside_a_helper__work_at_once": "1 of 2 in the capture",
    "beside_a_helper__work_once": "1 of 1 in the capture",
    "beside_a_helper__ended_elsewhere": "908",
    "beside_a_helper__no_graph": "expected back: graph",
    "beside_a_helper__left_open": "left a capture open",
    "in_relaxed__not_at_all": "Relaxed while call runs",
    "in_relaxed__never_put_back": "Global again",
    "in_relaxed__always_global": "again at the end",
    "in_relaxed__not_when_it_raises": "though call raised",
    "in_relaxed__swallows": "it was lost",
    "in_relaxed__only_exceptions": "though call raised",
    "in_relaxed__thread_local": "Relaxed while call runs",
    "in_relaxed__calls_twice": "2 calls",
    "in_relaxed__never_calls": "0 calls",
    "in_relaxed__returns_nothing": "what call returned comes back",
    "in_relaxed__another_thread": "raised by the check",
    "in_relaxed__after_the_call": "Relaxed while call runs",
}
RIGHT = ("beside_a_helper__from_a_thread", "in_relaxed__without_finally", "in_relaxed__reads_first")


def _begin(stream, mode="ThreadLocal"):
    ok(cudart.cudaStreamBeginCapture(stream, MODES[mode]))


def _end(stream):
    return ok(cudart.cudaStreamEndCapture(stream))


def _exchange(mode):
    return ok(cudart.cudaThreadExchangeStreamCaptureMode(mode))


def _plain(stream, work, helper, mode):
    _begin(stream, mode)
    work(stream)
    helper()
    work(stream)
    return _end(stream)


def beside_a_helper__global(stream, work, helper):
    return _plain(stream, work, helper, "Global")


def beside_a_helper__global_unchecked(stream, work, helper):
    _begin(stream, "Global")
    work(stream)
    helper()
    return cudart.cudaStreamEndCapture(stream)[1]


def beside_a_helper__own_mode_only(stream, work, helper):
    before = _exchange(MODES["Relaxed"])
    try:
        return _plain(stream, work, helper, "Global")
    finally:
        _exchange(before)


def beside_a_helper__relaxed(stream, work, helper):
    return _plain(stream, work, helper, "Relaxed")


def beside_a_helper__mode_left_relaxed(stream, work, helper):
    _exchange(MODES["Relaxed"])
    return _plain(stream, work, helper, "ThreadLocal")


def beside_a_helper__helper_never_called(stream, work, helper):
    return _plain(stream, work, lambda: None, "Global")


def beside_a_helper__helper_before(stream, work, helper):
    helper()
    return _plain(stream, work, lambda: None, "Global")


def beside_a_helper__helper_after(stream, work, helper):
    graph = _plain(stream, work, lambda: None, "Global")
    helper()
    return graph


def beside_a_helper__helper_first(stream, work, helper):
    _begin(stream)
    helper()
    work(stream)
    work(stream)
    return _end(stream)


def beside_a_helper__helper_twice(stream, work, helper):
    return _plain(stream, work, lambda: (helper(), helper()), "ThreadLocal")


def beside_a_helper__work_at_once(stream, work, helper):
    _begin(stream)
    work(stream)
    helper()
    graph = _end(stream)
    work(stream)
    return graph


def beside_a_helper__work_once(stream, work, helper):
    _begin(stream)
    work(stream)
    helper()
    return _end(stream)


def beside_a_helper__ended_elsewhere(stream, work, helper):
    _begin(stream)
    work(stream)
    helper()
    work(stream)
    ended = []
    other = threading.Thread(target=lambda: ended.append(cudart.cudaStreamEndCapture(stream)))
    other.start()
    other.join(5)
    return ok(ended[0])


def beside_a_helper__no_graph(stream, work, helper):
    _plain(stream, work, helper, "ThreadLocal")


def beside_a_helper__left_open(stream, work, helper):
    _begin(stream)
    work(stream)
    helper()
    work(stream)


def beside_a_helper__from_a_thread(stream, work, helper):
    """helper() called from a thread of the learner's own."""
    def elsewhere():
        other = threading.Thread(target=helper)
        other.start()
        other.join(10)
    return _plain(stream, work, elsewhere, "ThreadLocal")


def in_relaxed__not_at_all(call):
    return call()


def in_relaxed__never_put_back(call):
    _exchange(MODES["Relaxed"])
    return call()


def in_relaxed__always_global(call):
    _exchange(MODES["Relaxed"])
    try:
        return call()
    finally:
        _exchange(MODES["Global"])


def in_relaxed__not_when_it_raises(call):
    before = _exchange(MODES["Relaxed"])
    result = call()
    _exchange(before)
    return result


def in_relaxed__swallows(call):
    before = _exchange(MODES["Relaxed"])
    try:
        return call()
    except BaseException:
        return None
    finally:
        _exchange(before)


def in_relaxed__only_exceptions(call):
    before = _exchange(MODES["Relaxed"])
    try:
        result = call()
    except Exception:
        _exchange(before)
        raise
    _exchange(before)
    return result


def in_relaxed__thread_local(call):
    before = _exchange(MODES["ThreadLocal"])
    try:
        return call()
    finally:
        _exchange(before)


def in_relaxed__calls_twice(call):
    before = _exchange(MODES["Relaxed"])
    try:
        call()
        return call()
    finally:
        _exchange(before)


def in_relaxed__never_calls(call):
    _exchange(_exchange(MODES["Relaxed"]))


def in_relaxed__returns_nothing(call):
    before = _exchange(MODES["Relaxed"])
    try:
        call()
    finally:
        _exchange(before)


def in_relaxed__another_thread(call):
    """The mode of another thread: only there is it Relaxed, and an exception is lost on the way."""
    found = []

    def there():
        _exchange(MODES["Relaxed"])
        try:
            found.append((call(), None))
        except BaseException as error:
            found.append((None, error))
    other = threading.Thread(target=there)
    other.start()
    other.join(5)
    if found[0][1] is not None:
        raise RuntimeError(str(found[0][1]))
    return found[0][0]


def in_relaxed__after_the_call(call):
    result = call()
    _exchange(_exchange(MODES["Relaxed"]))
    return result


def in_relaxed__without_finally(call):
    before = _exchange(MODES["Relaxed"])
    try:
        result = call()
    except BaseException:
        _exchange(before)
        raise
    _exchange(before)
    return result


def in_relaxed__reads_first(call):
    before = _exchange(MODES["Global"])
    _exchange(MODES["Relaxed"])
    try:
        return call()
    finally:
        _exchange(before)
