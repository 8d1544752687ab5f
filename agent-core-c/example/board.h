/* What the example needs of a board. */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>

/* Writes a string to whoever watches. */
void board_print(const char *text);

/* Bytes of stack used at most since the start. */
size_t board_stack_used(void);

/* The policy in flash, aligned for reading in place. */
extern const unsigned char board_policy[];
extern const size_t board_policy_length;

#endif
