// The kernels of queries, compiled when an evaluator is created. DOUBLE is 0 or 1 for the
// precision, and COMPLEX is 0 or 1 for the type of numbers.
//
// The messages of rows are stored one after another: K numbers for a vector, K * K for a matrix. A
// step finds those of its rows through lists of their positions. Every sum has a fixed order, and
// there are no atomics.

#if DOUBLE
typedef double real;
__device__ __forceinline__ real larger(real a, real b) { return fmax(a, b); }
__device__ __forceinline__ real magnitude(real a) { return fabs(a); }
__device__ __forceinline__ int exponent_of(real a) { return ilogb(a); }
__device__ __forceinline__ real power_of_two(int n) { return ldexp(1.0, n); }
#define SMALLEST 2.2250738585072014e-308
#define LARGEST 1.7e308
#define HIGHEST 1022
#else
typedef float real;
__device__ __forceinline__ real larger(real a, real b) { return fmaxf(a, b); }
__device__ __forceinline__ real magnitude(real a) { return fabsf(a); }
__device__ __forceinline__ int exponent_of(real a) { return ilogbf(a); }
__device__ __forceinline__ real power_of_two(int n) { return ldexpf(1.f, n); }
#define SMALLEST 1.17549435e-38f
#define LARGEST 3.4e38f
#define HIGHEST 126
#endif

#if COMPLEX
#if DOUBLE
struct __align__(16) num {
#else
struct __align__(8) num {
#endif
    real x, y;
};
__device__ __forceinline__ num number(real re, real im) { return {re, im}; }
__device__ __forceinline__ num mul(num a, num b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }
__device__ __forceinline__ num conj(num a) { return {a.x, -a.y}; }
__device__ __forceinline__ num scale(num a, real s) { return {a.x * s, a.y * s}; }
__device__ __forceinline__ real largest(num a) { return larger(magnitude(a.x), magnitude(a.y)); }
__device__ __forceinline__ double norm2(num a) { return (double)a.x * a.x + (double)a.y * a.y; }
#else
struct num {
    real x;
};
__device__ __forceinline__ num number(real re, real) { return {re}; }
__device__ __forceinline__ num mul(num a, num b) { return {a.x * b.x}; }
__device__ __forceinline__ num conj(num a) { return a; }
__device__ __forceinline__ num scale(num a, real s) { return {a.x * s}; }
__device__ __forceinline__ real largest(num a) { return magnitude(a.x); }
__device__ __forceinline__ double norm2(num a) { return (double)a.x * a.x; }
#endif

// ---------------------------------------------------------------------------------------------------------------------
// Products: C[m][n] = sum over q of A[m][q] B[q][n], or of A[m][q] conj(B[q][n]), many at once.

struct Product {
    // The positions of A, B and C, and of the second vectors of a Kronecker product.
    long long a, b, c, second;
    // The distances from one row, column, product and inner product to the next.
    int am, aq, a1, a2, bq, bn, b1, b2, cm, c1, c2;
    int m, n, q, inner;
    // The lists of the positions of the rows of A, of second vectors, and of the matrices A and B
    // of each product; or -1.
    int a_rows, second_rows, a_each, b_each;
    // If width > 0, A[m][q] is a[m][q / width] second[m][q % width].
    int width;
    int a_is_weight, b_is_weight, conjugates;
};

// The number of terms of the sum that are in shared memory at a time, while the next ones are being
// copied.
#define CHUNK 8

__device__ __forceinline__ void copy(num* to, const num* from, bool is_in) {
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"((int)sizeof(num)),
                 "r"(is_in ? (int)sizeof(num) : 0));
}

// Each block computes TM x TN numbers, each thread RM x RN. Neighboring threads have neighboring
// numbers.
template <int TM, int TN, int RM, int RN>
__device__ __forceinline__ void product(const Product& t, const int* index, const num* weights, num* memory) {
    const int ACROSS = TN / RN, DOWN = TM / RM, THREADS = ACROSS * DOWN;
    __shared__ num a_tile[2][CHUNK][TM + 1];
    __shared__ num b_tile[2][CHUNK][TN + 1];
    int tiles = (t.m + TM - 1) / TM, z = blockIdx.x / tiles, outer = z / t.inner, inner = z % t.inner;
    int m0 = blockIdx.x % tiles * TM, n0 = blockIdx.y * TN;
    int tid = threadIdx.x, tx = tid % ACROSS, ty = tid / ACROSS;
    const num* a = (t.a_is_weight ? weights : memory) + t.a + (long long)inner * t.a2 +
                   (long long)(t.a_each >= 0 ? index[t.a_each + outer] : outer) * t.a1;
    const num* b = (t.b_is_weight ? weights : memory) + t.b + (long long)inner * t.b2 +
                   (long long)(t.b_each >= 0 ? index[t.b_each + outer] : outer) * t.b1;
    const num* second = memory + t.second;
    bool along_a = t.aq == 1, along_b = t.bq == 1;
    auto load = [&](int chunk) {
        int stage = chunk % 2, q0 = chunk * CHUNK;
#pragma unroll
        for (int e = tid; e < TM * CHUNK; e += THREADS) {
            int m = along_a ? e / CHUNK : e % TM, q = along_a ? e % CHUNK : e / TM;
            bool is_in = m0 + m < t.m && q0 + q < t.q;
            int row = is_in && t.a_rows >= 0 ? index[t.a_rows + m0 + m] : m0 + m;
            if (t.width) {
                num x = number(0, 0);
                if (is_in) {
                    int other = index[t.second_rows + m0 + m];
                    x = mul(a[(long long)row * t.am + (q0 + q) / t.width],
                            second[(long long)other * t.width + (q0 + q) % t.width]);
                }
                a_tile[stage][q][m] = x;
            } else {
                const num* from = a + (long long)row * t.am + (long long)(q0 + q) * t.aq;
                copy(&a_tile[stage][q][m], is_in ? from : weights, is_in);
            }
        }
#pragma unroll
        for (int e = tid; e < TN * CHUNK; e += THREADS) {
            int n = along_b ? e / CHUNK : e % TN, q = along_b ? e % CHUNK : e / TN;
            bool is_in = n0 + n < t.n && q0 + q < t.q;
            const num* from = b + (long long)(q0 + q) * t.bq + (long long)(n0 + n) * t.bn;
            copy(&b_tile[stage][q][n], is_in ? from : weights, is_in);
        }
        asm volatile("cp.async.commit_group;");
    };
    real re[RM][RN], im[RM][RN], sign = t.conjugates ? -1 : 1;
#pragma unroll
    for (int i = 0; i < RM; i++)
#pragma unroll
        for (int j = 0; j < RN; j++) re[i][j] = im[i][j] = 0;
    int chunks = (t.q + CHUNK - 1) / CHUNK;
    load(0);
    for (int chunk = 0; chunk < chunks; chunk++) {
        asm volatile("cp.async.wait_group 0;");
        __syncthreads();
        if (chunk + 1 < chunks) load(chunk + 1);
        int stage = chunk % 2;
#pragma unroll
        for (int q = 0; q < CHUNK; q++) {
            num x[RM], y[RN];
#pragma unroll
            for (int i = 0; i < RM; i++) x[i] = a_tile[stage][q][ty + i * DOWN];
#pragma unroll
            for (int j = 0; j < RN; j++) {
                y[j] = b_tile[stage][q][tx + j * ACROSS];
#if COMPLEX
                y[j].y *= sign;
#endif
            }
#pragma unroll
            for (int i = 0; i < RM; i++)
#pragma unroll
                for (int j = 0; j < RN; j++) {
                    re[i][j] += x[i].x * y[j].x;
#if COMPLEX
                    re[i][j] -= x[i].y * y[j].y;
                    im[i][j] += x[i].x * y[j].y;
                    im[i][j] += x[i].y * y[j].x;
#endif
                }
        }
    }
    num* c = memory + t.c + (long long)outer * t.c1 + (long long)inner * t.c2;
#pragma unroll
    for (int i = 0; i < RM; i++)
#pragma unroll
        for (int j = 0; j < RN; j++) {
            int m = m0 + ty + i * DOWN, n = n0 + tx + j * ACROSS;
            if (m < t.m && n < t.n) c[(long long)m * t.cm + n] = number(re[i][j], im[i][j]);
        }
}

#define PRODUCT(TM, TN, RM, RN)                                                                                  \
    extern "C" __global__ void __launch_bounds__((TM / RM) * (TN / RN), 2)                                        \
        product_##TM##_##TN(Product t, const int* index, const num* weights, num* memory) {                     \
        product<TM, TN, RM, RN>(t, index, weights, memory);                                                      \
    }
PRODUCT(64, 64, 4, 4)
PRODUCT(64, 32, 4, 4)
PRODUCT(64, 16, 4, 2)
PRODUCT(32, 32, 4, 4)
PRODUCT(16, 16, 2, 2)

// ---------------------------------------------------------------------------------------------------------------------
// Between steps.

// The columns of a weight that codes select.
struct Codes {
    long long w, out;
    int at, columns, width, count;
};
extern "C" __global__ void codes(Codes t, const int* index, const num* weights, num* memory) {
    long long e = blockIdx.x * 256ll + threadIdx.x;
    if (e >= (long long)t.count * t.width) return;
    int row = e / t.width, k = e % t.width;
    memory[t.out + e] = weights[t.w + (long long)k * t.columns + index[t.at + row]];
}

// Hadamard products of messages of these kinds: 0 is an identity, 1 a vector, 2 a matrix.
struct Elementwise {
    long long a, b, out;
    int a_slots, b_slots, a_kind, b_kind, width, count;
};
__device__ __forceinline__ num entry(const num* from, int kind, int slot, int width, int i, int j) {
    if (kind == 0) return number(i == j, 0);
    if (kind == 1) return mul(from[(long long)slot * width + i], conj(from[(long long)slot * width + j]));
    return from[((long long)slot * width + i) * width + j];
}
extern "C" __global__ void hadamard(Elementwise t, const int* index, num* memory) {
    long long e = blockIdx.x * 256ll + threadIdx.x;
    bool is_pure = t.a_kind == 1 && t.b_kind == 1;
    int len = is_pure ? t.width : t.width * t.width;
    if (e >= (long long)t.count * len) return;
    int row = e / len, k = e % len, a = index[t.a_slots + row], b = index[t.b_slots + row];
    if (is_pure) {
        memory[t.out + e] = mul(memory[t.a + (long long)a * len + k], memory[t.b + (long long)b * len + k]);
        return;
    }
    int i = k / t.width, j = k % t.width;
    memory[t.out + e] =
        mul(entry(memory + t.a, t.a_kind, a, t.width, i, j), entry(memory + t.b, t.b_kind, b, t.width, i, j));
}

// A weight W[k][i][j] with its modes in another order: to[i][k][j], or to[j][k][i] for the other
// side.
struct Permute {
    long long from, to;
    int k, k1, k2, side;
};
extern "C" __global__ void permute(Permute t, num* weights) {
    long long e = blockIdx.x * 256ll + threadIdx.x;
    if (e >= (long long)t.k * t.k1 * t.k2) return;
    long long j = e % t.k2, i = e / t.k2 % t.k1, k = e / t.k2 / t.k1;
    weights[t.to + (t.side == 0 ? (i * t.k + k) * t.k2 + j : (j * t.k + k) * t.k1 + i)] = weights[t.from + e];
}

// Draws the value of a leaf for each row, and stores it from `at` on. The probability of x is the
// sum over E[k][l] f_k(x) conj(f_l(x)), where the row's environment E is an identity (0), a vector
// (1), already multiplied by the columns of the table, or a matrix (2), already multiplied by their
// conjugates. One warp per row.
struct Draw {
    long long from, table, p;
    int at, draws, count, width, values, kind;
};
extern "C" __global__ void draw(Draw t, int* index, const double* draws, const num* weights, num* memory) {
    int row = blockIdx.x * 4 + threadIdx.y, lane = threadIdx.x;
    if (row >= t.count) return;
    num* p = memory + t.p + (long long)row * t.values;
    for (int x = lane; x < t.values; x += 32) {
        double sum = 0;
        if (t.kind == 1) {
            sum = norm2(memory[t.from + (long long)row * t.values + x]);
        } else {
            for (int k = 0; k < t.width; k++) {
                num f = weights[t.table + (long long)k * t.values + x];
                sum += t.kind == 0 ? norm2(f)
                                   : (double)mul(f, memory[t.from + ((long long)row * t.width + k) * t.values + x]).x;
            }
        }
        p[x] = number(sum > 0 ? sum : 0, 0);
    }
    __syncwarp();
    if (lane > 0) return;
    double total = 0;
    for (int x = 0; x < t.values; x++) total += p[x].x;
    double rest = draws[t.draws + row] * total;
    int found = 0;
    for (int x = 0; x < t.values; x++) {
        if (p[x].x > 0) {
            found = x;
            if (rest < p[x].x) break;
        }
        rest -= p[x].x;
    }
    index[t.at + row] = found;
}

// The messages of rows.
struct Messages {
    long long at;
    int rows, count, width, is_pure;
};
// Settling multiplies messages by powers of two so that their largest part is between 1 and 2, and
// makes matrices exactly Hermitian. One warp per message.
extern "C" __global__ void settle(Messages t, const int* index, num* memory, int* log2) {
    int row = blockIdx.x * 4 + threadIdx.y, lane = threadIdx.x;
    if (row >= t.count) return;
    int len = t.is_pure ? t.width : t.width * t.width;
    num* own = memory + t.at + (long long)row * len;
    real most = 0;
    for (int e = lane; e < len; e += 32)
        if (t.is_pure || e / t.width <= e % t.width) most = larger(most, largest(own[e]));
    for (int half = 16; half > 0; half /= 2) most = larger(most, __shfl_xor_sync(0xffffffffu, most, half));
    int exponent = most >= SMALLEST && most <= LARGEST ? min(HIGHEST, exponent_of(most)) : 0;
    real factor = power_of_two(-exponent);
    for (int e = lane; e < len; e += 32) {
        if (t.is_pure) {
            own[e] = scale(own[e], factor);
            continue;
        }
        int i = e / t.width, j = e % t.width;
        if (i > j) continue;
        num x = scale(own[e], factor);
        own[e] = i == j ? number(x.x, 0) : x;
        if (i < j) own[j * t.width + i] = conj(x);
    }
    if (lane == 0) log2[index[t.rows + row]] += (t.is_pure ? 2 : 1) * exponent;
}

// log p of rows, given their messages at the output.
extern "C" __global__ void close(Messages t, const int* index, const num* memory, const int* log2, double* logs) {
    int row = blockIdx.x * 256 + threadIdx.x;
    if (row >= t.count) return;
    const num* own = memory + t.at + (long long)row * (t.is_pure ? t.width : t.width * t.width);
    double p = 0;
    for (int k = 0; k < t.width; k++) p += t.is_pure ? norm2(own[k]) : (double)own[k * t.width + k].x;
    int place = index[t.rows + row];
    logs[place] = log(fmax(p, 0.0)) + log2[place] * 0.6931471805599453;
}
