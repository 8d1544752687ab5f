// Fields that a file describes. All but reactions is linear, and goes in one or two stages
//
//   u⁺ = B (M u + s f + e),
//
// M being explicit along one axis, B the inverse of what is implicit along one, s the forcing's share and e
// what edges hold and bring: at a node that is held M, s and e make that value, at one that is dry nothing.
// The table `mixing` holds for every node what M makes of itself, of the one before and of the one after, s,
// and what M's transpose makes of both neighbours; the table `inverse` a band of B, then of its transpose.
// Lines that are alike share their rows. The host writes the stages and the reactions out, behind this.

// Where values are read.
const HERE: u32 = 0u;
const MIXED: u32 = 1u;
const PULL: u32 = 2u;

fn note(offset: u32) -> u32 {
    return episode * SCRATCH + offset;
}

fn here(k: u32) -> f32 {
    if NEAR {
        return pool[FIELD_AT + k];
    }
    return scratch[note(FIELD_IN_SCRATCH + k)];
}

fn set_here(k: u32, value: f32) {
    if NEAR {
        pool[FIELD_AT + k] = value;
    } else {
        scratch[note(FIELD_IN_SCRATCH + k)] = value;
    }
}

fn work(k: u32) -> f32 {
    if NEAR {
        return pool[WORK_AT + k];
    }
    return scratch[note(WORK_IN_SCRATCH + k)];
}

fn set_work(k: u32, value: f32) {
    if NEAR {
        pool[WORK_AT + k] = value;
    } else {
        scratch[note(WORK_IN_SCRATCH + k)] = value;
    }
}

// The forcing, and on the way back what pulls at that of the driven field. A thread reads it where it wrote it.
fn push(k: u32) -> f32 {
    if NEAR {
        return pool[PUSH_AT + k];
    }
    return scratch[note(PUSH_IN_SCRATCH + k)];
}

fn set_push(k: u32, value: f32) {
    if NEAR {
        pool[PUSH_AT + k] = value;
    } else {
        scratch[note(PUSH_IN_SCRATCH + k)] = value;
    }
}

fn value_at(place: u32, k: u32) -> f32 {
    if place == HERE {
        return here(k);
    }
    if place == MIXED {
        return work(k);
    }
    return g_field_at(k);
}

fn length_along(axis: u32) -> u32 {
    return select(POINTS_0, POINTS_1, axis == 1u);
}

fn stride_along(axis: u32) -> u32 {
    return select(POINTS_1, 1u, axis == 1u);
}

// Which of its line's nodes a node is, and which line that is.
fn along(j: u32, axis: u32) -> u32 {
    return select(j / POINTS_1, j % POINTS_1, axis == 1u);
}

fn across(j: u32, axis: u32) -> u32 {
    return select(j % POINTS_1, j / POINTS_1, axis == 1u);
}

fn coordinate(k: u32, axis: u32) -> f32 {
    return fma(select(SPACING_0, SPACING_1, axis == 1u), f32(k), grid_low(axis));
}

// Three of a node's coefficients with itself, the node before and the node after; `step` from one to the
// next. Around the ends, where lines are no rings, they are zero.
fn mixed(place: u32, field: u32, j: u32, axis: u32, own: u32, before: u32, after: u32) -> f32 {
    let n = length_along(axis);
    let s = stride_along(axis);
    let k = along(j, axis);
    let back = select(j - s, j + (n - 1u) * s, k == 0u);
    let on = select(j + s, j - (n - 1u) * s, k + 1u == n);
    return mixing(own) * value_at(place, field + j) + mixing(before) * value_at(place, field + back)
        + mixing(after) * value_at(place, field + on);
}

// A row of an inverse, `width` of it around its diagonal, with what stands in a field.
fn solved(place: u32, field: u32, j: u32, axis: u32, width: u32, ring: bool, row: u32, step: u32) -> f32 {
    let n = length_along(axis);
    let s = stride_along(axis);
    let k = along(j, axis);
    let line = field + j - k * s;
    var sum = 0.0;
    if ring {
        var c = (k + n - width / 2u) % n;
        for (var i = 0u; i < width; i++) {
            sum = fma(inverse(row + i * step), value_at(place, line + c * s), sum);
            c = select(c + 1u, 0u, c + 1u == n);
        }
        return sum;
    }
    let first_of_row = line + u32(clamp(i32(k) - i32(width / 2u), 0, i32(n - width))) * s;
    for (var i = 0u; i < width; i++) {
        sum = fma(inverse(row + i * step), value_at(place, first_of_row + i * s), sum);
    }
    return sum;
}

// How far a node is from a place along an axis; on a ring, the shorter way.
fn gap_along(k: u32, axis: u32, x: f32) -> f32 {
    let gap = coordinate(k, axis) - x;
    if PERIODIC {
        return gap - grid_extent(axis) * round(gap / grid_extent(axis));
    }
    return gap;
}

fn bump(gap: f32) -> f32 {
    return exp(-FALLOFF * gap * gap);
}

// An agent's kernel along the first axis, then along the second.
fn kernel_of(agent: u32) -> u32 {
    return note(KERNELS_IN_SCRATCH) + agent * (POINTS_0 + POINTS_1);
}

fn prepare_kernels(state: u32) {
    if AXES == 1u {
        return;
    }
    for (var item = tid; item < swarm * (POINTS_0 + POINTS_1); item += THREADS) {
        let at = place(state, item / (POINTS_0 + POINTS_1));
        let k = item % (POINTS_0 + POINTS_1);
        let gap = select(gap_along(k, 0u, at.x), gap_along(k - POINTS_0, 1u, at.y), k >= POINTS_0);
        scratch[note(KERNELS_IN_SCRATCH) + item] = bump(gap);
    }
}

// What agents do to a node.
fn acted(j: u32) -> f32 {
    var sum = 0.0;
    if FORCES == 0u {
        return sum;
    }
    for (var agent = 0u; agent < swarm; agent++) {
        if AXES == 1u {
            sum = fma(action(agent, 0u), bump(gap_along(j, 0u, position(agent, 0u))), sum);
        } else {
            let at = kernel_of(agent);
            let kernel = scratch[at + j / POINTS_1] * scratch[at + POINTS_0 + j % POINTS_1];
            sum = fma(action(agent, 0u), kernel, sum);
        }
    }
    return sum;
}

// What the episode does to a value.
fn befallen(step: u32, k: u32) -> f32 {
    var sum = 0.0;
    for (var which = 0u; which < PUSHES; which++) {
        let strength = given(STRENGTH_IN_EPISODE + which * HORIZON + step);
        if strength != 0.0 {
            sum = fma(strength, given(PUSHES_IN_EPISODE + which * VALUES + k), sum);
        }
    }
    return sum;
}

// The forcing of a step.
fn press(step: u32) {
    prepare_kernels(state_of(step));
    if !NEAR {
        for (var k = tid; k < VALUES; k += THREADS) {
            set_here(k, states[state_of(step) + k]);
        }
    }
    if AXES == 2u {
        barrier();
        arrive(step);
    }
    for (var j = tid; j < CELLS; j += THREADS) {
        press_at(step, j);
    }
    if AXES == 1u {
        barrier();
        arrive(step);
    }
}

// An angle brought to −π..π; a turn is 6.28125 and the rest of it.
fn within_turn(x: f32) -> f32 {
    let turns = round(x * 0.15915494);
    return fma(-turns, 0.0019353072, fma(-turns, 6.28125, x));
}

fn sine(x: f32) -> f32 {
    return sin(within_turn(x));
}

fn cosine(x: f32) -> f32 {
    return cos(within_turn(x));
}

// What edges hold or bring to a node in a stage.
fn edge(field: u32, j: u32, step: u32, part: u32, stage: u32) -> f32 {
    let slot = u32(tables[SLOTS_IN_TABLES + field + j]);
    if slot == 0u {
        return 0.0;
    }
    let when = select(0u, step * SUBSTEPS + part, EDGES_CHANGE);
    return beyond((when * SLOTS + slot - 1u) * STAGES + stage);
}

// Whether nothing happens to a node by itself.
fn rests(field: u32, j: u32) -> bool {
    return tables[REST_IN_TABLES + field + j] != 0.0;
}

fn moment(step: u32, part: u32) -> f32 {
    return f32(step * SUBSTEPS + part) * SOLVER_DT;
}

// Fields in the middle and at the end of a part of a step, where they are kept.
fn kept_middle(step: u32, part: u32) -> u32 {
    return state_of(step) + KEPT + part * VALUES;
}

fn kept_end(step: u32, part: u32) -> u32 {
    return state_of(step) + KEPT + (MIDDLES + part) * VALUES;
}

// Fields before a part of a step, and after it.
fn before_part(step: u32, part: u32) -> u32 {
    if part == 0u {
        return state_of(step);
    }
    return kept_end(step, part - 1u);
}

fn after_part(step: u32, part: u32) -> u32 {
    if part + 1u == SUBSTEPS {
        return state_of(step + 1u);
    }
    return kept_end(step, part);
}

// From what pulls at the forcing to what pulls at the agents.
fn press_adjoint(step: u32) {
    let before = state_of(step);
    if FORCES == 0u {
        return;
    }
    if AXES == 1u {
        for (var item = tid; item < swarm * LANES; item += THREADS) {
            let x = place(before, item / LANES).x;
            var level = 0.0;
            var moment = 0.0;
            for (var j = item % LANES; j < CELLS; j += LANES) {
                let gap = gap_along(j, 0u, x);
                let felt = push(j) * bump(gap);
                level += felt;
                moment += felt * gap;
            }
            scratch[note(SPREAD_IN_SCRATCH) + 2u * item] = level;
            scratch[note(SPREAD_IN_SCRATCH) + 2u * item + 1u] = moment;
        }
    } else {
        // Along the second axis first, for every agent and row.
        for (var item = tid; item < swarm * POINTS_0; item += THREADS) {
            let agent = item / POINTS_0;
            let row = item % POINTS_0;
            let at = place(before, agent);
            let kernel = kernel_of(agent);
            var level = 0.0;
            var moment = 0.0;
            for (var k = 0u; k < POINTS_1; k++) {
                let felt = scratch[kernel + POINTS_0 + k] * push(row * POINTS_1 + k);
                level += felt;
                if DIRECTIONS > 0u {
                    moment += felt * gap_along(k, 1u, at.y);
                }
            }
            let weight = scratch[kernel + row];
            let sums_at = note(SPREAD_IN_SCRATCH) + 3u * item;
            scratch[sums_at] = weight * level;
            scratch[sums_at + 1u] = weight * level * gap_along(row, 0u, at.x);
            scratch[sums_at + 2u] = weight * moment;
        }
    }
    barrier();
    for (var agent = tid; agent < swarm; agent += THREADS) {
        var sum = vec3<f32>();
        if AXES == 1u {
            for (var lane = 0u; lane < LANES; lane++) {
                let sums_at = note(SPREAD_IN_SCRATCH) + 2u * (agent * LANES + lane);
                sum += vec3(scratch[sums_at], scratch[sums_at + 1u], 0.0);
            }
        } else {
            for (var row = 0u; row < POINTS_0; row++) {
                let sums_at = note(SPREAD_IN_SCRATCH) + 3u * (agent * POINTS_0 + row);
                sum += vec3(scratch[sums_at], scratch[sums_at + 1u], scratch[sums_at + 2u]);
            }
        }
        pool[G_FORCE_AT + agent] += sum.x;
        if DIRECTIONS > 0u {
            let pull = 2.0 * FALLOFF * done(step, agent, 0u);
            for (var axis = 0u; axis < AXES; axis++) {
                pool[G_POSITION_AT + agent * AXES + axis] += pull * sum[1u + axis];
            }
        }
    }
    // `answer_adjoint` gives the same agents to the same threads.
}
