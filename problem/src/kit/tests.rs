//! What files are refused for, and what those that are not mean.

use super::build::described;
use super::domain::BOX_SIDES;
use super::system::System;
use super::{BadFile, Kit};
use crate::Problem;
use crate::grid::Edge;
use crate::random_field::episode_rng;
use proptest::prelude::*;
use std::f64::consts::PI;
use std::path::{Path, PathBuf};

/// A plate with a hole.
const PLATE: &str = r#"name = "plate"

[domain]
unit = "m"
size = [1, 2]
grid = [11, 21]
cuts = [{ name = "hole", disc = { centre = [0.5, 1], radius = 0.22 } }]

[time]
unit = "s"
interval = 0.01
steps = 20

[coefficients]
a = { value = 0.5, range = [0.1, 1] }

[fields.u]
unit = "K"
range = [-1, 1]
diffusion = 0.1
reaction = "a*u*(1-u)"
edges = { all = "insulated" }
initial = 0.3

[actuators]
width = 0.2
force = 2
places = { list = [[0.1, 0.1], [0.9, 1.9]] }

[sensors]
window = 4
"#;

fn load(text: &str) -> Result<&'static Problem, BadFile> {
    described(Path::new("plate.toml"), text)
}

/// The plate with one thing said otherwise.
fn with(from: &str, to: &str) -> String {
    assert_eq!(PLATE.matches(from).count(), 1, "{from}");
    PLATE.replace(from, to)
}

fn loaded(from: &str, to: &str) -> &'static Problem {
    load(&with(from, to)).unwrap_or_else(|bad| panic!("{to}: {bad}"))
}

fn kit(problem: &Problem) -> &'static Kit {
    problem.kit.unwrap()
}

/// A folder for files beside descriptions, one per test.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("kit-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn npy(shape: &str, values: &[f32]) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    file
}

fn assert_refused(text: &str, line: usize, words: &[&str]) {
    let bad = match load(text) {
        Err(bad) => bad,
        Ok(_) => panic!("{words:?} is accepted:\n{text}"),
    };
    let said = bad.to_string();

    assert!(
        said.starts_with(&format!("plate.toml:{line}: ")),
        "line {line} {words:?}: {said}"
    );
    assert_one_sentence(&bad);
    for word in words {
        assert!(said.contains(word), "{word}: {said}");
    }
}

fn assert_one_sentence(bad: &BadFile) {
    let text = bad.to_string();
    assert!(!text.contains('\n') && !text.contains("  "), "{text:?}");
    assert!(bad.what.len() > 10 && bad.line.is_some(), "{text:?}");
}

#[test]
fn the_plate_itself_is_a_problem() {
    let problem = load(PLATE).unwrap();
    assert_eq!(
        (problem.name, problem.agents, problem.horizon),
        ("plate", 2, 20)
    );
    assert!(!problem.tracking && problem.grid.shape() == [11, 21]);
}

#[test]
fn refusals_name_the_line_and_what_is_wrong_there() {
    let diffusion = "diffusion = 0.1";
    let reaction = "\"a*u*(1-u)\"";
    let insulated = "{ all = \"insulated\" }";
    let places = "{ list = [[0.1, 0.1], [0.9, 1.9]] }";
    let window = "window = 4";
    let whole = "value = 0.5, range = [0.1, 1]";
    let cuts = "cuts = [{ name = \"hole\", disc = { centre = [0.5, 1], radius = 0.22 } }]";
    let end = "window = 4\n";
    for (from, to, line, words) in [
        // Keys and units.
        (
            "unit = \"m\"",
            "unit = \"m\"\ncolour = 3",
            5,
            &["'colour' means nothing here", "there is: 'unit', 'size'"][..],
        ),
        ("unit = \"K\"\n", "", 17, &["'unit' is missing here"]),
        ("unit = \"m\"\n", "", 3, &["'unit' is missing here"]),
        ("unit = \"K\"", "unit = \" \"", 18, &["a unit is missing"]),
        (
            "[sensors]\nwindow = 4\n",
            "",
            1,
            &["'sensors' is missing here"],
        ),
        (
            "interval = 0.01",
            "interval = \"soon\"",
            11,
            &["a number is expected here, not string \"soon\""],
        ),
        ("interval = 0.01", "interval = ", 11, &["value"]),
        (
            insulated,
            "{ all = \"insolated\" }",
            22,
            &["write \"insulated\", \"periodic\"", "fixed"],
        ),
        (
            insulated,
            "{ all = { convective = 1, ambiant = 3 } }",
            22,
            &["convective", "ambient"],
        ),
        (
            places,
            "{ lattice = [2, 2], hihg = [1, 1] }",
            28,
            &["lattice", "high"],
        ),
        // Names.
        ("\"plate\"", "\"my plate\"", 1, &["'my plate' is no name"]),
        ("\"plate\"", "\"\"", 1, &["no name"]),
        ("[fields.u]", "[fields.\"2u\"]", 17, &["'2u' is no name"]),
        ("[fields.u]", "[fields.x]", 17, &["'x' is no name"]),
        ("[fields.u]", "[fields.sin]", 17, &["sin", "function"]),
        ("a = {", "u = {", 15, &["'u' is a field already"]),
        (
            "name = \"hole\"",
            "name = \"left\"",
            7,
            &["'left'", "otherwise"],
        ),
        // Fields that are not there.
        (
            window,
            "window = 4\nfield = \"w\"",
            32,
            &["no field 'w'", "there is: u"],
        ),
        (
            "width = 0.2",
            "field = \"w\"\nwidth = 0.2",
            26,
            &["no field 'w'"],
        ),
        (
            end,
            "window = 4\n[[disturbances]]\nfield = \"w\"\nbell = { centre = [0, 0], width = 1 }\nstrength = 1",
            33,
            &["no field 'w'"],
        ),
        (
            "[domain]",
            "order = [\"v\"]\n[domain]",
            3,
            &["'v'", "no field"],
        ),
        (
            insulated,
            "{ front = \"insulated\" }",
            22,
            &["no side 'front'", "left", "hole"],
        ),
        // Expressions.
        (reaction, "\"a*w\"", 21, &["no 'w'", "u, a, x, y, t"]),
        (reaction, "\"1/u\"", 21, &["not finite", "u = 0"]),
        (reaction, "\"ln(u)\"", 21, &["not finite at u ="]),
        (reaction, "\"a/(u - 0.3)\"", 21, &["not finite at u = 0.3"]),
        (reaction, "\"a*(u\"", 21, &["parentheses"]),
        (
            diffusion,
            "diffusion = \"0.1*u\"",
            20,
            &["must not depend on u"],
        ),
        (
            diffusion,
            "diffusion = \"0.1*t\"",
            20,
            &["must not depend on t"],
        ),
        (
            diffusion,
            "diffusion = -0.1",
            20,
            &["nowhere negative", "-0.1"],
        ),
        (
            diffusion,
            "diffusion = \"0.4 - a\"",
            20,
            &["nowhere negative", "-0.6"],
        ),
        (
            diffusion,
            "diffusion = \"x - 0.2\"",
            20,
            &["nowhere negative", "-0.2"],
        ),
        (diffusion, "diffusion = 1e30", 20, &["mixes", "unit"]),
        (diffusion, "hyperdiffusion = 1e30", 20, &["mixes", "unit"]),
        (diffusion, "hyperdiffusion = 0", 20, &["is positive"]),
        (
            diffusion,
            "hyperdiffusion = \"a - 0.5\"",
            20,
            &["is positive", "-0.4"],
        ),
        (
            diffusion,
            "hyperdiffusion = \"0.1 + x\"",
            20,
            &["must not depend on x or y"],
        ),
        (
            "diffusion = 0.1\nreaction = \"a*u*(1-u)\"\nedges = { all = \"insulated\" }",
            "diffusion = \"0.1 - 0.2*x\"\nhyperdiffusion = 0.1\nedges = { hole = { convective = 1 } }",
            22,
            &["must be positive there, not -0.0", "insulated"],
        ),
        (diffusion, "diffusion = inf", 20, &["finite"]),
        (diffusion, "velocity = [1]", 20, &["1 components", "has 2"]),
        (
            "initial = 0.3",
            "initial = 1e300",
            23,
            &["single precision"],
        ),
        (
            "initial = 0.3",
            "initial = { random = { length = 0.01, amplitude = 1 } }",
            23,
            &["spacing"],
        ),
        (
            "initial = 0.3",
            "initial = { random = { amplitude = 1 } }",
            23,
            &["length"],
        ),
        // Actuators.
        (
            places,
            "{ list = [[0.1, 0.1], [1.02, 1]] }",
            28,
            &["[1.02, 1.0] is outside the domain"],
        ),
        (
            places,
            "{ list = [[0.5, 1.05]] }",
            28,
            &["[0.5, 1.05] is outside the domain"],
        ),
        (places, "{ list = [[0.5]] }", 28, &["2 coordinates"]),
        (places, "{ list = [] }", 28, &["no place"]),
        (places, "{ lattice = [2] }", 28, &["2 numbers"]),
        (
            places,
            "{ lattice = [4294967296, 4294967296] }",
            28,
            &["in all"],
        ),
        (
            places,
            "{ lattice = [2, 2], high = [2, 2] }",
            28,
            &["corner [2.0, 2.0] is outside"],
        ),
        (
            places,
            "{ lattice = [1, 1], low = [0.5, 1], high = [0.5, 1] }",
            28,
            &["no room"],
        ),
        (
            "force = 2",
            "force = 0",
            27,
            &["actuators.force must be positive"],
        ),
        (
            "force = 2",
            "force = 2\nrate = 0",
            28,
            &["actuators.rate must be positive"],
        ),
        ("width = 0.2", "", 27, &["width", "influence"]),
        (
            "force = 2",
            "force = 2\ninfluence = \"none.npy\"",
            26,
            &["leave width out"],
        ),
        (
            "width = 0.2",
            "influence = \"none.npy\"",
            26,
            &["cannot read none.npy"],
        ),
        // A wall, and one shape more than there are discs for.
        (
            "force = 2",
            "force = 2\nkeep_out = [{ rectangle = [[0.1, 0.3], [0.9, 0.32]] }]",
            28,
            &["the 4 that are left for keep-out 1", "discs of your own"],
        ),
        (
            "force = 2",
            "force = 2\nspeed = 1\nkeep_out = [{ disc = { centre = [0.1, 0.5], radius = 0.1 } }, { disc = { centre = [0.3, 0.5], radius = 0.1 } }, { disc = { centre = [0.7, 0.5], radius = 0.1 } }, { disc = { centre = [0.9, 0.5], radius = 0.1 } }]",
            7,
            &["none left for hole"],
        ),
        (
            "force = 2",
            "force = 2\nkeep_out = [{ disc = { centre = [0.5, 0.3], radius = 1e-4 } }]",
            28,
            &["keep-out 1 is too small", "0.002"],
        ),
        // The domain.
        ("grid = [11, 21]", "grid = [3, 21]", 6, &["at least 4"]),
        ("grid = [11, 21]", "grid = [11]", 6, &["2 numbers"]),
        ("grid = [11, 21]", "grid = [3000, 3000]", 6, &["memory"]),
        (
            "grid = [11, 21]",
            "grid = [4294967296, 4294967296]",
            6,
            &["memory"],
        ),
        ("size = [1, 2]", "size = [1, -2]", 5, &["length"]),
        ("size = [1, 2]", "size = [1, nan]", 5, &["two on a plane"]),
        (
            cuts,
            "cuts = [{ rectangle = [[-1, 0.45], [2, 0.75]] }]",
            7,
            &["2 parts", "parts = 2"],
        ),
        (
            cuts,
            "cuts = [{ disc = { centre = [0, 0], radius = 9 } }]",
            7,
            &["nothing is left"],
        ),
        (
            cuts,
            "cuts = [{ name = \"hole\" }]",
            7,
            &["disc", "rectangle", "polygon"],
        ),
        (cuts, "mask = \"none.png\"", 7, &["cannot read none.png"]),
        (
            diffusion,
            "diffusion = \"none.npy\"",
            20,
            &["cannot read none.npy"],
        ),
        // Sizes, ranges and times.
        (window, "window = 10", 31, &["window of 10", "1 to 9"]),
        (window, "window = 0", 31, &["window of 0"]),
        (
            window,
            "window = 5\nspacing = 2",
            31,
            &["window of 5, 2 points from one to the next,", "1 to 4"],
        ),
        (
            window,
            "window = 1\nspacing = 0",
            32,
            &["by 0 points", "1 to 5"],
        ),
        (
            window,
            "window = 1\nspacing = 6",
            32,
            &["by 6 points", "1 to 5"],
        ),
        ("range = [-1, 1]", "range = [1, -1]", 19, &["[least, most]"]),
        (
            "range = [-1, 1]",
            "range = [-inf, 1]",
            19,
            &["[least, most]"],
        ),
        (
            whole,
            "value = 0.5, range = [1, 0.1]",
            15,
            &["range of a is [least, most]"],
        ),
        (
            whole,
            "value = 2, range = [0.1, 1]",
            15,
            &["does not hold its value 2"],
        ),
        ("steps = 20", "steps = 0", 12, &["1 to 1000000 steps"]),
        ("interval = 0.01", "interval = -1", 11, &["positive"]),
        ("interval = 0.01", "interval = 1e-9", 11, &["unit of time"]),
        ("steps = 20", "steps = 20\nsubsteps = 0", 13, &["0 steps"]),
        (
            "initial = 0.3",
            "goal = { field = 1, at = 0.5 }",
            23,
            &["within the episode", "0.2"],
        ),
        (
            "initial = 0.3",
            "goal = [\n{ field = 1, at = 0.05 },\n{ field = 1, at = [0.04, 0.1] }]",
            25,
            &["goal 2 begins at 0.04, before goal 1 at 0.05", "order"],
        ),
        (
            "initial = 0.3",
            "goal = [{ field = 1, at = 0.01 },\n{ field = 1, at = [0.02, 0.05], over = 0.02 },\n{ field = 0, at = 0.06 }]",
            25,
            &["goal 3 may begin at 0.06", "goal 2 may not be reached"],
        ),
        (
            "initial = 0.3",
            "goal = [{ field = 1, at = 0.01, lasts = 0.1 },\n{ field = 0, at = 0.1 }]",
            24,
            &["goal 2 may begin at 0.1", "not be gone again before 0.11"],
        ),
        (
            "initial = 0.3",
            "goal = [{ field = 1, at = 0.01 },\n{ field = 0, when = 0.1 }]",
            24,
            &["'when' means nothing here", "at"],
        ),
        (
            "initial = 0.3",
            "goal = 3",
            23,
            &["field = …, at = …", "expected here"],
        ),
        ("initial = 0.3", "weight = -1", 23, &["weight"]),
        ("initial = 0.3", "weight = 0", 31, &["no error counts"]),
        (
            end,
            "window = 4\n[score]\nfrom = 0.2",
            33,
            &["score.from", "before the end"],
        ),
        (
            end,
            "window = 4\n[[disturbances]]\ndisc = { centre = [0.5, 1], radius = 0.1 }\nstrength = 1",
            34,
            &["reaches no point"],
        ),
        (
            end,
            "window = 4\n[score]\nregions = [{ disc = { centre = [0.05, 0.05], radius = 0.04 } }]",
            33,
            &["holds no point"],
        ),
        (
            end,
            "window = 4\n[score]\nregions = [{ interval = [0, 1] }]",
            33,
            &["disc = {", "interval"],
        ),
        (end, "window = 4\nnoise = -1", 32, &["sensors.noise"]),
        (
            end,
            "window = 4\nrange = [1, 1]",
            32,
            &["sensor's range", "[1, 1]"],
        ),
        (
            end,
            "window = 4\nquantisation = 0",
            32,
            &["sensors.quantisation"],
        ),
        (
            end,
            "window = 4\nfield = [\"u\", \"w\"]",
            32,
            &["no field 'w'", "there is: u"],
        ),
        (
            end,
            "window = 4\nfield = [\"u\", \"u\"]",
            32,
            &["'u' is seen twice"],
        ),
        (end, "window = 4\nfield = []", 32, &["at least one field"]),
        (
            end,
            "window = 4\nnoise = [0.1, 0.2]",
            32,
            &["see 1 field", "about 2", "once for each"],
        ),
        (
            end,
            "window = 4\nrange = [[0, 1], [1]]",
            32,
            &["in a list one for each field"],
        ),
        (end, "window = 4\n[training]\nbatch = 0", 32, &["batch = 1"]),
        (
            end,
            "window = 4\n[training]\nneighbours = 1.5",
            33,
            &["neighbours is a share", "not 1.5"],
        ),
        (
            end,
            "window = 4\n[training]\nneighbours = 0.5\nmissing = [0.5, 2]",
            34,
            &["missing = [share of episodes"],
        ),
        (
            end,
            "window = 4\n[training]\nmissing = [0.5, 0.1]",
            33,
            &["give neighbours too"],
        ),
        // Tori.
        (
            insulated,
            "{ left = \"periodic\", right = \"insulated\" }",
            22,
            &["left and right are periodic together"],
        ),
        (
            insulated,
            "{ left = \"insulated\", top = \"periodic\" }",
            22,
            &["bottom and top are periodic together"],
        ),
        (
            "initial = 0.3",
            "[fields.v]\nunit = \"1\"\nrange = [0, 1]\nedges = { bottom = \"periodic\", top = \"periodic\" }",
            26,
            &["bottom and top", "for all fields"],
        ),
        (insulated, "{ hole = \"periodic\" }", 22, &["not 'hole'"]),
    ] {
        assert_refused(&with(from, to), line, words);
    }
}

/// Agents that are trained to see by themselves, on a line as in a plane.
#[test]
fn what_nodes_by_themselves_cannot_see_is_no_training() {
    let sees = |text: &str, settings: &str| format!("{text}[training]\n{settings}\n");
    let plane = |from: &str, to: &str| sees(&with(from, to), "neighbours = 0.7");
    let last = |text: &str| text.lines().count();
    let refused = |text: &str, words: &[&str]| assert_refused(text, last(text), words);
    refused(
        &plane("force = 2", "force = 2\nspeed = 1"),
        &["neighbours needs agents that stay"],
    );
    let goal = "initial = 0.3\ngoal = { field = 1, at = 0.1 }";
    refused(&plane("initial = 0.3", goal), &["a target that stays"]);
    let around = "{ left = \"periodic\", right = \"periodic\" }";
    refused(
        &plane("{ all = \"insulated\" }", around),
        &["across a seam"],
    );
    let both = with_humidity("field = [\"u\", \"h\"]");
    refused(
        &sees(&both, "neighbours = 0.7"),
        &["agents that see one field"],
    );
    let line = PLATE
        .replace("size = [1, 2]", "size = [1]")
        .replace("[11, 21]", "[21]");
    let line: Vec<&str> = line
        .lines()
        .filter(|line| !line.starts_with("cuts"))
        .collect();
    let line = line
        .join("\n")
        .replace("[[0.1, 0.1], [0.9, 1.9]]", "[[0.1], [0.9]]")
        + "\n";
    refused(&sees(&line, "neighbours = 0.7"), &["sensors of their own"]);
    refused(
        &sees(&line, "missing = [0.5, 0.1]"),
        &["slopes = false too"],
    );

    let told = |text: &str| -> String {
        let problem = load(text).unwrap_or_else(|bad| panic!("{bad}"));
        let all = kit(problem).told(problem);
        all.iter().map(|told| format!("{}\n", told.what)).collect()
    };
    let told_line = told(&sees(&line, "slopes = false\nmissing = [0.5, 0.1]"));
    assert!(
        told_line.contains("in 0.5 of the episodes up to 0.1 of the sensors fail"),
        "{told_line}"
    );
    let told_plane = told(&sees(PLATE, "neighbours = 0.7\nmissing = [0.5, 0.1]"));
    assert!(
        told_plane.contains("in 0.7 of the episodes agents see their own cell")
            && told_plane.contains("; in 0.5 of these up to 0.1 of the sensors fail"),
        "{told_plane}"
    );
    assert!(!told(PLATE).contains("sensors fail"));
}

/// A blob has no other place for it.
#[test]
fn policies_for_spaced_windows_are_called_so() {
    assert_eq!(load(PLATE).unwrap().seen_as(), "plate");
    let apart = with("window = 4", "window = 4\nspacing = 2");
    let problem = load(&apart).unwrap();
    assert_eq!((problem.name, problem.seen_as()), ("plate", "plate/2"));
    let long = "name-of-just-thirty-two-letters.".replace('.', "-");
    let refused = apart.replace("\"plate\"", &format!("\"{long}\""));
    assert_refused(&refused, 1, &["/2'", "longer than 32 letters"]);
}

/// The plate with another field, whose agents see both.
fn with_humidity(sensors: &str) -> String {
    let other = "[fields.h]\nunit = \"1\"\nrange = [0, 4]\n\n[actuators]\nfield = \"u\"";
    with("window = 4", &format!("window = 4\n{sensors}")).replace("[actuators]", other)
}

#[test]
fn policies_that_see_several_fields_are_called_so_and_each_has_its_sensor() {
    let both = with_humidity("field = [\"u\", \"h\"]\nnoise = [0.1, 0.2]\nquantisation = 0.5");
    let problem = load(&both).unwrap();
    let kit = problem.kit.unwrap();
    assert_eq!(problem.seen_as(), "plate+h");
    assert_eq!(problem.other_windows(4), Some([4, 4]));
    let noises: Vec<f64> = kit.sensors.iter().map(|sensor| sensor.noise).collect();
    assert_eq!(noises, [0.1, 0.2]);
    assert!(kit.sensors.iter().all(|sensor| sensor.quantisation == 0.5));
    // By name h comes first; what is seen first counts.
    let state = [1, 2];
    let seen: Vec<&[i32]> = problem.all_seen(&state).collect();
    assert_eq!(seen, [[2], [1]]);
    let weights = problem.weights().unwrap();
    let (humidity, temperature) = weights.split_at(weights.len() / 2);
    assert!(humidity.iter().all(|weight| *weight == 0.0));
    assert!(temperature.iter().any(|weight| *weight > 0.0));

    let apart = load(&with_humidity("field = [\"h\", \"u\"]\nspacing = 2")).unwrap();
    assert_eq!(apart.seen_as(), "plate/2+u");
    let one = load(&with_humidity("field = [\"h\"]")).unwrap();
    assert_eq!((one.seen_as(), one.other_windows(4)), ("plate", None));
}

/// u_t = −1000 u: two steps of 1/1000 in an interval of 1/100 are five times too long.
#[test]
fn a_step_that_cannot_be_stable_is_refused() {
    let stiff = with("\"a*u*(1-u)\"", "\"-1000*u\"");
    let given = |n: usize| stiff.replace("steps = 20", &format!("steps = 20\nsubsteps = {n}"));
    assert_refused(&given(2), 13, &["2 steps", "give 5 to"]);
    assert!(load(&given(5)).is_ok());
    // And where nothing is given, as many are found as resolve it.
    assert!(load(&stiff).unwrap().substeps >= 5);
    let hopeless = with("\"a*u*(1-u)\"", "\"1e7*u*(1-u)\"");
    assert_refused(&hopeless, 11, &["blow up", "time.interval"]);
}

#[test]
fn a_domain_in_two_parts_is_accepted_where_that_is_said() {
    let cuts = "cuts = [{ name = \"hole\", disc = { centre = [0.5, 1], radius = 0.22 } }]";
    let wall = "cuts = [{ rectangle = [[-1, 0.45], [2, 0.75]] }]";
    let problem = loaded(cuts, &format!("{wall}\nparts = 2"));
    assert_eq!(kit(problem).domain(&problem.grid).parts().len(), 2);
}

#[test]
fn a_torus_may_have_a_hole_with_an_edge_of_its_own() {
    let problem = loaded(
        "{ all = \"insulated\" }",
        "{ all = \"periodic\", hole = { fixed = 1 } }",
    );
    assert!(problem.grid.is_closed());
    assert!(!System::of(problem).fields[0].operator.fixed.is_empty());
}

/// A pipe: round along y, with ends along x.
#[test]
fn a_box_may_be_periodic_along_one_axis() {
    let problem = loaded(
        "{ all = \"insulated\" }",
        "{ all = \"periodic\", left = { fixed = 1 }, right = \"insulated\" }",
    );
    let grid = problem.grid;
    assert_eq!(grid.edges, [Edge::Wall, Edge::Periodic]);
    assert_eq!((grid.spacing(0), grid.spacing(1)), (0.1, 2.0 / 21.0));
    let system = System::of(problem);
    assert!((system.domain.pieces().iter()).all(|p| p.side < 2 || p.side >= BOX_SIDES));
    assert_eq!(system.fields[0].operator.fixed.len(), 21);
    // What is not said of a field's sides goes by the other fields'.
    let two = with(
        "initial = 0.3",
        "[fields.v]\nunit = \"1\"\nrange = [0, 1]\nedges = { left = { fixed = 0 } }",
    );
    let two = two.replace(
        "{ all = \"insulated\" }",
        "{ bottom = \"periodic\", top = \"periodic\" }",
    );
    let problem = load(&two).unwrap();
    assert_eq!(problem.grid.edges, [Edge::Wall, Edge::Periodic]);
}

/// A stretch of a line may be pushed and may count more; over the seam of a ring it goes on.
#[test]
fn lines_have_intervals() {
    let text = with("size = [1, 2]", "size = [1]")
        .replace("grid = [11, 21]", "grid = [10]")
        .replace(
            "cuts = [{ name = \"hole\", disc = { centre = [0.5, 1], radius = 0.22 } }]",
            "",
        )
        .replace("{ all = \"insulated\" }", "{ all = \"periodic\" }")
        .replace("[[0.1, 0.1], [0.9, 1.9]]", "[[0.1]]")
        + "[[disturbances]]\ninterval = [0.75, 1.15]\nstrength = 1\n[score]\nelsewhere = 0\nregions = [{ interval = [0.45, 0.25] }]\n";
    let problem = load(&text).unwrap();
    let episode = (problem.draw)(problem, &mut episode_rng(0, 0));
    let pushed: Vec<usize> = (0..10)
        .filter(|&k| episode.pushes[0].field[k] == 1.0)
        .collect();
    assert_eq!(pushed, [0, 1, 8, 9]);
    let weights = problem.weights().unwrap();
    let counted: Vec<usize> = (0..10).filter(|&k| weights[k] > 0.0).collect();
    assert_eq!(counted, [3, 4]);
    let cut = text.replace("[time]", "cuts = [{ interval = [0.2, 0.4] }]\n[time]");
    assert!(load(&cut).unwrap_err().what.contains("nothing to cut"));
}

#[test]
fn goals_of_two_fields_come_together() {
    let two = |over: &str| {
        with(
            "initial = 0.3",
            &format!(
                "goal = {{ field = 1, at = 0.1 }}\n[fields.v]\nunit = \"1\"\nrange = [0, 1]\ngoal = {{ field = 0.5, at = 0.1{over} }}"
            ),
        )
    };
    assert!(load(&two("")).is_ok());
    assert_refused(&two(", over = 0.05"), 27, &["the same at, over and lasts"]);
}

#[test]
fn arrays_of_another_shape_are_refused() {
    let folder = folder("shapes");
    let file = folder.join("plate.toml");
    std::fs::write(folder.join("line.npy"), npy("(5,)", &[0.1; 5])).unwrap();
    std::fs::write(folder.join("small.npy"), npy("(3, 4)", &[0.1; 12])).unwrap();
    std::fs::write(folder.join("negative.npy"), npy("(4, 4)", &[-0.1; 16])).unwrap();
    std::fs::write(folder.join("plain.npy"), npy("(4, 5)", &[0.1; 20])).unwrap();
    std::fs::write(folder.join("cut.npy"), &npy("(4, 5)", &[0.1; 20])[..90]).unwrap();
    let diffusion = |name: &str| with("diffusion = 0.1", &format!("diffusion = \"{name}\""));
    for (name, words) in [
        ("line.npy", &["shape [5]", "[x, y]"][..]),
        ("small.npy", &["shape [3, 4]", "at least 4"]),
        ("negative.npy", &["nowhere negative"]),
        ("cut.npy", &["cut.npy"]),
    ] {
        let bad = described(&file, &diffusion(name)).unwrap_err();
        assert_one_sentence(&bad);
        let said = bad.to_string();
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
        assert_eq!(bad.line, Some(20), "{said}");
    }
    assert!(described(&file, &diffusion("plain.npy")).is_ok());
    let flow = with("diffusion = 0.1", "velocity = \"plain.npy\"");
    let said = described(&file, &flow).unwrap_err().to_string();
    assert!(said.contains("[2, x, y]"), "{said}");
    let start = with("initial = 0.3", "initial = { file = \"plain.npy\" }");
    let said = described(&file, &start).unwrap_err().to_string();
    assert!(said.contains("[samples, x, y]"), "{said}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// Measured actuators: one by one, where they are, as many as there are maps.
#[test]
fn influence_maps_say_what_each_of_a_list_of_actuators_does() {
    let folder = folder("influence");
    let file = folder.join("plate.toml");
    let bell = |k: usize, [x, y]: [f64; 2]| {
        let [a, b] = [[0.1, 0.1], [0.9, 1.9]][k];
        (-((x - a).powi(2) + (y - b).powi(2)) / (2.0 * 0.2 * 0.2)).exp()
    };
    // Twice as fine as the grid.
    let place = |node: usize| [(node / 41) as f64 * 0.05, (node % 41) as f64 * 0.05];
    let maps = |count: usize| -> Vec<f32> {
        let all = (0..count).flat_map(|k| (0..21 * 41).map(move |node| (k, node)));
        all.map(|(k, node)| bell(k % 2, place(node)) as f32)
            .collect()
    };
    std::fs::write(folder.join("maps.npy"), npy("(2, 21, 41)", &maps(2))).unwrap();
    std::fs::write(folder.join("three.npy"), npy("(3, 21, 41)", &maps(3))).unwrap();
    std::fs::write(folder.join("none.npy"), npy("(2, 4, 4)", &[0.0; 32])).unwrap();
    let text = |name: &str| with("width = 0.2", &format!("influence = \"{name}\""));
    let problem = described(&file, &text("maps.npy")).unwrap();
    assert!((0.1..0.3).contains(&problem.actuation.width), "{problem:?}");
    let mut kernel = crate::actuate::Kernel::new(problem);
    for k in 0..2 {
        let mut force = vec![1.0; problem.grid.len()];
        kernel.act(&mut force, k, [0.1, 0.1], &[-3.0]);
        for (node, force) in force.iter().enumerate() {
            let expected = 1.0 - 3.0 * bell(k, problem.grid.place(node));
            assert!((force - expected).abs() < 1e-6, "{k}: {node}");
        }
    }
    assert!(problem.check_agents(2).is_ok());
    let said = problem.check_agents(3).unwrap_err().to_string();
    assert!(said.contains("--agents 2"), "{said}");
    let lattice = |text: String| {
        let list = "{ list = [[0.1, 0.1], [0.9, 1.9]] }";
        text.replace(list, "{ lattice = [1, 2] }")
    };
    for (text, line, words) in [
        (text("three.npy"), 26, "[2, x, y]"),
        (text("none.npy"), 26, "map 1 of 2 has no effect"),
        (lattice(text("maps.npy")), 28, "places = { list"),
        (
            text("maps.npy").replace("force = 2", "force = 2\nspeed = 1"),
            28,
            "leave speed out",
        ),
    ] {
        let bad = described(&file, &text).unwrap_err();
        assert_one_sentence(&bad);
        assert!(bad.to_string().contains(words), "{bad}");
        assert_eq!(bad.line, Some(line), "{bad}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Cut-outs of any shape are kept out of by mobile agents as far as there are discs.
#[test]
fn discs_stand_for_shapes_and_what_is_left_open_is_told() {
    let mobile = |cuts: &str| {
        let cut = "{ name = \"hole\", disc = { centre = [0.5, 1], radius = 0.22 } }";
        let text = with(cut, cuts).replace("force = 2", "force = 2\nspeed = 1");
        load(&text).unwrap()
    };
    let told = |problem: &Problem| -> String {
        let all = kit(problem).told(problem);
        all.iter().map(|told| format!("{}\n", told.what)).collect()
    };
    let square = mobile("{ name = \"post\", rectangle = [[0.3, 0.8], [0.7, 1.2]] }");
    assert_eq!(square.keep_out.len(), 1);
    assert!(
        told(square).contains("post, by one disc that forbids"),
        "{}",
        told(square)
    );
    let wall = mobile(
        "{ name = \"wall\", rectangle = [[0.2, 0.2], [0.8, 0.4]] }, { name = \"hole\", disc = { centre = [0.5, 1], radius = 0.22 } }, { name = \"beam\", rectangle = [[0.2, 1.4], [0.4, 1.9]] }",
    );
    assert_eq!(wall.keep_out[0].radius, 0.22);
    assert!(told(wall).contains("hole, a disc"), "{}", told(wall));
    assert!(
        told(wall).contains("beam is open to agents"),
        "{}",
        told(wall)
    );
    let still = loaded("force = 2", "force = 3");
    assert!(still.keep_out.is_empty());
}

/// Maps are read between their points, so that a sharp one neither rings nor leaves its range.
#[test]
fn a_sharp_map_of_a_diffusivity_stays_within_its_range() {
    let folder = folder("sharp");
    let values: Vec<f32> = (0..35)
        .map(|k| if k % 3 == 0 { 1.0 } else { 0.0 })
        .collect();
    std::fs::write(folder.join("map.npy"), npy("(5, 7)", &values)).unwrap();
    let text = with("diffusion = 0.1", "diffusion = \"map.npy\"");
    let problem = described(&folder.join("plate.toml"), &text).unwrap();
    let kit = kit(problem);
    let map = kit.mapped(problem, &problem.grid, &kit.described[0].diffusion);
    assert!(map.iter().all(|d| (0.0..=1.0).contains(d)), "{map:?}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// Columns go along x, rows down along y, bright is inside: a picture whose upper left quarter is dark has
/// no nodes at low x and high y.
#[test]
fn pictures_of_domains_stand_upright() {
    let folder = folder("picture");
    let (width, height) = (10, 20);
    let pixels: Vec<u8> = (0..width * height)
        .map(|k| match (k % width < 5, k / width < 10) {
            (true, true) => 0,
            _ => 255,
        })
        .collect();
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Grayscale);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&pixels).unwrap();
    writer.finish().unwrap();
    std::fs::write(folder.join("mask.png"), bytes).unwrap();
    let cuts = "cuts = [{ name = \"hole\", disc = { centre = [0.5, 1], radius = 0.22 } }]";
    let text = with(cuts, "mask = \"mask.png\"");
    let problem = described(&folder.join("plate.toml"), &text).unwrap();
    let domain = kit(problem).domain(&problem.grid);
    for node in 0..problem.grid.len() {
        let [x, y] = problem.grid.place(node);
        // The boundary itself is wherever the nearest pixels say.
        if (x - 0.5).abs() > 0.11 && (y - 1.0).abs() > 0.11 {
            assert_eq!(domain.wet(node), !(x < 0.5 && y > 1.0), "{x} {y}");
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn weights_are_one_on_average_and_zero_where_it_is_dry() {
    let text = with("window = 4\n", "window = 4\n[score]\nelsewhere = 0.5\nregions = [{ rectangle = [[0, 0], [1, 0.5]], weight = 4 }]\n")
        .replace("initial = 0.3", "[fields.v]\nunit = \"1\"\nrange = [0, 1]\nweight = 3");
    let problem = load(&text).unwrap();
    let (weights, domain) = (
        problem.weights().unwrap(),
        kit(problem).domain(&problem.grid),
    );
    let nodes = problem.grid.len();
    assert_eq!(weights.len(), 2 * nodes);
    let mean = weights.iter().sum::<f64>() / weights.len() as f64;
    assert!((mean - 1.0).abs() < 1e-12, "{mean}");
    let at = |node: usize, field: usize| weights[field * nodes + node];
    let wet = (0..nodes).filter(|&node| domain.wet(node));
    assert!((0..nodes).all(|node| domain.wet(node) == (at(node, 0) > 0.0)));
    for node in wet {
        assert!((at(node, 1) / at(node, 0) - 3.0).abs() < 1e-12, "{node}");
    }
    // Region against elsewhere, 4 : 0.5.
    let [inside, outside] = [[0.5, 0.2], [0.5, 1.8]].map(|[x, y]: [f64; 2]| {
        let node = (x * 10.0).round() as usize * 21 + (y * 10.0).round() as usize;
        at(node, 0)
    });
    assert!((inside / outside - 8.0).abs() < 1e-12);
    // A plain box counts alike everywhere.
    let cuts = "cuts = [{ name = \"hole\", disc = { centre = [0.5, 1], radius = 0.22 } }]\n";
    assert!(loaded(cuts, "").weights().is_none());
}

/// `u = g(t) U` by a source that it needs: level at insulated walls, zero at held ones, where Δu is too.
#[test]
fn hyperdiffusion_is_second_order_on_every_form() {
    let k = 2.0 * PI;
    let (d, kappa) = (0.05, 1e-3);
    let forms = [
        ("line", 1, "", ""),
        ("box", 2, "", ""),
        (
            "L",
            2,
            "cuts = [{ rectangle = [[0.5, 0.5], [1.5, 1.5]] }]",
            "",
        ),
        ("pipe", 2, "", ", bottom = \"periodic\", top = \"periodic\""),
    ];
    for (name, axes, cuts, ring) in forms {
        for (edge, wave) in [("\"insulated\"", "cos"), ("{ fixed = 0 }", "sin")] {
            let error = |n: usize| {
                let points = [n + 1, n + usize::from(ring.is_empty())];
                let form = match axes {
                    1 => format!("{wave}({k}*x)"),
                    _ => format!("{wave}({k}*x)*{wave}({k}*y)"),
                };
                let square = axes as f64 * k * k;
                let decay = d * square + kappa * square * square;
                let text = with("initial = 0.3", "")
                    .replace(
                        "size = [1, 2]",
                        &format!("size = {:?}", &[1.0, 1.0][..axes]),
                    )
                    .replace("grid = [11, 21]", &format!("grid = {:?}", &points[..axes]))
                    .replace(
                        "cuts = [{ name = \"hole\", disc = { centre = [0.5, 1], radius = 0.22 } }]",
                        cuts,
                    )
                    .replace(
                        "interval = 0.01",
                        &format!("interval = {}\nsubsteps = 1", 0.25 / n as f64),
                    )
                    .replace(
                        "diffusion = 0.1",
                        &format!("diffusion = {d}\nhyperdiffusion = {kappa}"),
                    )
                    .replace(
                        "a*u*(1-u)",
                        &format!("{form}*(1.5*cos(3*t) + {decay}*(1 + 0.5*sin(3*t)))"),
                    )
                    .replace(
                        "{ all = \"insulated\" }",
                        &format!("{{ all = {edge}{ring} }}"),
                    )
                    .replace(
                        "[[0.1, 0.1], [0.9, 1.9]]",
                        if axes == 1 { "[[0.1]]" } else { "[[0.1, 0.1]]" },
                    );
                let problem = load(&text).unwrap_or_else(|bad| panic!("{bad}\n{text}"));
                let (grid, domain) = (problem.grid, kit(problem).domain(&problem.grid));
                let exact = |node: usize| match domain.wet(node) {
                    true => (grid.place(node)[..axes].iter())
                        .map(|x| {
                            if wave == "cos" {
                                (k * x).cos()
                            } else {
                                (k * x).sin()
                            }
                        })
                        .product(),
                    false => 0.0,
                };
                let start: Vec<f64> = (0..grid.len()).map(exact).collect();
                let mut state = start.clone();
                let mut stepper = (problem.stepper)(problem, 1);
                (0..n).for_each(|_| stepper.step(&mut state, &vec![0.0; start.len()]));
                let growth = 1.0 + 0.5 * 0.75f64.sin();
                let gaps = state
                    .iter()
                    .zip(&start)
                    .map(|(u, s)| (u - growth * s).abs());
                gaps.fold(0.0, f64::max)
            };
            let errors = [16, 32, 64].map(error);
            for pair in errors.windows(2) {
                let order = (pair[0] / pair[1]).log2();
                assert!((order - 2.0).abs() < 0.2, "{name}, {edge}: {errors:?}");
            }
        }
    }
}

/// A box of so many axes, without a hole, that exchanges to the right and at the top beside hyperdiffusion; so
/// many steps are a quarter of a second.
fn exchanging(axes: usize, points: usize, steps: usize, reaction: &str, ambient: &str) -> String {
    let transfer = 0.05 * 0.9 * 0.9f64.tan();
    let bottom = ["", ", bottom = \"insulated\""][axes - 1];
    with("initial = 0.3", "")
        .replace(
            "size = [1, 2]",
            &format!("size = {:?}", &[1.0, 1.0][..axes]),
        )
        .replace(
            "grid = [11, 21]",
            &format!("grid = {:?}", &[points; 2][..axes]),
        )
        .replace(
            "cuts = [{ name = \"hole\", disc = { centre = [0.5, 1], radius = 0.22 } }]",
            "",
        )
        .replace(
            "interval = 0.01",
            &format!("interval = {}\nsubsteps = 1", 0.25 / steps as f64),
        )
        .replace(
            "diffusion = 0.1",
            "diffusion = 0.05\nhyperdiffusion = 0.001",
        )
        .replace("a*u*(1-u)", reaction)
        .replace(
            "{ all = \"insulated\" }",
            &format!(
                "{{ all = {{ convective = {transfer}, ambient = \"{ambient}\" }}, left = \"insulated\"{bottom} }}"
            ),
        )
        .replace(
            "[[0.1, 0.1], [0.9, 1.9]]",
            if axes == 1 { "[[0.1]]" } else { "[[0.1, 0.1]]" },
        )
}

/// What becomes of this start in so many intervals.
fn after(text: &str, steps: usize, start: impl Fn([f64; 2]) -> f64) -> Vec<f64> {
    let problem = load(text).unwrap_or_else(|bad| panic!("{bad}\n{text}"));
    let grid = problem.grid;
    let mut state: Vec<f64> = (0..grid.len())
        .map(|node| start(grid.place(node)))
        .collect();
    let mut stepper = (problem.stepper)(problem, 1);
    let rest = vec![0.0; grid.len()];
    (0..steps).for_each(|_| stepper.step(&mut state, &rest));
    state
}

/// u = 0.4 + g(t) cos(q x) cos(q y) with q tan q = transfer / D: it exchanges with surroundings at 0.4, and Δu
/// with none.
#[test]
fn hyperdiffusion_is_second_order_where_fields_exchange_with_what_is_around_them() {
    for axes in [1, 2] {
        let square = axes as f64 * 0.81;
        let decay = 0.05 * square + 1e-3 * square * square;
        let form = ["cos(0.9*x)", "cos(0.9*x)*cos(0.9*y)"][axes - 1];
        let reaction = format!("{form}*(1.5*cos(3*t) + {decay}*(1 + 0.5*sin(3*t)))");
        let wave =
            |place: [f64; 2]| -> f64 { place[..axes].iter().map(|x| (0.9 * x).cos()).product() };
        let error = |n: usize| {
            let text = exchanging(axes, n + 1, n, &reaction, "0.4");
            let found = after(&text, n, |place| 0.4 + wave(place));
            let growth = 1.0 + 0.5 * 0.75f64.sin();
            let start = after(&text, 0, |place| 0.4 + growth * wave(place));
            let gaps = found.iter().zip(start).map(|(a, b)| (a - b).abs());
            gaps.fold(0.0, f64::max)
        };
        let errors = [16, 32, 64].map(error);
        for pair in errors.windows(2) {
            let order = (pair[0] / pair[1]).log2();
            assert!((order - 2.0).abs() < 0.2, "{axes}: {errors:?}");
        }
    }
}

/// Where the surroundings move, parts of a step that see them at different times cost some of the order.
#[test]
fn hyperdiffusion_follows_surroundings_that_move() {
    let end = |steps: usize| {
        let text = exchanging(1, 33, steps, "0*u", "sin(2*t)");
        after(&text, steps, |[x, _]| (0.9 * x).cos())
    };
    let exact = end(2048);
    let error = |steps: usize| {
        let gaps = end(steps)
            .into_iter()
            .zip(&exact)
            .map(|(a, b)| (a - b).abs());
        gaps.fold(0.0, f64::max)
    };
    let errors = [32, 64, 128].map(error);
    assert!(errors[0] < 1e-5, "{errors:?}");
    for pair in errors.windows(2) {
        assert!((pair[0] / pair[1]).log2() > 1.6, "{errors:?}");
    }
}

/// The linear part of Kuramoto and Sivashinsky's equation: waves grow by q² − q⁴, here in differences.
#[test]
fn hyperdiffusion_holds_a_negative_diffusivity() {
    let text = with("size = [1, 2]", "size = [22]")
        .replace("grid = [11, 21]", "grid = [64]")
        .replace(
            "cuts = [{ name = \"hole\", disc = { centre = [0.5, 1], radius = 0.22 } }]",
            "",
        )
        .replace("interval = 0.01", "interval = 0.1")
        .replace("diffusion = 0.1", "diffusion = -1\nhyperdiffusion = 1")
        .replace("reaction = \"a*u*(1-u)\"", "")
        .replace("{ all = \"insulated\" }", "{ all = \"periodic\" }")
        .replace("[[0.1, 0.1], [0.9, 1.9]]", "[[0.1]]");
    let problem = load(&text).unwrap();
    let h = 22.0 / 64.0;
    for wave in [1.0, 2.0, 4.0, 20.0] {
        let q = 2.0 * PI * wave / 22.0;
        let square = (2.0 * (0.5 * q * h).sin() / h).powi(2);
        let mut state: Vec<f64> = (0..64).map(|j| (q * h * j as f64).cos()).collect();
        let mut stepper = (problem.stepper)(problem, 1);
        (0..100).for_each(|_| stepper.step(&mut state, &[0.0; 64]));
        let (found, rate) = (state[0].abs().ln() / 10.0, square - square * square);
        // The finest need not die as fast as they should, only die.
        let well = (found - rate).abs() < 1e-3 * rate.abs() || wave == 20.0 && found < -1.0;
        assert!(well, "{wave}: {found} for {rate}");
    }
}

/// What an insulated plate holds stays in it, to rounding, whatever is cut out of it.
#[test]
fn an_insulated_field_keeps_its_content() {
    for scheme in ["first-order", "second-order"] {
        let text = with("steps = 20", &format!("steps = 20\nscheme = \"{scheme}\""))
            .replace("reaction = \"a*u*(1-u)\"\n", "")
            .replace(
                "initial = 0.3",
                "initial = { random = { length = 0.5, amplitude = 1, mean = 0.5 } }",
            );
        let problem = load(&text).unwrap();
        let volume = kit(problem).domain(&problem.grid).volume().to_vec();
        let initial = (problem.draw)(problem, &mut episode_rng(0, 0)).initial;
        let mut state: Vec<f64> = initial.iter().map(|z| f64::from(*z)).collect();
        let content = |state: &[f64]| state.iter().zip(&volume).map(|(z, v)| z * v).sum::<f64>();
        let (before, spread) = (content(&state), state[0] - state[state.len() - 1]);
        let mut stepper = (problem.stepper)(problem, 1);
        for _ in 0..50 {
            stepper.step(&mut state, &vec![0.0; initial.len()]);
        }
        let after = content(&state);
        assert!(
            (after - before).abs() < 1e-11 * volume.len() as f64,
            "{scheme}: {before} {after}"
        );
        assert!((state[0] - state[state.len() - 1]).abs() < 0.9 * spread.abs());
    }
}

#[test]
fn goals_jump_or_go_straight_and_disturbances_come_and_go() {
    let text = |over: &str| {
        with(
            "initial = 0.3",
            &format!("goal = {{ field = 1, at = 0.05{over} }}"),
        ) + "[[disturbances]]\nbell = { centre = [0.1, 0.1], width = 0.2 }\nstrength = -3\nfrom = 0.03\nlasts = 0.02\n"
    };
    let drawn = |over: &str| {
        let problem = load(&text(over)).unwrap();
        assert!(problem.tracking);
        (problem.draw)(problem, &mut episode_rng(0, 0))
    };
    let jump = drawn("");
    let goal = &jump.goals[0].course;
    assert_eq!(
        [0, 4, 5, 19].map(|step| goal.at(step)),
        [0.0, 0.0, 1.0, 1.0]
    );
    assert_eq!((jump.target_at(4)[0], jump.target_at(5)[0]), (0.0, 1.0));
    let ramp = drawn(", over = 0.04");
    let goal = &ramp.goals[0].course;
    assert_eq!(
        [5, 6, 7, 9, 12].map(|step| goal.at(step)),
        [0.0, 0.25, 0.5, 1.0, 1.0]
    );
    let back = drawn(", over = 0.02, lasts = 0.03");
    let goal = &back.goals[0].course;
    assert_eq!(
        [5, 6, 7, 10, 11, 12, 19].map(|step| goal.at(step)),
        [0.0, 0.5, 1.0, 1.0, 0.5, 0.0, 0.0]
    );
    let push = &jump.pushes[0];
    assert_eq!(
        [0, 2, 3, 4, 5].map(|step| push.course.at(step)),
        [0.0, 0.0, -3.0, -3.0, 0.0]
    );
    // One spacing from the centre: exp(−½ (0.1/0.2)²).
    let here = 21 + 2;
    assert!((f64::from(push.field[here]) - (-0.125f64).exp()).abs() < 1e-6);
}

/// Up, further up and back to where it was, down again for good; a field beside it has no goals.
#[test]
fn goals_come_one_after_the_other() {
    let goals = "goal = [
{ field = 1, at = 0.02, over = 0.02 },
{ field = 3, at = [0.06, 0.07], lasts = 0.02 },
{ field = -1, at = 0.12, over = 0.02 },
]\ntarget = 0.5
[fields.v]\nunit = \"1\"\nrange = [0, 1]\ntarget = 0.25";
    let problem = load(&with("initial = 0.3", goals)).unwrap_or_else(|bad| panic!("{bad}"));
    assert_eq!(kit(problem).goals(), 3);
    let points = problem.grid.len();
    for number in 0..8 {
        let episode = (problem.draw)(problem, &mut episode_rng(0, number));
        let seen = |step: usize| episode.target_at(step)[0];
        assert_eq!(
            [0, 2, 3, 4, 5, 9, 12, 13, 14, 19].map(seen),
            [0.5, 0.5, 0.75, 1.0, 1.0, 1.0, 1.0, 0.0, -1.0, -1.0]
        );
        let raised = [6, 7, 8, 9].map(seen);
        assert!(
            raised == [3.0, 3.0, 1.0, 1.0] || raised == [1.0, 3.0, 3.0, 1.0],
            "{raised:?}"
        );
        assert!((0..20).all(|step| episode.target_at(step)[points] == 0.25));
    }
}

/// Things that somebody might write.
const WORDS: [&str; 30] = [
    "nan",
    "inf",
    "-inf",
    "0",
    "-1",
    "1e300",
    "1e-300",
    "-0.0",
    "1",
    "2",
    "64",
    "true",
    "\"\"",
    "\"x\"",
    "\"1/x\"",
    "\"u\"",
    "\"exp(99*u)\"",
    "[]",
    "[0]",
    "[1, 2]",
    "[[0, 0], [1, 1]]",
    "{}",
    "\"periodic\"",
    "{ fixed = \"t\" }",
    "{ list = [[0, 0]] }",
    "{ lattice = [2, 2] }",
    "9223372036854775807",
    "\"plate.toml\"",
    "\n",
    "=",
];

/// What stands between two breaks of a line, a list or a table.
fn tokens(text: &str) -> Vec<&str> {
    text.split_inclusive([' ', ',', '[', ']', '{', '}', '\n', '='])
        .collect()
}

fn assert_answers(text: &str) {
    if let Err(bad) = load(text) {
        assert_one_sentence(&bad);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn whatever_is_written_gets_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        assert_answers(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn whatever_a_file_is_changed_to_gets_an_answer(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..WORDS.len() + 2), 1..4),
    ) {
        let mut parts: Vec<String> = tokens(PLATE).into_iter().map(str::to_owned).collect();
        for (at, change) in changes {
            let at = at.index(parts.len());
            let tail = parts[at].chars().last().filter(|c| !c.is_alphanumeric());
            match change.checked_sub(WORDS.len()) {
                None => parts[at] = format!("{}{}", WORDS[change], tail.map_or(String::new(), String::from)),
                Some(0) => parts[at] = parts[at].repeat(2),
                Some(_) => parts[at].clear(),
            }
        }
        assert_answers(&parts.concat());
    }

    #[test]
    fn numbers_of_any_size_get_an_answer(
        at in any::<prop::sample::Index>(),
        exponent in -320..310i32,
        negative: bool,
    ) {
        let parts = tokens(PLATE);
        let numbers: Vec<usize> = (0..parts.len())
            .filter(|&k| parts[k].starts_with(|c: char| c.is_ascii_digit()))
            .collect();
        let which = numbers[at.index(numbers.len())];
        let tail: String = parts[which].chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect();
        let number = format!("{}1e{exponent}{tail}", if negative { "-" } else { "" });
        let text: String = parts.iter().enumerate()
            .map(|(k, part)| if k == which { number.as_str() } else { part })
            .collect();
        assert_answers(&text);
    }
}
