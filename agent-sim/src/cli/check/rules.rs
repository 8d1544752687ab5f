//! The paper's rules of deployment, computed for a description (its appendix on practical guidelines).

use super::modes::growth;
use super::{Finding, lengths, measure, short};
use problem::Problem;
use problem::kit::{Kit, Scales};
use problem::test_set::EpisodeSet;

pub fn findings(problem: &Problem, kit: &Kit) -> Vec<Finding> {
    let mut findings = vec![scales(problem, kit)];
    findings.extend(modes(problem));
    findings.extend([
        width(problem, kit),
        spacing(problem, kit),
        window(problem, kit),
    ]);
    findings
}

/// How fast things go beside the control interval.
fn scales(problem: &Problem, kit: &Kit) -> Finding {
    let Scales {
        diffusivity,
        hyperdiffusivity,
        speed,
        rate,
    } = kit.scales(problem, kit.driven);
    let (time, width) = (&kit.units[1], problem.actuation.width);
    let longest = lengths(problem).into_iter().fold(0.0, f64::max);
    let mut all = Vec::new();
    let mut fastest = f64::INFINITY;
    let mut add = |what: &str, after: f64| {
        if after.is_finite() {
            all.push(format!("{what} {} {time}", short(after)));
            fastest = fastest.min(after);
        }
    };
    add(
        "spreading as far as an actuator reaches takes",
        width * width / (2.0 * diffusivity),
    );
    add("smoothing as much takes", width.powi(4) / hyperdiffusivity);
    add("the flow passes an actuator in", 2.0 * width / speed);
    add("reactions take", 1.0 / rate);
    if diffusivity > 0.0 {
        all.push(format!(
            "spreading across the domain {} {time}",
            short(longest * longest / (std::f64::consts::PI.powi(2) * diffusivity))
        ));
    }
    let interval = problem.control_interval;
    all.push(format!("agents act every {} {time}", short(interval)));
    Finding::judged("time scales", all.join("; "), interval <= fastest, || {
        format!(
            "agents are too slow for this: shorten time.interval to about {} {time}",
            short(0.3 * fastest)
        )
    })
}

/// What grows by itself needs as many agents that reach it.
fn modes(problem: &Problem) -> Option<Finding> {
    let episode = EpisodeSet::Fresh.episode(problem, 0, 0).ok()?;
    let growth = growth(problem, &episode);
    let count = growth.rates.len();
    let Some(fastest) = growth.rates.first() else {
        return Some(Finding::well(
            "growing modes",
            "none: what is off the target dies away by itself".to_owned(),
        ));
    };
    let many = match growth.perhaps_more {
        true => format!("{count} or more"),
        false => format!("{count}"),
    };
    let found = format!(
        "{many} modes grow about the target, the fastest by e in {}; at least as many agents are needed, and {} have {} of them in reach",
        short(1.0 / fastest),
        problem.agents,
        growth.reached,
    );
    let enough = problem.agents >= count && growth.reached == count;
    Some(Finding::judged("growing modes", found, enough, || {
        let side = (count as f64).powf(1.0 / problem.grid.axes as f64).ceil() as usize;
        format!(
            "take at least {}, spread evenly: places = {{ lattice = {:?} }}",
            side.pow(problem.grid.axes as u32),
            vec![side; problem.grid.axes]
        )
    }))
}

/// A kernel spans three grid points at least.
fn width(problem: &Problem, kit: &Kit) -> Finding {
    let (width, unit) = (problem.actuation.width, &kit.units[0]);
    let spacing = (0..problem.grid.axes)
        .map(|axis| problem.grid.spacing(axis))
        .fold(0.0, f64::max);
    Finding::judged(
        "actuator width",
        format!(
            "{} {unit} is {:.1} grid points; three to five are smooth on the grid",
            short(width),
            width / spacing
        ),
        // Two are where a bell's Fourier transform has fallen to a thousandth at the grid's highest.
        width >= 2.0 * spacing,
        || {
            let points: Vec<usize> = (0..problem.grid.axes)
                .map(|a| (3.0 * problem.grid.extent(a) / width).ceil() as usize + 1)
                .collect();
            format!("take wider actuators, or a finer grid, say grid = {points:?}")
        },
    )
}

/// A kernel is narrower than agents are apart.
fn spacing(problem: &Problem, kit: &Kit) -> Finding {
    let (width, unit) = (problem.actuation.width, &kit.units[0]);
    let apart =
        (measure(problem, kit) / problem.agents as f64).powf(1.0 / problem.grid.axes as f64);
    Finding::judged(
        "agents apart",
        format!(
            "{} {unit} on average, {:.1} actuator widths; below one they would work against each other",
            short(apart),
            apart / width
        ),
        width < apart,
        || {
            format!(
                "take fewer agents, or narrower actuators than {} {unit}",
                short(apart)
            )
        },
    )
}

/// A window holds what the dynamics do around an agent until it acts again, and not the whole domain.
fn window(problem: &Problem, kit: &Kit) -> Finding {
    let Scales {
        diffusivity,
        hyperdiffusivity,
        speed,
        rate,
    } = kit.scales(problem, kit.seen);
    let unit = &kit.units[0];
    let apart = problem.sensing.spacing as f64 * problem.grid.spacing(0);
    let seen = problem.sensing.window as f64 * apart;
    // How far what spreads comes in a time.
    let spread = |time: f64| (diffusivity * time).sqrt() + (hyperdiffusivity * time).powf(0.25);
    let front = if rate > 0.0 { spread(1.0 / rate) } else { 0.0 };
    let interval = problem.control_interval;
    let needed = 2.0 * problem.actuation.width + front + speed * interval + spread(interval);
    let share = seen / lengths(problem).into_iter().fold(f64::INFINITY, f64::min);
    Finding::judged(
        "window",
        format!(
            "{} {unit}, {:.0} % of the shorter side; an actuator, what fronts are wide and what comes along in an interval take {} {unit}",
            short(seen),
            100.0 * share,
            short(needed),
        ),
        seen >= needed && share <= 0.75,
        || {
            let cells = (needed / apart).ceil() as usize;
            format!(
                "agents see too little or nearly everything: window = {} would hold what matters",
                cells.max(4)
            )
        },
    )
}
