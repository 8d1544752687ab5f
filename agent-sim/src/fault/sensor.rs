//! Faults of what an agent senses. The target and the position are not sensed with the field and
//! stay right. A coarse picture of the whole, or the windows on other fields, are sensed as the patch is:
//! their cells get the same noise, offset and gaps, drawn for each agent by itself, and freeze with it.

use super::{Act, Descriptor, Group, Parameter, Presence, Range, Scope, Sort, When, Whom, percent};
use crate::link::{Link, LinkError};
use agent_core::agent::Action;
use agent_core::message::{Observation, Overview, Patch, Samples};
use artifacts::observation::OwnedObservation;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// Sends `observation` with other readings of the field, which `read` makes of the true ones and which of
/// them it is, those of the patch first; `cells` is working memory.
pub(crate) fn send_read_as(
    inner: &mut impl Link,
    observation: &Observation<'_>,
    cells: &mut Vec<f32>,
    mut read: impl FnMut(usize, f32) -> f32,
) -> Result<(), LinkError> {
    let patch = observation.patch;
    let wide = patch.wide;
    cells.clear();
    let readings = patch.field.iter().chain(wide.field.iter()).enumerate();
    cells.extend(readings.map(|(cell, z)| read(cell, z)));
    let (near, far) = cells.split_at(patch.field.len());
    inner.send(&Observation {
        patch: Patch {
            field: Samples::new(near),
            wide: Overview {
                field: Samples::new(far),
                ..wide
            },
            ..patch
        },
        ..*observation
    })
}

/// Which of an agent's sensors reads each cell of an observation: the only one, or of several the first
/// that of the patch and the others those of the windows behind it, which are equally large.
pub(crate) fn reader(patch: &Patch<'_>, sensors: usize) -> impl Fn(usize) -> usize {
    let (near, far) = (patch.field.len(), patch.wide.field.len());
    let each = far.checked_div(sensors.saturating_sub(1)).unwrap_or(0);
    move |cell| match (cell.checked_sub(near), each) {
        (Some(behind), 1..) => (1 + behind / each).min(sensors - 1),
        _ => 0,
    }
}

/// Gaussian noise on every sensed cell.
pub static NOISE: Descriptor = Descriptor {
    name: "noise",
    group: Group::Sensor,
    parameters: &[Parameter::new(
        "std",
        Sort::Number(Range::NOT_NEGATIVE),
        Presence::Needed,
        "0.1",
    )],
    whom: Whom::Anyone,
    when: When::Between,
    help: "Gaussian noise on every cell",
    caption: |fault| format!("sense with noise of {}", fault.what.number("std")),
    act: Act::Link(|link, hit| {
        let std = hit.what.number("std") as f32;
        Box::new(Noise::new(link, hit.scope, vec![std], hit.rng.clone()))
    }),
};

/// A sensor with Gaussian noise, drawn anew for each cell and step.
pub struct Noise<L> {
    inner: L,
    scope: Scope,
    /// Of each of an agent's sensors, or of all alike.
    stds: Vec<f32>,
    rng: ChaCha8Rng,
    cells: Vec<f32>,
}

impl<L> Noise<L> {
    /// `inner`, shown cells with noise of these standard deviations while `scope` holds: one for all, or
    /// one for each of its sensors.
    pub fn new(inner: L, scope: Scope, stds: Vec<f32>, rng: ChaCha8Rng) -> Self {
        Self {
            inner,
            scope,
            stds,
            rng,
            cells: Vec::new(),
        }
    }
}

impl<L: Link> Link for Noise<L> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        if !self.scope.covers(observation) {
            return self.inner.send(observation);
        }
        let (rng, stds) = (&mut self.rng, &self.stds);
        let reader = reader(&observation.patch, stds.len());
        send_read_as(&mut self.inner, observation, &mut self.cells, |cell, z| {
            let noise: f32 = StandardNormal.sample(rng);
            z + stds[reader(cell)] * noise
        })
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        self.inner.receive(now_us)
    }
}

/// Every sensed cell is off by the same amount.
pub static SENSOR_BIAS: Descriptor = Descriptor {
    name: "sensor-bias",
    group: Group::Sensor,
    parameters: &[Parameter::new(
        "value",
        Sort::Number(Range::FINITE),
        Presence::Needed,
        "0.5",
    )],
    whom: Whom::Anyone,
    when: When::Between,
    help: "every cell is off by the same amount",
    caption: |fault| format!("sense with an offset of {:+}", fault.what.number("value")),
    act: Act::Link(|link, hit| {
        let value = hit.what.number("value") as f32;
        Box::new(SensorBias::new(link, hit.scope, value))
    }),
};

/// A sensor whose zero has moved.
pub struct SensorBias<L> {
    inner: L,
    scope: Scope,
    value: f32,
    cells: Vec<f32>,
}

impl<L> SensorBias<L> {
    /// `inner`, shown cells that are too high by `value` while `scope` holds.
    pub fn new(inner: L, scope: Scope, value: f32) -> Self {
        Self {
            inner,
            scope,
            value,
            cells: Vec::new(),
        }
    }
}

impl<L: Link> Link for SensorBias<L> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        if !self.scope.covers(observation) {
            return self.inner.send(observation);
        }
        let value = self.value;
        send_read_as(&mut self.inner, observation, &mut self.cells, |_, z| {
            z + value
        })
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        self.inner.receive(now_us)
    }
}

/// Sensed cells read NaN: a dead sensor that says so.
pub static DROPOUT: Descriptor = Descriptor {
    name: "dropout",
    group: Group::Sensor,
    parameters: &[Parameter::P],
    whom: Whom::Anyone,
    when: When::Between,
    help: "cells read NaN",
    caption: |fault| format!("lose {} % of their cells", percent(fault.what.number("p"))),
    act: Act::Link(|link, hit| {
        let p = hit.what.number("p");
        Box::new(Dropout::new(link, hit.scope, p, hit.rng.clone()))
    }),
};

/// A sensor with cells that fail now and then, and say so by reading NaN.
pub struct Dropout<L> {
    inner: L,
    scope: Scope,
    p: f64,
    rng: ChaCha8Rng,
    cells: Vec<f32>,
}

impl<L> Dropout<L> {
    /// `inner`, shown NaN in each cell with probability `p` while `scope` holds.
    pub fn new(inner: L, scope: Scope, p: f64, rng: ChaCha8Rng) -> Self {
        Self {
            inner,
            scope,
            p,
            rng,
            cells: Vec::new(),
        }
    }
}

impl<L: Link> Link for Dropout<L> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        if !self.scope.covers(observation) {
            return self.inner.send(observation);
        }
        let (rng, p) = (&mut self.rng, self.p);
        send_read_as(
            &mut self.inner,
            observation,
            &mut self.cells,
            |_, z| match rng.random::<f64>() < p {
                true => f32::NAN,
                false => z,
            },
        )
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        self.inner.receive(now_us)
    }
}

/// The sensor shows the patch that it had when the fault began.
pub static FREEZE: Descriptor = Descriptor {
    name: "freeze",
    group: Group::Sensor,
    parameters: &[],
    whom: Whom::Anyone,
    when: When::Between,
    help: "shows what it saw when the fault began",
    caption: |_| "sense a frozen patch".to_owned(),
    act: Act::Link(|link, hit| Box::new(Freeze::new(link, hit.scope))),
};

/// A sensor that shows the same picture for ever.
pub struct Freeze<L> {
    inner: L,
    scope: Scope,
    frozen: Option<OwnedObservation>,
}

impl<L> Freeze<L> {
    /// `inner`, shown again and again the first patch, and the first picture of the whole, that it
    /// is shown while `scope` holds.
    pub fn new(inner: L, scope: Scope) -> Self {
        Self {
            inner,
            scope,
            frozen: None,
        }
    }
}

impl<L: Link> Link for Freeze<L> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        if !self.scope.covers(observation) {
            self.frozen = None;
            return self.inner.send(observation);
        }
        let frozen = self.frozen.get_or_insert_with(|| observation.into());
        self.inner.send(&Observation {
            patch: frozen.patch(),
            ..*observation
        })
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        self.inner.receive(now_us)
    }
}

/// Nothing comes over the bus of an agent's own sensors.
pub static BUS_STUCK: Descriptor = Descriptor {
    name: "bus-stuck",
    group: Group::Sensor,
    parameters: &[],
    whom: Whom::Standing,
    when: When::Between,
    help: "their bus is held low, and gives nothing (agents with --standalone)",
    caption: |_| "have their sensors' bus held low".to_owned(),
    act: Act::Link(|link, hit| Box::new(BusStuck::new(link, hit.scope))),
};

/// The bus of an agent that senses by itself, held low: the agent is shown a patch without cells, which is not
/// that they read nothing, but that nothing is read.
pub struct BusStuck<L> {
    inner: L,
    scope: Scope,
}

impl<L> BusStuck<L> {
    /// `inner`, whose bus is held low while `scope` holds.
    pub fn new(inner: L, scope: Scope) -> Self {
        Self { inner, scope }
    }
}

impl<L: Link> Link for BusStuck<L> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        if !self.scope.covers(observation) {
            return self.inner.send(observation);
        }
        self.inner.send(&Observation {
            patch: Patch {
                field: Samples::new(&[]),
                ..observation.patch
            },
            ..*observation
        })
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        self.inner.receive(now_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::probe::{INTERVAL_US, Log, drive, observe};
    use rand::SeedableRng;

    fn steps(from: u64, until: u64) -> Scope {
        Scope::new(from * INTERVAL_US, Some(until * INTERVAL_US), None)
    }

    fn rng(seed: u64) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(seed)
    }

    /// The mean of 10,000 draws of standard deviation 0.5 scatters by 0.005 and their variance by
    /// √2 % of 0.25; four times that is allowed.
    #[test]
    fn noise_has_no_mean_and_the_asked_for_deviation() {
        let log = Log::default();
        let mut link = Noise::new(log.probe(), steps(0, 9), vec![0.5], rng(1));
        link.send(&observe(0, 0.5, &[3.0; 10_000])).unwrap();
        let seen = &log.all()[0].field;
        let mean = seen.iter().map(|&z| f64::from(z)).sum::<f64>() / 1e4;
        let variance = (seen.iter().map(|&z| (f64::from(z) - mean).powi(2))).sum::<f64>() / 1e4;
        assert!((mean - 3.0).abs() < 0.02, "{mean}");
        assert!((variance / 0.25 - 1.0).abs() < 0.057, "{variance}");
    }

    #[test]
    fn noise_comes_again_with_its_seed_and_stays_within_its_time() {
        let seen = |seed| {
            let log = Log::default();
            drive(
                &mut Noise::new(log.probe(), steps(1, 3), vec![0.1], rng(seed)),
                4,
            );
            log.all()
        };
        let one = seen(1);
        assert_eq!(
            (&one[0].field, &one[3].field),
            (&vec![0.0; 4], &vec![3.0; 4])
        );
        assert!(one[1].field.iter().all(|z| *z != 1.0));
        assert_ne!(one[1].field[0] - 1.0, one[2].field[0] - 2.0);
        assert_eq!(one, seen(1));
        assert_ne!(one, seen(2));
    }

    #[test]
    fn a_sensor_bias_shifts_the_field_and_not_the_target() {
        let log = Log::default();
        let mut link = SensorBias::new(log.probe(), steps(0, 9), -2.0);
        let (field, target) = ([1.0, 5.0], [7.0, 8.0]);
        let mut observation = observe(0, 0.5, &field);
        observation.patch.target = Samples::new(&target);
        link.send(&observation).unwrap();
        let seen = &log.all()[0];
        assert_eq!(seen.field, [-1.0, 3.0]);
        assert_eq!(seen.target, target);
        assert_eq!(seen.inside, observation.patch.inside);
    }

    /// Of 10,000 cells 3,000 ± 46 (one standard deviation) drop out.
    #[test]
    fn dropped_cells_say_so_and_the_others_are_right() {
        let log = Log::default();
        let mut link = Dropout::new(log.probe(), steps(0, 9), 0.3, rng(1));
        link.send(&observe(0, 0.5, &[1.5; 10_000])).unwrap();
        let seen = &log.all()[0].field;
        let dropped = seen.iter().filter(|z| z.is_nan()).count();
        assert!((2800..3200).contains(&dropped), "{dropped}");
        assert_eq!(seen.iter().filter(|z| **z == 1.5).count(), 10_000 - dropped);
    }

    #[test]
    fn a_frozen_sensor_repeats_its_first_patch_at_the_place_and_time_of_the_agent() {
        let log = Log::default();
        let mut link = Freeze::new(log.probe(), steps(1, 3));
        for step in 0..4 {
            let x = 0.1 * step as f32;
            link.send(&observe(step, x, &[step as f32; 2])).unwrap();
        }
        assert_eq!(log.arrivals(), [(0, 0.0), (1, 1.0), (2, 1.0), (3, 3.0)]);
        assert_eq!(log.all()[2].position[0], 0.2);
    }

    /// The observation of `step` with that number in each of three cells of the whole, whose target
    /// is 9.
    fn with_overview(step: u64) -> OwnedObservation {
        OwnedObservation {
            wide_field: vec![step as f32; 3],
            wide_target: vec![9.0; 3],
            ..OwnedObservation::from(&observe(step, 0.5, &[step as f32; 4]))
        }
    }

    #[test]
    fn the_picture_of_the_whole_is_as_broken_as_the_patch() {
        let log = Log::default();
        type Wrap = fn(crate::fault::probe::Probe) -> Box<dyn Link>;
        let wrappers: [Wrap; 4] = [
            |probe| Box::new(Noise::new(probe, steps(1, 3), vec![0.1], rng(1))),
            |probe| Box::new(SensorBias::new(probe, steps(1, 3), -2.0)),
            |probe| Box::new(Dropout::new(probe, steps(1, 3), 1.0, rng(1))),
            |probe| Box::new(Freeze::new(probe, steps(1, 3))),
        ];
        for wrap in wrappers {
            let mut link = wrap(log.probe());
            for step in 0..4 {
                link.send(&with_overview(step).as_observation()).unwrap();
            }
        }
        let all = log.all();
        let [noisy, biased, gappy, frozen] = [0, 4, 8, 12].map(|at| &all[at..at + 4]);
        for seen in [noisy, biased, gappy, frozen] {
            assert_eq!(
                (&seen[0].wide_field, &seen[3].wide_field),
                (&vec![0.0; 3], &vec![3.0; 3])
            );
            assert!(
                seen.iter()
                    .all(|s| s.wide_target == [9.0; 3] && s.field.len() == 4)
            );
        }
        let draws: Vec<f32> = noisy[1]
            .field
            .iter()
            .chain(&noisy[1].wide_field)
            .copied()
            .collect();
        assert!((0..7).all(|k| draws[k] != 1.0 && !draws[..k].contains(&draws[k])));
        assert_eq!(biased[2].wide_field, [0.0; 3]);
        assert!(gappy[2].wide_field.iter().all(|z| z.is_nan()));
        assert_eq!(frozen[2].wide_field, [1.0; 3]);
    }
}
