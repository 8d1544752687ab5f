// Adds the gradients of what a tile's agents saw on a plane to those of the fields.
fn features_adjoint() {
    for (var j = tid; j < CELLS; j += THREADS) {
        let row = j / POINTS_1;
        let column = j % POINTS_1;
        set_g_field(SEEN_FIELD + j, g_field_at(SEEN_FIELD + j) + gathered_error(row, column));
        for (var other = 0u; other < OTHERS; other++) {
            let pull = other_gain(other) * gathered(row, column, 1u + other);
            let at = other_field(other) + j;
            set_g_field(at, g_field_at(at) + pull);
        }
    }
}
