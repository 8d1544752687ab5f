/* Start-up on the emulated Arm MPS2+ AN386 (Cortex-M4F), without any library. */
#include "board.h"

#include <stdint.h>

int main(void);

extern uint32_t stack_top, data_load, data_start, data_end, bss_start, bss_end;

/* What the memory below the stack holds until the stack gets there. */
enum { UNUSED = 0x5aa5c33c };

size_t board_stack_used(void) {
    const uint32_t *deepest = &bss_end;
    while (*deepest == UNUSED)
        deepest++;
    return (size_t)((const char *)&stack_top - (const char *)deepest);
}

/* Semihosting: the debugger, here the emulator, does what the board cannot. */
static int semihosting(int operation, const void *argument) {
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

enum { SYS_WRITE0 = 0x04, SYS_EXIT_EXTENDED = 0x20, APPLICATION_EXIT = 0x20026 };

void board_print(const char *text) { semihosting(SYS_WRITE0, text); }

static void leave(int code) {
    const uint32_t block[2] = {APPLICATION_EXIT, (uint32_t)code};
    semihosting(SYS_EXIT_EXTENDED, block);
    for (;;) {
    }
}

static void fault(void) {
    board_print("error: the core faulted\n");
    leave(2);
}

/* Until the coprocessor access register lets it, a floating-point instruction faults: nothing here
 * may use one before. */
static void reset(void) {
    volatile uint32_t *const cpacr = (uint32_t *)0xe000ed88;
    *cpacr |= 0xfu << 20;
    __asm__ volatile("dsb\n isb" ::: "memory");

    for (uint32_t *from = &data_load, *to = &data_start; to != &data_end;)
        *to++ = *from++;
    for (uint32_t *to = &bss_start; to != &bss_end;)
        *to++ = 0;
    const uint32_t *const here = __builtin_frame_address(0);
    for (uint32_t *to = &bss_end; to < here - 8; to++) /* clear of this function's own */
        *to = UNUSED;
    leave(main());
}

/* Stack, reset, then the exceptions up to the system tick. */
__attribute__((section(".vectors"))) const void *const vectors[16] = {
    &stack_top, reset, fault, fault, fault, fault, fault, 0, 0, 0, 0, fault, fault, 0, fault, fault,
};
