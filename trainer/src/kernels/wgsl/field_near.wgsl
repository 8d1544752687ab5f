// A field that is small enough for the pool, and its gradient.

fn field_at(j: u32) -> f32 {
    return pool[FIELD_AT + j];
}

fn g_field_at(j: u32) -> f32 {
    return pool[G_FIELD_AT + j];
}

fn set_g_field(j: u32, g: f32) {
    pool[G_FIELD_AT + j] = g;
}

fn begin(here: u32) {
    for (var j = tid; j < VALUES; j += THREADS) {
        pool[FIELD_AT + j] = states[here + j];
    }
}

// The gradient is carried from dispatch to dispatch with that of the positions.
fn begin_adjoint(late: bool) {}
