/* Matrix products.  This is a template; see vector.h.
 *
 * Each number of the result is a sum over k in ascending order, with one fused multiply-add for
 * each term.  So the result does not depend on the size of the tiles, which is chosen for the
 * registers of each instruction set, and not on how threads divide a product.
 */

#ifndef ANNEALVI_PRODUCT_ROWS
#define ANNEALVI_PRODUCT_ROWS
#define TILE_ROWS (VECTOR_BYTES == 64 ? 8 : 4) /* by two vectors of columns */
#define TILE_TERMS 256                         /* of a panel of b, which stays in cache */
#endif
#undef TILE_COLUMNS
#define TILE_COLUMNS (2 * LANES)

/* c += a b for a tile.  The strides of a are `row` between rows and `term` between terms. */
INLINE void FN(tile)(int rows, int terms, const REAL *a, int64_t row, int64_t term,
                     const REAL *panel, REAL *c, int64_t c_row)
{
    V sums[8][2];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
        sums[i][0] = FN(load)(c + i * c_row);
        sums[i][1] = FN(load)(c + i * c_row + LANES);
    }
    for (int k = 0; k < terms; k++, a += term, panel += TILE_COLUMNS) {
        const V left = FN(load)(panel), right = FN(load)(panel + LANES);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            const V factor = FN(splat)(a[i * row]);
            sums[i][0] = FN(fma)(factor, left, sums[i][0]);
            sums[i][1] = FN(fma)(factor, right, sums[i][1]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
        FN(store)(c + i * c_row, sums[i][0]);
        FN(store)(c + i * c_row + LANES, sums[i][1]);
    }
}

/* Set c to a b or, if `add`, to c + a b.  The shapes are (m, n), (m, terms) and (terms, n).
 * a and b may have any strides, in numbers; the rows of c are contiguous. */
static void FN(product)(int64_t m, int64_t n, int64_t terms, const void *of_a, int64_t a_row,
                        int64_t a_term, const void *of_b, int64_t b_term, int64_t b_column,
                        int add, void *of_c, int64_t c_row)
{
    const REAL *a = of_a, *b = of_b;
    REAL *c = of_c;
    REAL panel[TILE_TERMS * TILE_COLUMNS], edge[8 * TILE_COLUMNS];
    for (int64_t i = 0; i < m && !add; i++)
        __builtin_memset(c + i * c_row, 0, (size_t)n * sizeof(REAL));
    for (int64_t first = 0; first < terms; first += TILE_TERMS) {
        const int depth = (int)(terms - first < TILE_TERMS ? terms - first : TILE_TERMS);
        for (int64_t j = 0; j < n; j += TILE_COLUMNS) {
            const int width = (int)(n - j < TILE_COLUMNS ? n - j : TILE_COLUMNS);
            const REAL *from = b + first * b_term + j * b_column;
            if (width < TILE_COLUMNS)
                __builtin_memset(panel, 0, sizeof panel[0] * TILE_COLUMNS * depth);
            if (b_column == 1)
                for (int k = 0; k < depth; k++)
                    for (int l = 0; l < width; l++)
                        panel[k * TILE_COLUMNS + l] = from[k * b_term + l];
            else
                for (int l = 0; l < width; l++)
                    for (int k = 0; k < depth; k++)
                        panel[k * TILE_COLUMNS + l] = from[k * b_term + l * b_column];
            for (int64_t i = 0, rows; i < m; i += rows) {
                const int64_t left = m - i;
                rows = left >= TILE_ROWS ? TILE_ROWS : left >= 4 ? 4 : left >= 2 ? 2 : 1;
                REAL *out = c + i * c_row + j, *to = width < TILE_COLUMNS ? edge : out;
                const int64_t to_row = to == edge ? TILE_COLUMNS : c_row;
                for (int r = 0; r < rows && to == edge; r++)
                    for (int l = 0; l < TILE_COLUMNS; l++)
                        edge[r * TILE_COLUMNS + l] = l < width ? out[r * c_row + l] : 0;
#define TILE(rows)                                                                               \
    FN(tile)(rows, depth, a + i * a_row + first * a_term, a_row, a_term, panel, to, to_row)
                if (rows == 8)
                    TILE(8);
                else if (rows == 4)
                    TILE(4);
                else if (rows == 2)
                    TILE(2);
                else
                    TILE(1);
#undef TILE
                for (int r = 0; r < rows && to == edge; r++)
                    __builtin_memcpy(out + r * c_row, edge + r * TILE_COLUMNS,
                                     (size_t)width * sizeof(REAL));
            }
        }
    }
}
