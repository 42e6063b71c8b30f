// The twin of lessons 01 and 04: one launch of an executable graph, and the wait for it.
//
// Python makes the executable and the stream; both sides launch the very same ones.
#include "baseline.cuh"

extern "C" const char* baseline_error() { return error_text().c_str(); }

extern "C" int launch_round(cudaGraphExec_t executable, cudaStream_t stream, Times* out) {
    return guarded([&] { *out = launch_and_wait(executable, stream, Clock::now(), false); });
}

// What the clock itself takes: nothing happens between two looks at it.
extern "C" int empty_round(Times* out) {
    auto begin = Clock::now();
    auto end = Clock::now();
    *out = {NONE, us(begin, end), us(begin, end)};
    return 0;
}
