/* The local step of one document, its bound and its energy.  A template: see vector.h and
 * lda_rows.h. */

/* A topic may be dropped from a document's sweeps if its t_k is below about NEGLIGIBLE times the
 * largest one, and if the last sweep has assigned it less than HARDLY_ANY of a word.  The second
 * condition is not enough: a topic with gamma = alpha = .05 has t = 1e-9, and comes back if other
 * topics give up its words.  The first is not enough either: several topics that are all small
 * may share a word that no other topic explains.  With both conditions the dropped topics together
 * hold less than K * HARDLY_ANY words, and so less than that of any word that only they
 * explain. */
#define NEGLIGIBLE ((REAL)ANNEALVI_NEGLIGIBLE)
#define HARDLY_ANY ((REAL)1e-9)
/* Cost of copying a number, relative to that of sweeping over one. */
#define COPY_COST (3 * LANES)

/* The topics of a document that are swept over: all, or those in `active`, in ascending order.
 * In the second case they come first in gamma and t.  Rows and alpha are then `packed` and padded
 * like other rows, or the weights are in columns. */
typedef struct {
    int n;                 /* number of topics */
    int packed;            /* whether only those in `active` are swept over */
    int width;             /* length of gamma, t and alpha, padding included */
    int narrow;            /* columns, a multiple of NARROW_STEP; 0 if there are rows */
    const REAL *const *rows;
    const REAL *alpha;
    int64_t n_words, n_columns;
    int64_t room;          /* size of own_packed; 0: nothing is dropped */
    int32_t *active;       /* OUT n */
    int32_t *chosen;       /* OUT scratch */
    REAL *own_alpha;       /* OUT */
    const REAL **own_rows; /* OUT n_words, padded */
    REAL *own_packed;      /* OUT room */
    REAL *own_columns;     /* OUT NARROW * n_columns */
} FN(topics);

/* The cost of a sweep for each word, in numbers.  With rows it includes the sum over lanes. */
INLINE int FN(sweep_cost)(const FN(topics) *topics)
{
    return topics->narrow ? topics->narrow : topics->width + LANES;
}

/* Make columns of the rows of the n topics in `chosen`. */
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
        for (int j = 0; j < n; j++) /* words of count 0, whose norm must not be 0 */
            for (int64_t v = topics->n_words; v < stride; v++)
                topics->own_columns[j * stride + v] = topics->own_columns[j * stride];
    }
    for (int64_t v = n * stride; v < narrow * stride; v++)
        topics->own_columns[v] = 0;
    topics->narrow = narrow;
}

/* Make shorter rows of the topics in `chosen`; in place if they have been shortened before. */
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

/* Drop the negligible topics after `it` iterations, if that saves time.  It is assumed that the
 * document needs as many iterations again, each with a cheaper sweep once the weights have been
 * copied.  Dropped topics get gamma = alpha; returns the total change of gamma. */
static double FN(drop_topics)(int it, REAL *gamma, REAL *t, FN(topics) *topics)
{
    const int line = 64 / (int)sizeof(REAL), before = FN(sweep_cost)(topics);
    const int copy = topics->narrow ? 1 : COPY_COST;
    double moved = 0;
    int n = 0;
    if (it * (int64_t)before < copy) /* it would not save time even if one topic were left */
        return 0;
    VI count = {0};
    for (int k = 0; k < topics->width; k += LANES)
        count -= (FN(load)(t + k) >= NEGLIGIBLE) |
                 (FN(load)(gamma + k) - FN(load)(topics->alpha + k) >= HARDLY_ANY);
    for (int l = 0; l < LANES; l++)
        n += (int)count[l]; /* padding is counted too */
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

/* Put the numbers of the topics that are left in their places among `others`. */
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
 * With eps > 0 t is exp(b E log theta), as in scikit-learn, and eps is added to every
 * norm.  The reference is then sum gamma, which only changes by rounding after the first
 * iteration.  With eps = 0 the scale of t is arbitrary.  The reference is then about the
 * largest gamma, so that nothing underflows.  Either reference is computed again only when
 * it has changed.  Returns the number of iterations. */
static int FN(fit_document)(
    int64_t n_words,
    int K,
    int K_pad,
    const REAL *const *rows, /* IN  n_words pointers to rows of topic weights, padded */
    const REAL *counts,      /* IN  n_words counts, padded with 0 */
    const REAL *alpha,       /* IN  K_pad */
    REAL b,                  /* IN  inverse temperature */
    REAL eps,                /* IN */
    REAL sparsity,           /* IN  see lda_rows.h */
    double tolerance,        /* IN  on sum_k |change of gamma_k| */
    int max_iter,            /* IN */
    int finish,              /* IN  whether norm and ratio are wanted at the final gamma */
    int64_t room,            /* IN  size of own_packed; 0 to drop no topics */
    REAL *gamma,             /* IN/OUT K_pad: the start, the result */
    REAL *t,                 /* OUT K_pad: exp(b (f(gamma) - f(reference))), packed */
    int32_t *active,         /* OUT K_pad: the topics in t, if some were dropped */
    int32_t *n_active,        /* OUT their number, or K_pad if none was dropped */
    REAL *s,                 /* OUT K_pad: scratch */
    REAL *norm,              /* OUT n_words, padded */
    REAL *ratio,             /* OUT n_words, padded */
    REAL *reference,         /* OUT psi(gamma) is relative to psi of this number */
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
    FN(reference_parts)(now, sparsity, &ref_scale, &ref_shift);
    /* a start may be far below alpha, which is in the padding: its t must be finite too */
    FN(exp_digamma_row)(K_pad, gamma, FN(largest_of)(K_pad, gamma), ref_scale, ref_shift, b,
                        sparsity, clamp, t);
    while (it < max_iter) {
        const int width = topics.width;
        it++;
        if (BITS == 64 || n_words <= LONG_DOCUMENT) {
            FN(sweep_topics)(it & 1, 0, n_words, counts, t, eps, &topics, s);
        } else { /* sums over very many words are in double precision */
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
        /* with eps > 0 nothing is dropped, so K_pad is still the width */
        now = eps > 0 ? FN(add_lanes)(K, K_pad, gamma, total) : FN(largest_of)(width, gamma);
        /* below 1 psi is steep, and a reference that is 50% off would not do */
        const REAL slack = eps > 0 ? 4 * (REAL)EPSILON : now < 1 ? 0 : (REAL)0.5;
        if (now > *reference * (1 + slack) || now < *reference * (1 - slack)) {
            *reference = now;
            FN(reference_parts)(now, sparsity, &ref_scale, &ref_shift);
        }
        FN(exp_digamma_row)(width, gamma, now, ref_scale, ref_shift, b, sparsity, clamp, t);
        if (moved < tolerance || n_words == 0)
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

/* sum_v n_v log sum_k exp(b (E log theta_k - sparsity / gamma_k)) W_vk: the norms with
 * psi(reference) - sparsity / reference replaced by psi(sum gamma).  `norm` is overwritten. */
static double FN(log_normalizer)(int64_t n_words, int K, const REAL *counts, const REAL *gamma,
                                 REAL reference, REAL b, REAL sparsity, REAL *norm)
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
    const double less = reference > 0 ? (double)sparsity / (double)reference : 0;
    return total + (double)b * n_tokens * ((double)moved[0] - less);
}

/* The part of the energy below that is due to a block of `n` (4 or 8) words: adds sum_j phi_jk to
 * s_k, returns sum_jk phi_jk l_jk. */
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
 * where l is E log beta up to a constant for each word, which the caller adds.  Rows, logarithms
 * and ratios are padded to whole blocks with words of ratio 0. */
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
