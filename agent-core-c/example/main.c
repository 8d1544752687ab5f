/* An agent in C: checks a policy, steps over a few dozen patches, and says what went in and what came
 * out, every float as its bits, so that a host can take the same steps and compare.
 *
 *     step <now_us> <position> <first> <last> <field ...> <target ...> -> <force> <velocity> <mode>
 *     idle <now_us> -> <force> <velocity> <mode>
 *     reset
 *     stack <bytes used at most>
 */
#include "agent_core.h"
#include "board.h"

enum { CELLS = 64, WORKSPACE = 1024, STEPS = 48 };

static struct agent agent;
static float workspace[WORKSPACE];
static float field[CELLS], target[CELLS];

static void print_number(uint64_t number, unsigned base) {
    char digits[24];
    char *at = digits + sizeof digits - 1;
    *at = 0;
    do {
        *--at = "0123456789abcdef"[number % base];
        number /= base;
    } while (number != 0);
    board_print(at);
}

static void print_floats(const float *values, size_t count) {
    for (size_t k = 0; k < count; k++) {
        uint32_t bits;
        __builtin_memcpy(&bits, &values[k], sizeof bits);
        board_print(" ");
        print_number(bits, 16);
    }
}

static void print_action(const struct agent_action *action) {
    board_print(" ->");
    print_floats(&action->force, 1);
    print_floats(action->velocity, 2);
    board_print(" ");
    print_number((uint64_t)action->mode, 10);
    board_print("\n");
}

/* Between -1 and 1, the same numbers each time. */
static float noise(void) {
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u; /* Numerical Recipes' generator */
    return (float)(state >> 8) / 8388608.0f - 1.0f;
}

static int fail(const char *what, agent_status status) {
    board_print("error: ");
    board_print(what);
    board_print(": ");
    board_print(agent_status_text(status));
    board_print("\n");
    return 1;
}

static void step(const struct agent_policy *policy, unsigned number, uint64_t now_us) {
    size_t cells = policy->patch_cells;
    for (size_t k = 0; k < cells; k++) {
        field[k] = 2.0f * noise();
        target[k] = noise();
    }
    if (number % 8 == 5) /* a broken sensor, the agent's own: inside the domain everywhere */
        field[1 + policy->window / 2] = __builtin_nanf("");
    float share = (float)number / STEPS;
    float position[2] = {policy->low[0] + share * (policy->high[0] - policy->low[0]), 0.0f};
    /* A wall to the left at first, to the right at last. */
    struct agent_patch patch = {
        .field = field,
        .field_length = cells,
        .target = policy->target ? target : NULL,
        .target_length = policy->target ? cells : 0,
        .inside = {{.first = number < 4 ? 2 : 0,
                    .last = (uint16_t)(number >= STEPS - 4 ? cells - 3 : cells - 1)}},
    };
    board_print("step ");
    print_number(now_us, 10);
    print_floats(position, 2);
    board_print(" ");
    print_number(patch.inside[0].first, 10);
    board_print(" ");
    print_number(patch.inside[0].last, 10);
    print_floats(patch.field, patch.field_length);
    print_floats(patch.target, patch.target_length);

    struct agent_action action;
    agent_status status = agent_step(&agent, &patch, position, now_us, &action);
    if (status != AGENT_OK)
        fail("a step was refused", status);
    else
        print_action(&action);
}

static void idle(uint64_t now_us) {
    struct agent_action action;
    agent_idle(&agent, now_us, &action);
    board_print("idle ");
    print_number(now_us, 10);
    print_action(&action);
}

/* What must be refused is, with the right word. */
static int refusals(void) {
    struct agent_action action;
    char sentence[128];
    uint64_t start = 0;
    __builtin_memcpy(&start, board_policy, sizeof start);
    const struct {
        const char *what;
        agent_status given, expected;
    } cases[] = {
        {"an agent that is none yet", agent_idle(&agent, 0, &action), AGENT_NOT_READY},
        {"no policy", agent_init(&agent, NULL, 64, workspace, WORKSPACE), AGENT_NULL},
        {"half a policy", agent_init(&agent, board_policy, 64, workspace, WORKSPACE),
         AGENT_POLICY_TRUNCATED},
        {"bytes that are no policy",
         agent_init(&agent, board_policy + 1, board_policy_length - 1, workspace, WORKSPACE),
         AGENT_NOT_A_POLICY},
        {"too little memory", agent_init(&agent, board_policy, board_policy_length, workspace, 8),
         AGENT_WORKSPACE_TOO_SMALL},
        {"a sentence", agent_policy_explain(&start, sizeof start, sentence, sizeof sentence),
         AGENT_POLICY_TRUNCATED},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        if (cases[k].given != cases[k].expected)
            return fail(cases[k].what, cases[k].given);
    board_print("refused, as it should be: ");
    board_print(sentence);
    board_print("\n");
    return 0;
}

int main(void) {
    if (refusals() != 0)
        return 1;

    struct agent_policy policy;
    agent_status status = agent_policy_query(board_policy, board_policy_length, &policy);
    if (status != AGENT_OK)
        return fail("the policy", status);
    if (policy.axes != 1 || policy.wide_cells != 0 || policy.patch_cells > CELLS) {
        board_print("error: the policy is not for this example: it is on a line\n");
        return 1;
    }
    status = agent_init(&agent, board_policy, board_policy_length, workspace, WORKSPACE);
    if (status != AGENT_OK)
        return fail("the agent", status);

    uint64_t now_us = 0;
    idle(now_us); /* waiting */
    for (unsigned number = 0; number < STEPS; number++) {
        now_us += policy.period_us;
        step(&policy, number, now_us);
        if (number == STEPS / 3) {
            /* Patches stay out: the agent is late, holds, and fails safe. */
            uint64_t last = now_us;
            while (!agent_is_late(&agent, now_us))
                now_us += policy.period_us;
            for (; now_us < last + policy.fail_safe_us; now_us += policy.period_us)
                idle(now_us);
            idle(now_us);
        }
        if (number == STEPS / 2) {
            agent_reset(&agent);
            board_print("reset\n");
            idle(now_us);
        }
    }
    board_print("stack ");
    print_number(board_stack_used(), 10);
    board_print("\ndone\n");
    return 0;
}
