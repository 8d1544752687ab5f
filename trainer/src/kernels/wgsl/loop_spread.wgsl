// Several workgroups for each episode, where one would be too few for its field: every step is two dispatches,
// each of which finds what the one before left behind. In one of them a workgroup has a tile of agents, in the
// other a strip of the field.

@compute @workgroup_size(THREADS)
fn decide_step(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    begin_in(group, thread);
    let step = portion.x;
    let from_agent = group.y * ROWS;
    if from_agent < swarm {
        own = vec2(from_agent, min(from_agent + ROWS, swarm));
        for (var i = own.x * AXES + tid; i < own.y * AXES; i += THREADS) {
            pool[POSITION_AT + i] = states[state_of(step) + VALUES + i];
        }
        workgroupBarrier();
        decide(step, from_agent);
        act(step);
    }
}

@compute @workgroup_size(THREADS)
fn advance_step(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    begin_in(group, thread);
    advance_strip(portion.x, group.y);
}

@compute @workgroup_size(THREADS)
fn advance_back(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    begin_in(group, thread);
    advance_strip_adjoint(portion.x, group.y);
}

@compute @workgroup_size(THREADS)
fn decide_back(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    begin_in(group, thread);
    let step = portion.x;
    let from_agent = group.y * ROWS;
    if from_agent < swarm {
        own = vec2(from_agent, min(from_agent + ROWS, swarm));
        // What came down from the later steps: of these agents alone, since others' may be changing.
        let carry = episode * SCRATCH;
        let late = step + 1u < HORIZON;
        for (var i = own.x * AXES + tid; i < own.y * AXES; i += THREADS) {
            pool[G_POSITION_AT + i] = select(0.0, scratch[carry + G_POSITION_AT + i], late);
            pool[G_CHANGE_AT + i] = select(0.0, scratch[carry + G_CHANGE_AT + i], late);
        }
        workgroupBarrier();
        score_agents_adjoint(step);
        workgroupBarrier();
        strips_adjoint();
        workgroupBarrier();
        answer_adjoint(step);
        barrier();
        decide_adjoint(step, from_agent);
        for (var i = own.x * AXES + tid; i < own.y * AXES; i += THREADS) {
            scratch[carry + G_POSITION_AT + i] = pool[G_POSITION_AT + i];
            scratch[carry + G_CHANGE_AT + i] = pool[G_CHANGE_AT + i];
        }
    }
}

// Leaves the gradients of what agents saw to the strips.
fn features_adjoint() {
    for (var item = tid; item < ROWS * FEATURES; item += THREADS) {
        let r = item / FEATURES;
        if peopled(r) {
            let at = episode * SCRATCH + PULLED_IN_SCRATCH + (first + r) * FEATURES + item % FEATURES;
            scratch[at] = pool[WINDOW_AT + r * INPUTS + item % FEATURES];
        }
    }
}

// Agents whose gradients are at hand: all.
fn onlookers() -> u32 {
    return swarm;
}

fn seen_from(r: u32, axis: u32) -> u32 {
    return u32(pool[WATCH_AT + AXES * r + axis]);
}

// The gradient of what one of them saw.
fn pulled(r: u32, k: u32) -> f32 {
    return scratch[episode * SCRATCH + PULLED_IN_SCRATCH + r * FEATURES + k];
}
