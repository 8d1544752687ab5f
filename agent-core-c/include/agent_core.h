/* agent-core for firmware in C.
 *
 * A frozen policy is read where it lies, a local patch of field becomes a force and a velocity, and
 * when there is no valid patch the agent holds, then fails safe. No heap, no system calls, no
 * variables of its own: all memory is the caller's, in structures that this header gives the size
 * of. The same policy and the same inputs give the same bits on every machine.
 *
 *     static struct agent agent;
 *     static float workspace[512];
 *
 *     agent_status status = agent_init(&agent, policy, policy_length, workspace, 512);
 *     if (status != AGENT_OK) puts(agent_status_text(status));
 *     for (;;) {
 *         struct agent_action action;
 *         if (patch_came(&patch, position)) agent_step(&agent, &patch, position, now(), &action);
 *         else if (agent_is_late(&agent, now())) agent_idle(&agent, now(), &action);
 *         else continue;
 *         actuate(action.force, action.velocity);
 *     }
 *
 * What can be told from an argument is checked: null, alignment, lengths, an agent that was never
 * initialised. What is refused has no effect, but that an action asked for is zero and that an
 * agent whose initialisation is refused is none. That memory is there for the length stated, and
 * that two calls for one agent do not overlap in time, is up to the caller. Different agents can
 * be used from different threads or interrupts.
 */
#ifndef AGENT_CORE_H
#define AGENT_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a call returns. Not an enum, whose size depends on a compiler's options. */
typedef int32_t agent_status;
enum {
    AGENT_OK = 0,
    AGENT_NULL = 1,       /* a pointer that must not be null is */
    AGENT_MISALIGNED = 2, /* a pointer is not aligned for what it points to */
    AGENT_LENGTH = 3,     /* a length is more than memory can hold */
    AGENT_NOT_READY = 4,  /* no agent_init of this agent has succeeded */

    /* Of a policy; agent_policy_explain has the details. */
    AGENT_POLICY_TRUNCATED = 16,
    AGENT_POLICY_TRAILING_BYTES = 17, /* more bytes than the policy says it has */
    AGENT_NOT_A_POLICY = 18,
    AGENT_POLICY_FORMAT = 19,     /* of a format this reader does not know */
    AGENT_POLICY_CHECKSUM = 20,   /* damaged */
    AGENT_POLICY_MISALIGNED = 21, /* not on a 4-byte boundary in memory */
    AGENT_POLICY_HEADER = 22,     /* its header cannot be decoded */
    AGENT_POLICY_FIELD = 23,      /* a field has a value that cannot be run */
    AGENT_POLICY_WEIGHT_COUNT = 24,
    AGENT_POLICY_WEIGHT = 25, /* a weight is not finite */

    AGENT_WORKSPACE_TOO_SMALL = 32,
    AGENT_SELF_TEST = 33 /* the policy does not do here what it did where it was written */
};

/* A sentence for a person; for any number. Static memory. */
const char *agent_status_text(agent_status status);

/* Memory for one agent, about 0.8 kB, wherever the caller wants it. Not to be copied or looked into.
 * Memory that agent_init was never called on must be zero, as static memory is. */
#define AGENT_WORDS 112
struct agent {
    uint64_t words[AGENT_WORDS];
};

/* What a policy asks of its caller, and what it promises. */
struct agent_policy {
    size_t workspace_length; /* floats of working memory */
    size_t patch_cells;      /* floats of a patch's field, and of its target if it has one */
    size_t wide_cells;       /* the same of the wide view; 0: there is none */
    uint32_t target;         /* 1: patches carry a target; 0: the target is zero */
    uint32_t axes;           /* 1 or 2 */
    uint32_t window;         /* cells of the window along an axis, without the halo */
    uint32_t period_us;      /* nominal time between two steps */
    uint32_t late_us;        /* without valid input for longer than this the agent holds */
    uint32_t fail_safe_us;   /* after this long it fails safe */
    float force_limit;       /* no force is larger; 0: the agent has none */
    float velocity_limit;    /* no velocity along an axis is larger; 0: the agent does not move */
    float low[2];            /* the domain's lowest coordinate per axis */
    float high[2];           /* its highest */
    uint32_t crc;            /* names the policy, with its length */
};

/* Checks the policy in `length` bytes and tells about it. */
agent_status agent_policy_query(const void *policy, size_t length, struct agent_policy *facts);

/* Checks the policy in `length` bytes and writes the whole sentence about what is wrong with it:
 * which field, how many bytes. As much of it as fits `room` bytes, always with a final NUL if there
 * is room for one. 6 to 9 kB of code, which is not linked where this is not called. */
agent_status agent_policy_explain(const void *policy, size_t length, char *text, size_t room);

/* First and last cell, both included. */
struct agent_span {
    uint16_t first;
    uint16_t last;
};

/* The field around one agent: its window and one cell more on each side. With two axes row after
 * row. An array that the policy does not ask for is null with length 0. */
struct agent_patch {
    const float *field; /* what the sensors read */
    size_t field_length;
    const float *target; /* what they should read */
    size_t target_length;
    const float *wide_field; /* means over equal blocks of the whole domain */
    size_t wide_field_length;
    const float *wide_target;
    size_t wide_target_length;
    struct agent_span inside[2]; /* cells of the patch inside the domain, per axis; those beyond a
                                    wall hold anything */
};

/* An agent's state. */
enum {
    AGENT_WAITING = 0,    /* no valid patch yet: zero action */
    AGENT_ACTIVE = 1,     /* acting on a valid patch */
    AGENT_HOLDING = 2,    /* input invalid or late: the last action, fading */
    AGENT_FAILED_SAFE = 3 /* too long without valid input, or a check failed: zero action */
};

/* What an agent does until its next step; always finite and within the policy's limits. */
struct agent_action {
    float force;       /* amplitude of the agent's actuation */
    float velocity[2]; /* per axis; unused axes are 0 */
    int32_t mode;      /* the state it comes from */
};

/* Checks a policy and makes an agent that waits for its first patch. The policy and the working
 * memory, of agent_policy.workspace_length floats or more, belong to the agent from now on: the one
 * must stay as it is, the other be left alone. Agents can share a policy, not working memory. */
agent_status agent_init(struct agent *agent, const void *policy, size_t length, float *workspace,
                        size_t workspace_length);

/* One control step on what the agent sees at `position` (unused axes are 0), `now_us` on its clock.
 * Input that is not of the policy's shape, or not finite, is no error but an invalid patch: the
 * agent holds. */
agent_status agent_step(struct agent *agent, const struct agent_patch *patch,
                        const float position[2], uint64_t now_us, struct agent_action *action);

/* What to do at `now_us` when no patch came. */
agent_status agent_idle(struct agent *agent, uint64_t now_us, struct agent_action *action);

/* Whether the last valid patch is so old that agent_idle is due; true also for what is no agent. */
bool agent_is_late(struct agent *agent, uint64_t now_us);

/* Forgets everything but the policy. */
agent_status agent_reset(struct agent *agent);

#ifdef __cplusplus
}
#endif

#endif
