// What agents on a plane see: the errors in a square window around their cell, then perhaps a coarse
// view of the whole domain: means over blocks of it.

// The coarse view is the same for all agents.
fn survey() {
    if WIDE == 0u {
        return;
    }
    for (var k = tid; k < WIDE; k += THREADS) {
        var sum = 0.0;
        for (var i = 0u; i < BLOCK_0 * BLOCK_1; i++) {
            let row = k / WIDE_ALONG * BLOCK_0 + i / BLOCK_1;
            let column = k % WIDE_ALONG * BLOCK_1 + i % BLOCK_1;
            sum += error(row * POINTS_1 + column);
        }
        pool[WIDE_AT + k] = WIDE_GAIN / f32(BLOCK_0 * BLOCK_1) * sum;
    }
    workgroupBarrier();
}

fn error(j: u32) -> f32 {
    return field_at(SEEN_FIELD + j) - target_at(now, SEEN_FIELD + j) + sensor_noise(now, j);
}

// Grid index of cell `k` of the window around `c`, along an axis of `n` points; beyond a wall the last before
// it counts.
fn seen(c: u32, k: u32, n: u32) -> u32 {
    if PERIODIC {
        return (c + APART * k + (n - 1u) * APART * (WINDOW / 2u)) % n;
    }
    let before = i32(c / APART);
    let behind = i32((n - 1u - c) / APART);
    return c % APART + APART * u32(clamp(before + i32(k) - i32(WINDOW / 2u), 0, before + behind));
}

fn feature(agent: u32, k: u32) -> f32 {
    if k >= WINDOW * WINDOW {
        return pool[WIDE_AT + k - WINDOW * WINDOW];
    }
    let row = seen(cell(agent, 0u), k / WINDOW, POINTS_0);
    let column = seen(cell(agent, 1u), k % WINDOW, POINTS_1);
    return ERROR_GAIN * error(row * POINTS_1 + column);
}

// The first and the last cell of the window around `c` that show grid index `j`; the last comes
// before the first if none does. Beyond the walls the last value before them was seen.
fn shown(j: u32, c: u32, n: u32) -> vec2<i32> {
    if PERIODIC {
        let steps = (j + n + APART * (WINDOW / 2u) - c) % n;
        let k = i32(steps / APART);
        return select(vec2(1, 0), vec2(k, k), steps % APART == 0u && k < i32(WINDOW));
    }
    if (i32(j) - i32(c)) % i32(APART) != 0 {
        return vec2(1, 0);
    }
    let k = (i32(j) - i32(c)) / i32(APART) + i32(WINDOW / 2u);
    let low = select(max(k, 0), 0, j < APART);
    let high = select(min(k, i32(WINDOW) - 1), i32(WINDOW) - 1, j + APART >= n);
    return vec2(low, high);
}

fn features_adjoint() {
    for (var k = tid; k < WIDE; k += THREADS) {
        var sum = 0.0;
        for (var r = 0u; r < ROWS && peopled(r); r++) {
            sum += pool[WINDOW_AT + r * INPUTS + WINDOW * WINDOW + k];
        }
        pool[WIDE_AT + k] = WIDE_GAIN / f32(BLOCK_0 * BLOCK_1) * sum;
    }
    if WIDE > 0u {
        workgroupBarrier();
    }
    for (var j = tid; j < CELLS; j += THREADS) {
        let row = j / POINTS_1;
        let column = j % POINTS_1;
        var sum = 0.0;
        for (var r = 0u; r < ROWS && peopled(r); r++) {
            let down = shown(row, u32(pool[SEEN_AT + AXES * r]), POINTS_0);
            if down.x > down.y {
                continue;
            }
            let along = shown(column, u32(pool[SEEN_AT + AXES * r + 1u]), POINTS_1);
            for (var k = down.x; k <= down.y; k++) {
                for (var l = along.x; l <= along.y; l++) {
                    sum += pool[WINDOW_AT + r * INPUTS + u32(k) * WINDOW + u32(l)];
                }
            }
        }
        var g = ERROR_GAIN * sum;
        if WIDE > 0u {
            g += pool[WIDE_AT + row / BLOCK_0 * WIDE_ALONG + column / BLOCK_1];
        }
        set_g_field(SEEN_FIELD + j, g_field_at(SEEN_FIELD + j) + g);
    }
}
