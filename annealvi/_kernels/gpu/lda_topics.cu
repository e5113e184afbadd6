/* The topics of LDA, as in ../lda_topics.pyx and ../lda_words.h: weights of words, statistics, the
 * step of lambda and its sums.
 *
 * All sums are in double precision and in a fixed order.  The entries of a word are summed in their
 * order, in chunks, and words are summed in blocks of WORDS. */

#define WORDS 64

/* W_vk = exp(b (l_vk - log_scale_v)); a block of threads computes one word; see topic_weights. */
extern "C" __global__ void refresh_weights(
    const float *__restrict__ lam,      /* IN  (V, K_PAD) */
    const float *__restrict__ log_sums, /* IN  (K_PAD,) */
    int mean,                           /* IN  log E beta replaces E log beta; 2: sums differ much */
    float b,                            /* IN  inverse temperature */
    int normalise,                      /* IN  relative to each row's largest logarithm */
    float *weights,                     /* OUT (V, K_PAD) */
    float *log_scale,                   /* OUT (V,) */
    float *logs)                        /* OUT (V, K_PAD) logarithms at b = 1, or null */
{
    DYNAMIC_SHARED(float, exponents); /* K_PAD, and one for each warp */
    const int64 row = (int64)blockIdx.x * K_PAD;
    const bool split = b == 1.f && mean < 2;
    float top = -3e38f;
    for (int k = threadIdx.x; k < K; k += blockDim.x) {
        float shift = 0.f, scale = lam[row + k];
        if (!mean)
            scale = digamma_parts(scale, 0.f, &shift);
        const float rest = -shift - log_sums[k];
        exponents[k] = split ? rest : rest + logf(scale);
        weights[row + k] = split ? scale : 1.f;
        top = fmaxf(top, exponents[k]);
    }
    top = over_block(top, true, exponents + K_PAD);
    if (!normalise)
        top = 0.f;
    const float clamp = normalise ? CLAMP : CLAMP_PLAIN;
    for (int k = threadIdx.x; k < K_PAD; k += blockDim.x) {
        const float rest = k < K ? exponents[k] - top : 0.f;
        if (logs)
            logs[row + k] = k >= K ? PADDED_LOG : split ? rest + logf(weights[row + k]) : rest;
        weights[row + k] = k < K ? weights[row + k] * expf(fmaxf(b * rest, clamp)) : 0.f;
    }
    if (threadIdx.x == 0)
        log_scale[blockIdx.x] = top;
}

/* sum_d b_d ratio_dv t_dk over a chunk of a word's entries, with one thread for each topic.  If
 * MIXED, each term is multiplied by its weight. */
extern "C" __global__ void accumulate_statistics(
    const int *__restrict__ first,    /* IN  (chunks + 1,) where the entries of each begin */
    const int *__restrict__ word,     /* IN  (chunks,) */
    const int *__restrict__ document, /* IN  of each entry */
    const int *__restrict__ position, /* IN  of its ratio */
    const float *__restrict__ ratio,  /* IN */
    const float *__restrict__ t,      /* IN  (n, K_PAD) */
    const float *__restrict__ b,      /* IN  (n,) */
    const float *__restrict__ logs,   /* IN  (V, K_PAD), if MIXED */
    float clamp,                      /* IN */
    double *partial)                  /* OUT (chunks, K_PAD) */
{
    const int c = blockIdx.x, k = blockIdx.y * blockDim.x + threadIdx.x, end = first[c + 1];
    if (k >= K_PAD)
        return;
    double sum = 0.0;
#if MIXED
    const float log = logs[(int64)word[c] * K_PAD + k];
#endif
#pragma unroll 8
    for (int e = first[c]; e < end; e++) {
        const int d = document[e];
        const float share = b[d] * ratio[position[e]], own = t[(int64)d * K_PAD + k];
#if MIXED
        sum += (double)share * (double)own * (double)raise(log, b[d], clamp);
#else
        sum = fma((double)share, (double)own, sum);
#endif
    }
    partial[(int64)c * K_PAD + k] = sum;
}

/* Add the chunks of each word to its statistics and, if wanted, compute the energy of words at the
 * inverse temperature b0.  A block of threads computes one word. */
extern "C" __global__ void collect_statistics(
    const int *__restrict__ chunks,     /* IN  (V + 1,) where those of each word begin */
    const double *__restrict__ partial, /* IN  (chunks, K_PAD) */
    const float *__restrict__ weights,  /* IN  (V, K_PAD) */
    const float *__restrict__ log_scale, /* IN  (V,) */
    float b0,                           /* IN */
    float *statistics,                  /* IN/OUT (V, K_PAD) */
    double *word_energy)                /* OUT (V,), or null */
{
    DYNAMIC_SHARED(double, room); /* one for each warp */
    const int v = blockIdx.x;
    const int64 row = (int64)v * K_PAD;
    double dot = 0.0, all = 0.0;
    for (int k = threadIdx.x; k < K_PAD; k += blockDim.x) {
        double sum = 0.0;
        for (int c = chunks[v]; c < chunks[v + 1]; c++)
            sum += partial[(int64)c * K_PAD + k];
        const float w = weights[row + k];
        sum = sum * (MIXED ? 1.0 : (double)w) + (double)statistics[row + k];
        statistics[row + k] = (float)sum;
        dot += (double)statistics[row + k] * (double)logf(fmaxf(w, LEAST));
        all += (double)statistics[row + k];
    }
    if (!word_energy)
        return;
    dot = over_block(dot, false, room);
    all = over_block(all, false, room);
    if (threadIdx.x == 0)
        word_energy[v] = (dot / (double)b0 + all * (double)log_scale[v]) / (double)b0;
}

/* lam = max(eta + factor (lam - eta) + amount statistics, floor) for WORDS words, and the sums of
 * lam over these words, with one thread for each topic. */
extern "C" __global__ void step_topics(
    int n_words,                         /* IN  V */
    float *lam,                          /* IN/OUT (V, K_PAD) */
    const float *__restrict__ eta,       /* IN */
    int of_words,                        /* IN  its stride between words, or 0 */
    int of_topics,                       /* IN  and between topics */
    const float *__restrict__ statistics, /* IN  (V, K_PAD) */
    float factor,                        /* IN */
    float amount,                        /* IN */
    float floor,                         /* IN */
    double *partial)                     /* OUT (blocks, K) */
{
    const int k = blockIdx.y * blockDim.x + threadIdx.x, end = (blockIdx.x + 1) * WORDS;
    if (k >= K)
        return;
    double sum = 0.0;
    for (int v = blockIdx.x * WORDS; v < end && v < n_words; v++) {
        const float prior = eta[(int64)v * of_words + (int64)k * of_topics];
        float own = lam[(int64)v * K_PAD + k];
        own = factor == 1.f ? own : prior + factor * (own - prior);
        own = own + amount * statistics[(int64)v * K_PAD + k];
        own = own < floor ? floor : own;
        lam[(int64)v * K_PAD + k] = own;
        sum += (double)own;
    }
    partial[(int64)blockIdx.x * K + k] = sum;
}

/* Add up the blocks of words, in their order. */
extern "C" __global__ void add_blocks(int n_blocks, const double *__restrict__ partial, double *sums)
{
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= K)
        return;
    double sum = 0.0;
    for (int block = 0; block < n_blocks; block++)
        sum += partial[(int64)block * K + k];
    sums[k] = sum;
}
