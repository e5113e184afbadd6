/* CUDA's words for a C++ compiler: the threads of a block are fibers of one thread, which run in
 * turn from barrier to barrier.  Include this before the source of kernels; RUN launches one. */
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <ucontext.h>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define DYNAMIC_SHARED(type, name) type *const name = (type *)emulated::shared
struct float4 { float x, y, z, w; };
struct dim3 { int x, y, z; };
static dim3 threadIdx, blockIdx, blockDim, gridDim;
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
template <typename T> T __ldg(const T *p) { return *p; }

namespace emulated {
struct Barrier { int waiting, passed; };
struct Fiber { ucontext_t start; void *at[5]; bool begun, ended; char *stack; };
static const size_t STACK = 1 << 17;
static std::vector<Fiber> fibers;
static std::vector<Barrier> barriers; /* of the block, and of each warp */
static std::vector<double> lanes;     /* two for each thread: what it shows to its warp */
static std::vector<int> shuffles;
static std::function<void()> kernel;
static ucontext_t caller;
static void *shared;

__attribute__((noinline)) static void go_on(Fiber &next) { __builtin_longjmp(next.at, 1); }

__attribute__((noinline)) static void yield()
{
    const int n = (int)fibers.size(), me = threadIdx.x;
    int next = (me + 1) % n;
    while (fibers[next].ended && next != me)
        next = (next + 1) % n;
    if (next == me)
        return;
    threadIdx.x = next;
    if (__builtin_setjmp(fibers[me].at))
        return;
    if (fibers[next].begun)
        go_on(fibers[next]);
    fibers[next].begun = true;
    setcontext(&fibers[next].start);
}

static void wait_at(Barrier &barrier, int size)
{
    const int passed = barrier.passed;
    if (++barrier.waiting == size) {
        barrier.waiting = 0;
        barrier.passed++;
    }
    while (barrier.passed == passed)
        yield();
}

static void run_fiber()
{
    kernel();
    fibers[threadIdx.x].ended = true;
    for (auto &fiber : fibers)
        if (!fiber.ended)
            yield(); /* never returns: nobody goes on with a fiber that has ended */
    setcontext(&caller);
}

static void run_block(int n_threads)
{
    volatile bool done = false;
    for (auto &fiber : fibers) {
        getcontext(&fiber.start);
        fiber.begun = fiber.ended = false;
        fiber.start.uc_stack.ss_sp = fiber.stack;
        fiber.start.uc_stack.ss_size = STACK;
        makecontext(&fiber.start, run_fiber, 0);
    }
    barriers.assign(1 + n_threads / 32, {0, 0});
    threadIdx = {0, 0, 0};
    getcontext(&caller);
    if (done)
        return;
    done = true;
    fibers[0].begun = true;
    setcontext(&fibers[0].start);
}

static void run(dim3 grid, int n_threads, size_t n_shared, std::function<void()> body)
{
    kernel = body;
    blockDim = {n_threads, 1, 1};
    fibers.resize(n_threads);
    lanes.resize(2 * n_threads);
    shuffles.assign(n_threads, 0);
    for (auto &fiber : fibers)
        fiber.stack = (char *)malloc(STACK);
    for (int y = 0; y < grid.y; y++)
        for (int x = 0; x < grid.x; x++) {
            shared = malloc(n_shared);
            memset(shared, 0xff, n_shared); /* NaN, until it is written */
            blockIdx = {x, y, 0};
            run_block(n_threads);
            free(shared);
        }
    for (auto &fiber : fibers)
        free(fiber.stack);
}
} // namespace emulated

inline void __syncthreads() { emulated::wait_at(emulated::barriers[0], blockDim.x); }

template <typename T> T __shfl_xor_sync(unsigned, T x, int other)
{
    using namespace emulated;
    const int me = threadIdx.x, turn = shuffles[me]++ % 2;
    memcpy(&lanes[2 * me + turn], &x, sizeof x);
    wait_at(barriers[1 + me / 32], 32);
    memcpy(&x, &lanes[2 * (me ^ other) + turn], sizeof x);
    return x;
}
