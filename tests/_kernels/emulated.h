/* CUDA's words for a C++ compiler.  The threads of a block are fibers of one thread, which run in
 * turn from barrier to barrier; emulated::run launches a kernel. */
#include <cmath>
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
static dim3 threadIdx, blockIdx, blockDim;
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
template <typename T> T __ldg(const T *p) { return *p; }
namespace emulated {
struct Barrier { int waiting, passed; };
struct Fiber {
    ucontext_t start;
    void *at[5]; /* where it waits */
    int begun, ended, turn;
    double shown[2]; /* to its warp, in turns */
    std::vector<char> stack;
};
static std::vector<Fiber> fibers;
static std::vector<Barrier> barriers; /* of the block, and of each warp */
static std::function<void()> kernel;
static ucontext_t caller;
static void *shared;
__attribute__((noinline)) static void go_on(Fiber &fiber) { __builtin_longjmp(fiber.at, 1); }
__attribute__((noinline)) static void give_way() /* to the next fiber that has not ended */
{
    const int n = blockDim.x, me = threadIdx.x;
    for (threadIdx.x = (me + 1) % n; fibers[threadIdx.x].ended && threadIdx.x != me;)
        threadIdx.x = (threadIdx.x + 1) % n;
    if (threadIdx.x == me || __builtin_setjmp(fibers[me].at))
        return;
    if (fibers[threadIdx.x].begun)
        go_on(fibers[threadIdx.x]);
    fibers[threadIdx.x].begun = true;
    setcontext(&fibers[threadIdx.x].start);
}
static void wait_at(Barrier &barrier, int size)
{
    const int passed = barrier.passed;
    if (++barrier.waiting == size)
        barrier = {0, passed + 1};
    while (barrier.passed == passed)
        give_way();
}
static void run_fiber()
{
    kernel(), fibers[threadIdx.x].ended = true, give_way(); /* comes back when all have ended */
}
static void run(dim3 grid, int n_threads, size_t n_shared, std::function<void()> body)
{
    kernel = body, blockDim = {n_threads, 1, 1}, fibers.resize(n_threads);
    for (int i = 0; i < grid.x * grid.y; i++) {
        std::vector<char> room(n_shared, -1); /* NaN, until it is written */
        shared = room.data(), blockIdx = {i % grid.x, i / grid.x, 0}, threadIdx = {0, 0, 0};
        barriers.assign(1 + n_threads / 32, {0, 0});
        for (Fiber &fiber : fibers) {
            getcontext(&fiber.start);
            fiber.stack.resize(1 << 17), fiber.start.uc_stack = {fiber.stack.data(), 0, 1 << 17};
            fiber.start.uc_link = &caller, fiber.turn = 0, fiber.ended = false;
            fiber.begun = &fiber == fibers.data(), makecontext(&fiber.start, run_fiber, 0);
        }
        swapcontext(&caller, &fibers[0].start);
    }
}
} // namespace emulated
inline void __syncthreads() { emulated::wait_at(emulated::barriers[0], blockDim.x); }
template <typename T> T __shfl_xor_sync(unsigned, T x, int other) /* of a float or a double */
{
    const int me = threadIdx.x, turn = emulated::fibers[me].turn++ % 2;
    emulated::fibers[me].shown[turn] = (double)x;
    emulated::wait_at(emulated::barriers[1 + me / 32], 32);
    return (T)emulated::fibers[me ^ other].shown[turn];
}
