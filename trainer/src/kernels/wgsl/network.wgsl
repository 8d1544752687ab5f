// The shared network for ROWS agents at a time, and its adjoint:
//
//   window, memory ─ dense, soft norm, tanh ─ dense, soft norm, tanh ─┐
//                                                                     ├─ dense, tanh ─ dense, tanh ─ output
//   position ─ Fourier ─ dense, tanh ─ dense, tanh ───────────────────┘
//
// The products (`multiply_…`) are written out by the host for the sizes at hand; each hands its
// results to the function `…_out` or `…_adjoint_out` of its layer, once per row and output.

var<private> now: u32;
var<private> first: u32;

// Whether a row of the tile stands for an agent.
fn peopled(r: u32) -> bool {
    return first + r < swarm;
}

fn keep(r: u32, offset: u32, value: f32) {
    if peopled(r) {
        trace[row_of(now, first + r) * TRACE + offset] = value;
    }
}

fn kept(r: u32, offset: u32) -> f32 {
    if peopled(r) {
        return trace[row_of(now, first + r) * TRACE + offset];
    }
    return 0.0;
}

fn keep_delta(r: u32, offset: u32, value: f32) {
    if peopled(r) {
        deltas[row_of(now, first + r) * DELTA + offset] = value;
    }
}

fn decide(step: u32, from_agent: u32) {
    now = step;
    first = from_agent;
    survey();
    for (var item = tid; item < ROWS * INPUTS; item += THREADS) {
        let r = item / INPUTS;
        let k = item % INPUTS;
        var value = 0.0;
        if peopled(r) {
            if k < FEATURES {
                value = feature(first + r, k);
            } else {
                value = remembered(first + r, k - FEATURES);
            }
        }
        pool[WINDOW_AT + item] = value;
        keep(r, WINDOW_IN_TRACE + k, value);
    }
    for (var item = tid; item < ROWS * FOURIER; item += THREADS) {
        let r = item / FOURIER;
        var value = 0.0;
        if peopled(r) {
            value = wave(first + r, item % FOURIER);
        }
        pool[FOURIER_AT + item] = value;
        keep(r, FOURIER_IN_TRACE + item % FOURIER, value);
    }
    workgroupBarrier();
    multiply_branch_1();
    multiply_trunk_1();
    workgroupBarrier();
    square_parts(BRANCH_1);
    workgroupBarrier();
    for (var item = tid; item < ROWS * BRANCH_1; item += THREADS) {
        let r = item / BRANCH_1;
        let o = item % BRANCH_1;
        let norm = sqrt(part_sum(r) + 1e-12);
        let s = pool[H_AT + item] / (norm + 1.0);
        let y = squash(s);
        pool[Y_AT + item] = y;
        keep(r, S_1_IN_TRACE + o, s);
        keep(r, Y_1_IN_TRACE + o, y);
        if o == 0u {
            keep(r, NORM_1_IN_TRACE, norm);
        }
    }
    workgroupBarrier();
    multiply_branch_2();
    multiply_trunk_2();
    workgroupBarrier();
    square_parts(BRANCH_2);
    workgroupBarrier();
    for (var item = tid; item < ROWS * BRANCH_2; item += THREADS) {
        let r = item / BRANCH_2;
        let o = item % BRANCH_2;
        let norm = sqrt(part_sum(r) + 1e-12);
        let s = pool[H_AT + item] / (norm + 1.0);
        let y = squash(s);
        pool[JOINED_AT + r * JOINED + o] = y;
        keep(r, S_2_IN_TRACE + o, s);
        keep(r, JOINED_IN_TRACE + o, y);
        if o == 0u {
            keep(r, NORM_2_IN_TRACE, norm);
        }
    }
    workgroupBarrier();
    if MULTIPLIED {
        for (var item = tid; item < ROWS * BRANCH_2; item += THREADS) {
            let r = item / BRANCH_2;
            let o = item % BRANCH_2;
            let at = JOINED_AT + r * JOINED + o;
            let product = pool[at] * pool[at + BRANCH_2];
            pool[PRODUCT_AT + item] = product;
            keep(r, PRODUCT_IN_TRACE + o, product);
        }
        workgroupBarrier();
    }
    multiply_fuse();
    workgroupBarrier();
    multiply_head();
    barrier();
}

// What a row's step made of number `k` of its agent's memory, before it is cut to ±1.
fn retained(row: u32, k: u32) -> f32 {
    let at = row * TRACE;
    let m = trace[at + WINDOW_IN_TRACE + FEATURES + k];
    let leak = LEAK * (1.0 + trace[at + OUTPUT_IN_TRACE + MEMORY + k]);
    return fma(GAIN, trace[at + OUTPUT_IN_TRACE + k], m - leak * m);
}

// What an agent remembers before this step.
fn remembered(agent: u32, k: u32) -> f32 {
    if now == 0u {
        return 0.0;
    }
    return clamp(retained(row_of(now - 1u, agent), k), -1.0, 1.0);
}

// The gradient of what an agent remembers after this step; none beyond the cut.
fn remembered_adjoint(agent: u32, k: u32) -> f32 {
    if now + 1u == HORIZON || abs(retained(row_of(now, agent), k)) > 1.0 {
        return 0.0;
    }
    return deltas[row_of(now + 1u, agent) * DELTA + MEMORY_IN_DELTA + k];
}

// The gradient of a push, or of a gate behind all pushes, before its activation.
fn memory_delta(agent: u32, o: u32) -> f32 {
    let at = row_of(now, agent) * TRACE;
    let y = trace[at + OUTPUT_IN_TRACE + o];
    if o < MEMORY {
        return GAIN * remembered_adjoint(agent, o) * (1.0 - y * y);
    }
    let k = o - MEMORY;
    let m = trace[at + WINDOW_IN_TRACE + FEATURES + k];
    return -LEAK * m * remembered_adjoint(agent, k) * (1.0 - y * y);
}

// The cell that an agent is in along an axis; that of agents who stay comes from the host.
fn cell(agent: u32, axis: u32) -> u32 {
    let i = agent * AXES + axis;
    if DIRECTIONS == 0u {
        return condition(CELLS_IN_EPISODE + i);
    }
    return cell_along(states[state_of(now) + VALUES + i], axis);
}

// Position feature `k` of an agent: sines axis by axis, then cosines.
fn wave(agent: u32, k: u32) -> f32 {
    let half = FOURIER / 2u;
    let turns = frequency(k % FREQUENCIES) * scaled(agent, (k % half) / FREQUENCIES);
    // Half turns, brought to −1..1: hardware sines are good near zero only.
    let angle = 3.14159265 * (turns - 2.0 * round(0.5 * turns));
    return select(cos(angle), sin(angle), k < half);
}

// A coordinate in units of the agents' reach.
fn scaled(agent: u32, axis: u32) -> f32 {
    return (position(agent, axis) - reach_low(axis)) * reach_scale(axis);
}

// Sums of squares of PARTS stretches of each row of H.
fn square_parts(width: u32) {
    for (var item = tid; item < ROWS * PARTS; item += THREADS) {
        let r = item / PARTS;
        var sum = 0.0;
        for (var o = item % PARTS; o < width; o += PARTS) {
            let h = pool[H_AT + r * width + o];
            sum += h * h;
        }
        pool[PARTS_AT + item] = sum;
    }
}

fn part_sum(r: u32) -> f32 {
    var sum = 0.0;
    for (var k = 0u; k < PARTS; k++) {
        sum += pool[PARTS_AT + r * PARTS + k];
    }
    return sum;
}

fn branch_1_out(r: u32, o: u32, value: f32) {
    pool[H_AT + r * BRANCH_1 + o] = value;
}

fn branch_2_out(r: u32, o: u32, value: f32) {
    pool[H_AT + r * BRANCH_2 + o] = value;
}

fn trunk_1_out(r: u32, o: u32, value: f32) {
    let y = squash(value);
    pool[TRUNK_AT + r * TRUNK_1 + o] = y;
    keep(r, TRUNK_1_IN_TRACE + o, y);
}

fn trunk_2_out(r: u32, o: u32, value: f32) {
    let y = squash(value);
    pool[JOINED_AT + r * JOINED + BRANCH_2 + o] = y;
    keep(r, JOINED_IN_TRACE + BRANCH_2 + o, y);
}

fn fuse_out(r: u32, o: u32, value: f32) {
    let y = squash(value);
    pool[FUSE_AT + r * FUSE + o] = y;
    keep(r, FUSE_IN_TRACE + o, y);
}

fn head_out(r: u32, o: u32, value: f32) {
    keep(r, OUTPUT_IN_TRACE + o, squash(value));
}

// Adjoint of `decide`: adds to the gradients of the field and of the positions.
fn decide_adjoint(step: u32, from_agent: u32) {
    now = step;
    first = from_agent;
    for (var item = tid; item < ROWS * OUTPUTS; item += THREADS) {
        let r = item / OUTPUTS;
        let o = item % OUTPUTS;
        var delta = 0.0;
        if peopled(r) {
            if o < 2u * MEMORY {
                delta = memory_delta(first + r, o);
                keep_delta(r, HEAD_IN_DELTA + o, delta);
            } else {
                delta = deltas[row_of(now, first + r) * DELTA + HEAD_IN_DELTA + o];
            }
        }
        pool[D_TILE_AT + item] = delta;
    }
    for (var item = tid; item < ROWS * AXES; item += THREADS) {
        if peopled(item / AXES) {
            pool[SEEN_AT + item] = f32(cell(first + item / AXES, item % AXES));
        }
    }
    workgroupBarrier();
    multiply_head_adjoint();
    workgroupBarrier();
    multiply_fuse_adjoint();
    workgroupBarrier();
    along_parts(BRANCH_2, S_2_IN_TRACE);
    multiply_trunk_2_adjoint();
    workgroupBarrier();
    unsoften(BRANCH_2, S_2_IN_TRACE, NORM_2_IN_TRACE, BRANCH_2_IN_DELTA);
    workgroupBarrier();
    multiply_branch_2_adjoint();
    multiply_trunk_1_adjoint();
    workgroupBarrier();
    along_parts(BRANCH_1, S_1_IN_TRACE);
    wave_adjoint();
    workgroupBarrier();
    unsoften(BRANCH_1, S_1_IN_TRACE, NORM_1_IN_TRACE, BRANCH_1_IN_DELTA);
    workgroupBarrier();
    multiply_branch_1_adjoint();
    workgroupBarrier();
    features_adjoint();
    barrier();
}

// Parts of s·g of each row, the gradients being in H.
fn along_parts(width: u32, s: u32) {
    for (var item = tid; item < ROWS * PARTS; item += THREADS) {
        let r = item / PARTS;
        var sum = 0.0;
        for (var o = item % PARTS; o < width; o += PARTS) {
            sum += kept(r, s + o) * pool[H_AT + r * width + o];
        }
        pool[PARTS_AT + item] = sum;
    }
}

// Adjoint of s = h/(n+1), n = ‖h‖, from H to Y: g/(n+1) − s (s·g)/n.
fn unsoften(width: u32, s: u32, norms: u32, in_delta: u32) {
    for (var item = tid; item < ROWS * width; item += THREADS) {
        let r = item / width;
        let o = item % width;
        var delta = 0.0;
        if peopled(r) {
            let norm = kept(r, norms);
            delta = pool[H_AT + item] / (norm + 1.0) - kept(r, s + o) * part_sum(r) / norm;
        }
        pool[Y_AT + item] = delta;
        keep_delta(r, in_delta + o, delta);
    }
}

// Through tanh, whose result is in the trace.
fn unsquashed(r: u32, offset: u32, g: f32) -> f32 {
    let y = kept(r, offset);
    return g * (1.0 - y * y);
}

fn head_adjoint_out(r: u32, o: u32, g: f32) {
    let delta = unsquashed(r, FUSE_IN_TRACE + o, g);
    pool[FUSE_AT + r * FUSE + o] = delta;
    keep_delta(r, FUSE_IN_DELTA + o, delta);
}

fn fuse_adjoint_out(r: u32, o: u32, g: f32) {
    if MULTIPLIED {
        let branch = kept(r, JOINED_IN_TRACE + o);
        let trunk = kept(r, JOINED_IN_TRACE + BRANCH_2 + o);
        let delta = g * branch * (1.0 - trunk * trunk);
        pool[H_AT + r * BRANCH_2 + o] = g * trunk * (1.0 - branch * branch);
        pool[JOINED_AT + r * TRUNK_2 + o] = delta;
        keep_delta(r, TRUNK_2_IN_DELTA + o, delta);
        return;
    }
    let delta = unsquashed(r, JOINED_IN_TRACE + o, g);
    if o < BRANCH_2 {
        pool[H_AT + r * BRANCH_2 + o] = delta;
    } else {
        pool[JOINED_AT + r * TRUNK_2 + o - BRANCH_2] = delta;
        keep_delta(r, TRUNK_2_IN_DELTA + o - BRANCH_2, delta);
    }
}

fn trunk_2_adjoint_out(r: u32, o: u32, g: f32) {
    let delta = unsquashed(r, TRUNK_1_IN_TRACE + o, g);
    pool[TRUNK_AT + r * TRUNK_1 + o] = delta;
    keep_delta(r, TRUNK_1_IN_DELTA + o, delta);
}

fn branch_2_adjoint_out(r: u32, o: u32, g: f32) {
    pool[H_AT + r * BRANCH_1 + o] = unsquashed(r, Y_1_IN_TRACE + o, g);
}

fn trunk_1_adjoint_out(r: u32, o: u32, g: f32) {
    pool[FOURIER_AT + r * FOURIER + o] = g;
}

fn branch_1_adjoint_out(r: u32, o: u32, g: f32) {
    if o < FEATURES {
        pool[WINDOW_AT + r * INPUTS + o] = g;
    } else if peopled(r) {
        // Beside the branch, what was remembered went on to be remembered.
        let k = o - FEATURES;
        let gate = kept(r, OUTPUT_IN_TRACE + MEMORY + k);
        let passed = remembered_adjoint(first + r, k) * (1.0 - LEAK * (1.0 + gate));
        keep_delta(r, MEMORY_IN_DELTA + k, g + passed);
    }
}

fn wave_adjoint() {
    if DIRECTIONS == 0u {
        return;
    }
    let half = FOURIER / 2u;
    for (var item = tid; item < ROWS * AXES; item += THREADS) {
        let r = item / AXES;
        let axis = item % AXES;
        if peopled(r) {
            var g = 0.0;
            for (var f = 0u; f < FREQUENCIES; f++) {
                let k = axis * FREQUENCIES + f;
                let turn = pool[FOURIER_AT + r * FOURIER + k] * kept(r, FOURIER_IN_TRACE + half + k)
                    - pool[FOURIER_AT + r * FOURIER + half + k] * kept(r, FOURIER_IN_TRACE + k);
                g += 3.14159265 * frequency(f) * turn;
            }
            pool[G_POSITION_AT + (first + r) * AXES + axis] += reach_scale(axis) * g;
        }
    }
}
