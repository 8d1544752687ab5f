//! The sensors that a description gives its agents. Like faults they are wrappers over a link: noise where
//! the field is read, steps and range where the reading reaches the agent, and whatever is broken besides
//! in between. So a fault's noise adds to that of the file, a frozen sensor stays where it was, and no
//! fault makes a reading that the sensor could not show.

use crate::fault::sensor::{Noise, reader, send_read_as};
use crate::fault::{Plan, Scope};
use crate::link::{Link, LinkError};
use agent_core::agent::Action;
use agent_core::message::Observation;
use problem::kit::sensor::Sensor;

/// The link to `agent` with its sensors, one for each field that it sees, and with what is planned to be
/// wrong with it; see [`Plan::stack`].
pub fn sensed<'l, L: Link + 'l>(
    plan: &Plan,
    agent: usize,
    sensors: &'l [Sensor],
    fresh: impl Fn() -> L + Send + 'l,
) -> Box<dyn Link + 'l> {
    let link = plan.stack(agent, move || Readings {
        inner: fresh(),
        sensors,
        cells: Vec::new(),
    });
    let noises: Vec<f32> = sensors.iter().map(|sensor| sensor.noise as f32).collect();
    match noises.iter().all(|&std| std == 0.0) {
        true => link,
        false => {
            let always = Scope::new(0, None, None);
            Box::new(Noise::new(link, always, noises, plan.sensor_rng(agent)))
        }
    }
}

/// Rounds and cuts what passes to what the sensors can show.
struct Readings<'s, L> {
    inner: L,
    sensors: &'s [Sensor],
    cells: Vec<f32>,
}

impl<L: Link> Link for Readings<'_, L> {
    fn send(&mut self, observation: &Observation<'_>) -> Result<(), LinkError> {
        let sensors = self.sensors;
        let reader = reader(&observation.patch, sensors.len());
        send_read_as(&mut self.inner, observation, &mut self.cells, |cell, z| {
            sensors[reader(cell)].reading(f64::from(z)) as f32
        })
    }

    fn receive(&mut self, now_us: u64) -> Result<Option<Action>, LinkError> {
        self.inner.receive(now_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::probe::{Log, observe};
    use crate::fault::{Fault, Run};
    use problem::grid::{Edge, Grid};

    const SENSOR: Sensor = Sensor {
        noise: 0.3,
        quantisation: 0.5,
        range: [-1.25, 2.0],
    };

    /// What an agent is shown of a row of cells in each of two steps.
    fn shown(sensor: Sensor, faults: &[&str], seed: u64, cells: &[f32]) -> [Vec<f32>; 2] {
        let faults: Vec<Fault> = faults.iter().map(|text| text.parse().unwrap()).collect();
        let grid = Grid::line(20, 1.0, Edge::Wall);
        let run = Run {
            grid: &grid,
            places: &[[0.5, 0.0]],
            at_first: 1,
            steps: 10,
            interval_us: 1000.0,
            seed,
        };
        let log = Log::default();
        let probe = log.clone();
        let sensors = [sensor];
        let mut link = sensed(&Plan::new(&faults, run), 0, &sensors, move || probe.probe());
        for step in 0..2 {
            link.send(&observe(step, 0.5, cells)).unwrap();
        }
        drop(link);
        let all = log.all();
        [all[0].field.clone(), all[1].field.clone()]
    }

    #[test]
    fn readings_are_rounded_to_steps_and_cut_to_the_range() {
        let exact = Sensor {
            noise: 0.0,
            ..SENSOR
        };
        let cells = [0.2, 0.3, -0.8, -1.2, -9.0, 1.8, 2.4, f32::NAN];
        let [seen, _] = shown(exact, &[], 1, &cells);
        assert_eq!(seen[..7], [0.0, 0.5, -1.0, -1.0, -1.25, 2.0, 2.0]);
        // A cell that says that it is dead goes on saying so.
        assert!(seen[7].is_nan());
        let [biased, _] = shown(exact, &["sensor-bias,value=0.3"], 1, &[0.0, 1.9]);
        assert_eq!(biased, [0.5, 2.0]);
    }

    #[test]
    fn noise_is_the_runs_own_and_new_in_every_step() {
        let cells = [0.4; 40];
        let one = shown(SENSOR, &[], 1, &cells);
        assert!(one.iter().flatten().any(|z| *z != 0.5));
        assert_ne!(one[0], one[1]);
        assert_eq!(one, shown(SENSOR, &[], 1, &cells));
        assert_ne!(one, shown(SENSOR, &[], 2, &cells));
        let [first, second] = shown(SENSOR, &["freeze"], 1, &cells);
        assert_eq!(first, second);
        assert_eq!(first, one[0]);
    }

    /// Variances of independent noises add: 0.3² + 0.4² = 0.5², within four standard deviations (√2 %
    /// of 10,000 draws).
    #[test]
    fn noise_of_the_file_and_of_a_fault_add_up() {
        let plain = Sensor {
            quantisation: 0.0,
            range: [f64::NEG_INFINITY, f64::INFINITY],
            ..SENSOR
        };
        let [seen, _] = shown(plain, &["noise,std=0.4"], 1, &[0.0; 10_000]);
        let variance = seen.iter().map(|&z| f64::from(z).powi(2)).sum::<f64>() / 1e4;
        assert!((variance / 0.25 - 1.0).abs() < 0.057, "{variance}");
    }
}
