"""The classes of failures that lessons 11 to 17 treat: what no other chapter asks, and which scenario stands for which class."""
from tests.conformance.harness import scenario


@scenario("A graph's copy reads pinned memory when it runs, and pageable memory at the call of the launch.", control="not changed",
          variants={"not changed": dict(change=False), "changed while the launch waits": dict(change=True)},
          each={"host": ("pinned", "pageable")}, open=True)
def when_a_graph_reads_the_host(t, change, host):
    stream, x, y = t.stream(), t.device([0] * 4), t.device([0] * 4)
    buffer = getattr(t, host)([1] * 4)
    t.begin(stream)
    t.cudaMemcpyAsync(x.ptr, buffer.ptr, buffer.nbytes, t.copies("HostToDevice"), stream)
    t.axpy(stream, y, x, 1)
    executable = t.instantiate(t.end(stream))
    go = t.gate(stream)
    for value in (1, 2, 3):
        if change:
            t.write(buffer, [value] * 4)
        t.cudaGraphLaunch(executable, stream)
    go()
    t.values(y, stream)
    t.recovered(stream)


@scenario("A query that says not ready is no error: nothing remembers it.", control="done",
          variants={"done": dict(pending=False), "pending": dict(pending=True)}, each={"what": ("stream", "event")}, open=True)
def what_a_query_leaves_behind(t, pending, what):
    stream, x, event = t.stream(), t.device([0] * 4), t.event()
    go = t.gate(stream)
    t.fill(stream, x, 3)
    t.cudaEventRecord(event, stream)
    if not pending:
        go()
        t.cudaStreamSynchronize(stream)
    t.cudaStreamQuery(stream) if what == "stream" else t.cudaEventQuery(event)
    t.cudaPeekAtLastError()
    go()
    t.values(x, stream)
    t.recovered(stream)


@scenario("A stream whose capture is lost does not tell its priority.", control="capturing", variants={"capturing": dict(lost=False), "lost": dict(lost=True)},
          open=True)
def the_priority_of_a_lost_capture(t, lost):
    stream = t.stream()
    t.begin(stream)
    if lost:
        t.cudaMalloc(64)
    t.cudaStreamGetPriority(stream)
    t.status(stream)
    t.end(stream)
    t.recovered(stream)


@scenario("Output of a replay is overwritten by the next one, unless it was copied out in between.", control="copied out",
          variants={"copied out": dict(copy=True), "read at the end": dict(copy=False)}, each={"times": ("2", "3")})
def reading_the_output_of_several_replays(t, copy, times):
    stream, y, kept = t.stream(), t.device([0] * 4), [t.device([0] * 4) for _ in range(int(times))]
    t.begin(stream)
    t.axpy(stream, y, t.ones, 1)
    executable = t.instantiate(t.end(stream))
    for one in kept:
        t.cudaGraphLaunch(executable, stream)
        if copy:
            t.cudaMemcpyAsync(one.ptr, y.ptr, y.nbytes, t.copies("DeviceToDevice"), stream)
    for one in kept:
        t.values(one if copy else y, stream)
    t.recovered(stream)


@scenario("A program that checks nothing: the first refusal ends the capture, the null graph fails every step after it, and what the last error says.",
          control="sound", variants={"sound": dict(broken=False), "an allocation in the capture": dict(broken=True)},
          each={"error": ("left", "got after each")}, open=True)
def a_program_that_checks_nothing(t, broken, error):
    stream, y = t.stream(), t.device([0] * 4)

    def say():
        t.cudaPeekAtLastError()
        if error == "got after each":
            t.cudaGetLastError()
            t.cudaGetLastError()
    t.begin(stream)
    t.fill(stream, y, 1)
    if broken:
        t.cudaMalloc(64)
        say()
    t.axpy(stream, y, t.ones, 10)
    say()
    t.cudaMemsetAsync(y.ptr, 0, 8, stream)
    graph = t.end(stream)
    say()
    executable = t.instantiate(graph)
    say()
    t.cudaGraphLaunch(executable, stream)
    say()
    t.cudaStreamSynchronize(stream)
    say()
    t.cudaGraphExecDestroy(executable)
    t.cudaGraphDestroy(graph)
    say()
    t.values(y)
    t.recovered(stream)


# The classes of public reports, and the scenarios (or calls probed inside a capture) in which the hardware shows them.
CLASSES = {
    "SYNC": ("waiting_for_the_capturing_stream", "querying_an_event_beside_a_capture", "a_copy_left_out_of_the_graph", "cudaStreamQuery"),
    "LEGACY": ("the_legacy_stream_beside_a_capture", "a_synchronous_copy_waits_for_blocking_streams"),
    "THREAD": ("own_mode_and_the_mode_of_the_capture", "malloc_beside_a_capture", "captures_of_two_threads"),
    "UPDATE": ("an_impossible_kernel_update_is_refused", "a_whole_update_and_the_direction", "an_update_to_freed_memory"),
    "DEVPTR": ("a_replay_reads_the_new_owners_values", "a_node_on_freed_memory", "a_kernel_at_address_0"),
    "HOSTMEM": ("when_a_graph_reads_the_host", "changing_a_pageable_buffer_after_the_copy"),
    "MEMNODE": ("relaunching_with_an_unfreed_allocation", "cloning_an_allocating_graph", "auto_free_on_launch"),
    "ERRCHK": ("the_latest_refusal_is_the_last_error", "a_graph_that_is_null", "a_program_that_checks_nothing"),
    "WARM": ("malloc_beside_a_capture", "cudaMemPoolCreate"), "LIB": ("malloc_beside_a_capture", "creating_streams_and_events_beside_a_capture"),
    "TEARDOWN": ("destroying_an_executable_beside_a_capture", "destroying_a_forked_stream", "destroying_in_any_order"),
    "JOIN": ("a_fork_with_work_and_no_join_is_unjoined", "waiting_for_an_event_from_outside_breaks_isolation", "two_captures_cannot_merge"),
    "FROZEN": ("scalars_are_frozen_memory_is_not",), "RNG": ("scalars_are_frozen_memory_is_not",),
    "ALIAS": ("reading_the_output_of_several_replays",),
    "HOSTCB": ("a_host_node_runs_at_every_launch", "a_host_function_may_not_call_cuda"),
    "EVENT": ("the_time_between_events", "a_captured_event_inside_the_capture"),
    "RESOURCE": ("several_executables_of_one_graph",),
    "COMPOSE": ("cudaGraphLaunch", "a_child_that_cannot_be"), "SHARE": ("one_executable_in_two_streams",),
}
