"""Rules of the simulator, broken one at a time: each must be noticed.

A mutation replaces one piece of text in one file of labkit/sim, in a child process only, through an
import hook; the file on disk stays as it is. `broken_by(mutation, runner)` says what that broke:

    broken_by(mutation, "tests.conformance.mutations:failing_scenarios")    -> ["a_fork_with_...: ..."]

A runner is a function `runner(mutation, limit)` that looks for failures in that process and returns
their names, at most `limit`; anything that replays recordings can be one.
"""
import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SIM = ROOT / "labkit" / "sim"
PATIENCE = 120  # seconds; a rule whose breaking hangs the simulator counts as noticed


@dataclass
class Mutation:
    """`old` becomes `new` in a file of labkit/sim; `rule` is the sentence it breaks; `first` what to try first: scenarios, or
    recorded random programs ("program 57") where only those show the rule."""
    name: str
    file: str
    old: str
    new: str
    rule: str
    first: tuple = ()

    @property
    def path(self):
        return SIM / self.file

    @property
    def module(self):
        return ".".join(("labkit", "sim", *Path(self.file).with_suffix("").parts))

    def source(self):
        """The text of the file with the rule broken."""
        text = self.path.read_text(encoding="utf-8")
        count = text.count(self.old)
        if count != 1:
            raise ValueError(f"{self.name}: its text is {count} times in {self.file}; the rule has moved, so move the mutation")
        return text.replace(self.old, self.new)


MUTATIONS = []


def breaks(name, file, rule, old, new, *first):
    MUTATIONS.append(Mutation(name, file, old, new, rule, first))


# -- begin and end --------------------------------------------------------------------------------------------
breaks("legacy begins", "capture.py", "Only the legacy stream refuses to capture.",
       'if stream.legacy:\n        raise Refused("StreamCaptureUnsupported")', "", "begin_on_the_legacy_stream_is_refused")
breaks("begin twice", "capture.py", "A capturing stream cannot begin again.",
       'if stream.capture is not None:\n        raise Refused("IllegalState")\n    if any', "if any", "begin_on_a_capturing_stream")
breaks("end anywhere", "capture.py", "Only the origin ends a capture.",
       'raise Refused("StreamCaptureUnmatched")', 'raise Refused("StreamCaptureUnjoined")', "ending_on_a_forked_stream_is_unmatched")
breaks("unmatched is harmless", "capture.py", "An unmatched end invalidates the capture.",
       'capture.status = INVALIDATED\n        raise Refused("StreamCaptureUnmatched")', 'raise Refused("StreamCaptureUnmatched")',
       "ending_on_a_forked_stream_is_unmatched")
breaks("relaxed has an owner", "capture.py", "A Relaxed capture may be ended by any thread.",
       "if capture.mode != RELAXED and capture.thread is not thread():", "if capture.thread is not thread():",
       "end_from_another_thread")
breaks("anyone ends", "capture.py", "Only the thread that began it ends a Global or ThreadLocal capture.",
       "if capture.mode != RELAXED and capture.thread is not thread():", "if False:", "end_from_another_thread")
breaks("no join needed", "capture.py", "A forked stream with work must be joined.",
       "elif unjoined(capture):", "elif False:", "a_fork_with_work_and_no_join_is_unjoined")
breaks("no edges", "capture.py", "A node follows what its stream held before.",
       "graphs.add(capture.graph, job, stream.next_after)", "graphs.add(capture.graph, job, ())", "a_diamond_of_four_kernels")
breaks("invalidated goes on", "capture.py", "An invalidated capture takes no more work.",
       'if stream.capture.status == INVALIDATED:\n        raise Refused("StreamCaptureInvalidated")', "",
       "later_work_on_an_invalidated_stream_says_so")
breaks("refusal is harmless", "capture.py", "A refused call inside a capture invalidates it.",
       "active(stream).status = INVALIDATED", "active(stream)", "an_impossible_launch_invalidates_the_capture")
breaks("set adds", "capture.py", "Dependencies can be replaced by others.",
       "[] if flags == SET_DEPENDENCIES else stream.next_after", "stream.next_after", "update_capture_dependencies")
breaks("edges twice", "capture.py", "A second wait for the same work adds no second edge.",
       "list(dict.fromkeys([*nodes, *more]))", "[*nodes, *more]", "waiting_twice_adds_one_edge")

# -- modes ------------------------------------------------------------------------------------------------------
breaks("exchange returns the new", "capture.py", "An exchange returns the old mode.",
       "mine.mode, old = mode, mine.mode", "mine.mode = old = mode", "exchanging_the_mode_returns_the_old_one")
breaks("own mode is ignored", "capture.py", "A thread that is Relaxed may make unsafe calls.",
       "if mine.mode == RELAXED:\n        return False", "", "own_mode_and_the_mode_of_the_capture")
breaks("relaxed forbids", "capture.py", "A Relaxed capture forbids nothing to its own thread.",
       "return capture.mode != RELAXED", "return True", "malloc_beside_a_capture")
breaks("others are free", "capture.py", "A Global capture forbids unsafe calls to other threads.",
       "return mine.mode == GLOBAL and capture.mode == GLOBAL", "return False", "malloc_beside_a_capture")
breaks("others are bound", "capture.py", "A ThreadLocal capture forbids nothing to other threads.",
       "return mine.mode == GLOBAL and capture.mode == GLOBAL", "return mine.mode == GLOBAL", "malloc_beside_a_capture")
breaks("unsafe is harmless", "capture.py", "An unsafe call invalidates the captures that forbid it.",
       "for capture in captures:\n        capture.status = INVALIDATED\n    if captures:", "if captures:", "malloc_beside_a_capture")
breaks("device wait is unsafe only", "capture.py", "Waiting for the device breaks Relaxed captures too.",
       'forbid(world.captures, "StreamCaptureUnsupported")', "forbid_unsafe()", "device_synchronize_beside_a_capture")
breaks("all captures are blocking", "capture.py", "The legacy stream does not mind captures on non-blocking streams.",
       "any(s.blocking for s in c.streams)", "True", "the_legacy_stream_beside_a_capture")
breaks("the origin alone is blocking", "capture.py", "A forked blocking stream makes its capture a blocking one.",
       "any(s.blocking for s in c.streams)", "c.origin.blocking", "a_forked_blocking_stream_and_the_legacy_stream")
breaks("implicit is unsupported", "capture.py", "The legacy stream beside a blocking capture gives 906.",
       'forbid(blocking_captures(), "StreamCaptureImplicit")', 'forbid(blocking_captures(), "StreamCaptureUnsupported")',
       "the_legacy_stream_beside_a_capture")
breaks("malloc is safe", "guards.py", "cudaMalloc is potentially unsafe.",
       "for kind, names in _KINDS.items() for name in names.split()}",
       'for kind, names in _KINDS.items() for name in names.split()} | {"cudaMalloc": "free"}', "malloc_beside_a_capture")
breaks("a query is safe", "guards.py", "A query counts as a wait.",
       "for kind, names in _KINDS.items() for name in names.split()}",
       'for kind, names in _KINDS.items() for name in names.split()} | {"cudaStreamQuery": "free"}', "waiting_for_the_capturing_stream")

# -- what lessons 11 to 17 show -------------------------------------------------------------------------------------
breaks("a context heals", "access.py", "A kernel at address 0 breaks the context for good.",
       'world.broken = "IllegalAddress"\n        raise Refused(world.broken)', 'raise Refused("IllegalAddress")', "a_kernel_at_address_0")
breaks("not ready is remembered", "runtime/_names.py", "A query that says not ready leaves the last error alone.",
       'if then == "query" and no.code == "NotReady":', "if False:", "what_a_query_leaves_behind")
breaks("pageable memory waits", "work.py", "A launch reads small pageable copies at the call.",
       "return Staged(self.dst, self.src, self.count, host_writes or self.count > STAGED)", "return self", "when_a_graph_reads_the_host")
breaks("a lost capture tells", "runtime/stream.py", "A stream whose capture is lost does not tell its priority.",
       "captures.graph_of(hStream)", "pass", "the_priority_of_a_lost_capture")

# -- events -------------------------------------------------------------------------------------------------------
breaks("a wait forgets", "stream.py", "A join adds to what the stream follows.",
       "stream.next_after = capture.merged(stream.next_after, nodes)", "stream.next_after = list(nodes)", "a_diamond_of_four_kernels")
breaks("a fork is alone", "stream.py", "A stream that waits for a captured event becomes part of the capture.",
       "capture.join(theirs, stream, nodes)", "pass", "a_diamond_of_four_kernels")
breaks("captures merge", "stream.py", "Both captures are invalidated when they meet.",
       'capture.forbid([mine, theirs], "StreamCaptureMerge")', 'capture.forbid([mine], "StreamCaptureMerge")', "two_captures_cannot_merge")
breaks("a capture waits for outside", "stream.py", "A capture cannot wait for an event from outside.",
       'capture.invalidate(stream, "StreamCaptureIsolation")', "pass", "waiting_for_an_event_from_outside_breaks_isolation")
breaks("external is plain", "stream.py", "An external record is a node.",
       "if flags == EXTERNAL:\n            capture.add(stream, work.EventRecord(event))\n            return", "",
       "recording_an_event_in_a_capture")
breaks("captured events are over", "stream.py", "An event of a capture that is on gives 907.",
       '"CapturedEvent"', '"InvalidValue"', "a_captured_event_inside_the_capture")
breaks("a bad launch is harmless", "stream.py", "An impossible launch invalidates the capture.",
       "capture.invalidate(stream, no.code)", "pass", "an_impossible_launch_invalidates_the_capture")
breaks("blocking streams do not wait", "stream.py", "Blocking streams wait for the legacy stream.",
       "after.append(legacy().last)", "pass", "the_legacy_stream_waits_for_blocking_streams")
breaks("host functions may call CUDA", "engine.py", "A host function that calls CUDA gets 800.",
       "_working.callback = True", "_working.callback = False", "a_host_function_may_not_call_cuda")

# -- graphs and executables ---------------------------------------------------------------------------------------
breaks("an edge twice", "graph.py", "An edge that is there cannot be added.",
       "a is b or a in b.before", "a is b", "adding_edges")
breaks("cycles run", "graph.py", "A graph with a cycle does not instantiate.",
       'raise Refused("InvalidValue") from None', "return list(graph.nodes)", "a_cycle_is_found_when_instantiating")
breaks("a clone has no edges", "graph.py", "A clone has the edges of the original.",
       "twin[node].before = tuple([twin[other] for other in node.before])", "pass", "a_clone_is_a_graph_of_its_own")
breaks("memory is cloned", "graph.py", "A graph with allocations cannot be cloned.",
       'if graph.memory:\n        raise Refused("NotSupported")', "pass", "cloning_an_allocating_graph")
breaks("a child is shared", "graph.py", "A child graph is copied into its node.",
       "copy = clone(child)", "copy = child", "a_child_graph_is_copied")
breaks("two executables", "execute.py", "A graph with allocations has one executable at a time.",
       "and graph.execs:", "and False:", "instantiating_an_allocating_graph_twice")
breaks("relaunch unfreed", "graph_memory.py", "A launch is refused while the last one's allocation is not freed.",
       "if held and not flags & AUTO_FREE or any(", "if any(", "relaunching_with_an_unfreed_allocation")
breaks("no auto free", "graph_memory.py", "AutoFreeOnLaunch frees before a launch.",
       "if held and not flags & AUTO_FREE or any(", "if held or any(", "auto_free_on_launch")

# -- updates --------------------------------------------------------------------------------------------------------
breaks("setters do not look", "update.py", "A setter of an executable takes nodes of its own kind only.",
       "or level.jobs[node].kind not in kinds", "", "a_setter_takes_its_own_kind", "which_kinds_can_be_switched")
breaks("graph setters do not look", "update.py", "A setter of a graph takes nodes of its own kind only.",
       'if node.work.kind != kind:\n        raise Refused("InvalidValue")', "", "a_graph_setter_takes_its_own_kind")
breaks("a setter reaches the graph", "update.py", "A setter of an executable leaves the graph alone.",
       "jobs[node], made.plan = job, None", "jobs[node], node.work, made.plan = job, job, None", "a_setter_changes_one_executable")
breaks("a setter comes too late", "update.py", "The next launch has what was set.",
       "jobs[node], made.plan = job, None", "jobs[node] = job", "a_kernel_setter_changes_the_next_launch")
breaks("a graph is not set", "update.py", "Executables made later have what was set in the graph.",
       "node.work = make(node.graph)", "make(node.graph)", "a_graph_kernel_setter")
breaks("copies turn round", "update.py", "A copy keeps its direction.",
       "return new.direction == old.direction", "return True", "a_copy_setter_and_the_direction", "a_whole_update_and_the_direction")
breaks("memsets grow rows", "update.py", "A memset keeps its rows.",
       "return new.height == old.height and", "return", "a_memset_of_two_rows_is_set")
breaks("queued launches change", "execute.py", "A launch that is queued keeps what it had.",
       "_run(before + steps, marks)", "_run(before + made.steps(), marks)", "a_change_counts_from_the_next_launch")
breaks("off runs", "execute.py", "A node that is off does nothing.",
       "if not disabled or node not in disabled:", "if True:", "switching_a_node_off")
breaks("an update switches on", "update.py", "A whole update leaves a node off.",
       "_apply(made, *changes(made.level, graph))", "_apply(made, *changes(made.level, graph))\n    made.disabled.clear()",
       "a_whole_update_and_a_node_that_is_off")
breaks("hosts can be off", "update.py", "Kernels, memsets and copies can be switched off, nothing else.",
       'CAN_BE_DISABLED = ("Kernel",', 'CAN_BE_DISABLED = ("Host", "Empty", "Kernel",', "which_kinds_can_be_switched")
breaks("kinds may change", "update.py", "A whole update keeps the kinds of nodes.",
       "if level.jobs[node].kind != twin.work.kind:", "if False:", "a_whole_update_that_does_not_fit")
breaks("nodes are not counted", "update.py", "A whole update needs as many nodes.",
       "if len(before) != len(graph.nodes):\n        raise CannotUpdate(TOPOLOGY)", "", "a_whole_update_that_does_not_fit")
breaks("edges are not counted", "update.py", "A whole update needs the same edges.",
       "if len(before[node]) != len(twin.before):\n            raise CannotUpdate(TOPOLOGY, twin)", "", "a_whole_update_and_edges")
breaks("edges have no order", "update.py", "What two nodes wait for is paired in the order of the edges.",
       "zip(before[node], twin.before)", "zip(before[node], reversed(twin.before))", "the_order_in_which_a_diamond_is_made")
breaks("children are closed", "update.py", "A whole update looks into child graphs.",
       "found += more", "pass", "a_whole_update_looks_into_children")
breaks("updates set what is gone", "update.py", "A whole update with a memset refuses memory that nobody owns.",
       "elif not _has_memory(new, graph):", "elif False:", "an_update_to_freed_memory")
breaks("memory stays", "update.py", "After a whole update the new graph's memory counts.",
       "made.graph, made.memory = graph, graph_memory.Needs(graph)", "made.graph = graph",
       "updating_while_memory_is_held")
breaks("the old graph counts", "update.py", "After a whole update the executable counts for the new graph.",
       "made.graph.execs -= 1\n    graph.execs += 1", "", "instantiating_after_an_update_with_memory")
breaks("any graph updates", "update.py", "A graph that allocates and has an executable is no source of an update.",
       "if graph.memory and graph.execs and made.graph is not graph:", "if False:", "updating_from_a_graph_that_is_instantiated")
breaks("an upload is alone", "execute.py", "A launch waits for an upload in another stream.",
       "made.last = streams.push(stream, also=[made.last])", "streams.push(stream, also=[made.last])", "uploading_into_another_stream")
breaks("destroyed executables are known", "execute.py", "An executable that was destroyed may not be launched again.",
       'return find_alive(world.execs, handle, "InvalidValue", "executable")', 'return find(world.execs, handle, "InvalidValue")',
       "a_destroyed_graph")
breaks("setters of what is gone", "execute.py", "A setter refuses an executable that was destroyed.",
       'return find(world.execs, handle, "InvalidValue")', 'return find_alive(world.execs, handle, "InvalidValue", "executable")',
       "an_executable_that_is_not_there")
breaks("a child of itself", "graph.py", "A child node cannot be given the graph that is in it.",
       'if child is node.work.graph:\n        raise Refused("NotSupported")', "", "another_graph_for_a_child_node")
breaks("clones keep all", "graph.py", "A node that was destroyed in the clone is not found there.",
       "if twin is None or twin not in copy.nodes:", "if twin is None:", "finding_a_node_in_a_clone")
breaks("any type will do", "runtime/generic.py", "The generic setter's type must fit the node.",
       "def cudaGraphExecNodeSetParams(graphExec: ExecToSet, node: Node, nodeParams: Params):\n    kind = update.same_kind(node, _kind(nodeParams))",
       "def cudaGraphExecNodeSetParams(graphExec: ExecToSet, node: Node, nodeParams: Params):\n    kind = _kind(nodeParams) and node.work.kind",
       "the_generic_setter")

# -- graph memory ----------------------------------------------------------------------------------------------------------
breaks("frees nothing that is not there", "graph_memory.py", "A launch that frees what is not allocated is refused.",
       "or any(not block.owned for block in self.foreign)", "", "launching_in_turn", "freeing_in_a_second_graph")
breaks("uploads take nothing", "execute.py", "Graph memory is taken by the first upload, too.",
       "made.memory.take(stream)\n    made.last = streams.push(stream, also=[made.last])\n    made.memory.worked(made.last, stream)",
       "made.last = streams.push(stream, also=[made.last])",
       "graph_memory_comes_with_the_first_launch")
breaks("a trim takes what is held", "graph_memory.py", "A trim leaves what an allocation holds.",
       "if page.held or page.op is not None and", "if page.op is not None and", "trimming_graph_memory", "graphs_share_pages")
breaks("a trim takes what is used", "graph_memory.py", "A trim leaves what an unfinished launch works on.",
       "if page.held or page.op is not None and not engine.settled(page.op)]", "if page.held]", "trimming_graph_memory")
breaks("events order pages", "graph_memory.py", "Pages of work in another stream that is not over are not shared.",
       "or self.user is user or engine.settled(self.op))", "or True)", "pages_and_other_streams")
breaks("pages stay in the stream", "graph_memory.py", "Pages are shared in the order of a stream, before the work is over.",
       "self.stream is stream or self.user is user", "self.user is user", "graphs_share_pages", "pages_of_a_free_outside")
breaks("a free moves its pages", "graph_addresses.py", "Pages stay with the stream of the launch, wherever their memory is freed.",
       "page.held, page.op = page.held - 1, op", "page.held, page.op, page.stream = page.held - 1, op, stream", "pages_of_a_free_outside")
breaks("pages are taken from the first on", "graph_memory.py", "A launch takes free pages for its last pages first.",
       "for page in reversed(kept)][::-1]", "for page in kept]", "program 57")
breaks("the oldest pages are taken", "graph_memory.py", "A launch takes the newest of the free pages.",
       "for page in reversed(pages.all) if", "for page in pages.all if", "program 149")
breaks("pages are not shared", "graph_memory.py", "A launch takes free pages before new ones.",
       "free += _new(missing - len(free))", "free = _new(missing)", "graphs_share_pages")
breaks("high marks take any value", "graph_memory.py", "A high mark of graph memory is set to 0 only.",
       "if what not in (USED_HIGH, RESERVED_HIGH) or value:", "if what not in (USED_HIGH, RESERVED_HIGH):", "setting_a_counter_of_graph_memory")
breaks("too large is harmless", "graph_memory.py", "A graph larger than the device takes what there is, for good.",
       "pages.lost += free\n        store.pages += free", "pass", "a_graph_larger_than_the_device")
breaks("memory is used again at once", "graph_addresses.py", "Only an allocation that comes after the free gets its place.",
       "return frees - graphs.unreached(frees, nodes) if frees else frees", "return frees", "memory_of_branches")
breaks("nothing is used again", "graph_addresses.py", "An allocation that comes after a free gets its place.",
       "self._earlier(before).__contains__) or", "lambda after: False) or", "memory_is_used_again_in_a_graph")
breaks("freed places stay apart", "graph_addresses.py", "Places freed one after the other join.",
       "node, on_the_way)", "node, lambda after: False)", "memory_is_used_again_in_a_graph")
breaks("pages as needed", "graph_addresses.py", "An allocation that does not fit reserves whole pages for itself.",
       "self._longer(rounded(room, PAGE))", "self._longer(room)", "sizes_in_one_graph")
breaks("steps of one page", "ranges.py", "Allocations begin at a multiple of 512 bytes.",
       "ALIGN = 512 ", "ALIGN = 4096 ", "sizes_in_one_graph", "several_allocations_of_a_pool")
breaks("no limit of a graph", "graph_addresses.py", "One graph asks for about twice the device's memory and no more.",
       "LIMIT = 2 * memory.TOTAL", "LIMIT = 4 * memory.TOTAL", "more_than_the_device_in_a_graph")
breaks("a node may allocate nothing", "transfer.py", "An allocation node wants a size.",
       "if size == 0:\n        raise Refused(\"InvalidValue\")", "", "what_an_allocation_node_takes")

# -- pools --------------------------------------------------------------------------------------------------------------------
breaks("used is rounded", "pool.py", "Used memory counts what was asked for.",
       "self._set(USED, self.values[USED] + size)", "self._set(USED, self.values[USED] + room)", "one_allocation_of_a_pool")
breaks("cudaFree is counted", "pool.py", "cudaFree leaves a pool's memory counted as used.",
       "if stream is not None:\n            self._set(USED", "if True:\n            self._set(USED", "cuda_free_of_a_pools_memory")
breaks("cudaFree waits for a graph's memory", "transfer.py", "cudaFree of a graph's memory does not wait.",
       'if block.kind == "graph":\n        return []', "", "what_cuda_free_waits_for")
breaks("cudaFree waits for a pool's memory", "transfer.py", "cudaFree of a pool's memory does not wait.",
       'engine.Op(block.end, ()) if block.kind == "async" else', "", "what_cuda_free_waits_for")
breaks("no threshold", "pool.py", "A wait keeps what is below the release threshold.",
       "reserved > (self.values[THRESHOLD] if self.alive else 0)", "reserved > 0", "the_release_threshold")
breaks("a trim takes a page more", "pool.py", "A trim to n bytes keeps n bytes reserved.",
       "reserved - PAGE >= least", "reserved > least", "trimming_a_pool")
breaks("events are not followed", "pool.py", "Freed memory is used again where an event orders the two.",
       "or bool(self.values[FOLLOW]) and engine.leads_to(op, ahead)", "", "a_pool_and_other_streams")
breaks("events are always followed", "pool.py", "Following events can be switched off.",
       "or bool(self.values[FOLLOW]) and engine.leads_to(op, ahead)", "or engine.leads_to(op, ahead)", "a_pool_and_other_streams")
breaks("pools have no limit", "pool.py", "A pool of limited size refuses what does not fit.",
       "if self.most is not None:", "if False:", "a_pool_of_limited_size")
breaks("high marks fall to 0", "pool.py", "Setting a high mark to 0 makes it the current size.",
       "value = self.values[what - 1]", "value = 0", "setting_an_attribute_of_a_pool")
breaks("flags are numbers", "pool.py", "A reuse flag is 0 or 1.",
       "int(value != 0) if what in FLAGS else value", "value", "setting_a_reuse_flag")
breaks("the default pool can go", "device_pools.py", "The default pool cannot be destroyed.",
       "if pool is default():", "if False:", "destroying_the_default_or_current_pool")
breaks("a dead pool stays current", "device_pools.py", "When the current pool is destroyed the default one is current again.",
       "if world.current_pool is pool:", "if False:", "destroying_the_default_or_current_pool")
breaks("the default pool is current", "device_pools.py", "cudaMallocAsync takes from the current pool.",
       "return world.current_pool or default()", "return default()", "which_pool_is_taken_from")
breaks("waiting gives nothing back", "device_pools.py", "A wait gives free pages back.",
       "return [engine.Op(lambda: _settle(over=over), ops), *ops]", "return ops", "one_allocation_of_a_pool")
breaks("graphs of memory take time", "execute.py", "A graph that only allocates and frees takes a GPU no time.",
       'LIGHT = ("MemAlloc", "MemFree", "Empty")', "LIGHT = ()", "program 166")

# -- user objects ---------------------------------------------------------------------------------------------------------------
breaks("executables hold nothing", "user_object.py", "An executable holds what its graph held.",
       "level.objects = share(graph.objects)", "level.objects = {}", "executables_hold_user_objects")
breaks("clones hold nothing", "graph.py", "A clone holds what its source holds.",
       "copy.twins, copy.objects = twin, user_object.share(graph.objects)", "copy.twins = twin", "copies_hold_user_objects")
breaks("updates swap nothing", "update.py", "An updated executable holds what the new graph holds.",
       "user_object.let_go_after(made.last, user_object.take(levels))", "pass", "updates_swap_user_objects")
breaks("queued launches hold nothing", "user_object.py", "A launch holds the objects of its executable until it is done.",
       "if last is None or not objects:", "if True:", "launches_hold_user_objects")
breaks("moving is sharing", "user_object.py", "A graph to which references are moved takes the program's.",
       "if flags == MOVE:", "if False:", "a_graph_holds_user_objects")

# -- memory and copies ------------------------------------------------------------------------------------------------
breaks("free twice", "transfer.py", "A captured allocation is freed once in a capture.",
       " or block in graph.frees or block in block.region.home.graph.frees", "", "freeing_twice_in_a_capture")
breaks("host memory is read at the capture", "transfer.py", "A captured copy reads host memory at replay.",
       'if stream.capture is None and source == "pageable"', 'if source == "pageable"', "a_captured_copy_reads_at_replay")
breaks("host memory is read late", "transfer.py", "An eager copy from pageable memory has read it when it returns.",
       'if stream.capture is None and source == "pageable"', 'if False and source == "pageable"',
       "changing_a_pageable_buffer_after_the_copy")
breaks("blocks are deep", "work.py", "A block has at most 64 threads in z.",
       "0 < z <= 64", "0 < z <= 1024", "an_impossible_launch_is_refused", "an_impossible_launch_invalidates_the_capture")


# -- breaking them ------------------------------------------------------------------------------------------------------


class _Loader(SourceFileLoader):
    """Loads a module from changed text."""

    def __init__(self, fullname, mutation):
        super().__init__(fullname, str(mutation.path))
        self.mutation = mutation

    def get_code(self, fullname):
        return compile(self.mutation.source(), self.path, "exec")


class _Finder:
    """Finds the one module that a mutation changes."""

    def __init__(self, mutation):
        self.mutation = mutation

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self.mutation.module:
            return None
        return importlib.util.spec_from_loader(fullname, _Loader(fullname, self.mutation))


def broken_by(mutation, runner, limit=1):
    """The names of what fails when this rule is broken (None: nothing is broken), found by `runner` in a child."""
    name = mutation.name if mutation else "nothing"
    child = [sys.executable, "-m", "tests.conformance.mutations", name, runner, str(limit)]
    paths = os.pathsep.join(part for part in (str(ROOT), os.environ.get("PYTHONPATH")) if part)
    try:
        done = subprocess.run(child, capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE,
                              env={**os.environ, "PYTHONPATH": paths, "LABKIT_BACKEND": "sim"})
    except subprocess.TimeoutExpired:
        return ["hung"]
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def failing_scenarios(mutation, limit=1):
    """The scenarios whose recorded traces this simulator does not give, those of the mutation first, its random programs before."""
    from labkit import sim
    from labkit.sim import runtime
    from tests.conformance import harness, record, store
    sim.set_line(12)
    _, recorded = store.read_traces(store.TRACES / "traces_12.json")
    names = list(harness.scenarios())
    first = [name for name in mutation.first if name in names] if mutation else []
    failing = _failing_programs(mutation.first) if mutation else []
    if len(failing) >= limit:
        return failing
    for name in dict.fromkeys([*first, *names]):
        for key in (key for key in harness.SCENARIOS[name].cases if key in recorded):
            found = harness.run(runtime, key)
            if not record.same(recorded[key], found):
                failing.append(f"{key}: {record.difference(recorded[key], found)}")
                break
        if len(failing) >= limit:
            break
    return failing


def _failing_programs(names):
    """Those of the recorded random programs of these names that this simulator answers differently."""
    from labkit.sim import runtime
    from tests.conformance import random_programs, store
    seeds = [name.split()[1] for name in names if name.startswith("program ")]
    recorded = store.read(store.TRACES / "random_12.json")[1] if seeds else {}
    return [f"program {seed}" for seed in seeds
            if random_programs.settled(random_programs.run(runtime, random_programs.unpack(recorded[seed][0]))) != recorded[seed][1]]


def main(name, runner, limit):
    chosen = {mutation.name: mutation for mutation in MUTATIONS}.get(name)
    if chosen:
        chosen.source()  # says so at once if the text is not there
        sys.meta_path.insert(0, _Finder(chosen))
    place, function = runner.split(":")
    if place == "tests.conformance.mutations":
        found = globals()[function](chosen, int(limit))
    else:
        found = getattr(importlib.import_module(place), function)(chosen, int(limit))
    if chosen:
        assert chosen.module in sys.modules, f"{chosen.module} was never loaded"
    print(json.dumps(found), flush=True)
    os._exit(0)  # a broken simulator may leave threads that never end


if __name__ == "__main__":
    main(*sys.argv[1:])
