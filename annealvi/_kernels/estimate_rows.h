/* The steps, besides the draws and the sums of powers, that compute log C(T) of one draw, in
 * double precision.  Rows are whole lines.  A number of a row belongs to one draw of theta.
 */

/* Subtract the largest number of a row from it. */
static void centre_row(int64_t width, double *row)
{
    vec_f64 most = load_f64(row);
    for (int64_t i = LANES; i < width; i += LANES)
        most = max_f64(load_f64(row + i), most);
    most = splat_f64(largest_lane_f64(most));
    for (int64_t i = 0; i < width; i += LANES)
        store_f64(row + i, load_f64(row + i) - most);
}

/* Subtract the largest number of each column from it. */
static void centre_columns(int64_t n_rows, int64_t width, double *x)
{
    for (int64_t i = 0; i < width; i += LANES) {
        vec_f64 most = load_f64(x + i);
        for (int64_t k = 1; k < n_rows; k++)
            most = max_f64(load_f64(x + k * width + i), most);
        for (int64_t k = 0; k < n_rows; k++)
            store_f64(x + k * width + i, load_f64(x + k * width + i) - most);
    }
}

/* Replace a row by its exponentials, and return their sum. */
static double exp_row(int64_t width, double *row)
{
    vec_f64 total[PARTS] = {{0}};
    OVER_ROW(i, p, width) {
        const vec_f64 y = exp_f64(load_f64(row + i));
        total[p] += y;
        store_f64(row + i, y);
    }
    return sum_of_line_f64(total);
}

/* log S of a line of theta from the sums of powers at the points of a grid.
 *
 * If theta and beta are normalised, S at b = 1 is 1 up to rounding.  If they are not, S at b = 1 is
 * the product of their normalisers.  Dividing by its power b corrects for both. */
static void log_words(
    int64_t n_inverses,   /* IN  M */
    const double *b,      /* IN  (M) inverse temperatures, of which the first is 1 */
    const int32_t *first, /* IN  (M + 1) where the entries of each row of a matrix start: the one
                                 that interpolates from the points to b */
    const int32_t *point, /* IN  columns of the entries */
    const double *entry,  /* IN  the entries */
    const double *sums,   /* IN  a line for each point */
    int64_t stride,       /* IN  numbers from one row of logs to the next */
    double *logs)         /* OUT M rows of a line */
{
    for (int p = 0; p < PARTS; p++, sums += LANES, logs += LANES) {
        vec_f64 at_1 = {0};
        for (int64_t m = 0; m < n_inverses; m++) {
            vec_f64 part[4] = {{0}};
            int32_t e = first[m];
            for (; e + 4 <= first[m + 1]; e += 4)
#pragma GCC unroll 4
                for (int i = 0; i < 4; i++)
                    part[i] = fma_f64(splat_f64(entry[e + i]),
                                      load_f64(sums + point[e + i] * LINE), part[i]);
            for (; e < first[m + 1]; e++)
                part[0] =
                    fma_f64(splat_f64(entry[e]), load_f64(sums + point[e] * LINE), part[0]);
            const vec_f64 total = (part[0] + part[1]) + (part[2] + part[3]);
            const vec_f64 l = log_f64(at_least_f64(total, splat_f64(TINY)));
            at_1 = m ? at_1 : l;
            store_f64(logs + m * stride, l - b[m] * at_1);
        }
    }
}

/* Add log prod_d mean_theta S^{n_d} of the documents that share theta, and the sum of log S. */
static void add_log_means(
    int64_t n_theta,       /* IN */
    int64_t width,         /* IN  n_theta, padded */
    int64_t n_inverses,    /* IN  M */
    double *logs,          /* IN  (M, width) log S; overwritten */
    int64_t n_lengths,     /* IN  L */
    const double *lengths, /* IN  (L) positive */
    const double *shares,  /* IN  number of documents of each length */
    int64_t stride,        /* IN  numbers from one share to the next */
    double *own,           /* OUT (3, L padded) scratch */
    double *out,           /* IN/OUT (M) */
    double *sums)          /* IN/OUT (M) */
{
    const int64_t padded = (n_lengths + LINE - 1) / LINE * LINE;
    double *copies = own + padded, *means = copies + padded, n_words = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < n_lengths; i++)
        if (shares[i * stride] > 0) {
            own[n] = lengths[i];
            copies[n] = shares[i * stride];
            n_words += own[n] * copies[n];
            n++;
        }
    for (int64_t i = n; i < padded; i++) {
        copies[i] = 0;
        means[i] = (double)n_theta;
    }
    for (int64_t m = 0; m < n_inverses; m++) {
        double *row = logs + m * width, most = -__builtin_inf();
        vec_f64 high = splat_f64(most), total[PARTS] = {{0}};
        int64_t t = n_theta / LINE * LINE;
        OVER_ROW(i, p, t) {
            high = max_f64(load_f64(row + i), high);
            total[p] += load_f64(row + i);
        }
        most = largest_lane_f64(high);
        sums[m] += sum_of_line_f64(total);
        for (; t < n_theta; t++) {
            most = row[t] > most ? row[t] : most;
            sums[m] += row[t];
        }
        for (; t < width; t++)
            row[t] = -__builtin_inf();
        for (t = 0; t < width; t += LANES)
            store_f64(row + t, load_f64(row + t) - most);
        for (int64_t i = 0; i < n; i++) {
            EACH_PART(p)
                total[p] = (vec_f64){0};
            OVER_ROW(j, p, width)
                total[p] += exp_clamped_f64(
                    at_least_f64(own[i] * load_f64(row + j), splat_f64(LOG_TINY)));
            means[i] = sum_of_line_f64(total);
        }
        EACH_PART(p)
            total[p] = (vec_f64){0};
        OVER_ROW(i, p, n)
            total[p] = fma_f64(load_f64(copies + i),
                               log_f64(load_f64(means + i) / (double)n_theta), total[p]);
        out[m] += sum_of_line_f64(total) + n_words * most;
    }
}
