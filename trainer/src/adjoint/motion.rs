//! From the network's outputs to what agents do, and where that takes them.

use super::real::Real;
use problem::{Drives, Problem};

/// Where a step takes an agent.
#[derive(Debug, Clone, Copy)]
pub struct Journey<T> {
    /// Its place.
    pub to: [T; 2],
    /// Along which axes walls did not decide.
    pub free: [bool; 2],
    /// How that place follows where it went, if keep-out zones turned it: [of the place, of the way].
    turn: Option<[[T; 2]; 2]>,
}

/// How agents act and move.
#[derive(Debug, Clone)]
pub struct Motion<T> {
    axes: usize,
    force_max: Option<T>,
    velocity_max: Option<T>,
    /// Whether the speed, not each of its components, is limited.
    round: bool,
    dt: T,
    low: [T; 2],
    high: [T; 2],
    keep_out: Vec<([T; 2], T)>,
}

impl<T: Real> Motion<T> {
    /// The agents of a problem.
    pub fn new(problem: &Problem) -> Self {
        let limit = |max: f64| (max > 0.0).then(|| T::of(max));
        let [low, high] = problem.reach.map(|corner| corner.map(T::of));
        let discs = problem.keep_out.iter();
        Self {
            axes: problem.grid.axes,
            force_max: limit(problem.actuation.force_max),
            velocity_max: limit(problem.actuation.velocity_max),
            round: problem.actuation.drives == Drives::Flow,
            dt: T::of(problem.control_interval),
            low,
            high,
            keep_out: discs
                .map(|d| (d.centre.map(T::of), T::of(d.radius)))
                .collect(),
        }
    }

    /// Whether agents have a force; it is the first of their actions.
    pub fn has_force(&self) -> bool {
        self.force_max.is_some()
    }

    /// Whether agents move; their velocity is the last of their actions.
    pub fn moves(&self) -> bool {
        self.velocity_max.is_some()
    }

    /// Index of the first velocity component among an agent's actions.
    pub fn velocity_at(&self) -> usize {
        usize::from(self.has_force())
    }

    /// `action` = limits · `output`, for one agent.
    pub fn saturate(&self, output: &[T], action: &mut [T]) {
        if let Some(limit) = self.force_max {
            action[0] = limit * output[0];
        }
        if let Some(limit) = self.velocity_max {
            let from = self.velocity_at();
            for (v, &o) in action[from..].iter_mut().zip(&output[from..]) {
                *v = limit * o;
            }
            if let Some(shorter) = self.shortening(&action[from..]) {
                action[from..].iter_mut().for_each(|v| *v = *v * shorter);
            }
        }
    }

    /// The factor that brings a velocity within the limit, if it is beyond.
    fn shortening(&self, velocity: &[T]) -> Option<T> {
        let limit = self.velocity_max.filter(|_| self.round)?;
        let square = velocity.iter().map(|&v| v * v).sum::<T>();
        (square > limit * limit).then(|| limit / square.root())
    }

    /// Adjoint of [`Self::saturate`]: `g` goes from the action to the output, in place.
    pub fn saturate_adjoint(&self, output: &[T], g: &mut [T]) {
        if let Some(limit) = self.force_max {
            g[0] = limit * g[0];
        }
        if let Some(limit) = self.velocity_max {
            let from = self.velocity_at();
            let mut velocity = [T::ZERO; 2];
            for (v, &o) in velocity.iter_mut().zip(&output[from..]) {
                *v = limit * o;
            }
            let velocity = &velocity[..self.axes];
            if let Some(shorter) = self.shortening(velocity) {
                // v' = L v/|v|: the part of g along v is lost.
                let square = velocity.iter().map(|&v| v * v).sum::<T>();
                let along = velocity
                    .iter()
                    .zip(&g[from..])
                    .map(|(&v, &g)| v * g)
                    .sum::<T>()
                    / square;
                for (g, &v) in g[from..].iter_mut().zip(velocity) {
                    *g = shorter * (*g - along * v);
                }
            }
            g[from..].iter_mut().for_each(|g| *g = limit * *g);
        }
    }

    /// Where an agent at `position` is after one step at `velocity`.
    pub fn travel(&self, position: &[T], velocity: &[T]) -> Journey<T> {
        let mut to = [T::ZERO; 2];
        let mut free = [true; 2];
        let mut turn = None;
        for axis in 0..self.axes {
            let there = velocity[axis].fused(self.dt, position[axis]);
            to[axis] = there.within(self.low[axis], self.high[axis]);
            free[axis] = to[axis] == there;
        }
        // As agents do: out of a zone along its radius, by a hair more than the rim.
        for ([cx, cy], radius) in &self.keep_out {
            let (dx, dy) = (to[0] - *cx, to[1] - *cy);
            let distance = (dx * dx + dy * dy).root();
            let rim = *radius * T::of(1.0 + KEEP_OUT_MARGIN);
            if distance < rim && distance > T::ZERO {
                let push = rim / distance;
                to = [*cx + dx * push, *cy + dy * push];
                // What is left is what goes along the rim.
                let along = [-dy / distance, dx / distance];
                let [above, below] = turn.unwrap_or([[T::ONE, T::ZERO], [T::ZERO, T::ONE]]);
                let slid = [0, 1].map(|k| push * (along[0] * above[k] + along[1] * below[k]));
                turn = Some(along.map(|along| slid.map(|slid| along * slid)));
            }
        }
        Journey { to, free, turn }
    }

    /// Adjoint of [`Self::travel`] for one agent: `g` turns from the gradient of where it went into
    /// that of where it was, and the velocity's is added to `g_velocity`.
    pub fn travel_adjoint(
        &self,
        position: &[T],
        velocity: &[T],
        g: &mut [T],
        g_velocity: &mut [T],
    ) {
        let Journey { free, turn, .. } = self.travel(position, velocity);
        if let Some([above, below]) = turn {
            let [x, y] = [g[0], g[1]];
            (0..2).for_each(|k| g[k] = above[k] * x + below[k] * y);
        }
        for axis in 0..self.axes {
            if !free[axis] {
                g[axis] = T::ZERO;
            }
            g_velocity[axis] += g[axis] * self.dt;
        }
    }

    /// Positions as a fraction of their reach.
    pub fn scale(&self, positions: &[T], scaled: &mut [T]) {
        let rows = positions
            .chunks_exact(self.axes)
            .zip(scaled.chunks_exact_mut(self.axes));
        for (from, to) in rows {
            for axis in 0..self.axes {
                to[axis] = (from[axis] - self.low[axis]) / (self.high[axis] - self.low[axis]);
            }
        }
    }

    /// Adjoint of [`Self::scale`]: adds to the positions' gradient.
    pub fn scale_adjoint(&self, g_scaled: &[T], g_positions: &mut [T]) {
        let rows = g_scaled
            .chunks_exact(self.axes)
            .zip(g_positions.chunks_exact_mut(self.axes));
        for (from, to) in rows {
            for axis in 0..self.axes {
                to[axis] += from[axis] / (self.high[axis] - self.low[axis]);
            }
        }
    }
}

/// How far beyond a keep-out zone's rim agents stay, as a share of its radius.
pub const KEEP_OUT_MARGIN: f64 = 1e-3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjoint::check::assert_gradient;
    use problem::published::{density_2d, heat_1d, heat_2d_obstacles};

    #[test]
    fn travelling_stops_at_the_wall_and_so_does_its_gradient() {
        let motion = Motion::<f64>::new(&heat_1d::PROBLEM);
        let adjoint = |x: f64, v: f64| {
            let (mut g, mut g_velocity) = ([1.0], [0.0]);
            motion.travel_adjoint(&[x], &[v], &mut g, &mut g_velocity);
            (motion.travel(&[x], &[v]).to[0], g_velocity[0], g[0])
        };
        assert_eq!(adjoint(0.5, 2.0), (0.502, 1e-3, 1.0));
        assert_eq!(adjoint(0.9995, 2.0), (1.0, 0.0, 0.0));
        assert_eq!(adjoint(0.0, -1.0), (0.0, 0.0, 0.0));
    }

    #[test]
    fn nobody_travels_into_a_keep_out_zone() {
        let problem = &heat_2d_obstacles::PROBLEM;
        let motion = Motion::<f64>::new(problem);
        let disc = problem.keep_out[0];
        let [cx, cy] = disc.centre;
        // Two thousandths from the rim, at full speed (5 thousandths a step) towards the centre.
        let start = [cx + disc.radius + 0.002, cy + 1e-4];
        let to = (motion.travel(&start, &[-problem.actuation.velocity_max, 0.0])).to;
        assert!(!disc.contains(to) && (to[0] - cx).hypot(to[1] - cy) < disc.radius * 1.01);
    }

    /// By one zone, and by two of which the second pushes on what the first has pushed.
    #[test]
    fn being_pushed_out_of_zones_has_the_adjoint_it_claims() {
        let limit = heat_2d_obstacles::PROBLEM.actuation.velocity_max;
        let first = heat_2d_obstacles::PROBLEM.keep_out[0];
        let [cx, cy] = first.centre;
        let rim = first.radius * (1.0 + KEEP_OUT_MARGIN);
        let second = problem::Disc {
            centre: [cx + rim, cy + 0.05],
            radius: 0.055,
        };
        let weight = [0.3, -0.8];
        for keep_out in [vec![first], vec![first, second]] {
            let problem = problem::Problem {
                keep_out: Box::leak(keep_out.into_boxed_slice()),
                ..heat_2d_obstacles::PROBLEM
            };
            let motion = Motion::<f64>::new(&problem);
            // Where it was and how fast it went, towards the centre.
            let start = [cx + rim + 0.001, cy + 1e-3, -0.9 * limit, 0.3 * limit];
            let value = |x: &[f64]| {
                let to = motion.travel(&x[..2], &x[2..]).to;
                to[0] * weight[0] + to[1] * weight[1]
            };
            let turned = motion.travel(&start[..2], &start[2..]).turn;
            assert!(turned.is_some());
            let (mut g, mut g_velocity) = (weight, [0.0; 2]);
            motion.travel_adjoint(&start[..2], &start[2..], &mut g, &mut g_velocity);
            assert_gradient(value, &start, &[g, g_velocity].concat(), 1e-5);
        }
    }

    #[test]
    fn limits_have_the_adjoint_they_claim() {
        let motion = Motion::<f64>::new(&density_2d::PROBLEM);
        let weight = [0.3, -0.8];
        // One within the speed limit, one beyond it.
        for output in [[0.2, -0.5], [0.9, 0.7]] {
            let value = |output: &[f64]| {
                let mut action = [0.0; 2];
                motion.saturate(output, &mut action);
                action[0] * weight[0] + action[1] * weight[1]
            };
            let mut g = weight;
            motion.saturate_adjoint(&output, &mut g);
            assert_gradient(value, &output, &g, 1e-8);
        }
    }
}
