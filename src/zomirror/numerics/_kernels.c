/* The inner loops of the optimiser, compiled: the same numbers as numpy's, bit for bit, in fewer passes over memory.

   Nothing here is needed: kernels.py says what becomes of a machine without a compiler. Only operations that IEEE 754
   rounds in one way occur (no exp or log of the system, no fused multiply-add), each sum has one order, and
   -ffp-contract=off keeps the compiler from changing either. Arrays come as contiguous buffers of float32 or float64,
   by their item size. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* For each kind of vector a function of its own, chosen when the library is loaded; -DWIDE= leaves one, as the compiler
   was told. */
#if !defined(WIDE) && defined(__x86_64__) && defined(__gnu_linux__) && defined(__has_attribute)
#if __has_attribute(target_clones) && !defined(__clang__) && __GNUC__ >= 12
#define WIDE __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#elif __has_attribute(target_clones)
#define WIDE __attribute__((target_clones("avx2", "default")))
#endif
#endif
#ifndef WIDE
#define WIDE
#endif

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the bits of a word must be in the order of its bytes");
_Static_assert(FLT_EVAL_METHOD == 0, "a float must be rounded as a float, or the numbers are not numpy's");

#define BOTH(KERNEL) KERNEL(float) KERNEL(double)
#define LEAST(a, b) ((a) > (b) ? (b) : (a))

/* A counter of the generator Philox4x64-10 (Salmon et al., 2011), as numpy's has it, and the one that follows it. */
typedef struct {
    uint64_t of[4];
} Counter;

static inline Counter following(Counter counter)
{
    for (int i = 0; i < 4 && ++counter.of[i] == 0; i++)
        ;
    return counter;
}

/* The four words of a counter. */
static inline void philox(uint64_t made[4], const uint64_t key[2], Counter counter)
{
    uint64_t a = counter.of[0], b = counter.of[1], c = counter.of[2], d = counter.of[3], k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        const unsigned __int128 p = (unsigned __int128)a * 0xD2E7470EE14C6C93u;
        const unsigned __int128 q = (unsigned __int128)c * 0xCA5A826395121157u;
        a = (uint64_t)(q >> 64) ^ b ^ k0;
        b = (uint64_t)q;
        c = (uint64_t)(p >> 64) ^ d ^ k1;
        d = (uint64_t)p;
        k0 += 0x9E3779B97F4A7C15u;
        k1 += 0xBB67AE8584CAA73Bu;
    }
    made[0] = a, made[1] = b, made[2] = c, made[3] = d;
}

/* `count` words of the counters that follow the given one. */
static void fill_words(uint64_t *restrict words, Py_ssize_t count, const uint64_t key[2], Counter counter)
{
    for (; count >= 4; count -= 4, words += 4)
        philox(words, key, counter = following(counter));
    if (count > 0) {
        uint64_t made[4];
        philox(made, key, following(counter));
        memcpy(words, made, count * sizeof(uint64_t));
    }
}

/* Signs: bit j of a row is column j, 0 -> +1, 1 -> -1. A number changes its sign where the bit, moved to the place of
   the sign, is 1: which every kind of vector can do (a table of the signs of a byte is slower, and where vectors are
   shorter than eight numbers by far). What is not a number may get another sign than numpy gives it. LANES columns are worked on at a time, and a counter of the generator is enough
   for COLUMNS of them. */
#define LANES 32
#define COLUMNS 256
#define BITS_float uint32_t
#define BITS_double uint64_t
#define FLIPPED(T)                                                                                                     \
    static inline T flipped_##T(T number, BITS_##T bits, int k)                                                        \
    {                                                                                                                  \
        const int sign = 8 * sizeof(T) - 1;                                                                            \
        BITS_##T flip;                                                                                                 \
        memcpy(&flip, &number, sizeof(T));                                                                             \
        flip ^= bits << (sign - k) & (BITS_##T)1 << sign;                                                              \
        memcpy(&number, &flip, sizeof(T));                                                                             \
        return number;                                                                                                 \
    }
BOTH(FLIPPED)

static inline uint32_t lanes(const uint8_t *bits)
{
    uint32_t word;
    memcpy(&word, bits, sizeof(word));
    return word;
}

/* LANES numbers written past the cache, which then keeps no room for them. */
#ifdef __SSE2__
static inline void put_past(void *to, const void *made, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += sizeof(__m128i))
        _mm_stream_si128((__m128i *)((char *)to + at), _mm_loadu_si128((const __m128i *)((const char *)made + at)));
}
#define FENCE() _mm_sfence()
#else
#define put_past memcpy
#define FENCE() (void)0
#endif

/* out_ij = base_j + scale times the sign of row i and column j, whose bits are made on the way and left in `bits`: the
   next counter is worked out while these columns wait for memory. What is left of a row has a copy of its own, so that
   it is as long as the rest. */
#define ADD_SIGNS(T)                                                                                                   \
    static inline void add_lanes_##T(T *restrict to, const T *restrict base, BITS_##T signs, T by)                     \
    {                                                                                                                  \
        for (int k = 0; k < LANES; k++)                                                                                \
            to[k] = base[k] + flipped_##T(by, signs, k);                                                               \
    }                                                                                                                  \
                                                                                                                       \
    WIDE static void add_signs_##T(T *restrict out, const T *restrict base, uint8_t *restrict bits, Py_ssize_t stride, \
                                   Py_ssize_t rows, Py_ssize_t d, double scale, const uint64_t key[2],                 \
                                   Counter counter, int past)                                                          \
    {                                                                                                                  \
        const T by = (T)scale;                                                                                         \
        const Py_ssize_t whole = d - d % LANES;                                                                        \
        T rest[LANES] = {0}, made[LANES];                                                                              \
        memcpy(rest, base + whole, (d - whole) * sizeof(T));                                                           \
        uint64_t words[4];                                                                                             \
        philox(words, key, counter = following(counter));                                                              \
        for (Py_ssize_t i = 0; i < rows; i++, out += d, bits += stride)                                                \
            for (Py_ssize_t from = 0; from < d; from += COLUMNS) {                                                     \
                const Py_ssize_t end = LEAST(whole, from + COLUMNS);                                                   \
                memcpy(bits + from / 8, words, sizeof(words));                                                         \
                philox(words, key, counter = following(counter));                                                      \
                if (past)                                                                                              \
                    for (Py_ssize_t j = from; j < end; j += LANES) {                                                   \
                        add_lanes_##T(made, base + j, lanes(bits + j / 8), by);                                        \
                        put_past(out + j, made, sizeof(made));                                                         \
                    }                                                                                                  \
                else                                                                                                   \
                    for (Py_ssize_t j = from; j < end; j += LANES)                                                     \
                        add_lanes_##T(out + j, base + j, lanes(bits + j / 8), by);                                     \
                if (whole < LEAST(d, from + COLUMNS)) {                                                                \
                    add_lanes_##T(made, rest, lanes(bits + whole / 8), by);                                            \
                    memcpy(out + whole, made, (d - whole) * sizeof(T));                                                \
                }                                                                                                      \
            }                                                                                                          \
    }
BOTH(ADD_SIGNS)

/* total_j += sum_i weights_i sign_ij, row after row: each sum is fetched once for four rows, and those of COLUMNS
   columns stay in the nearest cache. */
#define SUM_SIGNS(T)                                                                                                   \
    static inline void sum_four_##T(T *restrict total, const T *restrict w, const uint8_t *restrict bits,              \
                                    Py_ssize_t stride)                                                                 \
    {                                                                                                                  \
        const BITS_##T a = lanes(bits), b = lanes(bits + stride), c = lanes(bits + 2 * stride),                        \
                       e = lanes(bits + 3 * stride);                                                                   \
        const T first = w[0], second = w[1], third = w[2], fourth = w[3];                                              \
        for (int k = 0; k < LANES; k++)                                                                                \
            total[k] = total[k] + flipped_##T(first, a, k) + flipped_##T(second, b, k) + flipped_##T(third, c, k) +    \
                       flipped_##T(fourth, e, k);                                                                      \
    }                                                                                                                  \
                                                                                                                       \
    static inline void sum_one_##T(T *restrict total, T w, BITS_##T signs)                                             \
    {                                                                                                                  \
        for (int k = 0; k < LANES; k++)                                                                                \
            total[k] += flipped_##T(w, signs, k);                                                                      \
    }                                                                                                                  \
                                                                                                                       \
    WIDE static void sum_signs_##T(T *restrict total, const T *restrict weights, const uint8_t *restrict bits,         \
                                   Py_ssize_t stride, Py_ssize_t rows, Py_ssize_t d)                                   \
    {                                                                                                                  \
        const Py_ssize_t whole = d - d % LANES;                                                                        \
        T rest[LANES] = {0};                                                                                           \
        memcpy(rest, total + whole, (d - whole) * sizeof(T));                                                          \
        for (Py_ssize_t from = 0; from < d; from += COLUMNS) {                                                         \
            const Py_ssize_t end = LEAST(whole, from + COLUMNS);                                                       \
            const int last = whole < LEAST(d, from + COLUMNS);                                                         \
            const uint8_t *row = bits;                                                                                 \
            Py_ssize_t i = 0;                                                                                          \
            for (; i + 4 <= rows; i += 4, row += 4 * stride) {                                                         \
                for (Py_ssize_t j = from; j < end; j += LANES)                                                         \
                    sum_four_##T(total + j, weights + i, row + j / 8, stride);                                         \
                if (last)                                                                                              \
                    sum_four_##T(rest, weights + i, row + whole / 8, stride);                                          \
            }                                                                                                          \
            for (; i < rows; i++, row += stride) {                                                                     \
                for (Py_ssize_t j = from; j < end; j += LANES)                                                         \
                    sum_one_##T(total + j, weights[i], lanes(row + j / 8));                                            \
                if (last)                                                                                              \
                    sum_one_##T(rest, weights[i], lanes(row + whole / 8));                                             \
            }                                                                                                          \
        }                                                                                                              \
        memcpy(total + whole, rest, (d - whole) * sizeof(T));                                                          \
    }
BOTH(SUM_SIGNS)

/* out_r = base, moved in the columns i whose label is start + r by radius moves_i; column i stands at free_i, if not
   all are there. Whether every column was within a row. */
#define ADD_GROUPS(T)                                                                                                  \
    static int add_groups_##T(T *restrict out, const T *restrict base, const int64_t *restrict labels,                 \
                              const T *restrict moves, const int64_t *restrict free, Py_ssize_t rows, Py_ssize_t d,    \
                              Py_ssize_t n, double radius, int64_t start)                                              \
    {                                                                                                                  \
        const T by = (T)radius;                                                                                        \
        for (Py_ssize_t r = 0; r < rows; r++)                                                                          \
            memcpy(out + r * d, base, d * sizeof(T));                                                                  \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                           \
            const uint64_t r = (uint64_t)labels[i] - (uint64_t)start, j = (uint64_t)(free ? free[i] : i);              \
            if (j >= (uint64_t)d)                                                                                      \
                return 0;                                                                                              \
            if (r < (uint64_t)rows)                                                                                    \
                out[r * d + j] += by * moves[i];                                                                       \
        }                                                                                                              \
        return 1;                                                                                                      \
    }
BOTH(ADD_GROUPS)

/* What a batch of groups tells: p_j and squares_j are the sums of u w and of u u in group j, one after the other, and
   `earned` is <y, p> / <p, p> between 0 and 2. Then g_i = gain (y - theta p)_j / u_i + theta w_i and
   after_i = (y - earned p)_j / squares_j u_i + w_i for i in group j. The scratch is for four numbers a group. Whether
   every label is a group's. */
#define MEND_GROUPS(T)                                                                                                 \
    static int mend_groups_##T(T *restrict g, T *restrict after, const int64_t *restrict labels, const T *restrict u,  \
                               const T *restrict w, const double *restrict y, double *restrict scratch,                \
                               Py_ssize_t groups, Py_ssize_t n, double theta, double gain, double *restrict earned)    \
    {                                                                                                                  \
        const T trust = (T)theta;                                                                                      \
        double *p = scratch, *squares = p + groups;                                                                    \
        T *rest = (T *)(squares + groups), *news = rest + groups;                                                      \
        memset(scratch, 0, 2 * groups * sizeof(double));                                                               \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                           \
            const T product = u[i] * w[i], square = u[i] * u[i];                                                       \
            if ((uint64_t)labels[i] >= (uint64_t)groups)                                                               \
                return 0;                                                                                              \
            p[labels[i]] += product;                                                                                   \
            squares[labels[i]] += square;                                                                              \
        }                                                                                                              \
        double foretold = p[0] * p[0], borne = y[0] * p[0];                                                            \
        for (Py_ssize_t j = 1; j < groups; j++) {                                                                      \
            foretold += p[j] * p[j];                                                                                   \
            borne += y[j] * p[j];                                                                                      \
        }                                                                                                              \
        *earned = foretold > 0 ? borne / foretold : 0;                                                                 \
        *earned = 0 > *earned ? 0 : *earned;                                                                           \
        *earned = 2 < *earned ? 2 : *earned;                                                                           \
        for (Py_ssize_t j = 0; j < groups; j++) {                                                                      \
            rest[j] = (T)(gain * (y[j] - theta * p[j]));                                                               \
            news[j] = (T)((y[j] - *earned * p[j]) / squares[j]);                                                       \
        }                                                                                                              \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                           \
            const int64_t j = labels[i];                                                                               \
            g[i] = rest[j] / u[i] + trust * w[i];                                                                      \
            after[i] = news[j] * u[i] + w[i];                                                                          \
        }                                                                                                              \
        return 1;                                                                                                      \
    }
BOTH(MEND_GROUPS)

/* exp and log of operations that IEEE 754 rounds in one way, so that they have the same bits on every machine; they
   are those of elementary.py, which says why they are good. A float has MANTISSA bits after the point, and 2^k the
   bits (BIAS + k) << MANTISSA. */
#define EXP_float 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2
#define EXP_double                                                                                                     \
    1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, EXP_float
#define LOG_float 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3
#define LOG_double 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11, LOG_float
#define HORNER(q, terms, at)                                                                                           \
    _Pragma("GCC unroll 16") for (size_t i = 1; i < sizeof(terms) / sizeof(*terms); i++) q = q * at + terms[i]

#define ELEMENTARY(T, WORD, MANTISSA, BIAS, LN2, LN2_REST)                                                             \
    static inline T expm1_##T(T u)                                                                                     \
    {                                                                                                                  \
        static const T terms[] = {EXP_##T};                                                                            \
        const T shift = (T)3 * (T)((WORD)1 << (MANTISSA - 1)), moved = u * (T)1.4426950408889634 + shift;              \
        const T k = moved - shift, r = u - k * (T)LN2 - k * (T)LN2_REST;                                               \
        T q = terms[0], power;                                                                                         \
        HORNER(q, terms, r);                                                                                           \
        WORD bits;                                                                                                     \
        memcpy(&bits, &moved, sizeof(T));                                                                              \
        bits = (bits + BIAS) << MANTISSA;                                                                              \
        memcpy(&power, &bits, sizeof(T));                                                                              \
        return power * (r + r * r * q) + (power - 1);                                                                  \
    }                                                                                                                  \
                                                                                                                       \
    static inline T log_##T(T w)                                                                                       \
    {                                                                                                                  \
        static const T terms[] = {LOG_##T};                                                                            \
        const WORD fraction = ((WORD)1 << MANTISSA) - 1;                                                               \
        WORD bits, exponent;                                                                                           \
        memcpy(&bits, &w, sizeof(T));                                                                                  \
        exponent = bits >> MANTISSA | (WORD)(BIAS + MANTISSA) << MANTISSA;                                             \
        bits = (bits & fraction) | (WORD)BIAS << MANTISSA;                                                             \
        T m, k;                                                                                                        \
        memcpy(&m, &bits, sizeof(T));                                                                                  \
        memcpy(&k, &exponent, sizeof(T));                                                                              \
        k -= (T)((WORD)1 << MANTISSA) + BIAS;                                                                          \
        k = m > (T)1.4142135623730951 ? k + 1 : k;                                                                     \
        m = m > (T)1.4142135623730951 ? m * (T)0.5 : m;                                                                \
        const T f = (m - 1) / (m + 1), z = f * f;                                                                      \
        T q = terms[0];                                                                                                \
        HORNER(q, terms, z);                                                                                           \
        return k * (T)LN2 + (f * (2 + z * q) + k * (T)LN2_REST);                                                       \
    }
ELEMENTARY(float, uint32_t, 23, 127, 0x1.62e4p-1, 0x1.7f7d1cp-20)
ELEMENTARY(double, uint64_t, 52, 1023, 0x1.62e42fefa2p-1, 0x1.9ef35793c7673p-41)

/* The coordinates that a step works on at a time; its scratch is on the stack. */
#define PIECE 256

/* A step as entropy.py has it: coordinates are in units of 1/inverse, a = l1/eta, b = l2/eta, s is at most top. */
typedef struct {
    double inverse, eta, a, b, top;
} Step;

/* v in place of s > 0, with log1p(inverse v) + b v = s, by a few steps of Halley's iteration. */
#define ROOTS(T, LARGEST, MOST, CEILING, EXPM1_CEILING, STEPS)                                                         \
    WIDE static void halley_##T(T *restrict u, T *restrict e, T *restrict r, const T *restrict s, Py_ssize_t n, T beta)\
    {                                                                                                                  \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                           \
            e[i] = expm1_##T(u[i]);                                                                                    \
            const T q = e[i] * beta, rest = u[i] + q - s[i], slope = q + beta, r1 = slope + 1;                         \
            r[i] = rest * r1 / (r1 * r1 - slope * rest * (T)0.5);                                                      \
            u[i] -= r[i];                                                                                              \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    WIDE static void roots_##T(T *restrict s, Py_ssize_t n, const Step *restrict step)                                 \
    {                                                                                                                  \
        const T beta = (T)(step->b / step->inverse), b = (T)step->b, unit = (T)step->inverse;                          \
        const T ceiling = (T)CEILING, largest = (T)LARGEST;                                                            \
        const double beyond = CEILING + (double)beta * EXPM1_CEILING;                                                  \
        const T most = (T)LEAST(beyond, MOST);                                                                         \
        T u[PIECE], e[PIECE], r[PIECE];                                                                                \
        if (beta == 0) {                                                                                               \
            for (Py_ssize_t i = 0; i < n; i++)                                                                         \
                s[i] = expm1_##T(LEAST(s[i], ceiling)) / unit;                                                         \
            return;                                                                                                    \
        }                                                                                                              \
        if (beta >= (T)MOST) {                                                                                         \
            for (Py_ssize_t i = 0; i < n; i++)                                                                         \
                s[i] /= b;                                                                                             \
            return;                                                                                                    \
        }                                                                                                              \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                           \
            s[i] = LEAST(s[i], most);                                                                                  \
            const T ratio = s[i] / beta, first = log_##T(LEAST(ratio, largest) + 1), other = s[i] / (beta + 1);        \
            const T start = LEAST(first, other);                                                                       \
            u[i] = LEAST(start, ceiling);                                                                              \
        }                                                                                                              \
        for (int t = 0; t < STEPS; t++)                                                                                \
            halley_##T(u, e, r, s, n, beta);                                                                           \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                           \
            const T mended = e[i] + (e[i] + 1) * r[i] * (r[i] * (T)0.5 - 1);                                           \
            s[i] = mended * beta <= u[i] ? mended / unit : (s[i] - u[i]) / b;                                          \
        }                                                                                                              \
    }
ROOTS(float, FLT_MAX, 1e17, 87.0, 6e37, 3)
ROOTS(double, DBL_MAX, 1e150, 708.0, 3e307, 4)

/* Where s > 16.5 its last digit in float32 is too coarse for v: there float64 is used. */
static void wide_float(float *restrict v, const float *restrict s, Py_ssize_t n, const Step *restrict step)
{
    double wide[PIECE];
    Py_ssize_t count = 0;
    if (step->top <= 16.5)
        return;
    for (Py_ssize_t i = 0; i < n; i++)
        if (s[i] > 16.5f)
            wide[count++] = s[i];
    roots_double(wide, count, step);
    for (Py_ssize_t i = n - 1; i >= 0; i--)
        if (s[i] > 16.5f) {
            const double root = wide[--count];
            v[i] = (float)LEAST(root, FLT_MAX);
        }
}
static void wide_double(double *restrict v, const double *restrict s, Py_ssize_t n, const Step *restrict step)
{
    (void)v, (void)s, (void)n, (void)step;
}

/* y = P(x, g, eta): sign(z) v, clipped to [lower, upper], with z = sign(x) log1p(inverse |x|) - g/eta. What is not on
   (s > 0, and finite) is 0, or z itself where that is no finite number: it is not to be hidden. */
#define ENTROPY_STEP(T, LARGEST, ABS, COPYSIGN)                                                                        \
    WIDE static Py_ssize_t pulled_##T(T *restrict z, T *restrict s, const T *restrict x, const T *restrict g, int n,   \
                                      const Step *restrict step)                                                       \
    {                                                                                                                  \
        const T unit = (T)step->inverse, eta = (T)step->eta, a = (T)step->a, top = (T)step->top, largest = (T)LARGEST; \
        int on = 0;                                                                                                    \
        for (int i = 0; i < n; i++) {                                                                                  \
            const T scaled = ABS(x[i]) * unit, t = LEAST(scaled, largest), w = t + 1;                                  \
            z[i] = COPYSIGN((t - (w - 1)) / w + log_##T(w), x[i]) - g[i] / eta;                                        \
            const T over = ABS(z[i]) - a;                                                                              \
            s[i] = LEAST(over, top);                                                                                   \
        }                                                                                                              \
        for (int i = 0; i < n; i++)                                                                                    \
            on += (s[i] > 0) & (s[i] < (T)INFINITY);                                                                   \
        return on;                                                                                                     \
    }                                                                                                                  \
                                                                                                                       \
    WIDE static void clipped_##T(T *restrict y, const T *restrict v, const T *restrict s, const T *restrict z,         \
                                 const T *restrict low, const T *restrict high, int n)                                 \
    {                                                                                                                  \
        for (int i = 0; i < n; i++) {                                                                                  \
            const T on = COPYSIGN(v[i], z[i]), root = s[i] > 0 ? on : 0, moved = s[i] < (T)INFINITY ? root : z[i];     \
            const T above = moved < low[i] ? low[i] : moved;                                                           \
            y[i] = above > high[i] ? high[i] : above;                                                                  \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void entropy_step_##T(T *restrict y, const T *restrict x, const T *restrict g, const T *restrict lower,     \
                                 Py_ssize_t lowers, const T *restrict upper, Py_ssize_t uppers, Py_ssize_t n,          \
                                 const Step *restrict step)                                                            \
    {                                                                                                                  \
        T z[PIECE], s[PIECE], v[PIECE], kept[PIECE], low[PIECE], high[PIECE];                                          \
        for (int i = 0; i < PIECE && !(lowers && uppers); i++)                                                         \
            low[i] = *lower, high[i] = *upper;                                                                         \
        for (Py_ssize_t from = 0; from < n; from += PIECE) {                                                           \
            const int size = (int)LEAST(n - from, PIECE), on = (int)pulled_##T(z, s, x + from, g + from, size, step);  \
            if (on == size)                                                                                            \
                memcpy(v, s, sizeof(v));                                                                               \
            else                                                                                                       \
                for (int i = 0, next = 0; next < on; next += (s[i] > 0) & (s[i] < (T)INFINITY), i++)                   \
                    v[next] = s[i];                                                                                    \
            memcpy(kept, v, on * sizeof(T));                                                                           \
            roots_##T(v, on, step);                                                                                    \
            wide_##T(v, kept, on, step);                                                                               \
            if (on < size) { /* back to their places; what stands elsewhere does not matter */                         \
                v[on] = 0;                                                                                             \
                for (int i = 0, next = 0; i < size; next += (s[i] > 0) & (s[i] < (T)INFINITY), i++)                    \
                    kept[i] = v[next];                                                                                 \
            }                                                                                                          \
            clipped_##T(y + from, on < size ? kept : v, s, z, lowers ? lower + from : low,                             \
                        uppers ? upper + from : high, size);                                                           \
        }                                                                                                              \
    }
ENTROPY_STEP(float, FLT_MAX, fabsf, copysignf)
ENTROPY_STEP(double, DBL_MAX, fabs, copysign)

/* |x - y|_1 and |x - y|_2^2 in float64, or of x alone where y is NULL. Term i goes to sum i mod LANED, and the sums are
   folded in halves: an order that numpy can follow, and that needs no single long chain. */
#define LANED 16
typedef double vector_double __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t vector_word __attribute__((vector_size(32)));
typedef float four_floats __attribute__((vector_size(16), aligned(4), may_alias));
#define FOUR_float(p) __builtin_convertvector(*(const four_floats *)(p), vector_double)
#define FOUR_double(p) (*(const vector_double *)(p))
#define ADD_LANES(T, TERM)                                                                                             \
    for (Py_ssize_t i = 0; i < whole; i += LANED)                                                                      \
        _Pragma("GCC unroll 4") for (int k = 0; k < LANED / 4; k++) {                                                  \
            const Py_ssize_t at = i + 4 * k;                                                                           \
            const vector_double term = TERM;                                                                           \
            sizes[k] += (vector_double)((vector_word)term & INT64_MAX);                                                \
            squares[k] += term * term;                                                                                 \
        }
#define SUMS(T)                                                                                                        \
    WIDE static void sums_##T(double of[2], const T *restrict x, const T *restrict y, Py_ssize_t n)                    \
    {                                                                                                                  \
        vector_double sizes[LANED / 4] = {{0}}, squares[LANED / 4] = {{0}};                                            \
        const Py_ssize_t whole = n - n % LANED;                                                                        \
        if (y) {                                                                                                       \
            ADD_LANES(T, FOUR_##T(x + at) - FOUR_##T(y + at))                                                          \
        } else {                                                                                                       \
            ADD_LANES(T, FOUR_##T(x + at))                                                                             \
        }                                                                                                              \
        double size[LANED], square[LANED];                                                                             \
        memcpy(size, sizes, sizeof(size));                                                                             \
        memcpy(square, squares, sizeof(square));                                                                       \
        for (Py_ssize_t i = whole; i < n; i++) {                                                                       \
            const double term = y ? (double)x[i] - (double)y[i] : (double)x[i];                                        \
            size[i - whole] += fabs(term);                                                                             \
            square[i - whole] += term * term;                                                                          \
        }                                                                                                              \
        for (int half = LANED / 2; half; half /= 2)                                                                    \
            for (int j = 0; j < half; j++) {                                                                           \
                size[j] += size[j + half];                                                                             \
                square[j] += square[j + half];                                                                         \
            }                                                                                                          \
        of[0] = size[0], of[1] = square[0];                                                                            \
    }
BOTH(SUMS)

/* The words of a generator, whole or cut into halves, of which the lower one comes first (random.py). They are made
   AHEAD words at a time. */
#define AHEAD 64
typedef struct {
    uint64_t key[2];
    Counter counter;
    uint64_t words[AHEAD];
    int halves;
} Draws;

static void more_halves(Draws *draws)
{
    for (int at = 0; at < AHEAD; at += 4)
        philox(draws->words + at, draws->key, draws->counter = following(draws->counter));
    draws->halves = 2 * AHEAD;
}

static inline uint32_t half(Draws *draws)
{
    if (draws->halves == 0)
        more_halves(draws);
    const int at = 2 * AHEAD - draws->halves--;
    return (uint32_t)(draws->words[at / 2] >> at % 2 * 32);
}

/* A whole word; no odd half may be left. */
static inline uint64_t word(Draws *draws)
{
    if (draws->halves == 0)
        more_halves(draws);
    const int at = AHEAD - draws->halves / 2;
    draws->halves -= 2;
    return draws->words[at];
}

/* Labels 0 .. groups - 1 of n coordinates: the permutation of random.py, modulo groups. The low bits of a half name
   the partner of entry i and are rejected above i. A rejected half swaps an entry with itself, which costs less than
   a branch that is mispredicted. The remainder is computed by two products (Lemire, Kaser and Kurz, 2019). */
static void draw_labels(int64_t *restrict labels, Py_ssize_t n, uint32_t groups, Draws *restrict draws)
{
    for (Py_ssize_t i = 0; i < n; i++)
        labels[i] = i;
    uint32_t mask = UINT32_MAX, i = (uint32_t)n - 1;
    while (i > 0) {
        while (mask / 2 >= i)
            mask /= 2;
        while (i > mask / 2) {
            const uint32_t drawn = half(draws) & mask, fits = drawn <= i, j = fits ? drawn : i;
            const int64_t kept = labels[j];
            labels[j] = labels[i];
            labels[i] = kept;
            i -= fits;
        }
    }
    const uint64_t inverse = UINT64_MAX / groups + 1;
    for (Py_ssize_t k = 0; k < n; k++)
        labels[k] = (int64_t)(((unsigned __int128)(inverse * (uint64_t)labels[k]) * groups) >> 64);
}

/* How far each coordinate moves: a sign times sqrt(share |x| + rest), or the sign alone where share is 0. The signs
   are the highest bits of bytes, as in random.py. */
#define DRAW_MOVES(T, ABS, SQRT)                                                                                       \
    WIDE static void root_moves_##T(T *restrict moves, const T *restrict x, Py_ssize_t n, double share, double rest)   \
    {                                                                                                                  \
        const T by = (T)share, more = (T)rest;                                                                         \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                           \
            const T weight = ABS(x[i]) * by;                                                                           \
            moves[i] *= SQRT(weight + more);                                                                           \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    WIDE static void sign_moves_##T(T *restrict moves, const uint8_t *restrict bytes, Py_ssize_t n)                    \
    {                                                                                                                  \
        for (Py_ssize_t i = 0; i < n; i++)                                                                             \
            moves[i] = bytes[i] & 128 ? -1 : 1;                                                                        \
    }                                                                                                                  \
                                                                                                                       \
    static void draw_moves_##T(T *restrict moves, const T *restrict x, Py_ssize_t n, Draws *restrict draws,            \
                               double share, double rest)                                                              \
    {                                                                                                                  \
        uint8_t bytes[PIECE];                                                                                          \
        for (Py_ssize_t from = 0; from < n; from += PIECE) {                                                           \
            const Py_ssize_t count = LEAST(n - from, PIECE);                                                           \
            for (Py_ssize_t i = 0; i < count; i += 4) {                                                                \
                const uint32_t four = half(draws);                                                                     \
                bytes[i] = (uint8_t)four, bytes[i + 1] = (uint8_t)(four >> 8);                                         \
                bytes[i + 2] = (uint8_t)(four >> 16), bytes[i + 3] = (uint8_t)(four >> 24);                            \
            }                                                                                                          \
            sign_moves_##T(moves + from, bytes, count);                                                                \
        }                                                                                                              \
        if (share)                                                                                                     \
            root_moves_##T(moves, x, n, share, rest);                                                                  \
    }
DRAW_MOVES(float, fabsf, sqrtf)
DRAW_MOVES(double, fabs, sqrt)

/* Standard normal numbers by the ziggurat of normal.py, which has the tables: the low 8 bits of a word are the layer,
   bit 8 is the sign, and the PLACES bits above are the place in the layer. */
#define NORMALS(T, WORD, NEXT, PLACES)                                                                                 \
    static inline T unit_##T(Draws *draws)                                                                             \
    {                                                                                                                  \
        return (T)(NEXT(draws) >> (8 * sizeof(WORD) - PLACES - 1)) * ((T)0.5 / ((WORD)1 << PLACES));                   \
    }                                                                                                                  \
                                                                                                                       \
    static inline T exponential_##T(Draws *draws)                                                                      \
    {                                                                                                                  \
        return (T)-log_double(1 - (double)unit_##T(draws));                                                            \
    }                                                                                                                  \
                                                                                                                       \
    static T beyond_##T(Draws *draws)                                                                                  \
    {                                                                                                                  \
        for (;;) {                                                                                                     \
            const T x = exponential_##T(draws) * (T)0.27366123732975827, y = exponential_##T(draws);                   \
            if (y + y > x * x)                                                                                         \
                return (T)3.6541528853610088 + x;                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void normals_##T(T *restrict out, Py_ssize_t n, const T *restrict width, const WORD *restrict core,         \
                            const T *restrict height, Draws *restrict draws)                                           \
    {                                                                                                                  \
        for (Py_ssize_t i = 0; i < n;) {                                                                               \
            const WORD drawn = NEXT(draws), place = drawn >> 9 & (((WORD)1 << PLACES) - 1);                            \
            const int layer = drawn & 255;                                                                             \
            WORD negative = drawn >> 8 & 1;                                                                            \
            T x = (T)place * width[layer];                                                                             \
            if (place >= core[layer]) {                                                                                \
                if (layer == 0) {                                                                                      \
                    x = beyond_##T(draws);                                                                             \
                    negative = drawn >> 17 & 1;                                                                        \
                } else {                                                                                               \
                    const T at = (height[layer - 1] - height[layer]) * unit_##T(draws) + height[layer];                \
                    if (!(at < expm1_double(-0.5 * x * x) + 1))                                                        \
                        continue;                                                                                      \
                }                                                                                                      \
            }                                                                                                          \
            out[i++] = negative ? -x : x;                                                                              \
        }                                                                                                              \
    }
NORMALS(float, uint32_t, half, 23)
NORMALS(double, uint64_t, word, 52)

/* The least point of an elastic net in a box beyond k half-spaces, and equations with a positive definite matrix: the
   order of every sum is that of elastic_point.py and cholesky.py. Rows are padded to a multiple of LANED. */
typedef struct {
    const double *rows, *need, *lower, *upper;
    Py_ssize_t k, d;
    double l1, l2;
} Halfspaces;

static inline double folded(double *lanes)
{
    for (int half = LANED / 2; half; half /= 2)
        for (int j = 0; j < half; j++)
            lanes[j] += lanes[j + half];
    return lanes[0];
}

/* A = L L^T in the lower half of A (n, n), row by row, then the columns of B (n, m) become A^-1 B. Whether A is
   positive definite. */
WIDE static int solve_cholesky(double *restrict A, double *restrict B, Py_ssize_t n, Py_ssize_t m)
{
    for (Py_ssize_t j = 0; j < n; j++) {
        const double *column = A + j * n;
        const double pivot = sqrt(column[j]);
        if (!(pivot > 0) || pivot == INFINITY)
            return 0;
        A[j * n + j] = pivot;
        for (Py_ssize_t i = j + 1; i < n; i++)
            A[j * n + i] /= pivot;
        for (Py_ssize_t c = 0; c < m; c++)
            B[j * m + c] /= pivot;
        for (Py_ssize_t i = j + 1; i < n; i++) {
            const double factor = A[j * n + i];
            for (Py_ssize_t l = i; l < n; l++)
                A[i * n + l] -= factor * A[j * n + l];
            for (Py_ssize_t c = 0; c < m; c++)
                B[i * m + c] -= factor * B[j * m + c];
        }
    }
    for (Py_ssize_t j = n - 1; j >= 0; j--) {
        for (Py_ssize_t c = 0; c < m; c++)
            B[j * m + c] /= A[j * n + j];
        for (Py_ssize_t i = 0; i < j; i++)
            for (Py_ssize_t c = 0; c < m; c++)
                B[i * m + c] -= A[i * n + j] * B[j * m + c];
    }
    return 1;
}

/* <a, v> and its derivative by mu, where v = clip(soft(z + mu a, l1) / l2); v is written where it is wanted. */
WIDE static void reached(double *restrict of, double *restrict v, const double *restrict z, const double *restrict a,
                         const Halfspaces *restrict at, double mu)
{
    const double l1 = at->l1, l2 = at->l2, *restrict lower = at->lower, *restrict upper = at->upper;
    double sum[LANED] = {0}, slope[LANED] = {0};
    for (Py_ssize_t i = 0; i < at->d; i += LANED)
        for (int j = 0; j < LANED; j++) {
            const double pull = z[i + j] + mu * a[i + j], beyond = fabs(pull) - l1;
            const double free = copysign((beyond > 0 ? beyond : 0) / l2, pull);
            const double low = lower[i + j], high = upper[i + j], above = free < low ? low : free;
            const double value = above > high ? high : above;
            const int moves = (beyond > 0) & (free > low) & (free < high);
            sum[j] += a[i + j] * value;
            slope[j] += moves ? a[i + j] * a[i + j] : 0;
            v[i + j] = value;
        }
    of[0] = folded(sum);
    of[1] = folded(slope) / l2;
}

/* The least mu >= 0 with <a, v(mu)> >= need, by Newton's method inside a bracket; v is left at it. */
static double multiplier(double *restrict v, const double *restrict z, const double *restrict a, double need,
                         double mu, double first, const Halfspaces *restrict at)
{
    double of[2], low = 0, high = INFINITY;
    const double close = 1e-12 * (1 + fabs(need));
    reached(of, v, z, a, at, 0);
    if (of[0] >= need || first == 0)
        return 0;
    mu = mu > 0 ? mu : first;
    for (int step = 0; step < 100; step++) {
        reached(of, v, z, a, at, mu);
        const double miss = of[0] - need;
        if (miss >= 0)
            high = mu;
        else
            low = mu;
        if (fabs(miss) <= close)
            break;
        double next = of[1] > 0 ? mu - miss / of[1] : -1;
        if (!(next > low && next < high))
            next = high < INFINITY ? (low + high) / 2 : 4 * mu;
        if (!(next > low && next < high) || next > 1e300)
            break;
        mu = next;
    }
    return mu;
}

/* z = sum_r mu_r a_r, row after row. */
static void pulled(double *restrict z, const double *restrict mu, const Halfspaces *restrict at)
{
    memset(z, 0, at->d * sizeof(double));
    for (Py_ssize_t r = 0; r < at->k; r++)
        if (mu[r] > 0)
            for (Py_ssize_t i = 0; i < at->d; i++)
                z[i] += mu[r] * at->rows[r * at->d + i];
}

/* sum_i a_i b_i over the coordinates that move with z. */
WIDE static double curvature(const double *restrict z, const double *restrict a, const double *restrict b,
                             const Halfspaces *restrict at)
{
    const double l1 = at->l1, l2 = at->l2, *restrict lower = at->lower, *restrict upper = at->upper;
    double sum[LANED] = {0};
    for (Py_ssize_t i = 0; i < at->d; i += LANED)
        for (int j = 0; j < LANED; j++) {
            const double pull = z[i + j], beyond = fabs(pull) - l1;
            const double free = copysign((beyond > 0 ? beyond : 0) / l2, pull);
            const int moves = (beyond > 0) & (free > lower[i + j]) & (free < upper[i + j]);
            sum[j] += moves ? a[i + j] * b[i + j] : 0;
        }
    return folded(sum);
}

/* One Newton step for all positive multipliers at once, shortened to where the first of them is zero; v is that of z.
   Whether the step was taken. */
static int newton(double *restrict v, double *restrict mu, double *restrict z, const double *restrict need,
                  double *restrict H, const Halfspaces *restrict at)
{
    const Py_ssize_t k = at->k, d = at->d;
    Py_ssize_t used[64], n = 0;
    double of[2], step[64], part = 1;
    for (Py_ssize_t r = 0; r < k; r++)
        if (mu[r] > 0)
            used[n++] = r;
    if (n < 2)
        return 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        const double *a = at->rows + used[i] * d;
        reached(of, v, z, a, at, 0);
        step[i] = (need[used[i]] - of[0]) * at->l2;
        for (Py_ssize_t j = i; j < n; j++)
            H[i * n + j] = curvature(z, a, at->rows + used[j] * d, at);
    }
    if (!solve_cholesky(H, step, n, 1))
        return 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (!isfinite(step[i]))
            return 0;
        if (mu[used[i]] + step[i] < 0) {
            const double most = mu[used[i]] / -step[i];
            part = most < part ? most : part;
        }
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        const double moved = mu[used[i]] + part * step[i];
        mu[used[i]] = moved > 0 ? moved : 0;
    }
    pulled(z, mu, at);
    return 1;
}

/* How far the multipliers are from optimal: the largest miss of a half-space, in units of 1 + |need|. */
static double residual(double *restrict v, const double *restrict mu, const double *restrict z,
                       const double *restrict need, const Halfspaces *restrict at)
{
    double of[2], worst = 0;
    for (Py_ssize_t r = 0; r < at->k; r++) {
        reached(of, v, z, at->rows + r * at->d, at, 0);
        const double beyond = of[0] - need[r], miss = (beyond < 0 ? -beyond : mu[r] > 0 ? beyond : 0) / (1 + fabs(need[r]));
        worst = miss > worst ? miss : worst;
    }
    return worst;
}

/* Newton steps for all multipliers at once; they are taken back if they have led away. Whether that is optimal. */
static int together(double *restrict v, double *restrict mu, double *restrict z, const double *restrict need,
                    double *restrict H, const Halfspaces *restrict at)
{
    double before[64], miss, first = -1;
    memcpy(before, mu, at->k * sizeof(double));
    for (int step = 0; step < 6; step++) {
        if (first < 0)
            first = residual(v, mu, z, need, at);
        if (!newton(v, mu, z, need, H, at))
            break;
        miss = residual(v, mu, z, need, at);
        if (miss <= 1e-9)
            return 1;
    }
    if (!(residual(v, mu, z, need, at) < first)) {
        memcpy(mu, before, at->k * sizeof(double));
        pulled(z, mu, at);
    }
    return 0;
}

/* One problem: `mu` (k) holds the multipliers, `v` the point; z and H are scratch. Rows are taken in turn, and all
   together after each turn. */
static void least_point(double *restrict v, double *restrict mu, double *restrict z, double *restrict H,
                        const Halfspaces *restrict at, int sweeps)
{
    const Py_ssize_t k = at->k, d = at->d;
    double of[2], first[64], need[64], most = 0;
    memset(z, 0, d * sizeof(double));
    for (Py_ssize_t r = 0; r < k; r++) {
        const double *a = at->rows + r * d;
        double top[LANED] = {0}, largest = 0;
        for (Py_ssize_t i = 0; i < d; i += LANED)
            for (int j = 0; j < LANED; j++) {
                const double one = a[i + j] * at->lower[i + j], other = a[i + j] * at->upper[i + j];
                top[j] += one > other ? one : other;
                largest = fabs(a[i + j]) > largest ? fabs(a[i + j]) : largest;
            }
        reached(of, v, z, a, at, 0);
        const double farthest = of[0] + 0.95 * (folded(top) - of[0]);
        need[r] = at->need[r] < farthest ? at->need[r] : farthest;
        first[r] = largest > 0 ? (at->l1 + at->l2) / largest : 0;
        mu[r] = 0;
    }
    for (int sweep = 0; sweep < (k == 1 ? 1 : sweeps); sweep++) {
        double moved = 0;
        for (Py_ssize_t r = 0; r < k; r++) {
            const double *a = at->rows + r * d, before = mu[r];
            if (before > 0)
                for (Py_ssize_t i = 0; i < d; i++)
                    z[i] -= before * a[i];
            mu[r] = multiplier(v, z, a, need[r], before, first[r], at);
            if (mu[r] > 0)
                for (Py_ssize_t i = 0; i < d; i++)
                    z[i] += mu[r] * a[i];
            const double change = fabs(mu[r] - before);
            moved = change > moved ? change : moved;
            most = mu[r] > most ? mu[r] : most;
        }
        if (moved <= 1e-7 * most || together(v, mu, z, need, H, at))
            break;
    }
    reached(of, v, z, at->rows, at, 0);
}

/* The rows of blocks (length, after) convolved along their length with symmetric taps; nothing lies beyond the ends. */
WIDE static void convolved(double *restrict out, const double *restrict in, Py_ssize_t blocks, Py_ssize_t length,
                           Py_ssize_t after, const double *restrict taps, Py_ssize_t count)
{
    const Py_ssize_t n = length * after;
    for (Py_ssize_t block = 0; block < blocks; block++, out += n, in += n) {
        for (Py_ssize_t i = 0; i < n; i++)
            out[i] = in[i] * taps[0];
        for (Py_ssize_t lag = 1; lag < count && lag < length; lag++) {
            const Py_ssize_t shift = lag * after;
            const double tap = taps[lag];
            for (Py_ssize_t i = shift; i < n; i++)
                out[i] += tap * in[i - shift];
            for (Py_ssize_t i = 0; i < n - shift; i++)
                out[i] += tap * in[i + shift];
        }
    }
}

/* out_ij = <a_i, b_j>, for rows of n entries; the terms that are left over go to the first partial sums. */
WIDE static void inner_products(double *restrict out, const double *restrict a, Py_ssize_t count,
                                const double *restrict b, Py_ssize_t others, Py_ssize_t n)
{
    const Py_ssize_t whole = n - n % LANED;
    for (Py_ssize_t i = 0; i < count; i++, a += n)
        for (Py_ssize_t j = 0; j < others; j++) {
            const double *restrict row = b + j * n;
            double sum[LANED] = {0};
            for (Py_ssize_t at = 0; at < whole; at += LANED)
                for (int lane = 0; lane < LANED; lane++)
                    sum[lane] += a[at + lane] * row[at + lane];
            for (Py_ssize_t at = whole; at < n; at++)
                sum[at - whole] += a[at] * row[at];
            *out++ = folded(sum);
        }
}

/* From here on it is Python's affair. */

/* The buffers of one call, and the number of entries in the first. */
typedef struct {
    Py_buffer of[6];
    Py_ssize_t n;
} Given;

#define AT(i) (given.of[i].buf)
#define LEN(i) (given.of[i].len)
#define OF(i) (&given.of[i])
#define KEY_AND_COUNTER key, key + 1, after, after + 1, after + 2, after + 3

/* KERNEL_float or KERNEL_double, by the size of an item. */
#define CALL(KERNEL, ...) (size == 4 ? KERNEL##_float(__VA_ARGS__) : KERNEL##_double(__VA_ARGS__))

/* Release `count` buffers; ValueError unless they belong together. */
static PyObject *done(Given *given, int count, int fits)
{
    for (int i = 0; i < count; i++)
        PyBuffer_Release(&given->of[i]);
    if (fits)
        Py_RETURN_NONE;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError,
                        "expected contiguous buffers of float32 or float64 whose sizes belong together");
    return NULL;
}

/* Whether the first `count` buffers have as many items as the first, of a size that is known. */
static int alike(Given *given, int count, int size)
{
    given->n = 0;
    if ((size != 4 && size != 8) || given->of[0].len % size)
        return 0;
    given->n = given->of[0].len / size;
    for (int i = 1; i < count; i++)
        if (given->of[i].len != given->of[0].len)
            return 0;
    return 1;
}

/* Whether the third buffer has the bits of `rows` rows of d signs, in whole counters. */
static int signs_fit(Given *given, Py_ssize_t rows, Py_ssize_t d)
{
    const Py_ssize_t bits = given->of[2].len;
    return rows > 0 && d > 0 && bits % rows == 0 && bits / rows / (COLUMNS / 8) > (d - 1) / COLUMNS;
}

static PyObject *add_signs(PyObject *self, PyObject *args)
{
    Given given;
    unsigned long long key[2], after[4];
    double scale;
    int past, size;
    if (!PyArg_ParseTuple(args, "w*y*w*dKKKKKKpi", OF(0), OF(1), OF(2), &scale, KEY_AND_COUNTER, &past, &size))
        return NULL;
    const Py_ssize_t d = alike(&given, 1, size) ? LEN(1) / size : 0, rows = d ? LEN(0) / LEN(1) : 0;
    const int fits = signs_fit(&given, rows, d) && LEN(0) == rows * LEN(1) && LEN(1) == d * size;
    if (fits) {
        const uint64_t named[2] = {key[0], key[1]};
        const Counter counter = {{after[0], after[1], after[2], after[3]}};
        Py_BEGIN_ALLOW_THREADS;
        past = past && ((uintptr_t)AT(0) | LEN(1)) % 16 == 0;
        CALL(add_signs, AT(0), AT(1), AT(2), LEN(2) / rows, rows, d, scale, named, counter, past);
        if (past)
            FENCE();
        Py_END_ALLOW_THREADS;
    }
    return done(&given, 3, fits);
}

static PyObject *sum_signs(PyObject *self, PyObject *args)
{
    Given given;
    int size;
    if (!PyArg_ParseTuple(args, "w*y*y*i", OF(0), OF(1), OF(2), &size))
        return NULL;
    const Py_ssize_t rows = alike(&given, 1, size) ? LEN(1) / size : 0;
    const int fits = signs_fit(&given, rows, given.n) && LEN(1) == rows * size;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        CALL(sum_signs, AT(0), AT(1), AT(2), LEN(2) / rows, rows, given.n);
        Py_END_ALLOW_THREADS;
    }
    return done(&given, 3, fits);
}

static PyObject *draw_groups(PyObject *self, PyObject *args)
{
    Given given;
    unsigned long long key[2], after[4];
    long long groups;
    double share, rest;
    int size;
    if (!PyArg_ParseTuple(args, "w*w*y*KKKKKKLddi", OF(0), OF(1), OF(2), KEY_AND_COUNTER, &groups, &share, &rest,
                          &size))
        return NULL;
    const Py_ssize_t n = size == 4 || size == 8 ? LEN(1) / size : 0;
    const int fits = groups > 0 && groups < UINT32_MAX && n && n < UINT32_MAX && LEN(1) == n * size &&
                     LEN(2) == LEN(1) && LEN(0) == 8 * n;
    if (fits) {
        Draws draws = {{key[0], key[1]}, {{after[0], after[1], after[2], after[3]}}, {0}, 0};
        Py_BEGIN_ALLOW_THREADS;
        draw_labels(AT(0), n, (uint32_t)groups, &draws);
        CALL(draw_moves, AT(1), AT(2), n, &draws, share, rest);
        Py_END_ALLOW_THREADS;
    }
    return done(&given, 3, fits);
}

static PyObject *normals(PyObject *self, PyObject *args)
{
    Given given;
    unsigned long long key[2], after[4];
    Py_ssize_t rows;
    int size;
    if (!PyArg_ParseTuple(args, "w*y*y*y*KKKKKKni", OF(0), OF(1), OF(2), OF(3), KEY_AND_COUNTER, &rows, &size))
        return NULL;
    int fits = alike(&given, 1, size) && rows >= 0 && (rows ? given.n % rows == 0 : given.n == 0);
    for (int i = 1; i < 4; i++)
        fits = fits && LEN(i) == 256 * size;
    if (fits && rows) {
        const Py_ssize_t d = given.n / rows;
        char *row = AT(0);
        Py_BEGIN_ALLOW_THREADS;
        for (Py_ssize_t i = 0; i < rows; i++, row += d * size, after[1]++) {
            Draws draws = {{key[0], key[1]}, {{after[0], after[1], after[2], after[3]}}, {0}, 0};
            CALL(normals, (void *)row, d, AT(1), AT(2), AT(3), &draws);
        }
        Py_END_ALLOW_THREADS;
    }
    return done(&given, 4, fits);
}

static PyObject *add_groups(PyObject *self, PyObject *args)
{
    Given given;
    double radius;
    long long start;
    int size;
    if (!PyArg_ParseTuple(args, "w*y*y*y*z*dLi", OF(0), OF(1), OF(2), OF(3), OF(4), &radius, &start, &size))
        return NULL;
    const Py_ssize_t d = alike(&given, 1, size) ? LEN(1) / size : 0, n = d ? LEN(3) / size : 0;
    int fits = d && LEN(0) % LEN(1) == 0 && LEN(3) == n * size && LEN(2) == 8 * n && (!AT(4) || LEN(4) == 8 * n);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        fits = CALL(add_groups, AT(0), AT(1), AT(2), AT(3), AT(4), LEN(0) / LEN(1), d, n, radius, start);
        Py_END_ALLOW_THREADS;
    }
    return done(&given, 5, fits);
}

static PyObject *mend_groups(PyObject *self, PyObject *args)
{
    Given given;
    double theta, gain, earned = 0;
    int size;
    if (!PyArg_ParseTuple(args, "w*w*y*y*y*y*ddi", OF(0), OF(1), OF(2), OF(3), OF(4), OF(5), &theta, &gain, &size))
        return NULL;
    const Py_ssize_t groups = LEN(5) / 8;
    int fits = alike(&given, 2, size) && LEN(0) == given.n * size && LEN(3) == LEN(0) && LEN(4) == LEN(0) &&
               LEN(2) == 8 * given.n && groups && LEN(5) == 8 * groups;
    double *scratch = fits ? PyMem_Malloc(4 * groups * sizeof(double)) : NULL;
    if (fits && !scratch)
        PyErr_NoMemory();
    fits = fits && scratch;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        fits = CALL(mend_groups, AT(0), AT(1), AT(2), AT(3), AT(4), AT(5), scratch, groups, given.n, theta, gain,
                    &earned);
        Py_END_ALLOW_THREADS;
    }
    PyMem_Free(scratch);
    PyObject *none = done(&given, 6, fits);
    if (none == NULL)
        return NULL;
    Py_DECREF(none);
    return PyFloat_FromDouble(earned);
}

/* A side of a box: one number for all, or a buffer with one for each of n coordinates. Whether it is either. */
static int side(PyObject *given, Py_buffer *held, Py_ssize_t n, int size, float *narrow, double *number)
{
    held->obj = NULL;
    held->buf = size == 4 ? (void *)narrow : (void *)number;
    if (PyFloat_Check(given)) {
        *number = PyFloat_AsDouble(given);
        *narrow = (float)*number;
        return 1;
    }
    if (PyObject_GetBuffer(given, held, PyBUF_SIMPLE) == 0)
        return held->len == n * size;
    if (PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_BufferError))
        PyErr_Clear();
    return 0;
}

static PyObject *entropy_step(PyObject *self, PyObject *args)
{
    Given given;
    Step step;
    PyObject *sides[2];
    float narrow[2];
    double number[2];
    int size;
    if (!PyArg_ParseTuple(args, "w*y*y*OOdddddi", OF(0), OF(1), OF(2), sides, sides + 1, &step.inverse, &step.eta,
                          &step.a, &step.b, &step.top, &size))
        return NULL;
    given.of[3].obj = given.of[4].obj = NULL;
    const int fits = alike(&given, 3, size) && side(sides[0], OF(3), given.n, size, narrow, number) &&
                     side(sides[1], OF(4), given.n, size, narrow + 1, number + 1);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        CALL(entropy_step, AT(0), AT(1), AT(2), AT(3), given.of[3].obj != NULL, AT(4), given.of[4].obj != NULL, given.n,
             &step);
        Py_END_ALLOW_THREADS;
    }
    return done(&given, 5, fits);
}

static PyObject *sums(PyObject *self, PyObject *args)
{
    Given given;
    double of[2] = {0, 0};
    int size;
    if (!PyArg_ParseTuple(args, "y*z*i", OF(0), OF(1), &size))
        return NULL;
    const int fits = alike(&given, AT(1) ? 2 : 1, size);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        CALL(sums, of, AT(0), AT(1), given.n);
        Py_END_ALLOW_THREADS;
    }
    PyObject *none = done(&given, 2, fits);
    if (none == NULL)
        return NULL;
    Py_DECREF(none);
    return Py_BuildValue("(dd)", of[0], of[1]);
}

static PyObject *step_norms(PyObject *self, PyObject *args)
{
    Given given;
    double of[6] = {0, 0, 0, 0, 0, 0};
    int size;
    if (!PyArg_ParseTuple(args, "y*y*i", OF(0), OF(1), &size))
        return NULL;
    const int fits = alike(&given, 2, size);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        CALL(sums, of, AT(0), NULL, given.n);
        CALL(sums, of + 2, AT(1), NULL, given.n);
        CALL(sums, of + 4, AT(0), AT(1), given.n);
        Py_END_ALLOW_THREADS;
    }
    PyObject *none = done(&given, 2, fits);
    if (none == NULL)
        return NULL;
    Py_DECREF(none);
    return Py_BuildValue("(ddd)", of[0], of[2], of[4]);
}

static PyObject *words(PyObject *self, PyObject *args)
{
    Given given;
    unsigned long long key[2], after[4], jump;
    Py_ssize_t rows, count;
    if (!PyArg_ParseTuple(args, "w*KKKKKKnKn", OF(0), KEY_AND_COUNTER, &rows, &jump, &count))
        return NULL;
    const int fits = alike(&given, 1, 8) && LEN(0) % 8 == 0 && rows > 0 && given.n % rows == 0 &&
                     count >= 0 && count <= given.n / rows;
    if (fits) {
        const uint64_t named[2] = {key[0], key[1]};
        uint64_t *row = AT(0);
        Py_BEGIN_ALLOW_THREADS;
        for (Py_ssize_t i = 0; i < rows; i++, row += given.n / rows, after[0] += jump)
            fill_words(row, count, named, (Counter){{after[0], after[1], after[2], after[3]}});
        Py_END_ALLOW_THREADS;
    }
    return done(&given, 1, fits);
}

static PyObject *least_points(PyObject *self, PyObject *args)
{
    Given given;
    double l1, l2;
    Py_ssize_t k;
    int sweeps;
    if (!PyArg_ParseTuple(args, "w*w*y*y*y*y*nddi", OF(0), OF(1), OF(2), OF(3), OF(4), OF(5), &k, &l1, &l2, &sweeps))
        return NULL;
    const Py_ssize_t count = k > 0 ? LEN(1) / 8 / k : 0, d = count ? LEN(0) / 8 / count : 0;
    int fits = k > 0 && k <= 64 && d > 0 && d % LANED == 0 && l2 > 0 && LEN(0) == 8 * count * d &&
               LEN(1) == 8 * count * k && LEN(2) == 8 * count * k * d && LEN(3) == LEN(1) && LEN(4) == LEN(0) &&
               LEN(5) == LEN(0);
    double *z = fits ? PyMem_Malloc((d + k * k) * sizeof(double)) : NULL;
    if (fits && !z)
        PyErr_NoMemory();
    fits = fits && z;
    if (fits) {
        double *v = AT(0), *mu = AT(1);
        const double *rows = AT(2), *need = AT(3), *lower = AT(4), *upper = AT(5);
        Py_BEGIN_ALLOW_THREADS;
        for (Py_ssize_t p = 0; p < count; p++) {
            const Halfspaces at = {rows + p * k * d, need + p * k, lower + p * d, upper + p * d, k, d, l1, l2};
            least_point(v + p * d, mu + p * k, z, z + d, &at, sweeps);
        }
        Py_END_ALLOW_THREADS;
    }
    PyMem_Free(z);
    return done(&given, 6, fits);
}

static PyObject *cholesky(PyObject *self, PyObject *args)
{
    Given given;
    Py_ssize_t n;
    int found = 0;
    if (!PyArg_ParseTuple(args, "w*w*n", OF(0), OF(1), &n))
        return NULL;
    const int fits = n > 0 && LEN(0) == 8 * n * n && LEN(1) % (8 * n) == 0;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        found = solve_cholesky(AT(0), AT(1), n, LEN(1) / 8 / n);
        Py_END_ALLOW_THREADS;
    }
    PyObject *none = done(&given, 2, fits);
    if (none == NULL)
        return NULL;
    Py_DECREF(none);
    return PyBool_FromLong(found);
}

static PyObject *inner(PyObject *self, PyObject *args)
{
    Given given;
    Py_ssize_t n;
    if (!PyArg_ParseTuple(args, "w*y*y*n", OF(0), OF(1), OF(2), &n))
        return NULL;
    const Py_ssize_t count = n > 0 ? LEN(1) / 8 / n : 0, others = n > 0 ? LEN(2) / 8 / n : 0;
    const int fits = n > 0 && LEN(1) == 8 * count * n && LEN(2) == 8 * others * n && LEN(0) == 8 * count * others;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        inner_products(AT(0), AT(1), count, AT(2), others, n);
        Py_END_ALLOW_THREADS;
    }
    return done(&given, 3, fits);
}

static PyObject *convolve(PyObject *self, PyObject *args)
{
    Given given;
    Py_ssize_t length, after;
    if (!PyArg_ParseTuple(args, "w*y*y*nn", OF(0), OF(1), OF(2), &length, &after))
        return NULL;
    const Py_ssize_t block = length > 0 && after > 0 ? 8 * length * after : 0;
    const int fits = block && LEN(0) % block == 0 && LEN(0) == LEN(1) && LEN(2) >= 8 && LEN(2) % 8 == 0;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        convolved(AT(0), AT(1), LEN(0) / block, length, after, AT(2), LEN(2) / 8);
        Py_END_ALLOW_THREADS;
    }
    return done(&given, 3, fits);
}

static PyObject *row_sums(PyObject *self, PyObject *args)
{
    Given given;
    Py_ssize_t d;
    int size;
    if (!PyArg_ParseTuple(args, "w*y*ni", OF(0), OF(1), &d, &size))
        return NULL;
    const Py_ssize_t rows = LEN(0) / 16;
    const int fits = (size == 4 || size == 8) && d > 0 && LEN(0) % 16 == 0 && LEN(1) == rows * d * size;
    if (fits) {
        double *of = AT(0);
        const char *row = AT(1);
        Py_BEGIN_ALLOW_THREADS;
        for (Py_ssize_t i = 0; i < rows; i++, of += 2, row += d * size)
            CALL(sums, of, (const void *)row, NULL, d);
        Py_END_ALLOW_THREADS;
    }
    return done(&given, 2, fits);
}

static PyMethodDef methods[] = {
    {"words", words, METH_VARARGS, "words(out, key0, key1, counter0, ..., counter3, rows, jump, count)"},
    {"add_signs", add_signs, METH_VARARGS,
     "add_signs(out, base, bits, scale, key0, key1, counter0, ..., counter3, past, itemsize)"},
    {"sum_signs", sum_signs, METH_VARARGS, "sum_signs(total, weights, bits, itemsize)"},
    {"draw_groups", draw_groups, METH_VARARGS,
     "draw_groups(labels, moves, x, key0, key1, counter0, ..., counter3, groups, share, rest, itemsize)"},
    {"normals", normals, METH_VARARGS,
     "normals(out, width, core, height, key0, key1, counter0, ..., counter3, rows, itemsize)"},
    {"add_groups", add_groups, METH_VARARGS, "add_groups(out, base, labels, moves, free, radius, start, itemsize)"},
    {"mend_groups", mend_groups, METH_VARARGS,
     "mend_groups(g, after, labels, u, w, y, theta, gain, itemsize) -> how far w was borne out"},
    {"entropy_step", entropy_step, METH_VARARGS,
     "entropy_step(y, x, g, lower, upper, inverse, eta, a, b, top, itemsize)"},
    {"sums", sums, METH_VARARGS, "sums(x, y, itemsize) -> |x - y|_1, |x - y|_2^2; of x alone if y is None"},
    {"step_norms", step_norms, METH_VARARGS, "step_norms(x, y, itemsize) -> |x|_1, |y|_1, |x - y|_1"},
    {"least_points", least_points, METH_VARARGS,
     "least_points(points, multipliers, rows, need, lower, upper, k, l1, l2, sweeps)"},
    {"cholesky", cholesky, METH_VARARGS, "cholesky(A, B, n) -> whether A is positive definite; B becomes A^-1 B"},
    {"inner", inner, METH_VARARGS, "inner(out, A, B, n): out = A B^T for rows of n entries"},
    {"convolve", convolve, METH_VARARGS, "convolve(out, rows, taps, length, after): along an axis of `length`"},
    {"row_sums", row_sums, METH_VARARGS, "row_sums(out, X, d, itemsize): |x|_1, |x|_2^2 of each row"},
    {NULL, NULL, 0, NULL},
};

static int prepare(PyObject *module)
{
    return PyModule_AddIntConstant(module, "REVISION", 8);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, prepare}, {0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_kernels", "The inner loops of the optimiser, compiled.", 0, methods, slots, 0, 0, 0,
};

PyMODINIT_FUNC PyInit__kernels(void)
{
    return PyModuleDef_Init(&definition);
}
