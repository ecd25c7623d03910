// q in shared memory as vectors of four floats, for decode.comp with loads of E
// items. Vectors that a cluster's lanes read together are adjacent; items
// beyond D are zero. QUERY_UNITS are factors of each four.
#pragma once

// Rounds to T as a separate multiplication would.
#ifdef T_IS_bf16
#define ROUND_Q round_bf16
#elif defined(T_IS_f16)
#define ROUND_Q round_f16
#else
#define ROUND_Q
#endif

#define FOURS (E / 4)
shared vec4 queries[ROWS * CHUNKS * FOURS * TPK];

// Items from 4 f on in the lane's chunk j of row r.
#define QUERY_FOUR(r, j, f)                                                   \
  queries[(((r) * CHUNKS + (j)) * FOURS + (f)) * TPK + MEMBER]

void share_queries(Rows w) {
  const uint fours = CHUNKS * FOURS * TPK;
  for (uint n = gl_LocalInvocationIndex; n < ROWS * fours; n += WG) {
    uint d = (n / (FOURS * TPK) % CHUNKS * TPK + n % TPK) * E +
        n / TPK % FOURS * 4;
    // Rows out of range repeat the last one.
    Row row = row_of(w, min(w.row0 + n / fours, last_row()));
    T_PTR at = MOVED(
        T,
        A.q,
        int64_t(w.batch) * A.q_strides.batch +
            int64_t(row.head) * A.q_strides.head +
            int64_t(row.query) * A.q_strides.row);
    vec4 x = vec4(0.0);
    if (d < D) {
      x = vec4(load(at, d), load(at, d + 1), load(at, d + 2), load(at, d + 3));
    }
#if SCALED
    x *= load(A.factor, 0);
    x = vec4(ROUND_Q(x.x), ROUND_Q(x.y), ROUND_Q(x.z), ROUND_Q(x.w));
#endif
    queries[n] = x * QUERY_UNITS;
  }
  barrier();
}
