//! Pictures of made-up runs.

use super::film::{FilmError, film};
use super::*;
use crate::episode::Snapshot;
use crate::swarm::{Cost, Deed};
use agent_core::agent::Mode;
use problem::Disc;
use problem::published::heat_1d;

/// Heat on a rod's published grid, or on a plane between walls or around a torus.
fn problem(axes: usize, edge: Edge) -> Problem {
    let mut problem = heat_1d::PROBLEM;
    if axes == 2 {
        problem.grid = Grid::plane([12, 10], [1.0, 1.25], edge);
        problem.axis_names = ["x", "y"];
    } else {
        problem.grid = Grid::line(40, 1.0, edge);
    }
    problem.sensors = problem.grid;
    problem
}

fn episode(problem: &Problem) -> Episode {
    let points = problem.grid.len();
    Episode {
        initial: (0..points).map(|i| (i as f32 * 0.3).sin()).collect(),
        target: vec![0.5; points],
        ..Episode::default()
    }
}

/// A run in which agent 0 holds and agents 1 and 2 fall silent at half time.
fn run(problem: &Problem, agents: usize, steps: usize) -> Trajectory {
    let episode = episode(problem);
    let mut trajectory = Trajectory::new(problem, &episode, steps);
    let [width, height] = problem.grid.high;
    for step in 0..=steps {
        let late = step > 0 && 2 * step >= steps;
        let deed = |agent: usize| Deed {
            mode: match agent {
                0 if late => Some(Mode::Holding),
                1 | 2 if late => None,
                _ => Some(Mode::Active),
            },
            ..Deed::default()
        };
        let place = |agent: usize| {
            let share = (agent as f64 + 0.5) / agents as f64;
            [share * width, (1.0 - share) * height]
        };
        let fade = 1.0 - step as f64 / steps.max(1) as f64;
        let field: Vec<f64> = episode
            .initial
            .iter()
            .map(|z| f64::from(*z) * fade)
            .collect();
        trajectory.push(&Snapshot {
            step,
            field: &field,
            target: &[],
            error: fade,
            positions: &(0..agents).map(place).collect::<Vec<_>>(),
            deeds: &(0..agents).map(deed).collect::<Vec<_>>(),
            cost: Cost {
                squared_effort: 1.0 + fade,
                ..Cost::default()
            },
        });
    }
    trajectory
}

fn shown(trajectory: &Trajectory) -> Shown<'_> {
    Shown {
        name: "swarm <&>",
        trajectory,
        colour: line::BLUE,
    }
}

fn field(problem: &Problem, trajectory: &Trajectory) -> String {
    field_picture(problem, &episode(problem), &shown(trajectory), "here & now").unwrap()
}

/// Marks of one class, each beginning with a pen move.
fn marks(svg: &str, class: &str) -> usize {
    let start = format!("<path class=\"{class}\" d=\"");
    svg.split(&start)
        .skip(1)
        .map(|rest| rest[..rest.find('"').unwrap()].matches('M').count())
        .sum()
}

#[test]
fn places_are_spread_over_all_items() {
    let places = |count, len| {
        (0..count)
            .map(|k| spread(k, count, len))
            .collect::<Vec<_>>()
    };
    assert_eq!(places(4, 4), [0, 1, 2, 3]);
    assert_eq!(places(3, 301), [0, 150, 300]);
    assert_eq!(places(1, 5), [0]);
}

/// Five times: agents 0 to 2 change at half time, so in the last three tiles of either row. The
/// legend has one of each.
#[test]
fn every_agent_of_a_plane_is_visible_and_shows_its_state() {
    let problem = problem(2, Edge::Wall);
    let svg = field(&problem, &run(&problem, 16, 40));
    assert_eq!(marks(&svg, "silent"), 2 * 3 * 2 + 1);
    assert_eq!(marks(&svg, "holding"), 2 * 3 + 1);
    assert_eq!(marks(&svg, "acting"), 2 * (2 * 16 + 3 * 13) + 1);
    // Five fields, five errors, the target, two colour bars.
    assert_eq!(svg.matches("<image").count(), 5 + 5 + 1 + 2);
    assert!(svg.contains("swarm &lt;&amp;&gt;") && svg.contains("here &amp; now"));
}

#[test]
fn a_field_without_a_target_is_shown_alone() {
    for (axes, images) in [(2, 5 + 1), (1, 1 + 1)] {
        let mut problem = problem(axes, Edge::Periodic);
        problem.tracking = false;
        let svg = field(&problem, &run(&problem, 8, 40));
        assert_eq!(svg.matches("<image").count(), images, "{axes} axes");
        assert!(!svg.contains("target"));
    }
}

#[test]
fn keep_out_zones_are_dashed_circles_in_every_tile() {
    let mut problem = problem(2, Edge::Wall);
    problem.keep_out = &[Disc {
        centre: [0.5, 0.5],
        radius: 0.1,
    }];
    let svg = field(&problem, &run(&problem, 4, 8));
    // Eleven tiles and the legend.
    assert_eq!(svg.matches("class=\"keep-out\"").count(), 12);
}

#[test]
fn silent_agents_of_a_line_end_in_a_cross() {
    let problem = problem(1, Edge::Wall);
    let whole = field(&problem, &run(&problem, 1, 40));
    let broken = field(&problem, &run(&problem, 4, 40));
    assert!(!whole.contains("class=\"silent\""));
    assert_eq!(marks(&broken, "silent"), 1, "the legend's");
    // Two strokes for each of two agents in each of two panels.
    let stroke = "<line opacity=\"1\" stroke=\"#000000\" stroke-width=\"4\"";
    assert_eq!(broken.matches(stroke).count(), 2 * 2 * 2);
}

/// An agent that goes around a ring twice: three pieces, none across the picture.
#[test]
fn paths_around_a_ring_are_cut() {
    let problem = problem(1, Edge::Periodic);
    let mut trajectory = run(&problem, 1, 40);
    let path = &mut trajectory.paths[0];
    path.modes.fill(Some(Mode::Active));
    for (frame, place) in path.positions.iter_mut().enumerate() {
        place[0] = (0.1 + frame as f64 * 0.05) % 1.0;
    }
    let panel = |trajectory: &Trajectory| {
        let svg = field(&problem, trajectory);
        // The black strokes of paths.
        svg.matches("stroke=\"#000000\" stroke-width=\"3\"").count()
    };
    // Two panels.
    assert_eq!(panel(&trajectory), 2 * 3);
}

#[test]
fn a_thousand_agents_make_files_that_can_be_sent() {
    for axes in [1, 2] {
        let problem = problem(axes, Edge::Periodic);
        let svg = field(&problem, &run(&problem, 1024, 60));
        assert!(svg.len() < 600_000, "{axes} axes: {} bytes", svg.len());
    }
}

#[test]
fn short_runs_and_runs_without_agents_are_drawn() {
    for axes in [1, 2] {
        let problem = problem(axes, Edge::Wall);
        let episode = episode(&problem);
        let nothing = Trajectory::new(&problem, &episode, 1);
        for trajectory in [
            nothing,
            run(&problem, 3, 0),
            run(&problem, 3, 1),
            run(&problem, 0, 2),
        ] {
            let runs = [shown(&trajectory)];
            let event = Event {
                step: 1,
                name: "a < b".into(),
            };
            for picture in [
                field_picture(&problem, &episode, &runs[0], ""),
                error_picture(&problem, &runs, std::slice::from_ref(&event), ""),
                effort_picture(&problem, &runs, std::slice::from_ref(&event), ""),
                story_picture(&problem, &episode, &runs, std::slice::from_ref(&event), ""),
            ] {
                assert!(picture.unwrap().trim_end().ends_with("</svg>"));
            }
        }
        assert!(error_picture(&problem, &[], &[], "").is_ok());
        assert!(story_picture(&problem, &episode, &[], &[], "").is_ok());
    }
}

#[test]
fn the_number_of_agents_heard_is_shown_where_it_changes() {
    let problem = problem(1, Edge::Wall);
    let (whole, broken) = (run(&problem, 1, 20), run(&problem, 4, 20));
    let picture = |run| effort_picture(&problem, &[shown(run)], &[], "").unwrap();
    assert!(!picture(&whole).contains("agents heard"));
    let both = picture(&broken);
    assert!(both.contains("agents heard") && both.contains("mean u²"));
    assert!(both.contains("height=\"660\""));
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    for axes in [1, 2] {
        let problem = problem(axes, Edge::Wall);
        let make = || {
            let trajectory = run(&problem, 16, 20);
            let runs = [shown(&trajectory), shown(&trajectory)];
            (
                field(&problem, &trajectory),
                story_picture(&problem, &episode(&problem), &runs, &[], "").unwrap(),
                film(&problem, &episode(&problem), &runs).unwrap(),
            )
        };
        assert!(make() == make(), "{axes} axes");
    }
}

fn decoded(film: &[u8]) -> (usize, (u16, u16), Vec<u16>) {
    let mut decoder = gif::DecodeOptions::new().read_info(film).unwrap();
    assert_eq!(decoder.repeat(), gif::Repeat::Infinite);
    let size = (decoder.width(), decoder.height());
    let mut delays = Vec::new();
    while let Some(frame) = decoder.read_next_frame().unwrap() {
        delays.push(frame.delay);
    }
    (delays.len(), size, delays)
}

#[test]
fn films_have_a_frame_per_step_up_to_a_limit() {
    for (axes, steps, frames) in [(1, 7, 8), (2, 7, 8), (1, 300, 120), (1, 0, 1)] {
        let problem = problem(axes, Edge::Wall);
        let trajectory = run(&problem, 5, steps);
        let film = film(&problem, &episode(&problem), &[shown(&trajectory)]).unwrap();
        let (count, size, delays) = decoded(&film);
        assert_eq!(count, frames);
        assert!(delays[..frames - 1].iter().all(|delay| *delay == 5));
        // The field and its target side by side, as high as 1.25 times their width.
        let expected = if axes == 2 { (960, 611) } else { (640, 410) };
        assert_eq!(size, expected);
    }
}

#[test]
fn films_say_why_they_cannot_be_made() {
    let problem = problem(1, Edge::Wall);
    let episode = episode(&problem);
    assert!(matches!(
        film(&problem, &episode, &[]),
        Err(FilmError::Empty)
    ));
    let nothing = Trajectory::new(&problem, &episode, 1);
    let nothing = film(&problem, &episode, &[shown(&nothing)]);
    assert!(matches!(nothing, Err(FilmError::Empty)));
    let trajectory = run(&problem, 1, 1);
    let five = film(&problem, &episode, &[shown(&trajectory); 5]);
    assert!(matches!(five, Err(FilmError::TooMany(5))));
}

#[test]
fn boards_are_shown_by_name_with_the_states_that_occur() {
    use crate::rig::{Diary, Event as Happening, State};
    let problem = problem(1, Edge::Wall);
    let trajectory = run(&problem, 2, 40);
    let active = State::Answered(Mode::Active);
    let diary = |states: Vec<State>| {
        let mut diary = Diary::default();
        diary.states = states;
        diary.events.push(Happening {
            step: 20,
            what: "fault: kill".to_owned(),
        });
        diary
    };
    let killed = diary([vec![active; 20], vec![State::Silent; 20]].concat());
    let sound = diary(vec![active; 40]);
    let rows = [("an386 0", &killed), ("an386 1", &sound)];
    let picture = nodes_picture(&problem, &[shown(&trajectory)], &[], &rows, "here").unwrap();
    for name in ["an386 0", "an386 1", "active", "silent"] {
        assert!(picture.contains(name), "{name}");
    }
    assert!(!picture.contains("holding") && !picture.contains("late"));
    // More boards than rows are cut, not squeezed.
    let many = vec![("board", &sound); 200];
    let picture = nodes_picture(&problem, &[shown(&trajectory)], &[], &many, "here").unwrap();
    assert_eq!(picture.matches("board\n").count(), 64);
}
