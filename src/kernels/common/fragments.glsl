// Where the eight elements lie that each of 32 lanes has of a 16 x 16 matrix:
// NVIDIA's fragments for mma.m16n8k16 (PTX ISA, "Matrix Fragments for
// mma.m16n8k16"), which the host compares with the driver's at start
// (Caps::known_fragments). LANE: of the subgroup.
#ifndef FRAGMENTS_GLSL
#define FRAGMENTS_GLSL

#ifndef LANE
#define LANE gl_SubgroupInvocationID
#endif

// A lane's row and column of A and C matrices at element e; its column and row of
// B matrices, which lie as the transpose of A.
#define FRAGMENT_ROW(e) (LANE / 4 + (e) / 4 * 8)
#define FRAGMENT_COLUMN(e) (LANE % 4 * 2 + (e) % 2 + (e) / 2 % 2 * 8)

#define LANE_ROWS 2
// Element i of the four in the lane's row r.
#define ELEMENT(r, i) (4 * (r) + (i))

#endif
