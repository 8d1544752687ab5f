//! Buffers, pipelines and the two calls.

use super::device::{Gpu, GpuError};
use crate::entry::Entry;
use crate::kernels::shader::Shader;
use crate::kernels::{FieldKernel, LoopSpec, Varying, no_family};
use crate::loss::{TERMS, shares};
use crate::rollout::{Rollout, RolloutError, Terms};
use crate::trial::Trial;
use problem::{Episode, NotImplemented, Problem};
use std::borrow::Cow;
use std::collections::HashMap;
use std::num::NonZeroU64;

/// Threads of a workgroup unless the spec says otherwise, on a line and on a plane: about as many as
/// a layer of the network has outputs, or a field cells, for a few agents.
const THREADS: [usize; 2] = [256, 512];
/// Side of the squares that the weights' gradient is made in (`SIDE` in the kernel).
const SIDE: usize = 64;
/// Rows that a workgroup reads at once (`DEPTH` in the kernel).
const DEPTH: usize = 16;
/// Workgroups that keep a large GPU busy with the weights' gradient.
const BUSY: usize = 1024;
/// Swarms whose places are remembered.
const PLACED_KEPT: usize = 256;
/// What to do about a loop that is too large for a GPU.
const FEWER_AGENTS: &str = "train with fewer --agents";

/// A closed loop that is compiled for a GPU, with room for its episodes.
#[derive(Debug)]
pub struct GpuLoop {
    gpu: Gpu,
    spec: LoopSpec,
    field: Box<dyn FieldKernel>,
    /// What the field's kernel knows of agents that stay, by their places: the same swarms come again.
    placed: HashMap<Vec<[u64; 2]>, Vec<u32>>,
    shader: Shader,
    /// Episodes that there is room for at once; larger batches run in portions.
    together: usize,
    parameters: wgpu::Buffer,
    episodes: wgpu::Buffer,
    run: wgpu::Buffer,
    scores: wgpu::Buffer,
    gradient: wgpu::Buffer,
    answer: wgpu::Buffer,
    loop_group: wgpu::BindGroup,
    gradient_group: wgpu::BindGroup,
    set_out: wgpu::ComputePipeline,
    /// What runs in every portion, one after the other.
    forward: Vec<Kernel>,
    backward: Vec<Kernel>,
    score: wgpu::ComputePipeline,
    add_scores: wgpu::ComputePipeline,
    multiply: wgpu::ComputePipeline,
    add_slices: wgpu::ComputePipeline,
    tiles: usize,
    slices: usize,
    /// Offsets of the portions of the horizon among the portions' buffer, in order.
    portions: Vec<u32>,
}

impl GpuLoop {
    /// Compiles the kernels of a loop and allocates room for its largest batch.
    pub fn new(gpu: &Gpu, entry: &Entry, spec: &LoopSpec) -> Result<Self, GpuError> {
        assert!(spec.agents > 0 && spec.horizon > 0 && spec.batch > 0);
        // Kernels may keep a table of what happens in each of the loop's steps.
        let spec = &LoopSpec {
            problem: with_horizon(spec.problem, spec.horizon),
            corners: (spec.corners.iter())
                .map(|corner| with_horizon(*corner, spec.horizon))
                .collect(),
            ..spec.clone()
        };
        let Some(kernels) = entry.kernels else {
            return Err(GpuError::NoKernels {
                what: spec.problem.name.to_owned(),
                instead: match entry.physics.has_tensor_form() {
                    true => "wgpu or flex",
                    false => "flex",
                },
            });
        };
        let mut field = (kernels.0)(&spec.problem)?;
        for corner in &spec.corners {
            // What has no kernels is refused here, not in the middle of a training.
            (kernels.0)(corner)?;
            field.cover(corner);
        }
        if !spec.corners.is_empty() && field.varying(&spec.problem)?.is_empty() {
            return Err(no_family(&spec.problem).into());
        }
        let limits = gpu.device.limits();
        let most = limits
            .max_compute_invocations_per_workgroup
            .min(limits.max_compute_workgroup_size_x);
        let threads = match (field.needs_threads(), spec.threads) {
            (Some(needed), _) => needed,
            (None, 0) => THREADS[spec.axes() - 1].min(most as usize),
            (None, asked) => asked,
        };
        gpu.fits(
            "a workgroup's threads",
            threads as u64,
            most.into(),
            "take another GPU",
        )?;
        let memory = limits.max_compute_workgroup_storage_size as u64;
        let shader = Shader::new(spec, &*field, threads, (memory / 4) as usize)?;
        gpu.fits(
            "a workgroup's memory",
            4 * shader.pool as u64,
            memory,
            FEWER_AGENTS,
        )?;

        let most_bytes = limits
            .max_buffer_size
            .min(limits.max_storage_buffer_binding_size);
        let together = episodes_together(gpu, spec, &shader, most_bytes)?;
        let tiles = checked(tiles(spec, &shader), spec, &shader);
        let rows = together * spec.horizon * spec.agents;
        let slices = BUSY.div_ceil(tiles.len()).min(rows.div_ceil(4 * DEPTH));
        let count = spec.shape.parameters();
        let buffer = |values: usize, usage: wgpu::BufferUsages| -> Result<wgpu::Buffer, GpuError> {
            let size = 4 * values as u64;
            gpu.fits("a buffer", size, most_bytes, "take another GPU")?;
            Ok(gpu.device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size,
                usage: wgpu::BufferUsages::STORAGE | usage,
                mapped_at_creation: false,
            }))
        };
        let (none, up, down) = (
            wgpu::BufferUsages::empty(),
            wgpu::BufferUsages::COPY_DST,
            wgpu::BufferUsages::COPY_SRC,
        );
        let parameters = buffer(2 * count, up)?;
        let tables = buffer(shader.tables.len().max(1), up)?;
        let episodes = buffer(together * shader.episode, up)?;
        let states = buffer(together * (spec.horizon + 1) * shader.state, none)?;
        let trace = buffer(rows * shader.rows.trace, none)?;
        let deltas = buffer(rows * shader.rows.delta, none)?;
        let scores = buffer(together * TERMS, down)?;
        let scratch = buffer(together * shader.scratch, none)?;
        let tile_list = buffer(tiles.len() * TILE_VALUES, up)?;
        let run = buffer(4, up)?;
        let partial = buffer(slices * count, none)?;
        let gradient = buffer(count, down)?;
        let answer = gpu.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: 4 * (together * TERMS + count) as u64,
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let each = match shader.step_by_step {
            true => 1,
            false => gpu.steps_per_dispatch(shader.rounds)?,
        };
        let stride = limits.min_uniform_buffer_offset_alignment.max(16) as usize;
        let firsts: Vec<usize> = (0..spec.horizon).step_by(each).collect();
        let portion = gpu.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: (firsts.len() * stride) as u64,
            usage: wgpu::BufferUsages::UNIFORM | up,
            mapped_at_creation: false,
        });
        for (k, &first) in firsts.iter().enumerate() {
            let range = [first, (first + each).min(spec.horizon), 0, 0].map(|n| n as u32);
            gpu.queue
                .write_buffer(&portion, (k * stride) as u64, bytemuck::cast_slice(&range));
        }
        gpu.queue
            .write_buffer(&tables, 0, bytemuck::cast_slice(&shader.tables));
        gpu.queue
            .write_buffer(&tile_list, 0, bytemuck::cast_slice(&tiles));

        let errors = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let loop_kernels = Kernels::new(
            gpu,
            &shader.source,
            &[
                (&parameters, true),
                (&tables, true),
                (&episodes, true),
                (&states, false),
                (&trace, false),
                (&deltas, false),
                (&scores, false),
                (&scratch, false),
            ],
            Some(&portion),
        );
        let gradient_source = format!(
            "const TRACE: u32 = {}u;\nconst DELTA: u32 = {}u;\nconst PARAMETERS: u32 = {count}u;\n{}",
            shader.rows.trace,
            shader.rows.delta,
            include_str!("../kernels/wgsl/gradient.wgsl"),
        );
        let gradient_kernels = Kernels::new(
            gpu,
            &gradient_source,
            &[
                (&trace, true),
                (&deltas, true),
                (&tile_list, true),
                (&run, true),
                (&partial, false),
                (&gradient, false),
            ],
            None,
        );
        let passes = |passes: &[(&'static str, usize)]| {
            let pass = |&(entry, groups): &(&'static str, usize)| {
                (loop_kernels.pipeline(gpu, entry), groups as u32)
            };
            passes.iter().map(pass).collect()
        };
        let set_out = loop_kernels.pipeline(gpu, "set_out");
        let (forward, backward) = (passes(&shader.forward), passes(&shader.backward));
        let score = loop_kernels.pipeline(gpu, "score");
        let add_scores = loop_kernels.pipeline(gpu, "add_scores");
        let multiply = gradient_kernels.pipeline(gpu, "multiply");
        let add_slices = gradient_kernels.pipeline(gpu, "add_slices");
        if let Some(error) = pollster::block_on(errors.pop()) {
            return Err(gpu.failed(error));
        }
        Ok(Self {
            gpu: gpu.clone(),
            spec: spec.clone(),
            field,
            placed: HashMap::new(),
            shader,
            together,
            parameters,
            episodes,
            run,
            scores,
            gradient,
            answer,
            loop_group: loop_kernels.group,
            gradient_group: gradient_kernels.group,
            set_out,
            forward,
            backward,
            score,
            add_scores,
            multiply,
            add_slices,
            tiles: tiles.len(),
            slices,
            portions: (0..firsts.len()).map(|k| (k * stride) as u32).collect(),
        })
    }

    /// What the loop is made of.
    pub fn spec(&self) -> &LoopSpec {
        &self.spec
    }

    /// Episodes that run at once.
    pub fn together(&self) -> usize {
        self.together
    }

    /// Terms of each episode of a portion, then their mean gradient where there are weights.
    fn run(
        &mut self,
        parameters: &[f32],
        trials: &[Trial],
        weights: Option<&Terms>,
    ) -> Result<Vec<f32>, GpuError> {
        let (spec, count) = (&self.spec, trials.len());
        assert!((1..=self.together).contains(&count), "{count} episodes");
        assert_eq!(parameters.len(), spec.shape.parameters());
        let queue = &self.gpu.queue;
        let uploaded = with_transposed(spec, parameters);
        queue.write_buffer(&self.parameters, 0, bytemuck::cast_slice(&uploaded));
        let mut inputs = Vec::with_capacity(count * self.shader.episode);
        let mut rows = 0;
        for trial in trials {
            let form = form(spec, &*self.field, trial)?;
            write_trial(spec, trial, &form, rows, weights, &mut inputs);
            if self.field.placed() > 0 {
                let places = trial.start.iter().map(|x| x.map(f64::to_bits)).collect();
                if self.placed.len() >= PLACED_KEPT {
                    self.placed.clear();
                }
                let placed = self.placed.entry(places).or_insert_with(|| {
                    let of = |x: &[f64; 2]| self.field.place(&spec.problem, *x);
                    let values = trial.start.iter().flat_map(of);
                    values.map(|v| (v as f32).to_bits()).collect()
                });
                inputs.extend_from_slice(placed);
            }
            inputs.resize(inputs.len().next_multiple_of(self.shader.episode), 0);
            rows += spec.horizon * trial.agents();
        }
        queue.write_buffer(&self.episodes, 0, bytemuck::cast_slice(&inputs));
        let rows_per_slice = rows.div_ceil(self.slices).next_multiple_of(DEPTH);
        let run = [rows, rows_per_slice, self.slices].map(|n| n as u32);
        let scale = 1.0 / count as f32;
        queue.write_buffer(&self.run, 0, bytemuck::cast_slice(&run));
        queue.write_buffer(&self.run, 12, bytemuck::bytes_of(&scale));

        let mut encoder = self.gpu.device.create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            let count = count as u32;
            pass.set_bind_group(0, &self.loop_group, &[self.portions[0]]);
            pass.set_pipeline(&self.set_out);
            pass.dispatch_workgroups(count, 1, 1);
            let portion = |pass: &mut wgpu::ComputePass, at: u32, kernels: &[Kernel]| {
                pass.set_bind_group(0, &self.loop_group, &[at]);
                for (kernel, groups) in kernels {
                    pass.set_pipeline(kernel);
                    pass.dispatch_workgroups(count, *groups, 1);
                }
            };
            for at in &self.portions {
                portion(&mut pass, *at, &self.forward);
            }
            pass.set_pipeline(&self.score);
            pass.dispatch_workgroups(count, spec.horizon as u32, 1);
            pass.set_pipeline(&self.add_scores);
            pass.dispatch_workgroups(count, 1, 1);
            if weights.is_some() {
                for at in self.portions.iter().rev() {
                    portion(&mut pass, *at, &self.backward);
                }
                pass.set_bind_group(0, &self.gradient_group, &[]);
                pass.set_pipeline(&self.multiply);
                pass.dispatch_workgroups(self.tiles as u32, self.slices as u32, 1);
                pass.set_pipeline(&self.add_slices);
                pass.dispatch_workgroups(spec.shape.parameters().div_ceil(64) as u32, 1, 1);
            }
        }
        let terms_size = 4 * (count * TERMS) as u64;
        encoder.copy_buffer_to_buffer(&self.scores, 0, &self.answer, 0, terms_size);
        let mut size = terms_size;
        if weights.is_some() {
            let more = 4 * spec.shape.parameters() as u64;
            encoder.copy_buffer_to_buffer(&self.gradient, 0, &self.answer, size, more);
            size += more;
        }
        queue.submit([encoder.finish()]);
        self.read(size)
    }

    /// The first `size` bytes of the answer, once everything is done.
    fn read(&self, size: u64) -> Result<Vec<f32>, GpuError> {
        let slice = self.answer.slice(..size);
        let (sender, receiver) = std::sync::mpsc::channel();
        slice.map_async(wgpu::MapMode::Read, move |result| {
            // The receiver waits below; it is gone only if polling failed.
            let _ = sender.send(result);
        });
        self.gpu
            .device
            .poll(wgpu::PollType::wait_indefinitely())
            .map_err(|e| self.gpu.failed(e))?;
        receiver
            .recv()
            .map_err(|e| self.gpu.failed(e))?
            .map_err(|e| self.gpu.failed(e))?;
        let view = slice.get_mapped_range().map_err(|e| self.gpu.failed(e))?;
        let values = bytemuck::cast_slice(&view).to_vec();
        drop(view);
        self.answer.unmap();
        Ok(values)
    }
}

/// An entry point and its workgroups for one episode.
type Kernel = (wgpu::ComputePipeline, u32);

/// The problem for as many steps.
fn with_horizon(problem: Problem, horizon: usize) -> Problem {
    Problem { horizon, ..problem }
}

/// A module's bindings, all in one group.
struct Kernels {
    module: wgpu::ShaderModule,
    layout: wgpu::PipelineLayout,
    group: wgpu::BindGroup,
}

impl Kernels {
    /// Buffers in the order of their bindings, and whether each is only read; last a uniform one, of
    /// which each dispatch reads another stretch.
    fn new(
        gpu: &Gpu,
        source: &str,
        buffers: &[(&wgpu::Buffer, bool)],
        portions: Option<&wgpu::Buffer>,
    ) -> Self {
        let device = &gpu.device;
        let module = module(device, source);
        let entry = |binding: usize, ty: wgpu::BufferBindingType| wgpu::BindGroupLayoutEntry {
            binding: binding as u32,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty,
                has_dynamic_offset: ty == wgpu::BufferBindingType::Uniform,
                min_binding_size: None,
            },
            count: None,
        };
        let mut entries = Vec::new();
        let mut bound = Vec::new();
        for (binding, (buffer, read_only)) in buffers.iter().enumerate() {
            let read_only = *read_only;
            entries.push(entry(
                binding,
                wgpu::BufferBindingType::Storage { read_only },
            ));
            bound.push(wgpu::BindGroupEntry {
                binding: binding as u32,
                resource: buffer.as_entire_binding(),
            });
        }
        if let Some(buffer) = portions {
            entries.push(entry(buffers.len(), wgpu::BufferBindingType::Uniform));
            bound.push(wgpu::BindGroupEntry {
                binding: buffers.len() as u32,
                resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer,
                    offset: 0,
                    size: NonZeroU64::new(16),
                }),
            });
        }
        let group_layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: None,
            entries: &entries,
        });
        let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &group_layout,
            entries: &bound,
        });
        let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&group_layout)],
            immediate_size: 0,
        });
        Self {
            module,
            layout,
            group,
        }
    }

    fn pipeline(&self, gpu: &Gpu, entry: &str) -> wgpu::ComputePipeline {
        gpu.device
            .create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(entry),
                layout: Some(&self.layout),
                module: &self.module,
                entry_point: Some(entry),
                compilation_options: wgpu::PipelineCompilationOptions {
                    zero_initialize_workgroup_memory: false,
                    ..Default::default()
                },
                cache: None,
            })
    }
}

/// Compiles WGSL. Debug builds, and so tests, check every index on the GPU; release builds do not:
/// it would cost a comparison per value read.
#[allow(unsafe_code)]
fn module(device: &wgpu::Device, source: &str) -> wgpu::ShaderModule {
    let checks = match cfg!(debug_assertions) {
        true => wgpu::ShaderRuntimeChecks::checked(),
        false => wgpu::ShaderRuntimeChecks::unchecked(),
    };
    let descriptor = wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(Cow::Borrowed(source)),
    };
    // SAFETY: the kernels are made by `crate::kernels` and their loops end. What they index by are
    // their own constants and counters; cells of positions that they compute, which `cell_along` cuts
    // to the grid whatever the position is; and four kinds of values from buffers, which are checked
    // when they are made or uploaded: the numbers of agents and the cells of those that stay (`write_trial`),
    // the tiles of the weights (`checked`), and which rows of their tables described fields read
    // (`kernels::described`). A delay from a buffer is compared with the step before it is used.
    unsafe { device.create_shader_module_trusted(descriptor, checks) }
}

/// Values of a `Tile` in the kernel.
const TILE_VALUES: usize = 7;

/// Squares that cover all weights: [input, inputs, output, outputs, weight, stride, bias].
fn tiles(spec: &LoopSpec, shader: &Shader) -> Vec<[u32; TILE_VALUES]> {
    let (mut tiles, mut start) = (Vec::new(), 0);
    for (k, [inputs, outputs]) in spec.shape.layers().into_iter().enumerate() {
        for i in (0..inputs).step_by(SIDE) {
            for o in (0..outputs).step_by(SIDE) {
                let bias = match i {
                    0 => (start + inputs * outputs + o) as u32,
                    _ => u32::MAX,
                };
                let [input, count, output, width, weight, stride] = [
                    shader.rows.inputs[k] + i,
                    (inputs - i).min(SIDE),
                    shader.rows.outputs[k] + o,
                    (outputs - o).min(SIDE),
                    start + i * outputs + o,
                    outputs,
                ]
                .map(|n| n as u32);
                tiles.push([input, count, output, width, weight, stride, bias]);
            }
        }
        start += inputs * outputs + outputs;
    }
    tiles
}

/// How many episodes fit into the largest buffers that there may be: all of a batch, or fewer.
fn episodes_together(
    gpu: &Gpu,
    spec: &LoopSpec,
    shader: &Shader,
    most_bytes: u64,
) -> Result<usize, GpuError> {
    let rows = spec.horizon * spec.agents;
    let largest = [
        shader.episode,
        (spec.horizon + 1) * shader.state,
        rows * shader.rows.trace,
        rows * shader.rows.delta,
        shader.scratch,
        TERMS,
    ];
    let each = 4 * largest.into_iter().max().unwrap_or(1).max(1) as u64;
    gpu.fits("one episode in a buffer", each, most_bytes, FEWER_AGENTS)?;
    Ok(spec.batch.min((most_bytes / each) as usize))
}

/// Tiles that the gradient's kernels index by: each within a row of the trace, a row of the deltas and
/// the parameters.
///
/// # Panics
/// If one is not; the kernels do not look again.
fn checked(
    tiles: Vec<[u32; TILE_VALUES]>,
    spec: &LoopSpec,
    shader: &Shader,
) -> Vec<[u32; TILE_VALUES]> {
    let count = spec.shape.parameters();
    for tile in &tiles {
        let [input, inputs, output, outputs, weight, stride, bias] = tile.map(|n| n as usize);
        let last = weight + (inputs - 1) * stride + outputs - 1;
        let inside = input + inputs <= shader.rows.trace
            && output + outputs <= shader.rows.delta
            && inputs <= SIDE
            && outputs <= SIDE
            && last < count
            && (bias == u32::MAX as usize || bias + outputs <= count);
        assert!(inside, "a tile outside of its buffers: {tile:?}");
    }
    tiles
}

/// The parameters, then every layer's weights transposed, at the same offsets.
fn with_transposed(spec: &LoopSpec, parameters: &[f32]) -> Vec<f32> {
    let (mut both, mut start) = (parameters.to_vec(), parameters.len());
    both.resize(2 * parameters.len(), 0.0);
    for [inputs, outputs] in spec.shape.layers() {
        let weights = &parameters[start - parameters.len()..][..inputs * outputs];
        for (i, row) in weights.chunks_exact(outputs).enumerate() {
            for (o, &weight) in row.iter().enumerate() {
                both[start + o * inputs + i] = weight;
            }
        }
        start += inputs * outputs + outputs;
    }
    both
}

/// What the field's kernel makes of an episode's coefficients, where episodes have their own.
fn form(
    spec: &LoopSpec,
    field: &dyn FieldKernel,
    trial: &Trial,
) -> Result<Vec<Varying>, NotImplemented> {
    if spec.corners.is_empty() {
        assert_eq!(trial.physics, spec.problem.physics, "a loop of one form");
        return Ok(Vec::new());
    }
    let form = spec.problem.with_coefficients(trial.physics);
    let form = form.expect("coefficients of the family");
    assert_eq!(form.substeps, spec.problem.substeps, "{}", form.title());
    field.varying(&form)
}

/// An episode as the kernels read it, whose agents have the rows from `first_row` on; see
/// [`CONDITIONS`](crate::kernels::shader::CONDITIONS).
fn write_trial(
    spec: &LoopSpec,
    trial: &Trial,
    form: &[Varying],
    first_row: usize,
    weights: Option<&Terms>,
    out: &mut Vec<u32>,
) {
    let (values, room, axes) = (spec.problem.state_len(), spec.agents, spec.axes());
    let (Trial { episode, start, .. }, agents) = (trial, trial.agents());
    assert_eq!(
        (episode.initial.len(), episode.target.len()),
        (values, values)
    );
    assert!((1..=room).contains(&agents) && trial.dies_at.len() == agents);
    let step = |step: usize| u32::try_from(step).unwrap_or(u32::MAX);
    out.push(step(trial.delay));
    out.push((trial.sensor_noise as f32).to_bits());
    out.push((trial.actuator_noise as f32).to_bits());
    out.extend([trial.noise_seed as u32, (trial.noise_seed >> 32) as u32]);
    out.extend([agents as u32, first_row as u32]);
    let shares = shares(&spec.problem, agents, spec.horizon);
    let weights = weights.unwrap_or(&[0.0; TERMS]);
    let pulls = weights.iter().zip(shares).map(|(w, share)| w * share);
    out.extend(
        shares
            .into_iter()
            .chain(pulls)
            .map(|x| (x as f32).to_bits()),
    );
    out.extend(
        episode
            .initial
            .iter()
            .chain(&episode.target)
            .map(|z| z.to_bits()),
    );
    write_changes(spec, episode, out);
    let form = form.iter().flat_map(Varying::values);
    out.extend(form.map(|&x| (x as f32).to_bits()));
    // What belongs to agents has room for the largest swarm.
    let mut at = out.len();
    let mut per_agent = |out: &mut Vec<u32>, width: usize| {
        at += room * width;
        out.resize(at, 0);
    };
    let start = start.iter().map(|x| x.map(|x| x as f32));
    out.extend(
        start
            .clone()
            .flat_map(|x| x.into_iter().take(axes))
            .map(f32::to_bits),
    );
    per_agent(out, axes);
    out.extend(trial.dies_at.iter().map(|&at| step(at)));
    per_agent(out, 1);
    let points = spec.problem.grid.points;
    for cell in start.map(|x| spec.problem.cell_of(x)) {
        // Agents that stay are looked up by it.
        assert!(cell[0] < points[0] && cell[1] < points[1], "cell {cell:?}");
        out.extend(cell.into_iter().take(axes).map(step));
    }
    per_agent(out, axes);
}

/// Where an episode's target goes, and what acts on its fields besides agents.
fn write_changes(spec: &LoopSpec, episode: &Episode, out: &mut Vec<u32>) {
    let values = spec.problem.state_len();
    let bits = |x: f64| (x as f32).to_bits();
    let (goals, room) = (&episode.goals, spec.goals());
    assert!(goals.len() <= room, "{} goals", goals.len());
    let end = out.len() + room * values;
    for goal in goals {
        assert_eq!(goal.field.len(), values);
        out.extend(goal.field.iter().map(|z| z.to_bits()));
    }
    out.resize(end, 0);
    let end = end + room * (spec.horizon + 1);
    for goal in goals {
        out.extend((0..=spec.horizon).map(|step| bits(goal.course.at(step))));
    }
    // A goal that is not there has no share.
    out.resize(end, 0);
    let (pushes, room) = (&episode.pushes, spec.pushes());
    assert!(pushes.len() <= room, "{} disturbances", pushes.len());
    let end = out.len() + room * values;
    for push in pushes {
        assert_eq!(push.field.len(), values);
        out.extend(push.field.iter().map(|z| z.to_bits()));
    }
    out.resize(end, 0);
    let end = end + room * spec.horizon;
    for push in pushes {
        out.extend((0..spec.horizon).map(|step| bits(push.course.at(step))));
    }
    out.resize(end, 0);
}

impl Rollout for GpuLoop {
    fn problem(&self) -> &Problem {
        &self.spec.problem
    }

    fn horizon(&self) -> usize {
        self.spec.horizon
    }

    fn terms(&mut self, parameters: &[f32], trials: &[Trial]) -> Result<Vec<Terms>, RolloutError> {
        let mut terms = Vec::with_capacity(trials.len());
        for portion in trials.chunks(self.together) {
            terms.extend(terms_of(&self.run(parameters, portion, None)?));
        }
        Ok(terms)
    }

    fn gradient(
        &mut self,
        parameters: &[f32],
        trials: &[Trial],
        weights: &Terms,
    ) -> Result<(Vec<Terms>, Vec<f32>), RolloutError> {
        let mut terms = Vec::with_capacity(trials.len());
        let mut sum = vec![0.0; parameters.len()];
        for portion in trials.chunks(self.together) {
            let mut answer = self.run(parameters, portion, Some(weights))?;
            let gradient = answer.split_off(portion.len() * TERMS);
            terms.extend(terms_of(&answer));
            let share = portion.len() as f32 / trials.len() as f32;
            for (sum, g) in sum.iter_mut().zip(gradient) {
                *sum += share * g;
            }
        }
        Ok((terms, sum))
    }
}

fn terms_of(answer: &[f32]) -> Vec<Terms> {
    let (episodes, _) = answer.as_chunks::<TERMS>();
    episodes.iter().map(|terms| terms.map(f64::from)).collect()
}
