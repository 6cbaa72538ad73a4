// The kernels of a training step, compiled when a fit starts. COMPLEX is 0 or 1 for the type of
// numbers. FEWER_BITS is 0, 1 or 2 for factors of 24, 11 or 8 bits in products over rows; those of 8
// bits are in bfloat16.cu.
//
// The numbers of rows are in the order [step][component][row]. There are `stride` rows, of which
// the first `count` belong to the batch. Every sum has a fixed order. The only atomics add
// integers.

#if COMPLEX
struct __align__(8) num {
    float x, y;
};
__device__ __forceinline__ num zero() { return {0.f, 0.f}; }
__device__ __forceinline__ num add(num a, num b) { return {a.x + b.x, a.y + b.y}; }
__device__ __forceinline__ num mul(num a, num b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }
__device__ __forceinline__ num conj(num a) { return {a.x, -a.y}; }
__device__ __forceinline__ num scale(num a, float s) { return {a.x * s, a.y * s}; }
__device__ __forceinline__ float norm2(num a) { return a.x * a.x + a.y * a.y; }
__device__ __forceinline__ float largest(num a) { return fmaxf(fabsf(a.x), fabsf(a.y)); }
__device__ __forceinline__ num number(float re, float im) { return {re, im}; }
__device__ __forceinline__ float imaginary(num a) { return a.y; }
#else
struct num {
    float x;
};
__device__ __forceinline__ num zero() { return {0.f}; }
__device__ __forceinline__ num add(num a, num b) { return {a.x + b.x}; }
__device__ __forceinline__ num mul(num a, num b) { return {a.x * b.x}; }
__device__ __forceinline__ num conj(num a) { return a; }
__device__ __forceinline__ num scale(num a, float s) { return {a.x * s}; }
__device__ __forceinline__ float norm2(num a) { return a.x * a.x; }
__device__ __forceinline__ float largest(num a) { return fabsf(a.x); }
__device__ __forceinline__ num number(float re, float) { return {re}; }
__device__ __forceinline__ float imaginary(num) { return 0.f; }
#endif
__device__ __forceinline__ num subtract(num a, num b) { return add(a, scale(b, -1.f)); }

// What changes between steps.
struct Step {
    float rate, epsilon, keep, row_weight, clip;
    int count, momentum;
};

// ---------------------------------------------------------------------------------------------------------------------
// Tiles of products: C[m][n] = sum over q of A[m][q] B[q][n], TM x 64 numbers to a block of 4 TM
// threads, 16 each, and 16 places of the sum at a time. With FEW_BITS the factors are rounded to 11
// bits, for the matrix units.

#define TN 64
#define CHUNK 16
// The number of chunks in flight.
#define STAGES 4

// The position of A[m][q]. The matrix units need contiguous rows of A, vectors of threads need
// contiguous columns.
template <int TM, bool FEW_BITS>
struct Layout {
    static const int A = FEW_BITS ? TM * (CHUNK + 4) : CHUNK * (TM + 4);
    __device__ __forceinline__ static int a(int m, int q) { return FEW_BITS ? m * (CHUNK + 4) + q : q * (TM + 4) + m; }
    // The fragments of a warp: 32 x 16 numbers, or 16 x 32 if there are only 16 rows.
    static const int FM = TM >= 32 ? 2 : 1, FN = TM >= 32 ? 2 : 4;
    // The columns of a thread, the first lanes of a warp with different columns, and the groups of
    // warps with the same columns.
    static const int SLOTS = FEW_BITS ? 2 * FN : 4, LANES = FEW_BITS ? 4 : 16;
    static const int GROUPS = FEW_BITS ? (TM >= 32 ? TM / 32 : 1) : TM / 8;
    __device__ __forceinline__ static int group() {
        int warp = threadIdx.x / 32;
        return FEW_BITS ? (TM >= 32 ? warp / 4 : 0) : warp;
    }
    __device__ __forceinline__ static int slot(int i) { return FEW_BITS ? i / 4 % FN * 2 + i % 2 : i % 4; }
    __device__ __forceinline__ static int row(int i) {
        int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        if (!FEW_BITS) return threadIdx.x / 16 * 4 + i / 4;
        return (TM >= 32 ? warp / 4 * 32 : 0) + i / (4 * FN) * 16 + lane / 4 + i % 4 / 2 * 8;
    }
    __device__ __forceinline__ static int column(int slot) {
        int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        if (!FEW_BITS) return slot / 2 * 32 + threadIdx.x % 16 * 2 + slot % 2;
        return (TM >= 32 ? warp % 4 * 16 : warp * 32) + slot / 2 * 8 + lane % 4 * 2 + slot % 2;
    }
};
// The position of B[q][n], by rows or, as the other factor, by columns.
template <bool BY_COLUMNS>
__device__ __forceinline__ int b_at(int q, int n) {
    return BY_COLUMNS ? n * (CHUNK + 4) + q : q * (TN + 4) + n;
}
#define B_SIZE (TN * (CHUNK + 4))

__device__ __forceinline__ float rounded(float x) {
    unsigned u;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(u) : "f"(x));
    return __uint_as_float(u);
}
template <bool FEW_BITS>
__device__ __forceinline__ num stored(num a) {
    return FEW_BITS ? number(rounded(a.x), rounded(imaginary(a))) : a;
}
__device__ __forceinline__ void mma(float* c, const float* a, const float* b) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
          "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}
__device__ __forceinline__ void two(const num* from, num* to) {
#if COMPLEX
    float4 x = *(const float4*)from;
    to[0] = {x.x, x.y}, to[1] = {x.z, x.w};
#else
    float2 x = *(const float2*)from;
    to[0] = {x.x}, to[1] = {x.y};
#endif
}

// Copies a number to shared memory asynchronously, or writes zero.
__device__ __forceinline__ void copy(num* to, const num* from, bool is_in) {
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"((int)sizeof(num)),
                 "r"(is_in ? (int)sizeof(num) : 0));
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;"); }
template <int N>
__device__ __forceinline__ void wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N));
}

// Adds the product of one chunk, with A conjugated if requested.
template <int TM, bool FEW_BITS, bool BY_COLUMNS, bool CONJUGATE>
__device__ __forceinline__ void multiply(const num* a, const num* b, float* re, float* im) {
    typedef Layout<TM, FEW_BITS> L;
    if (FEW_BITS) {
        int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, warp = threadIdx.x / 32;
        int m0 = TM >= 32 ? warp / 4 * 32 : 0, n0 = TM >= 32 ? warp % 4 * 16 : warp * 32;
#pragma unroll
        for (int q = 0; q < CHUNK; q += 8) {
            // The sign makes the product of the last two complex.
            float are[L::FM][4], aim[L::FM][4], bre[L::FN][2], bim[L::FN][2], minus[L::FN][2];
#pragma unroll
            for (int f = 0; f < L::FM; f++)
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    num x = a[L::a(m0 + f * 16 + g + c % 2 * 8, q + t + c / 2 * 4)];
                    are[f][c] = x.x, aim[f][c] = imaginary(x);
                }
#pragma unroll
            for (int f = 0; f < L::FN; f++)
#pragma unroll
                for (int c = 0; c < 2; c++) {
                    num x = b[b_at<BY_COLUMNS>(q + t + c * 4, n0 + f * 8 + g)];
                    bre[f][c] = x.x, bim[f][c] = imaginary(x);
                    minus[f][c] = CONJUGATE ? -x.x : -imaginary(x);
                }
#pragma unroll
            for (int f = 0; f < L::FM; f++) {
#pragma unroll
                for (int h = 0; h < L::FN; h++) {
                    mma(re + (f * L::FN + h) * 4, are[f], bre[h]);
#if COMPLEX
                    mma(im + (f * L::FN + h) * 4, are[f], bim[h]);
#endif
                }
#if COMPLEX
#pragma unroll
                for (int h = 0; h < L::FN; h++) {
                    mma(im + (f * L::FN + h) * 4, aim[f], CONJUGATE ? minus[h] : bre[h]);
                    mma(re + (f * L::FN + h) * 4, aim[f], CONJUGATE ? bim[h] : minus[h]);
                }
#endif
            }
        }
    } else {
        int m = threadIdx.x / 16 * 4, n = threadIdx.x % 16 * 2;
#pragma unroll
        for (int q = 0; q < CHUNK; q++) {
            num x[4], y[4];
            two(a + L::a(m, q), x), two(a + L::a(m + 2, q), x + 2);
            two(b + b_at<false>(q, n), y), two(b + b_at<false>(q, n + 32), y + 2);
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    float* r = re + i * 4 + j;
                    *r = fmaf(x[i].x, y[j].x, *r);
#if COMPLEX
                    float* s = im + i * 4 + j;
                    *r = fmaf(CONJUGATE ? x[i].y : -x[i].y, y[j].y, *r);
                    *s = fmaf(x[i].x, y[j].y, *s);
                    *s = fmaf(CONJUGATE ? -x[i].y : x[i].y, y[j].x, *s);
#endif
                }
        }
    }
}

// Settling sums the shares of vectors. On the way up, it then multiplies them by powers of two so
// that their largest part is between 1 and 2; on the way down, by the same powers.
struct Settle {
    long long from;
    int to, width, index, unused;
};
// The power of two that brings the largest part of a vector between 1 and 2.
__device__ __forceinline__ int exponent_of(float max) {
    return max >= 1.17549435e-38f && max <= 3.4e38f ? min(126, ilogbf(max)) : 0;
}

// Settles the vectors of a tile on the way up, if it holds all of their m components.
template <int TM, bool FEW_BITS>
__device__ __forceinline__ void settle_tile(const Settle& t, int m, int stride, const float* re, const float* im, num* to,
                                            float* factors, int* log2) {
    typedef Layout<TM, FEW_BITS> L;
    __shared__ float most[L::GROUPS][TN];
    int n0 = blockIdx.x * TN, lane = threadIdx.x % 32, group = L::group();
#pragma unroll
    for (int j = 0; j < L::SLOTS; j++) {
        float max = 0.f;
#pragma unroll
        for (int i = 0; i < 16; i++)
            if (L::slot(i) == j && L::row(i) < m) max = fmaxf(max, largest(number(re[i], im[i])));
#pragma unroll
        for (int by = L::LANES; by < 32; by *= 2) max = fmaxf(max, __shfl_xor_sync(0xffffffffu, max, by));
        if (lane < L::LANES) most[group][L::column(j)] = max;
    }
    __syncthreads();
    float by[L::SLOTS];
#pragma unroll
    for (int j = 0; j < L::SLOTS; j++) {
        int n = L::column(j), exponent;
        float max = 0.f;
#pragma unroll
        for (int g = 0; g < L::GROUPS; g++) max = fmaxf(max, most[g][n]);
        exponent = exponent_of(max);
        by[j] = ldexpf(1.f, -exponent);
        if (group == 0 && lane < L::LANES) {
            factors[(long long)t.index * stride + n0 + n] = by[j];
            atomicAdd(log2 + n0 + n, 2 * exponent);
        }
    }
#pragma unroll
    for (int i = 0; i < 16; i++)
        if (L::row(i) < m)
            to[(long long)(t.to + L::row(i)) * stride + n0 + L::column(L::slot(i))] =
                scale(number(re[i], im[i]), by[L::slot(i)]);
}

// out[m][n] = sum of W[m][p][q] x[p][n] y[q][n], or without x if its position is negative. For each
// p, the sum over q is multiplied by x. All of y stays in shared memory.
struct Contraction {
    long long w, x, y, out;
    int sm, sp, sq, m, p, q, stride, n;
};

// Each z is one task and one share of its sum. IS_REVERSE conjugates the weight, and y if there is
// an x; without an x, the vectors are in the buffer of x. IS_DIFFERENCE subtracts the sum from the
// buffer of x at the same position. Sums that are not split may be settled at once. With FEW_BITS, the weight is already rounded, except for the
// small matrices of differences.
template <int TM, bool FEW_BITS, bool IS_REVERSE, bool IS_DIFFERENCE>
__device__ __forceinline__ void contract(const Contraction* tasks, int splits, long long split_stride, const num* w,
                                         const num* x, const num* y, num* out, const Settle* settles, int is_settled,
                                         num* settled, float* factors, int* log2) {
    typedef Layout<TM, FEW_BITS> L;
    extern __shared__ __align__(16) unsigned char memory[];
    Contraction t = tasks[blockIdx.z / splits];
    int split = blockIdx.z % splits, m0 = blockIdx.y * TM, n0 = blockIdx.x * TN, tid = threadIdx.x;
    if (m0 >= t.m || n0 >= t.n) return;
    int chunks = (t.q + CHUNK - 1) / CHUNK;
    num* a_tile = (num*)memory;
    num* y_tile = a_tile + STAGES * L::A;
    bool has_x = t.x >= 0;
    const num* from = (IS_REVERSE && !has_x ? x : y) + t.y + n0;
    for (int e = tid; e < chunks * CHUNK * TN; e += 4 * TM) {
        int q = e / TN, n = e % TN;
        num v = q < t.q && n0 + n < t.n ? from[(long long)q * t.stride + n] : zero();
        y_tile[b_at<false>(q, n)] = stored<FEW_BITS>(IS_REVERSE && has_x ? conj(v) : v);
    }
    // Four numbers of a chunk of W to a thread: along q where that is how they lie.
    bool along = t.sm != 1 || t.sq == 1;
    int qa = along ? tid % CHUNK : tid / TM, dq = along ? 0 : 4, ma = along ? tid / CHUNK : tid % TM, dm = along ? TM / 4 : 0;
    const num* own = w + t.w + (long long)(m0 + ma) * t.sm + (long long)qa * t.sq;
    int step = dm * t.sm + dq * t.sq;
    int first = (long long)t.p * split / splits, last = (long long)t.p * (split + 1) / splits;
    int total = (last - first) * chunks, p = first, c = 0;
    auto load = [&](int k) {
        num* a = a_tile + k % STAGES * L::A;
        const num* at = own + (long long)p * t.sp + (long long)c * CHUNK * t.sq;
#pragma unroll
        for (int r = 0; r < 4; r++) {
            bool is_in = m0 + ma + r * dm < t.m && c * CHUNK + qa + r * dq < t.q;
            copy(a + L::a(ma + r * dm, qa + r * dq), is_in ? at + r * step : own, is_in);
        }
        if (++c == chunks) c = 0, p++;
    };
    float re[16], im[16], sum_re[16], sum_im[16];
#pragma unroll
    for (int i = 0; i < 16; i++) re[i] = im[i] = sum_re[i] = sum_im[i] = 0.f;
    for (int k = 0; k < STAGES - 1; k++) {
        if (k < total) load(k);
        commit();
    }
    int at_p = first, at_c = 0;
    num factor[L::SLOTS];
    for (int k = 0; k < total; k++) {
        wait<STAGES - 2>();
        __syncthreads();
        if (k + STAGES - 1 < total) load(k + STAGES - 1);
        commit();
        const num* a = a_tile + k % STAGES * L::A;
        if (has_x && at_c == 0) {
#pragma unroll
            for (int j = 0; j < L::SLOTS; j++) {
                int n = n0 + L::column(j);
                factor[j] = n < t.n ? x[t.x + (long long)at_p * t.stride + n] : zero();
            }
        }
        multiply<TM, FEW_BITS, false, IS_REVERSE>(a, y_tile + at_c * CHUNK * (TN + 4), re, im);
        if (++at_c == chunks) {
            at_c = 0, at_p++;
            if (has_x) {
#pragma unroll
                for (int i = 0; i < 16; i++) {
                    num f = factor[L::slot(i)], v = mul(number(re[i], im[i]), f);
                    sum_re[i] += v.x, sum_im[i] += imaginary(v);
                    re[i] = im[i] = 0.f;
                }
            }
        }
    }
    if (has_x) {
#pragma unroll
        for (int i = 0; i < 16; i++) re[i] = sum_re[i], im[i] = sum_im[i];
    }
    if (is_settled && !IS_REVERSE) {
        settle_tile<TM, FEW_BITS>(settles[blockIdx.z], t.m, t.stride, re, im, settled, factors, log2);
        return;
    }
    num* to = out + t.out + split * split_stride;
#pragma unroll
    for (int i = 0; i < 16; i++) {
        int m = m0 + L::row(i), n = n0 + L::column(L::slot(i));
        if (is_settled) {
            Settle s = settles[blockIdx.z];
            if (m < t.m)
                settled[(long long)(s.to + m) * t.stride + n] =
                    scale(number(re[i], im[i]), factors[(long long)s.index * t.stride + n]);
        } else if (m < t.m && n < t.n) {
            long long at = (long long)m * t.stride + n;
            num sum = number(re[i], im[i]);
            to[at] = IS_DIFFERENCE ? subtract(x[t.out + at], sum) : sum;
        }
    }
}

// What W (a x b) sends down, from the gradient e by it: for each i, D[j][n] = sum over k of
// conj(W[k][i][j]) e[k][n], and to_a[i][n] = sum over j of D[j][n] conj(b[j][n]), to_b[j][n] = sum
// over i of D[j][n] conj(a[i][n]). All j are in one tile.
struct Descent {
    long long w, e, a, b, to_b;
    int k, k1, k2, stride;
};

// Where gradients by both inputs go. Those by second inputs may be split into shares, to be settled later.
struct Descended {
    const Settle *a, *b;
    int is_b_settled;
    const float* factors;
    num *settled, *shares;
    long long split_stride;
};
__device__ __forceinline__ void write_b(const Descended& to, const Descent& t, int task, int split, int m, int n, num x) {
    Settle s = to.b[task];
    if (to.is_b_settled)
        to.settled[(long long)(s.to + m) * t.stride + n] = scale(x, to.factors[(long long)s.index * t.stride + n]);
    else
        to.shares[t.to_b + split * to.split_stride + (long long)m * t.stride + n] = x;
}

template <int TM, bool FEW_BITS>
__device__ __forceinline__ void descend(const Descent* tasks, int splits, const num* w, const num* e, const num* v,
                                        const Descended& to) {
    typedef Layout<TM, FEW_BITS> L;
    const int GROUPS = L::GROUPS;
    extern __shared__ __align__(16) unsigned char memory[];
    Descent t = tasks[blockIdx.z / splits];
    int split = blockIdx.z % splits, n0 = blockIdx.x * TN, tid = threadIdx.x, lane = tid % 32;
    int chunks = (t.k + CHUNK - 1) / CHUNK;
    num* a_tile = (num*)memory;
    num* b_tile = a_tile + (STAGES - 1) * L::A;
    num* parts = b_tile + TM * (TN + 4);
    num* e_tile = parts + 2 * GROUPS * TN;
    for (int i = tid; i < chunks * CHUNK * TN; i += 4 * TM) {
        int k = i / TN, n = i % TN;
        num x = k < t.k ? e[t.e + (long long)k * t.stride + n0 + n] : zero();
        e_tile[b_at<false>(k, n)] = stored<FEW_BITS>(x);
    }
    for (int i = tid; i < TM * TN; i += 4 * TM) {
        int j = i / TN, n = i % TN;
        b_tile[b_at<false>(j, n)] = j < t.k2 ? conj(v[t.b + (long long)j * t.stride + n0 + n]) : zero();
    }
    int ma = tid % TM, qa = tid / TM, columns = t.k1 * t.k2;
    const num* own = w + t.w + (long long)qa * columns + ma;
    int first = (long long)t.k1 * split / splits, last = (long long)t.k1 * (split + 1) / splits;
    int total = (last - first) * chunks, p = first, c = 0;
    auto load = [&](int n) {
        num* a = a_tile + n % (STAGES - 1) * L::A;
#pragma unroll
        for (int r = 0; r < 4; r++) {
            bool is_in = ma < t.k2 && c * CHUNK + qa + 4 * r < t.k;
            const num* from = own + (long long)(c * CHUNK + 4 * r) * columns + p * t.k2;
            copy(a + L::a(ma, qa + 4 * r), is_in ? from : w, is_in);
        }
        if (++c == chunks) c = 0, p++;
    };
    // Sums the parts of to_a[i].
    Settle a = to.a[blockIdx.z / splits];
    float factor_a = tid < TN ? to.factors[(long long)a.index * t.stride + n0 + tid] : 0.f;
    auto finish = [&](int i) {
        if (tid >= TN) return;
        const num* from = parts + (i & 1) * GROUPS * TN + tid;
        num sum = from[0];
        for (int g = 1; g < GROUPS; g++) sum = add(sum, from[g * TN]);
        to.settled[(long long)(a.to + i) * t.stride + n0 + tid] = scale(sum, factor_a);
    };
    float re[16], im[16], sum_re[16], sum_im[16];
#pragma unroll
    for (int i = 0; i < 16; i++) re[i] = im[i] = sum_re[i] = sum_im[i] = 0.f;
    for (int n = 0; n < STAGES - 2; n++) {
        if (n < total) load(n);
        commit();
    }
    int at_p = first, at_c = 0;
    num factor[L::SLOTS];
    for (int n = 0; n < total; n++) {
        wait<STAGES - 3>();
        __syncthreads();
        if (n + STAGES - 2 < total) load(n + STAGES - 2);
        commit();
        if (at_c == 0) {
            if (at_p > first) finish(at_p - 1);
#pragma unroll
            for (int j = 0; j < L::SLOTS; j++)
                factor[j] = v[t.a + (long long)at_p * t.stride + n0 + L::column(j)];
        }
        multiply<TM, FEW_BITS, false, true>(a_tile + n % (STAGES - 1) * L::A, e_tile + at_c * CHUNK * (TN + 4), re, im);
        if (++at_c < chunks) continue;
        at_c = 0;
        num part[L::SLOTS];
#pragma unroll
        for (int j = 0; j < L::SLOTS; j++) part[j] = zero();
#pragma unroll
        for (int i = 0; i < 16; i++) {
            int slot = L::slot(i);
            num d = number(re[i], im[i]), x = mul(d, conj(factor[slot]));
            sum_re[i] += x.x, sum_im[i] += imaginary(x);
            part[slot] = add(part[slot], mul(d, b_tile[b_at<false>(L::row(i), L::column(slot))]));
            re[i] = im[i] = 0.f;
        }
        int group = L::group();
#pragma unroll
        for (int j = 0; j < L::SLOTS; j++) {
            num x = part[j];
#pragma unroll
            for (int by = L::LANES; by < 32; by *= 2)
                x = add(x, number(__shfl_xor_sync(0xffffffffu, x.x, by), __shfl_xor_sync(0xffffffffu, imaginary(x), by)));
            if (lane < L::LANES) parts[((at_p & 1) * GROUPS + group) * TN + L::column(j)] = x;
        }
        at_p++;
    }
    __syncthreads();
    if (last > first) finish(last - 1);
#pragma unroll
    for (int i = 0; i < 16; i++) {
        int m = L::row(i), n = n0 + L::column(L::slot(i));
        if (m < t.k2) write_b(to, t, blockIdx.z / splits, split, m, n, number(sum_re[i], sum_im[i]));
    }
}

// Products of two factors whose rows are in the order of the sum, given in chunks by `operands`.
template <int TM, bool FEW_BITS, class Operands>
__device__ __forceinline__ void outer(const Operands& operands, int total, float* re, float* im) {
    typedef Layout<TM, FEW_BITS> L;
    __shared__ __align__(16) num a_tile[2][L::A], b_tile[2][B_SIZE];
    const int B = TN / (TM / 4);
    int q = threadIdx.x % CHUNK, row = threadIdx.x / CHUNK;
    // Holds two factors of B until they are needed, if there is room for them.
    const bool IS_LATE = TM >= 32;
    num a[4], b[B], x[IS_LATE ? B : 1];
#pragma unroll
    for (int i = 0; i < 16; i++) re[i] = im[i] = 0.f;
    auto load = [&](int chunk) {
        typename Operands::Chunk c = operands.chunk(chunk, q);
#pragma unroll
        for (int r = 0; r < 4; r++) a[r] = operands.a(c, row + r * (TM / 4));
#pragma unroll
        for (int r = 0; r < B; r++) {
            num first, second;
            operands.b(c, row + r * (TM / 4), first, second);
            if (IS_LATE) x[r] = first, b[r] = second;
            if (!IS_LATE) b[r] = operands.product(first, second);
        }
    };
    if (total > 0) load(0);
    for (int k = 0; k < total; k++) {
#pragma unroll
        for (int r = 0; r < 4; r++) a_tile[k & 1][L::a(row + r * (TM / 4), q)] = stored<FEW_BITS>(a[r]);
#pragma unroll
        for (int r = 0; r < B; r++) {
            num v = IS_LATE ? operands.product(x[r], b[r]) : b[r];
            b_tile[k & 1][b_at<FEW_BITS>(q, row + r * (TM / 4))] = stored<FEW_BITS>(v);
        }
        __syncthreads();
        if (k + 1 < total) load(k + 1);
        multiply<TM, FEW_BITS, FEW_BITS, false>(a_tile[k & 1], b_tile[k & 1], re, im);
    }
}

// The gradient with respect to a weight: out[m][i, j] = sum over users and rows of e[m] conj(a[i]
// b[j]).
struct WeightTask {
    long long out;
    int first, last, k, k1, k2, unused;
};
struct User {
    int e, a, b, unused;
};

struct GradientOperands {
    struct Chunk {
        const num *e, *a, *b;
    };
    const User* users;
    const num *e, *v;
    const int *i, *j;
    int k, columns, m0, n0, stride;
    __device__ __forceinline__ Chunk chunk(int n, int q) const {
        int each = stride / CHUNK, row = n % each * CHUNK + q;
        User u = users[n / each];
        return {e + (long long)(u.e + m0) * stride + row, u.a < 0 ? 0 : v + (long long)u.a * stride + row,
                v + (long long)u.b * stride + row};
    }
    __device__ __forceinline__ num a(const Chunk& c, int m) const {
        return m0 + m < k ? c.e[(long long)m * stride] : zero();
    }
    __device__ __forceinline__ void b(const Chunk& c, int n, num& x, num& y) const {
        bool is_in = n0 + n < columns;
        x = is_in && c.a ? c.a[i[n]] : number(1.f, 0.f);
        y = is_in ? c.b[j[n]] : zero();
    }
    __device__ __forceinline__ static num product(num x, num y) { return conj(mul(x, y)); }
};

template <int TM, bool FEW_BITS>
__device__ __forceinline__ void gradient(const WeightTask* tasks, const User* users, const num* e, const num* v,
                                         int stride, num* out) {
    typedef Layout<TM, FEW_BITS> L;
    WeightTask t = tasks[blockIdx.z];
    int m0 = blockIdx.y * TM, n0 = blockIdx.x * TN, columns = t.k1 * t.k2;
    if (m0 >= t.k || n0 >= columns) return;
    __shared__ int i[TN], j[TN];
    for (int n = threadIdx.x; n < TN; n += 4 * TM) i[n] = (n0 + n) / t.k2 * stride, j[n] = (n0 + n) % t.k2 * stride;
    __syncthreads();
    GradientOperands operands = {users + t.first, e, v, i, j, t.k, columns, m0, n0, stride};
    float re[16], im[16];
    outer<TM, FEW_BITS>(operands, (t.last - t.first) * (stride / CHUNK), re, im);
#pragma unroll
    for (int c = 0; c < 16; c++) {
        int m = m0 + L::row(c), n = n0 + L::column(L::slot(c));
        if (m < t.k && n < columns) out[t.out + (long long)m * columns + n] = number(re[c], im[c]);
    }
}

// X Y^H of weights.
struct Gram {
    long long at, out;
    int k, columns;
    float rate;
    int unused;
};
struct GramOperands {
    struct Chunk {
        const num *x, *y;
        bool is_in;
    };
    const num *x, *y;
    int k, columns, left, m0, n0;
    __device__ __forceinline__ Chunk chunk(int n, int q) const {
        int at = n * CHUNK + q;
        return {x + (long long)m0 * columns + at, y + (long long)n0 * columns + at, at < left};
    }
    __device__ __forceinline__ num a(const Chunk& c, int m) const {
        return c.is_in && m0 + m < k ? c.x[(long long)m * columns] : zero();
    }
    __device__ __forceinline__ void b(const Chunk& c, int n, num&, num& y) const {
        y = c.is_in && n0 + n < k ? c.y[(long long)n * columns] : zero();
    }
    __device__ __forceinline__ static num product(num, num y) { return conj(y); }
};
// The sum over columns may be split into parts.
template <int TM, bool FEW_BITS>
__device__ __forceinline__ void wide_gram(const Gram* tasks, const num* x, const num* y, int parts, long long part_stride,
                                          num* out) {
    typedef Layout<TM, FEW_BITS> L;
    Gram t = tasks[blockIdx.z / parts];
    int m0 = blockIdx.y * TM, n0 = blockIdx.x * TN, part = blockIdx.z % parts;
    if (m0 >= t.k || n0 >= t.k) return;
    int chunks = (t.columns + CHUNK - 1) / CHUNK, first = chunks * part / parts, last = chunks * (part + 1) / parts;
    int at = first * CHUNK;
    GramOperands operands = {x + t.at + at, y + t.at + at, t.k, t.columns, t.columns - at, m0, n0};
    float re[16], im[16];
    outer<TM, FEW_BITS>(operands, last - first, re, im);
    out += part * part_stride;
#pragma unroll
    for (int c = 0; c < 16; c++) {
        int m = m0 + L::row(c), n = n0 + L::column(L::slot(c));
        if (m < t.k && n < t.k) out[t.out + (long long)m * t.k + n] = number(re[c], im[c]);
    }
}

// X Y^H for at most 16 or 32 rows: the columns of a tile are 64 / TM parts of the sum.
template <int TM>
__device__ __forceinline__ void narrow_gram(const Gram* tasks, const num* x, const num* y, num* out) {
    typedef Layout<TM, false> L;
    const int PARTS = TN / TM, LONG = CHUNK * PARTS;
    __shared__ __align__(16) num a_tile[2][LONG * (TM + 4)], b_tile[2][CHUNK * (TN + 4)];
    Gram t = tasks[blockIdx.z];
    int q = threadIdx.x % CHUNK, row = threadIdx.x / CHUNK, m = row * 4, n = q * 2;
    num a[PARTS * 4], b[PARTS * 4];
    float re[16], im[16];
#pragma unroll
    for (int i = 0; i < 16; i++) re[i] = im[i] = 0.f;
    auto load = [&](int chunk) {
#pragma unroll
        for (int r = 0; r < PARTS * 4; r++) {
            int at = chunk * LONG + r / 4 * CHUNK + q, k = row + r % 4 * (TM / 4);
            bool is_in = at < t.columns && k < t.k;
            a[r] = is_in ? x[t.at + (long long)k * t.columns + at] : zero();
            b[r] = is_in ? y[t.at + (long long)k * t.columns + at] : zero();
        }
    };
    int total = (t.columns + LONG - 1) / LONG;
    load(0);
    for (int c = 0; c < total; c++) {
#pragma unroll
        for (int r = 0; r < PARTS * 4; r++) {
            int k = row + r % 4 * (TM / 4);
            a_tile[c & 1][(r / 4 * CHUNK + q) * (TM + 4) + k] = a[r];
            b_tile[c & 1][b_at<false>(q, r / 4 * TM + k)] = conj(b[r]);
        }
        __syncthreads();
        if (c + 1 < total) load(c + 1);
        // The first two columns of a thread belong to one part, the others to another.
        int first = TM == 32 ? 0 : q / 8, second = TM == 32 ? 1 : 2 + q / 8;
#pragma unroll
        for (int s = 0; s < CHUNK; s++) {
            num u[4], v[4], w[4];
            const num* at = a_tile[c & 1] + (first * CHUNK + s) * (TM + 4) + m;
            two(at, u), two(at + 2, u + 2);
            at = a_tile[c & 1] + (second * CHUNK + s) * (TM + 4) + m;
            two(at, v), two(at + 2, v + 2);
            two(b_tile[c & 1] + b_at<false>(s, n), w), two(b_tile[c & 1] + b_at<false>(s, n + 32), w + 2);
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    num f = j < 2 ? u[i] : v[i];
                    float* r = re + i * 4 + j;
                    *r = fmaf(f.x, w[j].x, *r);
#if COMPLEX
                    float* z = im + i * 4 + j;
                    *r = fmaf(-f.y, w[j].y, *r);
                    *z = fmaf(f.x, w[j].y, *z);
                    *z = fmaf(f.y, w[j].x, *z);
#endif
                }
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
            num sum = add(number(re[i * 4 + j], im[i * 4 + j]), number(re[i * 4 + j + 2], im[i * 4 + j + 2]));
            if (TM == 16)
                sum = add(sum, number(__shfl_xor_sync(0xffffffffu, sum.x, 8), __shfl_xor_sync(0xffffffffu, imaginary(sum), 8)));
            int at = (n + j) % TM;
            if ((TM == 32 || q < 8) && m + i < t.k && at < t.k) out[t.out + (long long)(m + i) * t.k + at] = sum;
        }
}

template <int TM, bool FEW_BITS>
__device__ __forceinline__ void gram(const Gram* tasks, const num* x, const num* y, int parts, long long part_stride,
                                     num* out) {
    if constexpr (TM < 64)
        narrow_gram<TM>(tasks, x, y, out);
    else
        wide_gram<TM, FEW_BITS>(tasks, x, y, parts, part_stride, out);
}

#define CONTRACTION(name, TM, FEW_BITS, IS_REVERSE)                                                                    \
    extern "C" __global__ void __launch_bounds__(4 * TM, 128 / TM) name##_##TM(const Contraction* tasks, int splits,   \
        long long split_stride, const num* w, const num* x, const num* y, num* out, const Settle* settles,             \
        int is_settled, num* settled, float* factors, int* log2) {                                                     \
        contract<TM, FEW_BITS, IS_REVERSE, false>(tasks, splits, split_stride, w, x, y, out, settles, is_settled,      \
                                                  settled, factors, log2);                                             \
    }
#define CONTRACTION_OF_WEIGHTS(name, TM, FEW_BITS)                                                                     \
    extern "C" __global__ void __launch_bounds__(4 * TM, 128 / TM) name##_##TM(const Contraction* tasks, int splits,   \
        long long split_stride, const num* w, const num* x, const num* y, num* out) {                                  \
        contract<TM, FEW_BITS, false, true>(tasks, splits, split_stride, w, x, y, out, 0, 0, 0, 0, 0);                 \
    }
// Factors of 8 bits take the kernels of factors of 11 where there are no others.
#define TF32 (FEWER_BITS > 0)
#define PRODUCTS(TM)                                                                                                   \
    CONTRACTION(reverse, TM, TF32, true)                                                                               \
    CONTRACTION(exact, TM, false, false)                                                                               \
    CONTRACTION_OF_WEIGHTS(retract, TM, false)                                                                         \
    CONTRACTION_OF_WEIGHTS(subtract, TM, TF32)                                                                         \
    extern "C" __global__ void __launch_bounds__(4 * TM, TM == 64 ? 2 : 64 / TM) gram_##TM(const Gram* tasks, const num* x,           \
        const num* y, int parts, long long part_stride, num* out) {                                                    \
        gram<TM, false>(tasks, x, y, parts, part_stride, out);                                                         \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(4 * TM, TM == 64 ? 2 : 64 / TM) projection_##TM(const Gram* tasks, const num* x,     \
        const num* y, int parts, long long part_stride, num* out) {                                                    \
        gram<TM, TF32>(tasks, x, y, parts, part_stride, out);                                                          \
    }
PRODUCTS(16)
PRODUCTS(32)
PRODUCTS(64)
#if FEWER_BITS < 2
#define PRODUCTS_OVER_ROWS(TM)                                                                                         \
    CONTRACTION(forward, TM, TF32, false)                                                                              \
    extern "C" __global__ void __launch_bounds__(4 * TM, 128 / TM) descend_##TM(const Descent* tasks, int splits,      \
        long long split_stride, const num* w, const num* e, const num* v, const Settle* a, const Settle* b,            \
        int is_b_settled, const float* factors, num* settled, num* shares) {                                           \
        descend<TM, TF32>(tasks, splits, w, e, v, {a, b, is_b_settled, factors, settled, shares, split_stride});       \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(4 * TM, 128 / TM) gradient_##TM(const WeightTask* tasks,              \
        const User* users, const num* e, const num* v, int stride, num* out) {                                         \
        gradient<TM, TF32>(tasks, users, e, v, stride, out);                                                           \
    }
PRODUCTS_OVER_ROWS(16)
PRODUCTS_OVER_ROWS(32)
PRODUCTS_OVER_ROWS(64)
#endif

// ---------------------------------------------------------------------------------------------------------------------
// Leaves.

// codes[variable][row] for the rows of a batch, each from the variable that its shift selects.
extern "C" __global__ void gather(const unsigned char* table, int bytes, long long len, const int* rows,
                                  const int* places, const int* sources, int variables, int stride, int* codes) {
    int row = blockIdx.x * blockDim.x + threadIdx.x, v = blockIdx.y;
    if (row >= stride) return;
    long long at = (long long)sources[places[row] * variables + v] * len + rows[row];
    codes[(long long)v * stride + row] = bytes == 1   ? table[at]
                                         : bytes == 2 ? ((const unsigned short*)table)[at]
                                                      : ((const int*)table)[at];
}

// A weight times indicators, or functions from a table: in both cases, every row selects a column. The vectors are
// settled at once.
struct Leaf {
    long long from;
    int columns, variable, width, to, index, unused;
};
__device__ __forceinline__ void leaf(const Leaf& t, const num* from, long long len, int row, int stride, num* to,
                                     float* factors, int* log2) {
    __shared__ float most[4][64];
    float max = 0.f;
    for (int k = threadIdx.y; k < t.width; k += 4) max = fmaxf(max, largest(from[k * len]));
    most[threadIdx.y][threadIdx.x] = max;
    __syncthreads();
    for (int y = 0; y < 4; y++) max = fmaxf(max, most[y][threadIdx.x]);
    int exponent = exponent_of(max);
    float factor = ldexpf(1.f, -exponent);
    for (int k = threadIdx.y; k < t.width; k += 4) to[(long long)(t.to + k) * stride + row] = scale(from[k * len], factor);
    if (threadIdx.y == 0) {
        factors[(long long)t.index * stride + row] = factor;
        atomicAdd(log2 + row, 2 * exponent);
    }
}
extern "C" __global__ void leaves(const Leaf* tasks, const num* w, const int* codes, int stride, num* to, float* factors,
                                  int* log2) {
    Leaf t = tasks[blockIdx.y];
    int row = blockIdx.x * 64 + threadIdx.x;
    const num* from = w + t.from + codes[(long long)t.variable * stride + row];
    leaf(t, from, t.columns, row, stride, to, factors, log2);
}
extern "C" __global__ void functions(const Leaf* tasks, const num* table, const int* rows, long long len, int stride,
                                     num* to, float* factors, int* log2) {
    Leaf t = tasks[blockIdx.y];
    int row = blockIdx.x * 64 + threadIdx.x;
    leaf(t, table + t.from * len + rows[row], len, row, stride, to, factors, log2);
}

// The gradient with respect to weights over indicators: 32 components and 256 columns per warp,
// with rows in order.
extern "C" __global__ void columns(const WeightTask* tasks, const User* users, const num* e, const int* codes,
                                   const Step* step, int stride, num* out) {
    extern __shared__ __align__(16) unsigned char memory[];
    num* sum = (num*)memory;
    num* staged = sum + 256 * 33;
    WeightTask t = tasks[blockIdx.z];
    int lane = threadIdx.x, k0 = blockIdx.x * 32, c0 = blockIdx.y * 256, all = t.k1;
    if (k0 >= t.k || c0 >= all) return;
    for (int i = lane; i < 256 * 33; i += 32) sum[i] = zero();
    int count = step->count;
    for (int u = t.first; u < t.last; u++) {
        const num* from = e + (long long)(users[u].e + k0) * stride;
        const int* code = codes + (long long)users[u].a * stride;
        for (int row0 = 0; row0 < count; row0 += 32) {
            __syncwarp();
            int row = row0 + lane, own = row < count ? code[row] - c0 : -1;
#pragma unroll 8
            for (int k = 0; k < 32; k++)
                staged[k * 33 + lane] = row < count && k0 + k < t.k ? from[(long long)k * stride + row] : zero();
            __syncwarp();
            for (int r = 0; r < 32; r++) {
                int x = __shfl_sync(0xffffffffu, own, r);
                if (x >= 0 && x < 256) sum[x * 33 + lane] = add(sum[x * 33 + lane], staged[lane * 33 + r]);
            }
        }
    }
    __syncwarp();
    int most = min(256, all - c0);
    for (int k = 0; k < 32 && k0 + k < t.k; k++)
        for (int x = lane; x < most; x += 32) out[t.out + (long long)(k0 + k) * all + c0 + x] = sum[x * 33 + k];
}

// ---------------------------------------------------------------------------------------------------------------------
// Between steps.

// Hadamard products.
struct Pair {
    // The positions of both inputs and of the product among all vectors, and of the product before
    // it is settled.
    int a, b, own, out, width, index_a, index_b;
};
extern "C" __global__ void hadamard(const Pair* tasks, const num* v, int stride, num* out) {
    Pair t = tasks[blockIdx.y];
    int row = blockIdx.x * 64 + threadIdx.x;
    if (row >= stride) return;
    for (int k = threadIdx.y; k < t.width; k += 4)
        out[(long long)(t.out + k) * stride + row] =
            mul(v[(long long)(t.a + k) * stride + row], v[(long long)(t.b + k) * stride + row]);
}
extern "C" __global__ void hadamard_reverse(const Pair* tasks, const num* v, const float* factors, int stride, num* e) {
    Pair t = tasks[blockIdx.y];
    int row = blockIdx.x * 64 + threadIdx.x;
    if (row >= stride) return;
    float fa = factors[(long long)t.index_a * stride + row], fb = factors[(long long)t.index_b * stride + row];
    for (int k = threadIdx.y; k < t.width; k += 4) {
        long long a = (long long)(t.a + k) * stride + row, b = (long long)(t.b + k) * stride + row;
        num g = e[(long long)(t.own + k) * stride + row], va = v[a], vb = v[b];
        e[a] = scale(mul(g, conj(vb)), fa);
        e[b] = scale(mul(g, conj(va)), fb);
    }
}

extern "C" __global__ void settle(const Settle* tasks, const num* from, int splits, long long split_stride, int stride,
                                  num* to, float* factors, int* log2) {
    __shared__ float most[16][33];
    Settle t = tasks[blockIdx.y];
    int row = blockIdx.x * 32 + threadIdx.x;
    float max = 0.f;
    if (row < stride)
        for (int k = threadIdx.y; k < t.width; k += 16) {
            num sum = from[t.from + (long long)k * stride + row];
#pragma unroll 8
            for (int s = 1; s < splits; s++) sum = add(sum, from[s * split_stride + t.from + (long long)k * stride + row]);
            to[(long long)(t.to + k) * stride + row] = sum;
            max = fmaxf(max, largest(sum));
        }
    most[threadIdx.y][threadIdx.x] = max;
    __syncthreads();
    if (row >= stride) return;
    for (int y = 0; y < 16; y++) max = fmaxf(max, most[y][threadIdx.x]);
    int exponent = exponent_of(max);
    float factor = ldexpf(1.f, -exponent);
    for (int k = threadIdx.y; k < t.width; k += 16) {
        num* x = to + (long long)(t.to + k) * stride + row;
        *x = scale(*x, factor);
    }
    if (threadIdx.y == 0) {
        factors[(long long)t.index * stride + row] = factor;
        atomicAdd(log2 + row, 2 * exponent);
    }
}
extern "C" __global__ void settle_reverse(const Settle* tasks, const num* from, int splits, long long split_stride,
                                          int stride, const float* factors, num* to) {
    Settle t = tasks[blockIdx.y];
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= stride) return;
    float factor = factors[(long long)t.index * stride + row];
    for (int k = threadIdx.y; k < t.width; k += 16) {
        num sum = from[t.from + (long long)k * stride + row];
#pragma unroll 8
        for (int s = 1; s < splits; s++) sum = add(sum, from[s * split_stride + t.from + (long long)k * stride + row]);
        to[(long long)(t.to + k) * stride + row] = scale(sum, factor);
    }
}

// Runs before the first step.
extern "C" __global__ void begin(int stride, int* log2) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row < stride) log2[row] = 0;
}

// log p of every row, and the gradient of row_weight sum log p with respect to the output.
extern "C" __global__ void close(const num* v, const float* factors, const int* log2, const Step* step, int at,
                                 int index, int width, int stride, num* e, double* logs) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= stride) return;
    float p = 0.f;
    for (int k = 0; k < width; k++) p += norm2(v[(long long)(at + k) * stride + row]);
    logs[row] = log((double)p) + log2[row] * 0.6931471805599453;
    bool is_used = row < step->count && p > 0.f;
    float by = is_used ? 2.f * step->row_weight / p * factors[(long long)index * stride + row] : 0.f;
    for (int k = 0; k < width; k++) {
        long long i = (long long)(at + k) * stride + row;
        e[i] = scale(v[i], by);
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Weights. Each starts at a multiple of 1024 numbers.

struct Sum {
    long long to, from, len;
    int parts, unused;
};
// Eight threads sum a share of the parts of a number each.
extern "C" __global__ void combine(const Sum* tasks, const num* from, num* to) {
    __shared__ num shares[8][32];
    Sum t = tasks[blockIdx.y];
    for (long long first = blockIdx.x * 32; first < t.len; first += gridDim.x * 32) {
        long long i = first + threadIdx.x;
        num sum = zero();
        if (i < t.len)
#pragma unroll 8
            for (int s = threadIdx.y; s < t.parts; s += 8) sum = add(sum, from[t.from + s * t.len + i]);
        shares[threadIdx.y][threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.y == 0 && i < t.len) {
            for (int y = 1; y < 8; y++) sum = add(sum, shares[y][threadIdx.x]);
            to[t.to + i] = sum;
        }
        __syncthreads();
    }
}

struct Weight {
    long long at, small;
    int k, columns;
    float rate, smoothing;
    long long roughness;
};
// The gradients of -s/2 sum |w[x] - w[x+1]|^2 and of -1/2 sum roughness[x] |w[x]|^2.
extern "C" __global__ void penalize(const Weight* weights, const int* which, const float* roughness, const num* w,
                                    num* g) {
    Weight t = weights[which[blockIdx.y]];
    int n = t.k * t.columns;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int x = i % t.columns;
        num own = w[t.at + i], sum = g[t.at + i];
        if (t.smoothing > 0.f) {
            if (x > 0) sum = subtract(sum, scale(subtract(own, w[t.at + i - 1]), t.smoothing));
            if (x + 1 < t.columns) sum = add(sum, scale(subtract(w[t.at + i + 1], own), t.smoothing));
        }
        if (t.roughness >= 0) sum = subtract(sum, scale(own, roughness[t.roughness + x]));
        g[t.at + i] = sum;
    }
}

// The sum of the parts of an entry.
__device__ __forceinline__ num sum_of(const num* m, int parts, long long part_stride) {
    num sum = m[0];
    for (int part = 1; part < parts; part++) sum = add(sum, m[part * part_stride]);
    return sum;
}

// Turns G W^H into the matrix that is multiplied by W and subtracted from G.
extern "C" __global__ void symmetrize(const Gram* tasks, int is_stiefel, int parts, long long part_stride, num* m) {
    Gram t = tasks[blockIdx.x];
    num* a = m + t.out;
    for (int e = threadIdx.x; e < t.k * t.k; e += blockDim.x) {
        int i = e / t.k, j = e % t.k;
        if (i < j) continue;
        num lower = sum_of(a + i * t.k + j, parts, part_stride), upper = sum_of(a + j * t.k + i, parts, part_stride);
        if (is_stiefel) lower = scale(add(lower, conj(upper)), 0.5f);
        if (i == j) lower = number(lower.x, 0.f);
        a[i * t.k + j] = lower;
        a[j * t.k + i] = conj(lower);
    }
}

// I - L^-1 for the Cholesky factor L, in place.
extern "C" __global__ void cholesky(const Gram* tasks, int parts, long long part_stride, num* m) {
    extern __shared__ __align__(16) unsigned char memory[];
    num* a = (num*)memory;
    Gram t = tasks[blockIdx.x];
    int k = t.k, tid = threadIdx.x, threads = blockDim.x;
    num* own = m + t.out;
    for (int e = tid; e < k * k; e += threads) a[e] = sum_of(own + e, parts, part_stride);
    __syncthreads();
    for (int j = 0; j < k; j++) {
        float pivot = rsqrtf(fmaxf(a[j * k + j].x, 1e-12f));
        __syncthreads();
        for (int i = j + tid; i < k; i += threads) a[i * k + j] = scale(a[i * k + j], pivot);
        __syncthreads();
        int rest = k - j - 1;
        for (int e = tid; e < rest * rest; e += threads) {
            int i = j + 1 + e / rest, l = j + 1 + e % rest;
            if (l <= i) a[i * k + l] = subtract(a[i * k + l], mul(a[i * k + j], conj(a[l * k + j])));
        }
        __syncthreads();
    }
    // The inverse row by row, four threads to a column. Its columns are above the diagonal of L.
    int slice = tid % 4;
    for (int i = 0; i < k; i++) {
        float pivot = 1.f / a[i * k + i].x;
        for (int first = 0; first < i; first += threads / 4) {
            int c = first + tid / 4;
            num sum = zero();
            if (c < i)
                for (int l = c + slice; l < i; l += 4)
                    sum = add(sum, l == c ? scale(a[i * k + c], 1.f / a[c * k + c].x) : mul(a[i * k + l], a[c * k + l]));
#pragma unroll
            for (int by = 1; by < 4; by *= 2)
                sum = add(sum, number(__shfl_xor_sync(0xffffffffu, sum.x, by),
                                      __shfl_xor_sync(0xffffffffu, imaginary(sum), by)));
            if (c < i && slice == 0) a[c * k + i] = scale(sum, -pivot);
        }
        __syncthreads();
    }
    for (int e = tid; e < k * k; e += threads) {
        int i = e / k, j = e % k;
        num x = i > j ? a[j * k + i] : zero();
        own[e] = i == j ? number(1.f - 1.f / a[e].x, 0.f) : scale(x, -1.f);
    }
}

// The sum over a block of 256 threads, in a fixed order.
__device__ double total(double x) {
    __shared__ double part[256];
    part[threadIdx.x] = x;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    __syncthreads();
    double sum = part[0];
    __syncthreads();
    return sum;
}

// The weight of the output has norm 1, so the part of its gradient along the weight is removed.
extern "C" __global__ void output_gradient(Weight t, const num* w, num* g) {
    double dot = 0.0;
    int n = t.k * t.columns;
    for (int i = threadIdx.x; i < n; i += 256) {
        num a = w[t.at + i], b = g[t.at + i];
        dot += (double)a.x * b.x + (double)imaginary(a) * imaginary(b);
    }
    float by = -total(dot);
    for (int i = threadIdx.x; i < n; i += 256) g[t.at + i] = add(g[t.at + i], scale(w[t.at + i], by));
}
extern "C" __global__ void output_weight(Weight t, const num* v, num* w) {
    double sum = 0.0;
    int n = t.k * t.columns;
    for (int i = threadIdx.x; i < n; i += 256) sum += norm2(v[t.at + i]);
    float by = rsqrt(total(sum));
    for (int i = threadIdx.x; i < n; i += 256) w[t.at + i] = scale(v[t.at + i], by);
}

// The squared norm of all gradients, and the factor that clips them.
extern "C" __global__ void norms(const num* g, double* parts) {
    double sum = 0.0;
    for (int i = 0; i < 4; i++) sum += norm2(g[blockIdx.x * 1024ll + i * 256 + threadIdx.x]);
    sum = total(sum);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}
extern "C" __global__ void clip(const double* parts, int count, const Step* step, float* by) {
    double sum = 0.0;
    for (int i = threadIdx.x; i < count; i += 256) sum += parts[i];
    double norm = sqrt(total(sum));
    if (threadIdx.x == 0) *by = step->clip > 0.f && norm > step->clip ? step->clip / norm : 1.0;
}

// The step along a gradient, by Adam or momentum.
__device__ __forceinline__ float move(const Step& s, float rate, float gradient, float& mean, float& square) {
    float m = s.momentum ? 0.9f * mean + gradient : 0.9f * mean + 0.1f * gradient;
    mean = m = fabsf(m) < 1e-30f ? 0.f : m;
    if (s.momentum) return rate * m;
    float v = 0.99f * square + 0.01f * (gradient * gradient);
    square = v = v < 1e-30f ? 0.f : v;
    return rate * m / (sqrtf(v) + s.epsilon);
}

// Replaces the gradient by V = W + step, from this block of numbers on.
extern "C" __global__ void advance(const Weight* weights, const int* owners, int first, const Step* step,
                                   const float* by, const float* w, float* mean, float* square, float* g) {
    const int PARTS = sizeof(num) / 4;
    int block = first + blockIdx.x;
    Step s = *step;
    float rate = s.rate * weights[owners[block]].rate, factor = *by;
    for (int i = threadIdx.x; i < 1024 * PARTS; i += 256) {
        long long at = (long long)block * 1024 * PARTS + i;
        float m = mean[at], v = s.momentum ? 0.f : square[at];
        g[at] = w[at] + move(s, rate, g[at] * factor, m, v);
        mean[at] = m;
        if (!s.momentum) square[at] = v;
    }
}
#if FEWER_BITS < 2
extern "C" __global__ void average(const Step* step, const float* w, float* mean, float* rounded_w) {
    const int PARTS = sizeof(num) / 4;
    float keep = step->keep;
    for (int i = threadIdx.x; i < 1024 * PARTS; i += 256) {
        long long at = (long long)blockIdx.x * 1024 * PARTS + i;
        mean[at] = mean[at] * keep + w[at] * (1.f - keep);
        if (TF32) rounded_w[at] = rounded(w[at]);
    }
}
// The weights in the form that the matrix units use.
extern "C" __global__ void round_weights(const float* w, float* rounded_w) {
    const int PARTS = sizeof(num) / 4;
    for (int i = threadIdx.x; i < 1024 * PARTS; i += 256) {
        long long at = (long long)blockIdx.x * 1024 * PARTS + i;
        rounded_w[at] = rounded(w[at]);
    }
}
#endif

// The largest entry of W W^H - I.
extern "C" __global__ void residuals(const Gram* tasks, const num* m, int parts, long long part_stride, double* out) {
    __shared__ float most[256];
    Gram t = tasks[blockIdx.x];
    float max = 0.f;
    for (int e = threadIdx.x; e < t.k * t.k; e += 256) {
        num a = sum_of(m + t.out + e, parts, part_stride);
        if (e / t.k == e % t.k) a.x -= 1.f;
        max = fmaxf(max, sqrtf(norm2(a)));
    }
    most[threadIdx.x] = max;
    __syncthreads();
    for (int i = 0; i < 256; i++) max = fmaxf(max, most[i]);
    if (threadIdx.x == 0) out[blockIdx.x] = max;
}
