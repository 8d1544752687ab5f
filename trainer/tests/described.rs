//! Fields that files describe: the truth, the trainer's own solver and its adjoint are three pieces of code
//! that must do the same, whatever a file says. Files are drawn at random; the published problems, written
//! as files, are those in Rust.

use problem::actuate::Kernel;
use problem::kit::{self, BadFile};
use problem::random_field::episode_rng;
use problem::{Episode, Problem, published};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use trainer::adjoint::physics::described::DescribedStep;
use trainer::adjoint::physics::{Batch, Differentiable, FieldStep, Gradients, Interval};
use trainer::adjoint::real::Real;
use trainer::described;
use trainer::family::Family;
use trainer::host_loop::HostLoop;
use trainer::loss::{TERMS, Term};
use trainer::policy::{PolicyConfig, Shape};
use trainer::trial::Trial;

/// Files that every test goes through.
const FILES: usize = 200;

/// Draws what stands in a file.
struct Pen {
    rng: ChaCha8Rng,
    /// Where files go, and what they begin with.
    folder: PathBuf,
    number: u64,
    maps: usize,
    axes: usize,
    size: [f64; 2],
    points: [usize; 2],
    names: &'static [&'static str],
    cuts: Vec<String>,
    length: f64,
    /// Whether the field that is described has hyperdiffusion, and diffusion that is positive everywhere.
    smoothed: bool,
    spreads: bool,
}

impl Pen {
    fn chance(&mut self, share: f64) -> bool {
        self.rng.random_bool(share)
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        // As people write them.
        (self.rng.random_range(low..high) * 1e4).round() / 1e4
    }

    fn count(&mut self, low: usize, high: usize) -> usize {
        self.rng.random_range(low..=high)
    }

    fn any<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.rng.random_range(0..of.len())]
    }

    /// A place in the box, as coordinates of a plane.
    fn place(&mut self) -> [f64; 2] {
        [0, 1].map(|axis| {
            let share = self.between(0.05, 0.95);
            share * self.size[axis]
        })
    }

    /// A place with as many coordinates as the box has.
    fn seat(&mut self) -> String {
        let place = self.place();
        format!("{:?}", &place[..self.axes])
    }

    /// An array file of these values; its name.
    fn map(&mut self, shape: &[usize], value: impl Fn(&mut Self, usize) -> f64) -> String {
        let tuple: String = shape.iter().map(|n| format!("{n}, ")).collect();
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({tuple}), }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        for k in 0..shape.iter().product() {
            bytes.extend((value(self, k) as f32).to_le_bytes());
        }
        self.maps += 1;
        let name = format!("{}-{}.npy", self.number, self.maps);
        std::fs::write(self.folder.join(&name), bytes).unwrap();
        name
    }

    /// Points of a map, which need not be the grid's.
    fn map_shape(&mut self) -> Vec<usize> {
        (0..self.axes).map(|_| self.count(4, 24)).collect()
    }

    /// A smooth expression in position of about unit size.
    fn hills(&mut self) -> String {
        let (a, b, c) = (
            self.between(-1.0, 1.0),
            self.between(0.5, 4.0),
            self.between(0.0, 3.0),
        );
        let y = if self.axes == 2 { " - y" } else { "" };
        format!("({a})*sin({b}*(x{y}) + {c})")
    }

    /// A number or an expression, in time too if it may.
    fn value(&mut self, moves: bool) -> String {
        match self.count(0, 2) {
            0 => self.between(-1.0, 1.0).to_string(),
            1 if moves => {
                let (hills, pace) = (self.hills(), self.between(1.0, 20.0));
                format!("\"{hills}*cos({pace}*t) + 0.1*a\"")
            }
            _ => format!("\"{} + k\"", self.hills()),
        }
    }

    fn shape(&mut self) -> String {
        self.shape_of(0.1, 0.3)
    }

    /// A shape of about this share of the box.
    fn shape_of(&mut self, low: f64, high: f64) -> String {
        let ([x, y], small) = (self.place(), self.size[0].min(self.size[1]));
        let r = self.between(low, high) * small;
        match self.count(0, 2) {
            0 => format!("disc = {{ centre = [{x}, {y}], radius = {r} }}"),
            1 => {
                let [dx, dy] = [r, self.between(low, high) * small];
                format!("rectangle = [[{x}, {y}], [{}, {}]]", x + dx, y - dy)
            }
            _ => {
                let corners = self.count(3, 6);
                let corner = |k: usize| {
                    let (s, c) = (k as f64 / corners as f64 * std::f64::consts::TAU).sin_cos();
                    format!("[{}, {}]", x + r * c, y + 1.3 * r * s)
                };
                let corners: Vec<String> = (0..corners).map(corner).collect();
                format!("polygon = [{}]", corners.join(", "))
            }
        }
    }

    /// A field to begin with or to reach.
    fn field(&mut self, middle: f64, spread: f64) -> String {
        match self.count(0, 3) {
            0 => (middle + self.between(-spread, spread)).to_string(),
            1 => format!("\"{middle} + {spread}*{}\"", self.hills()),
            2 => {
                let length = self.between(0.4, 1.0) * self.size[0].max(self.size[1]);
                format!(
                    "{{ random = {{ length = {length}, amplitude = {}, mean = {middle} }} }}",
                    0.4 * spread
                )
            }
            _ => {
                let shape: Vec<usize> = [2].into_iter().chain(self.map_shape()).collect();
                let name = self.map(&shape, |pen, _| middle + pen.between(-spread, spread));
                format!("{{ file = \"{name}\" }}")
            }
        }
    }

    /// A time, or a range of times.
    fn time(&mut self) -> String {
        let (a, b) = (self.between(0.0, 0.5), self.between(0.5, 1.0));
        match self.chance(0.5) {
            true => (a * self.length).to_string(),
            false => format!("[{}, {}]", a * self.length, b * self.length),
        }
    }

    fn diffusion(&mut self) -> Option<String> {
        let kind = self.count(0, 5);
        self.spreads = (1..=3).contains(&kind);
        Some(match kind {
            5 if self.smoothed => self.between(-0.05, 0.0).to_string(),
            4 if self.smoothed => format!("\"0.05*a*{}\"", self.hills()),
            0 => return None,
            1 | 2 => self.between(0.001, 0.5).to_string(),
            3 => format!("\"0.1*a*(1.2 + {})\"", self.hills()),
            _ => {
                let shape = self.map_shape();
                format!("\"{}\"", self.map(&shape, |pen, _| pen.between(0.0, 0.3)))
            }
        })
    }

    fn velocity(&mut self) -> String {
        if self.chance(0.3) {
            let shape: Vec<usize> = [self.axes].into_iter().chain(self.map_shape()).collect();
            return format!("\"{}\"", self.map(&shape, |pen, _| pen.between(-1.0, 1.0)));
        }
        let each: Vec<String> = (0..self.axes).map(|_| self.value(false)).collect();
        format!("[{}]", each.join(", "))
    }

    fn reaction(&mut self, of: &str) -> String {
        let other = self.any(self.names);
        let (p, q) = (self.between(0.1, 3.0), self.between(0.1, 2.0));
        match self.count(0, 8) {
            0 => format!("{p}*{of}*(1 - {of})"),
            1 => format!("{of}*(1 - {of})*({of} - a) - {q}*{other}"),
            2 => format!("-k*{of} + {q}*sin({p}*t + x)"),
            3 => format!("{p}*tanh({other} - {of})"),
            4 => format!("-{of}^3 + {q}*{of}*{other}"),
            5 => format!("max({other}, 0.1) - {p}*abs({of})"),
            6 => format!("a*exp(-{other}^2) - {of}"),
            7 => format!("{q}*min(x, 0.7)*cos({p}*t)"),
            _ => format!("{p}*({other} - {of})/(1 + {of}^2)"),
        }
    }

    fn edge(&mut self) -> String {
        let value = self.value(true);
        match self.count(0, 3) {
            0 => format!("{{ fixed = {value} }}"),
            1 => "\"insulated\"".to_owned(),
            2 if !self.smoothed || self.spreads => {
                let transfer = self.between(0.0, 3.0);
                format!("{{ convective = {transfer}, ambient = {value} }}")
            }
            _ => format!("{{ inflow = {value} }}"),
        }
    }

    fn edges(&mut self, periodic: [bool; 2]) -> String {
        let mut all = Vec::new();
        if periodic == [true; 2] {
            all.push("all = \"periodic\"".to_owned());
        } else if self.chance(0.8) {
            all.push(format!("all = {}", self.edge()));
        }
        for axis in 0..self.axes {
            for side in &kit::SIDES[2 * axis..][..2] {
                match periodic {
                    [true, true] => {}
                    periodic if periodic[axis] => all.push(format!("{side} = \"periodic\"")),
                    _ if self.chance(0.4) => all.push(format!("{side} = {}", self.edge())),
                    _ => {}
                }
            }
        }
        for side in self.cuts.clone() {
            if self.chance(0.4) {
                all.push(format!("{side} = {}", self.edge()));
            }
        }
        format!("{{ {} }}", all.join(", "))
    }

    fn domain(&mut self, text: &mut String) {
        let axes = self.axes;
        let (size, points) = (self.size, self.points);
        _ = writeln!(
            text,
            "[domain]\nunit = \"m\"\nsize = {:?}\ngrid = {:?}",
            &size[..axes],
            &points[..axes]
        );
        if axes == 1 {
            return;
        }
        let names = ["hole", "notch"];
        let cuts: Vec<String> = (0..self.count(0, 2))
            .map(|k| {
                self.cuts.push(names[k].to_owned());
                format!("{{ name = \"{}\", {} }}", names[k], self.shape())
            })
            .collect();
        _ = writeln!(text, "cuts = [{}]", cuts.join(", "));
        if self.chance(0.2) {
            // Round, and sometimes a corner is missing.
            let (n, m) = (self.count(5, 16), self.count(5, 16));
            let reach = self.between(0.6, 0.9);
            let mask = self.map(&[n, m], |_, k| {
                let [u, v] =
                    [(k / m, n), (k % m, m)].map(|(j, n)| 2.0 * j as f64 / (n - 1) as f64 - 1.0);
                f64::from(u8::from(u.hypot(v) < 1.5 * reach))
            });
            self.cuts.push("mask".to_owned());
            _ = writeln!(text, "mask = \"{mask}\"");
        }
    }

    fn fields(&mut self, text: &mut String, periodic: [bool; 2]) {
        let wandering = self.chance(0.4).then(|| self.any(self.names));
        for name in self.names {
            let [low, high] = *[[-2.0, 2.0], [0.0, 1.0], [-1.0, 3.0]]
                .get(self.count(0, 2))
                .unwrap();
            let (middle, spread) = (0.5 * (low + high), 0.4 * (high - low));
            _ = writeln!(
                text,
                "[fields.{name}]\nunit = \"1\"\nrange = [{low}, {high}]"
            );
            if self.chance(0.3) {
                text.push_str("clipped = true\n");
            }
            self.smoothed = self.chance(0.25);
            if self.smoothed {
                let kappa = match self.chance(0.5) {
                    true => self.between(0.001, 0.01).to_string(),
                    false => "\"0.01*a + 0.002*k\"".to_owned(),
                };
                _ = writeln!(text, "hyperdiffusion = {kappa}");
            }
            if let Some(diffusion) = self.diffusion() {
                _ = writeln!(text, "diffusion = {diffusion}");
            }
            if self.chance(0.4) {
                _ = writeln!(text, "velocity = {}", self.velocity());
            }
            if self.chance(0.6) {
                _ = writeln!(text, "reaction = \"{}\"", self.reaction(name));
            }
            _ = writeln!(text, "edges = {}", self.edges(periodic));
            for what in ["initial", "target"] {
                if self.chance(0.8) {
                    _ = writeln!(text, "{what} = {}", self.field(middle, spread));
                }
            }
            if wandering == Some(name) {
                _ = writeln!(text, "goal = {}", self.goals(middle, spread));
            }
            if self.chance(0.4) {
                _ = writeln!(text, "weight = {}", self.between(0.1, 2.0));
            }
        }
    }

    /// One goal, or two or three.
    fn goals(&mut self, middle: f64, spread: f64) -> String {
        if self.chance(0.5) {
            let (field, at) = (self.field(middle, spread), self.time());
            let over = match self.chance(0.5) {
                true => format!(", over = {}", self.time()),
                false => String::new(),
            };
            let lasts = match self.chance(0.3) {
                true => format!(", lasts = {}", self.time()),
                false => String::new(),
            };
            return format!("{{ field = {field}, at = {at}{over}{lasts} }}");
        }
        // Each has its part of the episode: it begins in the first third, and is over before the end.
        let count = self.count(2, 3);
        let part = self.length / count as f64;
        let goals = (0..count).map(|k| {
            let (field, at) = (self.field(middle, spread), k as f64 * part);
            let at = match self.chance(0.5) {
                true => format!("[{at}, {}]", at + part / 3.0),
                false => at.to_string(),
            };
            let over = self.between(0.0, 0.3) * part;
            let lasts = match self.chance(0.5) {
                true => format!(", lasts = {}", 0.05 * part),
                false => String::new(),
            };
            format!("{{ field = {field}, at = {at}, over = {over}{lasts} }}")
        });
        format!("[{}]", goals.collect::<Vec<_>>().join(", "))
    }

    fn agents(&mut self, text: &mut String) {
        let [width, force] = [self.between(0.1, 0.4), self.between(0.5, 5.0)];
        let driven = self.any(self.names);
        _ = writeln!(text, "[actuators]\nfield = \"{driven}\"\nforce = {force}");
        if self.chance(0.25) {
            // Across its whole range in some of the steps of an episode.
            let rate = self.between(2.0, 20.0) * force / self.length;
            _ = writeln!(text, "rate = {rate}");
        }
        let listed = self.chance(0.5);
        let list: Vec<String> = (0..self.count(2, 4)).map(|_| self.seat()).collect();
        let measured = listed && self.chance(0.4);
        if measured {
            let shape: Vec<usize> = [list.len()].into_iter().chain(self.map_shape()).collect();
            let name = self.map(&shape, |pen, _| pen.between(-0.3, 1.0));
            _ = writeln!(text, "influence = \"{name}\"");
        } else {
            _ = writeln!(text, "width = {width}");
        }
        if !measured && self.chance(0.4) {
            _ = writeln!(text, "speed = {}", self.between(0.2, 2.0));
        }
        if listed {
            _ = writeln!(text, "places = {{ list = [{}] }}", list.join(", "));
        } else {
            let counts: Vec<usize> = (0..self.axes).map(|_| self.count(1, 3)).collect();
            _ = writeln!(text, "places = {{ lattice = {counts:?} }}");
        }
        if self.axes == 2 && self.chance(0.3) {
            let [x, y] = self.place();
            let shape = match self.count(0, 2) {
                0 => format!("rectangle = [[{x}, {y}], [{}, {}]]", x + 0.07, y + 0.05),
                1 => format!(
                    "polygon = [[{x}, {y}], [{}, {y}], [{x}, {}]]",
                    x + 0.1,
                    y + 0.1
                ),
                _ => format!("disc = {{ centre = [{x}, {y}], radius = 0.1 }}"),
            };
            _ = writeln!(text, "keep_out = [{{ {shape} }}]");
        }
        let seen = self.any(self.names);
        let window = self.count(1, 6);
        // In every third file those behind it too.
        let besides = match self.names.iter().position(|name| *name == seen) {
            Some(k) if self.number.is_multiple_of(3) => &self.names[k + 1..],
            _ => &[],
        };
        let seen = [&[seen], besides].concat();
        _ = writeln!(text, "[sensors]\nfield = {seen:?}\nwindow = {window}");
        if self.chance(0.3) {
            // What fits the smallest grid beside the widest window.
            let spacing = self.count(2, 3).min(7 / (window + 1));
            _ = writeln!(text, "spacing = {}", spacing.max(1));
        }
        if self.chance(0.3) {
            text.push_str("noise = 0.01\n");
        }
        if self.chance(0.25) {
            let (low, high) = (self.between(-1.0, 0.3), self.between(0.4, 1.5));
            _ = writeln!(text, "range = [{low}, {high}]");
        }
        if self.chance(0.15) {
            let step = self.between(0.01, 0.2);
            let steps: Vec<f64> = (1..).zip(&seen).map(|(k, _)| step / f64::from(k)).collect();
            _ = writeln!(text, "quantisation = {steps:?}");
        }
    }

    fn happenings(&mut self, text: &mut String) {
        for _ in 0..self.count(0, 2) {
            let form = match self.axes == 2 && self.chance(0.5) {
                true => self.shape_of(0.4, 0.8),
                false => format!(
                    "bell = {{ centre = {:?}, width = {} }}",
                    self.place(),
                    self.between(0.05, 0.5)
                ),
            };
            let (field, from) = (self.any(self.names), self.time());
            let strength = self.between(-3.0, 3.0);
            _ = writeln!(
                text,
                "[[disturbances]]\nfield = \"{field}\"\n{form}\nstrength = {strength}\nfrom = {from}\nlasts = {}",
                self.time()
            );
            if self.chance(0.3) {
                text.push_str("chance = 0.7\n");
            }
        }
    }

    fn score(&mut self, text: &mut String) {
        text.push_str("[score]\n");
        if self.chance(0.5) {
            let from = 0.7 * self.length;
            _ = writeln!(text, "error = \"mean\"\nfrom = {from}");
        }
        if self.axes == 2 && self.chance(0.4) {
            _ = writeln!(
                text,
                "elsewhere = 0.5\nregions = [{{ {}, weight = 3 }}]",
                self.shape_of(0.4, 0.8)
            );
        }
        if self.chance(0.3) {
            text.push_str("[feedback]\ngain = 2\naveraged = true\n");
        }
    }
}

/// Writes a file that may describe a problem.
fn file(number: u64, folder: &Path) -> PathBuf {
    let mut rng = ChaCha8Rng::seed_from_u64(number);
    let names: &[&str] = &["u", "v", "w"][..rng.random_range(1..=3)];
    let axes = if rng.random_bool(0.3) { 1 } else { 2 };
    let mut pen = Pen {
        size: [0; 2].map(|_| rng.random_range(0.5..3.0)),
        points: [0; 2].map(|_| rng.random_range(8..=20)),
        rng,
        folder: folder.to_owned(),
        number,
        maps: 0,
        axes,
        names,
        cuts: Vec::new(),
        length: 0.0,
        smoothed: false,
        spreads: false,
    };
    let (interval, steps) = (pen.between(0.002, 0.05), pen.count(6, 14));
    pen.length = interval * steps as f64;
    let torus = pen.chance(0.2);
    let pipe = axes == 2 && pen.chance(0.2);
    let around = pen.count(0, 1);
    let periodic = [0, 1].map(|axis| torus || pipe && axis == around);
    let mut text = format!("name = \"drawn-{number}\"\norder = {names:?}\n");
    pen.domain(&mut text);
    _ = writeln!(
        text,
        "[time]\nunit = \"s\"\ninterval = {interval}\nsteps = {steps}"
    );
    if pen.chance(0.7) {
        let scheme = pen.any(&["first-order", "second-order"]);
        _ = writeln!(text, "scheme = \"{scheme}\"");
    }
    if pen.chance(0.3) {
        _ = writeln!(text, "substeps = {}", pen.count(1, 6));
    }
    text.push_str("[coefficients]\nk = { value = 0.3 }\n");
    let a = pen.between(0.2, 0.8);
    match pen.chance(0.6) {
        true => _ = writeln!(text, "a = {{ value = {a}, range = [0.1, 1] }}"),
        false => _ = writeln!(text, "a = {{ value = {a} }}"),
    }
    pen.fields(&mut text, periodic);
    pen.agents(&mut text);
    pen.happenings(&mut text);
    pen.score(&mut text);
    let path = folder.join(format!("{number}.toml"));
    std::fs::write(&path, text).unwrap();
    path
}

/// What came of drawing until there were [`FILES`] problems.
struct Drawn {
    problems: Vec<&'static Problem>,
    refused: Vec<BadFile>,
}

static DRAWN: LazyLock<Drawn> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let mut drawn = Drawn {
        problems: Vec::new(),
        refused: Vec::new(),
    };
    let mut numbers = 0..;
    while drawn.problems.len() < FILES {
        let path = file(numbers.next().unwrap(), folder.path());
        match kit::load(&path) {
            Ok(problem) => drawn.problems.push(problem),
            Err(refused) => drawn.refused.push(refused),
        }
    }
    // To look at one that fails.
    if std::env::var_os("KEEP_DRAWN_FILES").is_some() {
        eprintln!("{}", folder.keep().display());
    }
    drawn
});

#[test]
fn most_drawn_files_describe_problems_and_refusals_name_the_place() {
    let Drawn { problems, refused } = &*DRAWN;
    for bad in refused {
        let text = bad.to_string();
        assert!(bad.line.is_some() && text.contains(".toml:"), "{text}");
        assert!(!text.contains('\n'), "{text}");
    }
    let why: Vec<String> = refused.iter().map(BadFile::to_string).collect();
    assert!(
        refused.len() * 6 <= problems.len() * 4,
        "{} files were refused: {why:#?}",
        refused.len()
    );
    // What is not there is not tested.
    let has = |what: &dyn Fn(&Problem) -> bool| problems.iter().filter(|p| what(p)).count();
    let episode = |p: &Problem| (p.draw)(p, &mut episode_rng(0, 0));
    for (what, count) in [
        ("line", has(&|p| p.grid.axes == 1)),
        ("several fields", has(&|p| p.fields() > 1)),
        ("several steps", has(&|p| p.substeps > 1)),
        ("mobile agents", has(&|p| p.actuation.velocity_max > 0.0)),
        ("goal", has(&|p| !episode(p).goals.is_empty())),
        ("several goals", has(&|p| episode(p).goals.len() > 1)),
        ("disturbance", has(&|p| !episode(p).pushes.is_empty())),
        ("weights", has(&|p| p.weights().is_some())),
        ("torus", has(&|p| p.grid.is_closed())),
        (
            "pipe",
            has(&|p| p.grid.axes == 2 && p.grid.edges[0] != p.grid.edges[1]),
        ),
        (
            "hyperdiffusion",
            has(&|p| kit::system::System::of(p).has_hyperdiffusion()),
        ),
        (
            "exchange beside hyperdiffusion",
            has(&|p| {
                let system = kit::system::System::of(p);
                let mut hypers = system.fields.iter().flat_map(|field| &field.hyper);
                hypers.any(|hyper| !hyper.laplacian.inflow.is_empty())
            }),
        ),
        ("cut-out", has(&|p| !p.kit.unwrap().cuts.is_empty())),
        ("mask", has(&|p| p.kit.unwrap().mask.is_some())),
        ("range", has(&|p| !p.coefficients.is_empty())),
        ("rates", has(&|p| p.force_change().is_finite())),
        (
            "measured actuators",
            has(&|p| p.kit.unwrap().has_influence()),
        ),
        ("keep-out", has(&|p| !p.keep_out.is_empty())),
        (
            "limited sensors",
            has(&|p| p.kit.unwrap().sensors[0].range[0].is_finite()),
        ),
        ("spaced windows", has(&|p| p.sensing.spacing > 1)),
        (
            "sensors in steps",
            has(&|p| p.kit.unwrap().sensors[0].quantisation > 0.0),
        ),
        ("several fields seen", has(&|p| !p.also_seen().is_empty())),
        (
            "edges in time",
            has(&|p| kit::system::System::of(p).edges_change()),
        ),
    ] {
        assert!(count >= FILES / 20, "only {count} files with {what}");
    }
}

/// Two episodes of a problem, drawn and roughened so that nothing stands exactly where something bends.
fn begin(problem: &Problem, rng: &mut ChaCha8Rng) -> Vec<f64> {
    let drawn = (0..2).flat_map(|k| (problem.draw)(problem, &mut episode_rng(7, k)).initial);
    drawn
        .map(|z| f64::from(z) + rng.random_range(-0.05..0.05))
        .collect()
}

fn noise(rng: &mut ChaCha8Rng, count: usize, height: f64) -> Vec<f64> {
    (0..count)
        .map(|_| rng.random_range(-height..height))
        .collect()
}

fn of<T: Real>(values: &[f64]) -> Vec<T> {
    values.iter().copied().map(T::of).collect()
}

/// Room whose content must not be read.
fn unset<T: Real>(len: usize) -> Vec<T> {
    vec![T::of(f64::NAN); len]
}

fn batch(step: usize) -> Batch {
    Batch { episodes: 2, step }
}

/// The next fields of two episodes and the tape.
fn advance<T: Real>(
    physics: &DescribedStep<T>,
    step: usize,
    fields: &[T],
    forcing: &[T],
) -> (Vec<T>, Vec<T>) {
    let (mut next, mut tape) = (unset(fields.len()), unset(2 * physics.tape_len()));
    let mut scratch = unset(2 * physics.scratch_len());
    physics.advance(
        batch(step),
        fields,
        forcing,
        &mut next,
        &mut tape,
        &mut scratch,
    );
    (next, tape)
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0f64, |most, z| most.max(z.abs()))
}

/// Largest difference as a share of the largest value.
fn apart<T: Real>(found: &[T], expected: &[f64]) -> f64 {
    let gaps = found
        .iter()
        .zip(expected)
        .map(|(a, b)| (a.wide() - b).abs());
    gaps.fold(0.0, f64::max) / largest(expected).max(f64::MIN_POSITIVE)
}

/// Every form of a problem that coefficients of a range make.
fn forms() -> impl Iterator<Item = Problem> {
    DRAWN.problems.iter().flat_map(|problem| problem.forms())
}

#[test]
fn truth_and_the_trainers_solver_go_the_same_way() {
    for problem in forms() {
        let name = problem.described();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut truth = begin(&problem, &mut rng);
        let (mut double, mut single) = (truth.clone(), of::<f32>(&truth));
        let each = problem.state_len();
        let wide = DescribedStep::<f64>::new(&problem).unwrap();
        let narrow = DescribedStep::<f32>::new(&problem).unwrap();
        let mut steppers = [0; 2].map(|_| (problem.stepper)(&problem, 1));
        for step in 0..problem.horizon.min(8) {
            let forcing = noise(&mut rng, 2 * each, problem.actuation.force_max);
            for ((z, f), stepper) in
                (truth.chunks_mut(each).zip(forcing.chunks(each))).zip(&mut steppers)
            {
                stepper.step(z, f);
            }
            double = advance(&wide, step, &double, &forcing).0;
            single = advance(&narrow, step, &single, &of(&forcing)).0;
            let finite = truth.iter().all(|z| z.is_finite());
            assert_eq!(finite, double.iter().all(|z| z.is_finite()), "{name}");
            assert!(finite, "{name} blows up in interval {step}");
            let off = apart(&double, &truth);
            assert!(off <= 1e-10, "{name}, interval {step}: {off:e} in f64");
            let off = apart(&single, &truth);
            assert!(off <= 1e-4, "{name}, interval {step}: {off:e} in f32");
        }
    }
}

/// The gradient of a sum over the next fields by fields and forcing.
fn gradient(
    physics: &DescribedStep<f64>,
    step: usize,
    [fields, forcing, pull]: [&[f64]; 3],
) -> [Vec<f64>; 2] {
    let (next, tape) = advance(physics, step, fields, forcing);
    let (mut g_fields, mut g_forcing) = (unset(fields.len()), unset(forcing.len()));
    physics.adjoint(
        batch(step),
        Interval {
            fields,
            forcing,
            next: &next,
            tape: &tape,
        },
        Gradients {
            next: pull,
            fields: &mut g_fields,
            forcing: &mut g_forcing,
        },
        &mut unset(2 * physics.scratch_len()),
    );
    [g_fields, g_forcing]
}

/// Along random directions of the fields and of the forcing. Where a cut to a range or an absolute value
/// bends between the two ends of a difference there is no slope to compare with: two lengths of it tell.
#[test]
fn the_adjoint_is_the_slope_of_the_step() {
    let (mut judged, mut bent) = (0, Vec::new());
    for problem in forms() {
        let name = problem.described();
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let physics = DescribedStep::<f64>::new(&problem).unwrap();
        let fields = begin(&problem, &mut rng);
        let count = fields.len();
        let forcing = noise(&mut rng, count, problem.actuation.force_max);
        let pull = noise(&mut rng, count, 1.0);
        let step = 3;
        let [g_fields, g_forcing] = gradient(&physics, step, [&fields, &forcing, &pull]);
        let value = |fields: &[f64], forcing: &[f64]| -> f64 {
            let (next, _) = advance(&physics, step, fields, forcing);
            next.iter().zip(&pull).map(|(z, w)| z * w).sum()
        };
        let moved = |from: &[f64], way: &[f64], by: f64| -> Vec<f64> {
            from.iter().zip(way).map(|(x, d)| x + by * d).collect()
        };
        for (what, g) in [("fields", &g_fields), ("forcing", &g_forcing)] {
            assert!(g.iter().all(|g| g.is_finite()), "{name}: {what}");
            for _ in 0..2 {
                let way = noise(&mut rng, count, 1.0);
                // The next fields hardly depend on one interval's forcing; a longer way makes up for it.
                let reach = match what {
                    "fields" => 1.0,
                    _ => 1.0 / problem.control_interval,
                };
                let slope = |h: f64| {
                    let h = h * reach;
                    let at = |h: f64| match what {
                        "fields" => value(&moved(&fields, &way, h), &forcing),
                        _ => value(&fields, &moved(&forcing, &way, h)),
                    };
                    (at(h) - at(-h)) / (2.0 * h)
                };
                let scale: f64 = g.iter().zip(&way).map(|(g, d)| (g * d).abs()).sum();
                let expected: f64 = g.iter().zip(&way).map(|(g, d)| g * d).sum();
                let [long, short] = [1e-5, 2.5e-6].map(slope);
                judged += 1;
                if (long - short).abs() > 1e-7 * scale {
                    bent.push(name.clone());
                    continue;
                }
                assert!(
                    (short - expected).abs() <= 1e-6 * scale,
                    "{name}, {what}: difference {short}, adjoint {expected} of {scale}"
                );
            }
        }
    }
    assert!(
        bent.len() * 50 <= judged,
        "{} of {judged}: {bent:?}",
        bent.len()
    );
}

/// The network of a training with a memory, and of agents that rest where there is no target.
fn config(problem: &'static Problem) -> PolicyConfig {
    let mut config = described::entry(problem).recipe.full(problem).policy;
    config.shape.memory = 2;
    if !problem.tracking {
        config.shape = config.shape.resting();
    }
    config
}

/// Parameters with which agents act and move within a few steps.
fn lively(shape: &Shape) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let mut parameters = Vec::new();
    for [inputs, outputs] in shape.layers() {
        let height = 2.0 / (inputs as f32).sqrt();
        let layer = (0..(inputs + 1) * outputs).map(|_| rng.random_range(-height..height));
        parameters.extend(layer);
    }
    parameters
}

/// Three episodes: one plain, one with other coefficients in which an agent dies, one with more agents,
/// whose actions come late.
fn trials(problem: &Problem, other: problem::coefficient::Coefficients) -> Vec<Trial> {
    let episode = |k: u64| (problem.draw)(problem, &mut episode_rng(11, k));
    let agents = problem.agents;
    let more = agents + usize::from(problem.check_agents(agents + 1).is_ok());
    let sizes = [agents, agents, more];
    let mut trials: Vec<Trial> = (0..3)
        .map(|k| Trial::plain(problem, sizes[k as usize], episode(k)))
        .collect();
    trials[1].dies_at[0] = 2;
    trials[1].physics = other;
    trials[1].actuator_noise = 0.1;
    trials[2].delay = 1;
    trials[2].sensor_noise = 0.01;
    trials
}

/// Whole episodes, with goals, disturbances, weights and a score that begins late.
#[test]
fn the_gradient_of_closed_loops_is_their_slope() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let (mut judged, mut bent) = (0, Vec::new());
    // Stairs have no slope that a difference finds.
    let smooth = |p: &&&Problem| p.kit.unwrap().sensors[0].quantisation == 0.0;
    for problem in DRAWN.problems.iter().filter(smooth).step_by(8) {
        let spreads = (problem.coefficients.iter())
            .map(|c| {
                format!("{}={}..{}", c.name, c.range[0], c.range[1])
                    .parse()
                    .unwrap()
            })
            .collect::<Vec<_>>();
        let family = Family::new(problem, &spreads).unwrap();
        let other = *family.ends().last().unwrap_or(&family.usual.physics);
        let problem: &'static Problem = Box::leak(Box::new(family.usual));
        let make = |form: &Problem| -> Result<Box<dyn FieldStep<f64>>, _> {
            Ok(Box::new(DescribedStep::<f64>::new(form)?))
        };
        let config = config(problem);
        let closed_loop = HostLoop::new(problem, make(problem).unwrap(), problem.horizon, &config)
            .unwrap()
            .for_family(Box::new(make));
        let trials = trials(problem, other);
        let parameters = lively(&closed_loop.shape);
        let (terms, tape) = closed_loop.forward(&parameters, &trials);
        // Terms of comparable size.
        let weights: [f64; TERMS] = std::array::from_fn(|k| {
            let size = terms.iter().map(|t| t[k].abs()).sum::<f64>();
            if size > 0.0 { 1.0 / size } else { 0.0 }
        });
        let gradient = closed_loop.backward(tape, &trials, &vec![weights; trials.len()]);
        let scale = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        assert!(scale > 0.0 && scale.is_finite(), "{}", problem.name);
        // Half at random, half downhill, so that the slope is not lost in rounding.
        let way: Vec<f64> = (gradient.iter())
            .map(|g| rng.random_range(-1.0..1.0) * g.abs() + 0.5 * g)
            .collect();
        let norm = way.iter().map(|d| d * d).sum::<f64>().sqrt();
        let slope = |h: f64| {
            let at = |h: f64| {
                // Parameters are f32: the step that rounding really made counts.
                let moved: Vec<f32> = (parameters.iter().zip(&way))
                    .map(|(&p, d)| (f64::from(p) + h * d / norm) as f32)
                    .collect();
                let gone = (moved.iter().zip(&parameters))
                    .map(|(&m, &p)| f64::from(m) - f64::from(p))
                    .collect::<Vec<_>>();
                let (terms, tape) = closed_loop.forward(&moved, &trials);
                closed_loop.recycle(tape);
                let sum: f64 = (terms.iter().flatten().zip(weights.iter().cycle()))
                    .map(|(term, weight)| term * weight)
                    .sum();
                (sum, gone)
            };
            let ((up, above), (down, below)) = (at(h), at(-h));
            let along = above.iter().zip(&below).zip(&gradient);
            let expected: f64 = along.map(|((a, b), g)| (a - b) * g).sum();
            (up - down) / expected - 1.0
        };
        let [long, short] = [4e-4, 2e-4].map(slope);
        judged += 1;
        if (long - short).abs() > 2e-3 {
            bent.push(problem.name);
            continue;
        }
        assert!(
            short.abs() < 2e-3,
            "{}: off by {short} and {long}",
            problem.name
        );
    }
    assert!(
        bent.len() * 10 <= judged,
        "{} of {judged}: {bent:?}",
        bent.len()
    );
}

/// Episodes that run side by side, one of them with coefficients of its own, feel nothing of each other.
#[test]
fn episodes_of_a_batch_are_those_run_alone() {
    let several = |p: &&&'static Problem| p.fields() > 1 && !p.coefficients.is_empty();
    let chosen: Vec<_> = DRAWN.problems.iter().filter(several).step_by(6).collect();
    assert!(chosen.len() >= 5, "{}", chosen.len());
    for &problem in chosen {
        let c = &problem.coefficients[0];
        let spread = format!("{}={}..{}", c.name, c.range[0], c.range[1]);
        let family = Family::new(problem, &[spread.parse().unwrap()]).unwrap();
        let make = |form: &Problem| -> Result<Box<dyn FieldStep<f64>>, _> {
            Ok(Box::new(DescribedStep::<f64>::new(form)?))
        };
        let (usual, config) = (&family.usual, config(problem));
        let closed_loop = HostLoop::new(usual, make(usual).unwrap(), usual.horizon, &config)
            .unwrap()
            .for_family(Box::new(make));
        let parameters = lively(&config.shape);
        let trials = trials(usual, *family.ends().last().unwrap());
        let (together, _) = closed_loop.forward(&parameters, &trials);
        for (trial, terms) in trials.iter().zip(together) {
            let (alone, _) = closed_loop.forward(&parameters, std::slice::from_ref(trial));
            for (a, b) in terms.iter().zip(alone[0]) {
                let close = (a - b).abs() <= 1e-9 * b.abs();
                assert!(close, "{}: {a} for {b}", problem.name);
            }
        }
    }
}

/// The weighted mean squared error that runs are judged by.
fn error(problem: &Problem, state: &[f64], target: &[f32]) -> f64 {
    let weights = problem.weights().unwrap_or_else(|| vec![1.0; state.len()]);
    let squares =
        (state.iter().zip(target).zip(weights)).map(|((z, t), w)| w * (z - f64::from(*t)).powi(2));
    squares.sum::<f64>() / state.len() as f64
}

/// Agents that follow a plan where they are: the loop's terms are the errors of the truth under their
/// kernels and the episode's disturbances.
#[test]
fn loops_make_the_errors_of_the_truth() {
    let fixed = DRAWN
        .problems
        .iter()
        .filter(|p| p.actuation.velocity_max == 0.0);
    let mut seen = 0;
    for &problem in fixed.step_by(3) {
        seen += 1;
        let episode = (problem.draw)(problem, &mut episode_rng(3, 0));
        let trial = Trial::plain(problem, problem.agents, episode);
        let step = Box::new(DescribedStep::<f64>::new(problem).unwrap());
        let closed_loop = HostLoop::new(problem, step, problem.horizon, &config(problem)).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        let plan = noise(&mut rng, problem.horizon * problem.agents, 1.5);
        let (terms, _) =
            closed_loop.forward_plans(vec![plan.clone()], std::slice::from_ref(&trial));

        let episode = &trial.episode;
        let mut state: Vec<f64> = episode.initial.iter().map(|z| f64::from(*z)).collect();
        let mut stepper = (problem.stepper)(problem, 1);
        let mut kernel = Kernel::new(problem);
        let mut errors = Vec::new();
        let (mut reached, change) = (vec![0.0; problem.agents], problem.force_change());
        for (step, plan) in plan.chunks(problem.agents).enumerate() {
            let mut force = vec![0.0; state.len()];
            for (agent, (place, before)) in trial.start.iter().zip(plan).enumerate() {
                let told = problem.actuation.force_max * before.tanh();
                reached[agent] += (told - reached[agent]).clamp(-change, change);
                let mut amplitudes = vec![0.0; problem.components()];
                amplitudes[problem.driven_field()] = reached[agent];
                kernel.act(&mut force, agent, *place, &amplitudes);
            }
            for push in &episode.pushes {
                for (force, field) in force.iter_mut().zip(&push.field) {
                    *force += push.course.at(step) * f64::from(*field);
                }
            }
            stepper.step(&mut state, &force);
            errors.push(error(problem, &state, &episode.target_at(step + 1)));
        }
        let scored = &errors[problem.scoring.from..];
        let mean = scored.iter().sum::<f64>() / scored.len() as f64;
        for (term, expected) in [(Term::Final, errors[errors.len() - 1]), (Term::Track, mean)] {
            let found = terms[0][term as usize];
            // Targets on their way are f32 for the truth.
            assert!(
                (found - expected).abs() <= 1e-5 * expected.max(1e-6),
                "{}: {} {found} for {expected}",
                problem.name,
                term.name()
            );
        }
    }
    assert!(seen >= 20, "{seen}");
}

#[test]
fn what_kernels_have_no_form_of_is_refused_by_name() {
    for problem in &DRAWN.problems {
        let kit = problem.kit.unwrap();
        let [along, across] = problem.grid.edges;
        let special = !kit.sensors[0].is_faithful()
            || kit.rate.is_finite()
            || kit.has_influence()
            || problem.grid.axes == 2 && along != across
            || kit::system::System::of(problem).has_hyperdiffusion();
        let refused = described::entry(problem).kernels.unwrap().0(problem).err();
        assert_eq!(refused.is_some(), special, "{}", problem.name);
        let said = refused.map_or(String::new(), |refused| refused.to_string());
        assert!(!special || said.contains("--backend flex"), "{said}");
    }
}

/// At the ends of its range, half-way between them and half-way from there the plate is the same everywhere.
#[test]
fn lines_that_differ_where_kernels_did_not_look_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hidden.toml");
    let text = "name = \"hidden\"\n[domain]\nunit = \"m\"\nsize = [1, 1]\ngrid = [9, 9]
[time]\nunit = \"s\"\ninterval = 0.01\nsteps = 4
[coefficients]\na = { value = 0.75, range = [0.25, 1.25] }
[fields.u]\nunit = \"1\"\nrange = [-1, 1]\ndiffusion = \"0.1 + 0.05*sin(4*pi*a)^2*x*y\"
[actuators]\nwidth = 0.2\nforce = 1\nplaces = { lattice = [2, 2] }\n[sensors]\nwindow = 4\n";
    std::fs::write(&path, text).unwrap();
    let problem = kit::load(&path).unwrap_or_else(|bad| panic!("{bad}"));
    let family = Family::new(problem, &["a=0.25..1.25".parse().unwrap()]).unwrap();
    let mut kernel = described::entry(problem).kernels.unwrap().0(problem).unwrap();
    family
        .corners
        .iter()
        .for_each(|corner| kernel.cover(corner));
    assert!(kernel.varying(&family.corners[0]).is_ok());
    let mut physics = problem.physics;
    physics[0] = 0.4;
    let form = problem.with_coefficients(physics).unwrap();
    let said = kernel.varying(&form).unwrap_err().to_string();
    assert!(
        said.contains("hidden") && said.contains("--backend flex"),
        "{said}"
    );
}

#[test]
fn every_example_is_a_problem() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/fields");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let files: Vec<PathBuf> = files
        .filter(|path| kit::is_file(&path.to_string_lossy()))
        .collect();
    assert!(files.len() >= 3, "{files:?}");
    for path in files {
        kit::load(&path).unwrap_or_else(|bad| panic!("{bad}"));
    }
}

/// The published problems as files, and in Rust: the same episodes end the same.
#[test]
fn published_problems_can_be_described() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/fields/published");
    for built_in in [
        &published::heat_1d::PROBLEM,
        &published::fkpp_1d::PROBLEM,
        &published::heat_2d::PROBLEM,
        &published::heat_2d_obstacles::PROBLEM,
    ] {
        let path = folder.join(format!("{}.toml", built_in.name));
        let described = kit::load(&path).unwrap();
        assert_eq!(
            (
                described.name,
                described.grid,
                described.horizon,
                described.agents
            ),
            (
                built_in.name,
                built_in.grid,
                built_in.horizon,
                built_in.agents
            )
        );
        assert_eq!(
            (described.placement)(described, 7).len(),
            (built_in.placement)(built_in, 7).len()
        );
        for index in 0..3 {
            let Episode {
                initial, target, ..
            } = (built_in.draw)(built_in, &mut episode_rng(1, index));
            for height in [0.0, 0.2 * built_in.actuation.force_max] {
                let [found, expected] = [described, built_in].map(|problem| {
                    let mut rng = ChaCha8Rng::seed_from_u64(index);
                    let mut state: Vec<f64> = initial.iter().map(|z| f64::from(*z)).collect();
                    let mut stepper = (problem.stepper)(problem, 1);
                    for _ in 0..problem.horizon {
                        let force: Vec<f64> = (0..state.len())
                            .map(|_| height * rng.random_range(-1.0..1.0))
                            .collect();
                        stepper.step(&mut state, &force);
                    }
                    error(problem, &state, &target)
                });
                assert!(
                    (found / expected - 1.0).abs() <= 1e-9,
                    "{}: {found} for {expected}",
                    built_in.name
                );
            }
        }
    }
}

#[cfg(feature = "gpu")]
#[path = "described/on_gpu.rs"]
mod on_gpu;
