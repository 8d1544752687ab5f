// What all kernels of a closed loop share. A workgroup works on one episode: on all of it, through many steps
// (`loop_whole.wgsl`), or on a part of one step (`loop_spread.wgsl`).
//
// Every function here is called by all threads of the workgroup together. What they share lies in
// `pool`, whose regions (`…_AT`) are laid out by the host; a phase is what lies between two barriers.

@group(0) @binding(0) var<storage, read> parameters: array<f32>;
@group(0) @binding(1) var<storage, read> tables: array<f32>;
// [episodes, EPISODE]: conditions | shares | pulls | initial fields | target | where that goes, and how far after
// every step, if it does not stay | what acts on the fields besides agents, and how strongly in every step |
// what the field's kernel makes of coefficients, where episodes have their own | start positions | steps of death | of agents that stay where they are: cells | what the field's kernel knows of each. There is room
// for AGENTS agents in each.
@group(0) @binding(2) var<storage, read> episodes: array<u32>;
// [episodes, horizon + 1, fields | positions | what the field's kernel keeps of the step]
@group(0) @binding(3) var<storage, read_write> states: array<f32>;
// [rows, TRACE]: what the network computed; a row for each agent of an episode, step after step, and
// episode after episode
@group(0) @binding(4) var<storage, read_write> trace: array<f32>;
// [rows, DELTA]: gradients before each activation
@group(0) @binding(5) var<storage, read_write> deltas: array<f32>;
// [episodes, TERMS]
@group(0) @binding(6) var<storage, read_write> scores: array<f32>;
// [episodes, SCRATCH]: what does not fit into the pool or has to last from dispatch to dispatch
@group(0) @binding(7) var<storage, read_write> scratch: array<f32>;
// The steps of this dispatch: the first and the one after the last.
@group(0) @binding(8) var<uniform> portion: vec4<u32>;

var<workgroup> pool: array<f32, POOL>;
var<private> tid: u32;
var<private> episode: u32;
// Agents of the episode.
var<private> swarm: u32;
// The first agent that this workgroup moves, and the one after the last.
var<private> own: vec2<u32>;

fn given(offset: u32) -> f32 {
    return bitcast<f32>(episodes[episode * EPISODE + offset]);
}

fn condition(k: u32) -> u32 {
    return episodes[episode * EPISODE + k];
}

// What the field's kernel knows of an agent that stays where it is.
fn placed(agent: u32, k: u32) -> f32 {
    return given(PLACED_IN_EPISODE + agent * PLACED + k);
}

// What a value should be after so many steps.
fn target_at(steps: u32, j: u32) -> f32 {
    var value = given(TARGET_IN_EPISODE + j);
    for (var k = 0u; k < GOALS; k++) {
        let share = given(COURSE_IN_EPISODE + k * (HORIZON + 1u) + steps);
        value = fma(share, given(GOAL_IN_EPISODE + k * VALUES + j) - value, value);
    }
    return value;
}

// Steps between an observation and the action that it leads to.
fn delay() -> u32 {
    return condition(0u);
}

// Whether an agent does in a step what it decided `delay` steps ago.
fn acts(step: u32, agent: u32) -> bool {
    return step >= delay() && step < condition(DEATH_IN_EPISODE + agent);
}

// Where the state before a step begins.
fn state_of(step: u32) -> u32 {
    return (episode * (HORIZON + 1u) + step) * STATE;
}

fn row_of(step: u32, agent: u32) -> u32 {
    return condition(FIRST_ROW) + step * swarm + agent;
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

// Before what others wrote to buffers is read; `workgroupBarrier` alone is for the pool.
fn barrier() {
    workgroupBarrier();
    storageBarrier();
}

// The sum over all threads, in a fixed order; for all of them.
fn sum_of(value: f32) -> f32 {
    workgroupBarrier();
    pool[tid] = value;
    workgroupBarrier();
    if tid < 32u {
        var sum = 0.0;
        for (var i = tid; i < THREADS; i += 32u) {
            sum += pool[i];
        }
        pool[tid] = sum;
    }
    workgroupBarrier();
    var sum = 0.0;
    for (var i = 0u; i < min(32u, THREADS); i++) {
        sum += pool[i];
    }
    return sum;
}

fn begin_in(group: vec3<u32>, thread: u32) {
    tid = thread;
    episode = group.x;
    swarm = condition(SWARM);
}

// The first state.
@compute @workgroup_size(THREADS)
fn set_out(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    begin_in(group, thread);
    let here = state_of(0u);
    for (var j = tid; j < VALUES; j += THREADS) {
        states[here + j] = given(INITIAL_IN_EPISODE + j);
    }
    for (var i = tid; i < swarm * AXES; i += THREADS) {
        states[here + VALUES + i] = given(START_IN_EPISODE + i);
    }
}
