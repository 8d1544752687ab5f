// What agents on a plane see: the errors in a square window around their cell, then perhaps those of other
// fields, or a coarse view of the whole domain: means over blocks of it.

// The coarse view is the same for all agents.
fn survey() {
    if WIDE == 0u {
        return;
    }
    for (var item = tid; item < WIDE * BLOCK_0; item += THREADS) {
        let k = item / BLOCK_0;
        let row = k / WIDE_ALONG * BLOCK_0 + item % BLOCK_0;
        var sum = 0.0;
        for (var i = 0u; i < BLOCK_1; i++) {
            sum += error(row * POINTS_1 + k % WIDE_ALONG * BLOCK_1 + i);
        }
        pool[WIDE_ROWS_AT + item] = sum;
    }
    workgroupBarrier();
    for (var k = tid; k < WIDE; k += THREADS) {
        var sum = 0.0;
        for (var i = 0u; i < BLOCK_0; i++) {
            sum += pool[WIDE_ROWS_AT + k * BLOCK_0 + i];
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

// The grid point of cell `k` of an agent's window.
fn window_point(agent: u32, k: u32) -> u32 {
    let row = seen(cell(agent, 0u), k / WINDOW, POINTS_0);
    let column = seen(cell(agent, 1u), k % WINDOW, POINTS_1);
    return row * POINTS_1 + column;
}

fn feature(agent: u32, k: u32) -> f32 {
    if WIDE > 0u && k >= WINDOW * WINDOW {
        return pool[WIDE_AT + k - WINDOW * WINDOW];
    }
    if OTHERS > 0u && k >= WINDOW * WINDOW {
        let other = k / (WINDOW * WINDOW) - 1u;
        return other_gain(other) * other_error(other, window_point(agent, k % (WINDOW * WINDOW)));
    }
    return ERROR_GAIN * error(window_point(agent, k));
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

// Sum of the gradients of one channel at a grid point, over the agents at hand.
fn gathered(row: u32, column: u32, channel: u32) -> f32 {
    var sum = 0.0;
    for (var r = 0u; r < onlookers(); r++) {
        let down = shown(row, seen_from(r, 0u), POINTS_0);
        if down.x > down.y {
            continue;
        }
        let along = shown(column, seen_from(r, 1u), POINTS_1);
        let at = channel * WINDOW * WINDOW;
        for (var k = down.x; k <= down.y; k++) {
            for (var l = along.x; l <= along.y; l++) {
                sum += pulled(r, at + u32(k) * WINDOW + u32(l));
            }
        }
    }
    return sum;
}

// The same of the field whose errors they see, with its coarse view.
fn gathered_error(row: u32, column: u32) -> f32 {
    var g = ERROR_GAIN * gathered(row, column, 0u);
    if WIDE > 0u {
        let block = WINDOW * WINDOW + row / BLOCK_0 * WIDE_ALONG + column / BLOCK_1;
        var sum = 0.0;
        for (var r = 0u; r < onlookers(); r++) {
            sum += pulled(r, block);
        }
        g += WIDE_GAIN / f32(BLOCK_0 * BLOCK_1) * sum;
    }
    return g;
}
