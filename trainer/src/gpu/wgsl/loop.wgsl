// The closed loop of one episode per workgroup: all its steps in one dispatch, forward or backward.
//
// Every function here is called by all threads of the workgroup together. What they share lies in
// `pool`, whose regions (`…_AT`) are laid out by the host; a phase is what lies between two barriers.

@group(0) @binding(0) var<storage, read> parameters: array<f32>;
@group(0) @binding(1) var<storage, read> tables: array<f32>;
// [episodes, initial field | target | start positions | step of death | cells of fixed agents]
@group(0) @binding(2) var<storage, read> episodes: array<f32>;
// [episodes, horizon + 1, field | positions]
@group(0) @binding(3) var<storage, read_write> states: array<f32>;
// [episodes, horizon, agents, TRACE]: what the network computed
@group(0) @binding(4) var<storage, read_write> trace: array<f32>;
// [episodes, horizon, agents, DELTA]: gradients before each activation
@group(0) @binding(5) var<storage, read_write> deltas: array<f32>;
// [episodes, TERMS]
@group(0) @binding(6) var<storage, read_write> scores: array<f32>;
// [episodes, SCRATCH]: what does not fit into the pool
@group(0) @binding(7) var<storage, read_write> scratch: array<f32>;

var<workgroup> pool: array<f32, POOL>;
var<private> tid: u32;
var<private> episode: u32;
var<private> sums: array<f32, TERMS>;

fn given(offset: u32) -> f32 {
    return episodes[episode * EPISODE + offset];
}

fn target_at(j: u32) -> f32 {
    return given(CELLS + j);
}

fn alive(step: u32, agent: u32) -> bool {
    return f32(step) < given(2u * CELLS + AGENTS * AXES + agent);
}

// Where the state before a step begins.
fn state_of(step: u32) -> u32 {
    return (episode * (HORIZON + 1u) + step) * STATE;
}

fn row_of(step: u32, agent: u32) -> u32 {
    return (episode * HORIZON + step) * AGENTS + agent;
}

fn squash(x: f32) -> f32 {
    let a = abs(x);
    let s = x * x;
    // The quotient cancels near zero; the series' next term is below 1e-7 there.
    let near = x * (1.0 + s * (-0.33333333 + s * (0.13333333 - s * 0.053968254)));
    let e = exp(-2.0 * a);
    let far = sign(x) * (1.0 - e) / (1.0 + e);
    return select(far, near, a < 0.2);
}

fn clear_sums() {
    for (var k = 0u; k < TERMS; k++) {
        sums[k] = 0.0;
    }
}

// Adds up the threads' sums in a fixed order.
fn write_scores() {
    for (var k = 0u; k < TERMS; k++) {
        workgroupBarrier();
        pool[tid] = sums[k];
        workgroupBarrier();
        if tid < 32u {
            var sum = 0.0;
            for (var i = tid; i < THREADS; i += 32u) {
                sum += pool[i];
            }
            pool[tid] = sum;
        }
        workgroupBarrier();
        if tid == 0u {
            var sum = 0.0;
            for (var i = 0u; i < 32u; i++) {
                sum += pool[i];
            }
            scores[episode * TERMS + k] = sum * share(k);
        }
    }
}

@compute @workgroup_size(THREADS)
fn forward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    tid = thread;
    episode = group.x;
    clear_sums();
    begin();
    for (var i = tid; i < AGENTS * AXES; i += THREADS) {
        let x = given(2u * CELLS + i);
        pool[POSITION_AT + i] = x;
        states[state_of(0u) + CELLS + i] = x;
    }
    barrier();
    for (var step = 0u; step < HORIZON; step++) {
        for (var tile = 0u; tile < TILES; tile++) {
            decide(step, tile * ROWS);
        }
        advance(step);
    }
    write_scores();
}

@compute @workgroup_size(THREADS)
fn backward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    tid = thread;
    episode = group.x;
    begin_adjoint();
    for (var i = tid; i < AGENTS * AXES; i += THREADS) {
        pool[G_POSITION_AT + i] = 0.0;
        pool[G_CHANGE_AT + i] = 0.0;
    }
    barrier();
    for (var back = 0u; back < HORIZON; back++) {
        let step = HORIZON - 1u - back;
        score_agents_adjoint(step);
        advance_adjoint(step);
        answer_adjoint(step);
        for (var tile = 0u; tile < TILES; tile++) {
            decide_adjoint(step, tile * ROWS);
        }
    }
}

fn barrier() {
    workgroupBarrier();
    storageBarrier();
}
