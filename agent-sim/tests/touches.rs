//! What hands do to a run, from scenario files: as much as they say, when and where they say.

use agent_sim::scenario::Scenario;
use problem::Problems;

/// The field, the target and who was heard, before the first step and after each.
struct Seen {
    field: Vec<f64>,
    target: Vec<f32>,
    heard: Vec<bool>,
    forces: Vec<f32>,
}

const STEPS: usize = 40;

fn run(more: &str) -> Vec<Seen> {
    let text = format!("problem = \"heat-1d\"\nsteps = {STEPS}\n{more}");
    let scenario = Scenario::from_toml(&text).unwrap();
    let team = scenario.team(&Problems::published()).unwrap();
    let episode = scenario.episode(&team).unwrap();
    let policy = team.parsed_policy();
    let mut seen = Vec::new();
    let experiment = team.experiment(policy.as_ref());
    let watched = experiment.run(&episode, &mut |snapshot| {
        seen.push(Seen {
            field: snapshot.field.to_vec(),
            target: snapshot.target.to_vec(),
            heard: snapshot.deeds.iter().map(|deed| deed.heard()).collect(),
            forces: snapshot.deeds.iter().map(|deed| deed.force).collect(),
        });
    });
    watched.unwrap();
    seen
}

const NOBODY: &str = "controller = \"none\"\n";

/// The equation is linear: what a push does is what is left when the run without it is taken away. Heat
/// spreads meanwhile, of a bump of radius 0.1 little in five milliseconds.
#[test]
fn a_push_raises_the_field_by_its_amount_there_and_then() {
    let push = "[[touch]]\nwhat = \"push\"\nat = 0.25\nuntil = 0.375\nplace = [0.5]\nradius = 0.1\namount = 0.5\n";
    let (with, without) = (run(&format!("{NOBODY}{push}")), run(NOBODY));
    let points = with[0].field.len();
    let raised = |step: usize, share: f64| {
        let j = (share * (points - 1) as f64).round() as usize;
        with[step].field[j] - without[step].field[j]
    };
    for step in 0..=10 {
        assert_eq!(raised(step, 0.5), 0.0, "{step}");
    }
    let most = raised(15, 0.5);
    assert!((0.4..=0.5).contains(&most), "{most}");
    // A radius away it is down to 61 %, and far away nothing.
    let beside = raised(15, 0.6) / most;
    assert!((0.57..0.67).contains(&beside), "{beside}");
    assert!(raised(15, 0.95).abs() < 0.01);
    assert!(raised(STEPS, 0.5) < most, "nothing more comes after it");
}

#[test]
fn a_target_moves_when_it_is_told_and_back() {
    let shift = "[[touch]]\nwhat = \"target\"\nat = 0.5\nuntil = 0.75\nplace = [0.3]\nradius = 0.05\namount = -0.2\n";
    let (with, without) = (run(&format!("{NOBODY}{shift}")), run(NOBODY));
    let j = (0.3 * (with[0].target.len() - 1) as f64).round() as usize;
    for step in 0..=STEPS {
        let moved = with[step].target[j] - without[step].target[j];
        let expected = if (20..30).contains(&step) { -0.2 } else { 0.0 };
        assert!((moved - expected).abs() < 0.01, "{step}: {moved}");
        assert_eq!(with[step].field, without[step].field, "nobody acts on it");
    }
}

#[test]
fn one_more_agent_comes_and_changes_nothing_before() {
    let (with, without) = (
        run(
            "agents = 8\n[[fault]]\nkind = \"crash\"\nfraction = 0.25\nat = 0.3\n[[add]]\nat = 0.5\nplace = [0.42]\n",
        ),
        run("agents = 8\n[[fault]]\nkind = \"crash\"\nfraction = 0.25\nat = 0.3\n"),
    );
    for step in 0..=20 {
        assert_eq!(with[step].field, without[step].field, "{step}");
        assert_eq!(with[step].forces[..8], without[step].forces[..]);
    }
    assert!(with[20].heard.len() == 9 && !with[20].heard[8]);
    assert!(with[22].heard[8], "it has come");
    assert_ne!(with[STEPS].field, without[STEPS].field);
}

#[test]
fn what_hands_cannot_do_is_refused_before_the_run() {
    let touch = |problem: &str, more: &str| {
        let text = format!("problem = \"{problem}\"\n{more}");
        let scenario = Scenario::from_toml(&text).map_err(|error| error.to_string())?;
        let team = scenario.team(&Problems::published());
        team.map(drop).map_err(|error| error.to_string())
    };
    let with = |what: &str, at: f64, until: f64, place: &str, radius: f64, amount: f64| {
        format!(
            "[[touch]]\nwhat = \"{what}\"\nat = {at:?}\nuntil = {until:?}\nplace = {place}\nradius = {radius:?}\namount = {amount:?}\n"
        )
    };
    assert_eq!(
        touch("heat-1d", &with("push", 0.1, 0.2, "[0.5]", 0.1, 1.0)),
        Ok(())
    );
    for (problem, more, said) in [
        (
            "heat-1d",
            with("push", 0.1, 0.2, "[0.5, 0.5]", 0.1, 1.0),
            "2 coordinates",
        ),
        (
            "heat-1d",
            with("push", 0.1, 0.2, "[1.5]", 0.1, 1.0),
            "1.5 lies outside",
        ),
        (
            "heat-1d",
            with("push", 0.2, 0.1, "[0.5]", 0.1, 1.0),
            "from 0.2 to 0.1",
        ),
        (
            "heat-1d",
            with("push", 0.1, 2.0, "[0.5]", 0.1, 1.0),
            "from 0.1 to 2",
        ),
        (
            "heat-1d",
            with("push", 0.1, 0.2, "[0.5]", 0.0, 1.0),
            "radius is 0",
        ),
        (
            "heat-1d",
            with("push", 0.1, 0.2, "[0.5]", 0.1, f64::INFINITY),
            "amount is inf",
        ),
        (
            "heat-1d",
            with("shove", 0.1, 0.2, "[0.5]", 0.1, 1.0),
            "shove",
        ),
        (
            "ks-1d",
            with("target", 0.1, 0.2, "[0.5]", 0.1, 1.0),
            "brought to zero",
        ),
        (
            "density-2d",
            with("push", 0.1, 0.2, "[0.5, 0.5]", 0.1, 1.0),
            "flow",
        ),
        (
            "heat-1d",
            "[[add]]\nat = 0.5\nplace = [7.0]\n".to_owned(),
            "7 lies outside",
        ),
        (
            "heat-1d",
            "[[add]]\nat = 1.5\nplace = [0.5]\n".to_owned(),
            "1.5",
        ),
    ] {
        let refused = touch(problem, &more).unwrap_err();
        assert!(refused.contains(said), "{refused}");
    }
}
