// The twin of lessons 04 and 06: what each step in the life of a graph costs, and three ways to give it other values.
//
// What a way throws away counts, since a program that goes on pays for it each time.
#include "baseline.cuh"

struct Changes {
    cudaStream_t stream;
    int kernels;
    Floats y, x;
    cudaGraph_t graphs[LARGEST + 1] = {};                  // captured before, one for each batch
    cudaGraphExec_t updated, recaptured, anew;             // one executable for each of the three ways

    Changes(cudaStream_t stream_, int kernels_) : stream(stream_), kernels(kernels_), y(LARGEST * ROW), x(LARGEST * ROW) {
        for (int batch = 1; batch <= LARGEST; ++batch) graphs[batch] = capture(batch);
        for (cudaGraphExec_t* each : {&updated, &recaptured, &anew}) *each = instantiated(graphs[LARGEST]);
    }
    ~Changes() {
        for (cudaGraphExec_t each : {updated, recaptured, anew}) cudaGraphExecDestroy(each);
        for (int batch = 1; batch <= LARGEST; ++batch) cudaGraphDestroy(graphs[batch]);
    }
    cudaGraph_t capture(int batch) { return captured(stream, kernels, batch, y.at, x.at); }
};

// ---- the steps --------------------------------------------------------------------------------------

// A step that leaves nothing for the GPU to do: over when it returns.
static Times step(Clock::time_point begin) {
    double spent = us(begin, Clock::now());
    return {NONE, spent, spent};
}

static Times capture(Changes& it, int batch) {
    auto begin = Clock::now();
    cudaGraph_t graph = it.capture(batch);
    Times times = step(begin);
    CHECK(cudaGraphDestroy(graph));
    return times;
}

static Times instantiate(Changes& it, int batch) {
    auto begin = Clock::now();
    cudaGraphExec_t executable = instantiated(it.graphs[batch]);
    Times times = step(begin);
    CHECK(cudaGraphExecDestroy(executable));
    return times;
}

static Times destroy(Changes& it, int batch) {
    cudaGraphExec_t executable = instantiated(it.graphs[batch]);
    launch_and_wait(executable, it.stream, Clock::now());
    auto begin = Clock::now();
    CHECK(cudaGraphExecDestroy(executable));
    return step(begin);
}

static Times upload(Changes& it, int batch) {
    cudaGraphExec_t executable = instantiated(it.graphs[batch]);
    auto begin = Clock::now();
    CHECK(cudaGraphUpload(executable, it.stream));
    auto returned = Clock::now();
    CHECK(cudaStreamSynchronize(it.stream));
    Times times = {NONE, us(begin, returned), us(begin, Clock::now())};
    CHECK(cudaGraphExecDestroy(executable));
    return times;
}

static Times first_launch(Changes& it, int batch) {
    cudaGraphExec_t executable = instantiated(it.graphs[batch]);
    Times times = launch_and_wait(executable, it.stream, Clock::now(), false);
    CHECK(cudaGraphExecDestroy(executable));
    return times;
}

static Times second_launch(Changes& it, int batch) {
    cudaGraphExec_t executable = instantiated(it.graphs[batch]);
    launch_and_wait(executable, it.stream, Clock::now());
    Times times = launch_and_wait(executable, it.stream, Clock::now(), false);
    CHECK(cudaGraphExecDestroy(executable));
    return times;
}

// ---- the ways ---------------------------------------------------------------------------------------

static Times update_cached(Changes& it, int batch) {
    auto begin = Clock::now();
    update(it.updated, it.graphs[batch]);
    return launch_and_wait(it.updated, it.stream, begin);
}

static Times recapture_and_update(Changes& it, int batch) {
    auto begin = Clock::now();
    cudaGraph_t graph = it.capture(batch);
    update(it.recaptured, graph);
    CHECK(cudaGraphDestroy(graph));
    return launch_and_wait(it.recaptured, it.stream, begin);
}

static Times reinstantiate(Changes& it, int batch) {
    auto begin = Clock::now();
    CHECK(cudaGraphExecDestroy(it.anew));
    it.anew = nullptr;                                     // destroyed once, even where the next line fails
    cudaGraph_t graph = it.capture(batch);
    it.anew = instantiated(graph);
    CHECK(cudaGraphDestroy(graph));
    return launch_and_wait(it.anew, it.stream, begin);
}

static const Way<Changes> ways[] = {
    {"capture", capture},
    {"instantiate", instantiate},
    {"upload", upload},
    {"first launch", first_launch},
    {"second launch", second_launch},
    {"destroy", destroy},
    {"cached ExecUpdate", update_cached},
    {"re-capture + ExecUpdate", recapture_and_update},
    {"re-instantiate", reinstantiate},
};

WAYS(changes, Changes)
