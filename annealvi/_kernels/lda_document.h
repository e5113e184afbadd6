/* The local steps of documents, their bounds and energies.  This is a template; see vector.h and
 * lda_rows.h. */

/* Lanes of the longest vector: whole vectors are read and written. */
#define SLACK 16

/* A topic may be dropped from a document's sweeps under two conditions.  First, the last sweep has
 * assigned it less than least_share of a word.  Second, the t_k of a topic with this share is below
 * NEGLIGIBLE times least_share times the largest t.  Topics whose alpha is larger than usual are
 * kept.  The first condition does not suffice while the temperature is high, because topics then
 * share words evenly, and their shares may grow again.  The second condition does not suffice
 * because several small topics may share a word that no other topic explains.  With both conditions
 * the dropped topics together have less than K * least_share words. */
#define NEGLIGIBLE 1e-2
/* The time to copy a number, divided by the time to sweep over a number; and the least number of
 * iterations that a document is expected to need. */
#define COPY_COST (BITS == 64 ? 12 : 24)
#define EXPECTED 2
/* With at most this many topics, statistics are summed faster over all topics than over some. */
#define SPREAD 64

/* The state of the local step of a document.  Sweeps use all topics or, if the document is
 * `packed`, the topics in `active`, in ascending order.  These topics then come first in gamma and
 * t.  Rows and alpha are packed and padded in the same way, or the weights are in columns. */
typedef struct {
    int n;                   /* number of topics that are swept over */
    int packed;              /* whether they are some only */
    int width;               /* length of gamma, t and alpha, padding included */
    int narrow;              /* columns, a multiple of NARROW_STEP; 0 if there are rows */
    int droppable;           /* whether topics of small shares may be dropped */
    int K, K_pad, max_iter, finish, it;
    int64_t d, at;           /* the document, and its first entry in the matrix */
    int64_t n_words, n_columns;
    int64_t room;            /* numbers of own_packed in use; 0: nothing is dropped */
    double tolerance, dropped;
    double rest;             /* the sum of alpha of the topics that were dropped */
    REAL b, eps, sparsity, relaxation, clamp, usual_alpha, least_share, now;
    REAL ref_scale[LANES], ref_shift[LANES];
    const REAL *const *rows; /* those that are swept over */
    const REAL *alpha, *all_alpha;
    const REAL *row_sums;    /* of the rows, if t is the same for all topics; or NULL */
    REAL *t;                 /* K_pad: exp(b (f(gamma) - f(reference))), packed */
    int32_t *active, *n_active;
    /* in the thread's scratch, see place_document; those of words are padded */
    REAL *gamma, *own_t, *s, *own_alpha;
    REAL *counts, *norm, *ratio, *own_sums;
    REAL *reference;         /* psi(gamma) is relative to psi of this number */
    double *totals;
    int32_t *chosen, *own_active, *own_n_active;
    const REAL **row_of, **log_of, **own_rows;
    REAL *own_packed, *own_columns;
} FN(document);

/* Make a row of scratch that begins at address `at`; return its size in bytes. */
INLINE int64_t FN(place_document)(int K_pad, int64_t longest, int64_t room, uintptr_t at,
                                  FN(document) *doc)
{
    const int64_t n = (longest + WORD_BLOCK - 1) / WORD_BLOCK * WORD_BLOCK + SLACK;
    int64_t used = 0;
#define PLACE(field, count)                                                                      \
    doc->field = (void *)(at + (uintptr_t)used);                                                 \
    used += ((int64_t)sizeof(*doc->field) * (count) + 63) / 64 * 64
    PLACE(gamma, K_pad);
    PLACE(own_t, K_pad);
    PLACE(s, K_pad);
    PLACE(own_alpha, K_pad);
    PLACE(totals, K_pad);
    PLACE(chosen, K_pad);
    PLACE(own_active, K_pad);
    PLACE(own_n_active, 1);
    PLACE(reference, 1);
    PLACE(counts, n);
    PLACE(norm, n);
    PLACE(ratio, n);
    PLACE(own_sums, n);
    PLACE(row_of, n);
    PLACE(log_of, n);
    PLACE(own_rows, n);
    PLACE(own_packed, room);
    PLACE(own_columns, NARROW * n);
#undef PLACE
    return used;
}

/* The bytes of scratch for each of the documents that a thread fits alternately. */
static int64_t FN(document_bytes)(int K_pad, int64_t longest, int64_t room)
{
    FN(document) doc;
    return FN(place_document)(K_pad, longest, room, 0, &doc);
}

/* The time of a sweep for each word, in units of one number.  With rows it includes the sum over
 * lanes. */
INLINE int FN(sweep_cost)(const FN(document) *doc)
{
    return doc->narrow ? doc->narrow : doc->width + LINE;
}

/* Make columns for the n topics in `chosen`, in place if there are columns already. */
static void FN(to_columns)(int n, FN(document) *doc)
{
    const int narrow = (n + NARROW_STEP - 1) / NARROW_STEP * NARROW_STEP, before = doc->narrow;
    REAL *to = doc->own_columns;
    for (int64_t v = 0; v < doc->n_columns; v += LANES, to += narrow * LANES) {
        if (before) {
            const REAL *from = doc->own_columns + v * before;
            for (int j = 0; j < n; j++)
                FN(store)(to + j * LANES, FN(load)(from + doc->chosen[j] * LANES));
        } else {
            const REAL *row[LANES];
            for (int i = 0; i < LANES; i++) /* words of count 0, whose norm must not be 0 */
                row[i] = doc->rows[v + i < doc->n_words ? v + i : 0];
            if (doc->width <= 3 * n) { /* the columns of all topics are made at once */
                V all[3 * NARROW];
                for (int k = 0; k < doc->width; k += LANES) {
#pragma GCC unroll 16
                    for (int i = 0; i < LANES; i++)
                        all[k + i] = FN(load)(row[i] + k);
                    FN(transpose)(all + k);
                }
                for (int j = 0; j < n; j++)
                    FN(store)(to + j * LANES, all[doc->chosen[j]]);
            } else
                for (int i = 0; i < LANES; i++)
                    for (int j = 0; j < n; j++)
                        to[j * LANES + i] = row[i][doc->chosen[j]];
        }
        for (int j = n; j < narrow; j++)
            FN(store)(to + j * LANES, (V){0});
    }
    doc->narrow = narrow;
}

/* Make shorter rows for the topics in `chosen`, in place if rows have been shortened before. */
static void FN(to_short_rows)(int n, int width, FN(document) *doc)
{
    const int64_t n_padded = (doc->n_words + WORD_BLOCK - 1) / WORD_BLOCK * WORD_BLOCK;
    for (int64_t v = 0; v < doc->n_words; v++) {
        const REAL *from = doc->rows[v];
        REAL *to = doc->own_packed + v * width;
        for (int j = 0; j < n; j++)
            to[j] = from[doc->chosen[j]];
        for (int j = n; j < width; j++)
            to[j] = 0;
        doc->own_rows[v] = to;
    }
    for (int64_t v = doc->n_words; v < n_padded; v++)
        doc->own_rows[v] = doc->own_rows[0];
    doc->rows = doc->own_rows;
}

/* After `it` iterations, drop the topics with small shares if this saves time.  It is assumed that
 * the document needs as many iterations again, and at least EXPECTED.  Each of them is faster after
 * the weights have been copied.  Dropped topics get gamma = alpha.  The function returns the total
 * change of gamma. */
static double FN(drop_topics)(int it, REAL *gamma, FN(document) *doc)
{
    const int before = FN(sweep_cost)(doc);
    const int copy = doc->narrow ? 1 : COPY_COST;
    const int64_t left = it + EXPECTED;
    const REAL least = doc->least_share;
    if (left * before < copy || doc->narrow == NARROW_STEP)
        return 0; /* it would not save time even if one topic were left */
    VI count = {0};
    V small[PARTS] = {{0}};
    OVER_ROW(k, p, doc->width) {
        const V alpha = FN(load)(doc->alpha + k), share = FN(load)(gamma + k) - alpha;
        const VI kept = (share >= least) | (alpha > doc->usual_alpha);
        count -= kept;
        small[p] += FN(select)(kept, (V){0}, share);
    }
    int n = FN(sum_of_int_lanes)(count); /* about: the padding may count too */
    if (n == 0 || left * (before - n) < (int64_t)copy * n || (doc->narrow && 2 * n > doc->narrow))
        return 0;
    n = 0;
    for (int k = 0; k < doc->n; k++) { /* without branches, which could not be predicted */
        doc->chosen[n] = k;
        n += (gamma[k] - doc->alpha[k] >= least) | (doc->alpha[k] > doc->usual_alpha);
    }
    double rest = 0;
    if (doc->eps > 0) { /* only then is the sum of gamma needed */
        for (int k = 0; k < doc->n; k++)
            rest += (double)doc->alpha[k];
        for (int j = 0; j < n; j++)
            rest -= (double)doc->alpha[doc->chosen[j]];
    }
    const int width = (n + LINE - 1) / LINE * LINE;
    const int narrow = (n + NARROW_STEP - 1) / NARROW_STEP * NARROW_STEP;
    if (n <= NARROW && doc->n_columns > 0) {
        if (narrow == doc->narrow)
            return 0;
        FN(to_columns)(n, doc);
    } else {
        if (width == doc->width || doc->n_words * width > doc->room)
            return 0;
        FN(to_short_rows)(n, width, doc);
    }
    for (int j = 0; j < n; j++) {
        const int k = doc->chosen[j];
        doc->active[j] = doc->packed ? doc->active[k] : k;
        doc->own_alpha[j] = doc->alpha[k];
        gamma[j] = gamma[k];
    }
    for (int j = n; j < width; j++)
        doc->own_alpha[j] = gamma[j] = doc->own_alpha[0];
    doc->alpha = doc->own_alpha;
    doc->n = n;
    doc->width = width;
    doc->packed = 1;
    doc->rest += rest;
    return (double)FN(sum_of_line)(small);
}

/* s_k = sum_v ratio_v W_vk over some of the words.  With `row_sums` all t are equal. */
INLINE void FN(sweep_topics)(const FN(document) *doc, int64_t first, int64_t n_words)
{
    const REAL *counts = doc->counts + first;
    for (int k = 0; k < doc->width; k += LANES)
        FN(store)(doc->s + k, (V){0});
    if (doc->row_sums)
        FN(even_sweep)(n_words, doc->width, doc->rows + first, counts, doc->row_sums + first,
                       doc->ratio, doc->s);
    else if (doc->narrow)
        FN(sweep_columns)(doc->narrow, n_words, doc->own_columns + first * doc->narrow, counts,
                          doc->t, doc->eps, NULL, NULL, doc->s);
    else
        FN(sweep)(doc->it & 1, n_words, doc->width, doc->rows + first, counts, doc->t, doc->eps,
                  doc->s);
}

/* Move the numbers of the topics that were not dropped to their places among `others`. */
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
 * With eps > 0, t is exp(b E log theta), as in scikit-learn, and eps is added to every
 * norm.  The reference is then sum gamma, which after the first iteration changes only by
 * rounding.  With eps = 0 the scale of t is arbitrary.  The reference is then about the
 * largest gamma, so that nothing underflows.  In both cases, functions of the reference are
 * computed again only if the reference has changed. */

INLINE void FN(set_reference)(FN(document) *doc)
{
    V scale, shift;
    *doc->reference = doc->now;
    FN(reference_parts)(doc->now, doc->sparsity, doc->b, &scale, &shift);
    FN(store)(doc->ref_scale, scale);
    FN(store)(doc->ref_shift, shift);
}

/* out_k = exp(b (f(x_k) - f(reference))). */
INLINE void FN(raised_row)(const FN(document) *doc, int width, const REAL *x, REAL largest,
                           REAL *out)
{
    FN(exp_digamma_row)(width, x, largest, FN(load)(doc->ref_scale), FN(load)(doc->ref_shift),
                        doc->b, doc->sparsity, doc->clamp, out);
}

/* Read the words of a document, and start at the given gamma. */
static void FN(begin_document)(const annealvi_documents *all, int64_t slot, int64_t d,
                               FN(document) *doc)
{
    const annealvi_weights *weights = &all->weights;
    const int K = all->K, K_pad = weights->K_pad;
    const int64_t at = first_entry(&all->rows, d);
    const int64_t n_words = first_entry(&all->rows, d + 1) - at;
    const REAL *data = (const REAL *)all->rows.data + at, *alpha = all->alpha;
    const REAL *values = weights->values, *logs = weights->logs, *sums = weights->row_sums;
    const REAL b = ((const REAL *)all->b)[d], b0 = (REAL)weights->b0, eps = (REAL)all->eps;
    const REAL least_share = (REAL)all->least_share;
    *doc = (FN(document)){
        .d = d, .at = at, .n = K, .width = K_pad, .K = K, .K_pad = K_pad,
        .max_iter = all->max_iter, .n_words = n_words,
        .n_columns = (n_words + LANES - 1) / LANES * LANES, .b = b, .eps = eps,
        .sparsity = (REAL)all->sparsity, .relaxation = (REAL)all->relaxation,
        .clamp = eps > 0 ? CLAMP_PLAIN : CLAMP, .usual_alpha = (REAL)all->usual_alpha,
        .least_share = least_share, .alpha = alpha, .all_alpha = alpha};
    FN(place_document)(K_pad, all->longest, all->room,
                       (uintptr_t)(all->scratch + slot * all->scratch_width), doc);
    REAL *gamma = doc->gamma, *raised = NULL;
    double tokens = 0;
    for (int64_t j = 0; j < n_words; j++) {
        const int64_t row = weights->place[word_of(&all->rows, at + j)];
        doc->counts[j] = data[j];
        tokens += (double)data[j];
        doc->row_of[j] = values + row * K_pad;
        doc->log_of[j] = logs ? logs + row * K_pad : NULL;
        doc->own_sums[j] = sums[row];
    }
    if (b != b0) {
        raised = (REAL *)all->raised + slot * all->longest * K_pad;
        for (int64_t j = 0; j < n_words; j++, raised += K_pad) {
            FN(raise_row)(K_pad, doc->log_of[j], b, eps == 0, raised);
            doc->row_of[j] = raised;
        }
    }
    for (int64_t j = n_words; j < n_words + SLACK; j++) {
        doc->counts[j] = 0;
        doc->own_sums[j] = 1;
    }
    for (int64_t j = n_words; j % WORD_BLOCK; j++) {
        doc->row_of[j] = doc->row_of[0];
        doc->log_of[j] = doc->log_of[0];
    }
    doc->rows = doc->row_of;
    doc->tolerance = all->tolerance * (all->by_topic ? K : tokens);
    /* if alpha is large, no t_k is small enough for its topic to be dropped */
    if (least_share > 0 &&
        (double)b * (all->edge - log(tokens + 1)) < log(NEGLIGIBLE * (double)least_share))
        doc->room = all->room;
    memcpy(gamma, (const REAL *)all->gamma + d * K, K * sizeof(REAL));
    for (int k = K; k < K_pad; k++)
        gamma[k] = alpha[K];
    doc->finish = all->want_statistics || all->log_normalizer || all->energy;
    doc->t = all->want_statistics ? (REAL *)all->t + d * K_pad : doc->own_t;
    doc->active = all->want_statistics ? all->active + d * K_pad : doc->own_active;
    doc->n_active = all->want_statistics ? all->n_active + d : doc->own_n_active;
    REAL *t = doc->t;
    int even = eps == 0;
    for (int k = 1; k < K; k++)
        even &= gamma[k] == gamma[0];
    if (even) { /* without the padding, so that t is exactly 1 */
        doc->now = gamma[0];
        doc->row_sums = raised ? NULL : doc->own_sums;
        FN(set_reference)(doc);
        for (int k = 0; k < K_pad; k++)
            t[k] = 1;
    } else { /* the padding contains alpha, which may be far above gamma; its t must be finite */
        const REAL largest = FN(largest_of)(K_pad, gamma);
        doc->now = eps > 0 ? FN(total_of)(K, K_pad, gamma) : largest;
        FN(set_reference)(doc);
        FN(raised_row)(doc, K_pad, gamma, largest, t);
    }
}

/* s_k = sum_v ratio_v W_vk over all words. */
INLINE void FN(sweep_words)(FN(document) *doc)
{
    const int64_t n_words = doc->n_words;
    if (BITS == 64 || n_words <= LONG_DOCUMENT) {
        FN(sweep_topics)(doc, 0, n_words);
        return;
    }
    for (int k = 0; k < doc->width; k++) /* sums over very many words are in double precision */
        doc->totals[k] = 0;
    for (int64_t first = 0; first < n_words; first += LONG_DOCUMENT) {
        FN(sweep_topics)(doc, first,
                         n_words - first < LONG_DOCUMENT ? n_words - first : LONG_DOCUMENT);
        for (int k = 0; k < doc->width; k++)
            doc->totals[k] += (double)doc->s[k];
    }
    for (int k = 0; k < doc->width; k++)
        doc->s[k] = (REAL)doc->totals[k];
}

/* Whether topics with a share below least_share have no effect.  This depends on the temperature,
 * so it is checked only in the first iterations. */
INLINE int FN(may_drop)(FN(document) *doc)
{
    if (!doc->droppable && doc->it <= 3) {
        REAL edge[LANES], t_edge[LANES];
        FN(store)(edge, FN(splat)(doc->usual_alpha + doc->least_share));
        FN(raised_row)(doc, LANES, edge, doc->now, t_edge);
        doc->droppable = t_edge[0] < (REAL)NEGLIGIBLE * doc->least_share;
    }
    return doc->droppable;
}

/* Make one iteration; return whether another one is needed. */
static int FN(iterate)(FN(document) *doc)
{
    const int width = doc->width;
    const REAL b = doc->b, *t = doc->t, *s = doc->s;
    const REAL relaxation = doc->it ? doc->relaxation : 1;
    REAL *gamma = doc->gamma;
    /* columns of all topics save no time if most topics will be dropped soon */
    if (!doc->narrow && !doc->row_sums && !doc->droppable && doc->K <= NARROW &&
        doc->max_iter > 2) {
        for (int k = 0; k < doc->K; k++)
            doc->chosen[k] = k;
        FN(to_columns)(doc->K, doc);
    }
    doc->it++;
    FN(sweep_words)(doc);
    doc->row_sums = NULL; /* because t differs between topics from now on */
    V change[PARTS] = {{0}}, total[PARTS] = {{0}};
    OVER_ROW(k, p, width) {
        const V old = FN(load)(gamma + k);
        const V alpha = FN(load)(doc->alpha + k);
        V new = FN(fma)(b * FN(load)(t + k), FN(load)(s + k), alpha);
        if (relaxation != 1)
            new = FN(max)(FN(fma)(FN(splat)(relaxation), new - old, old), alpha);
        change[p] += FN(abs)(new - old);
        total[p] += new;
        FN(store)(gamma + k, new);
    }
    const double moved = doc->dropped + (double)FN(sum_of_line)(change);
    const REAL now = doc->eps > 0
                         ? (REAL)((double)FN(add_lanes)(doc->n, width, gamma, total) + doc->rest)
                         : FN(largest_of)(width, gamma);
    doc->now = now;
    /* below 1 psi is steep, so that a reference with an error of 50% is not good enough; a sum of
     * gamma changes only by rounding errors, which do not affect the ratios of t to its norms */
    const REAL slack = doc->eps > 0 ? 64 * (REAL)EPSILON : now < 1 ? 0 : (REAL)0.5;
    if (now > *doc->reference * (1 + slack) || now < *doc->reference * (1 - slack))
        FN(set_reference)(doc);
    const int last = moved < doc->tolerance || doc->n_words == 0 || doc->it == doc->max_iter;
    const int drops = doc->room && !last && FN(may_drop)(doc);
    doc->dropped = drops ? FN(drop_topics)(doc->it, gamma, doc) : 0;
    FN(raised_row)(doc, doc->width, gamma, now, doc->t);
    return !last;
}

static void FN(end_document)(FN(document) *doc)
{
    REAL *gamma = doc->gamma, *s = doc->s;
    if (doc->finish && doc->narrow) {
        FN(sweep_columns)(doc->narrow, doc->n_words, doc->own_columns, doc->counts, doc->t,
                          doc->eps, doc->norm, doc->ratio, s);
        for (int64_t v = doc->n_columns; v % WORD_BLOCK; v++)
            doc->ratio[v] = 0;
    } else if (doc->finish)
        FN(all_normalizers)(doc->n_words, doc->width, doc->rows, doc->counts, doc->t, doc->eps,
                            doc->norm, doc->ratio);
    *doc->n_active = doc->packed ? doc->n : doc->K_pad;
    if (doc->packed) {
        for (int j = 0; j < doc->n; j++)
            s[j] = gamma[j];
        FN(spread)(doc->n, doc->active, s, doc->K_pad, doc->all_alpha, gamma);
    }
    if (doc->packed && doc->K_pad <= SPREAD) {
        for (int j = 0; j < doc->n; j++)
            s[j] = doc->t[j];
        FN(spread)(doc->n, doc->active, s, doc->K_pad, NULL, doc->t);
        *doc->n_active = doc->K_pad;
    }
}

/* The iterations of one or two documents.  With few topics an iteration is a chain of operations
 * that wait for each other.  So iterations of two documents are made alternately, and the processor
 * works on both at the same time. */
static void FN(iterate_in_turn)(int n, FN(document) *docs)
{
    FN(document) *a = docs, *c = docs + 1;
    int go_a = a->max_iter > 0, go_c = n > 1 && c->max_iter > 0;
    while (go_a && go_c) {
        go_a = FN(iterate)(a);
        go_c = FN(iterate)(c);
    }
    while (go_a)
        go_a = FN(iterate)(a);
    while (go_c)
        go_c = FN(iterate)(c);
}

/* sum_v n_v log sum_k exp(b (E log theta_k - sparsity / gamma_k)) W_vk: the norms with
 * psi(reference) - sparsity / reference replaced by psi(sum gamma).  `norm` is overwritten. */
static double FN(log_normalizer)(int64_t n_words, int K, const REAL *counts, const REAL *gamma,
                                 REAL reference, REAL b, REAL sparsity, REAL *norm)
{
    double total = 0, n_tokens = 0, sum = 0;
    const V tiny = FN(splat)((REAL)TINY);
    for (int64_t v = 0; v < n_words; v += LANES) /* whole vectors, for which rows are padded */
        FN(store)(norm + v, FN(log)(FN(at_least)(FN(load)(norm + v), tiny)));
    for (int64_t v = 0; v < n_words; v++) {
        total += (double)counts[v] * (double)norm[v];
        n_tokens += (double)counts[v];
    }
    for (int k = 0; k < K; k++)
        sum += (double)gamma[k];
    const V moved = FN(digamma)(FN(splat)(reference)) - FN(digamma)(FN(splat)((REAL)sum));
    const double less = reference > 0 ? (double)sparsity / (double)reference : 0;
    return total + (double)b * n_tokens * ((double)moved[0] - less);
}

/* For the energy below: for a block of `n` (4 or 8) words, add sum_j phi_jk to s_k, and return
 * sum_jk phi_jk l_jk. */
INLINE double FN(block_energy)(int n, int K_pad, const REAL *const *rows,
                               const REAL *const *logs, const REAL *t, const REAL *ratio, REAL *s)
{
    V r[WORD_BLOCK], total[PARTS] = {{0}};
    const REAL *row[WORD_BLOCK], *log[WORD_BLOCK];
#pragma GCC unroll 8
    for (int j = 0; j < n; j++) {
        r[j] = FN(splat)(ratio[j]);
        row[j] = rows[j];
        log[j] = logs[j];
    }
    OVER_ROW(k, p, K_pad) {
        const V tk = FN(load)(t + k);
        V sum = {0}, dot = {0};
#pragma GCC unroll 8
        for (int j = 0; j < n; j++) {
            const V share = r[j] * FN(load)(row[j] + k);
            sum += share;
            dot = FN(fma)(share, FN(load)(log[j] + k), dot);
        }
        FN(store)(s + k, FN(fma)(tk, sum, FN(load)(s + k)));
        total[p] = FN(fma)(tk, dot, total[p]);
    }
    return FN(wide_sum_of_line)(total);
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

/* Write the outputs that are wanted for a document. */
static void FN(write_document)(const annealvi_documents *all, FN(document) *doc)
{
    const annealvi_weights *weights = &all->weights;
    const int K = doc->K, K_pad = doc->K_pad;
    const int64_t n_words = doc->n_words, at = doc->at;
    const REAL *log_scale = weights->log_scale, *t = doc->t;
    double scale = 0;
    if (all->log_normalizer || all->energy)
        for (int64_t j = 0; j < n_words; j++)
            scale += (double)doc->counts[j] *
                     (double)log_scale[weights->place[word_of(&all->rows, at + j)]];
    if (all->energy) {
        if (*doc->n_active < K_pad) {
            FN(spread)(*doc->n_active, doc->active, t, K_pad, NULL, doc->own_alpha);
            t = doc->own_alpha;
        }
        all->energy[doc->d] = FN(energy)(n_words, K, K_pad, doc->row_of, doc->log_of, doc->gamma,
                                         t, doc->ratio, doc->s) + scale;
    }
    if (all->log_normalizer)
        all->log_normalizer[doc->d] =
            FN(log_normalizer)(n_words, K, doc->counts, doc->gamma, *doc->reference, doc->b,
                               doc->sparsity, doc->norm) + (double)doc->b * scale;
    memcpy((REAL *)all->gamma + doc->d * K, doc->gamma, K * sizeof(REAL));
    if (all->want_statistics)
        memcpy((REAL *)all->ratio + at - first_entry(&all->rows, 0), doc->ratio,
               n_words * sizeof(REAL));
}

/* The local step of each document of a batch; see kernels.h. */
static void FN(fit_documents)(const annealvi_documents *all)
{
    const int64_t n = all->rows.n;
    SHARE_OUT(all->n_threads, dynamic, 2)
    for (int64_t first = 0; first < n; first += TOGETHER) {
        const int together = n - first < TOGETHER ? (int)(n - first) : TOGETHER;
        FN(document) docs[TOGETHER] = {{0}};
        for (int j = 0; j < together; j++)
            FN(begin_document)(all, TOGETHER * omp_get_thread_num() + j, all->order[first + j],
                               docs + j);
        FN(iterate_in_turn)(together, docs);
        for (int j = 0; j < together; j++) {
            FN(end_document)(docs + j);
            FN(write_document)(all, docs + j);
        }
    }
}
