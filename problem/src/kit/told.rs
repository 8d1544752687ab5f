//! A description told back in words, and what a picture of it needs.

use super::episode::{Form, Generator};
use super::operator::Edge;
use super::{Kit, Map, Named, SIDES, Stand};
use crate::Problem;
use crate::grid;

/// A line about one part of a description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Which part.
    pub part: String,
    /// What about it.
    pub what: String,
}

/// A number as people write it.
fn short(x: f64) -> String {
    match x.abs() {
        0.0 => "0".to_owned(),
        size if (1e-3..1e5).contains(&size) => {
            let digits = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
            let text = format!("{x:.digits$}");
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                false => text,
            }
        }
        _ => format!("{x:.2e}"),
    }
}

fn span([low, high]: [f64; 2]) -> String {
    match low == high {
        true => short(low),
        false => format!("{} to {}", short(low), short(high)),
    }
}

fn extremes(values: impl IntoIterator<Item = f64>) -> [f64; 2] {
    let ends = [f64::INFINITY, f64::NEG_INFINITY];
    (values.into_iter()).fold(ends, |[low, high], x| [low.min(x), high.max(x)])
}

impl Kit {
    /// The whole description, a line a part.
    pub fn told(&self, problem: &Problem) -> Vec<Told> {
        let mut lines = Vec::new();
        let mut tell = |part: &str, what: String| {
            lines.push(Told {
                part: part.to_owned(),
                what,
            })
        };
        tell("domain", self.told_domain(problem));
        for (named, value) in self.coefficients.iter().zip(self.values(problem)) {
            tell(&format!("coefficient {}", named.name), named.told(value));
        }
        for field in 0..self.fields() {
            let name = format!("field {}", self.described[field].name);
            for what in self.told_field(problem, field) {
                tell(&name, what);
            }
        }
        tell("agents", self.told_agents(problem));
        for (name, stand) in &self.kept_out {
            tell("keep out", self.told_stand(name, stand.as_ref()));
        }
        if let Some(readings) = self.told_readings() {
            tell("sensors", readings);
        }
        for push in &self.pushes {
            tell(
                "disturbance",
                format!(
                    "{} in {} of the episodes: {} {}/{} on {}, from {} {} on, for {} {}",
                    push.name,
                    short(push.chance),
                    span(push.strength),
                    self.described[push.field].unit,
                    self.units[1],
                    self.described[push.field].name,
                    span(push.from),
                    self.units[1],
                    span(push.lasts),
                    self.units[1],
                ),
            );
        }
        if let Some(training) = self.told_standing() {
            tell("training", training);
        }
        let (time, interval) = (&self.units[1], problem.control_interval);
        tell(
            "time",
            format!(
                "{} actions, one every {} {time}, in an episode of {} {time}; {} of the solver in each interval",
                problem.horizon,
                short(interval),
                short(interval * problem.horizon as f64),
                match problem.substeps {
                    1 => "one step".to_owned(),
                    steps => format!("{steps} steps"),
                },
            ),
        );
        lines
    }

    /// A value with the unit of a field.
    fn with_unit(&self, text: &str, field: usize) -> String {
        match self.described[field].unit.as_str() {
            "1" => text.to_owned(),
            unit => format!("{text} {unit}"),
        }
    }

    fn told_domain(&self, problem: &Problem) -> String {
        let (grid, unit) = (&problem.grid, &self.units[0]);
        let by = |values: &dyn Fn(usize) -> String| {
            let all: Vec<String> = (0..grid.axes).map(values).collect();
            all.join(" × ")
        };
        let domain = self.domain(grid);
        let wet = domain.volume().iter().sum::<f64>();
        let whole: f64 = (0..grid.axes)
            .map(|axis| grid.intervals(axis) as f64)
            .product();
        let mut text = format!(
            "{} {unit}, {grid} points every {} {unit}",
            by(&|axis| short(grid.extent(axis))),
            by(&|axis| short(grid.spacing(axis))),
        );
        if !self.cuts.is_empty() || self.mask.is_some() {
            let mut names: Vec<&str> = self.cuts.iter().map(|(name, _)| name.as_str()).collect();
            names.extend(self.mask.as_ref().map(|_| "the mask's dark part"));
            text += &format!(
                "; {:.0} % of it is left without {}",
                100.0 * wet / whole,
                names.join(", ")
            );
        }
        match domain.parts().len() {
            1 => text,
            parts => format!("{text}, in {parts} separate parts"),
        }
    }

    fn told_field(&self, problem: &Problem, k: usize) -> Vec<String> {
        let (field, [length, time]) = (&self.described[k], &self.units);
        let mut lines = Vec::new();
        let marks: Vec<&str> = [
            (self.all_seen().any(|seen| seen == k), "agents see it"),
            (k == self.driven, "agents act on it"),
            (field.clipped, "cut to its range"),
        ]
        .into_iter()
        .filter_map(|(is, text)| is.then_some(text))
        .collect();
        let mut first = format!(
            "{} in {}, expected from {}",
            field.quantity,
            field.unit,
            span(field.range)
        );
        for mark in marks {
            first += &format!("; {mark}");
        }
        lines.push(first);
        let mut does = Vec::new();
        let diffusion = extremes(self.mapped(problem, &problem.grid, &field.diffusion));
        if diffusion != [0.0; 2] {
            does.push(format!("spreads with {} {length}²/{time}", span(diffusion)));
        }
        if let Some(kappa) = self.hyperdiffusivity(problem, field) {
            does.push(format!(
                "is smoothed with {} {length}⁴/{time}",
                short(kappa)
            ));
        }
        if let Some(flow) = &field.velocity {
            let speed = self.fastest(problem, flow);
            does.push(format!(
                "is carried at up to {} {length}/{time}",
                short(speed)
            ));
        }
        if let Some(reaction) = &field.reaction {
            does.push(format!("grows by {}", reaction.rate.text()));
        }
        lines.push(match does.is_empty() {
            true => "stays as it is unless it is pushed".to_owned(),
            false => does.join("; "),
        });
        let grid = &problem.grid;
        let sides =
            (0..field.edges.len()).filter(|&side| side >= SIDES.len() || side < 2 * grid.axes);
        let edges: Vec<String> = sides
            .map(|side| {
                let what = match grid.edges.get(side / 2) {
                    Some(grid::Edge::Periodic) => "goes on at the other side".to_owned(),
                    _ => self.told_edge(k, &field.edges[side]),
                };
                format!("{}: {what}", self.side_name(side))
            })
            .collect();
        lines.push(edges.join("; "));
        let drawn = |generator: &Generator| match generator {
            Generator::Expression(expression) => expression.text().to_owned(),
            Generator::Random {
                mean, amplitude, ..
            } => format!("random, ±{} around {}", short(*amplitude), mean.text()),
            Generator::Samples(all) => format!("one of {} in a file", all.len()),
        };
        let mut course = format!(
            "begins as {}, should be {}",
            drawn(&field.initial),
            drawn(&field.target)
        );
        for goal in &field.goals {
            course += &format!(", and {} from {} {time} on", drawn(&goal.to), span(goal.at));
            if let Some(lasts) = goal.lasts {
                course += &format!(" for {} {time}", span(lasts));
            }
        }
        if field.weight != 1.0 {
            course += &format!("; its errors count {}", short(field.weight));
        }
        lines.push(course);
        lines
    }

    fn told_edge(&self, field: usize, edge: &super::Edge) -> String {
        let [length, time] = &self.units;
        let value = self.with_unit(edge.value.text(), field);
        match edge.kind {
            Edge::Fixed => format!("held at {value}"),
            Edge::Insulated => "insulated".to_owned(),
            Edge::Open => format!("open, bringing {value}"),
            Edge::Convective { transfer } => format!(
                "exchanging {} {length}/{time} with {value}",
                short(transfer),
            ),
        }
    }

    /// The largest speed of a flow.
    fn fastest(&self, problem: &Problem, flow: &[Map; 2]) -> f64 {
        let [x, y] = flow
            .each_ref()
            .map(|map| self.mapped(problem, &problem.grid, map));
        x.iter()
            .zip(&y)
            .map(|(x, y)| x.hypot(*y))
            .fold(0.0, f64::max)
    }

    fn told_agents(&self, problem: &Problem) -> String {
        let [length, time] = &self.units;
        let actuation = &problem.actuation;
        let unit = &self.described[self.driven].unit;
        let sensing = &problem.sensing;
        let points = (sensing.window * sensing.spacing) as f64;
        let seen: Vec<&str> = (self.all_seen())
            .map(|k| self.described[k].name.as_str())
            .collect();
        let sees: Vec<String> = (0..problem.grid.axes)
            .map(|axis| short(points * problem.grid.spacing(axis)))
            .collect();
        format!(
            "{} {}; each pushes by up to ±{} {unit}/{time}{}{}, and sees {} points{}, {} {length}, around it{}",
            problem.agents,
            match actuation.velocity_max {
                0.0 => "that stay where they are".to_owned(),
                speed => format!("that move at up to {} {length}/{time}", short(speed)),
            },
            short(actuation.force_max),
            match self.has_influence() {
                true => format!(
                    " as its map says, which is as wide as a bell of {} {length}",
                    short(actuation.width)
                ),
                false => format!(" within about {} {length}", short(actuation.width)),
            },
            match self.rate.is_finite() {
                true => format!(
                    ", from none to all in {} {time}",
                    short(actuation.force_max / self.rate)
                ),
                false => String::new(),
            },
            sensing.window,
            match sensing.spacing {
                1 => String::new(),
                2 => ", every other of the grid's".to_owned(),
                spacing => format!(", {spacing} of the grid's from one to the next"),
            },
            sees.join(" × "),
            match seen[..] {
                [_] => String::new(),
                _ => format!(", of {}", seen.join(" and ")),
            },
        )
    }

    /// What stands for a place that agents keep out of.
    fn told_stand(&self, name: &str, stand: Option<&Stand>) -> String {
        let unit = &self.units[0];
        match stand {
            None => format!(
                "{name} is open to agents: there are too few discs for its shape beside all others"
            ),
            Some(stand) if stand.discs.is_empty() => format!("{name} is where nobody gets"),
            Some(stand) if stand.off() == 0.0 => format!("{name}, a disc"),
            Some(stand) => {
                let (discs, s) = match stand.discs.len() {
                    1 => ("one disc".to_owned(), "s"),
                    count => (format!("{count} discs"), ""),
                };
                format!(
                    "{name}, by {discs} that forbid{s} up to {} {unit} beside it and leave{s} corners of up to {} {unit} open",
                    short(stand.beyond),
                    short(stand.open)
                )
            }
        }
    }

    /// In which episodes of a training agents see by themselves.
    fn told_standing(&self) -> Option<String> {
        let neighbours = self.training.neighbours();
        let [episodes, sensors] = self.training.missing();
        let fail = format!(
            "in {} of {} up to {} of the sensors fail",
            short(episodes),
            if neighbours > 0.0 {
                "these"
            } else {
                "the episodes"
            },
            short(sensors)
        );
        let hear = format!(
            "in {} of the episodes agents see their own cell, and of the others what agents that are mounted there say",
            short(neighbours)
        );
        match (
            self.training.by_themselves(),
            neighbours > 0.0,
            episodes * sensors > 0.0,
        ) {
            (false, ..) => None,
            (true, true, true) => Some(format!("{hear}; {fail}")),
            (true, true, false) => Some(hear),
            (true, false, _) => Some(fail),
        }
    }

    /// What is not exact about what agents see.
    fn told_readings(&self) -> Option<String> {
        let mut all = Vec::new();
        for (sensor, k) in self.sensors.iter().zip(self.all_seen()) {
            let name = &self.described[k].name;
            let first = all.len();
            if sensor.noise > 0.0 {
                all.push(format!(
                    "noise of {}",
                    self.with_unit(&short(sensor.noise), k)
                ));
            }
            if sensor.quantisation > 0.0 {
                let step = short(sensor.quantisation);
                all.push(format!("steps of {}", self.with_unit(&step, k)));
            }
            if sensor.range.iter().all(|end| end.is_finite()) {
                all.push(format!(
                    "readings from {}",
                    self.with_unit(&span(sensor.range), k)
                ));
            }
            if let (Some(told), 2..) = (all.get_mut(first), self.sensors.len()) {
                *told = format!("{name} with {told}");
            }
        }
        (!all.is_empty()).then(|| all.join(", "))
    }

    /// The highest diffusivity of a field, either way, its hyperdiffusivity, the highest speed that carries
    /// it, and the usual rate of reactions where fields are expected.
    pub fn scales(&self, problem: &Problem, k: usize) -> Scales {
        let field = &self.described[k];
        let diffusion = extremes(self.mapped(problem, &problem.grid, &field.diffusion));
        Scales {
            diffusivity: diffusion[1].max(-diffusion[0]),
            hyperdiffusivity: self.hyperdiffusivity(problem, field).unwrap_or(0.0),
            speed: (field.velocity.as_ref()).map_or(0.0, |flow| self.fastest(problem, flow)),
            rate: super::system::System::of(problem).usual_rate(),
        }
    }

    /// What a side does to a field.
    pub fn edge(&self, field: usize, side: usize) -> Edge {
        self.described[field].edges[side].kind
    }

    /// Names and forms of what else acts on the fields.
    pub fn disturbances(&self) -> impl Iterator<Item = (&str, &Form)> {
        self.pushes
            .iter()
            .map(|push| (push.name.as_str(), &push.form))
    }
}

impl Named {
    fn told(&self, value: f64) -> String {
        let mut text = match self.unit.as_deref() {
            None => format!("{}, without a unit", short(value)),
            Some("1") => short(value),
            Some(unit) => format!("{} {unit}", short(value)),
        };
        if let Some(range) = self.range {
            text += &format!(", and can be from {}", span(range));
        }
        match &self.meaning {
            None => text,
            Some(meaning) => format!("{meaning}: {text}"),
        }
    }
}

/// How fast things go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scales {
    /// Highest diffusivity.
    pub diffusivity: f64,
    /// κ of −κ Δ²u.
    pub hyperdiffusivity: f64,
    /// Highest speed of a flow.
    pub speed: f64,
    /// Highest rate at which a field changes by itself.
    pub rate: f64,
}
