// The gradient of every weight from what the closed loop left behind: for each dense layer the
// product of its inputs, transposed, with the gradients before its activation, over all rows
// (agents, steps and episodes). A workgroup makes SIDE × SIDE entries of one slice of the rows.

struct Run {
    rows: u32,
    rows_per_slice: u32,
    slices: u32,
    scale: f32,
}

// A square of one layer's weights.
struct Tile {
    // Where its inputs begin in a row of the trace, and how many there are.
    input: u32,
    inputs: u32,
    // Where its outputs begin in a row of the deltas, and how many there are.
    output: u32,
    outputs: u32,
    // Where it begins among the parameters, and how far it is from input to input.
    weight: u32,
    stride: u32,
    // Where the biases of its outputs begin; NO_BIAS unless this tile has them.
    bias: u32,
}

@group(0) @binding(0) var<storage, read> trace: array<f32>;
@group(0) @binding(1) var<storage, read> deltas: array<f32>;
@group(0) @binding(2) var<storage, read> tiles: array<Tile>;
@group(0) @binding(3) var<storage, read> run: Run;
// [slices, parameters]
@group(0) @binding(4) var<storage, read_write> portion: array<f32>;
@group(0) @binding(5) var<storage, read_write> gradient: array<f32>;

const SIDE: u32 = 64u;
const DEPTH: u32 = 16u;
const NO_BIAS: u32 = 0xffffffffu;

// [DEPTH, SIDE / 4]
var<workgroup> x: array<vec4<f32>, 256>;
var<workgroup> d: array<vec4<f32>, 256>;

@compute @workgroup_size(256)
fn multiply(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) tid: u32,
) {
    let tile = tiles[group.x];
    let begin = group.y * run.rows_per_slice;
    let end = min(begin + run.rows_per_slice, run.rows);
    let column = tid % 16u;
    let line = tid / 16u;
    var sum_0 = vec4<f32>();
    var sum_1 = vec4<f32>();
    var sum_2 = vec4<f32>();
    var sum_3 = vec4<f32>();
    var bias = vec4<f32>();
    for (var block = 0u; block < run.rows_per_slice; block += DEPTH) {
        // Each thread fetches four neighbours of one row.
        let row = begin + block + line;
        var from_trace = vec4<f32>();
        var from_deltas = vec4<f32>();
        if row < end {
            for (var k = 0u; k < 4u; k++) {
                let i = 4u * column + k;
                if i < tile.inputs {
                    from_trace[k] = trace[row * TRACE + tile.input + i];
                }
                if i < tile.outputs {
                    from_deltas[k] = deltas[row * DELTA + tile.output + i];
                }
            }
        }
        workgroupBarrier();
        x[tid] = from_trace;
        d[tid] = from_deltas;
        workgroupBarrier();
        for (var k = 0u; k < DEPTH; k++) {
            let input = x[k * 16u + line];
            let output = d[k * 16u + column];
            sum_0 += input.x * output;
            sum_1 += input.y * output;
            sum_2 += input.z * output;
            sum_3 += input.w * output;
            bias += output;
        }
    }
    let out = group.y * PARAMETERS;
    write(tile, out, 4u * line, 4u * column, sum_0);
    write(tile, out, 4u * line + 1u, 4u * column, sum_1);
    write(tile, out, 4u * line + 2u, 4u * column, sum_2);
    write(tile, out, 4u * line + 3u, 4u * column, sum_3);
    if line == 0u && tile.bias != NO_BIAS {
        for (var k = 0u; k < 4u; k++) {
            if 4u * column + k < tile.outputs {
                portion[out + tile.bias + 4u * column + k] = bias[k];
            }
        }
    }
}

fn write(tile: Tile, out: u32, i: u32, o: u32, values: vec4<f32>) {
    if i < tile.inputs {
        for (var k = 0u; k < 4u; k++) {
            if o + k < tile.outputs {
                portion[out + tile.weight + i * tile.stride + o + k] = values[k];
            }
        }
    }
}

@compute @workgroup_size(64)
fn add_slices(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= PARAMETERS {
        return;
    }
    var sum = 0.0;
    for (var slice = 0u; slice < run.slices; slice++) {
        sum += portion[slice * PARAMETERS + id.x];
    }
    gradient[id.x] = run.scale * sum;
}
