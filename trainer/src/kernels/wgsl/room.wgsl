// A density carried by the wind of mobile fans:
//
//   d = cap(coupling · Σ_i v_i k_i(x) k_i(y) + drift),   m(x) = z(x − d(x)),
//   z⁺ = clip((1 − 4μ) m + μ Σ m(neighbours)),
//
// in cells, with m interpolated bilinearly and the two outermost rows and columns of z⁺ repeating the
// third. Displacements are short: m reads a cell and its eight neighbours, and is needed nowhere on
// the outermost ring.
//
// A workgroup has STRIP rows. What it needs to know of its neighbours' rows it computes itself, in the pool.

// Rows that a strip reads `m` on: its own, one before and one after.
const SPAN: u32 = STRIP + 2u;
// A kernel along both axes: on a strip's rows, then on all columns.
const KERNEL: u32 = SPAN + POINTS_1;
// In the pool: behind what pulls at up to three rows around a strip on either side, the same after the cut; sums
// over the strip take the place of both.
const CUT_AT: u32 = PULL_AT + (STRIP + 6u) * POINTS_1;
const SUMS_AT: u32 = PULL_AT;

fn note(offset: u32) -> u32 {
    return episode * SCRATCH + offset;
}

fn coordinate(j: u32, axis: u32) -> f32 {
    return f32(j) * select(SPACING, SPACING_1, axis == 1u);
}

fn field_at(j: u32) -> f32 {
    return states[state_of(now) + j];
}

// The gradient of a field, in one of two places by turns: strips read what others' rows had after the step
// while these are written for before it.
fn g_field(step: u32, j: u32) -> u32 {
    return note(G_FIELD_IN_SCRATCH) + step % 2u * CELLS + j;
}

// The first row that a strip reads `m` on.
fn first_read(strip: u32) -> u32 {
    return max(strip * STRIP, 1u) - 1u;
}

// The kernels and velocities of up to TOGETHER agents, for a strip.
fn place_kernels(step: u32, from_agent: u32, strip: u32) {
    workgroupBarrier();
    for (var item = tid; item < TOGETHER * KERNEL; item += THREADS) {
        let agent = from_agent + item / KERNEL;
        let j = item % KERNEL;
        if agent < swarm {
            let axis = select(0u, 1u, j >= SPAN);
            let x = coordinate(select(first_read(strip) + j, j - SPAN, j >= SPAN), axis);
            let gap = x - states[state_of(step) + VALUES + agent * AXES + axis];
            pool[KERNELS_AT + item] = exp(-FALLOFF * gap * gap);
        }
    }
    for (var k = tid; k < TOGETHER; k += THREADS) {
        if from_agent + k < swarm {
            let v = velocity_done(step, from_agent + k);
            pool[VELOCITIES_AT + 2u * k] = v.x;
            pool[VELOCITIES_AT + 2u * k + 1u] = v.y;
        }
    }
    workgroupBarrier();
}

// What an agent makes of a unit of wind in a cell of the strip.
fn kernel(k: u32, row: u32, column: u32) -> f32 {
    let at = KERNELS_AT + k * KERNEL;
    return pool[at + row] * pool[at + SPAN + column];
}

fn velocity(k: u32) -> vec2<f32> {
    return vec2(pool[VELOCITIES_AT + 2u * k], pool[VELOCITIES_AT + 2u * k + 1u]);
}

// The wind in all cells that a strip reads `m` in. A thread reads it where it wrote it.
fn find_wind(step: u32, strip: u32) {
    for (var from_agent = 0u; from_agent < swarm; from_agent += TOGETHER) {
        place_kernels(step, from_agent, strip);
        for (var item = tid; item < SPAN * POINTS_1; item += THREADS) {
            var wind = vec2<f32>();
            if from_agent > 0u {
                wind = two(WIND_AT, item);
            }
            for (var k = 0u; k < min(TOGETHER, swarm - from_agent); k++) {
                wind += kernel(k, item / POINTS_1, item % POINTS_1) * velocity(k);
            }
            set_two(WIND_AT, item, wind);
        }
    }
}

fn two(region: u32, item: u32) -> vec2<f32> {
    return vec2(pool[region + 2u * item], pool[region + 2u * item + 1u]);
}

fn set_two(region: u32, item: u32, value: vec2<f32>) {
    pool[region + 2u * item] = value.x;
    pool[region + 2u * item + 1u] = value.y;
}

fn inner(i: u32, j: u32, rim: u32) -> bool {
    return i >= rim && i + rim < POINTS_0 && j >= rim && j + rim < POINTS_1;
}

// The way, in cells, that a cell's density came in this step, before it is shortened.
fn way(item: u32) -> vec2<f32> {
    return vec2(CELLS_PER_VELOCITY_0, CELLS_PER_VELOCITY_1) * two(WIND_AT, item) + vec2(DRIFT_0, DRIFT_1);
}

fn shortened(d: vec2<f32>) -> vec2<f32> {
    let square = dot(d, d);
    if square > LONGEST * LONGEST {
        return d * (LONGEST / sqrt(square));
    }
    return d;
}

// Shares of the cell before, the cell itself and the one after.
fn shares(d: f32) -> vec3<f32> {
    return vec3(max(d, 0.0), 1.0 - abs(d), max(-d, 0.0));
}

fn row_share(here: u32, j: u32, of_columns: vec3<f32>) -> f32 {
    return of_columns.x * states[here + j - 1u] + of_columns.y * states[here + j]
        + of_columns.z * states[here + j + 1u];
}

fn advance_strip(step: u32, strip: u32) {
    let here = state_of(step);
    let there = state_of(step + 1u);
    let from_row = first_read(strip);
    find_wind(step, strip);
    for (var item = tid; item < SPAN * POINTS_1; item += THREADS) {
        let row = from_row + item / POINTS_1;
        let column = item % POINTS_1;
        let j = row * POINTS_1 + column;
        var m = 0.0;
        if inner(row, column, 1u) {
            let d = shortened(way(item));
            let down = shares(d.x);
            let along = shares(d.y);
            m = down.x * row_share(here, j - POINTS_1, along) + down.y * row_share(here, j, along)
                + down.z * row_share(here, j + POINTS_1, along);
        }
        pool[CARRIED_AT + item] = m;
    }
    workgroupBarrier();
    for (var item = tid; item < STRIP * POINTS_1; item += THREADS) {
        let j = strip * STRIP * POINTS_1 + item;
        let row = clamp(j / POINTS_1, 2u, POINTS_0 - 3u);
        let at = CARRIED_AT + (row - from_row) * POINTS_1 + clamp(j % POINTS_1, 2u, POINTS_1 - 3u);
        states[there + j] = clamp(staying() * pool[at] + mixing() * (pool[at - POINTS_1] + pool[at + POINTS_1]
            + pool[at - 1u] + pool[at + 1u]), 0.0, DENSITY_MAX);
    }
}

// Coordinates in units of the first axis' length.
fn centroid_units(j: u32) -> vec2<f32> {
    return vec2(coordinate(j / POINTS_1, 0u), coordinate(j % POINTS_1, 1u)) / grid_extent(0u);
}

fn total(part: vec3<f32>) -> vec3<f32> {
    return vec3(sum_of(part.x), sum_of(part.y), sum_of(part.z));
}

fn centre(moments: vec3<f32>) -> vec2<f32> {
    return moments.yz / (moments.x + 1e-6);
}

// How far the density's centre is from the target's. The way back reads that, the centre and the mass.
fn score_beside(step: u32) {
    var moments = vec3<f32>();
    var aimed = vec3<f32>();
    for (var j = tid; j < CELLS; j += THREADS) {
        let units = vec3(1.0, centroid_units(j));
        moments += states[state_of(step + 1u) + j] * units;
        aimed += target_at(0u, j) * units;
    }
    let whole = total(moments);
    let middle = centre(whole);
    let gap = middle - centre(total(aimed));
    if tid == 0u {
        sums[CENTROID] = dot(gap, gap);
        let at = note(CENTRES_IN_SCRATCH) + 5u * step;
        scratch[at] = gap.x;
        scratch[at + 1u] = gap.y;
        scratch[at + 2u] = middle.x;
        scratch[at + 3u] = middle.y;
        scratch[at + 4u] = whole.x;
    }
}

fn advance_strip_adjoint(step: u32, strip: u32) {
    // Agents saw the field in the step after this one.
    now = step + 1u;
    let here = state_of(step);
    let there = state_of(step + 1u);
    let late = step + 1u < HORIZON;
    for (var i = tid; i < swarm * AXES; i += THREADS) {
        pool[WATCH_AT + i] = f32(cell(i / AXES, i % AXES));
    }
    find_wind(step, strip);
    let error_share = error_pull(step);
    let at = note(CENTRES_IN_SCRATCH) + 5u * step;
    let middle = vec2(scratch[at + 2u], scratch[at + 3u]);
    let centroid_pull = 2.0 * pull(CENTROID) / (scratch[at + 4u] + 1e-6) * vec2(scratch[at], scratch[at + 1u]);
    // Two rows around the strip, and beside walls all that repeat the last row before them.
    let first_cut = max(strip * STRIP, 2u) - 2u;
    let end_cut = min((strip + 1u) * STRIP + 2u, POINTS_0);
    let first_pull = select(first_cut, 0u, first_cut <= 2u);
    let end_pull = select(end_cut, POINTS_0, end_cut + 3u > POINTS_0);
    for (var item = tid; item < (end_pull - first_pull) * POINTS_1; item += THREADS) {
        let j = first_pull * POINTS_1 + item;
        var g = error_share * (states[there + j] - target_at(step + 1u, j))
            + dot(centroid_pull, centroid_units(j) - middle);
        if late {
            g += scratch[g_field(step + 1u, j)] + gathered_error(j / POINTS_1, j % POINTS_1);
        }
        pool[PULL_AT + item] = g;
    }
    workgroupBarrier();
    // Before the walls and the cut to possible densities.
    for (var item = tid; item < (end_cut - first_cut) * POINTS_1; item += THREADS) {
        let j = first_cut * POINTS_1 + item;
        let row = j / POINTS_1;
        let column = j % POINTS_1;
        var g = 0.0;
        let z = states[there + j];
        if inner(row, column, 2u) && z > 0.0 && z < DENSITY_MAX {
            let top = select(row, 0u, row == 2u);
            let bottom = select(row, POINTS_0 - 1u, row == POINTS_0 - 3u);
            let left = select(column, 0u, column == 2u);
            let right = select(column, POINTS_1 - 1u, column == POINTS_1 - 3u);
            for (var i = top; i <= bottom; i++) {
                for (var k = left; k <= right; k++) {
                    g += pool[PULL_AT + (i - first_pull) * POINTS_1 + k];
                }
            }
        }
        pool[CUT_AT + item] = g;
    }
    workgroupBarrier();
    let from_row = first_read(strip);
    for (var item = tid; item < SPAN * POINTS_1; item += THREADS) {
        let row = from_row + item / POINTS_1;
        let column = item % POINTS_1;
        let j = row * POINTS_1 + column;
        var g = 0.0;
        var d = vec2<f32>();
        var g_wind = vec2<f32>();
        if inner(row, column, 1u) && row <= (strip + 1u) * STRIP {
            let at = CUT_AT + (row - first_cut) * POINTS_1 + column;
            g = staying() * pool[at]
                + mixing() * (pool[at - POINTS_1] + pool[at + POINTS_1] + pool[at - 1u] + pool[at + 1u]);
            let free = way(item);
            d = shortened(free);
            let down = shares(d.x);
            let along = shares(d.y);
            let above = row_share(here, j - POINTS_1, along);
            let level = row_share(here, j, along);
            let below = row_share(here, j + POINTS_1, along);
            var g_way = g * vec2(
                select(level - below, above - level, d.x > 0.0),
                slope(here, j - POINTS_1, d.y) * down.x + slope(here, j, d.y) * down.y
                    + slope(here, j + POINTS_1, d.y) * down.z,
            );
            let square = dot(free, free);
            if square > LONGEST * LONGEST {
                // The part along the way itself is lost.
                g_way = LONGEST / sqrt(square) * (g_way - free * (dot(free, g_way) / square));
            }
            g_wind = vec2(CELLS_PER_VELOCITY_0, CELLS_PER_VELOCITY_1) * g_way;
        }
        pool[CARRIED_AT + item] = g;
        set_two(WIND_AT, item, d);
        set_two(G_WIND_AT, item, g_wind);
    }
    workgroupBarrier();
    // A cell is read by itself and its eight neighbours.
    for (var item = tid; item < STRIP * POINTS_1; item += THREADS) {
        let j = strip * STRIP * POINTS_1 + item;
        let row = i32(j / POINTS_1);
        let column = i32(j % POINTS_1);
        var g = 0.0;
        for (var k = max(row - 1, 0); k <= min(row + 1, i32(POINTS_0) - 1); k++) {
            for (var l = max(column - 1, 0); l <= min(column + 1, i32(POINTS_1) - 1); l++) {
                let reader = (u32(k) - from_row) * POINTS_1 + u32(l);
                let d = two(WIND_AT, reader);
                // The reader after this cell took the share of the cell before.
                let down = shares(d.x)[u32(row - k + 1)];
                let along = shares(d.y)[u32(column - l + 1)];
                g += down * along * pool[CARRIED_AT + reader];
            }
        }
        scratch[g_field(step, j)] = g;
    }
    for (var from_agent = 0u; from_agent < swarm; from_agent += TOGETHER) {
        pull_agents(step, strip, from_agent);
    }
}

// Sums of four over this strip's cells for up to TOGETHER agents: what pulls at their velocities, then at
// their positions.
fn pull_agents(step: u32, strip: u32, from_agent: u32) {
    place_kernels(step, from_agent, strip);
    let before = strip * STRIP - first_read(strip);
    for (var item = tid; item < TOGETHER * EACH; item += THREADS) {
        let k = item / EACH;
        var level = vec2<f32>();
        var moment = vec2<f32>();
        if from_agent + k < swarm {
            let at = place(state_of(step), from_agent + k);
            let v = velocity(k);
            for (var i = item % EACH; i < STRIP * POINTS_1; i += EACH) {
                let row = before + i / POINTS_1;
                let column = i % POINTS_1;
                let felt = kernel(k, row, column) * two(G_WIND_AT, row * POINTS_1 + column);
                let gap = vec2(coordinate(first_read(strip) + row, 0u), coordinate(column, 1u)) - at;
                level += felt;
                moment += dot(v, felt) * gap;
            }
        }
        set_two(SUMS_AT, 2u * item, level);
        set_two(SUMS_AT, 2u * item + 1u, moment);
    }
    workgroupBarrier();
    for (var item = tid; item < TOGETHER * 4u; item += THREADS) {
        let agent = from_agent + item / 4u;
        if agent < swarm {
            var sum = 0.0;
            for (var i = 0u; i < EACH; i++) {
                sum += pool[SUMS_AT + (item / 4u * EACH + i) * 4u + item % 4u];
            }
            scratch[note(SUMS_IN_SCRATCH) + (agent * STRIPS + strip) * 4u + item % 4u] = sum;
        }
    }
}

// Adds up what pulls at agents in all strips.
fn strips_adjoint() {
    for (var agent = own.x + tid; agent < own.y; agent += THREADS) {
        var sum = vec4<f32>();
        for (var strip = 0u; strip < STRIPS; strip++) {
            let at = note(SUMS_IN_SCRATCH) + (agent * STRIPS + strip) * 4u;
            sum += vec4(scratch[at], scratch[at + 1u], scratch[at + 2u], scratch[at + 3u]);
        }
        pool[G_VELOCITY_AT + agent * AXES] += sum.x;
        pool[G_VELOCITY_AT + agent * AXES + 1u] += sum.y;
        pool[G_POSITION_AT + agent * AXES] += 2.0 * FALLOFF * sum.z;
        pool[G_POSITION_AT + agent * AXES + 1u] += 2.0 * FALLOFF * sum.w;
    }
}

// How a row's share changes with the way along it.
fn slope(here: u32, j: u32, d: f32) -> f32 {
    return select(states[here + j] - states[here + j + 1u], states[here + j - 1u] - states[here + j], d > 0.0);
}
