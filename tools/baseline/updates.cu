// The twin of lesson 05: one node after another gets other values, then comes the next launch.
//
// The parameters are prepared before, as kernel_params does in Python. These ten calls are what Python's ten calls,
// and its one call, are compared with.
#include "baseline.cuh"

struct Updates {
    Prepared prepared;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    std::vector<cudaGraphNode_t> nodes;

    Updates(cudaStream_t stream, int kernels, float* y, const float* x)
        : prepared(y, x), graph(captured(stream, kernels, LARGEST, y, x)), executable(instantiated(graph)), nodes(nodes_of(graph)) {}
    ~Updates() {
        cudaGraphExecDestroy(executable);
        cudaGraphDestroy(graph);
    }
};

extern "C" int updates_make(cudaStream_t stream, int kernels, float* y, const float* x, Updates** made) {
    return guarded([&] { *made = new Updates(stream, kernels, y, x); });
}

extern "C" void updates_free(Updates* made) { delete made; }

// The setters, then the next launch.
extern "C" int updates_round(Updates* made, cudaStream_t stream, int batch, Times* out) {
    return guarded([&] {
        auto begin = Clock::now();
        for (cudaGraphNode_t node : made->nodes)
            CHECK(cudaGraphExecKernelNodeSetParams(made->executable, node, &made->prepared.parameters[batch]));
        *out = launch_and_wait(made->executable, stream, begin);
    });
}
