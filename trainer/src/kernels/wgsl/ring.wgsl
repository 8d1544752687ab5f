// The Kuramoto–Sivashinsky equation on a circle with fixed actuators. Its step is linear in u, u² and
// the forces,
//
//   u⁺ = A u + B u² + Σ_i a_i R_i
//
// with circulant A and B; the tables hold a row of each, twice in a row. Every agent is placed with its
// response R_i.

fn advance(step: u32) {
    for (var j = tid; j < CELLS; j += THREADS) {
        var sum = 0.0;
        for (var i = 0u; i < CELLS; i++) {
            let u = pool[FIELD_AT + i];
            let at = CELLS + j - i;
            sum += u * (tables[LINEAR_IN_TABLES + at] + u * tables[SQUARE_IN_TABLES + at]);
        }
        for (var i = 0u; i < swarm; i++) {
            sum += action(i, 0u) * placed(i, j);
        }
        pool[WORK_AT + j] = sum;
    }
    barrier();
    for (var j = tid; j < CELLS; j += THREADS) {
        let u = pool[WORK_AT + j];
        pool[FIELD_AT + j] = u;
        states[state_of(step + 1u) + j] = u;
    }
    barrier();
}

fn advance_adjoint(step: u32) {
    let error_share = error_pull(step);
    for (var j = tid; j < CELLS; j += THREADS) {
        let e = states[state_of(step + 1u) + j] - target_at(step + 1u, j);
        pool[WORK_AT + j] = g_field_at(j) + error_share * e;
    }
    barrier();
    for (var j = tid; j < CELLS; j += THREADS) {
        var linear = 0.0;
        var square = 0.0;
        for (var i = 0u; i < CELLS; i++) {
            let g = pool[WORK_AT + i];
            let at = CELLS + i - j;
            linear += g * tables[LINEAR_IN_TABLES + at];
            square += g * tables[SQUARE_IN_TABLES + at];
        }
        set_g_field(j, linear + 2.0 * states[state_of(step) + j] * square);
    }
    for (var item = tid; item < swarm * LANES; item += THREADS) {
        var sum = 0.0;
        for (var j = item % LANES; j < CELLS; j += LANES) {
            sum += pool[WORK_AT + j] * placed(item / LANES, j);
        }
        pool[LANES_AT + item] = sum;
    }
    barrier();
    for (var agent = tid; agent < swarm; agent += THREADS) {
        var sum = 0.0;
        for (var lane = 0u; lane < LANES; lane++) {
            sum += pool[LANES_AT + agent * LANES + lane];
        }
        pool[G_FORCE_AT + agent] += sum;
    }
}
