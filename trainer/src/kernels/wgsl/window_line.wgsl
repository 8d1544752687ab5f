// What agents on a line see: the error to the target, then its slope, in a window around their cell.

// Nothing to prepare.
fn survey() {}

fn error(j: u32) -> f32 {
    return field_at(SEEN_FIELD + j) - target_at(now, SEEN_FIELD + j) + sensor_noise(now, j);
}

// Grid point `k` of the window around a cell.
fn seen(c: u32, k: u32) -> u32 {
    if PERIODIC {
        return (c + k + CELLS - WINDOW / 2u) % CELLS;
    }
    return u32(clamp(i32(c + k) - i32(WINDOW / 2u), 0, i32(CELLS) - 1));
}

fn feature(agent: u32, k: u32) -> f32 {
    let j = seen(cell(agent, 0u), k % WINDOW);
    if k < WINDOW {
        return ERROR_GAIN * error(j);
    }
    if PERIODIC {
        return SLOPE_GAIN * 0.5 * (error((j + 1u) % CELLS) - error((j + CELLS - 1u) % CELLS));
    }
    if j == 0u {
        return SLOPE_GAIN * (error(1u) - error(0u));
    }
    if j == CELLS - 1u {
        return SLOPE_GAIN * (error(j) - error(j - 1u));
    }
    return SLOPE_GAIN * 0.5 * (error(j + 1u) - error(j - 1u));
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
            let k = (j + CELLS + WINDOW / 2u - c) % CELLS;
            if k < WINDOW {
                sum += pool[at + k];
            }
        } else {
            // Beyond the walls the wall's own value was seen.
            let k = i32(j + WINDOW / 2u) - i32(c);
            let low = select(max(k, 0), 0, j == 0u);
            let high = select(min(k, i32(WINDOW) - 1), i32(WINDOW) - 1, j == CELLS - 1u);
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
            g += SLOPE_GAIN * 0.5 * (gathered((j + CELLS - 1u) % CELLS, 1u) - gathered((j + 1u) % CELLS, 1u));
        } else {
            if j > 0u {
                g += SLOPE_GAIN * select(0.5, 1.0, j == 1u) * gathered(j - 1u, 1u);
            }
            if j < CELLS - 1u {
                g -= SLOPE_GAIN * select(0.5, 1.0, j == CELLS - 2u) * gathered(j + 1u, 1u);
            }
            if j == 0u {
                g -= SLOPE_GAIN * gathered(0u, 1u);
            }
            if j == CELLS - 1u {
                g += SLOPE_GAIN * gathered(j, 1u);
            }
        }
        set_g_field(SEEN_FIELD + j, g_field_at(SEEN_FIELD + j) + g);
    }
}
