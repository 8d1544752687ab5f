//! From what stands in a file to a problem: every complaint in one sentence with the line, before anything
//! runs.

use super::domain::{BOX_SIDES, Domain, Mask};
use super::episode::{Form, Generator, Push, Wander};
use super::expression::{Expression, Scratch};
use super::file::{self, Cut, Drawn, File, Number, OneOrEach, Said};
use super::keep_out::Stand;
use super::places::{Places, is_inside};
use super::sensor::Sensor;
use super::shape::Shape;
use super::system::System;
use super::{
    BadFile, Constant, Described, Edge, Kit, MOST_FIELDS, Map, Named, Reaction, SIDES, operator,
};
use crate::coefficient::{Coefficient, MAX_COEFFICIENTS, NOTHING_ELSE, published};
use crate::grid::{self, Grid};
use crate::input;
use crate::limit::{AGENTS, BATCH, POINTS, STEPS, TRAINING_STEPS};
use crate::pde::Stepper;
use crate::pde::described::DescribedStepper;
use crate::random_field::{Smooth, episode_rng};
use crate::resample::resample;
use crate::{
    Actuation, Cells, Disc, Drives, ErrorSensing, Headline, LossWeights, Problem, Proportional,
    Records, Scoring, Sensing, npy,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// Most steps of the solver in one control interval that are tried.
const MOST_SUBSTEPS: usize = 256;
/// How much of a field's change halving the solver's step may change.
const RESOLVED: f64 = 2e-3;
/// Most bytes of a picture, a few for each pixel.
const LARGEST_PICTURE: usize = 1 << 28;
/// Most times that neighbouring points may mix in a control interval: beyond, 1 is lost beside it in
/// rounding.
const MOST_MIXING: f64 = 1e12;
/// Most points along an axis with random fields, whose covariance is factored.
const MOST_RANDOM: usize = 4096;
/// Lengths that agents' single precision bears, and intervals that their clocks do.
const LENGTHS: [f64; 2] = [1e-9, 1e9];
const INTERVALS: [f64; 2] = [1e-6, 4000.0];
/// Letters of a name, for which manifests of policies have room.
const LONGEST_NAME: usize = 32;
/// What policies have room for: discs to keep out of, values to read, numbers to remember.
const MOST_DISCS: usize = 4;
/// The smallest disc, as a share of the farthest coordinate: below, rounding would lead into it.
const LEAST_DISC: f64 = 1e-3;
const MOST_FEATURES: usize = 4096;
/// Rows of the windows on the fields that agents see besides: a blob tells them in a byte.
const MOST_OTHERS: usize = 255;
const MOST_MEMORY: usize = 16;
/// Most goals one after the other: training keeps all of every episode of a batch.
const MOST_GOALS: usize = 32;

type Checked<T> = Result<T, BadFile>;

/// The problem that a file describes.
pub fn problem(path: &Path) -> Checked<&'static Problem> {
    let text = input::read_text(path, input::DESCRIPTION).map_err(|e| BadFile {
        path: path.to_owned(),
        line: None,
        what: format!("it cannot be read: {e}; agent-sim new writes one to begin with"),
    })?;
    described(path, &text)
}

/// The problem that a text describes, which stands in a file.
pub fn described(path: &Path, text: &str) -> Checked<&'static Problem> {
    let builder = Builder {
        path,
        text,
        variables: Vec::new(),
    };
    builder.build()
}

/// What is known while a file is gone through.
struct Builder<'a> {
    path: &'a Path,
    text: &'a str,
    /// Names in expressions: fields, coefficients, x, y, t.
    variables: Vec<String>,
}

impl Builder<'_> {
    /// A complaint about a place in the file.
    fn wrong(&self, at: Range<usize>, what: impl Into<String>) -> BadFile {
        let before = &self.text.as_bytes()[..at.start.min(self.text.len())];
        BadFile {
            path: self.path.to_owned(),
            line: Some(1 + before.iter().filter(|&&byte| byte == b'\n').count()),
            what: what.into(),
        }
    }

    fn positive(&self, said: &Said<f64>, what: &str) -> Checked<f64> {
        match *said.get_ref() {
            value if value > 0.0 && value.is_finite() => Ok(value),
            value => Err(self.wrong(said.span(), format!("{what} must be positive, not {value}"))),
        }
    }

    fn not_negative(&self, said: &Option<Said<f64>>, usual: f64, what: &str) -> Checked<f64> {
        match said.as_ref().map(|said| (said, *said.get_ref())) {
            None => Ok(usual),
            Some((_, value)) if value >= 0.0 && value.is_finite() => Ok(value),
            Some((said, value)) => Err(self.wrong(
                said.span(),
                format!("{what} must be zero or positive, not {value}"),
            )),
        }
    }

    fn unit(&self, said: &Said<String>) -> Checked<String> {
        match said.get_ref().trim() {
            "" => {
                let what = "a unit is missing here; write \"1\" where there is none";
                Err(self.wrong(said.span(), what))
            }
            unit => Ok(unit.to_owned()),
        }
    }

    fn build(mut self) -> Checked<&'static Problem> {
        let file: File = toml::from_str(self.text).map_err(|error| {
            let at = error.span().unwrap_or(0..0);
            self.wrong(at, in_a_sentence(error.message()))
        })?;
        self.check_name(&file)?;
        let names = self.field_names(&file)?;
        let grid = self.grid(&file)?;
        let (coefficients, constants) = self.coefficients(&file, &names)?;
        let cuts = self.cuts(&file, grid.axes)?;
        let mask = self.mask(&file, &grid)?;
        let domain = {
            let shapes: Vec<Shape> = cuts.iter().map(|(_, shape)| shape.clone()).collect();
            Domain::new(grid, &shapes, mask.as_ref())
        };
        self.check_parts(&file, &domain)?;
        let interval = self.positive(&file.time.interval, "time.interval")?;
        if !(INTERVALS[0]..=INTERVALS[1]).contains(&interval) {
            let what = format!(
                "time.interval can be from {:e} to {}, not {interval:?}; choose another unit of time",
                INTERVALS[0], INTERVALS[1]
            );
            return Err(self.wrong(file.time.interval.span(), what));
        }
        let steps = *file.time.steps.get_ref();
        if !(1..=STEPS.most).contains(&steps) {
            let what = format!("an episode has 1 to {} steps, not {steps}", STEPS.most);
            return Err(self.wrong(file.time.steps.span(), what));
        }
        let length = interval * steps as f64;
        let named = |said: &Option<Said<String>>, usual: usize| match said {
            None => Ok(usual),
            Some(said) => self.field_named(said.get_ref(), &names, said.span()),
        };
        let driven = named(&file.actuators.field, 0)?;
        let all_seen = self.seen(&file.sensors, &names, driven)?;
        let seen = all_seen[0];
        let ranges = self.ranges(&file, &names, &grid, length)?;
        let mut described = Vec::new();
        for (k, name) in names.iter().enumerate() {
            let field = field_of(&file, name);
            described.push(self.field(
                field,
                FieldContext {
                    name,
                    fields: names.len(),
                    usual_weight: f64::from(u8::from(k == seen)),
                    grid: &grid,
                    domain: &domain,
                    cuts: &cuts,
                    masked: mask.is_some(),
                    ranges: &ranges,
                    interval,
                    length,
                },
            )?);
        }
        self.check_goals(&file)?;
        let tracking = described.iter().any(|field| {
            !matches!(&field.target, Generator::Expression(e) if e.text() == "0")
                || !field.goals.is_empty()
        });
        let pushes = file.disturbances.iter();
        let pushes = pushes
            .map(|push| self.push(push, &names, &domain, length))
            .collect::<Checked<Vec<Push>>>()?;
        let (places, velocity_max) = self.actuators(&file, &domain)?;
        let (width, influence) = self.reach(&file, &grid, &places)?;
        let rate = (file.actuators.rate.as_ref()).map_or(Ok(f64::INFINITY), |rate| {
            self.positive(rate, "actuators.rate")
        })?;
        let kept_out = self.keep_out(&file, &grid, &cuts, velocity_max > 0.0)?;
        let discs = kept_out.iter().filter_map(|(_, stand)| stand.as_ref());
        let keep_out: Vec<Disc> = discs.flat_map(|stand| stand.discs.clone()).collect();
        let regions = (file.score.regions.iter())
            .map(|region| {
                let weight = region.get_ref().weight.map(|w| Said::new(region.span(), w));
                let shape = self.shape(region, grid.axes)?;
                let holds = |node: usize| domain.wet(node) && shape.covers(&grid, grid.place(node));
                if !(0..grid.len()).any(holds) {
                    let what = "this region holds no point of the grid within the domain; move it, or make it larger";
                    return Err(self.wrong(region.span(), what));
                }
                Ok((shape, self.not_negative(&weight, 1.0, "a region's weight")?))
            })
            .collect::<Checked<Vec<_>>>()?;
        let elsewhere = self.not_negative(&file.score.elsewhere, 1.0, "score.elsewhere")?;
        let sensors = self.sensors(&file.sensors, all_seen.len())?;
        let from = match &file.score.from {
            None => 0,
            Some(said) => match *said.get_ref() {
                from if (0.0..length).contains(&from) => {
                    ((from / interval).round() as usize).min(steps - 1)
                }
                from => {
                    let what = format!(
                        "score.from must be before the end of an episode at {length}, not {from}"
                    );
                    return Err(self.wrong(said.span(), what));
                }
            },
        };
        let sensing = self.window(&file.sensors, &grid)?;
        let window = sensing.window;
        let cells = window.pow(grid.axes as u32);
        let others = all_seen.len() - 1;
        let features = [2 * cells, cells][grid.axes - 1] + others * cells;
        if features + MOST_MEMORY > MOST_FEATURES || others * window > MOST_OTHERS {
            let what = format!(
                "a window of {window}{} has {features} values, more than an agent can read; take a smaller one, or a coarser grid",
                match others {
                    0 => String::new(),
                    _ => format!(" on {} fields", others + 1),
                }
            );
            return Err(self.wrong(file.sensors.window.span(), what));
        }
        let training = self.training(&file)?;
        self.check_standing(&file, &training, &grid, all_seen.len(), velocity_max > 0.0)?;
        let quantity = {
            let field = &described[seen];
            match field.unit.as_str() {
                "1" => field.quantity.clone(),
                unit => format!("{} in {unit}", field.quantity),
            }
        };
        let agents = places.count();
        let kit: &'static Kit = Box::leak(Box::new(Kit {
            path: self.path.to_owned(),
            seen_as: self.seen_as(&file, &sensing, all_seen[1..].iter().map(|&k| &names[k]))?,
            units: [self.unit(&file.domain.unit)?, self.unit(&file.time.unit)?],
            described,
            seen,
            also_seen: all_seen[1..].to_vec(),
            driven,
            cuts,
            mask,
            rate,
            influence,
            kept_out,
            scheme: file.time.scheme,
            sensors,
            training,
            constants,
            coefficients: (file.coefficients.iter())
                .map(|(name, coefficient)| Named {
                    name: name.get_ref().clone(),
                    meaning: coefficient.meaning.clone(),
                    unit: coefficient.unit.clone(),
                    range: coefficient.range.as_ref().map(|range| *range.get_ref()),
                })
                .collect(),
            places,
            pushes,
            regions,
            elsewhere,
        }));
        if kit
            .described_weights(&grid)
            .iter()
            .all(|weight| *weight == 0.0)
        {
            let at = file.score.elsewhere.as_ref();
            let at = at.map_or(file.sensors.window.span(), Said::span);
            let what = "no error counts anywhere; give a field or a region in the domain a weight";
            return Err(self.wrong(at, what));
        }
        let size = grid.high;
        let shortest = (0..grid.axes)
            .map(|a| size[a])
            .fold(f64::INFINITY, f64::min);
        let coefficients: &'static [Coefficient] = Box::leak(coefficients.into_boxed_slice());
        let mut problem = Problem {
            name: leaked(file.name.get_ref()),
            summary: leaked(
                file.summary
                    .as_deref()
                    .unwrap_or("a field described in a file"),
            ),
            quantity: leaked(&quantity),
            grid,
            sensors: grid,
            axis_names: ["x", if grid.axes == 2 { "y" } else { "" }],
            control_interval: interval,
            substeps: 1,
            horizon: steps,
            agents,
            reach: [[0.0; 2], size],
            actuation: Actuation {
                drives: Drives::Source,
                width,
                peak_on_grid: false,
                force_max: self.positive(&file.actuators.force, "actuators.force")?,
                velocity_max,
            },
            sensing,
            integral: None,
            tracking,
            scoring: Scoring {
                headline: match file.score.error {
                    file::Judged::Final => Headline::Final,
                    file::Judged::Mean => Headline::TimeMean,
                },
                records: Records::AfterAction,
                from,
            },
            keep_out: Box::leak(keep_out.into_boxed_slice()),
            loss: LossWeights {
                track: 1.0,
                margin: 0.02 * shortest,
                safe_distance: 0.05 * shortest,
                obstacle_margin: 0.03 * shortest,
                velocity_effort: 0.1,
                ..LossWeights::NONE
            },
            placement: |problem, agents| {
                let kit = problem.kit.expect("described");
                kit.places.of(agents, &kit.domain(&problem.sensors))
            },
            draw: |problem, rng| problem.kit.expect("described").draw(problem, rng),
            test_set: None,
            stepper: |problem, parts| Box::new(DescribedStepper::new(problem, parts)),
            longest_step: |problem| System::of(problem).longest_step(),
            baseline: self.feedback(&file)?,
            coverage: None,
            policy: beside(self.path),
            kit: Some(kit),
            form: None,
            variants: &[],
            coefficients,
            physics: published(coefficients),
        };
        self.solver_steps(&file, &mut problem)?;
        Ok(Box::leak(Box::new(problem)))
    }

    /// What agents keep out of: what the file says, and what is cut out, where nobody is, as far as there
    /// are discs for it.
    fn keep_out(
        &self,
        file: &File,
        grid: &Grid,
        cuts: &[(String, Shape)],
        mobile: bool,
    ) -> Checked<Vec<(String, Option<Stand>)>> {
        let (mut all, mut left) = (Vec::new(), MOST_DISCS);
        for (k, cut) in file.actuators.keep_out.iter().enumerate() {
            let name = cut.get_ref().name.clone();
            let name = name.unwrap_or_else(|| format!("keep-out {}", k + 1));
            let shape = self.shape(cut, grid.axes)?;
            let stand = self.stand(&shape, grid, left, &name, cut.span())?;
            left -= stand.discs.len();
            all.push((name, Some(stand)));
        }
        if !mobile {
            return Ok(all);
        }
        // Round ones are discs anyway; of the others, those that come first.
        let is_round = |shape: &Shape| matches!(shape, Shape::Disc { .. });
        for round in [true, false] {
            for (k, (name, shape)) in cuts.iter().enumerate() {
                if is_round(shape) != round {
                    continue;
                }
                let at = file.domain.cuts[k].span();
                let stand = match round {
                    true => Some(self.stand(shape, grid, left, name, at)?),
                    false => self.stand(shape, grid, left, name, at).ok(),
                };
                left -= stand.as_ref().map_or(0, |stand| stand.discs.len());
                all.push((name.clone(), stand));
            }
        }
        Ok(all)
    }

    /// Discs for a shape that agents must keep out of.
    fn stand(
        &self,
        shape: &Shape,
        grid: &Grid,
        left: usize,
        name: &str,
        at: Range<usize>,
    ) -> Checked<Stand> {
        let farthest = grid.high[0].max(grid.high[1]);
        match Stand::of(shape, grid, left) {
            Ok(stand) if stand.discs.len() > left => {
                let what = format!(
                    "mobile agents can be kept out of {MOST_DISCS} discs, round cut-outs among them; there is none left for {name}"
                );
                Err(self.wrong(at, what))
            }
            Ok(stand) => match stand
                .discs
                .iter()
                .all(|d| d.radius >= LEAST_DISC * farthest)
            {
                true => Ok(stand),
                false => {
                    let what = format!(
                        "{name} is too small for agents to keep out of; give it a radius of {} or more",
                        LEAST_DISC * farthest
                    );
                    Err(self.wrong(at, what))
                }
            },
            Err(closest) => {
                let what = format!(
                    "agents keep out of at most {MOST_DISCS} discs; the {left} that are left for {name} come no closer to its rim than {:.3}; give a shape that is less long or hollow, or discs of your own",
                    closest.off()
                );
                Err(self.wrong(at, what))
            }
        }
    }

    /// What agents see of the grid, without seeing any of it twice.
    fn window(&self, said: &file::Sensors, grid: &Grid) -> Checked<Sensing> {
        let fewest = grid.shape().iter().min().copied().unwrap_or(0);
        let spacing = said.spacing.as_ref().map_or(1, |said| *said.get_ref());
        let sensing = Sensing {
            window: *said.window.get_ref(),
            spacing,
            // A point of either kind of axis lies in its own cell.
            cells: match grid.edges.contains(&grid::Edge::Periodic) {
                false => Cells::Intervals,
                true => Cells::Points,
            },
        };
        if let Some(said) = &said.spacing {
            // For a window of one cell and its halo.
            let most = fewest.saturating_sub(1) / 2;
            if !(1..=most).contains(&spacing) {
                let what = format!(
                    "a window that goes on by {spacing} points does not fit a grid of {grid}; spacing can be from 1 to {most}"
                );
                return Err(self.wrong(said.span(), what));
            }
        }
        let widest = sensing.widest(fewest);
        if !(1..=widest).contains(&sensing.window) {
            let apart = match spacing {
                1 => String::new(),
                _ => format!(", {spacing} points from one to the next,"),
            };
            let what = format!(
                "a window of {}{apart} does not fit a grid of {grid}; it can be from 1 to {widest}",
                sensing.window
            );
            return Err(self.wrong(said.window.span(), what));
        }
        Ok(sensing)
    }

    /// Which field that is.
    fn field_named(&self, name: &str, names: &[String], at: Range<usize>) -> Checked<usize> {
        let found = names.iter().position(|known| known == name);
        found.ok_or_else(|| {
            let known = names.join(", ");
            self.wrong(at, format!("there is no field '{name}'; there is: {known}"))
        })
    }

    /// The fields that agents see, each once.
    fn seen(&self, said: &file::Sensors, names: &[String], usual: usize) -> Checked<Vec<usize>> {
        let Some(said) = &said.field else {
            return Ok(vec![usual]);
        };
        let mut seen = Vec::new();
        for name in said.get_ref().all() {
            let field = self.field_named(name, names, said.span())?;
            if seen.contains(&field) {
                return Err(self.wrong(said.span(), format!("'{name}' is seen twice")));
            }
            seen.push(field);
        }
        match seen.is_empty() {
            false => Ok(seen),
            true => {
                let what = "agents see at least one field; name it, or leave this out";
                Err(self.wrong(said.span(), what))
            }
        }
    }

    /// What policies say that they are for. No name of a file has a slash or a plus in it.
    fn seen_as<'n>(
        &self,
        file: &File,
        sensing: &Sensing,
        others: impl Iterator<Item = &'n String>,
    ) -> Checked<&'static str> {
        let name = file.name.get_ref();
        let mut seen_as = match sensing.spacing {
            1 => name.clone(),
            spacing => format!("{name}/{spacing}"),
        };
        for other in others {
            seen_as = seen_as + "+" + other;
        }
        match seen_as.len() <= LONGEST_NAME {
            true => Ok(leaked(&seen_as)),
            false => {
                let what = format!(
                    "policies for this are called '{seen_as}', which is longer than {LONGEST_NAME} letters; take a shorter name"
                );
                Err(self.wrong(file.name.span(), what))
            }
        }
    }

    /// What agents read so many fields with.
    fn sensors(&self, said: &file::Sensors, fields: usize) -> Checked<Vec<Sensor>> {
        let mut sensors = vec![Sensor::PLAIN; fields];
        self.each(&said.range, &mut sensors, |sensor, &[low, high]| {
            sensor.range = [low, high];
            let holds = low < high && [low, high].iter().all(|end| (*end as f32).is_finite());
            (!holds).then(|| format!("a sensor's range is [least, most], not [{low}, {high}]"))
        })?;
        self.each(&said.noise, &mut sensors, |sensor, &noise| {
            sensor.noise = noise;
            let holds = noise >= 0.0 && noise.is_finite();
            (!holds).then(|| format!("sensors.noise must be zero or positive, not {noise}"))
        })?;
        self.each(&said.quantisation, &mut sensors, |sensor, &step| {
            sensor.quantisation = step;
            let holds = step > 0.0 && step.is_finite();
            (!holds).then(|| format!("sensors.quantisation must be positive, not {step}"))
        })?;
        Ok(sensors)
    }

    /// Tells every sensor what was said of it, or of all; `tell` says what is wrong with that.
    fn each<T>(
        &self,
        said: &Option<Said<OneOrEach<T>>>,
        sensors: &mut [Sensor],
        tell: impl Fn(&mut Sensor, &T) -> Option<String>,
    ) -> Checked<()> {
        let Some(said) = said else { return Ok(()) };
        let all = said.get_ref().all();
        let one = matches!(said.get_ref(), OneOrEach::One(_));
        if !one && all.len() != sensors.len() {
            let what = format!(
                "agents see {} {}, and this is about {}; write it once, or once for each",
                sensors.len(),
                if sensors.len() == 1 {
                    "field"
                } else {
                    "fields"
                },
                all.len()
            );
            return Err(self.wrong(said.span(), what));
        }
        for (sensor, value) in sensors.iter_mut().zip(all.iter().cycle()) {
            if let Some(what) = tell(sensor, value) {
                return Err(self.wrong(said.span(), what));
            }
        }
        Ok(())
    }

    fn feedback(&self, file: &File) -> Checked<Option<Proportional>> {
        let Some(law) = &file.feedback else {
            return Ok(None);
        };
        Ok(Some(Proportional {
            gain: self.positive(&law.gain, "feedback.gain")?,
            sensing: match law.averaged {
                true => ErrorSensing::Kernel,
                false => ErrorSensing::Point,
            },
        }))
    }

    /// What a training has beyond the usual, if it can be trained so.
    fn training(&self, file: &File) -> Checked<file::Training> {
        let Some(said) = &file.training else {
            return Ok(file::Training::default());
        };
        let training = said.get_ref();
        let positive = |value: f64| value > 0.0 && value.is_finite();
        let not_negative = |value: f64| value >= 0.0 && value.is_finite();
        let steps = training.steps.map(|steps| steps as usize);
        for (name, value, limit) in [
            ("steps", steps, TRAINING_STEPS),
            ("batch", training.batch, BATCH),
            ("horizon", training.horizon, STEPS),
        ] {
            if let Some(value) = value.filter(|value| !(1..=limit.most).contains(value)) {
                let what = format!("a training needs {name} = 1 to {}, not {value}", limit.most);
                return Err(self.wrong(said.span(), what));
            }
        }
        for (what, holds) in [
            (
                "memory = 0 to 16",
                training.memory.is_none_or(|m| m <= MOST_MEMORY),
            ),
            ("a positive rate", training.rate.is_none_or(positive)),
            (
                "losses = [share of episodes, share of agents], each from 0 to 1",
                (training.losses.iter().flatten()).all(|share| (0.0..=1.0).contains(share)),
            ),
            (
                "a last of zero or more",
                training.last.is_none_or(not_negative),
            ),
            (
                "an effort of zero or more",
                training.effort.is_none_or(not_negative),
            ),
        ] {
            if !holds {
                return Err(self.wrong(said.span(), format!("a training needs {what}")));
            }
        }
        Ok(training.clone())
    }

    /// That agents which are trained to see by themselves can.
    fn check_standing(
        &self,
        file: &File,
        training: &file::Training,
        grid: &Grid,
        fields: usize,
        moves: bool,
    ) -> Checked<()> {
        let is_share = |share: &f64| (0.0..=1.0).contains(share);
        let spans = [
            (training.neighbours.as_ref()).map(|said| ("neighbours", said.span())),
            (training.missing.as_ref()).map(|said| ("missing", said.span())),
        ];
        let goals = file.fields.values().any(|field| !field.goal.0.is_empty());
        for (name, at) in spans.into_iter().flatten() {
            let refuse = |what: String| Err(self.wrong(at.clone(), what));
            match name {
                "neighbours" if !is_share(&training.neighbours()) => {
                    let share = training.neighbours();
                    return refuse(format!(
                        "neighbours is a share of the episodes, from 0 to 1, not {share}"
                    ));
                }
                "missing" if !training.missing().iter().all(is_share) => {
                    return refuse(
                        "missing = [share of episodes, share of sensors], each from 0 to 1"
                            .to_owned(),
                    );
                }
                "neighbours" if grid.axes == 1 => {
                    return refuse(
                        "nodes on a line have sensors of their own; leave neighbours out, and say with missing how many of those fail".to_owned(),
                    );
                }
                "missing" if grid.axes == 2 && training.neighbours() == 0.0 => {
                    return refuse(
                        "nodes in the plane have one sensor each, and see with it and by what neighbours say; give neighbours too".to_owned(),
                    );
                }
                "missing" if grid.axes == 1 && training.slopes != Some(false) => {
                    return refuse(
                        "what is made up for has no slopes of its own; give slopes = false too"
                            .to_owned(),
                    );
                }
                _ => {}
            }
            let lacks = [
                (moves, "agents that stay where they are; leave speed out"),
                (goals, "a target that stays; leave goals out"),
                (fields > 1, "agents that see one field"),
                (
                    grid.edges.contains(&grid::Edge::Periodic),
                    "a domain with ends: nobody is heard across a seam",
                ),
            ];
            if let Some((_, what)) = lacks.into_iter().find(|(lacks, _)| *lacks) {
                return refuse(format!("{name} needs {what}"));
            }
        }
        Ok(())
    }

    /// Targets of several fields change together, and one change is over before the next begins: there is
    /// one course for all.
    fn check_goals(&self, file: &File) -> Checked<()> {
        let mut first: Option<Vec<[Option<[f64; 2]>; 3]>> = None;
        for goals in file.fields.values().map(|field| &field.goal.0) {
            let Some(last) = goals.last() else { continue };
            if goals.len() > MOST_GOALS {
                let what = format!(
                    "an episode has at most {MOST_GOALS} goals, not {}; leave some out",
                    goals.len()
                );
                return Err(self.wrong(last.at.span(), what));
            }
            let courses = goals.iter().map(|goal| {
                let said = [Some(&goal.at), goal.over.as_ref(), goal.lasts.as_ref()];
                said.map(|said| said.map(|said| said.get_ref().ends()))
            });
            let courses: Vec<_> = courses.collect();
            let first = first.get_or_insert_with(|| courses.clone());
            if *first != courses {
                let differs = first.iter().zip(&courses).position(|(a, b)| a != b);
                let at = differs.map_or(last, |k| &goals[k]).at.span();
                let what = "goals of several fields come together; give all as many, with the same at, over and lasts";
                return Err(self.wrong(at, what));
            }
            self.check_order(goals, *file.time.interval.get_ref())?;
        }
        Ok(())
    }

    /// That every goal begins when the one before it is over, whatever times are drawn; to half an action,
    /// which is as exact as times are.
    fn check_order(&self, goals: &[file::Goal], interval: f64) -> Checked<()> {
        let longest =
            |said: &Option<Said<Drawn>>| said.as_ref().map_or(0.0, |said| said.get_ref().ends()[1]);
        for (k, pair) in goals.windows(2).enumerate() {
            let [at, next] = [0, 1].map(|which| pair[which].at.get_ref().ends());
            let (next, ramp) = (next[0], longest(&pair[0].over));
            let (over, is) = match &pair[0].lasts {
                None => (at[1] + ramp, "reached"),
                Some(_) => (at[1] + 2.0 * ramp + longest(&pair[0].lasts), "gone again"),
            };
            let what = if next < at[0] {
                format!(
                    "goal {} begins at {next}, before goal {} at {}; give goals in the order of their times",
                    k + 2,
                    k + 1,
                    at[0]
                )
            } else if next < over - 0.5 * interval {
                format!(
                    "goal {} may begin at {next}, but goal {} may not be {is} before {over}; let it begin later, or the other be quicker",
                    k + 2,
                    k + 1
                )
            } else {
                continue;
            };
            return Err(self.wrong(pair[1].at.span(), what));
        }
        Ok(())
    }

    /// Policies carry the name, in at most so many bytes.
    fn check_name(&self, file: &File) -> Checked<()> {
        let name = file.name.get_ref();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        match !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(plain) {
            true => Ok(()),
            false => Err(self.wrong(
                file.name.span(),
                format!(
                    "'{name}' is no name for a problem; take at most {LONGEST_NAME} letters, digits and dashes"
                ),
            )),
        }
    }

    /// The fields in order: as said, or by name.
    fn field_names(&mut self, file: &File) -> Checked<Vec<String>> {
        let all: Vec<&Said<String>> = file.fields.keys().collect();
        if all.is_empty() || all.len() > MOST_FIELDS {
            let what = format!(
                "there are {} fields; describe 1 to {MOST_FIELDS}",
                all.len()
            );
            return Err(self.wrong(0..0, what));
        }
        let mut names: Vec<String> = Vec::new();
        for said in &file.order {
            let name = said.get_ref();
            if !all.iter().any(|known| known.get_ref() == name) || names.contains(name) {
                let what = format!("order names '{name}', which is no field or is named twice");
                return Err(self.wrong(said.span(), what));
            }
            names.push(name.clone());
        }
        for said in all {
            if !names.contains(said.get_ref()) {
                names.push(said.get_ref().clone());
            }
            self.identifier(said)?;
        }
        Ok(names)
    }

    /// That a name can stand in an expression.
    fn identifier(&self, said: &Said<String>) -> Checked<()> {
        let name = said.get_ref();
        let mut chars = name.chars();
        let first = chars.next().is_some_and(|c| c.is_ascii_alphabetic());
        let rest = chars.all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !first || !rest || ["x", "y", "t"].contains(&name.as_str()) {
            let what = format!(
                "'{name}' is no name for expressions; take letters, digits and _, not x, y or t"
            );
            return Err(self.wrong(said.span(), what));
        }
        // What expressions call otherwise, they say themselves.
        let reserved = Expression::parse("0", &[name]).map(|_| ());
        reserved.map_err(|e| self.wrong(said.span(), e.to_string()))
    }

    fn grid(&self, file: &File) -> Checked<Grid> {
        let (size, points) = (file.domain.size.get_ref(), file.domain.grid.get_ref());
        let axes = size.len();
        let [least, most] = LENGTHS;
        if !(1..=2).contains(&axes) || size.iter().any(|s| !(least..=most).contains(s)) {
            let what = format!(
                "domain.size is one length on a line and two on a plane, each from {least:e} to {most:e}"
            );
            return Err(self.wrong(file.domain.size.span(), what));
        }
        let nodes = points.iter().try_fold(1usize, |n, p| n.checked_mul(*p));
        if points.len() != axes || points.iter().any(|p| *p < 4) {
            let what = format!("domain.grid needs {axes} numbers of points, at least 4 each");
            return Err(self.wrong(file.domain.grid.span(), what));
        }
        if nodes.is_none_or(|nodes| nodes > POINTS.most) {
            let what = format!(
                "a grid of more than {} points does not fit in memory with all that a run needs; take fewer",
                POINTS.most
            );
            return Err(self.wrong(file.domain.grid.span(), what));
        }
        let edges = self.ends(file, axes)?;
        let walls = match axes {
            1 => Grid::line(points[0], size[0], grid::Edge::Wall),
            _ => Grid::plane([points[0], points[1]], [size[0], size[1]], grid::Edge::Wall),
        };
        Ok(Grid { edges, ..walls })
    }

    /// Which axes close to rings: both sides, for all fields that say anything about them. A line has the
    /// same at the axis that is not there.
    fn ends(&self, file: &File, axes: usize) -> Checked<[grid::Edge; 2]> {
        let is_periodic = |edge: &Said<file::Edge>| {
            matches!(edge.get_ref(), file::Edge::Word(file::Word::Periodic))
        };
        let sides = &SIDES[..2 * axes];
        let all = file.fields.values().flat_map(|field| &field.edges);
        for (name, edge) in all {
            let side = name.get_ref().as_str();
            if is_periodic(edge) && side != "all" && !sides.contains(&side) {
                let what = format!("only the box can be periodic, not '{side}'");
                return Err(self.wrong(name.span(), what));
            }
        }
        let mut edges = [grid::Edge::Wall; 2];
        for (axis, ends) in sides.chunks_exact(2).enumerate() {
            let (mut periodic, mut others) = (None, false);
            for field in file.fields.values() {
                let said = |side: &str| {
                    let found = (field.edges.iter()).find(|(name, _)| name.get_ref() == side);
                    found.map(|(name, edge)| (name, is_periodic(edge)))
                };
                let both = [0, 1].map(|end| said(ends[end]).or_else(|| said("all")));
                let closed = both.iter().flatten().filter(|(_, is)| *is);
                periodic = periodic.or(closed.clone().map(|(name, _)| *name).next());
                others |= both.iter().flatten().any(|(_, is)| !is) || closed.count() == 1;
            }
            edges[axis] = match periodic {
                None => grid::Edge::Wall,
                Some(_) if !others => grid::Edge::Periodic,
                Some(name) => {
                    let what = format!(
                        "{0} and {1} are periodic together and for all fields, or not at all; write {0} = \"periodic\", {1} = \"periodic\" for each",
                        ends[0], ends[1]
                    );
                    return Err(self.wrong(name.span(), what));
                }
            };
        }
        if axes == 1 {
            edges[1] = edges[0];
        }
        Ok(edges)
    }

    fn coefficients(
        &mut self,
        file: &File,
        fields: &[String],
    ) -> Checked<(Vec<Coefficient>, Vec<Constant>)> {
        let (mut changeable, mut constants) = (Vec::new(), Vec::new());
        self.variables = fields.to_vec();
        for (said, coefficient) in &file.coefficients {
            self.identifier(said)?;
            let name = said.get_ref();
            if fields.contains(name) {
                let what = format!("'{name}' is a field already; call the coefficient otherwise");
                return Err(self.wrong(said.span(), what));
            }
            let value = *coefficient.value.get_ref();
            if !(value as f32).is_finite() {
                let what = format!("{name} needs a finite value, not {value:?}");
                return Err(self.wrong(coefficient.value.span(), what));
            }
            self.variables.push(name.clone());
            let Some(range) = &coefficient.range else {
                constants.push(Constant::Fixed(value));
                continue;
            };
            let [low, high] = *range.get_ref();
            if !(low <= high && [low, high].iter().all(|end| (*end as f32).is_finite())) {
                let what = format!("the range of {name} is [least, most], not [{low}, {high}]");
                return Err(self.wrong(range.span(), what));
            }
            if !(low..=high).contains(&value) {
                let what = format!("the range of {name} does not hold its value {value}");
                return Err(self.wrong(range.span(), what));
            }
            if changeable.len() == MAX_COEFFICIENTS {
                let what = format!(
                    "at most {MAX_COEFFICIENTS} coefficients can have a range; give {name} a value alone"
                );
                return Err(self.wrong(range.span(), what));
            }
            constants.push(Constant::Changeable(changeable.len()));
            changeable.push(Coefficient {
                name: leaked(name),
                meaning: leaked(coefficient.meaning.as_deref().unwrap_or("a coefficient")),
                published: value,
                range: [low, high],
                adapt: NOTHING_ELSE,
            });
        }
        self.variables.extend(["x", "y", "t"].map(str::to_owned));
        Ok((changeable, constants))
    }

    /// Where every variable of an expression can be.
    fn ranges(
        &self,
        file: &File,
        names: &[String],
        grid: &Grid,
        length: f64,
    ) -> Checked<Vec<[f64; 2]>> {
        let mut fields = Vec::new();
        for name in names {
            let range = &field_of(file, name).range;
            let [low, high] = *range.get_ref();
            if !(low < high && [low, high].iter().all(|end| (*end as f32).is_finite())) {
                let what = format!("a range is [least, most], not [{low}, {high}]");
                return Err(self.wrong(range.span(), what));
            }
            fields.push([low, high]);
        }
        let coefficients = file.coefficients.values().map(|coefficient| {
            let value = *coefficient.value.get_ref();
            coefficient
                .range
                .as_ref()
                .map_or([value; 2], |range| *range.get_ref())
        });
        let places = [0, 1].map(|axis| [grid.low[axis], grid.high[axis]]);
        Ok((fields.into_iter())
            .chain(coefficients)
            .chain(places)
            .chain([[0.0, length]])
            .collect())
    }

    fn cuts(&self, file: &File, axes: usize) -> Checked<Vec<(String, Shape)>> {
        let named = file.domain.cuts.iter().enumerate().map(|(k, cut)| {
            let name = cut.get_ref().name.clone();
            let taken = |name: &&String| {
                name == &"all" || name == &"mask" || SIDES.contains(&name.as_str())
            };
            if let Some(name) = name.as_ref().filter(taken) {
                let what =
                    format!("edges mean something else by '{name}'; call the cut-out otherwise");
                return Err(self.wrong(cut.span(), what));
            }
            if axes == 1 {
                let what = "on a line there is nothing to cut; leave cuts out";
                return Err(self.wrong(cut.span(), what));
            }
            let shape = self.shape(cut, axes)?;
            Ok((name.unwrap_or_else(|| format!("cut {}", k + 1)), shape))
        });
        named.collect()
    }

    fn shape(&self, cut: &Said<Cut>, axes: usize) -> Checked<Shape> {
        let Cut {
            disc,
            rectangle,
            polygon,
            interval,
            ..
        } = cut.get_ref();
        let shape = match (disc, rectangle, polygon, interval) {
            (Some(disc), None, None, None) if disc.radius > 0.0 => Shape::Disc {
                centre: disc.centre,
                radius: disc.radius,
            },
            (None, Some([a, b]), None, None) => Shape::Rectangle {
                low: [a[0].min(b[0]), a[1].min(b[1])],
                high: [a[0].max(b[0]), a[1].max(b[1])],
            },
            (None, None, None, Some(ends)) if axes == 1 => Shape::Rectangle {
                low: [ends[0].min(ends[1]), -1.0],
                high: [ends[0].max(ends[1]), 1.0],
            },
            (None, None, Some(corners), None) if corners.len() >= 3 => {
                Shape::Polygon(corners.clone())
            }
            _ => {
                let what = "a shape is one of disc = { centre = [x, y], radius = r }, rectangle = [[x, y], [x, y]] and polygon = [[x, y], …] with three corners or more, on a line interval = [low, high]";
                return Err(self.wrong(cut.span(), what));
            }
        };
        if shape.bounds().iter().flatten().any(|x| !x.is_finite()) {
            return Err(self.wrong(cut.span(), "a shape's numbers must be finite"));
        }
        match axes == 2 || interval.is_some() {
            true => Ok(shape),
            false => Err(self.wrong(
                cut.span(),
                "this shape is for planes; on a line, say interval = [low, high]",
            )),
        }
    }

    fn mask(&self, file: &File, grid: &Grid) -> Checked<Option<Mask>> {
        let Some(said) = &file.domain.mask else {
            return Ok(None);
        };
        let bytes = self.bytes(said)?;
        let wrong = |what: String| {
            self.wrong(
                said.span(),
                format!("the mask {} cannot be used: {what}", said.get_ref()),
            )
        };
        if grid.axes != 2 {
            return Err(wrong("a line has none".to_owned()));
        }
        let is_array = said.get_ref().ends_with(".npy");
        let (points, inside) = match is_array {
            true => {
                let array = npy::parse(&bytes).map_err(|e| wrong(e.to_string()))?;
                let [rows, columns] = array.shape[..] else {
                    return Err(wrong(format!(
                        "its shape is {:?}; it needs two axes, [x, y]",
                        array.shape
                    )));
                };
                (
                    [rows, columns],
                    array.values.iter().map(|v| *v > 0.5).collect(),
                )
            }
            false => picture(&bytes).map_err(wrong)?,
        };
        if points.contains(&0) {
            return Err(wrong("it is empty".to_owned()));
        }
        Ok(Some(Mask { points, inside }))
    }

    /// The bytes of a file beside the description.
    fn bytes(&self, said: &Said<String>) -> Checked<Vec<u8>> {
        let path = self
            .path
            .parent()
            .unwrap_or(Path::new(""))
            .join(said.get_ref());
        let read = input::read(&path, input::MAP);
        read.map_err(|e| self.wrong(said.span(), format!("cannot read {}: {e}", path.display())))
    }

    /// An array of a file beside the description, on a grid of its own: `lead` axes and then the box's.
    fn array(&self, said: &Said<String>, grid: &Grid, lead: &[usize]) -> Checked<npy::Array> {
        let bytes = self.bytes(said)?;
        let array = npy::parse(&bytes);
        let array =
            array.map_err(|e| self.wrong(said.span(), format!("{}: {e}", said.get_ref())))?;
        let fits = array.shape.len() == lead.len() + grid.axes
            && lead
                .iter()
                .zip(&array.shape)
                .all(|(want, has)| *want == 0 || want == has)
            && array.shape.iter().all(|n| *n > 0)
            && array.shape[lead.len()..].iter().all(|n| *n >= 4);
        match fits {
            true => Ok(array),
            false => {
                let lead: Vec<String> = lead
                    .iter()
                    .map(|n| match n {
                        0 => "samples, ".to_owned(),
                        n => format!("{n}, "),
                    })
                    .collect();
                let axes = ["x", "y"][..grid.axes].join(", ");
                let what = format!(
                    "{} has the shape {:?}; it needs [{}{axes}], at least 4 points along each axis of the box",
                    said.get_ref(),
                    array.shape,
                    lead.concat()
                );
                Err(self.wrong(said.span(), what))
            }
        }
    }

    fn check_parts(&self, file: &File, domain: &Domain) -> Checked<()> {
        let (found, allowed) = (domain.parts().len(), file.domain.parts);
        let at = match (file.domain.cuts.last(), &file.domain.mask) {
            (_, Some(mask)) => mask.span(),
            (Some(cut), None) => cut.span(),
            (None, None) => file.domain.size.span(),
        };
        if found == 0 {
            return Err(self.wrong(
                at,
                "nothing is left of the domain; cut out less, or refine the grid",
            ));
        }
        if found != allowed {
            let grid = domain.grid();
            let seats: Vec<String> = domain
                .parts()
                .iter()
                .take(4)
                .map(|&node| {
                    let [x, y] = grid.place(node);
                    format!("({x:.3}, {y:.3})")
                })
                .collect();
            let what = format!(
                "the domain falls into {found} parts, around {}; mend that, or say parts = {found} under [domain]",
                seats.join(", ")
            );
            return Err(self.wrong(at, what));
        }
        Ok(())
    }

    /// An expression that uses only what `may` allows, finite wherever its variables can be.
    fn expression(
        &self,
        number: &Number,
        at: Range<usize>,
        ranges: &[[f64; 2]],
        may: Uses,
    ) -> Checked<Expression> {
        let text = match number {
            Number::Value(value) if (*value as f32).is_finite() => {
                return Ok(Expression::constant(*value));
            }
            Number::Value(value) => {
                let what = format!("{value:?} is no finite number in single precision");
                return Err(self.wrong(at, what));
            }
            Number::Text(text) => text,
        };
        let variables: Vec<&str> = self.variables.iter().map(String::as_str).collect();
        let expression = Expression::parse(text, &variables)
            .map_err(|e| self.wrong(at.clone(), e.to_string()))?;
        let (fields, time) = (may.fields, self.variables.len() - 1);
        for (k, variable) in variables.iter().enumerate() {
            let allowed = match k {
                k if k < fields => may.state,
                k if k == time => may.time,
                _ => true,
            };
            if expression.uses(k) && !allowed {
                return Err(self.wrong(at, format!("'{text}' must not depend on {variable} here")));
            }
        }
        if let Some(point) = expression.not_finite(ranges) {
            let seat: Vec<String> = variables
                .iter()
                .zip(&point)
                .enumerate()
                .filter(|(k, _)| expression.uses(*k))
                .map(|(_, (name, value))| format!("{name} = {value}"))
                .collect();
            let seat = match seat.is_empty() {
                true => "everywhere".to_owned(),
                false => format!("at {}", seat.join(", ")),
            };
            return Err(self.wrong(
                at,
                format!("'{text}' is not finite {seat}, which lies within the ranges of this file"),
            ));
        }
        Ok(expression)
    }

    fn field(&self, field: &file::Field, c: FieldContext) -> Checked<Described> {
        let still = Uses {
            fields: c.fields,
            state: false,
            time: false,
        };
        let moving = Uses {
            time: true,
            ..still
        };
        let diffusion = match &field.diffusion {
            None => Map::Expression(Expression::constant(0.0)),
            Some(said) => {
                let map = self.map(said.get_ref(), said.span(), &c, still)?;
                self.check_diffusion(&map, said.span(), field, &c)?;
                map
            }
        };
        let hyperdiffusion = (field.hyperdiffusion.as_ref())
            .map(|said| self.hyperdiffusion(said, &c, still))
            .transpose()?;
        let velocity = field
            .velocity
            .as_ref()
            .map(|said| {
                let maps = self.velocity(said, &c, still)?;
                for (axis, map) in maps.iter().enumerate().take(c.grid.axes) {
                    self.check_values(map, said.span(), &c)?;
                    let most = self.extremes(map, &c).map(f64::abs);
                    let rate = 4.0 * most[0].max(most[1]) / c.grid.spacing(axis);
                    self.check_mixing(rate, said.span(), &c)?;
                }
                Ok(maps)
            })
            .transpose()?;
        let reaction = match &field.reaction {
            None => None,
            Some(said) => {
                let any = Uses {
                    state: true,
                    time: true,
                    ..still
                };
                let rate = self.expression(said.get_ref(), said.span(), c.ranges, any)?;
                let derivatives = (0..c.fields).filter(|&k| rate.uses(k)).map(|k| {
                    let by = rate
                        .derivative(k)
                        .map_err(|e| self.wrong(said.span(), e.to_string()))?;
                    Ok((k, by))
                });
                let derivatives = derivatives.collect::<Checked<Vec<_>>>()?;
                Some(Reaction { rate, derivatives })
            }
        };
        let edges = self.edges(field, &c, moving)?;
        if let Some(kappa) = &hyperdiffusion {
            self.check_exchange(field, &edges, (&diffusion, kappa), &c)?;
        }
        let fixed = |side: usize| matches!(edges[side].kind, operator::Edge::Fixed);
        let pinned = [0, 1].map(|axis| {
            [0, 1].map(|end| {
                c.grid.edges[axis] == grid::Edge::Wall
                    && axis < c.grid.axes
                    && fixed(2 * axis + end)
            })
        });
        let generator = |said: &Option<Said<file::Shape>>| match said {
            None => Ok(Generator::Expression(Expression::constant(0.0))),
            Some(said) => self.generator(said, &c, still, pinned),
        };
        let goals = field.goal.0.iter().map(|goal| {
            let within = |said| {
                let limits = [0.0, c.length];
                self.drawn(said, [0.0; 2], limits, "a time within the episode")
            };
            Ok(Wander {
                to: self.generator(&goal.field, &c, still, pinned)?,
                at: within(Some(&goal.at))?,
                over: within(goal.over.as_ref())?,
                lasts: (goal.lasts.as_ref())
                    .map(|said| self.drawn(Some(said), [0.0; 2], [0.0, f64::MAX], "a time"))
                    .transpose()?,
            })
        });
        let goals = goals.collect::<Checked<Vec<_>>>()?;
        let weight = match &field.weight {
            None => c.usual_weight,
            Some(said) if *said.get_ref() >= 0.0 && said.get_ref().is_finite() => *said.get_ref(),
            Some(said) => return Err(self.wrong(said.span(), "a weight is zero or positive")),
        };
        Ok(Described {
            name: c.name.to_owned(),
            quantity: field.quantity.clone().unwrap_or_else(|| c.name.to_owned()),
            unit: self.unit(&field.unit)?,
            range: *field.range.get_ref(),
            clipped: field.clipped,
            reaction,
            diffusion,
            hyperdiffusion,
            velocity,
            edges,
            weight,
            initial: generator(&field.initial)?,
            target: generator(&field.target)?,
            goals,
        })
    }

    fn map(
        &self,
        number: &Number,
        at: Range<usize>,
        c: &FieldContext,
        still: Uses,
    ) -> Checked<Map> {
        match number {
            Number::Text(name) if name.ends_with(".npy") => {
                let array = self.array(&Said::new(at, name.clone()), c.grid, &[])?;
                let mut points = [1, 1];
                points[..c.grid.axes].copy_from_slice(&array.shape);
                Ok(Map::Values {
                    points,
                    values: array.values,
                })
            }
            number => Ok(Map::Expression(
                self.expression(number, at, c.ranges, still)?,
            )),
        }
    }

    /// The least and the largest value of a map within the domain, coefficients being at the ends of their
    /// ranges and half-way; infinite where it is no number.
    fn extremes(&self, map: &Map, c: &FieldContext) -> [f64; 2] {
        self.extremes_where(map, c, |node| c.domain.wet(node))
    }

    /// The same at some of the grid's nodes; of numbers in a file all count.
    fn extremes_where(
        &self,
        map: &Map,
        c: &FieldContext,
        counts: impl Fn(usize) -> bool,
    ) -> [f64; 2] {
        let wider = |[low, high]: [f64; 2], value: f64| match value.is_nan() {
            true => [f64::NEG_INFINITY, f64::INFINITY],
            false => [low.min(value), high.max(value)],
        };
        let nothing = [f64::INFINITY, f64::NEG_INFINITY];
        let expression = match map {
            Map::Values { values, .. } => {
                return values.iter().map(|v| f64::from(*v)).fold(nothing, wider);
            }
            Map::Expression(expression) => expression,
        };
        let first = c.ranges.len() - 3;
        let coordinates = [0, 1].map(|axis| -> Vec<f64> {
            let nodes = 0..c.grid.len();
            nodes.map(|node| c.grid.place(node)[axis]).collect()
        });
        let changing: Vec<usize> = (0..first)
            .filter(|&k| expression.uses(k) && c.ranges[k][0] < c.ranges[k][1])
            .collect();
        let mut values: Vec<f64> = c.ranges.iter().map(|range| range[0]).collect();
        let (mut out, mut scratch) = (vec![0.0; c.grid.len()], Scratch::default());
        let mut found = nothing;
        for corner in 0..3usize.pow(changing.len() as u32) {
            for (place, &k) in changing.iter().enumerate() {
                let share = (corner / 3usize.pow(place as u32) % 3) as f64 / 2.0;
                let [low, high] = c.ranges[k];
                values[k] = (1.0 - share) * low + share * high;
            }
            let mut inputs: Vec<&[f64]> = values.chunks(1).collect();
            inputs[first] = &coordinates[0];
            inputs[first + 1] = &coordinates[1];
            expression.evaluate(&inputs, &mut out, &mut scratch);
            let wet = out.iter().enumerate().filter(|(k, _)| counts(*k));
            found = wet.map(|(_, value)| *value).fold(found, wider);
        }
        found
    }

    /// That what an expression gives at the grid's points are numbers.
    fn check_values(&self, map: &Map, at: Range<usize>, c: &FieldContext) -> Checked<()> {
        match self
            .extremes(map, c)
            .iter()
            .all(|v| (*v as f32).is_finite())
        {
            true => Ok(()),
            false => Err(self.wrong(at, "this is not finite at some point of the grid")),
        }
    }

    /// That nothing is un-mixed unless hyperdiffusion holds it, nor so fast that rounding hides all else.
    fn check_diffusion(
        &self,
        map: &Map,
        at: Range<usize>,
        field: &file::Field,
        c: &FieldContext,
    ) -> Checked<()> {
        let [least, most] = self.extremes(map, c);
        if !(least.is_finite() && most.is_finite()) || least < 0.0 && field.hyperdiffusion.is_none()
        {
            let what = format!(
                "a diffusivity is nowhere negative without hyperdiffusion; here it goes from {least} to {most}"
            );
            return Err(self.wrong(at, what));
        }
        let most = most.max(-least);
        self.check_mixing(most * sharpest(c.grid), at, c)
    }

    /// κ, which is the same everywhere and positive: what relies on it must not lose it.
    fn hyperdiffusion(
        &self,
        said: &Said<Number>,
        c: &FieldContext,
        still: Uses,
    ) -> Checked<Expression> {
        let kappa = self.expression(said.get_ref(), said.span(), c.ranges, still)?;
        let place = self.variables.len() - 3;
        if (place..place + 2).any(|k| kappa.uses(k)) {
            let what = format!("'{}' must not depend on x or y here", kappa.text());
            return Err(self.wrong(said.span(), what));
        }
        let [least, most] = self.extremes(&Map::Expression(kappa.clone()), c);
        if !(least > 0.0 && most.is_finite()) {
            let what = format!("hyperdiffusion is positive; here it goes from {least} to {most}");
            return Err(self.wrong(said.span(), what));
        }
        self.check_mixing(most * sharpest(c.grid).powi(2), said.span(), c)?;
        Ok(kappa)
    }

    /// That a rate is one that the solver's steps can bear.
    fn check_mixing(&self, rate: f64, at: Range<usize>, c: &FieldContext) -> Checked<()> {
        let times = rate * c.interval;
        match times <= MOST_MIXING {
            true => Ok(()),
            false => {
                let what = format!(
                    "this mixes neighbouring points {times:.0e} times in an interval, which is beyond rounding; check its unit"
                );
                Err(self.wrong(at, what))
            }
        }
    }

    fn velocity(
        &self,
        said: &Said<file::Flow>,
        c: &FieldContext,
        still: Uses,
    ) -> Checked<[Map; 2]> {
        let none = Map::Expression(Expression::constant(0.0));
        let axes = c.grid.axes;
        match said.get_ref() {
            file::Flow::Each(each) if each.len() == axes => {
                let mut maps = [none.clone(), none];
                for (map, number) in maps.iter_mut().zip(each) {
                    *map = self.map(number, said.span(), c, still)?;
                }
                Ok(maps)
            }
            file::Flow::Each(each) => {
                let what = format!(
                    "velocity has {} components; on this domain it has {axes}",
                    each.len()
                );
                Err(self.wrong(said.span(), what))
            }
            file::Flow::Map(name) => {
                let array = self.array(&Said::new(said.span(), name.clone()), c.grid, &[axes])?;
                let mut points = [1, 1];
                points[..axes].copy_from_slice(&array.shape[1..]);
                let mut maps = [none.clone(), none];
                for (map, values) in maps
                    .iter_mut()
                    .zip(array.values.chunks_exact(points[0] * points[1]))
                {
                    *map = Map::Values {
                        points,
                        values: values.to_vec(),
                    };
                }
                Ok(maps)
            }
        }
    }

    /// What happens at every side, by id.
    fn edges(&self, field: &file::Field, c: &FieldContext, moving: Uses) -> Checked<Vec<Edge>> {
        let sides = BOX_SIDES + c.cuts.len() + usize::from(c.masked);
        let name = |side: usize| match side.checked_sub(BOX_SIDES) {
            None => SIDES[side],
            Some(cut) => c.cuts.get(cut).map_or("mask", |(name, _)| name.as_str()),
        };
        let known: Vec<&str> = (0..sides)
            .filter(|side| *side >= BOX_SIDES || *side < 2 * c.grid.axes)
            .map(name)
            .collect();
        let mut by_name: BTreeMap<&str, &Said<file::Edge>> = BTreeMap::new();
        for (said, edge) in &field.edges {
            let side = said.get_ref().as_str();
            if side != "all" && !known.contains(&side) {
                let what = format!(
                    "there is no side '{side}'; there is: all, {}",
                    known.join(", ")
                );
                return Err(self.wrong(said.span(), what));
            }
            by_name.insert(side, edge);
        }
        let edge = |side: usize| -> Checked<Edge> {
            let usual = Edge {
                kind: operator::Edge::Insulated,
                value: Expression::constant(0.0),
            };
            let Some(said) = by_name.get(name(side)).or_else(|| by_name.get("all")) else {
                return Ok(usual);
            };
            let value = |number: &Number| self.expression(number, said.span(), c.ranges, moving);
            Ok(match said.get_ref() {
                file::Edge::Word(_) => usual,
                file::Edge::Fixed { fixed } => Edge {
                    kind: operator::Edge::Fixed,
                    value: value(fixed)?,
                },
                file::Edge::Open { inflow } => Edge {
                    kind: operator::Edge::Open,
                    value: value(inflow)?,
                },
                file::Edge::Convective {
                    convective,
                    ambient,
                } => {
                    if !(*convective >= 0.0 && convective.is_finite()) {
                        return Err(self.wrong(
                            said.span(),
                            format!("convective must be zero or positive, not {convective}"),
                        ));
                    }
                    let finest = (0..c.grid.axes).map(|axis| c.grid.spacing(axis));
                    let rate = 8.0 * convective / finest.fold(f64::INFINITY, f64::min);
                    self.check_mixing(rate, said.span(), c)?;
                    Edge {
                        kind: operator::Edge::Convective {
                            transfer: *convective,
                        },
                        value: ambient
                            .as_ref()
                            .map_or(Ok(Expression::constant(0.0)), value)?,
                    }
                }
            })
        };
        (0..sides).map(edge).collect()
    }

    /// That diffusion takes to the walls what passes there by exchange: hyperdiffusion carries none of it, and
    /// both need the slope that it makes.
    fn check_exchange(
        &self,
        field: &file::Field,
        edges: &[Edge],
        (diffusion, kappa): (&Map, &Expression),
        c: &FieldContext,
    ) -> Checked<()> {
        let mut steepest: f64 = 0.0;
        for (side, edge) in edges.iter().enumerate() {
            let operator::Edge::Convective { transfer } = edge.kind else {
                continue;
            };
            let mut along = vec![false; c.grid.len()];
            let pieces = c.domain.pieces().iter().filter(|piece| piece.side == side);
            pieces.for_each(|piece| along[piece.node] = true);
            if transfer == 0.0 || !along.contains(&true) {
                continue;
            }
            let [least, _] = self.extremes_where(diffusion, c, |node| along[node]);
            if least <= 0.0 {
                let exchanging = field.edges.values().find(|edge| {
                    matches!(edge.get_ref(), file::Edge::Convective { convective, .. } if *convective == transfer)
                });
                let at = exchanging.map_or(0..0, Said::span);
                let what = format!(
                    "diffusion takes to a convective edge what passes there, so beside hyperdiffusion it must be positive there, not {least}; give it a positive value at the edge, or write \"insulated\", {{ fixed = … }} or {{ inflow = … }}"
                );
                return Err(self.wrong(at, what));
            }
            steepest = steepest.max(transfer / least);
        }
        let finest = (0..c.grid.axes).map(|axis| c.grid.spacing(axis));
        let finest = finest.fold(f64::INFINITY, f64::min);
        let [_, most] = self.extremes(&Map::Expression(kappa.clone()), c);
        let at = field.hyperdiffusion.as_ref().map_or(0..0, Said::span);
        let sharpest = sharpest(c.grid) + 8.0 * steepest / finest;
        self.check_mixing(most * sharpest.powi(2), at, c)
    }

    fn generator(
        &self,
        said: &Said<file::Shape>,
        c: &FieldContext,
        still: Uses,
        pinned: [[bool; 2]; 2],
    ) -> Checked<Generator> {
        match said.get_ref() {
            file::Shape::Plain(number) => Ok(Generator::Expression(self.still(
                number,
                said.span(),
                c,
                still,
            )?)),
            file::Shape::Random { random } => {
                let spacing = (0..c.grid.axes)
                    .map(|a| c.grid.spacing(a))
                    .fold(0.0, f64::max);
                if !(random.length >= spacing
                    && random.length.is_finite()
                    && random.amplitude >= 0.0
                    && (random.amplitude as f32).is_finite())
                {
                    let what = format!(
                        "random fields need a length of at least the grid's spacing, {spacing:.3}, and an amplitude that is not negative"
                    );
                    return Err(self.wrong(said.span(), what));
                }
                if c.grid.points.iter().any(|points| *points > MOST_RANDOM) {
                    let what = format!(
                        "random fields are drawn on at most {MOST_RANDOM} points along an axis; take a coarser grid, or fields from a file"
                    );
                    return Err(self.wrong(said.span(), what));
                }
                let zero = Number::Value(0.0);
                Ok(Generator::Random {
                    mean: self.still(
                        random.mean.as_ref().unwrap_or(&zero),
                        said.span(),
                        c,
                        still,
                    )?,
                    amplitude: random.amplitude,
                    field: Smooth::new(c.grid, random.length, pinned),
                })
            }
            file::Shape::File { file } => {
                let array = self.array(&Said::new(said.span(), file.clone()), c.grid, &[0])?;
                let mut from = *c.grid;
                from.points[..c.grid.axes].copy_from_slice(&array.shape[1..]);
                let samples = array.values.chunks_exact(from.len());
                Ok(Generator::Samples(
                    samples
                        .map(|sample| resample(sample, &from, c.grid))
                        .collect(),
                ))
            }
        }
    }

    /// An expression in position and coefficients, finite at every point of the grid.
    fn still(
        &self,
        number: &Number,
        at: Range<usize>,
        c: &FieldContext,
        may: Uses,
    ) -> Checked<Expression> {
        let expression = self.expression(number, at.clone(), c.ranges, may)?;
        self.check_values(&Map::Expression(expression.clone()), at, c)?;
        Ok(expression)
    }

    /// A number or a range within limits.
    fn drawn(
        &self,
        said: Option<&Said<Drawn>>,
        usual: [f64; 2],
        [least, most]: [f64; 2],
        what: &str,
    ) -> Checked<[f64; 2]> {
        let Some(said) = said else { return Ok(usual) };
        let [low, high] = said.get_ref().ends();
        match least <= low && low <= high && high <= most {
            true => Ok([low, high]),
            false => Err(self.wrong(
                said.span(),
                format!("this must be {what}, from {least} to {most}, or [least, most] of such"),
            )),
        }
    }

    fn push(
        &self,
        push: &file::Disturbance,
        names: &[String],
        domain: &Domain,
        length: f64,
    ) -> Checked<Push> {
        let field = match &push.field {
            None => 0,
            Some(said) => names
                .iter()
                .position(|name| name == said.get_ref())
                .ok_or_else(|| {
                    self.wrong(
                        said.span(),
                        format!(
                            "there is no field '{}'; there is: {}",
                            said.get_ref(),
                            names.join(", ")
                        ),
                    )
                })?,
        };
        let at = push.strength.span();
        let form = match push.bell {
            Some(bell)
                if bell.width > 0.0
                    && bell.width.is_finite()
                    && bell.centre.iter().all(|x| x.is_finite()) =>
            {
                Form::Bell {
                    centre: bell.centre,
                    width: bell.width,
                }
            }
            Some(_) => return Err(self.wrong(at, "a bell needs a centre and a positive width")),
            None => {
                let cut = Cut {
                    name: None,
                    disc: push.disc,
                    rectangle: push.rectangle,
                    polygon: push.polygon.clone(),
                    interval: push.interval,
                    weight: None,
                };
                Form::Sharp(self.shape(&Said::new(at.clone(), cut), domain.grid().axes)?)
            }
        };
        let reached = form.on(domain.grid());
        if !(reached.iter().enumerate()).any(|(node, z)| *z > 0.0 && domain.wet(node)) {
            let what = "this disturbance reaches no point of the grid within the domain; move it, or make it larger";
            return Err(self.wrong(at, what));
        }
        let chance = push.chance.as_ref().map_or(1.0, |said| *said.get_ref());
        if !(0.0..=1.0).contains(&chance) {
            let at = push.chance.as_ref().map_or(at, Said::span);
            return Err(self.wrong(at, format!("a chance is from 0 to 1, not {chance}")));
        }
        let within = "a time within the episode";
        Ok(Push {
            name: push
                .name
                .clone()
                .unwrap_or_else(|| "disturbance".to_owned()),
            field,
            form,
            strength: self.drawn(
                Some(&push.strength),
                [0.0; 2],
                [f64::from(f32::MIN), f64::from(f32::MAX)],
                "a strength",
            )?,
            from: self.drawn(push.from.as_ref(), [0.0; 2], [0.0, length], within)?,
            lasts: self.drawn(push.lasts.as_ref(), [length; 2], [0.0, f64::MAX], "a time")?,
            chance,
        })
    }

    /// Where agents are, all of them within the domain, and how fast they can be.
    fn actuators(&self, file: &File, domain: &Domain) -> Checked<(Places, f64)> {
        let (said, grid) = (&file.actuators.places, domain.grid());
        let speed = file
            .actuators
            .speed
            .as_ref()
            .map_or(Ok(0.0), |speed| self.positive(speed, "actuators.speed"))?;
        let place = |of: &[f64]| -> Checked<[f64; 2]> {
            if of.len() != grid.axes {
                let what = format!(
                    "a place has {} coordinates here, not {}",
                    grid.axes,
                    of.len()
                );
                return Err(self.wrong(said.span(), what));
            }
            let mut place = [0.0; 2];
            place[..grid.axes].copy_from_slice(of);
            Ok(place)
        };
        let places = match said.get_ref() {
            file::Places::List { list } if list.is_empty() => {
                return Err(self.wrong(
                    said.span(),
                    "there is no place in the list; a swarm needs one at least",
                ));
            }
            file::Places::List { list } => {
                let all = list
                    .iter()
                    .map(|of| place(of))
                    .collect::<Checked<Vec<_>>>()?;
                if let Some(outside) = all.iter().find(|&&place| !is_inside(domain, place)) {
                    let what = format!(
                        "an actuator at {:?} is outside the domain; move it, or mend the domain",
                        &outside[..grid.axes]
                    );
                    return Err(self.wrong(said.span(), what));
                }
                Places::List(all)
            }
            file::Places::Lattice { lattice, low, high } => {
                let count = lattice.iter().try_fold(1usize, |n, k| n.checked_mul(*k));
                if lattice.len() != grid.axes
                    || !count.is_some_and(|count| (1..=AGENTS.most).contains(&count))
                {
                    let what = format!(
                        "a lattice here needs {} numbers of places, at least 1 each and at most {} in all",
                        grid.axes, AGENTS.most
                    );
                    return Err(self.wrong(said.span(), what));
                }
                let usual = |axis: usize, share: f64| grid.low[axis] + share * grid.extent(axis);
                let low = low
                    .as_deref()
                    .map_or(Ok([0, 1].map(|a| usual(a, 1.0 / 6.0))), place)?;
                let high = high
                    .as_deref()
                    .map_or(Ok([0, 1].map(|a| usual(a, 5.0 / 6.0))), place)?;
                let mut counts = [1, 1];
                counts[..grid.axes].copy_from_slice(lattice);
                for corner in [low, high] {
                    if (0..grid.axes).any(|a| !(grid.low[a]..=grid.high[a]).contains(&corner[a])) {
                        let what = format!(
                            "the lattice's corner {:?} is outside the domain",
                            &corner[..grid.axes]
                        );
                        return Err(self.wrong(said.span(), what));
                    }
                }
                let places = Places::Lattice {
                    counts,
                    ranges: [0, 1].map(|a| [low[a], high[a]]),
                };
                if !places.fit(domain) {
                    let what = "between the lattice's corners is no room for it within the domain; move them apart, or elsewhere";
                    return Err(self.wrong(said.span(), what));
                }
                places
            }
        };
        Ok((places, speed))
    }

    /// How far actuators reach, and maps of what each does where there are any.
    fn reach(&self, file: &File, grid: &Grid, places: &Places) -> Checked<(f64, Option<Vec<Map>>)> {
        let file::Actuators {
            width,
            influence,
            speed,
            places: at,
            ..
        } = &file.actuators;
        let said = match (width, influence) {
            (Some(width), None) => return Ok((self.positive(width, "actuators.width")?, None)),
            (None, Some(said)) => said,
            (Some(width), Some(_)) => {
                let what = "influence says what actuators do; leave width out";
                return Err(self.wrong(width.span(), what));
            }
            (None, None) => {
                let what =
                    "say what actuators do under [actuators]: width = …, or influence = \"….npy\"";
                return Err(self.wrong(file.actuators.force.span(), what));
            }
        };
        let Places::List(list) = places else {
            let what = "maps are of actuators one by one: with influence, write places = { list = [[x, y], …] }";
            return Err(self.wrong(at.span(), what));
        };
        if let Some(speed) = speed {
            let what = "maps are of actuators that stay where they are; leave speed out, or give a width in place of influence";
            return Err(self.wrong(speed.span(), what));
        }
        let array = self.array(said, grid, &[list.len()])?;
        let mut points = [1, 1];
        points[..grid.axes].copy_from_slice(&array.shape[1..]);
        let from = Grid { points, ..*grid };
        let (mut maps, mut widths) = (Vec::new(), 0.0);
        let each = array.values.chunks_exact(points[0] * points[1]);
        for (k, (values, place)) in each.zip(list).enumerate() {
            let sizes = values.iter().map(|v| f64::from(v.abs()));
            let spread = sizes.clone().enumerate();
            let spread: f64 = spread
                .map(|(node, size)| size * grid.distance(*place, from.place(node)).powi(2))
                .sum();
            let whole: f64 = sizes.sum();
            if !(whole > 0.0 && spread.is_finite()) {
                let what = format!(
                    "{}: map {} of {} has no effect anywhere, or one that is no number",
                    said.get_ref(),
                    k + 1,
                    list.len()
                );
                return Err(self.wrong(said.span(), what));
            }
            // As wide as a bell of that spread; no narrower than the map can tell.
            let least = 0.25 * from.spacing(0).powi(2);
            widths += (spread / whole / grid.axes as f64).max(least).sqrt();
            maps.push(Map::Values {
                points,
                values: values.to_vec(),
            });
        }
        Ok((widths / list.len() as f64, Some(maps)))
    }

    /// Finds as few steps of the solver as are stable and resolve what fields do, pushed about by agents.
    fn solver_steps(&self, file: &File, problem: &mut Problem) -> Checked<()> {
        let at = file.time.interval.span();
        let fewest = problem.fewest_substeps();
        if let Some(said) = &file.time.substeps {
            let substeps = *said.get_ref();
            if substeps < fewest || substeps > MOST_SUBSTEPS {
                let what = format!(
                    "{substeps} steps of the solver in an interval cannot be stable; give {fewest} to {MOST_SUBSTEPS}, or leave substeps out"
                );
                return Err(self.wrong(said.span(), what));
            }
            problem.substeps = substeps;
            return match tried(problem) {
                Some(_) => Ok(()),
                None => {
                    let what = format!(
                        "with {substeps} steps of the solver in an interval the fields blow up; give more, or leave substeps out"
                    );
                    Err(self.wrong(said.span(), what))
                }
            };
        }
        problem.substeps = fewest;
        while problem.substeps <= MOST_SUBSTEPS {
            let finer = Problem {
                substeps: 2 * problem.substeps,
                ..*problem
            };
            match (tried(problem), tried(&finer)) {
                (Some(coarse), Some(fine)) if coarse.apart(&fine) <= RESOLVED => return Ok(()),
                _ => problem.substeps *= 2,
            }
        }
        let what = format!(
            "with up to {MOST_SUBSTEPS} steps of the solver in an interval of {} the fields are still not resolved or blow up; shorten time.interval, or look for a reaction that grows without bound",
            problem.control_interval
        );
        Err(self.wrong(at, what))
    }
}

/// What an expression may depend on besides position and coefficients.
#[derive(Clone, Copy)]
struct Uses {
    fields: usize,
    state: bool,
    time: bool,
}

/// What is known about the field that is gone through.
struct FieldContext<'a> {
    name: &'a str,
    fields: usize,
    usual_weight: f64,
    grid: &'a Grid,
    domain: &'a Domain,
    cuts: &'a [(String, Shape)],
    masked: bool,
    ranges: &'a [[f64; 2]],
    interval: f64,
    length: f64,
}

/// −Δ of the finest wave that a grid has.
fn sharpest(grid: &Grid) -> f64 {
    let along = |axis: usize| 4.0 / grid.spacing(axis).powi(2);
    (0..grid.axes).map(along).sum()
}

/// Control intervals for which steps are compared.
const TRIED: usize = 20;

/// Where a few intervals of an episode begin and end.
struct Tried {
    start: Vec<f64>,
    end: Vec<f64>,
}

/// A few intervals of an episode, agents pushing to and fro; none if it blows up.
fn tried(problem: &Problem) -> Option<Tried> {
    let episode = (problem.draw)(problem, &mut episode_rng(0, 0));
    let mut state: Vec<f64> = episode.initial.iter().map(|z| f64::from(*z)).collect();
    let mut stepper = DescribedStepper::new(problem, 1);
    let mut kernel = crate::actuate::Kernel::new(problem);
    let mut pushes = vec![0.0; problem.components() * problem.grid.len()];
    let mut amplitudes = [0.0; MOST_FIELDS];
    for (k, place) in (problem.placement)(problem, problem.agents)
        .into_iter()
        .enumerate()
    {
        let sign = if k % 2 == 0 { 1.0 } else { -1.0 };
        amplitudes[problem.driven_field()] = 0.5 * sign * problem.actuation.force_max;
        kernel.act(&mut pushes, k, place, &amplitudes);
    }
    for push in &episode.pushes {
        let most = push
            .course
            .0
            .iter()
            .map(|(_, value)| *value)
            .fold(0.0, |most: f64, value| {
                if value.abs() > most.abs() {
                    value
                } else {
                    most
                }
            });
        for (force, field) in pushes.iter_mut().zip(&push.field) {
            *force += most * f64::from(*field);
        }
    }
    let start = state.clone();
    for _ in 0..TRIED.min(problem.horizon) {
        stepper.step(&mut state, &pushes);
        // As sensors see it.
        if state.iter().any(|z| !(*z as f32).is_finite()) {
            return None;
        }
    }
    Some(Tried { start, end: state })
}

impl Tried {
    /// How far apart two runs end, as a share of how far they went or of how large they are.
    fn apart(&self, finer: &Self) -> f64 {
        let norm =
            |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
        let gap = norm(&mut self.end.iter().zip(&finer.end).map(|(a, b)| a - b));
        let way = norm(&mut finer.end.iter().zip(&finer.start).map(|(a, b)| a - b));
        let size = norm(&mut finer.end.iter().copied());
        gap / way.max(0.1 * size).max(f64::MIN_POSITIVE)
    }
}

/// What the reader of TOML says, for a person.
fn in_a_sentence(message: &str) -> String {
    let mut text = message.split_whitespace().collect::<Vec<_>>().join(" ");
    for (theirs, ours) in [
        ("`", "'"),
        ("expected f64", "expected a number"),
        ("expected usize", "expected a whole number"),
        ("expected u64", "expected a whole number"),
    ] {
        text = text.replace(theirs, ours);
    }
    let (first, expected) = text.split_once(", expected ").unwrap_or((&text, ""));
    let told = |prefix: &str| first.strip_prefix(prefix);
    if let Some(name) = told("missing field ") {
        return format!("{name} is missing here");
    }
    if let Some(name) = told("unknown field ").or(told("unknown variant ")) {
        let known = expected.trim_start_matches("one of ");
        return format!("{name} means nothing here; there is: {known}");
    }
    match told("invalid type: ").or(told("invalid value: ")) {
        Some(found) => format!("{expected} is expected here, not {found}"),
        None => text,
    }
}

/// The field of that name.
fn field_of<'f>(file: &'f File, name: &str) -> &'f file::Field {
    let found = file.fields.iter().find(|(said, _)| said.get_ref() == name);
    found.expect("names are those of the fields").1
}

/// Problems are looked up and passed on for as long as a program runs.
fn leaked(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

/// The policy that lies beside a description, `name.policy` beside `name.toml`.
fn beside(path: &Path) -> Option<&'static [u8]> {
    let bytes = input::read(&path.with_extension("policy"), input::POLICY).ok()?;
    Some(Box::leak(bytes.into_boxed_slice()))
}

/// A picture's bright pixels are inside. Its columns go along x, its rows down along y.
fn picture(bytes: &[u8]) -> Result<([usize; 2], Vec<bool>), String> {
    let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let wrong = |e: png::DecodingError| {
        format!("it is no PNG picture that can be read ({e}); give a .png or an .npy file")
    };
    let mut reader = decoder.read_info().map_err(wrong)?;
    let size = (reader.output_buffer_size()).filter(|size| *size <= LARGEST_PICTURE);
    let size = size.ok_or_else(|| {
        format!("its picture takes more than {LARGEST_PICTURE} bytes; give a smaller one")
    })?;
    let mut pixels = vec![0; size];
    let info = reader.next_frame(&mut pixels).map_err(wrong)?;
    let samples = info.color_type.samples();
    let (width, height) = (info.width as usize, info.height as usize);
    let inside = |x: usize, y: usize| {
        let pixel = &pixels[(y * width + x) * samples..][..samples];
        let colours = &pixel[..samples.min(3)];
        let opaque = match samples {
            2 | 4 => pixel[samples - 1] > 127,
            _ => true,
        };
        let colours = if samples == 2 { &colours[..1] } else { colours };
        let bright: usize = colours.iter().map(|c| usize::from(*c)).sum();
        opaque && bright > 127 * colours.len()
    };
    let all = (0..width).flat_map(|x| (0..height).map(move |y| (x, height - 1 - y)));
    Ok(([width, height], all.map(|(x, y)| inside(x, y)).collect()))
}
