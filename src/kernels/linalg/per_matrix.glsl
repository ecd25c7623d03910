// A workgroup for each matrix, or GROUPS of them. A folded grid has more.
#pragma once

#ifdef GROUPS
void work(uint matrix, uint group);
void main() {
  uint matrix = group_index() / GROUPS;
  if (matrix < A.count) { // uniform
    work(matrix, group_index() % GROUPS);
  }
}
#else
void work(uint matrix);
void main() {
  if (group_index() < A.count) { // uniform
    work(group_index());
  }
}
#endif
