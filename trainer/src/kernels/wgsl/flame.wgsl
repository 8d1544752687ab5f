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
    var here = v;
    var a = v;
    var n_0 = v;
    var end = v;
    // One loop for all stages: drivers write functions out wherever they are called.
    for (var stage = 0u; stage < 4u; stage++) {
        let n = rate(here, force, 4u * number + stage);
        for (var k = 0u; k < 8u; k++) {
            let half = coefficient(HALF_IN_TABLES, k);
            let h = coefficient(STAGE_IN_TABLES, k);
            if stage == 0u {
                n_0[k] = n[k];
                a[k] = half * v[k] + h * n[k];
                here[k] = a[k];
                end[k] = coefficient(WHOLE_IN_TABLES, k) * v[k];
            } else if stage == 1u {
                here[k] = half * v[k] + h * n[k];
            } else {
                here[k] = half * a[k] + h * (2.0 * n[k] - n_0[k]);
            }
            end[k] += weight(stage, k) * n[k];
        }
    }
    return end;
}

// What the whole step weighs a stage with.
fn weight(stage: u32, k: u32) -> f32 {
    let middle = stage == 1u || stage == 2u;
    let ends = select(WEIGHT_2_IN_TABLES, WEIGHT_0_IN_TABLES, stage == 0u);
    return coefficient(select(ends, WEIGHT_1_IN_TABLES, middle), k);
}

fn advance_modes_adjoint(given_g: Pair, number: u32) -> Pair {
    var g = given_g;
    // Of the stages' values, the last of which no other depends on.
    var g_a: Eight;
    var g_b: Eight;
    var g_d: Eight;
    for (var back = 0u; back < 4u; back++) {
        let stage = 3u - back;
        var g_n: Eight;
        for (var k = 0u; k < 8u; k++) {
            let h = coefficient(STAGE_IN_TABLES, k);
            g_n[k] = weight(stage, k) * given_g.modes[k];
            if stage == 2u {
                g_n[k] += 2.0 * h * g_d[k];
            } else if stage == 1u {
                g_n[k] += h * g_b[k];
            } else if stage == 0u {
                g_n[k] += h * (g_a[k] - g_d[k]);
            }
            g.force[k] += g_n[k];
        }
        let g_here = rate_adjoint(g_n, 4u * number + stage);
        for (var k = 0u; k < 8u; k++) {
            let half = coefficient(HALF_IN_TABLES, k);
            if stage == 3u {
                g_d[k] = g_here[k];
            } else if stage == 2u {
                g_b[k] = g_here[k];
            } else if stage == 1u {
                g_a[k] = g_here[k] + half * g_d[k];
            } else {
                g.modes[k] = coefficient(WHOLE_IN_TABLES, k) * given_g.modes[k]
                    + half * (g_a[k] + g_b[k]) + g_here[k];
            }
        }
    }
    return g;
}
