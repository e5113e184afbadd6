/* The Gamma draws of numpy.random.RandomState, with exactly the same numbers.
 *
 * RandomState guarantees that its numbers do not change.  They come from the Mersenne Twister
 * MT19937 (Matsumoto and Nishimura 1998), which makes 624 words of 32 bits together.  From these
 * words the polar method of Marsaglia makes pairs of normal numbers x; the second is kept for the
 * next call.  Gamma numbers follow Marsaglia and Tsang (2000, A Simple Method for Generating Gamma
 * Variables): with b = shape - 1/3, c = 1 / sqrt(9 b), v = (1 + c x)^3 and a uniform number u, the
 * number b v is accepted if
 *     u < 1 - .0331 x^4   or   log u < x^2 / 2 + b (1 - v + log v).
 * The operations and their order are NumPy's.  The compiler must not fuse them.
 */
#ifndef ANNEALVI_LEGACY_GAMMA_H
#define ANNEALVI_LEGACY_GAMMA_H

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { MT_WORDS = 624, MT_AHEAD = 397 };

typedef struct {
    uint32_t *key;               /* the words of the twister */
    int pos;                     /* how many of them have been used */
    int has_gauss;               /* whether there is a normal number left */
    double gauss;                /* this number, or 0 */
    uint32_t tempered[MT_WORDS]; /* the words as they are given out */
} legacy_state;

static inline uint32_t mt_twist(uint32_t high, uint32_t low)
{
    const uint32_t y = (high & 0x80000000u) | (low & 0x7fffffffu);
    return (y >> 1) ^ ((0u - (low & 1u)) & 0x9908b0dfu);
}

static inline void mt_temper(legacy_state *state)
{
    for (int i = 0; i < MT_WORDS; i++) {
        uint32_t y = state->key[i];
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c5680u;
        y ^= (y << 15) & 0xefc60000u;
        state->tempered[i] = y ^ (y >> 18);
    }
}

static void mt_refill(legacy_state *state)
{
    uint32_t *key = state->key;
    for (int i = 0; i < MT_WORDS - MT_AHEAD; i++)
        key[i] = key[i + MT_AHEAD] ^ mt_twist(key[i], key[i + 1]);
    for (int i = MT_WORDS - MT_AHEAD; i < MT_WORDS - 1; i++)
        key[i] = key[i + MT_AHEAD - MT_WORDS] ^ mt_twist(key[i], key[i + 1]);
    key[MT_WORDS - 1] = key[MT_AHEAD - 1] ^ mt_twist(key[MT_WORDS - 1], key[0]);
    state->pos = 0;
    mt_temper(state);
}

static inline uint32_t mt_word(legacy_state *state)
{
    if (state->pos == MT_WORDS)
        mt_refill(state);
    return state->tempered[state->pos++];
}

/* A uniform number in [0, 1), of 53 random bits. */
static inline double legacy_uniform(legacy_state *state)
{
    const int32_t a = (int32_t)(mt_word(state) >> 5), b = (int32_t)(mt_word(state) >> 6);
    return (a * 67108864.0 + b) * (1.0 / 9007199254740992.0); /* exact, as dividing by 2^53 is */
}

static inline double legacy_normal(legacy_state *state)
{
    double x1, x2, r2;
    if (state->has_gauss) {
        const double kept = state->gauss;
        state->has_gauss = 0;
        state->gauss = 0.0;
        return kept;
    }
    do {
        x1 = 2.0 * legacy_uniform(state) - 1.0;
        x2 = 2.0 * legacy_uniform(state) - 1.0;
        r2 = x1 * x1 + x2 * x2;
    } while (r2 >= 1.0 || r2 == 0.0);
    const double f = sqrt(-2.0 * log(r2) / r2);
    state->gauss = f * x1;
    state->has_gauss = 1;
    return f * x2;
}

static inline double legacy_gamma_draw(legacy_state *state, double b, double c)
{
    for (;;) {
        double x, v, u;
        do {
            x = legacy_normal(state);
            v = 1.0 + c * x;
        } while (v <= 0.0);
        v = v * v * v;
        u = legacy_uniform(state);
        if (u < 1.0 - 0.0331 * (x * x) * (x * x))
            return b * v;
        if (log(u) < 0.5 * x * x + b * (1.0 - v + log(v)))
            return b * v;
    }
}

enum { PAIRS = 64 };

/* Make two numbers from each of PAIRS pairs of normal numbers; return false if one is rejected.
 *
 * Operations that depend on earlier numbers are done first.  The rest then takes a third of the
 * time. */
static int legacy_gamma_pairs(
    legacy_state *state, /* IN/OUT has no normal number left */
    double b,            /* IN */
    double c,            /* IN */
    double scale,        /* IN */
    double *out)         /* OUT 2 PAIRS */
{
    double x[2 * PAIRS], u[2 * PAIRS], r2[PAIRS], log_r2[PAIRS];
    int32_t doubtful[2 * PAIRS];
    for (int j = 0; j < PAIRS; j++) {
        double x1, x2, r;
        do {
            x1 = 2.0 * legacy_uniform(state) - 1.0;
            x2 = 2.0 * legacy_uniform(state) - 1.0;
            r = x1 * x1 + x2 * x2;
        } while (r >= 1.0 || r == 0.0);
        x[j] = x2;
        x[PAIRS + j] = x1;
        r2[j] = r;
        u[j] = legacy_uniform(state);
        u[PAIRS + j] = legacy_uniform(state);
    }
    for (int j = 0; j < PAIRS; j++)
        log_r2[j] = log(r2[j]);
    for (int j = 0; j < PAIRS; j++) {
        const double f = sqrt(-2.0 * log_r2[j] / r2[j]);
        x[j] = f * x[j];
        x[PAIRS + j] = f * x[PAIRS + j];
    }
    int n_doubtful = 0;
    for (int half = 0; half < 2; half++)
        for (int j = 0; j < PAIRS; j++) {
            const int i = half * PAIRS + j;
            double v = 1.0 + c * x[i];
            const int negative = v <= 0.0;
            v = v * v * v;
            out[2 * j + half] = scale * (b * v);
            doubtful[n_doubtful] = i;
            n_doubtful += negative | !(u[i] < 1.0 - 0.0331 * (x[i] * x[i]) * (x[i] * x[i]));
        }
    for (int at = 0; at < n_doubtful; at++) {
        const int i = doubtful[at];
        double v = 1.0 + c * x[i];
        if (v <= 0.0)
            return 0;
        v = v * v * v;
        if (!(log(u[i]) < 0.5 * x[i] * x[i] + b * (1.0 - v + log(v))))
            return 0;
    }
    return 1;
}

/* n numbers of Gamma(shape, scale), shape > 1. */
static void legacy_gamma_draws(
    legacy_state *state, /* IN/OUT but for `tempered`, which is scratch */
    double shape,        /* IN */
    double scale,        /* IN */
    int64_t n,           /* IN */
    double *out)         /* OUT n */
{
    const double b = shape - 1. / 3., c = 1. / sqrt(9 * b);
    int64_t i = 0;
    mt_temper(state);
    while (i < n) {
        int64_t stop = i + 1; /* one by one up to here */
        if (!state->has_gauss && n - i >= 2 * PAIRS) {
            uint32_t key[MT_WORDS];
            const int pos = state->pos;
            memcpy(key, state->key, sizeof key);
            stop = i + 2 * PAIRS;
            if (legacy_gamma_pairs(state, b, c, scale, out + i))
                i = stop;
            else { /* from there on, each number uses other words */
                memcpy(state->key, key, sizeof key);
                state->pos = pos;
                mt_temper(state);
            }
        }
        for (; i < stop; i++)
            out[i] = scale * legacy_gamma_draw(state, b, c);
    }
}

#endif
