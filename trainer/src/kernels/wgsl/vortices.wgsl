// Two-dimensional turbulence on the unit torus: ω_t = −a (u·∇)ω + ν Δω + f, by the classical
// Runge–Kutta scheme. x runs along axis 1.
//
// With K = k_x + i k_y the velocity z = u + iv has the modes −K ω/|K|², and with A the modes of z² the
// advection is the real part (as a field) of a/2 (2 k_x k_y + i (k_x² − k_y²)) A. Products of waves
// that the grid cannot tell from others have opposite signs on grids that are shifted by half a cell:
// the mean over four such grids is free of them. The tape keeps the modes of every stage.

fn tape_at(stage: u32) -> u32 {
    return episode * SCRATCH + TAPE_IN_SCRATCH + stage * 2u * CELLS + 2u * tid;
}

fn carried(k: u32) -> bool {
    return tid % 8u + 8u * k != SIDE / 2u && tid / 8u != SIDE / 2u && mode(k) != 0u;
}

// −K/|K|² of a mode on a shifted grid, and the transform's normalisation.
fn to_velocity(k: u32, shift: u32) -> vec2<f32> {
    let m = mode_waves(k);
    let scale = -1.0 / (WAVE_NUMBER * f32(CELLS) * max(dot(m, m), 1.0));
    return select(vec2(0.0), times(phase(m, shift), scale * vec2(m.y, m.x)), carried(k));
}

// exp(i k·s) for a shift s by half a cell along axis 0, axis 1, both or none.
fn phase(m: vec2<f32>, shift: u32) -> vec2<f32> {
    let angle = (3.14159265 / f32(SIDE)) * (m.x * f32(shift & 1u) + m.y * f32(shift >> 1u));
    return vec2(cos(angle), sin(angle));
}

// From the modes of z² on a shifted grid to the rate of change.
fn to_rate(k: u32, shift: u32) -> vec2<f32> {
    let m = WAVE_NUMBER * mode_waves(k);
    let factor = 0.125 * ADVECTION * vec2(2.0 * m.x * m.y, m.y * m.y - m.x * m.x);
    return select(vec2(0.0), times(conjugate(phase(mode_waves(k), shift)), factor), carried(k));
}

fn rate(w: Eight, force: Eight, stage: u32) -> Eight {
    var sum: Eight;
    for (var k = 0u; k < 8u; k++) {
        let at = tape_at(stage) + 2u * THREADS * k;
        scratch[at] = w[k].x;
        scratch[at + 1u] = w[k].y;
        sum[k] = vec2(0.0);
    }
    for (var shift = 0u; shift < 4u; shift++) {
        var z: Eight;
        for (var k = 0u; k < 8u; k++) {
            z[k] = times(to_velocity(k, shift), w[k]);
        }
        transform(&z, -1.0);
        for (var k = 0u; k < 8u; k++) {
            z[k] = times(z[k], z[k]);
        }
        transform(&z, 1.0);
        for (var k = 0u; k < 8u; k++) {
            sum[k] += times(to_rate(k, shift), z[k]);
        }
    }
    real_part(&sum);
    for (var k = 0u; k < 8u; k++) {
        sum[k] += force[k] - damping(mode(k)) * w[k];
    }
    return sum;
}

fn rate_adjoint(g_rate: Eight, stage: u32) -> Eight {
    var g_sum = g_rate;
    real_part(&g_sum);
    var g: Eight;
    for (var k = 0u; k < 8u; k++) {
        g[k] = -damping(mode(k)) * g_rate[k];
    }
    for (var shift = 0u; shift < 4u; shift++) {
        var z: Eight;
        var g_z: Eight;
        for (var k = 0u; k < 8u; k++) {
            let at = tape_at(stage) + 2u * THREADS * k;
            z[k] = times(to_velocity(k, shift), vec2(scratch[at], scratch[at + 1u]));
            g_z[k] = times(conjugate(to_rate(k, shift)), g_sum[k]);
        }
        transform(&z, -1.0);
        transform(&g_z, -1.0);
        for (var k = 0u; k < 8u; k++) {
            g_z[k] = 2.0 * times(conjugate(z[k]), g_z[k]);
        }
        transform(&g_z, 1.0);
        for (var k = 0u; k < 8u; k++) {
            g[k] += times(conjugate(to_velocity(k, shift)), g_z[k]);
        }
    }
    return g;
}

fn advance_modes(w: Eight, force: Eight, number: u32) -> Eight {
    var end = w;
    var here = w;
    for (var stage = 0u; stage < 4u; stage++) {
        let slope = rate(here, force, 4u * number + stage);
        let weight = SUBSTEP / select(3.0, 6.0, stage == 0u || stage == 3u);
        let reach = SUBSTEP * select(0.5, 1.0, stage == 2u);
        for (var k = 0u; k < 8u; k++) {
            end[k] += weight * slope[k];
            here[k] = w[k] + reach * slope[k];
        }
    }
    return end;
}

fn advance_modes_adjoint(given_g: Pair, number: u32) -> Pair {
    var g = given_g;
    var g_here: Eight;
    for (var k = 0u; k < 8u; k++) {
        g_here[k] = vec2(0.0);
    }
    for (var back = 0u; back < 4u; back++) {
        let stage = 3u - back;
        let weight = SUBSTEP / select(3.0, 6.0, stage == 0u || stage == 3u);
        let reach = SUBSTEP * select(0.5, 1.0, stage == 2u);
        var g_slope: Eight;
        for (var k = 0u; k < 8u; k++) {
            g_slope[k] = weight * given_g.modes[k] + reach * g_here[k];
            g.force[k] += g_slope[k];
        }
        g_here = rate_adjoint(g_slope, 4u * number + stage);
        for (var k = 0u; k < 8u; k++) {
            g.modes[k] += g_here[k];
        }
    }
    return g;
}
