/* The inner loops of the optimiser, compiled: the same numbers as numpy's, bit for bit, in fewer passes over memory.

   Nothing here is needed: kernels.py says what becomes of a machine without a compiler. Only operations that IEEE 754
   rounds in one way occur (no exp, no log, no fused multiply-add), each sum has one order, and -ffp-contract=off keeps
   the compiler from changing either. Arrays come as contiguous buffers of float32 or float64, by their item size. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <math.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__has_attribute)
#if __has_attribute(target_clones)
#define WIDE __attribute__((target_clones("avx2", "default")))
#endif
#endif
#ifndef WIDE
#define WIDE
#endif

/* As many numbers as a register of AVX2 holds; aligned like one of them. A byte of signs is one or two of these. */
typedef float vector_float __attribute__((vector_size(32), aligned(4), may_alias));
typedef double vector_double __attribute__((vector_size(32), aligned(8), may_alias));
#define LANES(T) ((Py_ssize_t)(sizeof(vector_##T) / sizeof(T)))

/* The signs of columns j .. j + LANES - 1 in a row of bits, times the scale that is in the table. */
#define SIGNS(T, bits, j) (*(const vector_##T *)(table + 8 * (bits)[(j) / 8] + (j) % 8))
#define SIGN(bits, j) table[8 * (bits)[(j) / 8] + (j) % 8]

#define BOTH(KERNEL) KERNEL(float) KERNEL(double)

/* out_ij = base_j + the sign of row i and column j, scaled. */
#define ADD_SIGNS(T)                                                                                                   \
    WIDE static void add_signs_##T(T *restrict out, const T *restrict base, const uint8_t *restrict bits,              \
                                   Py_ssize_t stride, const T *restrict table, Py_ssize_t rows, Py_ssize_t d)          \
    {                                                                                                                  \
        const Py_ssize_t whole = d - d % 8;                                                                            \
        for (Py_ssize_t i = 0; i < rows; i++, out += d, bits += stride) {                                              \
            for (Py_ssize_t j = 0; j < whole; j += 8)                                                                  \
                for (Py_ssize_t k = j; k < j + 8; k += LANES(T))                                                       \
                    *(vector_##T *)(out + k) = SIGNS(T, bits, k) + *(const vector_##T *)(base + k);                    \
            for (Py_ssize_t j = whole; j < d; j++)                                                                     \
                out[j] = SIGN(bits, j) + base[j];                                                                      \
        }                                                                                                              \
    }
BOTH(ADD_SIGNS)

/* total_j += sum_i weights_i sign_ij, row after row; the sums of a few columns stay in registers. */
#define SUM_SIGNS(T)                                                                                                   \
    WIDE static void sum_signs_##T(T *restrict total, const T *restrict weights, const uint8_t *restrict bits,         \
                                   Py_ssize_t stride, const T *restrict table, Py_ssize_t rows, Py_ssize_t d)          \
    {                                                                                                                  \
        const Py_ssize_t lanes = LANES(T);                                                                             \
        Py_ssize_t j = 0;                                                                                              \
        for (; j + 4 * lanes <= d; j += 4 * lanes) {                                                                   \
            vector_##T *to = (vector_##T *)(total + j), a = to[0], b = to[1], c = to[2], e = to[3];                    \
            const uint8_t *row = bits;                                                                                 \
            for (Py_ssize_t i = 0; i < rows; i++, row += stride) {                                                     \
                const T w = weights[i];                                                                                \
                a += w * SIGNS(T, row, j);                                                                             \
                b += w * SIGNS(T, row, j + lanes);                                                                     \
                c += w * SIGNS(T, row, j + 2 * lanes);                                                                 \
                e += w * SIGNS(T, row, j + 3 * lanes);                                                                 \
            }                                                                                                          \
            to[0] = a, to[1] = b, to[2] = c, to[3] = e;                                                                \
        }                                                                                                              \
        for (; j + lanes <= d; j += lanes) {                                                                           \
            vector_##T *to = (vector_##T *)(total + j), a = to[0];                                                     \
            for (Py_ssize_t i = 0; i < rows; i++)                                                                      \
                a += weights[i] * SIGNS(T, bits + i * stride, j);                                                      \
            to[0] = a;                                                                                                 \
        }                                                                                                              \
        for (; j < d; j++)                                                                                             \
            for (Py_ssize_t i = 0; i < rows; i++)                                                                      \
                total[j] += weights[i] * SIGN(bits + i * stride, j);                                                   \
    }
BOTH(SUM_SIGNS)

/* The parts of log1p(|x| inverse) before the logarithm: w is its argument, t what rounding took from it. */
#define SPREAD(T, ABS)                                                                                                 \
    WIDE static void spread_##T(T *restrict w, T *restrict t, const T *restrict x, Py_ssize_t n, double inverse)       \
    {                                                                                                                  \
        const T k = (T)inverse;                                                                                        \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                           \
            const T z = ABS(x[i]) * k;                                                                                 \
            w[i] = z + 1;                                                                                              \
            t[i] = (z - (w[i] - 1)) / w[i];                                                                            \
        }                                                                                                              \
    }
SPREAD(float, fabsf)
SPREAD(double, fabs)

/* z = copysign(t + log, x) - g / eta, in place of t. */
#define PULL(T, COPYSIGN)                                                                                              \
    WIDE static void pull_##T(T *restrict t, const T *restrict log, const T *restrict x, const T *restrict g,          \
                              Py_ssize_t n, double eta)                                                                \
    {                                                                                                                  \
        const T k = (T)eta;                                                                                            \
        for (Py_ssize_t i = 0; i < n; i++)                                                                             \
            t[i] = COPYSIGN(t[i] + log[i], x[i]) - g[i] / k;                                                           \
    }
PULL(float, copysignf)
PULL(double, copysign)

/* s = min(|z| - a, cap), on = s > 0; how many are on. */
#define THRESHOLD(T, ABS)                                                                                              \
    WIDE static Py_ssize_t threshold_##T(T *restrict s, uint8_t *restrict on, const T *restrict z, Py_ssize_t n,       \
                                         double a, double cap)                                                         \
    {                                                                                                                  \
        const T below = (T)a, above = (T)cap;                                                                          \
        Py_ssize_t count = 0;                                                                                          \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                           \
            const T over = ABS(z[i]) - below;                                                                          \
            s[i] = over > above ? above : over;                                                                        \
            on[i] = s[i] > 0;                                                                                          \
        }                                                                                                              \
        for (Py_ssize_t i = 0; i < n; i++)                                                                             \
            count += on[i];                                                                                            \
        return count;                                                                                                  \
    }
THRESHOLD(float, fabsf)
THRESHOLD(double, fabs)

/* u = s / beta + 1. */
#define ABOVE(T)                                                                                                       \
    WIDE static void above_##T(T *restrict u, const T *restrict s, Py_ssize_t n, double beta)                          \
    {                                                                                                                  \
        const T k = (T)beta;                                                                                           \
        for (Py_ssize_t i = 0; i < n; i++)                                                                             \
            u[i] = s[i] / k + 1;                                                                                       \
    }
BOTH(ABOVE)

/* u = min(u, s / (beta + 1)). */
#define LEAST(T)                                                                                                       \
    WIDE static void least_##T(T *restrict u, const T *restrict s, Py_ssize_t n, double beta)                          \
    {                                                                                                                  \
        const T k = (T)beta + 1;                                                                                       \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                           \
            const T other = s[i] / k;                                                                                  \
            u[i] = u[i] > other ? other : u[i];                                                                        \
        }                                                                                                              \
    }
BOTH(LEAST)

/* One step of Halley's iteration, u -= r; see entropy.py. e is expm1(u), or exp(u) if it is not exact. */
#define HALLEY(T)                                                                                                      \
    WIDE static void halley_##T(T *restrict u, T *restrict e, T *restrict r, const T *restrict s, Py_ssize_t n,        \
                                double beta, int exact)                                                                \
    {                                                                                                                  \
        const T k = (T)beta, half = (T)0.5, off = exact ? 0 : 1;                                                       \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                           \
            const T q = (e[i] -= off) * k, rest = u[i] + q - s[i], slope = q + k, r1 = slope + 1;                      \
            r[i] = rest * r1 / (r1 * r1 - slope * rest * half);                                                        \
            u[i] -= r[i];                                                                                              \
        }                                                                                                              \
    }
BOTH(HALLEY)

/* v in place of s, from the last step of Halley's iteration; see entropy.py. */
#define BACK(T)                                                                                                        \
    WIDE static void back_##T(T *restrict s, const T *restrict u, const T *restrict e, const T *restrict r,            \
                              Py_ssize_t n, double b, double d, double beta)                                           \
    {                                                                                                                  \
        const T over_b = (T)b, over_d = (T)d, k = (T)beta, half = (T)0.5;                                              \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                           \
            const T mended = e[i] + (e[i] + 1) * r[i] * (r[i] * half - 1);                                             \
            s[i] = mended * k <= u[i] ? mended / over_d : (s[i] - u[i]) / over_b;                                      \
        }                                                                                                              \
    }
BOTH(BACK)

/* y_i = the next of v with the sign of z_i where on, else 0. */
#define PLACE(T, COPYSIGN)                                                                                             \
    static void place_##T(T *restrict y, const T *restrict v, const T *restrict z, const uint8_t *restrict on,         \
                          Py_ssize_t n)                                                                                \
    {                                                                                                                  \
        for (Py_ssize_t i = 0; i < n; i++)                                                                             \
            y[i] = on[i] ? COPYSIGN(*v++, z[i]) : 0;                                                                   \
    }
PLACE(float, copysignf)
PLACE(double, copysign)

/* Words of the counter-based generator Philox4x64-10 (Salmon et al., 2011), as numpy's makes them: of the counters that
   follow the given one, four each. */
static void philox(uint64_t *restrict words, Py_ssize_t count, const uint64_t key[2], const uint64_t after[4])
{
    uint64_t counter[4] = {after[0], after[1], after[2], after[3]};
    for (Py_ssize_t at = 0; at < count; at += 4) {
        for (int i = 0; i < 4 && ++counter[i] == 0; i++)
            ;
        uint64_t a = counter[0], b = counter[1], c = counter[2], d = counter[3], k0 = key[0], k1 = key[1];
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
        const uint64_t made[4] = {a, b, c, d};
        for (Py_ssize_t i = 0; i < 4 && at + i < count; i++)
            words[at + i] = made[i];
    }
}

/* From here on it is Python's affair. */

/* The buffers of one call, and the number of entries in the first. */
typedef struct {
    Py_buffer of[5];
    Py_ssize_t n;
} Given;

#define AT(i) (given.of[i].buf)
#define LEN(i) (given.of[i].len)
#define OF(i) (&given.of[i])

/* KERNEL_float or KERNEL_double, by the size of an item. */
#define CALL(KERNEL, ...) (size == 4 ? KERNEL##_float(__VA_ARGS__) : KERNEL##_double(__VA_ARGS__))

/* Release `count` buffers; ValueError unless they belong together. */
static PyObject *done(Given *given, int count, int fits)
{
    for (int i = 0; i < count; i++)
        PyBuffer_Release(&given->of[i]);
    if (fits)
        Py_RETURN_NONE;
    PyErr_SetString(PyExc_ValueError, "expected contiguous buffers of float32 or float64 whose sizes belong together");
    return NULL;
}

/* Whether the first `count` buffers have as many items as the first, of a size that is known. */
static int alike(Given *given, int count, int size)
{
    if (size != 4 && size != 8)
        return 0;
    given->n = given->of[0].len / size;
    for (int i = 1; i < count; i++)
        if (given->of[i].len != given->of[0].len)
            return 0;
    return 1;
}

/* Whether the bits are those of `rows` rows of d signs, and the table that of a byte's eight signs. */
static int signs_fit(Given *given, int size, Py_ssize_t rows, Py_ssize_t d)
{
    const Py_ssize_t bits = given->of[2].len;
    return rows > 0 && d > 0 && given->of[3].len == 256 * 8 * (Py_ssize_t)size && bits % rows == 0 &&
           bits / rows >= (d + 7) / 8;
}

static PyObject *add_signs(PyObject *self, PyObject *args)
{
    Given given;
    int size;
    if (!PyArg_ParseTuple(args, "w*y*y*y*i", OF(0), OF(1), OF(2), OF(3), &size))
        return NULL;
    const Py_ssize_t d = alike(&given, 1, size) ? LEN(1) / size : 0, rows = d ? LEN(0) / LEN(1) : 0;
    const int fits = signs_fit(&given, size, rows, d) && LEN(0) == rows * LEN(1);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        CALL(add_signs, AT(0), AT(1), AT(2), LEN(2) / rows, AT(3), rows, d);
        Py_END_ALLOW_THREADS;
    }
    return done(&given, 4, fits);
}

static PyObject *sum_signs(PyObject *self, PyObject *args)
{
    Given given;
    int size;
    if (!PyArg_ParseTuple(args, "w*y*y*y*i", OF(0), OF(1), OF(2), OF(3), &size))
        return NULL;
    const Py_ssize_t rows = alike(&given, 1, size) ? LEN(1) / size : 0;
    const int fits = signs_fit(&given, size, rows, given.n);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        CALL(sum_signs, AT(0), AT(1), AT(2), LEN(2) / rows, AT(3), rows, given.n);
        Py_END_ALLOW_THREADS;
    }
    return done(&given, 4, fits);
}

static PyObject *spread(PyObject *self, PyObject *args)
{
    Given given;
    double inverse;
    int size;
    if (!PyArg_ParseTuple(args, "w*w*y*di", OF(0), OF(1), OF(2), &inverse, &size))
        return NULL;
    const int fits = alike(&given, 3, size);
    if (fits)
        CALL(spread, AT(0), AT(1), AT(2), given.n, inverse);
    return done(&given, 3, fits);
}

static PyObject *pull(PyObject *self, PyObject *args)
{
    Given given;
    double eta;
    int size;
    if (!PyArg_ParseTuple(args, "w*y*y*y*di", OF(0), OF(1), OF(2), OF(3), &eta, &size))
        return NULL;
    const int fits = alike(&given, 4, size);
    if (fits)
        CALL(pull, AT(0), AT(1), AT(2), AT(3), given.n, eta);
    return done(&given, 4, fits);
}

static PyObject *threshold(PyObject *self, PyObject *args)
{
    Given given;
    double a, cap;
    int size;
    if (!PyArg_ParseTuple(args, "w*y*w*ddi", OF(0), OF(1), OF(2), &a, &cap, &size))
        return NULL;
    const int fits = alike(&given, 2, size) && LEN(2) == given.n;
    const Py_ssize_t count = fits ? CALL(threshold, AT(0), AT(2), AT(1), given.n, a, cap) : 0;
    PyObject *none = done(&given, 3, fits);
    if (none == NULL)
        return NULL;
    Py_DECREF(none);
    return PyLong_FromSsize_t(count);
}

/* The two that take u, s and beta. */
#define WITH_BETA(KERNEL)                                                                                              \
    static PyObject *KERNEL(PyObject *self, PyObject *args)                                                            \
    {                                                                                                                  \
        Given given;                                                                                                   \
        double beta;                                                                                                   \
        int size;                                                                                                      \
        if (!PyArg_ParseTuple(args, "w*y*di", OF(0), OF(1), &beta, &size))                                             \
            return NULL;                                                                                               \
        const int fits = alike(&given, 2, size);                                                                       \
        if (fits)                                                                                                      \
            CALL(KERNEL, AT(0), AT(1), given.n, beta);                                                                 \
        return done(&given, 2, fits);                                                                                  \
    }
WITH_BETA(above)
WITH_BETA(least)

static PyObject *halley(PyObject *self, PyObject *args)
{
    Given given;
    double beta;
    int exact, size;
    if (!PyArg_ParseTuple(args, "w*w*w*y*dii", OF(0), OF(1), OF(2), OF(3), &beta, &exact, &size))
        return NULL;
    const int fits = alike(&given, 4, size);
    if (fits)
        CALL(halley, AT(0), AT(1), AT(2), AT(3), given.n, beta, exact);
    return done(&given, 4, fits);
}

static PyObject *back(PyObject *self, PyObject *args)
{
    Given given;
    double b, d, beta;
    int size;
    if (!PyArg_ParseTuple(args, "w*y*y*y*dddi", OF(0), OF(1), OF(2), OF(3), &b, &d, &beta, &size))
        return NULL;
    const int fits = alike(&given, 4, size);
    if (fits)
        CALL(back, AT(0), AT(1), AT(2), AT(3), given.n, b, d, beta);
    return done(&given, 4, fits);
}

static PyObject *place(PyObject *self, PyObject *args)
{
    Given given;
    int size;
    if (!PyArg_ParseTuple(args, "w*y*y*y*i", OF(0), OF(1), OF(2), OF(3), &size))
        return NULL;
    int fits = alike(&given, 2, size) && LEN(2) == given.n;
    if (fits) {
        Py_ssize_t on = 0;
        for (Py_ssize_t i = 0; i < given.n; i++)
            on += ((const uint8_t *)AT(2))[i] != 0;
        fits = LEN(3) == on * size;
    }
    if (fits)
        CALL(place, AT(0), AT(3), AT(1), AT(2), given.n);
    return done(&given, 4, fits);
}

static PyObject *fill_words(PyObject *self, PyObject *args)
{
    Given given;
    unsigned long long key[2], after[4];
    if (!PyArg_ParseTuple(args, "w*KKKKKK", OF(0), key, key + 1, after, after + 1, after + 2, after + 3))
        return NULL;
    const int fits = alike(&given, 1, 8) && LEN(0) % 8 == 0;
    if (fits) {
        const uint64_t named[2] = {key[0], key[1]}, from[4] = {after[0], after[1], after[2], after[3]};
        Py_BEGIN_ALLOW_THREADS;
        philox(AT(0), given.n, named, from);
        Py_END_ALLOW_THREADS;
    }
    return done(&given, 1, fits);
}

static PyMethodDef methods[] = {
    {"words", fill_words, METH_VARARGS, "words(out, key0, key1, counter0, counter1, counter2, counter3)"},
    {"add_signs", add_signs, METH_VARARGS, "add_signs(out, base, bits, table, itemsize)"},
    {"sum_signs", sum_signs, METH_VARARGS, "sum_signs(total, weights, bits, table, itemsize)"},
    {"spread", spread, METH_VARARGS, "spread(w, t, x, inverse, itemsize)"},
    {"pull", pull, METH_VARARGS, "pull(t, log, x, g, eta, itemsize)"},
    {"threshold", threshold, METH_VARARGS, "threshold(s, z, on, a, cap, itemsize) -> how many are on"},
    {"above", above, METH_VARARGS, "above(u, s, beta, itemsize)"},
    {"least", least, METH_VARARGS, "least(u, s, beta, itemsize)"},
    {"halley", halley, METH_VARARGS, "halley(u, e, r, s, beta, exact, itemsize)"},
    {"back", back, METH_VARARGS, "back(s, u, e, r, b, d, beta, itemsize)"},
    {"place", place, METH_VARARGS, "place(y, z, on, v, itemsize)"},
    {NULL, NULL, 0, NULL},
};

static int revision(PyObject *module)
{
    return PyModule_AddIntConstant(module, "REVISION", 1);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, revision}, {0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_kernels", "The inner loops of the optimiser, compiled.", 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernels(void)
{
    return PyModuleDef_Init(&definition);
}
