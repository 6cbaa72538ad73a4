// Products over rows whose factors have 8 bits, for the matrix units. Sums are in single precision.
//
// Factors lie in quads of four numbers along the sum, real parts apart from imaginary ones, so that
// one load fills the registers of a thread for 16 places of the sum. The order of places within
// these 16 is not that of the instruction, but it is the same for both factors.

#if COMPLEX
struct __align__(16) Quad {
    unsigned re[2], im[2];
};
__device__ __forceinline__ Quad no_quad() { return {{0, 0}, {0, 0}}; }
#else
struct __align__(8) Quad {
    unsigned re[2];
};
__device__ __forceinline__ Quad no_quad() { return {{0, 0}}; }
#endif

__device__ __forceinline__ unsigned pair(float first, float second) {
    unsigned u;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(u) : "f"(second), "f"(first));
    return u;
}
__device__ __forceinline__ Quad quad(const num* x) {
    Quad q;
    q.re[0] = pair(x[0].x, x[1].x), q.re[1] = pair(x[2].x, x[3].x);
#if COMPLEX
    q.im[0] = pair(x[0].y, x[1].y), q.im[1] = pair(x[2].y, x[3].y);
#endif
    return q;
}
__device__ __forceinline__ void four(const num* from, num* to) {
    two(from, to), two(from + 2, to + 2);
}
__device__ __forceinline__ void put_four(const num* from, num* to) {
#if COMPLEX
    ((float4*)to)[0] = {from[0].x, from[0].y, from[1].x, from[1].y};
    ((float4*)to)[1] = {from[2].x, from[2].y, from[3].x, from[3].y};
#else
    *(float4*)to = {from[0].x, from[1].x, from[2].x, from[3].x};
#endif
}
__device__ __forceinline__ num from_lane(num x, int by) {
    return number(__shfl_xor_sync(0xffffffffu, x.x, by), __shfl_xor_sync(0xffffffffu, imaginary(x), by));
}
// Tiles consist of blocks of 16 places with 4 quads to a row, in an order that avoids bank conflicts.
__device__ __forceinline__ int quad_at(int row, int q) { return row * 4 + (q ^ (row / 2 & 3)); }

__device__ __forceinline__ void mma16(float* c, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                                      unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Adds the product of 16 places, with A conjugated if requested.
template <int TM, bool CONJUGATE>
__device__ __forceinline__ void multiply_quads(const Quad* a, const Quad* b, float* re, float* im) {
    typedef Layout<TM, true> L;
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, warp = threadIdx.x / 32;
    int m0 = TM >= 32 ? warp / 4 * 32 : 0, n0 = TM >= 32 ? warp % 4 * 16 : warp * 32;
    // The position in a tile of 8 rows, which all tiles of a factor consist of.
    int own = quad_at(g, t);
    Quad x[L::FM][2];
#pragma unroll
    for (int f = 0; f < L::FM; f++)
#pragma unroll
        for (int c = 0; c < 2; c++) x[f][c] = a[(m0 + f * 16 + c * 8) * 4 + own];
#pragma unroll
    for (int h = 0; h < L::FN; h++) {
        Quad y = b[(n0 + h * 8) * 4 + own];
#if COMPLEX
        // The sign makes the product of the last two complex.
        unsigned minus[2];
#pragma unroll
        for (int c = 0; c < 2; c++) minus[c] = (CONJUGATE ? y.re[c] : y.im[c]) ^ 0x80008000u;
#endif
#pragma unroll
        for (int f = 0; f < L::FM; f++) {
            float *r = re + (f * L::FN + h) * 4, *i = im + (f * L::FN + h) * 4;
            const Quad &u = x[f][0], &v = x[f][1];
            mma16(r, u.re[0], v.re[0], u.re[1], v.re[1], y.re[0], y.re[1]);
#if COMPLEX
            mma16(i, u.re[0], v.re[0], u.re[1], v.re[1], y.im[0], y.im[1]);
            if (CONJUGATE) {
                mma16(r, u.im[0], v.im[0], u.im[1], v.im[1], y.im[0], y.im[1]);
                mma16(i, u.im[0], v.im[0], u.im[1], v.im[1], minus[0], minus[1]);
            } else {
                mma16(r, u.im[0], v.im[0], u.im[1], v.im[1], minus[0], minus[1]);
                mma16(i, u.im[0], v.im[0], u.im[1], v.im[1], y.re[0], y.re[1]);
            }
#endif
        }
    }
}

__device__ __forceinline__ void copy_quad(Quad* to, const Quad* from, bool is_in) {
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"((int)sizeof(Quad)),
                 "r"(is_in ? (int)sizeof(Quad) : 0));
}

// Fills a tile of vectors, 16 components to a block.
template <int THREADS>
__device__ __forceinline__ void fill(Quad* tile, const num* from, int components, int blocks, int stride) {
    for (int e = threadIdx.x; e < blocks * 4 * TN; e += THREADS) {
        int n = e % TN, q = e / TN;
        num x[4];
#pragma unroll
        for (int s = 0; s < 4; s++) x[s] = q * 4 + s < components ? from[(long long)(q * 4 + s) * stride + n] : zero();
        tile[q / 4 * 4 * TN + quad_at(n, q % 4)] = quad(x);
    }
}

// The blocks of 16 places that are loaded and multiplied between barriers.
__host__ __device__ constexpr int blocks_of(int tm) { return tm == 16 ? 4 : 2; }

// W (a x b), or W b: for each p, the sum over quads q is multiplied by x. The weight is in quads
// along q.
template <int TM>
__device__ __forceinline__ void contract_quads(const Contraction* tasks, int splits, long long split_stride,
                                               const Quad* w, const num* values, num* out, const Settle* settles,
                                               int is_settled, num* settled, float* factors, int* log2) {
    typedef Layout<TM, true> L;
    const int BLOCKS = blocks_of(TM), STAGE = BLOCKS * TM * 4;
    extern __shared__ __align__(16) unsigned char memory[];
    Contraction t = tasks[blockIdx.z / splits];
    int split = blockIdx.z % splits, m0 = blockIdx.y * TM, n0 = blockIdx.x * TN, tid = threadIdx.x;
    if (m0 >= t.m) return;
    int quads = (t.q + 3) / 4, chunks = (t.q + 15) / 16;
    Quad* a_tile = (Quad*)memory;
    Quad* y_tile = a_tile + STAGES * STAGE;
    num* x_tile = (num*)(y_tile + chunks * 4 * TN);
    bool has_x = t.x >= 0;
    int first = (long long)t.p * split / splits, last = (long long)t.p * (split + 1) / splits;
    int total = (last - first) * chunks, rounds = (total + BLOCKS - 1) / BLOCKS;
    int m = tid / 4, q = tid % 4;
    const Quad* own = w + t.w + (long long)(m0 + m) * t.sm + q;
    int p = first, c = 0;
    auto load = [&](int round) {
        Quad* a = a_tile + round % STAGES * STAGE;
        num* x = x_tile + round % STAGES * BLOCKS * TN;
#pragma unroll
        for (int s = 0; s < BLOCKS; s++) {
            bool is_in = p < last && m0 + m < t.m && c * 4 + q < quads;
            copy_quad(a + s * TM * 4 + quad_at(m, q), is_in ? own + (long long)p * t.sp + c * 4 : w, is_in);
            if (has_x && tid < TN && p < last) copy(x + s * TN + tid, values + t.x + (long long)p * t.stride + n0 + tid, true);
            if (++c == chunks) c = 0, p++;
        }
    };
    for (int r = 0; r < STAGES - 1; r++) {
        if (r < rounds) load(r);
        commit();
    }
    fill<4 * TM>(y_tile, values + t.y + n0, t.q, chunks, t.stride);
    float re[16], im[16], sum_re[16], sum_im[16];
#pragma unroll
    for (int i = 0; i < 16; i++) re[i] = im[i] = sum_re[i] = sum_im[i] = 0.f;
    int at = 0;
    for (int r = 0; r < rounds; r++) {
        wait<STAGES - 2>();
        __syncthreads();
        if (r + STAGES - 1 < rounds) load(r + STAGES - 1);
        commit();
#pragma unroll
        for (int s = 0; s < BLOCKS; s++) {
            if (r * BLOCKS + s >= total) break;
            multiply_quads<TM, false>(a_tile + r % STAGES * STAGE + s * TM * 4, y_tile + at * 4 * TN, re, im);
            if (++at < chunks) continue;
            at = 0;
            if (!has_x) continue;
            const num* x = x_tile + (r % STAGES * BLOCKS + s) * TN;
#pragma unroll
            for (int i = 0; i < 16; i++) {
                num v = mul(number(re[i], im[i]), x[L::column(L::slot(i))]);
                sum_re[i] += v.x, sum_im[i] += imaginary(v);
                re[i] = im[i] = 0.f;
            }
        }
    }
    if (has_x) {
#pragma unroll
        for (int i = 0; i < 16; i++) re[i] = sum_re[i], im[i] = sum_im[i];
    }
    if (is_settled) {
        settle_tile<TM, true>(settles[blockIdx.z], t.m, t.stride, re, im, settled, factors, log2);
        return;
    }
    num* to = out + t.out + split * split_stride;
#pragma unroll
    for (int i = 0; i < 16; i++) {
        int m = m0 + L::row(i), n = n0 + L::column(L::slot(i));
        if (m < t.m) to[(long long)m * t.stride + n] = number(re[i], im[i]);
    }
}

// What W (a x b) sends down: as `descend`, with the weight in quads along k.
template <int TM>
__device__ __forceinline__ void descend_quads(const Descent* tasks, int splits, const Quad* w, const num* e,
                                              const num* v, const Descended& to) {
    typedef Layout<TM, true> L;
    const int BLOCKS = blocks_of(TM), STAGE = BLOCKS * TM * 4, GROUPS = L::GROUPS;
    extern __shared__ __align__(16) unsigned char memory[];
    Descent t = tasks[blockIdx.z / splits];
    int split = blockIdx.z % splits, n0 = blockIdx.x * TN, tid = threadIdx.x, lane = tid % 32;
    int quads = (t.k + 3) / 4, chunks = (t.k + 15) / 16, columns = t.k1 * t.k2;
    Quad* a_tile = (Quad*)memory;
    Quad* e_tile = a_tile + STAGES * STAGE;
    num* x_tile = (num*)(e_tile + chunks * 4 * TN);
    num* b_tile = x_tile + STAGES * BLOCKS * TN;
    num* parts = b_tile + TM * (TN + 4);
    int first = (long long)t.k1 * split / splits, last = (long long)t.k1 * (split + 1) / splits;
    int total = (last - first) * chunks, rounds = (total + BLOCKS - 1) / BLOCKS;
    int m = tid % TM, q = tid / TM;
    const Quad* own = w + t.w + (long long)q * columns + m;
    int p = first, c = 0;
    auto load = [&](int round) {
        Quad* a = a_tile + round % STAGES * STAGE;
        num* x = x_tile + round % STAGES * BLOCKS * TN;
#pragma unroll
        for (int s = 0; s < BLOCKS; s++) {
            bool is_in = p < last && m < t.k2 && c * 4 + q < quads;
            copy_quad(a + s * TM * 4 + quad_at(m, q), is_in ? own + (long long)c * 4 * columns + p * t.k2 : w, is_in);
            if (tid < TN && p < last) copy(x + s * TN + tid, v + t.a + (long long)p * t.stride + n0 + tid, true);
            if (++c == chunks) c = 0, p++;
        }
    };
    for (int r = 0; r < STAGES - 1; r++) {
        if (r < rounds) load(r);
        commit();
    }
    fill<4 * TM>(e_tile, e + t.e + n0, t.k, chunks, t.stride);
    for (int i = tid; i < TM * TN; i += 4 * TM) {
        int j = i / TN, n = i % TN;
        b_tile[b_at<false>(j, n)] = j < t.k2 ? conj(v[t.b + (long long)j * t.stride + n0 + n]) : zero();
    }
    // Sums the parts of to_a[i].
    Settle a = to.a[blockIdx.z / splits];
    float factor_a = tid < TN ? to.factors[(long long)a.index * t.stride + n0 + tid] : 0.f;
    auto finish = [&](int i) {
        if (tid >= TN) return;
        const num* from = parts + i % (2 * BLOCKS) * GROUPS * TN + tid;
        num sum = from[0];
        for (int g = 1; g < GROUPS; g++) sum = add(sum, from[g * TN]);
        to.settled[(long long)(a.to + i) * t.stride + n0 + tid] = scale(sum, factor_a);
    };
    float re[16], im[16], sum_re[16], sum_im[16];
#pragma unroll
    for (int i = 0; i < 16; i++) re[i] = im[i] = sum_re[i] = sum_im[i] = 0.f;
    int at = 0, at_p = first, finished = first;
    for (int r = 0; r < rounds; r++) {
        wait<STAGES - 2>();
        __syncthreads();
        if (r + STAGES - 1 < rounds) load(r + STAGES - 1);
        commit();
        for (; finished < at_p; finished++) finish(finished);
#pragma unroll
        for (int s = 0; s < BLOCKS; s++) {
            if (r * BLOCKS + s >= total) break;
            multiply_quads<TM, true>(a_tile + r % STAGES * STAGE + s * TM * 4, e_tile + at * 4 * TN, re, im);
            if (++at < chunks) continue;
            at = 0;
            const num* x = x_tile + (r % STAGES * BLOCKS + s) * TN;
            num part[L::SLOTS];
#pragma unroll
            for (int j = 0; j < L::SLOTS; j++) part[j] = zero();
#pragma unroll
            for (int i = 0; i < 16; i += 2) {
                // Two columns that lie side by side.
                num b[2], f[2];
                two(b_tile + b_at<false>(L::row(i), L::column(L::slot(i))), b);
                two(x + L::column(L::slot(i)), f);
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    num d = number(re[i + j], im[i + j]), y = mul(d, conj(f[j]));
                    sum_re[i + j] += y.x, sum_im[i + j] += imaginary(y);
                    part[L::slot(i + j)] = add(part[L::slot(i + j)], mul(d, b[j]));
                    re[i + j] = im[i + j] = 0.f;
                }
            }
            int group = L::group();
            // Of every two lanes, each sums half of the columns, down to one column.
            int slot = 0, by = 16;
#pragma unroll
            for (int half = L::SLOTS / 2; half > 0; half /= 2, by /= 2) {
                bool is_upper = lane & by;
                slot += is_upper ? half : 0;
#pragma unroll
                for (int j = 0; j < half; j++) {
                    num own = is_upper ? part[j + half] : part[j], other = is_upper ? part[j] : part[j + half];
                    part[j] = add(own, from_lane(other, by));
                }
            }
            if (by == 4) part[0] = add(part[0], from_lane(part[0], 4));
            if (by < 4 || lane % 8 < 4) parts[(at_p % (2 * BLOCKS) * GROUPS + group) * TN + L::column(slot)] = part[0];
            at_p++;
        }
    }
    __syncthreads();
    for (; finished < at_p; finished++) finish(finished);
#pragma unroll
    for (int i = 0; i < 16; i++) {
        int m = L::row(i), n = n0 + L::column(L::slot(i));
        if (m < t.k2) write_b(to, t, blockIdx.z / splits, split, m, n, number(sum_re[i], sum_im[i]));
    }
}

// The gradient by a weight: as `gradient`.
template <int TM>
__device__ __forceinline__ void gradient_quads(const WeightTask* tasks, const User* users, const num* e, const num* v,
                                               int stride, num* out) {
    typedef Layout<TM, true> L;
    // The blocks of 16 rows between barriers, and the quads of each factor of a thread.
    const int BLOCKS = TM == 64 ? 2 : 1, A = BLOCKS, B = BLOCKS * TN / TM;
    __shared__ Quad a_tile[2][BLOCKS * TM * 4], b_tile[2][BLOCKS * TN * 4];
    WeightTask t = tasks[blockIdx.z];
    int m0 = blockIdx.y * TM, n0 = blockIdx.x * TN, columns = t.k1 * t.k2, tid = threadIdx.x;
    if (m0 >= t.k || n0 >= columns) return;
    // The quad of a thread in a block, and its component of both factors.
    int q = tid % 4, own = tid / 4;
    const int EACH = B / BLOCKS;
    int i[EACH], j[EACH];
#pragma unroll
    for (int s = 0; s < EACH; s++) {
        int n = n0 + own + s * TM;
        i[s] = n < columns ? n / t.k2 * stride : -1, j[s] = n % t.k2 * stride;
    }
    // The rows of a quad are two and two, so that neighboring threads load neighboring rows.
    auto rows = [&](const num* from, num* to) {
        two(from, to), two(from + 8, to + 2);
    };
    auto constant = [](num value, num* to) {
        to[0] = to[1] = to[2] = to[3] = value;
    };
    num x[A][4], y[B][4], z[B][4];
    int each = stride / (16 * BLOCKS), total = (t.last - t.first) * each;
    auto load = [&](int chunk) {
        User u = users[t.first + chunk / each];
        int row = chunk % each * 16 * BLOCKS + q * 2;
        const num* from = e + (long long)(u.e + m0 + own) * stride + row;
#pragma unroll
        for (int s = 0; s < A; s++) {
            if (m0 + own < t.k)
                rows(from + s * 16, x[s]);
            else
                constant(zero(), x[s]);
        }
        const num *from_a = v + (long long)u.a * stride + row, *from_b = v + (long long)u.b * stride + row;
#pragma unroll
        for (int s = 0; s < B; s++) {
            int n = s / BLOCKS, block = s % BLOCKS;
            if (i[n] >= 0)
                rows(from_b + j[n] + block * 16, y[s]);
            else
                constant(zero(), y[s]);
            if (u.a >= 0 && i[n] >= 0)
                rows(from_a + i[n] + block * 16, z[s]);
            else
                constant(number(1.f, 0.f), z[s]);
        }
    };
    float re[16], im[16];
#pragma unroll
    for (int c = 0; c < 16; c++) re[c] = im[c] = 0.f;
    if (total > 0) load(0);
    for (int chunk = 0; chunk < total; chunk++) {
        Quad *a = a_tile[chunk & 1], *b = b_tile[chunk & 1];
#pragma unroll
        for (int s = 0; s < A; s++) a[s * TM * 4 + quad_at(own, q)] = quad(x[s]);
#pragma unroll
        for (int s = 0; s < B; s++) {
            num product[4];
#pragma unroll
            for (int r = 0; r < 4; r++) product[r] = conj(mul(y[s][r], z[s][r]));
            b[s % BLOCKS * TN * 4 + quad_at(own + s / BLOCKS * TM, q)] = quad(product);
        }
        __syncthreads();
        if (chunk + 1 < total) load(chunk + 1);
#pragma unroll
        for (int s = 0; s < BLOCKS; s++)
            multiply_quads<TM, false>(a_tile[chunk & 1] + s * TM * 4, b_tile[chunk & 1] + s * TN * 4, re, im);
    }
#pragma unroll
    for (int c = 0; c < 16; c++) {
        int m = m0 + L::row(c), n = n0 + L::column(L::slot(c));
        if (m < t.k && n < columns) out[t.out + (long long)m * columns + n] = number(re[c], im[c]);
    }
}

#define QUADS(TM)                                                                                                      \
    extern "C" __global__ void __launch_bounds__(4 * TM, 128 / TM) forward_##TM(const Contraction* tasks, int splits,  \
        long long split_stride, const Quad* w, const num*, const num* values, num* out, const Settle* settles,         \
        int is_settled, num* settled, float* factors, int* log2) {                                                     \
        contract_quads<TM>(tasks, splits, split_stride, w, values, out, settles, is_settled, settled, factors, log2);  \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(4 * TM, 128 / TM) descend_##TM(const Descent* tasks, int splits,      \
        long long split_stride, const Quad* w, const num* e, const num* v, const Settle* a, const Settle* b,           \
        int is_b_settled, const float* factors, num* settled, num* shares) {                                           \
        descend_quads<TM>(tasks, splits, w, e, v, {a, b, is_b_settled, factors, settled, shares, split_stride});       \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(4 * TM, 128 / TM) gradient_##TM(const WeightTask* tasks,              \
        const User* users, const num* e, const num* v, int stride, num* out) {                                         \
        gradient_quads<TM>(tasks, users, e, v, stride, out);                                                           \
    }
QUADS(16)
QUADS(32)
QUADS(64)

// As many of two numbers as there are. With an even number of columns, there are two or none.
template <bool IS_EVEN>
__device__ __forceinline__ void get(const num* from, int count, num* to) {
    to[0] = to[1] = zero();
    if (IS_EVEN) {
        if (count > 0) two(from, to);
    } else {
        if (count > 0) to[0] = from[0];
        if (count > 1) to[1] = from[1];
    }
}
template <bool IS_EVEN>
__device__ __forceinline__ void put(const num* from, int count, num* to) {
    if (count <= 0) return;
    if (IS_EVEN) {
#if COMPLEX
        *(float4*)to = {from[0].x, from[0].y, from[1].x, from[1].y};
#else
        *(float2*)to = {from[0].x, from[1].x};
#endif
    } else {
        to[0] = from[0];
        if (count > 1) to[1] = from[1];
    }
}

// X - S Y of weights, with factors of 11 bits: gradients without their part along the weights, from which a step
// replaces the gradients by V, or L^-1 V = V - S V. A warp computes 16 columns at a time.
template <int TM, bool IS_STEP, bool IS_EVEN>
__device__ __forceinline__ void revise(const Gram& t, num* s_tile, const num* small, const num* x, const num* y, num* out,
                                       const Step* step, num* mean, num* square) {
    const int FM = TM / 16, ROW = TM + 8;
    for (int e = threadIdx.x; e < TM * TM; e += 128) {
        int m = e / TM, q = e % TM;
        s_tile[m * ROW + q] = m < t.k && q < t.k ? stored<true>(small[t.out + m * t.k + q]) : zero();
    }
    __syncthreads();
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, l = lane % 4;
    Step s;
    if (IS_STEP) s = *step;
    for (int n0 = (blockIdx.x * 4 + warp) * 16; n0 < t.columns; n0 += gridDim.x * 64) {
        num b[TM / 8][2][2];
#pragma unroll
        for (int q = 0; q < TM / 8; q++)
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int c = 0; c < 2; c++) {
                    int m = q * 8 + l * 2 + c, n = n0 + h * 8 + g;
                    b[q][h][c] = m < t.k && n < t.columns ? y[t.at + (long long)m * t.columns + n] : zero();
                }
        float re[FM * 2 * 4], im[FM * 2 * 4];
#pragma unroll
        for (int i = 0; i < FM * 8; i++) re[i] = im[i] = 0.f;
#pragma unroll
        for (int q = 0; q < TM / 8; q++) {
            float bre[2][2], bim[2][2], minus[2][2];
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int c = 0; c < 2; c++) {
                    bre[h][c] = rounded(b[q][h][c].x), bim[h][c] = rounded(imaginary(b[q][h][c]));
                    minus[h][c] = -bim[h][c];
                }
#pragma unroll
            for (int f = 0; f < FM; f++) {
                // The places of the sum are in another order than those of the instruction.
                num u[2][2];
                two(s_tile + (f * 16 + g) * ROW + q * 8 + l * 2, u[0]);
                two(s_tile + (f * 16 + g + 8) * ROW + q * 8 + l * 2, u[1]);
                float are[4] = {u[0][0].x, u[1][0].x, u[0][1].x, u[1][1].x};
                float aim[4] = {imaginary(u[0][0]), imaginary(u[1][0]), imaginary(u[0][1]), imaginary(u[1][1])};
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    mma(re + (f * 2 + h) * 4, are, bre[h]);
#if COMPLEX
                    mma(im + (f * 2 + h) * 4, are, bim[h]);
                    mma(re + (f * 2 + h) * 4, aim, minus[h]);
                    mma(im + (f * 2 + h) * 4, aim, bre[h]);
#endif
                }
            }
        }
        float by = IS_STEP ? s.rate * t.rate : 0.f;
        // Four pairs of columns that lie side by side at a time, all of whose numbers are loaded first.
#pragma unroll
        for (int f = 0; f < FM; f++) {
            num d[4][2], w[4][2], a[4][2], v[4][2];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int m = f * 16 + i % 2 * 8 + g, n = n0 + i / 2 * 8 + l * 2, count = m < t.k ? t.columns - n : 0;
                long long at = t.at + (long long)m * t.columns + n;
                get<IS_EVEN>(x + at, count, d[i]);
                if (!IS_STEP) continue;
                get<IS_EVEN>(y + at, count, w[i]), get<IS_EVEN>(mean + at, count, a[i]);
                get<IS_EVEN>(square + at, s.momentum ? 0 : count, v[i]);
            }
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int m = f * 16 + i % 2 * 8 + g, n = n0 + i / 2 * 8 + l * 2, count = m < t.k ? t.columns - n : 0;
                long long at = t.at + (long long)m * t.columns + n;
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    int e = f * 8 + i / 2 * 4 + i % 2 * 2 + j;
                    d[i][j] = subtract(d[i][j], number(re[e], im[e]));
                    if (!IS_STEP) continue;
                    w[i][j].x += move(s, by, d[i][j].x, a[i][j].x, v[i][j].x);
#if COMPLEX
                    w[i][j].y += move(s, by, d[i][j].y, a[i][j].y, v[i][j].y);
#endif
                }
                put<IS_EVEN>(IS_STEP ? w[i] : d[i], count, out + at);
                if (!IS_STEP) continue;
                put<IS_EVEN>(a[i], count, mean + at), put<IS_EVEN>(v[i], s.momentum ? 0 : count, square + at);
            }
        }
    }
}
#define REVISION(name, TM, IS_STEP)                                                                                    \
    extern "C" __global__ void __launch_bounds__(128, 256 / (TM + 64)) name##_##TM(const Gram* tasks,                  \
        const num* small, const num* x, const num* y, num* out, const Step* step, num* mean, num* square) {            \
        __shared__ __align__(16) num s_tile[TM * (TM + 8)];                                                            \
        Gram t = tasks[blockIdx.y];                                                                                    \
        if (t.columns % 2 == 0)                                                                                        \
            revise<TM, IS_STEP, true>(t, s_tile, small, x, y, out, step, mean, square);                                \
        else                                                                                                           \
            revise<TM, IS_STEP, false>(t, s_tile, small, x, y, out, step, mean, square);                               \
    }
#define REVISIONS(TM)      \
    REVISION(step, TM, true) \
    REVISION(revise, TM, false)
REVISIONS(16)
REVISIONS(32)
REVISIONS(64)

// Averages weights, and writes them in quads along their columns and along their rows.
struct Packing {
    long long at, along_columns, along_rows;
    int k, k1, k2, unused;
};
extern "C" __global__ void average(const Packing* tasks, const Step* step, const num* w, num* mean, Quad* along_columns,
                                   Quad* along_rows) {
    Packing t = tasks[blockIdx.y];
    int quads = (t.k2 + 3) / 4, across = t.k1 * quads, columns = t.k1 * t.k2, count = (t.k + 3) / 4 * across;
    float keep = step->keep;
    for (int e = blockIdx.x * blockDim.x + threadIdx.x; e < count; e += gridDim.x * blockDim.x) {
        int k = e / across * 4, p = e % across / quads, q = e % quads * 4;
        num x[4][4];
#pragma unroll
        for (int r = 0; r < 4; r++) {
            long long at = t.at + (long long)(k + r) * columns + p * t.k2 + q;
            if (k + r < t.k && t.k2 % 4 == 0) {
                four(w + at, x[r]);
                if (keep < 1.f) {
                    num y[4];
                    four(mean + at, y);
#pragma unroll
                    for (int s = 0; s < 4; s++) y[s] = add(scale(y[s], keep), scale(x[r][s], 1.f - keep));
                    put_four(y, mean + at);
                }
                continue;
            }
#pragma unroll
            for (int s = 0; s < 4; s++) {
                bool is_in = k + r < t.k && q + s < t.k2;
                x[r][s] = is_in ? w[at + s] : zero();
                if (is_in && keep < 1.f) mean[at + s] = add(scale(mean[at + s], keep), scale(x[r][s], 1.f - keep));
            }
        }
        if (t.along_columns < 0) continue;
#pragma unroll
        for (int r = 0; r < 4; r++)
            if (k + r < t.k) along_columns[t.along_columns + (long long)(k + r) * across + e % across] = quad(x[r]);
#pragma unroll
        for (int s = 0; s < 4; s++) {
            num column[4] = {x[0][s], x[1][s], x[2][s], x[3][s]};
            if (q + s < t.k2) along_rows[t.along_rows + (long long)(k / 4) * columns + p * t.k2 + q + s] = quad(column);
        }
    }
}
