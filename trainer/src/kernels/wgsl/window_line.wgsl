// What agents on a line see: the error to the target, then its slope, in a window around their cell, then
// perhaps the errors of other fields there.

// Nothing to prepare.
fn survey() {}

fn error(j: u32) -> f32 {
    return field_at(SEEN_FIELD + j) - target_at(now, SEEN_FIELD + j) + sensor_noise(now, j);
}

// Grid point `k` of the window around a cell; beyond a wall the last before it counts.
fn seen(c: u32, k: u32) -> u32 {
    if PERIODIC {
        return (c + APART * k + (CELLS - 1u) * APART * (WINDOW / 2u)) % CELLS;
    }
    let before = i32(c / APART);
    let behind = i32((CELLS - 1u - c) / APART);
    return c % APART + APART * u32(clamp(before + i32(k) - i32(WINDOW / 2u), 0, before + behind));
}

fn feature(agent: u32, k: u32) -> f32 {
    let j = seen(cell(agent, 0u), k % WINDOW);
    if k < WINDOW {
        return ERROR_GAIN * error(j);
    }
    if OTHERS > 0u && k >= 2u * WINDOW {
        let other = k / WINDOW - 2u;
        return other_gain(other) * other_error(other, j);
    }
    if PERIODIC {
        return SLOPE_GAIN * 0.5 * (error((j + APART) % CELLS) - error((j + CELLS - APART) % CELLS));
    }
    if j < APART {
        return SLOPE_GAIN * (error(j + APART) - error(j));
    }
    if j + APART >= CELLS {
        return SLOPE_GAIN * (error(j) - error(j - APART));
    }
    return SLOPE_GAIN * 0.5 * (error(j + APART) - error(j - APART));
}

// Sum of the gradients of one channel at a grid point, over the tile.
fn gathered(j: u32, channel: u32) -> f32 {
    var sum = 0.0;
    for (var r = 0u; r < ROWS; r++) {
        if !peopled(r) {
            break;
        }
        let at = WINDOW_AT + r * INPUTS + channel * WINDOW;
        let c = u32(pool[SEEN_AT + r]);
        if PERIODIC {
            let steps = (j + CELLS + APART * (WINDOW / 2u) - c) % CELLS;
            if steps % APART == 0u && steps / APART < WINDOW {
                sum += pool[at + steps / APART];
            }
        } else if (i32(j) - i32(c)) % i32(APART) == 0 {
            // Beyond the walls the last value before them was seen.
            let k = (i32(j) - i32(c)) / i32(APART) + i32(WINDOW / 2u);
            let low = select(max(k, 0), 0, j < APART);
            let high = select(min(k, i32(WINDOW) - 1), i32(WINDOW) - 1, j + APART >= CELLS);
            for (var i = low; i <= high; i++) {
                sum += pool[at + u32(i)];
            }
        }
    }
    return sum;
}

fn features_adjoint() {
    for (var j = tid; j < CELLS; j += THREADS) {
        var g = ERROR_GAIN * gathered(j, 0u);
        if PERIODIC {
            g += SLOPE_GAIN * 0.5 * (gathered((j + CELLS - APART) % CELLS, 1u) - gathered((j + APART) % CELLS, 1u));
        } else {
            if j >= APART {
                g += SLOPE_GAIN * select(0.5, 1.0, j < 2u * APART) * gathered(j - APART, 1u);
            }
            if j + APART < CELLS {
                g -= SLOPE_GAIN * select(0.5, 1.0, j + 2u * APART >= CELLS) * gathered(j + APART, 1u);
            }
            if j < APART {
                g -= SLOPE_GAIN * gathered(j, 1u);
            }
            if j + APART >= CELLS {
                g += SLOPE_GAIN * gathered(j, 1u);
            }
        }
        set_g_field(SEEN_FIELD + j, g_field_at(SEEN_FIELD + j) + g);
        for (var other = 0u; other < OTHERS; other++) {
            let pull = other_gain(other) * gathered(j, 2u + other);
            let at = other_field(other) + j;
            set_g_field(at, g_field_at(at) + pull);
        }
    }
}
