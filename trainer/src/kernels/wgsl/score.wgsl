// What agents do, where that takes them, and what pulls at both on the way back.

// What an agent does in the step at hand: force, if it has one, then velocity, if it moves.
fn action(agent: u32, k: u32) -> f32 {
    return pool[ACTION_AT + agent * ACTIONS + k];
}

fn position(agent: u32, axis: u32) -> f32 {
    return pool[POSITION_AT + agent * AXES + axis];
}

// What an agent did in an earlier step.
fn done(step: u32, agent: u32, k: u32) -> f32 {
    return trace[row_of(step, agent) * TRACE + ACTION_IN_TRACE + k];
}

fn velocity_done(step: u32, agent: u32) -> vec2<f32> {
    var v = vec2<f32>();
    for (var axis = 0u; axis < DIRECTIONS; axis++) {
        v[axis] = done(step, agent, FORCES + axis);
    }
    return v;
}

// The factor that brings a velocity within the limit, where that is one of speed.
fn shortening(v: vec2<f32>) -> f32 {
    let square = dot(v, v);
    if ROUND && square > VELOCITY_MAX * VELOCITY_MAX {
        return VELOCITY_MAX / sqrt(square);
    }
    return 1.0;
}

// Where a state has an agent.
fn place(state: u32, agent: u32) -> vec2<f32> {
    var x = vec2<f32>();
    for (var axis = 0u; axis < AXES; axis++) {
        x[axis] = states[state + VALUES + agent * AXES + axis];
    }
    return x;
}

struct Journey {
    to: vec2<f32>,
    // Along which axes walls did not decide.
    free: vec2<bool>,
    // How the place follows where the agent went: otherwise where keep-out zones turned it.
    turn: mat2x2<f32>,
}

fn travel(from_place: vec2<f32>, v: vec2<f32>) -> Journey {
    var journey: Journey;
    journey.turn = mat2x2(1.0, 0.0, 0.0, 1.0);
    for (var axis = 0u; axis < AXES; axis++) {
        let there = fma(v[axis], DT, from_place[axis]);
        let kept_in = clamp(there, reach_low(axis), reach_high(axis));
        journey.to[axis] = kept_in;
        journey.free[axis] = kept_in == there;
    }
    for (var k = 0u; k < DISCS; k++) {
        let gap = journey.to - disc_centre(k);
        let distance = length(gap);
        if distance < disc_rim(k) && distance > 0.0 {
            let push = disc_rim(k) / distance;
            journey.to = disc_centre(k) + gap * push;
            // What is left is what goes along the rim.
            let along = vec2(-gap.y, gap.x) / distance;
            journey.turn = push * mat2x2(along * along.x, along * along.y) * journey.turn;
        }
    }
    return journey;
}

// How far a coordinate is inside a margin, signed by the side.
fn intrusion(x: f32, axis: u32) -> f32 {
    return x - clamp(x, free_low(axis), free_high(axis));
}

// The share of a single value of a term in the loss.
fn pull(term: u32) -> f32 {
    return given(PULLS_IN_EPISODE + term);
}

// How much an error counts, under the root.
fn root(k: u32) -> f32 {
    if WEIGHTED {
        return tables[ROOTS_IN_TABLES + k];
    }
    return 1.0;
}

// What pulls at the field after a step, per unit of error.
fn error_pull(step: u32) -> f32 {
    let beyond = scores[episode * TERMS + FINAL] + ORDER_FLOOR;
    return 2.0 * (select(0.0, pull(TRACK), step >= SCORED_FROM) + select(0.0, pull(LATE), step + LATE_STEPS >= HORIZON)
        + select(0.0, pull(FINAL) + pull(ORDER) / beyond, step + 1u == HORIZON));
}

// From decisions to actions: moves the agents to the next state.
fn act(step: u32) {
    let here = state_of(step);
    let there = state_of(step + 1u);
    for (var agent = own.x + tid; agent < own.y; agent += THREADS) {
        let row = row_of(step, agent) * TRACE + ACTION_IN_TRACE;
        let acting = acts(step, agent);
        let decided = row_of(step - select(0u, delay(), acting), agent) * TRACE + DECIDED_IN_TRACE;
        if FORCES > 0u {
            let u = select(0.0, FORCE_MAX * trace[decided] + actuator_noise(step, agent), acting);
            pool[ACTION_AT + agent * ACTIONS] = u;
            trace[row] = u;
        }
        var v = vec2<f32>();
        if DIRECTIONS > 0u {
            for (var axis = 0u; axis < DIRECTIONS; axis++) {
                v[axis] = select(0.0, VELOCITY_MAX * trace[decided + FORCES + axis], acting);
            }
            v *= shortening(v);
            for (var axis = 0u; axis < DIRECTIONS; axis++) {
                pool[ACTION_AT + agent * ACTIONS + FORCES + axis] = v[axis];
                trace[row + FORCES + axis] = v[axis];
            }
        }
        var to = place(here, agent);
        if DIRECTIONS > 0u {
            to = travel(to, v).to;
        }
        for (var axis = 0u; axis < AXES; axis++) {
            states[there + VALUES + agent * AXES + axis] = to[axis];
        }
    }
}

// Takes over the positions that `act` left in the next state.
fn arrive(step: u32) {
    let there = state_of(step + 1u) + VALUES;
    for (var i = tid; i < swarm * AXES && DIRECTIONS > 0u; i += THREADS) {
        pool[POSITION_AT + i] = states[there + i];
    }
}

// From the gradient of the positions after a step to that of the positions before it and of the
// actions, as far as scores and motion go.
fn score_agents_adjoint(step: u32) {
    let there = state_of(step + 1u);
    for (var agent = own.x + THREADS - 1u - tid; agent < own.y; agent += THREADS) {
        if FORCES > 0u {
            pool[G_FORCE_AT + agent] = 2.0 * pull(EFFORT) * done(step, agent, 0u);
        }
        if DIRECTIONS > 0u {
            let here = place(there, agent);
            var g = vec2<f32>();
            for (var axis = 0u; axis < AXES; axis++) {
                g[axis] = pool[G_POSITION_AT + agent * AXES + axis]
                    + 2.0 * pull(BOUND) * intrusion(here[axis], axis);
            }
            if SAFE_DISTANCE > 0.0 {
                for (var other = 0u; other < swarm; other++) {
                    let gap = here - place(there, other);
                    let distance = length(gap);
                    if distance < SAFE_DISTANCE && distance > 0.0 {
                        g -= 4.0 * pull(COLLISION) * (SAFE_DISTANCE - distance) / distance * gap;
                    }
                }
            }
            for (var k = 0u; k < DISCS; k++) {
                let gap = here - disc_centre(k);
                let distance = length(gap);
                if distance < disc_reach(k) && distance > 0.0 {
                    g -= 2.0 * pull(OBSTACLE) * (disc_reach(k) - distance) / distance * gap;
                }
            }
            let v = velocity_done(step, agent);
            let journey = travel(place(state_of(step), agent), v);
            var change = vec2<f32>();
            if step > 0u {
                change = 2.0 * pull(ACCELERATION) * (v - velocity_done(step - 1u, agent));
            }
            if DISCS > 0u {
                g = transpose(journey.turn) * g;
            }
            for (var axis = 0u; axis < AXES; axis++) {
                let i = agent * AXES + axis;
                let g_here = select(0.0, g[axis], journey.free[axis]);
                // `G_CHANGE` came down from the later step, where this velocity is the old one.
                pool[G_VELOCITY_AT + i] = 2.0 * pull(EFFORT) * VELOCITY_EFFORT * v[axis]
                    + change[axis] - pool[G_CHANGE_AT + i] + DT * g_here;
                pool[G_CHANGE_AT + i] = change[axis];
                pool[G_POSITION_AT + i] = g_here;
            }
        }
    }
}

// From the gradient of the actions to that before the last activation, in the step in which they
// were decided.
fn answer_adjoint(step: u32) {
    for (var agent = own.x + tid; agent < own.y; agent += THREADS) {
        // What is decided now and done after the last step has no effect.
        if step + delay() >= HORIZON {
            for (var k = 0u; k < ACTIONS; k++) {
                deltas[row_of(step, agent) * DELTA + DECIDED_IN_DELTA + k] = 0.0;
            }
        }
        if step < delay() {
            continue;
        }
        let row = row_of(step - delay(), agent);
        let acting = acts(step, agent);
        if FORCES > 0u {
            settle(row, 0u, FORCE_MAX * pool[G_FORCE_AT + agent], acting);
        }
        if DIRECTIONS > 0u {
            var v = vec2<f32>();
            var g = vec2<f32>();
            for (var axis = 0u; axis < DIRECTIONS; axis++) {
                v[axis] = VELOCITY_MAX * trace[row * TRACE + DECIDED_IN_TRACE + FORCES + axis];
                g[axis] = pool[G_VELOCITY_AT + agent * AXES + axis];
            }
            let shorter = shortening(v);
            if shorter < 1.0 {
                // The part of g along v is lost.
                g = shorter * (g - v * (dot(v, g) / dot(v, v)));
            }
            for (var axis = 0u; axis < DIRECTIONS; axis++) {
                settle(row, FORCES + axis, VELOCITY_MAX * g[axis], acting);
            }
        }
    }
}

fn settle(row: u32, k: u32, g: f32, acting: bool) {
    let y = trace[row * TRACE + DECIDED_IN_TRACE + k];
    deltas[row * DELTA + DECIDED_IN_DELTA + k] = select(0.0, g * (1.0 - y * y), acting);
}
