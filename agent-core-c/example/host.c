/* A machine with an operating system in place of a board. */
#include "board.h"

#include <stdio.h>

void board_print(const char *text) { fputs(text, stdout); }

/* Nobody has marked this stack. */
size_t board_stack_used(void) { return 0; }
