/* The local step of LDA as in ../lda_document.h, with one document for each block of threads.
 *
 * GROUP threads process a word, and each has ROUNDS vectors of four topics.  A group processes
 * TOGETHER words at the same time.  The rows of a document's first words are copied to shared
 * memory.  The code is compiled for K, K_PAD, GROUP, WARPS and MIXED, which is 1 if documents have
 * their own temperatures, so that weights are computed from logarithms.  No topics are dropped. */

#define ROUNDS ((K4 + GROUP - 1) / GROUP)
#define TOGETHER (ROUNDS > 8 ? 1 : 2)
#define N_THREADS (32 * WARPS)
#define N_GROUPS (N_THREADS / GROUP)
#define OWN ((K_PAD + N_THREADS - 1) / N_THREADS) /* topics that a thread updates */

/* A document's words. */
struct Words {
    int n, n_copied;
    const int *indices;
    const float *counts;
    const float4 *weights, *copied; /* logarithms if MIXED, but for the copies */
    float b, eps, clamp;
};

__device__ __forceinline__ float4 raised_weights(const Words &doc, float4 w)
{
#if MIXED
    return make_float4(raise(w.x, doc.b, doc.clamp), raise(w.y, doc.b, doc.clamp),
                       raise(w.z, doc.b, doc.clamp), raise(w.w, doc.b, doc.clamp));
#else
    return w;
#endif
}

__device__ __forceinline__ float dot(float4 a, float4 b, float sum)
{
    return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

__device__ __forceinline__ float4 added(float c, float4 w, float4 s)
{
    return make_float4(fmaf(c, w.x, s.x), fmaf(c, w.y, s.y), fmaf(c, w.z, s.z), fmaf(c, w.w, s.w));
}

/* Compute the norms of a document's words, and `part`, s_k = sum_v ratio_v W_vk over each group's
 * words.  With FINISH also compute the ratios, this thread's part of sum_v n_v log norm_v and, if
 * there are logarithms, its part of sum_v ratio_v sum_k t_k W_vk l_vk. */
template <bool FINISH>
__device__ __forceinline__ void sweep(const Words &doc, const float4 *t, float4 *part,
                                      const float4 *logs, float *ratios, double *log_norm,
                                      double *energy)
{
    const int lane = threadIdx.x % GROUP, group = threadIdx.x / GROUP;
    const int of_warp = threadIdx.x / 32 * (32 / GROUP) * TOGETHER;
    const float4 zero = make_float4(0.f, 0.f, 0.f, 0.f);
    float4 s[ROUNDS], own[ROUNDS];
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        const int q = r * GROUP + lane;
        s[r] = zero;
        own[r] = q < K4 ? t[q] : zero;
    }
    for (int first = 0; first + of_warp < doc.n; first += N_GROUPS * TOGETHER) {
        float4 w[TOGETHER][ROUNDS];
        float norm[TOGETHER];
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) {
            const int v = first + group * TOGETHER + i, j = v < doc.n ? v : doc.n - 1;
            norm[i] = 0.f;
            if (j < doc.n_copied) {
                const float4 *row = doc.copied + j * K4;
#pragma unroll
                for (int r = 0; r < ROUNDS; r++)
                    w[i][r] = r * GROUP + lane < K4 ? row[r * GROUP + lane] : zero;
            } else {
                const float4 *row = doc.weights + (int64)doc.indices[j] * K4;
#pragma unroll
                for (int r = 0; r < ROUNDS; r++)
                    w[i][r] = r * GROUP + lane < K4
                                  ? raised_weights(doc, __ldg(row + r * GROUP + lane)) : zero;
            }
#pragma unroll
            for (int r = 0; r < ROUNDS; r++)
                norm[i] = dot(own[r], w[i][r], norm[i]);
        }
#pragma unroll
        for (int o = GROUP / 2; o; o /= 2)
#pragma unroll
            for (int i = 0; i < TOGETHER; i++)
                norm[i] += __shfl_xor_sync(~0u, norm[i], o);
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) {
            const int v = first + group * TOGETHER + i;
            const float count = v < doc.n ? doc.counts[v] : 0.f;
            const float ratio = count / (norm[i] + doc.eps);
#pragma unroll
            for (int r = 0; r < ROUNDS; r++)
                s[r] = added(ratio, w[i][r], s[r]);
            if (FINISH && v < doc.n) {
                if (lane == 0) {
                    ratios[v] = ratio;
                    *log_norm += (double)count * (double)logf(fmaxf(norm[i], LEAST));
                }
                float sum = 0.f;
                for (int r = 0; logs && r < ROUNDS; r++)
                    if (r * GROUP + lane < K4) {
                        const float4 l = logs[(int64)doc.indices[v] * K4 + r * GROUP + lane];
                        const float4 x = own[r], y = w[i][r];
                        sum = dot(make_float4(x.x * y.x, x.y * y.y, x.z * y.z, x.w * y.w), l, sum);
                    }
                *energy += (double)ratio * (double)sum;
            }
        }
    }
#pragma unroll
    for (int r = 0; r < ROUNDS; r++)
        if (r * GROUP + lane < K4)
            part[group * K4 + r * GROUP + lane] = s[r];
}

/* Compute the sum over groups. */
__device__ __forceinline__ float over_groups(const float *part, int k)
{
    float sum = part[k];
#pragma unroll
    for (int g = 1; g < N_GROUPS; g++)
        sum += part[g * K_PAD + k];
    return sum;
}

/* Compute t_k = exp(b (f(gamma_k) - f(reference))), and the reference. */
struct Reference {
    float at, scale, shift, b, sparsity, clamp;

    __device__ void set(float now)
    {
        at = now;
        scale = 1.f;
        shift = 0.f;
        if (now > 0.f)
            scale = digamma_parts(now, sparsity, &shift);
        if (b != 1.f) {
            shift -= logf(scale);
            scale = 1.f;
        }
    }

    __device__ float raised(float x) const
    {
        float own;
        const float of_x = digamma_parts(x, sparsity, &own);
        if (b == 1.f)
            return of_x / scale * expf(fmaxf(shift - own, clamp));
        return expf(fmaxf(b * (logf(of_x) + (shift - own)), clamp));
    }
};

extern "C" __global__ void __launch_bounds__(N_THREADS, RESIDENT) fit_documents(
    const int *__restrict__ order,     /* IN  the document of each block */
    const int *__restrict__ indptr,    /* IN  where the words of each document begin */
    const int *__restrict__ indices,   /* IN  words */
    const float *__restrict__ data,    /* IN  their counts */
    const double *__restrict__ tokens, /* IN  the sums of these */
    const float4 *__restrict__ weights, /* IN  (V, K_PAD) from refresh_weights, raised to b0 */
    const float *__restrict__ log_scale, /* IN  (V,) */
    const float4 *logs,                /* IN  (V, K_PAD), needed for energies and if MIXED */
    const float *__restrict__ b_of,    /* IN  inverse temperature of each document */
    const float *__restrict__ alpha,   /* IN  (K,) */
    float eps,                         /* IN  added to each norm; 0 to normalise instead */
    float sparsity,                    /* IN */
    float relaxation,                  /* IN  of iterations after the first */
    float tolerance,                   /* IN  on sum_k |change of gamma_k|, relative: see by_topic */
    int by_topic,                      /* IN  relative to K, or else to the document's tokens */
    int max_iter,                      /* IN */
    int room,                          /* IN  rows for which there is shared memory */
    int finish,                        /* IN  whether t and ratio are wanted, and so on */
    float *gamma,                      /* IN/OUT (n, K) */
    float *t_out,                      /* OUT (n, K_PAD), or null */
    float *ratio,                      /* OUT (nnz,) */
    double *log_normalizer,            /* OUT (n,), or null */
    double *energy)                    /* OUT (n,), or null */
{
    DYNAMIC_SHARED(float4, shared);
    float4 *const t4 = shared, *const part4 = t4 + K4, *const copied = part4 + N_GROUPS * K4 + WARPS;
    float *const t = (float *)t4, *const part = (float *)part4;
    double *const sums = (double *)(part4 + N_GROUPS * K4);
    float *const changes = (float *)sums;
    const int d = order[blockIdx.x], begin = indptr[d], n = indptr[d + 1] - begin;
    const int tid = threadIdx.x;
    const float b = b_of[d], clamp = eps > 0.f ? CLAMP_PLAIN : CLAMP;
    const Words doc = {n, n < room ? n : room, indices + begin, data + begin,
                       MIXED ? logs : weights, copied, b, eps, clamp};
    const double enough = (double)tolerance * (by_topic ? (double)K : tokens[d]);

    for (int i = tid; i < doc.n_copied * K4; i += N_THREADS)
        copied[i] = raised_weights(doc, __ldg(doc.weights + (int64)doc.indices[i / K4] * K4 + i % K4));
    float own[OWN], now = 0.f;
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        const int k = tid + i * N_THREADS;
        own[i] = k < K ? gamma[(int64)d * K + k] : 0.f;
        now = eps > 0.f ? now + own[i] : fmaxf(now, own[i]);
    }
    now = over_block(now, eps == 0.f, changes);
    Reference reference = {now, 1.f, 0.f, b, sparsity, clamp};
    reference.set(now);
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        const int k = tid + i * N_THREADS;
        if (k < K_PAD)
            t[k] = k < K ? reference.raised(own[i]) : 0.f;
    }
    __syncthreads();
    for (int it = 1; it <= max_iter; it++) {
        sweep<false>(doc, t4, part4, 0, 0, 0, 0);
        __syncthreads();
        float change = 0.f;
        now = 0.f;
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            const int k = tid + i * N_THREADS;
            if (k < K) {
                const float old = own[i];
                float next = fmaf(b * t[k], over_groups(part, k), alpha[k]);
                if (it > 1 && relaxation != 1.f)
                    next = fmaxf(fmaf(relaxation, next - old, old), alpha[k]);
                change += fabsf(next - old);
                now = eps > 0.f ? now + next : fmaxf(now, next);
                own[i] = next;
                t[k] = reference.raised(next);
            }
        }
#pragma unroll
        for (int o = 16; o; o /= 2) {
            const float other = __shfl_xor_sync(~0u, now, o);
            change += __shfl_xor_sync(~0u, change, o);
            now = eps > 0.f ? now + other : fmaxf(now, other);
        }
        if (tid % 32 == 0) {
            changes[tid / 32] = change;
            changes[WARPS + tid / 32] = now;
        }
        __syncthreads();
        change = changes[0];
        now = changes[WARPS];
#pragma unroll
        for (int w = 1; w < WARPS; w++) {
            change += changes[w];
            now = eps > 0.f ? now + changes[WARPS + w] : fmaxf(now, changes[WARPS + w]);
        }
        const float slack = eps > 0.f ? 0x1p-17f : now < 1.f ? 0.f : 0.5f;
        if (now > reference.at * (1.f + slack) || now < reference.at * (1.f - slack)) {
            reference.set(now);
#pragma unroll
            for (int i = 0; i < OWN; i++)
                if (tid + i * N_THREADS < K)
                    t[tid + i * N_THREADS] = reference.raised(own[i]);
            __syncthreads();
        }
        if ((double)change < enough || n == 0)
            break;
    }
    double total = 0.0;
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        const int k = tid + i * N_THREADS;
        if (k < K) {
            gamma[(int64)d * K + k] = own[i];
            total += (double)own[i];
        }
        if (t_out && k < K_PAD)
            t_out[(int64)d * K_PAD + k] = t[k];
    }
    if (!finish)
        return;
    double log_norm = 0.0, words = 0.0, scale = 0.0, topics = 0.0;
    sweep<true>(doc, t4, part4, energy ? logs : 0, ratio + begin, &log_norm, &words);
    __syncthreads();
    if (!log_normalizer && !energy)
        return;
    total = over_block(total, false, sums);
    for (int v = tid; v < n; v += N_THREADS)
        scale += (double)doc.counts[v] * (double)log_scale[doc.indices[v]];
    scale = over_block(scale, false, sums);
    const float psi_total = digamma((float)total, 0.f);
    if (log_normalizer) {
        log_norm = over_block(log_norm, false, sums);
        const double moved = (double)digamma(reference.at, sparsity) - (double)psi_total;
        if (tid == 0)
            log_normalizer[d] = log_norm + (double)b * (tokens[d] * moved + scale);
    }
    if (energy) {
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            const int k = tid + i * N_THREADS;
            if (k < K)
                topics += (double)(t[k] * over_groups(part, k) * (digamma(own[i], 0.f) - psi_total));
        }
        words = over_block(words + topics, false, sums);
        if (tid == 0)
            energy[d] = words + scale;
    }
}
