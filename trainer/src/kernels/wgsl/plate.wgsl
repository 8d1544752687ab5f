// Heat on a plate with mobile actuators, by alternating directions. With A the implicit and C the
// explicit half of one direction both half steps come to
//
//   z⁺ = P (z P + W) + W,   P = C A⁻¹,   W = Δt/2 · f A⁻¹,   zero on the edges,
//
// with f = Σ_i u_i k_i(x) k_i(y). P and A⁻¹ fall off from their diagonals: the tables hold a band of
// each, [offset, point], zero on the edges.

fn banded(k: u32, j: u32) -> u32 {
    return k * POINTS_1 + j;
}

fn within(j: u32, k: u32) -> u32 {
    return u32(clamp(i32(j + k) - i32(BAND), 0, i32(POINTS_1) - 1));
}

fn bump(gap: f32) -> f32 {
    return exp(-FALLOFF * gap * gap);
}

// An agent's kernel along an axis; zero on the edges.
fn factor(x: f32, j: u32) -> f32 {
    return select(bump(SPACING * f32(j) - x), 0.0, j == 0u || j == POINTS_1 - 1u);
}

fn note(offset: u32) -> u32 {
    return episode * SCRATCH + offset;
}

fn advance(step: u32) {
    for (var item = tid; item < swarm * POINTS_1; item += THREADS) {
        let agent = item / POINTS_1;
        let j = item % POINTS_1;
        let weight = 0.5 * DT * action(agent, 0u);
        scratch[note(ACROSS_IN_SCRATCH) + item] = factor(position(agent, 0u), j);
        scratch[note(ALONG_IN_SCRATCH) + item] = weight * factor(position(agent, 1u), j);
    }
    for (var j = tid; j < CELLS; j += THREADS) {
        let y = j % POINTS_1;
        var sum = 0.0;
        for (var k = 0u; k <= 2u * BAND; k++) {
            sum += half_step(banded(k, y)) * pool[FIELD_AT + j - y + within(y, k)];
        }
        pool[WORK_AT + j] = sum;
    }
    barrier();
    arrive(step);
    for (var item = tid; item < swarm * POINTS_1; item += THREADS) {
        let y = item % POINTS_1;
        var sum = 0.0;
        for (var k = 0u; k <= 2u * BAND; k++) {
            let other = note(ALONG_IN_SCRATCH) + item - y + within(y, k);
            sum += inverse(banded(k, y)) * scratch[other];
        }
        scratch[note(SPREAD_IN_SCRATCH) + item] = sum;
    }
    barrier();
    for (var j = tid; j < CELLS; j += THREADS) {
        var w = 0.0;
        for (var i = 0u; i < swarm; i++) {
            w += scratch[note(ACROSS_IN_SCRATCH) + i * POINTS_1 + j / POINTS_1]
                * scratch[note(SPREAD_IN_SCRATCH) + i * POINTS_1 + j % POINTS_1];
        }
        pool[FORCING_AT + j] = w;
        pool[WORK_AT + j] += w;
    }
    barrier();
    for (var j = tid; j < CELLS; j += THREADS) {
        let x = j / POINTS_1;
        var z = pool[FORCING_AT + j];
        for (var k = 0u; k <= 2u * BAND; k++) {
            z += half_step(banded(k, x)) * pool[WORK_AT + within(x, k) * POINTS_1 + j % POINTS_1];
        }
        pool[FIELD_AT + j] = z;
        states[state_of(step + 1u) + j] = z;
    }
    barrier();
}

fn advance_adjoint(step: u32) {
    let here = state_of(step);
    let error_share = error_pull(step);
    for (var item = tid; item < swarm * POINTS_1; item += THREADS) {
        let at = here + VALUES + item / POINTS_1 * AXES;
        let j = item % POINTS_1;
        scratch[note(ACROSS_IN_SCRATCH) + item] = factor(states[at], j);
        scratch[note(ALONG_IN_SCRATCH) + item] = factor(states[at + 1u], j);
    }
    for (var j = tid; j < CELLS; j += THREADS) {
        let e = states[state_of(step + 1u) + j] - target_at(step + 1u, j);
        pool[G_FIELD_AT + j] += error_share * e;
    }
    barrier();
    for (var j = tid; j < CELLS; j += THREADS) {
        let x = j / POINTS_1;
        var g = 0.0;
        for (var k = 0u; k <= 2u * BAND; k++) {
            g += half_step(banded(k, x)) * pool[G_FIELD_AT + within(x, k) * POINTS_1 + j % POINTS_1];
        }
        pool[WORK_AT + j] = g;
        // What W is pulled by.
        pool[FORCING_AT + j] = g + pool[G_FIELD_AT + j];
    }
    barrier();
    for (var j = tid; j < CELLS; j += THREADS) {
        let y = j % POINTS_1;
        var g = 0.0;
        var g_forcing = 0.0;
        for (var k = 0u; k <= 2u * BAND; k++) {
            let other = j - y + within(y, k);
            g += half_step(banded(k, y)) * pool[WORK_AT + other];
            g_forcing += inverse(banded(k, y)) * pool[FORCING_AT + other];
        }
        pool[G_FIELD_AT + j] = g;
        pool[PULLED_AT + j] = 0.5 * DT * g_forcing;
    }
    barrier();
    // Along y first, for every agent and row.
    for (var item = tid; item < swarm * POINTS_1; item += THREADS) {
        let agent = item / POINTS_1;
        let x = item % POINTS_1;
        let at = place(here, agent);
        var level = 0.0;
        var moment = 0.0;
        for (var y = 0u; y < POINTS_1; y++) {
            let felt = scratch[note(ALONG_IN_SCRATCH) + item - x + y] * pool[PULLED_AT + x * POINTS_1 + y];
            level += felt;
            moment += felt * (SPACING * f32(y) - at.y);
        }
        let across = scratch[note(ACROSS_IN_SCRATCH) + item];
        let sums_at = note(SPREAD_IN_SCRATCH) + 3u * item;
        scratch[sums_at] = across * level;
        scratch[sums_at + 1u] = across * level * (SPACING * f32(x) - at.x);
        scratch[sums_at + 2u] = across * moment;
    }
    barrier();
    for (var agent = tid; agent < swarm; agent += THREADS) {
        var sum = vec3<f32>();
        for (var x = 0u; x < POINTS_1; x++) {
            let sums_at = note(SPREAD_IN_SCRATCH) + 3u * (agent * POINTS_1 + x);
            sum += vec3(scratch[sums_at], scratch[sums_at + 1u], scratch[sums_at + 2u]);
        }
        let u = done(step, agent, 0u);
        pool[G_FORCE_AT + agent] += sum.x;
        pool[G_POSITION_AT + agent * AXES] += 2.0 * FALLOFF * u * sum.y;
        pool[G_POSITION_AT + agent * AXES + 1u] += 2.0 * FALLOFF * u * sum.z;
    }
}
