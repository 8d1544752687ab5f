/* The policy in flash, read in place: weights are on a 16-byte boundary of it. */
    .section .rodata.board_policy, "a"
    .balign 16
    .global board_policy
board_policy:
    .incbin POLICY
end:
    .balign 8
    .global board_policy_length
board_policy_length:
#if __SIZEOF_SIZE_T__ == 8
    .quad end - board_policy
#else
    .long end - board_policy
#endif
    .section .note.GNU-stack, "", %progbits
