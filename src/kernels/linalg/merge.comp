// A step of merging pairs of parts of a tridiagonal matrix (Cuppen, 1981; Golub
// & Van Loan, Matrix Computations, 8.4). With d the eigenvalues of both and z
// the rows of their eigenvectors beside the cut, the merge has the eigenvalues
// of diag(d) + rho z z^T, which are the roots of a rational function between
// the d. Vectors from the z for which computed roots are exact are orthogonal
// (Gu & Eisenstat, A Divide-and-Conquer Algorithm for the Symmetric Tridiagonal
// Eigenproblem, 1995). What hardly changes keeps its place: sizes do not depend
// on data.
#include "linalg/real.glsl"
#include "linalg/tridiagonal.h"
#define ARGS_BLOCK MergeArgs
#include "common/args.glsl"

#define WG_SIZE MERGE_GROUP
#define LANES (STEP == MERGE_ROOTS ? MERGE_LANES : 1)
#include "common/lanes.glsl"

layout(local_size_x = WG_SIZE) in;

// Sections of A.reals and A.ints. Sorted d, z and their places; the same of
// those that change; their weights; roots as sums of a d and an offset;
// rotations; which of those that change a place has; counts of these and of
// rotations.
const uint D = 0, Z = 1, DK = 2, ZK = 3, WEIGHT = 4, BASE = 5, OFFSET = 6,
           COS = 7, SIN = 8;
const uint PLACE = 0, PLACE_K = 1, INDEX = 2, ROT_P = 3, ROT_Q = 4, COUNTS = 5;
const uint NONE = ~0u;

uint64_t first; // of the merge's items in each section
uint used; // rows that are not padding
T rho;

T real(uint section, uint i) {
  return load(A.reals, uint64_t(section) * A.total + (first + i));
}
void put_real(uint section, uint i, T x) {
  store(A.reals, uint64_t(section) * A.total + (first + i), x);
}
uint whole(uint section, uint i) {
  return load(A.ints, uint64_t(section) * A.total + (first + i));
}
void put_whole(uint section, uint i, uint x) {
  store(A.ints, uint64_t(section) * A.total + (first + i), x);
}
// Entries that change, at most all; rotations.
uint changing() {
  return min(whole(COUNTS, 0), A.size);
}
uint rotations() {
  return min(whole(COUNTS, 1), A.size);
}

// Four i from 0 to n - 1 at once, of a team's, `more` unless that is exceeded:
// loads need not wait for each other.
#define FEW 4
#define OVER(n, BODY)                                                         \
  for (uint start = LANE; start - LANE < n; start += FEW * LANES) {           \
    [[unroll]] for (uint few = 0; few < FEW; ++few) {                         \
      uint i = min(start + few * LANES, n - 1);                               \
      bool more = start + few * LANES < n;                                    \
      BODY                                                                    \
    }                                                                         \
  }

#if STEP == MERGE_SORT
// All items have an order, so that places are a permutation.
T ordered(uint i) {
  T x = load(A.values, first + i);
  return is_finite(x) ? x : T(INF_F);
}

void step_of(uint i, T beside) {
  if (i < used) {
    T d = ordered(i);
    uint rank = 0;
    for (uint k = 0; k < used; ++k) {
      T other = ordered(k);
      rank += other < d || (other == d && k < i) ? 1 : 0;
    }
    // The last row of one matrix, then the first of the other.
    uint h = A.size / 2;
    T z = load(A.q, first * h + ((h - 1) * h + i)) * sqrt(T(0.5));
    put_real(D, rank, d);
    put_real(Z, rank, i >= h && beside < 0.0 ? -z : z);
    put_whole(PLACE, rank, i);
  }
}

#elif STEP == MERGE_DEFLATE
shared T d_[WG_SIZE], z_[WG_SIZE];
shared uint place_[WG_SIZE];

T tolerance;
T d_last, z_last; // of the last entry that may change
uint last = NONE, kept = 0, turned = 0; // its place; how many before; rotations

void keep() {
  put_real(DK, kept, d_last);
  put_real(ZK, kept, z_last);
  put_whole(PLACE_K, kept, last);
  put_whole(INDEX, last, kept);
  ++kept;
}
void deflate(uint place, T d) {
  store(A.values, first + place, d);
  put_whole(INDEX, place, NONE);
}

// The next entry in order: one of little weight does not change, and of two that
// are close a rotation takes one's weight.
void consider(T d, T z, uint place) {
  if (!(rho * abs(z) > tolerance)) {
    deflate(place, d);
    return;
  }
  if (last != NONE) {
    T both = sqrt(z * z + z_last * z_last), c = z / both, s = -z_last / both;
    if (abs((d - d_last) * c * s) > tolerance) {
      keep();
    } else {
      put_real(COS, turned, c);
      put_real(SIN, turned, s);
      put_whole(ROT_P, turned, last);
      put_whole(ROT_Q, turned, place);
      ++turned;
      deflate(last, d_last * c * c + d * s * s);
      d = d_last * s * s + d * c * c;
      z = both;
    }
  }
  d_last = d;
  z_last = z;
  last = place;
}

void take_all(uint i) {
  for (uint k = used + i; k < A.size; k += WG_SIZE) {
    put_whole(INDEX, k, NONE);
  }
  T most = used > 0 ? max(abs(real(D, 0)), abs(real(D, used - 1))) : T(0.0);
  tolerance = 4.0 * EPSILON * max(most, T(1.0)); // as LAPACK's laed2
  for (uint start = 0; start < used; start += WG_SIZE) {
    uint k = min(start + i, used - 1);
    d_[i] = real(D, k);
    z_[i] = real(Z, k);
    place_[i] = whole(PLACE, k);
    barrier();
    for (uint k = 0; i == 0 && k < min(used - start, WG_SIZE); ++k) {
      consider(d_[k], z_[k], place_[k]);
    }
    barrier();
  }
  if (i == 0) {
    if (last != NONE) {
      keep();
    }
    put_whole(COUNTS, 0, kept);
    put_whole(COUNTS, 1, turned);
  }
}

void step_of(uint i, T beside) {
  if (i < WG_SIZE) { // uniform
    take_all(i);
  }
}

#elif STEP == MERGE_ROOTS
const uint MOST_TURNS = 100; // 3 to 5 are usual, 25 were seen
#define PLUS(a, b) ((a) + (b))
TEAM_REDUCE(team_sum, T2, PLUS, team_parts)
TEAM_REDUCE_OF(WG_SIZE, group_max, uint, max, group_parts)

T2 sums, slopes; // over d up to the root's, and above; derivatives

void evaluate(T base, T x, uint root, uint n) {
  sums = T2(0.0), slopes = T2(0.0);
  OVER(n, {
    T z = real(ZK, i);
    T r = (more ? z : T(0.0)) / ((real(DK, i) - base) - x);
    bool left = i <= root;
    sums += left ? T2(z * r, 0.0) : T2(0.0, z * r);
    slopes += left ? T2(r * r, 0.0) : T2(0.0, r * r);
  })
  sums = team_sum(sums);
  slopes = team_sum(slopes);
}

// False for NaN: compilers may turn comparisons around.
bool is_between(T x, T low, T high) {
  return is_finite(x) && x > low && x < high;
}

// The smaller root of c x^2 - a x + b.
T root_of(T c, T a, T b) {
  T root = sqrt(max(a * a - 4.0 * b * c, T(0.0)));
  return a <= 0.0 ? (a - root) / (2.0 * c) : 2.0 * b / (a + root);
}

// By rational functions with both neighbouring poles (Li, Solving Secular
// Equations Stably and Efficiently, 1993), between bounds, as an offset from
// the nearest d. The last root has one pole. Teams go on until all end, so that
// their sums are in uniform control flow.
void find(uint root, uint n, bool going) {
  bool ends = root + 1 == n, writes = going && LANE == 0;
  uint beside = ends ? root : root + 1;
  T d = real(DK, root), z0 = real(ZK, root), after = real(DK, beside);
  T z1 = ends ? T(0.0) : real(ZK, beside), square = 0.0;
  OVER(n, square += more ? real(ZK, i) * real(ZK, i) : T(0.0);)
  square = team_sum(T2(square)).x;
  T gap = ends ? rho * square : after - d, inverse = 1.0 / rho, mid = gap / 2.0;
  evaluate(d, mid, root, n);
  T f = inverse + sums.x + sums.y;
  bool right = f < 0.0 && !ends; // nearer to the next d
  T base = right ? after : d;
  T pole0 = right ? -gap : T(0.0), pole1 = right ? T(0.0) : gap;
  T low = right ? -mid : f < 0.0 ? mid : T(0.0);
  T high = right ? T(0.0) : f < 0.0 ? gap : mid;
  z0 *= z0;
  z1 *= z1;
  T rest = f + z0 / mid - z1 / mid;
  T x = right ? root_of(rest, z0 + z1 - rest * gap, -z1 * gap)
              : root_of(rest, z0 + z1 + rest * gap, z0 * gap);
  x = is_between(x, low, high) ? x : (low + high) / 2.0;
  T before = abs(f);
  for (uint turn = 0; turn < MOST_TURNS; ++turn) {
    evaluate(base, x, root, n);
    f = inverse + sums.x + sums.y;
    low = f < 0.0 ? x : low;
    high = f < 0.0 ? high : x;
    bool done = abs(f) <= 8.0 * EPSILON * (inverse + abs(sums.x) + abs(sums.y));
    T a0 = pole0 - x, a1 = pole1 - x;
    T next = x +
        root_of(f - a0 * slopes.x - a1 * slopes.y,
                (a0 + a1) * f - a0 * a1 * (slopes.x + slopes.y),
                a0 * a1 * f);
    bool slow = turn % 3 == 2 && 4.0 * abs(f) > before;
    before = abs(f);
    if (slow || !is_between(next, low, high)) {
      T most = max(abs(low), abs(high)), least = min(abs(low), abs(high));
      T middle = sqrt(most) * sqrt(least);
      next = least > 0.0 && most > 4.0 * least
          ? (high > 0.0 ? middle : -middle)
          : (low + high) / 2.0;
    }
    // Or low and high are neighbouring numbers.
    going = going && !done && is_between(next, low, high);
    x = going ? next : x;
    if (group_max(going ? 1 : 0) == 0) {
      break;
    }
  }
  if (writes) {
    put_real(BASE, root, base);
    put_real(OFFSET, root, x);
    store(A.values, first + whole(PLACE_K, root), base + x);
  }
}

void step_of(uint i, T beside) {
  uint n = max(changing(), 1), root = i / LANES;
  find(min(root, n - 1), n, root < changing());
}

#elif STEP == MERGE_WEIGHTS
void step_of(uint own, T beside) {
  uint n = changing();
  if (own < n) {
    T d = real(DK, own), square = 1.0;
    OVER(n, {
      T up = (real(BASE, i) - d) + real(OFFSET, i);
      bool last = i + 1 == n;
      T down = last ? T(1.0) : real(DK, i < own ? i : min(i + 1, n - 1)) - d;
      square *= more ? up / down : T(1.0);
    })
    T weight = sqrt(abs(square));
    put_real(WEIGHT, own, real(ZK, own) < 0.0 ? -weight : weight);
  }
}

#else
void write_column(uint own) {
  uint n = changing(), index = whole(INDEX, own);
  bool changes = index != NONE;
  T base = changes ? real(BASE, index) : T(0.0);
  T x = changes ? real(OFFSET, index) : T(0.0), sum = 0.0;
  if (changes) {
    OVER(n, {
      T v = real(WEIGHT, i) / ((real(DK, i) - base) - x);
      sum += more ? v * v : T(0.0);
    })
  }
  T scale = changes ? 1.0 / sqrt(sum) : T(1.0);
  uint64_t column = first * A.size + own;
  OVER(A.size, {
    uint k = whole(INDEX, i);
    bool inside = changes && k != NONE;
    uint c = inside ? k : 0;
    T v = real(WEIGHT, c) / ((real(DK, c) - base) - x) * scale;
    if (more) {
      T other = i == own ? 1.0 : 0.0;
      store(A.u, column + uint64_t(i) * A.size, inside ? v : other);
    }
  })
  for (uint t = rotations(); t > 0; --t) {
    T c = real(COS, t - 1), s = real(SIN, t - 1);
    uint64_t p = column + uint64_t(whole(ROT_P, t - 1)) * A.size;
    uint64_t q = column + uint64_t(whole(ROT_Q, t - 1)) * A.size;
    T v = load(A.u, p), w = load(A.u, q);
    store(A.u, p, c * v - s * w);
    store(A.u, q, s * v + c * w);
  }
}

void step_of(uint i, T beside) {
  if (i < A.size) {
    write_column(i);
  }
}
#endif

void main() {
  uint merge = group_index() / A.groups, merges = A.rows / A.size;
  first = uint64_t(merge) * A.size;
  uint at = merge % merges * A.size; // in its matrix
  used = A.n > at ? min(A.n - at, A.size) : 0;
  if (merge < A.count) { // uniform
    uint cut = at + A.size / 2;
    uint64_t diagonal = uint64_t(merge / merges) * 2 * A.n;
    T e = load(A.diagonals, diagonal + A.n + min(cut, A.n) - 1);
    e = cut < A.n ? e : T(0.0);
    rho = 2.0 * abs(e);
    step_of(group_index() % A.groups * WG_SIZE + gl_LocalInvocationIndex, e);
  }
}
