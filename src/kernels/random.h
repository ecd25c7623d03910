#include "common/interface.h"

BEGIN_INTERFACE

struct RandomArgs {
  PTR(Ptr_u32, keys)
  PTR(Ptr_u8, y)
  uint64_t num_keys, bytes_per_key, pairs_per_key;
  uint odd; // a key's last pair has one word
};

#ifdef __cplusplus
struct RandomVariant {
  bool WORDS; // a key's bytes are whole words
  bool LARGE;
  KERNEL_VARIANT("random", WORDS, LARGE)
};
#endif

END_INTERFACE
