// Noise that is the same here and on the host: SplitMix64's finaliser in halves of 32 bits.

fn product_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = a.x & 0xffffu;
    let high = a.x >> 16u;
    let other_low = b.x & 0xffffu;
    let other_high = b.x >> 16u;
    let cross = high * other_low;
    let middle = low * other_high + ((low * other_low) >> 16u) + (cross & 0xffffu);
    let carried = high * other_high + (cross >> 16u) + (middle >> 16u);
    return vec2(a.x * b.x, carried + a.x * b.y + a.y * b.x);
}

fn stirred(a: vec2<u32>, by: u32) -> vec2<u32> {
    return a ^ vec2((a.x >> by) | (a.y << (32u - by)), a.y >> by);
}

// A nearly normal number of mean 0 and variance 1.
fn noise(seed: vec2<u32>, index: u32) -> f32 {
    var bits = seed ^ product_64(vec2(index, 0u), vec2(0x7f4a7c15u, 0x9e3779b9u));
    bits = product_64(stirred(bits, 30u), vec2(0x1ce4e5b9u, 0xbf58476du));
    bits = stirred(product_64(stirred(bits, 27u), vec2(0x133111ebu, 0x94d049bbu)), 31u);
    let sum = (bits.x & 0xffffu) + (bits.x >> 16u) + (bits.y & 0xffffu) + (bits.y >> 16u);
    return (f32(sum) - 131070.0) * (1.7320508 / 65536.0);
}

fn noise_seed() -> vec2<u32> {
    return vec2(condition(3u), condition(4u));
}

// What is added to the value of a grid point that agents see.
fn sensor_noise(step: u32, j: u32) -> f32 {
    let deviation = given(1u);
    if deviation > 0.0 {
        return deviation * noise(noise_seed(), step * CELLS + j);
    }
    return 0.0;
}

// What is added to the errors of another field that is seen.
fn other_noise(other: u32, step: u32, j: u32) -> f32 {
    let deviation = other_share(other) * given(1u) + other_always(other);
    if deviation > 0.0 {
        return deviation * noise(noise_seed(), ((other + 1u) * HORIZON + step) * CELLS + j);
    }
    return 0.0;
}

// The error of another field that is seen.
fn other_error(other: u32, j: u32) -> f32 {
    let at = other_field(other) + j;
    return field_at(at) - target_at(now, at) + other_noise(other, now, j);
}

// What is added to a force.
fn actuator_noise(step: u32, agent: u32) -> f32 {
    let deviation = given(2u);
    if deviation > 0.0 {
        return deviation * noise(~noise_seed(), step * swarm + agent);
    }
    return 0.0;
}
