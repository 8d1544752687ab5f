/* The policy in flash, read in place: weights are on a 16-byte boundary of it. */
    .section .rodata.board_policy, "a"
    .balign 16
    .global board_policy
board_policy:
    .incbin POLICY
end:
    .balign 4
    .global board_policy_length
board_policy_length:
    .word end - board_policy
