// The terms of an episode, from what its steps left behind: a workgroup for each step, then one that adds the
// steps up.

var<private> sums: array<f32, TERMS>;

fn mark(step: u32, term: u32) -> u32 {
    return episode * SCRATCH + MARKS_IN_SCRATCH + step * TERMS + term;
}

@compute @workgroup_size(THREADS)
fn score(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    begin_in(group, thread);
    let step = group.y;
    score_agents(step);
    score_errors(step);
    score_beside(step);
    for (var k = 0u; k < TERMS; k++) {
        let sum = sum_of(sums[k]);
        if tid == 0u {
            scratch[mark(step, k)] = sum;
        }
    }
}

@compute @workgroup_size(THREADS)
fn add_scores(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    begin_in(group, thread);
    let at = episode * TERMS;
    for (var k = 0u; k < TERMS; k++) {
        var part = 0.0;
        for (var step = tid; step < HORIZON; step += THREADS) {
            part += scratch[mark(step, k)];
        }
        let sum = sum_of(part);
        if tid == 0u {
            scores[at + k] = sum * given(SHARES_IN_EPISODE + k);
        }
    }
    if tid == 0u {
        scores[at + ORDER] = log(1.0 + scores[at + FINAL] / ORDER_FLOOR);
    }
}

// Errors after a step.
fn score_errors(step: u32) {
    var sum = 0.0;
    for (var j = tid; j < VALUES; j += THREADS) {
        let e = root(j) * (states[state_of(step + 1u) + j] - target_at(step + 1u, j));
        sum += e * e;
    }
    if step >= SCORED_FROM {
        sums[TRACK] = sum;
    }
    if step + LATE_STEPS >= HORIZON {
        sums[LATE] = sum;
    }
    if step + 1u == HORIZON {
        sums[FINAL] = sum;
    }
}

// What agents did in a step, and where that took them.
fn score_agents(step: u32) {
    let there = state_of(step + 1u);
    for (var agent = tid; agent < swarm; agent += THREADS) {
        if FORCES > 0u {
            let u = done(step, agent, 0u);
            sums[EFFORT] += u * u;
        }
        if DIRECTIONS == 0u {
            continue;
        }
        let v = velocity_done(step, agent);
        sums[EFFORT] += VELOCITY_EFFORT * dot(v, v);
        if step > 0u {
            let change = v - velocity_done(step - 1u, agent);
            sums[ACCELERATION] += dot(change, change);
        }
        let here = place(there, agent);
        for (var axis = 0u; axis < AXES; axis++) {
            let deep = intrusion(here[axis], axis);
            sums[BOUND] += deep * deep;
        }
        if SAFE_DISTANCE > 0.0 {
            for (var other = 0u; other < swarm; other++) {
                let distance = length(here - place(there, other));
                // Two agents at the same place do not count: they have no direction to part in.
                if distance < SAFE_DISTANCE && distance > 0.0 {
                    sums[COLLISION] += (SAFE_DISTANCE - distance) * (SAFE_DISTANCE - distance);
                }
            }
        }
        for (var k = 0u; k < DISCS; k++) {
            let distance = length(here - disc_centre(k));
            if distance < disc_reach(k) && distance > 0.0 {
                sums[OBSTACLE] += (disc_reach(k) - distance) * (disc_reach(k) - distance);
            }
        }
    }
}
