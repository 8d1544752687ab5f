//! Fields that a file describes: the truth.

use super::Stepper;
use super::hyperdiffusion::Hyperdiffusion;
use super::lines::{Scheme, Splitting};
use crate::Problem;
use crate::kit::expression::Scratch;
use crate::kit::system::System;

/// Steps all fields of a described problem: reactions go forward explicitly, diffusion, flow and edges
/// implicitly along one axis after the other, hyperdiffusion before and after them, and then fields are cut to their range where the file says
/// so. To second order, half of the reactions come before the rest and half after it; to first order, all
/// of them before.
pub struct DescribedStepper {
    system: System,
    /// None for a field that neither spreads nor flows.
    splittings: Vec<Option<Splitting<f64>>>,
    smoothings: Vec<Option<Hyperdiffusion>>,
    reacts: bool,
    dt: f64,
    substeps: usize,
    /// Whether edges change in time, and values and inflow of each field's as they are.
    edges_change: bool,
    fixed: Vec<Vec<f64>>,
    inflow: Vec<Vec<f64>>,
    /// What is beyond them where hyperdiffusion goes by it, when each of its parts [looks](LOOKS).
    ambient: Vec<[[Vec<f64>; 2]; 2]>,
    /// What pushes each field, all of them.
    push: Vec<f64>,
    middle: Vec<f64>,
    scratch: Scratch<f64>,
    /// Steps of the solver that were taken.
    taken: u64,
}

/// Shares of a step at which the parts of hyperdiffusion before and after the rest look beyond walls, each
/// half-way through it and at its end. To first order all of it comes after.
const LOOKS: [[[f64; 2]; 2]; 2] = [[[0.0; 2], [0.5, 1.0]], [[0.25, 0.5], [0.75, 1.0]]];

impl DescribedStepper {
    /// For one `parts`-th of a control interval.
    pub fn new(problem: &Problem, parts: usize) -> Self {
        let (dt, substeps) = problem.solver_steps(parts);
        let system = System::of(problem);
        let (fields, nodes) = (system.fields.len(), system.nodes());
        let splittings = system.fields.iter();
        // To second order half of it comes before the rest and half after it.
        let smoothing = match system.scheme {
            Scheme::FirstOrder => 1.0,
            Scheme::SecondOrder => 0.5,
        };
        let mut stepper = Self {
            splittings: splittings
                .map(|field| {
                    let moves = !field.operator.is_idle();
                    moves.then(|| Splitting::new(&field.operator, system.scheme, dt))
                })
                .collect(),
            smoothings: (system.fields.iter())
                .map(|field| {
                    let hyper = field.hyper.as_ref()?;
                    Some(Hyperdiffusion::new(hyper, system.scheme, smoothing * dt))
                })
                .collect(),
            reacts: (system.kit().described.iter()).any(|field| field.reaction.is_some()),
            dt,
            substeps,
            edges_change: system.edges_change(),
            fixed: vec![Vec::new(); fields],
            inflow: vec![Vec::new(); fields],
            ambient: vec![Default::default(); fields],
            push: vec![0.0; fields * nodes],
            middle: vec![0.0; fields * nodes],
            scratch: Scratch::default(),
            taken: 0,
            system,
        };
        stepper.see_to_edges();
        stepper
    }

    /// Looks at edges for the step to come: what is held is as at its end.
    fn see_to_edges(&mut self) {
        let (system, begin) = (&self.system, self.taken as f64 * self.dt);
        let order = match system.scheme {
            Scheme::FirstOrder => 0,
            Scheme::SecondOrder => 1,
        };
        let inflow_time = system.inflow_time(begin, self.dt);
        for (k, (fixed, inflow)) in self.fixed.iter_mut().zip(&mut self.inflow).enumerate() {
            system.fixed_values(k, begin + self.dt, fixed);
            system.inflow_values(k, inflow_time, inflow);
        }
        for (k, ambient) in self.ambient.iter_mut().enumerate() {
            for (values, look) in ambient
                .iter_mut()
                .flatten()
                .zip(LOOKS[order].as_flattened())
            {
                system.ambient_values(k, begin + look * self.dt, values);
            }
        }
    }

    /// One step of the solver.
    fn substep(&mut self, state: &mut [f64], force: &[f64]) {
        let time = self.taken as f64 * self.dt;
        match self.system.scheme {
            Scheme::FirstOrder => {
                self.react(state, time);
                self.push.iter_mut().zip(force).for_each(|(p, f)| *p += f);
                self.carry(state);
            }
            // Strang's splitting: half a step of reactions, a whole one of the rest, the other half.
            Scheme::SecondOrder => {
                self.grow(state, time);
                self.push.copy_from_slice(force);
                self.carry(state);
                self.grow(state, time + 0.5 * self.dt);
            }
        }
        let nodes = self.system.nodes();
        for (field, described) in state.chunks_exact_mut(nodes).zip(&self.system.fields) {
            if let Some([low, high]) = described.clip {
                // Keeps a NaN, which a run must see.
                let cut = |z: &mut f64| *z = num_traits::clamp(*z, low, high);
                field.iter_mut().for_each(cut);
            }
        }
        self.taken += 1;
    }

    /// Writes how fast reactions change every field to `push`; nothing where a node is held or dry.
    fn react(&mut self, state: &[f64], time: f64) {
        let (system, nodes) = (&self.system, self.system.nodes());
        let fields: Vec<&[f64]> = state.chunks_exact(nodes).collect();
        for (k, push) in self.push.chunks_exact_mut(nodes).enumerate() {
            let Some(reaction) = &system.kit().described[k].reaction else {
                push.fill(0.0);
                continue;
            };
            let coordinates = &system.coordinates;
            system.evaluate(
                &reaction.rate,
                &fields,
                coordinates,
                time,
                push,
                &mut self.scratch,
            );
            let operator = &system.fields[k].operator;
            operator
                .fixed
                .iter()
                .for_each(|(node, _)| push[*node] = 0.0);
            operator.dry.iter().for_each(|node| push[*node] = 0.0);
        }
    }

    /// Half a step of reactions, by the midpoint rule.
    fn grow(&mut self, state: &mut [f64], time: f64) {
        if !self.reacts {
            return;
        }
        let half = 0.5 * self.dt;
        self.react(state, time);
        let mut middle = std::mem::take(&mut self.middle);
        for ((m, z), rate) in middle.iter_mut().zip(&*state).zip(&self.push) {
            *m = z + 0.5 * half * rate;
        }
        self.react(&middle, time + 0.5 * half);
        self.middle = middle;
        for (z, rate) in state.iter_mut().zip(&self.push) {
            *z += half * rate;
        }
    }

    /// Diffusion, hyperdiffusion, flow, edges and `push`.
    fn carry(&mut self, state: &mut [f64]) {
        let nodes = self.system.nodes();
        let parts = self.splittings.iter_mut().zip(&mut self.smoothings);
        for (k, (splitting, smoothing)) in parts.enumerate() {
            let field = &mut state[k * nodes..][..nodes];
            let push = &self.push[k * nodes..][..nodes];
            let [before, after] = &self.ambient[k];
            if let (Scheme::SecondOrder, Some(smoothing)) = (self.system.scheme, &mut *smoothing) {
                smoothing.step(field, before.each_ref().map(Vec::as_slice));
            }
            match splitting {
                Some(splitting) => {
                    splitting.step_with_inflow(field, push, &self.fixed[k], &self.inflow[k]);
                }
                None => {
                    field
                        .iter_mut()
                        .zip(push)
                        .for_each(|(z, p)| *z += self.dt * p);
                    let dry = &self.system.fields[k].operator.dry;
                    dry.iter().for_each(|&node| field[node] = 0.0);
                }
            }
            if let Some(smoothing) = smoothing {
                smoothing.step(field, after.each_ref().map(Vec::as_slice));
            }
        }
    }
}

impl Stepper<f64> for DescribedStepper {
    fn step(&mut self, state: &mut [f64], force: &[f64]) {
        let values = self.push.len();
        assert!(
            state.len() == values && force.len() == values,
            "{values} values"
        );
        for _ in 0..self.substeps {
            if self.edges_change {
                self.see_to_edges();
            }
            self.substep(state, force);
        }
    }
}
