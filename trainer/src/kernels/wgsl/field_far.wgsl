// A field that is too large for the pool: it is read where it is kept, its gradient is in `scratch`.

fn field_at(j: u32) -> f32 {
    return states[state_of(now) + j];
}

fn g_field_at(j: u32) -> f32 {
    return scratch[episode * SCRATCH + G_FIELD_IN_SCRATCH + j];
}

fn set_g_field(j: u32, g: f32) {
    scratch[episode * SCRATCH + G_FIELD_IN_SCRATCH + j] = g;
}

fn begin_adjoint(late: bool) {
    for (var j = tid; j < VALUES && !late; j += THREADS) {
        set_g_field(j, 0.0);
    }
}
