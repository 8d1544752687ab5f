// Terms of the loss that agents are scored by, and how agents move.

fn action(agent: u32, k: u32) -> f32 {
    return pool[ACTION_AT + agent * ACTIONS + k];
}

fn position(agent: u32, axis: u32) -> f32 {
    return pool[POSITION_AT + agent * AXES + axis];
}

// How far a coordinate is inside a margin, signed by the side.
fn intrusion(x: f32, axis: u32) -> f32 {
    return x - clamp(x, free_low(axis), free_high(axis));
}

fn velocity(agent: u32) -> vec2<f32> {
    var v = vec2<f32>();
    for (var axis = 0u; axis < DIRECTIONS; axis++) {
        v[axis] = VELOCITY_MAX * action(agent, FORCES + axis);
    }
    return capped(v);
}

// The velocity that an agent had in an earlier step.
fn past_velocity(step: u32, agent: u32) -> vec2<f32> {
    let row = row_of(step, agent) * TRACE + ACTION_IN_TRACE;
    var v = vec2<f32>();
    for (var axis = 0u; axis < DIRECTIONS; axis++) {
        v[axis] = VELOCITY_MAX * trace[row + FORCES + axis];
    }
    return capped(v);
}

fn capped(v: vec2<f32>) -> vec2<f32> {
    if CAPPED {
        return v * min(1.0, VELOCITY_MAX / sqrt(dot(v, v) + 1e-12));
    }
    return v;
}

// The gradient before `capped`, from the one after it.
fn capped_adjoint(v: vec2<f32>, g: vec2<f32>) -> vec2<f32> {
    let length = sqrt(dot(v, v) + 1e-12);
    if CAPPED && length > VELOCITY_MAX {
        return VELOCITY_MAX / length * (g - v * (dot(v, g) / (length * length)));
    }
    return g;
}

// Scores the actions of a step, moves the agents and scores where they are. Each thread has its
// agents; the positions before stay in the pool until `arrive`.
fn score_agents(step: u32) {
    for (var back = THREADS - 1u - tid; back < AGENTS; back += THREADS) {
        let agent = back;
        if FORCES > 0u {
            let u = FORCE_MAX * action(agent, 0u);
            sums[EFFORT] += u * u;
        }
        if DIRECTIONS > 0u {
            let v = velocity(agent);
            sums[EFFORT] += VELOCITY_EFFORT * dot(v, v);
            if step > 0u {
                let change = v - past_velocity(step - 1u, agent);
                sums[ACCELERATION] += dot(change, change);
            }
            for (var axis = 0u; axis < AXES; axis++) {
                let x = position(agent, axis) + DT * v[axis];
                let next = clamp(x, reach_low(axis), reach_high(axis));
                states[state_of(step + 1u) + CELLS + agent * AXES + axis] = next;
            }
        } else {
            for (var axis = 0u; axis < AXES; axis++) {
                states[state_of(step + 1u) + CELLS + agent * AXES + axis] = position(agent, axis);
            }
        }
    }
}

// Takes over the positions that `score_agents` of the phase before left in `states`.
fn arrive(step: u32) {
    let there = state_of(step + 1u) + CELLS;
    for (var agent = THREADS - 1u - tid; agent < AGENTS; agent += THREADS) {
        var here = vec2<f32>();
        for (var axis = 0u; axis < AXES; axis++) {
            here[axis] = states[there + agent * AXES + axis];
            pool[POSITION_AT + agent * AXES + axis] = here[axis];
            if DIRECTIONS > 0u {
                let deep = intrusion(here[axis], axis);
                sums[BOUND] += deep * deep;
            }
        }
        if SAFE_DISTANCE > 0.0 {
            for (var other = 0u; other < AGENTS; other++) {
                let gap = here - place(there, other);
                let short = SAFE_DISTANCE - length(gap);
                if other != agent && short > 0.0 {
                    sums[COLLISION] += short * short;
                }
            }
        }
        for (var disc = 0u; disc < DISCS; disc++) {
            let short = disc_radius(disc) - length(here - disc_centre(disc));
            if short > 0.0 {
                sums[OBSTACLE] += short * short;
            }
        }
    }
}

fn place(there: u32, agent: u32) -> vec2<f32> {
    var x = vec2<f32>();
    for (var axis = 0u; axis < AXES; axis++) {
        x[axis] = states[there + agent * AXES + axis];
    }
    return x;
}

// From the gradient of the positions after a step to that of the positions before it and of the
// velocities, as far as scores and motion go.
fn score_agents_adjoint(step: u32) {
    let there = state_of(step + 1u) + CELLS;
    for (var agent = THREADS - 1u - tid; agent < AGENTS; agent += THREADS) {
        let row = row_of(step, agent) * TRACE + ACTION_IN_TRACE;
        if FORCES > 0u {
            let u = FORCE_MAX * trace[row];
            pool[G_FORCE_AT + agent] = 2.0 * PULL_EFFORT * u;
        }
        if DIRECTIONS > 0u {
            let here = place(there, agent);
            var g = vec2<f32>();
            for (var axis = 0u; axis < AXES; axis++) {
                g[axis] = pool[G_POSITION_AT + agent * AXES + axis]
                    + 2.0 * PULL_BOUND * intrusion(here[axis], axis);
            }
            if SAFE_DISTANCE > 0.0 {
                for (var other = 0u; other < AGENTS; other++) {
                    let gap = here - place(there, other);
                    let distance = length(gap);
                    let short = SAFE_DISTANCE - distance;
                    // Two agents at the same place have no direction to part in.
                    if other != agent && short > 0.0 && distance > 0.0 {
                        g -= 4.0 * PULL_COLLISION * short / distance * gap;
                    }
                }
            }
            for (var disc = 0u; disc < DISCS; disc++) {
                let gap = here - disc_centre(disc);
                let distance = length(gap);
                let short = disc_radius(disc) - distance;
                if short > 0.0 && distance > 0.0 {
                    g -= 2.0 * PULL_OBSTACLE * short / distance * gap;
                }
            }
            let v = past_velocity(step, agent);
            let before = place(state_of(step) + CELLS, agent);
            var change = vec2<f32>();
            if step > 0u {
                change = 2.0 * PULL_ACCELERATION * (v - past_velocity(step - 1u, agent));
            }
            for (var axis = 0u; axis < AXES; axis++) {
                let i = agent * AXES + axis;
                let x = before[axis] + DT * v[axis];
                if x < reach_low(axis) || x > reach_high(axis) {
                    g[axis] = 0.0;
                }
                // `G_CHANGE` came down from the later step, where this velocity is the old one.
                pool[G_VELOCITY_AT + i] = 2.0 * PULL_EFFORT * VELOCITY_EFFORT * v[axis]
                    + change[axis] - pool[G_CHANGE_AT + i] + DT * g[axis];
                pool[G_CHANGE_AT + i] = change[axis];
                pool[G_POSITION_AT + i] = g[axis];
            }
        }
    }
}

// From the gradients of forces and velocities to that before the last activation.
fn answer_adjoint(step: u32) {
    for (var agent = tid; agent < AGENTS; agent += THREADS) {
        let row = row_of(step, agent);
        let at = row * TRACE + ACTION_IN_TRACE;
        let lives = alive(step, agent);
        if FORCES > 0u {
            settle(row, agent, 0u, FORCE_MAX * pool[G_FORCE_AT + agent], trace[at], lives);
        }
        if DIRECTIONS > 0u {
            var v = vec2<f32>();
            var g = vec2<f32>();
            for (var axis = 0u; axis < DIRECTIONS; axis++) {
                v[axis] = VELOCITY_MAX * trace[at + FORCES + axis];
                g[axis] = pool[G_VELOCITY_AT + agent * AXES + axis];
            }
            g = capped_adjoint(v, g);
            for (var axis = 0u; axis < DIRECTIONS; axis++) {
                let k = FORCES + axis;
                settle(row, agent, k, VELOCITY_MAX * g[axis], trace[at + k], lives);
            }
        }
    }
    barrier();
}

fn settle(row: u32, agent: u32, k: u32, g: f32, y: f32, lives: bool) {
    let delta = select(0.0, g * (1.0 - y * y), lives);
    pool[D_HEAD_AT + agent * ACTIONS + k] = delta;
    deltas[row * DELTA + HEAD_IN_DELTA + k] = delta;
}
