//! Agents of the plane: what they compute is what the format's page says.

use crate::sample;

use agent_core::agent::{Action, Agent, Mode, project};
use agent_core::message::Span;
use agent_core::policy::{Activation, Channel, MAX_MEMORY, Norm, Policy, Sensing};
use sample::{
    Layer, PLANE_FREQUENCIES, PLANE_WINDOW, Random, Shown, blob, bytes, dense, plane, plane_header,
    plane_layers,
};

/// Cells of the made-up domain along each axis.
const GRID: [usize; 2] = [12, 15];
const HALO: isize = 1;

struct World {
    field: Vec<f32>,
    target: Vec<f32>,
    wide_field: Vec<f32>,
    wide_target: Vec<f32>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let mut noise = |n: usize| -> Vec<f32> { (0..n).map(|_| 2.0 * random.next()).collect() };
        let cells = GRID[0] * GRID[1];
        Self {
            field: noise(cells),
            target: noise(cells),
            wide_field: noise(6),
            wide_target: noise(6),
        }
    }

    /// What a sensor in `cell` hands over. Cells beyond the walls hold NaN on purpose: an agent
    /// must not read them.
    fn shown(&self, cell: [usize; 2]) -> Shown {
        let side = PLANE_WINDOW as isize + 2 * HALO;
        let first = cell.map(|c| c as isize - PLANE_WINDOW as isize / 2 - HALO);
        let cut = |from: &[f32]| -> Vec<f32> {
            let value = |i: isize, j: isize| match (usize::try_from(i), usize::try_from(j)) {
                (Ok(i), Ok(j)) if i < GRID[0] && j < GRID[1] => from[i * GRID[1] + j],
                _ => f32::NAN,
            };
            (0..side * side)
                .map(|k| value(first[0] + k / side, first[1] + k % side))
                .collect()
        };
        let inside = [0, 1].map(|axis| Span {
            first: (-first[axis]).max(0) as u16,
            last: (GRID[axis] as isize - 1 - first[axis]).min(side - 1) as u16,
        });
        Shown {
            field: cut(&self.field),
            target: cut(&self.target),
            inside,
            wide_field: self.wide_field.clone(),
            wide_target: self.wide_target.clone(),
        }
    }

    /// The policy on the whole field, in f64, written from docs/policy-format.md alone.
    fn reference(&self, layers: &[Layer], cell: [usize; 2], position: [f32; 2]) -> [f64; 3] {
        let difference = |z: &f32, t: &f32| f64::from(*z) - f64::from(*t);
        let near = |axis: usize, k: usize| {
            (cell[axis] + k)
                .saturating_sub(PLANE_WINDOW / 2)
                .min(GRID[axis] - 1)
        };
        let mut features = Vec::new();
        for i in 0..PLANE_WINDOW {
            for j in 0..PLANE_WINDOW {
                let at = near(0, i) * GRID[1] + near(1, j);
                features.push(difference(&self.field[at], &self.target[at]));
            }
        }
        let wide = self.wide_field.iter().zip(&self.wide_target);
        features.extend(wide.map(|(z, t)| difference(z, t)));

        let [x, y] = position.map(f64::from);
        let scaled = [x, y / 1.25];
        let angles: Vec<f64> = scaled
            .iter()
            .flat_map(|s| PLANE_FREQUENCIES.map(|f| std::f64::consts::PI * f64::from(f) * s))
            .collect();
        let sines = angles.iter().map(|a| a.sin());
        let place: Vec<f64> = sines.chain(angles.iter().map(|a| a.cos())).collect();

        let seen = product(&layers[0], &features);
        let length = seen.iter().map(|h| h * h).sum::<f64>().sqrt();
        let seen = seen.iter().map(|h| (h / (length + 1.0)).tanh());
        let placed = product(&layers[1], &place);
        let fused: Vec<f64> = seen.chain(placed.iter().map(|h| h.tanh())).collect();
        let outputs = product(&layers[2], &fused);
        [
            40.0 * outputs[0].tanh(),
            5.0 * outputs[1].tanh(),
            5.0 * outputs[2].tanh(),
        ]
    }
}

fn product(layer: &Layer, x: &[f64]) -> Vec<f64> {
    assert_eq!(x.len(), layer.inputs);
    let outputs = layer.bias.len();
    let sum = |o: usize| -> f64 {
        let terms = x.iter().enumerate();
        let terms = terms.map(|(i, x)| x * f64::from(layer.weights[i * outputs + o]));
        f64::from(layer.bias[o]) + terms.sum::<f64>()
    };
    (0..outputs).map(sum).collect()
}

#[test]
fn an_agent_of_the_plane_acts_as_the_format_says_at_every_cell() {
    for seed in 0..5 {
        let (layers, world) = (plane_layers(seed), World::new(100 + seed));
        let blob = plane(seed);
        let policy = Policy::parse(bytes(&blob)).unwrap();
        let limits = policy.header().limits.clone();
        let mut workspace = vec![f32::NAN; policy.workspace_len()];
        let mut agent = Agent::new(policy, &mut workspace).unwrap();
        for i in 0..GRID[0] {
            for j in 0..GRID[1] {
                let position = [i as f32 / 11.0, 1.25 * j as f32 / 14.0];
                let action = agent.step(&world.shown([i, j]).patch(), position, 1);
                assert_eq!(action.mode, Mode::Active);
                let [force, vx, vy] = world.reference(&layers, [i, j], position);
                // Both to 1e-5 of their limit; walls and discs have the last word.
                assert!((f64::from(action.force) - force).abs() < 40.0 * 1e-5);
                let velocity = project(&limits, 2, 1e-3, position, [vx as f32, vy as f32]);
                for (found, expected) in action.velocity.iter().zip(velocity) {
                    assert!((found - expected).abs() < 5e-5, "{found} {expected}");
                }
            }
        }
    }
}

#[test]
fn a_policy_without_target_takes_the_field_for_the_error() {
    let mut header = plane_header();
    header.sensing.target = false;
    let mut world = World::new(7);
    world.target.fill(0.0);
    world.wide_target.fill(0.0);
    let step = |blob: &(Vec<u32>, usize), shown: &Shown| -> Action {
        let policy = Policy::parse(bytes(blob)).unwrap();
        let mut workspace = vec![0.0; policy.workspace_len()];
        let mut agent = Agent::new(policy, &mut workspace).unwrap();
        agent.step(&shown.patch(), [0.1, 0.2], 1)
    };
    let mut shown = world.shown([1, 2]);
    let with = step(&plane(2), &shown);
    shown.target.clear();
    let untargeted = blob(&header, &plane_layers(2));
    // The wide view's target must be left out too.
    assert_eq!(step(&untargeted, &shown).mode, Mode::Waiting);
    shown.wide_target.clear();
    assert_eq!(step(&untargeted, &shown), with);
    assert_eq!(with.mode, Mode::Active);
}

#[test]
fn what_is_shown_in_another_shape_is_invalid_input() {
    let blob = plane(1);
    let policy = Policy::parse(bytes(&blob)).unwrap();
    type Change = fn(&mut Shown);
    let changes: [Change; 9] = [
        |s| s.field.truncate(63),
        |s| s.target.clear(),
        |s| s.wide_field.clear(),
        |s| s.wide_target.push(0.0),
        |s| s.inside[0].last = 8,
        |s| s.inside[1].last = 8,
        // The agent's own cell is number 4.
        |s| s.inside[1].first = 5,
        |s| s.field[9] = f32::NAN,
        |s| s.wide_field[5] = f32::INFINITY,
    ];
    let mut workspace = vec![0.0; policy.workspace_len()];
    let good = Shown::all(&policy, 1.0);
    let mut agent = Agent::new(policy.clone(), &mut workspace).unwrap();
    for change in changes {
        let mut shown = Shown::all(&policy, 1.0);
        change(&mut shown);
        assert_eq!(
            agent.step(&shown.patch(), [0.9, 0.9], 1).mode,
            Mode::Waiting
        );
    }
    assert_eq!(good.at([0.9, 0.9], 1).frame_room(), policy.frame_room());
    let good = good.patch();
    assert_eq!(agent.step(&good, [0.9, 0.9], 1).mode, Mode::Active);
    // Both coordinates count.
    assert_eq!(agent.step(&good, [0.9, f32::NAN], 2).mode, Mode::Holding);
}

/// Twenty agents, each with a network of its own, five hundred steps on noise with a broken sensor
/// now and then: nobody enters a disc or leaves the domain.
#[test]
fn whatever_the_network_says_agents_stay_out_of_discs() {
    for seed in 0..20 {
        let blob = plane(seed);
        let policy = Policy::parse(bytes(&blob)).unwrap();
        let limits = policy.header().limits.clone();
        let mut workspace = vec![0.0; policy.workspace_len()];
        let mut agent = Agent::new(policy, &mut workspace).unwrap();
        let mut place = [0.4, 0.35 + 0.01 * seed as f64];
        for step in 0..500u64 {
            let world = World::new(1000 * seed + step / 50);
            let mut shown = world.shown([6, 7]);
            if step % 7 == 3 {
                shown.field[27] = f32::NAN;
            }
            let action = agent.step(&shown.patch(), place.map(|x| x as f32), 1000 * step);
            for axis in [0, 1] {
                place[axis] += f64::from(action.velocity[axis]) * 1e-3;
                let high = f64::from(limits.high[axis]);
                assert!((-1e-7..=high + 1e-7).contains(&place[axis]));
            }
            for disc in &limits.keep_out {
                let [x, y] = disc.centre.map(f64::from);
                let distance = (place[0] - x).hypot(place[1] - y);
                assert!(distance >= f64::from(disc.radius), "seed {seed}: {place:?}");
            }
        }
    }
}

/// The worked example of the format's page: order of rows, channels, the wide view and the trunk.
#[test]
fn the_worked_example_of_the_page_is_so() {
    let channels = [Channel::Error, Channel::Slope, Channel::Across];
    let mut header = plane_header();
    header.sensing = Sensing {
        window: 2,
        samples: 2,
        target: false,
        channels: channels.into_iter().collect(),
        wide: Some([1, 2]),
        ..header.sensing
    };
    header.limits.high = [1.0; 2];
    let x = f32::NAN; // beyond the wall
    let shown = Shown {
        field: vec![
            x, x, x, x, //
            1.0, 2.0, 4.0, 7.0, //
            3.0, 5.0, 8.0, 12.0, //
            6.0, 9.0, 13.0, 18.0,
        ],
        target: Vec::new(),
        inside: [Span { first: 1, last: 3 }, Span { first: 0, last: 3 }],
        wide_field: vec![-1.0, 0.5],
        wide_target: Vec::new(),
    };
    let features = [
        2.0, 3.0, 1.5, 4.0, 4.0, 2.5, 5.0, 3.5, 2.5, 8.0, 4.5, 3.5, -1.0, 0.5,
    ];
    let half = core::f32::consts::FRAC_1_SQRT_2;
    let trunk = [half, 1.0, 1.0, 0.0, half, 0.0, 0.0, -1.0];
    let fused = [&features[..], &trunk].concat();
    // Without layers but the head, each of whose weights in turn lets one of its inputs through.
    let inputs = fused.len();
    header.network.branch = Default::default();
    header.network.trunk = Default::default();
    let head = dense(inputs, 3, Norm::None, Activation::Identity);
    header.network.head = [head].into_iter().collect();
    for (k, expected) in fused.iter().enumerate() {
        let mut layer = Layer {
            inputs,
            weights: vec![0.0; 3 * inputs],
            bias: vec![0.0; 3],
        };
        layer.weights[3 * k] = 1.0;
        let blob = blob(&header, &[layer]);
        let policy = Policy::parse(bytes(&blob)).unwrap();
        let mut workspace = vec![0.0; policy.workspace_len()];
        let mut found = vec![0.0; policy.features_len()];
        let observation = shown.at([0.25, 0.5], 0);
        policy
            .features(&observation.patch, &mut workspace, &mut found)
            .unwrap();
        assert_eq!(found, features);
        let [output, ..] = policy
            .outputs(&observation, &mut [0.0; MAX_MEMORY], &mut workspace)
            .unwrap();
        assert!((output - expected).abs() < 1e-6, "{k}: {output} {expected}");
    }
}
