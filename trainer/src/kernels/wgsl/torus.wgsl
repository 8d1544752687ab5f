// Fields on a torus of SIDE × SIDE points and their Fourier modes, in the threads' registers.
//
// Each of the SIDE²/8 threads holds eight complex values. On the grid, thread (line, lane) has the
// points (line, lane + 8k); among the modes it has (lane + 8k, line). A transform of one axis takes
// eight threads: each transforms its own eight values, hands all but one of them over, and transforms
// what it got. Between the two axes everybody hands over to everybody. Values change hands through
// the pool, real parts first, so that a plane of real numbers is all the room it takes; its stride
// and the lanes' keep the threads of a warp out of each other's banks.

const SIDE: u32 = 64u;
const STRIDE: u32 = 72u;
const LANE_STRIDE: u32 = 9u;

alias Eight = array<vec2<f32>, 8>;

fn times(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
    return vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

fn conjugate(a: vec2<f32>) -> vec2<f32> {
    return vec2(a.x, -a.y);
}

// exp(−2πi k/SIDE), or its conjugate.
fn twiddle(k: u32, sign: f32) -> vec2<f32> {
    let at = TWIDDLES_IN_TABLES + 2u * (k % SIDE);
    return vec2(tables[at], sign * tables[at + 1u]);
}

// A quarter turn: −i times, or i times.
fn quarter(a: vec2<f32>, sign: f32) -> vec2<f32> {
    return vec2(sign * a.y, -sign * a.x);
}

// The transform of eight values: exp(−2πi …) for a sign of 1, its conjugate for −1.
fn transform_8(x: ptr<function, Eight>, sign: f32) {
    let half = 0.70710678;
    let a0 = (*x)[0] + (*x)[4];
    let b0 = (*x)[0] - (*x)[4];
    let a1 = (*x)[1] + (*x)[5];
    let b1 = (*x)[1] - (*x)[5];
    let a2 = (*x)[2] + (*x)[6];
    let b2 = quarter((*x)[2] - (*x)[6], sign);
    let a3 = (*x)[3] + (*x)[7];
    let b3 = quarter((*x)[3] - (*x)[7], sign);
    let c0 = a0 + a2;
    let d0 = a0 - a2;
    let c1 = a1 + a3;
    let d1 = quarter(a1 - a3, sign);
    let e0 = b0 + b2;
    let f0 = b0 - b2;
    let e1 = half * (b1 + b3 + quarter(b1 + b3, sign));
    let f1 = half * (quarter(b1 - b3, sign) - (b1 - b3));
    (*x)[0] = c0 + c1;
    (*x)[4] = c0 - c1;
    (*x)[2] = d0 + d1;
    (*x)[6] = d0 - d1;
    (*x)[1] = e0 + e1;
    (*x)[5] = e0 - e1;
    (*x)[3] = f0 + f1;
    (*x)[7] = f0 - f1;
}

// The transform along the axis that eight threads share.
fn transform_line(x: ptr<function, Eight>, sign: f32) {
    let line = WORK_AT + tid / 8u * STRIDE;
    let lane = tid % 8u;
    transform_8(x, sign);
    for (var k = 1u; k < 8u; k++) {
        (*x)[k] = times((*x)[k], twiddle(lane * k, sign));
    }
    for (var k = 0u; k < 8u; k++) {
        pool[line + lane * LANE_STRIDE + k] = (*x)[k].x;
    }
    workgroupBarrier();
    for (var k = 0u; k < 8u; k++) {
        (*x)[k].x = pool[line + k * LANE_STRIDE + lane];
    }
    workgroupBarrier();
    for (var k = 0u; k < 8u; k++) {
        pool[line + lane * LANE_STRIDE + k] = (*x)[k].y;
    }
    workgroupBarrier();
    for (var k = 0u; k < 8u; k++) {
        (*x)[k].y = pool[line + k * LANE_STRIDE + lane];
    }
    workgroupBarrier();
    transform_8(x, sign);
}

// From (line, lane + 8k) to (lane + 8k, line) and back.
fn turn(x: ptr<function, Eight>) {
    let line = tid / 8u;
    let lane = tid % 8u;
    for (var k = 0u; k < 8u; k++) {
        pool[WORK_AT + line * STRIDE + lane + 8u * k] = (*x)[k].x;
    }
    workgroupBarrier();
    for (var k = 0u; k < 8u; k++) {
        (*x)[k].x = pool[WORK_AT + (lane + 8u * k) * STRIDE + line];
    }
    workgroupBarrier();
    for (var k = 0u; k < 8u; k++) {
        pool[WORK_AT + line * STRIDE + lane + 8u * k] = (*x)[k].y;
    }
    workgroupBarrier();
    for (var k = 0u; k < 8u; k++) {
        (*x)[k].y = pool[WORK_AT + (lane + 8u * k) * STRIDE + line];
    }
    workgroupBarrier();
}

// From the grid to the modes (sign 1) or from the modes to the grid (sign −1), not normalised.
fn transform(x: ptr<function, Eight>, sign: f32) {
    for (var axis = 0u; axis < 2u; axis++) {
        if axis == 1u {
            turn(x);
        }
        transform_line(x, sign);
    }
}

// Index of this thread's value `k` in a field.
fn point(k: u32) -> u32 {
    return tid / 8u * SIDE + tid % 8u + 8u * k;
}

// Index of this thread's mode `k` in an array of modes, wave number along axis 0 first.
fn mode(k: u32) -> u32 {
    return (tid % 8u + 8u * k) * SIDE + tid / 8u;
}

// Signed number of waves; none for the shortest, which has no direction.
fn waves(j: u32) -> f32 {
    return select(f32(j), f32(j) - f32(SIDE), j > SIDE / 2u) * select(1.0, 0.0, j == SIDE / 2u);
}

fn mode_waves(k: u32) -> vec2<f32> {
    return vec2(waves(tid % 8u + 8u * k), waves(tid / 8u));
}

fn coefficient(table: u32, k: u32) -> f32 {
    return tables[table + mode(k)];
}

// The part of modes that stands for a real field: each with the conjugate of its opposite.
fn real_part(x: ptr<function, Eight>) {
    let line = tid / 8u;
    let lane = tid % 8u;
    let opposite = (SIDE - line) % SIDE;
    for (var k = 0u; k < 8u; k++) {
        pool[WORK_AT + line * STRIDE + lane + 8u * k] = (*x)[k].x;
    }
    workgroupBarrier();
    for (var k = 0u; k < 8u; k++) {
        let other = (SIDE - lane - 8u * k) % SIDE;
        (*x)[k].x = 0.5 * ((*x)[k].x + pool[WORK_AT + opposite * STRIDE + other]);
    }
    workgroupBarrier();
    for (var k = 0u; k < 8u; k++) {
        pool[WORK_AT + line * STRIDE + lane + 8u * k] = (*x)[k].y;
    }
    workgroupBarrier();
    for (var k = 0u; k < 8u; k++) {
        let other = (SIDE - lane - 8u * k) % SIDE;
        (*x)[k].y = 0.5 * ((*x)[k].y - pool[WORK_AT + opposite * STRIDE + other]);
    }
    workgroupBarrier();
}

// The modes of a field.
fn modes_of(state: u32) -> Eight {
    var x: Eight;
    for (var k = 0u; k < 8u; k++) {
        x[k] = vec2(states[state + point(k)], 0.0);
    }
    transform(&x, 1.0);
    return x;
}

// The modes of what the agents do to the field; their kernels do not move.
fn force_modes() -> Eight {
    var x: Eight;
    for (var k = 0u; k < 8u; k++) {
        x[k] = vec2(0.0);
    }
    for (var i = 0u; i < swarm; i++) {
        let across = action(i, 0u) * placed(i, tid / 8u);
        for (var k = 0u; k < 8u; k++) {
            x[k].x += across * placed(i, SIDE + tid % 8u + 8u * k);
        }
    }
    transform(&x, 1.0);
    return x;
}

fn begin(here: u32) {}

// The control interval that the physics makes of modes and force.
fn advance(step: u32) {
    var force = force_modes();
    var w = modes_of(state_of(step));
    for (var substep = 0u; substep < SUBSTEPS; substep++) {
        w = advance_modes(w, force, step * SUBSTEPS + substep);
    }
    transform(&w, -1.0);
    for (var k = 0u; k < 8u; k++) {
        states[state_of(step + 1u) + point(k)] = w[k].x / f32(CELLS);
    }
    barrier();
}

struct Pair {
    modes: Eight,
    force: Eight,
}

fn advance_adjoint(step: u32) {
    let error_share = error_pull(step);
    var g: Pair;
    for (var k = 0u; k < 8u; k++) {
        let j = point(k);
        let e = states[state_of(step + 1u) + j] - target_at(step + 1u, j);
        g.modes[k] = vec2((g_field_at(j) + error_share * e) / f32(CELLS), 0.0);
        g.force[k] = vec2(0.0);
    }
    var x = g.modes;
    transform(&x, 1.0);
    g.modes = x;
    for (var back = 0u; back < SUBSTEPS; back++) {
        g = advance_modes_adjoint(g, step * SUBSTEPS + SUBSTEPS - 1u - back);
    }
    x = g.modes;
    transform(&x, -1.0);
    for (var k = 0u; k < 8u; k++) {
        set_g_field(point(k), x[k].x);
    }
    x = g.force;
    transform(&x, -1.0);
    for (var k = 0u; k < 8u; k++) {
        pool[WORK_AT + tid / 8u * STRIDE + tid % 8u + 8u * k] = x[k].x;
    }
    barrier();
    // Along axis 1 first, for every agent and line.
    for (var item = tid; item < swarm * SIDE; item += THREADS) {
        let agent = item / SIDE;
        let line = item % SIDE;
        var sum = 0.0;
        for (var j = 0u; j < SIDE; j++) {
            sum += placed(agent, SIDE + j) * pool[WORK_AT + line * STRIDE + j];
        }
        scratch[episode * SCRATCH + LINES_IN_SCRATCH + item] = placed(agent, line) * sum;
    }
    barrier();
    for (var agent = tid; agent < swarm; agent += THREADS) {
        var sum = 0.0;
        for (var line = 0u; line < SIDE; line++) {
            sum += scratch[episode * SCRATCH + LINES_IN_SCRATCH + agent * SIDE + line];
        }
        pool[G_FORCE_AT + agent] += sum;
    }
}
