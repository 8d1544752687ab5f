// Diffusion and growth on a line with mobile actuators (heat equation, Fisher–KPP):
//
//   z⁺ = A⁻¹ (z + q D z + Δt (ρ z (1 − z) + f)),   f_j = Σ_i u_i exp(−(x_j − ξ_i)²/2σ²)
//
// The inverse of the implicit half falls off from its diagonal by a constant factor per cell: only
// a band of it counts. The table holds [offset, cell].

fn coordinate(j: u32) -> f32 {
    return SPACING * f32(j);
}

fn bump(gap: f32) -> f32 {
    return exp(-FALLOFF * gap * gap);
}

fn advance(step: u32) {
    for (var j = tid; j < CELLS; j += THREADS) {
        var pushed = 0.0;
        if j > 0u && j < CELLS - 1u {
            var force = 0.0;
            for (var i = 0u; i < swarm; i++) {
                force += action(i, 0u) * bump(coordinate(j) - position(i, 0u));
            }
            let z = pool[FIELD_AT + j];
            let bend = pool[FIELD_AT + j - 1u] + pool[FIELD_AT + j + 1u] - 2.0 * z;
            pushed = z + explicit_ratio() * bend + DT * (growth() * z * (1.0 - z) + force);
        }
        pool[WORK_AT + j] = pushed;
    }
    barrier();
    arrive(step);
    for (var j = tid; j < CELLS; j += THREADS) {
        var z = implicit(j);
        if CLIPPED {
            z = clamp(z, 0.0, 1.0);
        }
        pool[FIELD_AT + j] = z;
        states[state_of(step + 1u) + j] = z;
    }
    barrier();
}

// A⁻¹, which is symmetric, times what is in WORK.
fn implicit(j: u32) -> f32 {
    var sum = 0.0;
    for (var k = 0u; k <= 2u * BAND; k++) {
        let other = u32(clamp(i32(j + k) - i32(BAND), 0, i32(CELLS) - 1));
        sum += inverse(k * CELLS + j) * pool[WORK_AT + other];
    }
    return sum;
}

fn advance_adjoint(step: u32) {
    let error_share = error_pull(step);
    for (var j = tid; j < CELLS; j += THREADS) {
        let z = states[state_of(step + 1u) + j];
        var g = pool[G_FIELD_AT + j] + error_share * (z - target_at(step + 1u, j));
        if CLIPPED && (z <= 0.0 || z >= 1.0) {
            g = 0.0;
        }
        pool[WORK_AT + j] = g;
    }
    barrier();
    for (var j = tid; j < CELLS; j += THREADS) {
        pool[G_FIELD_AT + j] = implicit(j);
    }
    barrier();
    // The table is zero on the walls, and so is the gradient there.
    for (var j = tid; j < CELLS; j += THREADS) {
        let g = pool[G_FIELD_AT + j];
        var bend = -2.0 * g;
        if j > 0u {
            bend += pool[G_FIELD_AT + j - 1u];
        }
        if j < CELLS - 1u {
            bend += pool[G_FIELD_AT + j + 1u];
        }
        if j == 0u || j == CELLS - 1u {
            bend += 2.0 * g;
        }
        let z = states[state_of(step) + j];
        pool[WORK_AT + j] = g * (1.0 + DT * growth() * (1.0 - 2.0 * z)) + explicit_ratio() * bend;
    }
    for (var item = tid; item < swarm * LANES; item += THREADS) {
        let agent = item / LANES;
        let x = states[state_of(step) + VALUES + agent];
        var level = 0.0;
        var moment = 0.0;
        for (var j = item % LANES; j < CELLS; j += LANES) {
            let gap = coordinate(j) - x;
            let felt = pool[G_FIELD_AT + j] * bump(gap);
            level += felt;
            moment += felt * gap;
        }
        pool[LANES_AT + 2u * item] = level;
        pool[LANES_AT + 2u * item + 1u] = moment;
    }
    barrier();
    for (var j = tid; j < CELLS; j += THREADS) {
        pool[G_FIELD_AT + j] = pool[WORK_AT + j];
    }
    for (var agent = tid; agent < swarm; agent += THREADS) {
        var level = 0.0;
        var moment = 0.0;
        for (var lane = 0u; lane < LANES; lane++) {
            level += pool[LANES_AT + 2u * (agent * LANES + lane)];
            moment += pool[LANES_AT + 2u * (agent * LANES + lane) + 1u];
        }
        let u = done(step, agent, 0u);
        pool[G_FORCE_AT + agent] += DT * level;
        pool[G_POSITION_AT + agent] += DT * u * 2.0 * FALLOFF * moment;
    }
    // `answer_adjoint` gives the same agents to the same threads.
}
