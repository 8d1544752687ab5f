/* One agent of a swarm that holds the temperature of a rod.
 *
 * The policy, heat-1d, is in policy.h; another one becomes such a file by
 *     xxd -i my.policy
 * with `alignas(16) const` in front of the array. What sensors and actuator are is yours to fill in. */
#include <agent_core.h>

#include "policy.h"

static struct agent agent;
static float workspace[1024];
static float field[64], target[64];
static struct agent_policy facts;
static bool ready;

/* Reads the sensors around the agent into `field`; false if there is nothing new. */
static bool sense(void) {
    for (size_t k = 0; k < facts.patch_cells; k++)
        field[k] = (float)analogRead(A0) / 1024.0f;
    return true;
}

/* Drives the heater: `share` between -1 and 1. */
static void drive(float share) { analogWrite(9, (int)(127.5f + 127.5f * share)); }

void setup() {
    Serial.begin(115200);
    agent_status status = agent_policy_query(policy, sizeof policy, &facts);
    if (status == AGENT_OK && facts.patch_cells <= 64)
        status = agent_init(&agent, policy, sizeof policy, workspace, 1024);
    ready = status == AGENT_OK && facts.patch_cells <= 64;
    Serial.println(agent_status_text(status));
}

void loop() {
    if (!ready)
        return;
    /* micros() starts again after 71 minutes; the agent's clock must not. */
    static uint32_t last = 0;
    static uint64_t now = 0;
    uint32_t us = micros();
    now += (uint32_t)(us - last);
    last = us;

    struct agent_action action;
    if (sense()) {
        struct agent_patch patch = {};
        patch.field = field;
        patch.field_length = facts.patch_cells;
        if (facts.target) {
            patch.target = target;
            patch.target_length = facts.patch_cells;
        }
        patch.inside[0].last = (uint16_t)(facts.patch_cells - 1);
        const float position[2] = {0.5f, 0.0f};
        agent_step(&agent, &patch, position, now, &action);
    } else if (agent_is_late(&agent, now)) {
        agent_idle(&agent, now, &action);
    } else {
        return;
    }
    drive(facts.force_limit > 0 ? action.force / facts.force_limit : 0.0f);
    delay(facts.period_us / 1000);
}
