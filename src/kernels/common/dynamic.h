// Offset of a dynamic slice that is out of bounds.
#ifndef DYNAMIC_H
#define DYNAMIC_H

#ifndef __cplusplus
#define NO_OFFSET int64_t(0x8000000000000000ul)
#endif

#endif
