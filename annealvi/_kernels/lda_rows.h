/* LDA for one document and for one word.  A template: see vector.h.
 *
 * A row holds K numbers padded with K_pad - K others to a whole number of
 * 64-byte lines.  Rows of topic weights are 0 in the padding and rows of
 * prior counts repeat their first element there, so that padded lanes never
 * contribute and never overflow; nothing below treats them apart.
 *
 * One document at inverse temperature b, topic weights W_vk ~ exp(b E log beta_kv):
 *     t_k     = exp(b (psi(gamma_k) - reference))
 *     norm_v  = sum_k t_k W_vk
 *     gamma_k = alpha_k + b t_k sum_v (n_v / norm_v) W_vk
 * which is phi_vk = t_k W_vk / norm_v written without phi (Hoffman et al. 2013;
 * Mandt et al. 2016, the likelihood tempered by b).
 */

/* The least exponents, so that no norm is 0 and no ratio overflows: where exponents are
 * relative to a maximum e^-40 = 4e-18 is below any share of a word that matters in
 * float, and where scikit-learn's arithmetic is wanted the result only has to be next
 * to 0. */
#undef CLAMP
#undef CLAMP_PLAIN
#define CLAMP ((REAL)(BITS == 64 ? -300 : -40))
#define CLAMP_PLAIN ((REAL)(BITS == 64 ? -600 : -60))
/* In the padding of a row of logarithms, which no lambda reaches: E log beta > -1e38 is
 * possible in float, but then nothing is to be had of that topic at any b. */
#undef PADDED_LOG
#define PADDED_LOG (-1e30)

/* exp(psi(reference)) = scale * exp(-shift), or 1 where reference = 0. */
INLINE void FN(reference_parts)(REAL reference, V *scale, V *shift)
{
    *scale = FN(splat)(1);
    *shift = (V){0};
    if (reference > 0)
        FN(digamma_parts)(FN(splat)(reference), 0, scale, shift);
}

/* out_k = exp(max(b (psi(x_k) - psi(reference)), clamp)), up to what the clamp leaves
 * out at b = 1, with the reference in parts.  `near`: all x < FAR is known. */
INLINE void FN(exp_digamma_row_at)(int near, int K_pad, const REAL *x, V ref_scale, V ref_shift,
                                   REAL b, REAL clamp, REAL *out)
{
    const V floor = FN(splat)(clamp);
    if (b == 1) {
        const V unit = 1 / ref_scale;
        for (int k = 0; k < K_pad; k += LANES) {
            V scale, shift;
            FN(digamma_parts)(FN(load)(x + k), near, &scale, &shift);
            const V factor = FN(exp_clamped)(FN(max)(ref_shift - shift, floor));
            FN(store)(out + k, scale * unit * factor);
        }
    } else {
        const V ref_log = FN(log)(ref_scale);
        for (int k = 0; k < K_pad; k += LANES) {
            V scale, shift;
            FN(digamma_parts)(FN(load)(x + k), near, &scale, &shift);
            const V exponent = b * ((FN(log)(scale) - ref_log) + (ref_shift - shift));
            FN(store)(out + k, FN(exp_clamped)(FN(max)(exponent, floor)));
        }
    }
}

INLINE void FN(exp_digamma_row)(int K_pad, const REAL *x, REAL largest, V ref_scale, V ref_shift,
                                REAL b, REAL clamp, REAL *out)
{
    if (largest < (REAL)FAR)
        FN(exp_digamma_row_at)(1, K_pad, x, ref_scale, ref_shift, b, clamp, out);
    else
        FN(exp_digamma_row_at)(0, K_pad, x, ref_scale, ref_shift, b, clamp, out);
}

/* norm_j = sum_k t_k W_jk for `n` (4 or 8) words.  Whole vectors are written. */
INLINE void FN(norms)(int n, int K_pad, const REAL *const *rows, const REAL *t, REAL *norm)
{
    V acc[WORD_BLOCK];
    const REAL *row[WORD_BLOCK];
#pragma GCC unroll 8
    for (int j = 0; j < n; j++) {
        acc[j] = (V){0};
        row[j] = rows[j];
    }
    for (int k = 0; k < K_pad; k += LANES) {
        const V tk = FN(load)(t + k);
#pragma GCC unroll 8
        for (int j = 0; j < n; j++)
            acc[j] += tk * FN(load)(row[j] + k);
    }
    FN(sum_lanes)(acc, n, norm);
}

/* The same, and ratio_j = n_j / (norm_j + eps). */
INLINE void FN(normalizers)(int n, int K_pad, const REAL *const *rows, const REAL *counts,
                            const REAL *t, REAL eps, REAL *norm, REAL *ratio)
{
    FN(norms)(n, K_pad, rows, t, norm);
#pragma GCC unroll 4
    for (int j = 0; j < n; j += LANES)
        FN(store)(ratio + j, FN(load)(counts + j) / (FN(load)(norm + j) + eps));
}

/* s_k += sum_j ratio_j W_jk for the same words, whose rows are still in the first cache. */
INLINE void FN(add_rows)(int n, int K_pad, const REAL *const *rows, const REAL *ratio, REAL *s)
{
    V r[WORD_BLOCK];
    const REAL *row[WORD_BLOCK];
#pragma GCC unroll 8
    for (int j = 0; j < n; j++) {
        r[j] = FN(splat)(ratio[j]);
        row[j] = rows[j];
    }
    for (int k = 0; k < K_pad; k += LANES) {
        V even = FN(load)(s + k), odd = (V){0};
#pragma GCC unroll 4
        for (int j = 0; j < n; j += 2) {
            even += r[j] * FN(load)(row[j] + k);
            odd += r[j + 1] * FN(load)(row[j + 1] + k);
        }
        FN(store)(s + k, even + odd);
    }
}

/* The words of a block: all of it, or the half that the last words of a document fill.
 * Rows and counts are padded to a whole block with words of count 0. */
INLINE int FN(block_size)(int64_t n_words, int64_t first)
{
    return n_words - first > WORD_BLOCK / 2 ? WORD_BLOCK : WORD_BLOCK / 2;
}

INLINE void FN(block_normalizers)(int64_t n_words, int64_t j, int K_pad, const REAL *const *rows,
                                  const REAL *counts, const REAL *t, REAL eps, REAL *norm,
                                  REAL *ratio)
{
    if (FN(block_size)(n_words, j) == WORD_BLOCK)
        FN(normalizers)(WORD_BLOCK, K_pad, rows + j, counts + j, t, eps, norm, ratio);
    else
        FN(normalizers)(WORD_BLOCK / 2, K_pad, rows + j, counts + j, t, eps, norm, ratio);
}

/* One sweep over a document: s_k += sum_v ratio_v W_vk.
 *
 * The norms of the next block come before the rows of this one are added, so that the
 * division is not waited for.  Sweeps go forwards and backwards in turn: the rows of a
 * document are often a little larger than the first cache, and what the last sweep
 * touched last is still there. */
static void FN(sweep)(int backwards, int64_t n_words, int K_pad, const REAL *const *rows,
                      const REAL *counts, const REAL *t, REAL eps, REAL *s)
{
    REAL norm[WORD_BLOCK + LANES], ratio[2][WORD_BLOCK + LANES];
    const int64_t n_blocks = (n_words + WORD_BLOCK - 1) / WORD_BLOCK;
    const int64_t step = backwards ? -WORD_BLOCK : WORD_BLOCK;
    int64_t j = backwards ? (n_blocks - 1) * WORD_BLOCK : 0;
    const int ahead = 2 * WORD_BLOCK * K_pad * (int)sizeof(REAL) <= FIRST_CACHE;
    if (n_blocks > 0 && ahead)
        FN(block_normalizers)(n_words, j, K_pad, rows, counts, t, eps, norm, ratio[0]);
    for (int64_t i = 0; i < n_blocks; i++, j += step) {
        if (!ahead)
            FN(block_normalizers)(n_words, j, K_pad, rows, counts, t, eps, norm, ratio[i & 1]);
        else if (i + 1 < n_blocks)
            FN(block_normalizers)(n_words, j + step, K_pad, rows, counts, t, eps, norm,
                                  ratio[(i + 1) & 1]);
        if (FN(block_size)(n_words, j) == WORD_BLOCK)
            FN(add_rows)(WORD_BLOCK, K_pad, rows + j, ratio[i & 1], s);
        else
            FN(add_rows)(WORD_BLOCK / 2, K_pad, rows + j, ratio[i & 1], s);
    }
}

/* The norms and ratios alone, for all words. */
static void FN(all_normalizers)(int64_t n_words, int K_pad, const REAL *const *rows,
                                const REAL *counts, const REAL *t, REAL eps, REAL *norm,
                                REAL *ratio)
{
    for (int64_t j = 0; j < n_words; j += WORD_BLOCK)
        FN(block_normalizers)(n_words, j, K_pad, rows, counts, t, eps, norm + j, ratio + j);
}

/* The norms of all words of a document: with E[theta] for t and E[beta] for W, how probable
 * each word is. */
static void FN(mixture)(int64_t n_words, int K_pad, const REAL *const *rows, const REAL *t,
                        REAL *norm)
{
    for (int64_t j = 0; j < n_words; j += WORD_BLOCK)
        FN(norms)(WORD_BLOCK, K_pad, rows + j, t, norm + j);
}

/* About the largest of a row: padding counts, which is harmless, for it holds a prior. */
INLINE REAL FN(largest_of)(int K_pad, const REAL *x)
{
    V top = FN(load)(x);
    for (int k = LANES; k < K_pad; k += LANES)
        top = FN(max)(top, FN(load)(x + k));
    REAL largest = top[0];
    for (int l = 1; l < LANES; l++)
        largest = top[l] > largest ? top[l] : largest;
    return largest;
}

/* The lanes of `sum`, the sum of a row's vectors, without the row's padding. */
INLINE REAL FN(add_lanes)(int K, int K_pad, const REAL *x, V sum)
{
    double total = 0;
    for (int l = 0; l < LANES; l++)
        total += (double)sum[l];
    for (int k = K; k < K_pad; k++)
        total -= (double)x[k];
    return (REAL)total;
}

INLINE REAL FN(total_of)(int K, int K_pad, const REAL *x)
{
    V sum = {0};
    for (int k = 0; k < K_pad; k += LANES)
        sum += FN(load)(x + k);
    return FN(add_lanes)(K, K_pad, x, sum);
}

/* A document with few topics is swept over by columns: NARROW topics at most, each with the
 * weights of all words side by side, n_columns of them after padding.  Lanes are words then,
 * so no norm has to be summed over lanes, and the s_k stay in registers until the end. */
#define NARROW 24 /* ANNEALVI_NARROW */
#define NARROW_STEP 4

INLINE void FN(sweep_columns_of)(const int n, int64_t n_words, int64_t n_columns,
                                 const REAL *columns, const REAL *counts, const REAL *t,
                                 REAL eps, REAL *norm, REAL *ratio, REAL *s)
{
    V sum[NARROW];
    REAL sums[WORD_BLOCK + LANES];
#pragma GCC unroll 24
    for (int k = 0; k < n; k++)
        sum[k] = (V){0};
    for (int64_t v = 0; v < n_words; v += LANES) {
        V part[NARROW_STEP];
#pragma GCC unroll 4
        for (int k = 0; k < NARROW_STEP; k++)
            part[k] = t[k] * FN(load)(columns + k * n_columns + v);
#pragma GCC unroll 24
        for (int k = NARROW_STEP; k < n; k++)
            part[k % NARROW_STEP] += t[k] * FN(load)(columns + k * n_columns + v);
        const V total = (part[0] + part[1]) + (part[2] + part[3]);
        const V r = FN(load)(counts + v) / (total + eps);
        if (norm) {
            FN(store)(norm + v, total);
            FN(store)(ratio + v, r);
        } else {
#pragma GCC unroll 24
            for (int k = 0; k < n; k++)
                sum[k] += r * FN(load)(columns + k * n_columns + v);
        }
    }
    if (!norm)
#pragma GCC unroll 6
        for (int k = 0; k < n; k += NARROW_STEP) {
            FN(sum_lanes)(sum + k, NARROW_STEP, sums);
            for (int j = 0; j < NARROW_STEP; j++)
                s[k + j] = sums[j];
        }
}

/* With `norm` the norms and ratios, otherwise s. */
static void FN(sweep_columns)(int n, int64_t n_words, int64_t n_columns, const REAL *columns,
                              const REAL *counts, const REAL *t, REAL eps, REAL *norm,
                              REAL *ratio, REAL *s)
{
#define SWEEP(n) FN(sweep_columns_of)(n, n_words, n_columns, columns, counts, t, eps, norm, ratio, s)
    switch (n) {
    case 4: SWEEP(4); break;
    case 8: SWEEP(8); break;
    case 12: SWEEP(12); break;
    case 16: SWEEP(16); break;
    case 20: SWEEP(20); break;
    default: SWEEP(24);
    }
#undef SWEEP
}

/* A topic may be dropped from a document's sweeps when its t_k is below NEGLIGIBLE of about
 * the largest and the last sweep has given it less than HARDLY_ANY of a word.  The second alone
 * does not do: a topic at alpha = .05 has t = 1e-9 and comes back where others leave its words.
 * Nor does the first: topics that are all small may share a word that no other wants.  With both,
 * what the dropped topics hold together is below K * HARDLY_ANY, and so is any word that only
 * they want. */
#define NEGLIGIBLE ((REAL)ANNEALVI_NEGLIGIBLE)
#define HARDLY_ANY ((REAL)1e-9)
/* What copying a number takes, in numbers swept over. */
#define COPY_COST (3 * LANES)

/* The topics of a document that are swept over: all, or those in `active`, in ascending
 * order, which gamma and t then hold first.  Rows and alpha are then `packed`, padded as rows
 * are, or their `columns` are. */
typedef struct {
    int n;                 /* how many topics */
    int packed;            /* whether they are in `active` */
    int width;             /* numbers that gamma, t and alpha have, padding included */
    int narrow;            /* columns, a multiple of NARROW_STEP; 0 where there are rows */
    const REAL *const *rows;
    const REAL *alpha;
    int64_t n_words, n_columns;
    int64_t room;          /* numbers in own_packed; 0: nothing is dropped */
    int32_t *active;       /* OUT n */
    int32_t *chosen;       /* OUT scratch */
    REAL *own_alpha;       /* OUT */
    const REAL **own_rows; /* OUT n_words, padded */
    REAL *own_packed;      /* OUT room */
    REAL *own_columns;     /* OUT NARROW * n_columns */
} FN(topics);

/* What a sweep takes for each word, in numbers: rows have lanes to sum besides. */
INLINE int FN(sweep_cost)(const FN(topics) *topics)
{
    return topics->narrow ? topics->narrow : topics->width + LANES;
}

/* The rows of the topics in `chosen`, as columns; n is how many. */
static void FN(to_columns)(int n, FN(topics) *topics)
{
    const int64_t stride = topics->n_columns;
    const int narrow = (n + NARROW_STEP - 1) / NARROW_STEP * NARROW_STEP;
    if (topics->narrow) {
        for (int j = 0; j < n; j++)
            if (topics->chosen[j] != j)
                for (int64_t v = 0; v < stride; v++)
                    topics->own_columns[j * stride + v] =
                        topics->own_columns[topics->chosen[j] * stride + v];
    } else {
        for (int64_t v = 0; v < topics->n_words; v++)
            for (int j = 0; j < n; j++)
                topics->own_columns[j * stride + v] = topics->rows[v][topics->chosen[j]];
        for (int j = 0; j < n; j++) /* words of count 0, whose norm must not be */
            for (int64_t v = topics->n_words; v < stride; v++)
                topics->own_columns[j * stride + v] = topics->own_columns[j * stride];
    }
    for (int64_t v = n * stride; v < narrow * stride; v++)
        topics->own_columns[v] = 0;
    topics->narrow = narrow;
}

/* Shorter rows of the topics in `chosen`; in place where they have been shortened before. */
static void FN(to_short_rows)(int n, int width, FN(topics) *topics)
{
    const int64_t n_padded = (topics->n_words + WORD_BLOCK - 1) / WORD_BLOCK * WORD_BLOCK;
    for (int64_t v = 0; v < topics->n_words; v++) {
        const REAL *from = topics->rows[v];
        REAL *to = topics->own_packed + v * width;
        for (int j = 0; j < n; j++)
            to[j] = from[topics->chosen[j]];
        for (int j = n; j < width; j++)
            to[j] = 0;
        topics->own_rows[v] = to;
    }
    for (int64_t v = topics->n_words; v < n_padded; v++)
        topics->own_rows[v] = topics->own_rows[0];
    topics->rows = topics->own_rows;
}

/* Drop the negligible topics after `it` iterations, if that pays: a document is expected to
 * need as many again, each with a cheaper sweep once the weights have been copied.  What is
 * dropped gets gamma = alpha; returns how much that changes gamma. */
static double FN(drop_topics)(int it, REAL *gamma, REAL *t, FN(topics) *topics)
{
    const int line = 64 / (int)sizeof(REAL), before = FN(sweep_cost)(topics);
    const int copy = topics->narrow ? 1 : COPY_COST;
    double moved = 0;
    int n = 0;
    if (it * (int64_t)before < copy) /* not even for one topic */
        return 0;
    VI count = {0};
    for (int k = 0; k < topics->width; k += LANES)
        count -= (FN(load)(t + k) >= NEGLIGIBLE) |
                 (FN(load)(gamma + k) - FN(load)(topics->alpha + k) >= HARDLY_ANY);
    for (int l = 0; l < LANES; l++)
        n += (int)count[l]; /* padding counts */
    if (it * (int64_t)(before - n) < (int64_t)copy * n)
        return 0;
    n = 0;
    for (int k = 0; k < topics->n; k++) {
        if (t[k] >= NEGLIGIBLE || gamma[k] - topics->alpha[k] >= HARDLY_ANY)
            topics->chosen[n++] = k;
        else
            moved += (double)(gamma[k] - topics->alpha[k]);
    }
    const int width = (n + line - 1) / line * line;
    const int narrow = (n + NARROW_STEP - 1) / NARROW_STEP * NARROW_STEP;
    if (n == 0)
        return 0;
    if (n <= NARROW && topics->n_columns > 0) {
        if (narrow == topics->narrow)
            return 0;
        FN(to_columns)(n, topics);
    } else {
        if (width == topics->width || topics->n_words * width > topics->room)
            return 0;
        FN(to_short_rows)(n, width, topics);
    }
    for (int j = 0; j < n; j++) {
        const int k = topics->chosen[j];
        topics->active[j] = topics->packed ? topics->active[k] : k;
        topics->own_alpha[j] = topics->alpha[k];
        gamma[j] = gamma[k];
        t[j] = t[k];
    }
    for (int j = n; j < width; j++) {
        topics->own_alpha[j] = gamma[j] = topics->own_alpha[0];
        t[j] = 0;
    }
    topics->alpha = topics->own_alpha;
    topics->n = n;
    topics->width = width;
    topics->packed = 1;
    return moved;
}

/* s_k = sum_v ratio_v W_vk over some of the words. */
INLINE void FN(sweep_topics)(int backwards, int64_t first, int64_t n_words, const REAL *counts,
                             const REAL *t, REAL eps, const FN(topics) *topics, REAL *s)
{
    for (int k = 0; k < topics->width; k += LANES)
        FN(store)(s + k, (V){0});
    if (topics->narrow)
        FN(sweep_columns)(topics->narrow, n_words, topics->n_columns, topics->own_columns + first,
                          counts + first, t, eps, NULL, NULL, s);
    else
        FN(sweep)(backwards, n_words, topics->width, topics->rows + first, counts + first, t, eps,
                  s);
}

/* Numbers of the topics that are left, put in their places among others. */
static void FN(spread)(int n, const int32_t *active, const REAL *packed, int K_pad,
                       const REAL *others, REAL *out)
{
    for (int k = 0; k < K_pad; k++)
        out[k] = others ? others[k] : 0;
    for (int j = 0; j < n; j++)
        out[active[j]] = packed[j];
}

/* The local step of one document: coordinate ascent between phi and gamma.
 *
 * With eps > 0 t is exp(b E log theta), as scikit-learn has it, and eps is added to
 * every norm: the reference is sum gamma, which only rounding changes after the
 * first iteration.  With eps = 0 the scale of t is free: the reference is about the
 * largest gamma, so that nothing underflows.  Either is worked out again only when it
 * has moved.  Returns the number of iterations. */
static int FN(fit_document)(
    int64_t n_words,
    int K,
    int K_pad,
    const REAL *const *rows, /* IN  n_words pointers to rows of topic weights, padded */
    const REAL *counts,      /* IN  n_words counts, padded with 0 */
    const REAL *alpha,       /* IN  K_pad */
    REAL b,                  /* IN  inverse temperature */
    REAL eps,                /* IN */
    double tolerance,        /* IN  on sum_k |change of gamma_k| */
    int max_iter,            /* IN */
    int finish,              /* IN  whether norm and ratio are wanted at the final gamma */
    int64_t room,            /* IN  numbers in own_packed; 0 to drop no topics */
    REAL *gamma,             /* IN/OUT K_pad: the start, the result */
    REAL *t,                 /* OUT K_pad: exp(b (psi(gamma) - psi(reference))), packed */
    int32_t *active,         /* OUT K_pad: the topics that t is of, if some were dropped */
    int32_t *n_active,        /* OUT how many, or K_pad if none was dropped */
    REAL *s,                 /* OUT K_pad: scratch */
    REAL *norm,              /* OUT n_words, padded */
    REAL *ratio,             /* OUT n_words, padded */
    REAL *reference,         /* OUT what psi(gamma) was taken relative to */
    double *totals,          /* OUT K_pad: scratch */
    REAL *own_alpha,         /* OUT K_pad: scratch */
    const REAL **own_rows,   /* OUT n_words, padded: scratch */
    int32_t *chosen,         /* OUT K_pad: scratch */
    REAL *own_packed,        /* OUT room: scratch */
    REAL *own_columns)       /* OUT NARROW * (n_words, padded): scratch */
{
    const REAL clamp = eps > 0 ? CLAMP_PLAIN : CLAMP;
    FN(topics) topics = {
        .n = K, .width = K_pad, .rows = rows, .alpha = alpha, .n_words = n_words,
        .n_columns = (n_words + LANES - 1) / LANES * LANES, .room = room, .active = active,
        .chosen = chosen, .own_alpha = own_alpha, .own_rows = own_rows, .own_packed = own_packed,
        .own_columns = own_columns};
    int it = 0;
    double dropped = 0;
    V ref_scale, ref_shift;
    REAL now = eps > 0 ? FN(total_of)(K, K_pad, gamma) : FN(largest_of)(K_pad, gamma);
    if (K <= NARROW && max_iter > 2) {
        for (int k = 0; k < K; k++)
            chosen[k] = k;
        FN(to_columns)(K, &topics);
    }
    *reference = now;
    FN(reference_parts)(now, &ref_scale, &ref_shift);
    FN(exp_digamma_row)(K_pad, gamma, now, ref_scale, ref_shift, b, clamp, t);
    while (it < max_iter) {
        const int width = topics.width;
        it++;
        if (BITS == 64 || n_words <= LONG_DOCUMENT) {
            FN(sweep_topics)(it & 1, 0, n_words, counts, t, eps, &topics, s);
        } else { /* sums of very many words are kept in double */
            for (int k = 0; k < width; k++)
                totals[k] = 0;
            for (int64_t first = 0; first < n_words; first += LONG_DOCUMENT) {
                const int64_t n = n_words - first < LONG_DOCUMENT ? n_words - first : LONG_DOCUMENT;
                FN(sweep_topics)(it & 1, first, n, counts, t, eps, &topics, s);
                for (int k = 0; k < width; k++)
                    totals[k] += (double)s[k];
            }
            for (int k = 0; k < width; k++)
                s[k] = (REAL)totals[k];
        }

        V change = {0}, total = {0};
        for (int k = 0; k < width; k += LANES) {
            const V old = FN(load)(gamma + k);
            const V new = FN(load)(topics.alpha + k) + b * FN(load)(t + k) * FN(load)(s + k);
            change += FN(abs)(new - old);
            total += new;
            FN(store)(gamma + k, new);
        }
        double moved = dropped;
        for (int l = 0; l < LANES; l++)
            moved += (double)change[l];
        now = eps > 0 ? FN(add_lanes)(K, K_pad, gamma, total) : FN(largest_of)(width, gamma);
        /* below 1 psi falls steeply: there half as much again is another number */
        const REAL slack = eps > 0 ? 4 * (REAL)EPSILON : now < 1 ? 0 : (REAL)0.5;
        if (now > *reference * (1 + slack) || now < *reference * (1 - slack)) {
            *reference = now;
            FN(reference_parts)(now, &ref_scale, &ref_shift);
        }
        FN(exp_digamma_row)(width, gamma, now, ref_scale, ref_shift, b, clamp, t);
        if (moved < tolerance)
            break;
        dropped = room && it < max_iter ? FN(drop_topics)(it, gamma, t, &topics) : 0;
    }
    if (finish && topics.narrow) {
        FN(sweep_columns)(topics.narrow, n_words, topics.n_columns, own_columns, counts, t, eps,
                          norm, ratio, s);
        for (int64_t v = topics.n_columns; v % WORD_BLOCK; v++)
            ratio[v] = 0;
    } else if (finish)
        FN(all_normalizers)(n_words, topics.width, topics.rows, counts, t, eps, norm, ratio);
    *n_active = topics.packed ? topics.n : K_pad;
    if (topics.packed) {
        for (int j = 0; j < topics.n; j++)
            s[j] = gamma[j];
        FN(spread)(topics.n, active, s, K_pad, alpha, gamma);
    }
    return it;
}

/* sum_v n_v log sum_k exp(b E log theta_k) W_vk: the norms with psi(reference)
 * replaced by psi(sum gamma).  `norm` is overwritten. */
static double FN(log_normalizer)(int64_t n_words, int K, const REAL *counts, const REAL *gamma,
                                 REAL reference, REAL b, REAL *norm)
{
    double total = 0, n_tokens = 0, sum = 0;
    int64_t v = 0;
    const V tiny = FN(splat)((REAL)TINY);
    for (; v + LANES <= n_words; v += LANES)
        FN(store)(norm + v, FN(log)(FN(at_least)(FN(load)(norm + v), tiny)));
    if (v < n_words) {
        V rest = tiny;
        for (int l = 0; l < (int)(n_words - v); l++)
            rest[l] = norm[v + l];
        rest = FN(log)(FN(at_least)(rest, tiny));
        for (int l = 0; l < (int)(n_words - v); l++)
            norm[v + l] = rest[l];
    }
    for (v = 0; v < n_words; v++) {
        total += (double)counts[v] * (double)norm[v];
        n_tokens += (double)counts[v];
    }
    for (int k = 0; k < K; k++)
        sum += (double)gamma[k];
    const V moved = FN(digamma)(FN(splat)(reference)) - FN(digamma)(FN(splat)((REAL)sum));
    return total + (double)b * n_tokens * (double)moved[0];
}

/* A block of `n` (4 or 8) words' part of the energy below: s_k gets sum_j phi_jk, what is
 * returned is sum_jk phi_jk l_jk. */
INLINE double FN(block_energy)(int n, int K_pad, const REAL *const *rows,
                               const REAL *const *logs, const REAL *t, const REAL *ratio, REAL *s)
{
    V r[WORD_BLOCK], even = {0}, odd = {0};
    const REAL *row[WORD_BLOCK], *log[WORD_BLOCK];
    double total = 0;
#pragma GCC unroll 8
    for (int j = 0; j < n; j++) {
        r[j] = FN(splat)(ratio[j]);
        row[j] = rows[j];
        log[j] = logs[j];
    }
    for (int k = 0; k < K_pad; k += LANES) {
        const V tk = FN(load)(t + k);
        V sum = {0}, dot = {0};
#pragma GCC unroll 8
        for (int j = 0; j < n; j++) {
            const V share = r[j] * FN(load)(row[j] + k);
            sum += share;
            dot += share * FN(load)(log[j] + k);
        }
        FN(store)(s + k, FN(load)(s + k) + tk * sum);
        if (k & LANES)
            odd += tk * dot;
        else
            even += tk * dot;
    }
    even += odd;
    for (int l = 0; l < LANES; l++)
        total += (double)even[l];
    return total;
}

/* The energy of one document at the final phi,
 *     sum_v n_v sum_k phi_vk (E log theta_k + l_vk),
 * where l is E log beta up to a number a word, which the caller adds.  Rows, logarithms and
 * ratios are padded to whole blocks with words of ratio 0. */
static double FN(energy)(int64_t n_words, int K, int K_pad, const REAL *const *rows,
                         const REAL *const *logs, const REAL *gamma, const REAL *t,
                         const REAL *ratio, REAL *s)
{
    double topics = 0, words = 0, total = 0;
    for (int k = 0; k < K_pad; k += LANES)
        FN(store)(s + k, (V){0});
    for (int64_t v = 0; v < n_words; v += WORD_BLOCK)
        if (FN(block_size)(n_words, v) == WORD_BLOCK)
            words += FN(block_energy)(WORD_BLOCK, K_pad, rows + v, logs + v, t, ratio + v, s);
        else
            words += FN(block_energy)(WORD_BLOCK / 2, K_pad, rows + v, logs + v, t, ratio + v, s);
    for (int k = 0; k < K; k++)
        total += (double)gamma[k];
    const double psi_total = FN(digamma)(FN(splat)((REAL)total))[0];
    for (int k = 0; k < K_pad; k += LANES) {
        const V e_log_theta = FN(digamma)(FN(load)(gamma + k)) - (REAL)psi_total;
        const V product = FN(load)(s + k) * e_log_theta;
        for (int l = 0; l < LANES; l++)
            topics += (double)product[l];
    }
    return topics + words;
}

/* raised_k = exp(max(b l_k, clamp)), 0 in the padding. */
static void FN(raise_row)(int K_pad, const REAL *logs, REAL b, int normalise, REAL *raised)
{
    const V floor = FN(splat)(normalise ? CLAMP : CLAMP_PLAIN);
    for (int k = 0; k < K_pad; k += LANES) {
        const V l = FN(load)(logs + k);
        const V power = FN(exp_clamped)(FN(max)(b * l, floor));
        FN(store)(raised + k, FN(select)(l > (REAL)PADDED_LOG, power, (V){0}));
    }
}

/* The statistics of one word over the documents that contain it, in their order:
 *     S_vk (+)= sum_d b_d ratio_dv t_dk exp(b_d l_vk). */
static void FN(add_statistics)(
    int64_t n_entries,
    int K_pad,
    const int64_t *document, /* IN  n_entries: the document of each entry */
    const int64_t *position, /* IN  n_entries: where its ratio stands */
    const REAL *ratio,       /* IN */
    const REAL *t,           /* IN  K_pad a document: of its active topics, or all */
    const int32_t *active,   /* IN  K_pad a document */
    const int32_t *n_active, /* IN  how many topics, K_pad if all */
    const REAL *b,           /* IN  inverse temperature of each document */
    REAL b0,                 /* IN  the inverse temperature that `weights` is raised to */
    const REAL *restrict weights, /* IN  K_pad: the word's row */
    const REAL *restrict logs,    /* IN  K_pad: l, needed if any b differs from b0 */
    int normalise,                /* IN  which clamp exponents have */
    int add,                      /* IN  whether s_row holds earlier statistics */
    double *restrict acc,         /* OUT K_pad: scratch */
    REAL *restrict raised,        /* OUT K_pad: scratch */
    REAL *restrict s_row)         /* IN/OUT K_pad */
{
    int at_b0 = 1;
    for (int64_t e = 0; e < n_entries; e++)
        at_b0 &= b[document[e]] == b0;
    if (at_b0) { /* W is common to all */
        for (int k = 0; k < K_pad; k++)
            acc[k] = 0;
        for (int64_t e = 0; e < n_entries; e++) {
            const REAL *restrict td = t + document[e] * K_pad;
            const double c = (double)b[document[e]] * (double)ratio[position[e]];
            const int n = n_active[document[e]];
            if (n == K_pad) {
                for (int k = 0; k < K_pad; k++)
                    acc[k] += c * (double)td[k];
            } else {
                const int32_t *restrict topics = active + document[e] * K_pad;
                for (int j = 0; j < n; j++)
                    acc[topics[j]] += c * (double)td[j];
            }
        }
        for (int k = 0; k < K_pad; k++)
            acc[k] = acc[k] * (double)weights[k] + (add ? (double)s_row[k] : 0);
    } else {
        for (int k = 0; k < K_pad; k++)
            acc[k] = add ? (double)s_row[k] : 0;
        for (int64_t e = 0; e < n_entries; e++) {
            const REAL *restrict td = t + document[e] * K_pad;
            const double c = (double)b[document[e]] * (double)ratio[position[e]];
            const int n = n_active[document[e]];
            FN(raise_row)(K_pad, logs, b[document[e]], normalise, raised);
            if (n == K_pad) {
                for (int k = 0; k < K_pad; k++)
                    acc[k] += c * (double)td[k] * (double)raised[k];
            } else {
                const int32_t *restrict topics = active + document[e] * K_pad;
                for (int j = 0; j < n; j++)
                    acc[topics[j]] += c * (double)td[j] * (double)raised[topics[j]];
            }
        }
    }
    for (int k = 0; k < K_pad; k++)
        s_row[k] = (REAL)acc[k];
}

/* sum_k s_k log W_k, and sum_k s_k. */
static double FN(log_dot)(int K_pad, const REAL *s, const REAL *weights, double *sum)
{
    const V tiny = FN(splat)((REAL)TINY);
    V dot = {0}, all = {0};
    double total = 0;
    for (int k = 0; k < K_pad; k += LANES) {
        const V share = FN(load)(s + k);
        dot += share * FN(log)(FN(max)(FN(load)(weights + k), tiny));
        all += share;
    }
    *sum = 0;
    for (int l = 0; l < LANES; l++) {
        total += (double)dot[l];
        *sum += (double)all[l];
    }
    return total;
}

/* The exponents of a row of topic weights: at b = 1 they come apart into a scale and
 * the rest, otherwise the scale is 1.  Returns the largest. */
INLINE REAL FN(weight_exponents)(int near, int K, int K_pad, const REAL *lambda,
                                 const REAL *psi_sums, REAL b, REAL *scales, REAL *exponents)
{
    for (int k = 0; k < K_pad; k += LANES) {
        V scale, shift;
        FN(digamma_parts)(FN(load)(lambda + k), near, &scale, &shift);
        const V rest = -shift - FN(load)(psi_sums + k);
        FN(store)(scales + k, b == 1 ? scale : FN(splat)(1));
        FN(store)(exponents + k, b == 1 ? rest : rest + FN(log)(scale));
    }
    REAL largest = exponents[0];
    for (int k = K; k < K_pad; k++)
        exponents[k] = largest;
    return FN(largest_of)(K_pad, exponents);
}

/* One row of topic weights, W_k = exp(b (psi(lambda_k) - psi_sums_k - reference)), 0 in
 * the padding.  With `normalise` the reference is about the largest E log beta of the
 * row, else 0.  Returns the reference.  `logs`, unless NULL, gets the exponents at b = 1,
 * which no clamp has touched.  A `factor` other than 1 first takes lambda on its way back to
 * eta, as step_row has it.  `scratch` is 2 K_pad long. */
static REAL FN(exp_digamma_weights)(int K, int K_pad, const REAL *lambda, const REAL *eta,
                                    REAL factor, const REAL *psi_sums, REAL b, int normalise,
                                    REAL *scratch, REAL *weights, REAL *logs)
{
    REAL *exponents = scratch;
    if (factor != 1) { /* the row has steps to make up for */
        REAL *row = scratch + K_pad;
        for (int k = 0; k < K; k++)
            row[k] = eta[k] + factor * (lambda[k] - eta[k]);
        for (int k = K; k < K_pad; k++)
            row[k] = lambda[k];
        lambda = row;
    }
    REAL reference = FN(largest_of)(K_pad, lambda) < (REAL)FAR
        ? FN(weight_exponents)(1, K, K_pad, lambda, psi_sums, b, weights, exponents)
        : FN(weight_exponents)(0, K, K_pad, lambda, psi_sums, b, weights, exponents);
    if (!normalise)
        reference = 0;
    const V floor = FN(splat)(normalise ? CLAMP : CLAMP_PLAIN);
    if (logs) {
        for (int k = 0; k < K_pad; k += LANES) {
            const V log = FN(load)(exponents + k) - reference;
            FN(store)(logs + k, b == 1 ? log + FN(log)(FN(load)(weights + k)) : log);
        }
        for (int k = K; k < K_pad; k++)
            logs[k] = (REAL)PADDED_LOG;
    }
    for (int k = 0; k < K_pad; k += LANES) {
        const V exponent = b * (FN(load)(exponents + k) - reference);
        const V factor = FN(exp_clamped)(FN(max)(exponent, floor));
        FN(store)(weights + k, FN(load)(weights + k) * factor);
    }
    for (int k = K; k < K_pad; k++)
        weights[k] = 0;
    return reference;
}

/* One row of the natural-gradient step, which takes a share of the way back to the prior and
 * adds some of the statistics:
 *     lambda = max(eta + factor * (lambda - eta) + amount * S, floor).
 * `sums` gets S or, if `whole`, the new lambda. */
static void FN(step_row)(int K, REAL factor, REAL amount, REAL floor, int whole,
                         const REAL *restrict eta, const REAL *restrict s_row,
                         REAL *restrict lambda, double *restrict sums)
{
    if (s_row)
        for (int k = 0; k < K; k++) {
            const REAL new = eta[k] + factor * (lambda[k] - eta[k]) + amount * s_row[k];
            lambda[k] = new < floor ? floor : new; /* NaN stays NaN */
            sums[k] += (double)(whole ? lambda[k] : s_row[k]);
        }
    else
        for (int k = 0; k < K; k++) {
            const REAL new = eta[k] + factor * (lambda[k] - eta[k]);
            lambda[k] = new < floor ? floor : new;
            sums[k] += (double)(whole ? lambda[k] : 0);
        }
}
