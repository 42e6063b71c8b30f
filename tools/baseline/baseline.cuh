// What the C++ twins share: a clock, checked calls, the kernel, and a capture of it.
//
// compare.py builds all of this into one library and loads it into a Python process, so that C++ and
// Python are timed in turns, in one run, on one GPU. Functions that Python calls return 0, or 1 with the
// reason in baseline_error().
#pragma once
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) checked((call), #call)

inline void checked(cudaError_t code, const char* call) {
    if (code != cudaSuccess) throw std::runtime_error(std::string(cudaGetErrorName(code)) + " from " + call);
}

inline std::string& error_text() {
    static std::string text;
    return text;
}

// Runs `work`; an exception must not leave C++, so it becomes a 1 and a text.
template <class Work>
int guarded(Work work) {
    try {
        work();
        return 0;
    } catch (const std::exception& error) {
        error_text() = error.what();
        return 1;
    }
}

using Clock = std::chrono::steady_clock;

inline double us(Clock::time_point begin, Clock::time_point end) {
    return std::chrono::duration<double, std::micro>(end - begin).count();
}

// The kernel of the lessons, y += a * x for n floats: n by value, and n read from device memory.
static __global__ void axpy(float* y, const float* x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}

static __global__ void axpy_n(float* y, const float* x, float a, const int* n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < *n) y[i] += a * x[i];
}

constexpr int ROW = 1024, THREADS = 256, LARGEST = 8;      // floats of one sample, threads of a block, samples at most

inline int blocks(int batch) { return batch * ROW / THREADS; }

// `kernels` launches for a batch, one by one.
inline void launches(cudaStream_t stream, int kernels, int batch, float* y, const float* x) {
    for (int k = 0; k < kernels; ++k) {
        axpy<<<blocks(batch), THREADS, 0, stream>>>(y, x, 1.0f, batch * ROW);
        CHECK(cudaGetLastError());
    }
}

// A graph of what `work` queues on the stream. An error ends the capture too.
template <class Work>
cudaGraph_t captured(cudaStream_t stream, Work work) {
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    try {
        work();
    } catch (...) {
        cudaStreamEndCapture(stream, &graph);
        throw;
    }
    CHECK(cudaStreamEndCapture(stream, &graph));
    return graph;
}

inline cudaGraph_t captured(cudaStream_t stream, int kernels, int batch, float* y, const float* x) {
    return captured(stream, [&] { launches(stream, kernels, batch, y, x); });
}

inline cudaGraphExec_t instantiated(cudaGraph_t graph) {
    cudaGraphExec_t executable = nullptr;
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    return executable;
}

inline void update(cudaGraphExec_t executable, cudaGraph_t graph) {
    cudaGraphExecUpdateResultInfo why;
    CHECK(cudaGraphExecUpdate(executable, graph, &why));
}

inline std::vector<cudaGraphNode_t> nodes_of(cudaGraph_t graph) {
    size_t count = 0;
    CHECK(cudaGraphGetNodes(graph, nullptr, &count));
    std::vector<cudaGraphNode_t> nodes(count);
    CHECK(cudaGraphGetNodes(graph, nodes.data(), &count));
    return nodes;
}

// What the setter of a kernel node takes, for each batch from 1 to LARGEST, with the arguments it points to.
// It stays where it was made: a copy would point into the old one.
struct Prepared {
    float* y;
    const float* x;
    float a = 1.0f;
    int n[LARGEST + 1];
    void* arguments[LARGEST + 1][4];
    cudaKernelNodeParams parameters[LARGEST + 1];

    Prepared(float* y_, const float* x_) : y(y_), x(x_) {
        for (int batch = 1; batch <= LARGEST; ++batch) {
            n[batch] = batch * ROW;
            void* made[4] = {&y, &x, &a, &n[batch]};
            for (int k = 0; k < 4; ++k) arguments[batch][k] = made[k];
            cudaKernelNodeParams& p = parameters[batch];
            p.func = (void*)axpy;
            p.gridDim = dim3(blocks(batch));
            p.blockDim = dim3(THREADS);
            p.sharedMemBytes = 0;
            p.kernelParams = arguments[batch];
            p.extra = nullptr;
        }
    }
    Prepared(const Prepared&) = delete;
    Prepared& operator=(const Prepared&) = delete;
};

// Floats on the device, freed with this.
struct Floats {
    float* at = nullptr;
    explicit Floats(int count) {
        CHECK(cudaMalloc(&at, count * sizeof(float)));
        CHECK(cudaMemset(at, 0, count * sizeof(float)));
    }
    ~Floats() { cudaFree(at); }
    Floats(const Floats&) = delete;
    Floats& operator=(const Floats&) = delete;
};

// ---- one round ------------------------------------------------------------------------------------

// Where the times of a round go, in microseconds: until all is ready to launch (NONE where there is nothing to
// prepare), what the call itself took, and from the beginning until the stream had finished.
struct Times {
    double prepare, call, end;
};
constexpr double NONE = -1;

// The launch that ends a round. `begin`: when the round began; `prepares`: whether something came before the launch.
inline Times launch_and_wait(cudaGraphExec_t executable, cudaStream_t stream, Clock::time_point begin, bool prepares = true) {
    auto ready = Clock::now();
    CHECK(cudaGraphLaunch(executable, stream));
    auto launched = Clock::now();
    CHECK(cudaStreamSynchronize(stream));
    auto finished = Clock::now();
    return {prepares ? us(begin, ready) : NONE, us(ready, launched), us(prepares ? begin : ready, finished)};
}

// A way to do the work of a round, by name.
template <class Made>
struct Way {
    const char* name;
    Times (*round)(Made&, int batch);
};

// What Python calls to run the `ways` of a file: how many, their names, make, free, and one round of one of them.
#define WAYS(prefix, Made)                                                                                  \
    extern "C" int prefix##_count() { return (int)(sizeof(ways) / sizeof(ways[0])); }                       \
    extern "C" const char* prefix##_name(int way) { return ways[way].name; }                                \
    extern "C" int prefix##_make(cudaStream_t stream, int kernels, Made** made) {                           \
        return guarded([&] {                                                                                \
            *made = new Made(stream, kernels);                                                              \
            CHECK(cudaDeviceSynchronize());                                                                 \
        });                                                                                                 \
    }                                                                                                       \
    extern "C" void prefix##_free(Made* made) { delete made; }                                              \
    extern "C" int prefix##_round(Made* made, int way, int batch, Times* out) {                             \
        return guarded([&] { *out = ways[way].round(*made, batch); });                                      \
    }
