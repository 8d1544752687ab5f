// A density carried by the wind of mobile fans:
//
//   d = cap(coupling · Σ_i v_i k_i(x) k_i(y) + drift),   m(x) = z(x − d(x)),
//   z⁺ = clip((1 − 4μ) m + μ Σ m(neighbours)),
//
// in cells, with m interpolated bilinearly and the two outermost rows and columns of z⁺ repeating the
// third. Displacements are short: m reads a cell and its eight neighbours, and is needed nowhere on
// the outermost ring.

fn note(offset: u32) -> u32 {
    return episode * SCRATCH + offset;
}

fn coordinate(j: u32, axis: u32) -> f32 {
    return f32(j) * select(SPACING, SPACING_1, axis == 1u);
}

// Every agent's kernel along both axes, [agents, POINTS_0 | POINTS_1], for agents as a state has them.
fn place_kernels(state: u32) {
    for (var item = tid; item < swarm * (POINTS_0 + POINTS_1); item += THREADS) {
        let agent = item / (POINTS_0 + POINTS_1);
        let j = item % (POINTS_0 + POINTS_1);
        let axis = select(0u, 1u, j >= POINTS_0);
        let x = coordinate(j - axis * POINTS_0, axis);
        let gap = x - states[state + VALUES + agent * AXES + axis];
        scratch[note(KERNELS_IN_SCRATCH) + item] = exp(-FALLOFF * gap * gap);
    }
}

fn kernel(agent: u32, axis: u32, j: u32) -> f32 {
    return scratch[note(KERNELS_IN_SCRATCH) + agent * (POINTS_0 + POINTS_1) + axis * POINTS_0 + j];
}

fn inner(i: u32, j: u32, rim: u32) -> bool {
    return i >= rim && i + rim < POINTS_0 && j >= rim && j + rim < POINTS_1;
}

// The way, in cells, that a cell's density came in this step, before it is shortened.
fn way(step: u32, i: u32, j: u32) -> vec2<f32> {
    var wind = vec2<f32>();
    for (var k = 0u; k < swarm; k++) {
        wind += kernel(k, 0u, i) * kernel(k, 1u, j) * velocity_done(step, k);
    }
    return vec2(CELLS_PER_VELOCITY_0, CELLS_PER_VELOCITY_1) * wind + vec2(DRIFT_0, DRIFT_1);
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

fn advance(step: u32) {
    let here = state_of(step);
    let there = state_of(step + 1u);
    place_kernels(here);
    barrier();
    arrive(step);
    for (var j = tid; j < CELLS; j += THREADS) {
        let row = j / POINTS_1;
        let column = j % POINTS_1;
        var m = 0.0;
        if inner(row, column, 1u) {
            let d = shortened(way(step, row, column));
            let down = shares(d.x);
            let along = shares(d.y);
            m = down.x * row_share(here, j - POINTS_1, along) + down.y * row_share(here, j, along)
                + down.z * row_share(here, j + POINTS_1, along);
        }
        scratch[note(CARRIED_IN_SCRATCH) + j] = m;
    }
    barrier();
    var moments = vec3<f32>();
    for (var j = tid; j < CELLS; j += THREADS) {
        let row = j / POINTS_1;
        let column = j % POINTS_1;
        let at = note(CARRIED_IN_SCRATCH) + clamp(row, 2u, POINTS_0 - 3u) * POINTS_1
            + clamp(column, 2u, POINTS_1 - 3u);
        let z = clamp(staying() * scratch[at] + mixing() * (scratch[at - POINTS_1] + scratch[at + POINTS_1]
            + scratch[at - 1u] + scratch[at + 1u]), 0.0, DENSITY_MAX);
        states[there + j] = z;
        score_error(step, z - target_at(step + 1u, j));
        moments += z * vec3(1.0, centroid_unit(row, 0u), centroid_unit(column, 1u));
    }
    let whole = total(moments);
    if tid == 0u {
        let at = note(MOMENTS_IN_SCRATCH) + 3u * (step + 1u);
        for (var k = 0u; k < 3u; k++) {
            scratch[at + k] = whole[k];
        }
        let gap = centre(whole) - centre(aimed());
        sums[CENTROID] += dot(gap, gap);
    }
    barrier();
}

// Coordinates in units of the first axis' length.
fn centroid_unit(j: u32, axis: u32) -> f32 {
    return coordinate(j, axis) / grid_extent(0u);
}

// Mass and first moments of the target, left in the first row by the first dispatch.
fn aimed() -> vec3<f32> {
    let at = note(MOMENTS_IN_SCRATCH);
    return vec3(scratch[at], scratch[at + 1u], scratch[at + 2u]);
}

fn centre(moments: vec3<f32>) -> vec2<f32> {
    return moments.yz / (moments.x + 1e-6);
}

// The sum over all threads, in a fixed order; for all of them.
fn total(part: vec3<f32>) -> vec3<f32> {
    let at = TOTAL_AT + 3u * tid;
    for (var k = 0u; k < 3u; k++) {
        pool[at + k] = part[k];
    }
    for (var half = THREADS / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if tid < half {
            for (var k = 0u; k < 3u; k++) {
                pool[at + k] += pool[at + 3u * half + k];
            }
        }
    }
    workgroupBarrier();
    let whole = vec3(pool[TOTAL_AT], pool[TOTAL_AT + 1u], pool[TOTAL_AT + 2u]);
    workgroupBarrier();
    return whole;
}

fn begin(here: u32) {
    if portion.x == 0u {
        var moments = vec3<f32>();
        for (var j = tid; j < CELLS; j += THREADS) {
            let places = vec2(centroid_unit(j / POINTS_1, 0u), centroid_unit(j % POINTS_1, 1u));
            moments += target_at(0u, j) * vec3(1.0, places);
        }
        let whole = total(moments);
        if tid == 0u {
            for (var k = 0u; k < 3u; k++) {
                scratch[note(MOMENTS_IN_SCRATCH) + k] = whole[k];
            }
        }
    }
}

fn advance_adjoint(step: u32) {
    let here = state_of(step);
    let there = state_of(step + 1u);
    let error_share = error_pull(step);
    let at = note(MOMENTS_IN_SCRATCH) + 3u * (step + 1u);
    let whole = vec3(scratch[at], scratch[at + 1u], scratch[at + 2u]);
    let middle = centre(whole);
    let gap = middle - centre(aimed());
    let centroid_pull = 2.0 * pull(CENTROID) / (whole.x + 1e-6) * gap;
    for (var j = tid; j < CELLS; j += THREADS) {
        let z = states[there + j];
        let places = vec2(centroid_unit(j / POINTS_1, 0u), centroid_unit(j % POINTS_1, 1u));
        set_g_field(j, g_field_at(j) + error_share * (z - target_at(step + 1u, j)) + dot(centroid_pull, places - middle));
    }
    place_kernels(here);
    barrier();
    // Before the walls and the cut to possible densities.
    for (var j = tid; j < CELLS; j += THREADS) {
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
                    g += g_field_at(i * POINTS_1 + k);
                }
            }
        }
        scratch[note(CARRIED_IN_SCRATCH) + j] = g;
    }
    barrier();
    for (var j = tid; j < CELLS; j += THREADS) {
        let row = j / POINTS_1;
        let column = j % POINTS_1;
        var g = 0.0;
        var d = vec2<f32>();
        var g_wind = vec2<f32>();
        if inner(row, column, 1u) {
            let from_mixed = note(CARRIED_IN_SCRATCH) + j;
            g = staying() * scratch[from_mixed] + mixing() * (scratch[from_mixed - POINTS_1]
                + scratch[from_mixed + POINTS_1] + scratch[from_mixed - 1u] + scratch[from_mixed + 1u]);
            let free = way(step, row, column);
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
        scratch[note(G_CARRIED_IN_SCRATCH) + j] = g;
        scratch[note(WAY_IN_SCRATCH) + 2u * j] = d.x;
        scratch[note(WAY_IN_SCRATCH) + 2u * j + 1u] = d.y;
        scratch[note(G_WIND_IN_SCRATCH) + 2u * j] = g_wind.x;
        scratch[note(G_WIND_IN_SCRATCH) + 2u * j + 1u] = g_wind.y;
    }
    barrier();
    // A cell is read by itself and its eight neighbours.
    for (var j = tid; j < CELLS; j += THREADS) {
        let row = i32(j / POINTS_1);
        let column = i32(j % POINTS_1);
        var g = 0.0;
        for (var k = max(row - 1, 0); k <= min(row + 1, i32(POINTS_0) - 1); k++) {
            for (var l = max(column - 1, 0); l <= min(column + 1, i32(POINTS_1) - 1); l++) {
                let reader = u32(k) * POINTS_1 + u32(l);
                let d = note(WAY_IN_SCRATCH) + 2u * reader;
                // The reader after this cell took the share of the cell before.
                let down = shares(scratch[d])[u32(row - k + 1)];
                let along = shares(scratch[d + 1u])[u32(column - l + 1)];
                g += down * along * scratch[note(G_CARRIED_IN_SCRATCH) + reader];
            }
        }
        set_g_field(j, g);
    }
    // Along y first, for every agent and row.
    for (var item = tid; item < swarm * POINTS_0; item += THREADS) {
        let agent = item / POINTS_0;
        let row = item % POINTS_0;
        let y = states[here + VALUES + agent * AXES + 1u];
        var level = vec2<f32>();
        var moment = vec2<f32>();
        for (var k = 0u; k < POINTS_1; k++) {
            let g_wind = note(G_WIND_IN_SCRATCH) + 2u * (row * POINTS_1 + k);
            let felt = kernel(agent, 1u, k) * vec2(scratch[g_wind], scratch[g_wind + 1u]);
            level += felt;
            moment += felt * (coordinate(k, 1u) - y);
        }
        let across = kernel(agent, 0u, row);
        let v = velocity_done(step, agent);
        let out = note(LINES_IN_SCRATCH) + 4u * item;
        let x = states[here + VALUES + agent * AXES];
        scratch[out] = across * level.x;
        scratch[out + 1u] = across * level.y;
        scratch[out + 2u] = across * (coordinate(row, 0u) - x) * dot(v, level);
        scratch[out + 3u] = across * dot(v, moment);
    }
    barrier();
    for (var agent = tid; agent < swarm; agent += THREADS) {
        var sum = vec4<f32>();
        for (var row = 0u; row < POINTS_0; row++) {
            let from_line = note(LINES_IN_SCRATCH) + 4u * (agent * POINTS_0 + row);
            sum += vec4(scratch[from_line], scratch[from_line + 1u], scratch[from_line + 2u], scratch[from_line + 3u]);
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
