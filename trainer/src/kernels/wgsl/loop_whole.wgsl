// A workgroup for each episode, which takes it through the steps of a portion, forward or backward.

@compute @workgroup_size(THREADS)
fn forward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    begin_in(group, thread);
    own = vec2(0u, swarm);
    let here = state_of(portion.x);
    for (var i = tid; i < swarm * AXES; i += THREADS) {
        pool[POSITION_AT + i] = states[here + VALUES + i];
    }
    begin(here);
    barrier();
    for (var step = portion.x; step < portion.y; step++) {
        for (var tile = 0u; tile < TILES; tile++) {
            if tile * ROWS < swarm {
                decide(step, tile * ROWS);
            }
        }
        act(step);
        barrier();
        advance(step);
    }
}

@compute @workgroup_size(THREADS)
fn backward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    begin_in(group, thread);
    own = vec2(0u, swarm);
    // What came down from the later steps.
    let late = portion.y < HORIZON;
    let carry = episode * SCRATCH;
    for (var i = tid; i < CARRY; i += THREADS) {
        pool[CARRY_AT + i] = select(0.0, scratch[carry + i], late);
    }
    begin_adjoint(late);
    barrier();
    for (var back = portion.x; back < portion.y; back++) {
        let step = portion.y - 1u - (back - portion.x);
        score_agents_adjoint(step);
        advance_adjoint(step);
        answer_adjoint(step);
        barrier();
        for (var tile = 0u; tile < TILES; tile++) {
            if tile * ROWS < swarm {
                decide_adjoint(step, tile * ROWS);
            }
        }
    }
    for (var i = tid; i < CARRY; i += THREADS) {
        scratch[carry + i] = pool[CARRY_AT + i];
    }
}

// What an episode is scored for besides errors and agents: nothing.
fn score_beside(step: u32) {}

// Agents whose gradients are at hand: those of the tile.
fn onlookers() -> u32 {
    return min(ROWS, swarm - first);
}

fn seen_from(r: u32, axis: u32) -> u32 {
    return u32(pool[SEEN_AT + AXES * r + axis]);
}

// The gradient of what one of them saw.
fn pulled(r: u32, k: u32) -> f32 {
    return pool[WINDOW_AT + r * INPUTS + k];
}
