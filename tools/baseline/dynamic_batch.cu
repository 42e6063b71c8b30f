// The twin of lesson 07: a batch of 1 to 8 samples, another one each time, as eight strategies and one that never changes.
#include "baseline.cuh"

struct Batches {
    cudaStream_t stream;
    int kernels;
    Floats y, x;
    int* sizes = nullptr;                                  // in pinned host memory: the floats of each batch
    int* size = nullptr;                                   // in device memory: those of the batch to come
    Prepared prepared;
    cudaGraph_t graphs[LARGEST + 1] = {};                  // captured before, one for each batch
    cudaGraphExec_t per_size[LARGEST + 1] = {};
    cudaGraph_t sized = nullptr;
    std::vector<cudaGraphNode_t> nodes;                    // of the graph for the largest batch
    cudaGraphExec_t fixed, set, updated, recaptured, anew, padded, from_memory;

    Batches(cudaStream_t stream_, int kernels_)
        : stream(stream_), kernels(kernels_), y(LARGEST * ROW), x(LARGEST * ROW), prepared(y.at, x.at) {
        std::vector<float> ones(LARGEST * ROW, 1.0f);
        CHECK(cudaMemcpy(x.at, ones.data(), ones.size() * sizeof(float), cudaMemcpyHostToDevice));
        CHECK(cudaMallocHost(&sizes, (LARGEST + 1) * sizeof(int)));
        CHECK(cudaMalloc(&size, sizeof(int)));
        for (int batch = 1; batch <= LARGEST; ++batch) {
            sizes[batch] = batch * ROW;
            graphs[batch] = capture(batch);
            per_size[batch] = instantiated(graphs[batch]);
        }
        CHECK(cudaMemcpy(size, &sizes[LARGEST], sizeof(int), cudaMemcpyHostToDevice));
        sized = captured(stream, [&] {
            for (int k = 0; k < kernels; ++k) {
                axpy_n<<<blocks(LARGEST), THREADS, 0, stream>>>(y.at, x.at, 1.0f, size);
                CHECK(cudaGetLastError());
            }
        });
        nodes = nodes_of(graphs[LARGEST]);
        for (cudaGraphExec_t* each : {&fixed, &set, &updated, &recaptured, &anew, &padded}) *each = instantiated(graphs[LARGEST]);
        from_memory = instantiated(sized);
    }
    ~Batches() {
        for (cudaGraphExec_t each : {fixed, set, updated, recaptured, anew, padded, from_memory}) cudaGraphExecDestroy(each);
        for (int batch = 1; batch <= LARGEST; ++batch) {
            cudaGraphExecDestroy(per_size[batch]);
            cudaGraphDestroy(graphs[batch]);
        }
        cudaGraphDestroy(sized);
        cudaFree(size);
        cudaFreeHost(sizes);
    }
    cudaGraph_t capture(int batch) { return captured(stream, kernels, batch, y.at, x.at); }
};

static Times fixed_replay(Batches& it, int) {
    return launch_and_wait(it.fixed, it.stream, Clock::now(), false);
}

static Times plain_stream(Batches& it, int batch) {
    auto begin = Clock::now();
    launches(it.stream, it.kernels, batch, it.y.at, it.x.at);
    auto launched = Clock::now();
    CHECK(cudaStreamSynchronize(it.stream));
    return {NONE, us(begin, launched), us(begin, Clock::now())};
}

static Times node_updates(Batches& it, int batch) {
    auto begin = Clock::now();
    for (cudaGraphNode_t node : it.nodes)
        CHECK(cudaGraphExecKernelNodeSetParams(it.set, node, &it.prepared.parameters[batch]));
    return launch_and_wait(it.set, it.stream, begin);
}

static Times cached_update(Batches& it, int batch) {
    auto begin = Clock::now();
    update(it.updated, it.graphs[batch]);
    return launch_and_wait(it.updated, it.stream, begin);
}

static Times recapture_and_update(Batches& it, int batch) {
    auto begin = Clock::now();
    cudaGraph_t graph = it.capture(batch);
    update(it.recaptured, graph);
    CHECK(cudaGraphDestroy(graph));
    return launch_and_wait(it.recaptured, it.stream, begin);
}

static Times reinstantiate(Batches& it, int batch) {
    auto begin = Clock::now();
    CHECK(cudaGraphExecDestroy(it.anew));
    it.anew = nullptr;                                     // destroyed once, even where the next line fails
    cudaGraph_t graph = it.capture(batch);
    it.anew = instantiated(graph);
    CHECK(cudaGraphDestroy(graph));
    return launch_and_wait(it.anew, it.stream, begin);
}

static Times one_per_size(Batches& it, int batch) {
    return launch_and_wait(it.per_size[batch], it.stream, Clock::now(), false);
}

static Times pad_to_the_largest(Batches& it, int) {
    return launch_and_wait(it.padded, it.stream, Clock::now(), false);
}

static Times size_in_device_memory(Batches& it, int batch) {
    auto begin = Clock::now();
    CHECK(cudaMemcpyAsync(it.size, &it.sizes[batch], sizeof(int), cudaMemcpyHostToDevice, it.stream));
    return launch_and_wait(it.from_memory, it.stream, begin);
}

static const Way<Batches> ways[] = {
    {"fixed replay", fixed_replay},
    {"plain stream", plain_stream},
    {"node updates", node_updates},
    {"cached ExecUpdate", cached_update},
    {"re-capture + ExecUpdate", recapture_and_update},
    {"re-instantiate", reinstantiate},
    {"one executable per size", one_per_size},
    {"pad to the largest", pad_to_the_largest},
    {"size in device memory", size_in_device_memory},
};

WAYS(batches, Batches)

// Whether a strategy does the work: y starts at 0 and after one round holds `kernels` in the first batch * ROW floats.
// written: how many floats changed (padding and the fixed graph write all of them).
extern "C" int batches_check(Batches* made, int way, int batch, int* written) {
    return guarded([&] {
        std::vector<float> y(LARGEST * ROW);
        CHECK(cudaMemset(made->y.at, 0, y.size() * sizeof(float)));
        CHECK(cudaDeviceSynchronize());                    // the stream may not wait for the memset
        ways[way].round(*made, batch);
        CHECK(cudaMemcpy(y.data(), made->y.at, y.size() * sizeof(float), cudaMemcpyDeviceToHost));
        *written = 0;
        for (size_t i = 0; i < y.size(); ++i) {
            *written += y[i] != 0;
            if (y[i] != (float)made->kernels && (y[i] != 0 || i < (size_t)batch * ROW))
                throw std::runtime_error(std::string(ways[way].name) + " left a wrong value for a batch of " + std::to_string(batch));
        }
    });
}
