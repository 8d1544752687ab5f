// The Kuramoto–Sivashinsky equation on a torus, by exponential time differencing: with E = exp c,
// E₂ = exp(c/2), c = Δt (q − q²), q = |k|² and N(v) the modes of −½|∇u|² + f,
//
//   a = E₂ v + h N(v),   b = E₂ v + h N(a),   d = E₂ a + h (2 N(b) − N(v)),
//   v⁺ = E v + w₀ N(v) + w₁ (N(a) + N(b)) + w₂ N(d).
//
// With z = u_x + i u_y the nonlinear term is −½|z|²: one transform each way. The tape keeps z, all
// that the adjoint needs to know.

// i k₀ − k₁ of the modes that the gradient is made of, and the transform's normalisation.
fn to_gradient(k: u32) -> vec2<f32> {
    let m = mode_waves(k);
    let carried = abs(m.x) <= CARRIED && abs(m.y) <= CARRIED && !shortest(k);
    return select(vec2(0.0), vec2(-m.y, m.x) * (WAVE_NUMBER / f32(CELLS)), carried);
}

fn shortest(k: u32) -> bool {
    return tid % 8u + 8u * k == SIDE / 2u || tid / 8u == SIDE / 2u;
}

fn tape_at(stage: u32) -> u32 {
    return episode * SCRATCH + TAPE_IN_SCRATCH + stage * 2u * CELLS + 2u * tid;
}

fn rate(v: Eight, force: Eight, stage: u32) -> Eight {
    var z: Eight;
    for (var k = 0u; k < 8u; k++) {
        z[k] = times(to_gradient(k), v[k]);
    }
    transform(&z, -1.0);
    for (var k = 0u; k < 8u; k++) {
        let at = tape_at(stage) + 2u * THREADS * k;
        scratch[at] = z[k].x;
        scratch[at + 1u] = z[k].y;
        z[k] = vec2(dot(z[k], z[k]), 0.0);
    }
    transform(&z, 1.0);
    for (var k = 0u; k < 8u; k++) {
        // Only the force moves the mean.
        z[k] = force[k] + select(-0.5, 0.0, mode(k) == 0u) * z[k];
    }
    return z;
}

fn rate_adjoint(g_rate: Eight, stage: u32) -> Eight {
    var g: Eight;
    for (var k = 0u; k < 8u; k++) {
        g[k] = select(-0.5, 0.0, mode(k) == 0u) * g_rate[k];
    }
    transform(&g, -1.0);
    for (var k = 0u; k < 8u; k++) {
        let at = tape_at(stage) + 2u * THREADS * k;
        g[k] = 2.0 * g[k].x * vec2(scratch[at], scratch[at + 1u]);
    }
    transform(&g, 1.0);
    for (var k = 0u; k < 8u; k++) {
        g[k] = times(conjugate(to_gradient(k)), g[k]);
    }
    return g;
}

fn advance_modes(v: Eight, force: Eight, number: u32) -> Eight {
    let stage = 4u * number;
    let n_0 = rate(v, force, stage);
    var a: Eight;
    var end: Eight;
    for (var k = 0u; k < 8u; k++) {
        a[k] = coefficient(HALF_IN_TABLES, k) * v[k] + coefficient(STAGE_IN_TABLES, k) * n_0[k];
        end[k] = coefficient(WHOLE_IN_TABLES, k) * v[k] + coefficient(WEIGHT_0_IN_TABLES, k) * n_0[k];
    }
    var n = rate(a, force, stage + 1u);
    var b: Eight;
    for (var k = 0u; k < 8u; k++) {
        b[k] = coefficient(HALF_IN_TABLES, k) * v[k] + coefficient(STAGE_IN_TABLES, k) * n[k];
        end[k] += coefficient(WEIGHT_1_IN_TABLES, k) * n[k];
    }
    n = rate(b, force, stage + 2u);
    for (var k = 0u; k < 8u; k++) {
        b[k] = coefficient(HALF_IN_TABLES, k) * a[k]
            + coefficient(STAGE_IN_TABLES, k) * (2.0 * n[k] - n_0[k]);
        end[k] += coefficient(WEIGHT_1_IN_TABLES, k) * n[k];
    }
    n = rate(b, force, stage + 3u);
    for (var k = 0u; k < 8u; k++) {
        end[k] += coefficient(WEIGHT_2_IN_TABLES, k) * n[k];
    }
    return end;
}

fn advance_modes_adjoint(given_g: Pair, number: u32) -> Pair {
    let stage = 4u * number;
    var g = given_g;
    var g_n: Eight;
    for (var k = 0u; k < 8u; k++) {
        g_n[k] = coefficient(WEIGHT_2_IN_TABLES, k) * g.modes[k];
        g.force[k] += g_n[k];
    }
    let g_d = rate_adjoint(g_n, stage + 3u);
    for (var k = 0u; k < 8u; k++) {
        g_n[k] = coefficient(WEIGHT_1_IN_TABLES, k) * g.modes[k]
            + 2.0 * coefficient(STAGE_IN_TABLES, k) * g_d[k];
        g.force[k] += g_n[k];
    }
    let g_b = rate_adjoint(g_n, stage + 2u);
    for (var k = 0u; k < 8u; k++) {
        g_n[k] = coefficient(WEIGHT_1_IN_TABLES, k) * g.modes[k] + coefficient(STAGE_IN_TABLES, k) * g_b[k];
        g.force[k] += g_n[k];
    }
    var g_a = rate_adjoint(g_n, stage + 1u);
    for (var k = 0u; k < 8u; k++) {
        let h = coefficient(STAGE_IN_TABLES, k);
        let half = coefficient(HALF_IN_TABLES, k);
        g_a[k] += half * g_d[k];
        g_n[k] = coefficient(WEIGHT_0_IN_TABLES, k) * g.modes[k] + h * (g_a[k] - g_d[k]);
        g.force[k] += g_n[k];
        g.modes[k] = coefficient(WHOLE_IN_TABLES, k) * g.modes[k] + half * (g_a[k] + g_b[k]);
    }
    let g_v = rate_adjoint(g_n, stage);
    for (var k = 0u; k < 8u; k++) {
        g.modes[k] += g_v[k];
    }
    return g;
}
