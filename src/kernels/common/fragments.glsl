// Element layout of 16 x 16 matrices, eight elements in each of 32 lanes:
// NVIDIA's fragments of mma.m16n8k16 (PTX ISA, "Matrix Fragments for
// mma.m16n8k16"). The host compares the driver's layout with it at start
// (Caps::known_fragments). LANE: lane in the subgroup.
#pragma once

#ifndef LANE
#define LANE gl_SubgroupInvocationID
#endif

// Row and column of element e in A and C matrices; column and row in B
// matrices, whose layout is the transpose of A's.
#define FRAGMENT_ROW(e) (LANE / 4 + (e) / 4 * 8)
#define FRAGMENT_COLUMN(e) (LANE % 4 * 2 + (e) % 2 + (e) / 2 % 2 * 8)

#define LANE_ROWS 2
// Element i of the four in the lane's row r.
#define ELEMENT(r, i) (4 * (r) + (i))
