//! A picture of a description: domain, edges, agents, their windows, and what disturbs them.

use problem::Problem;
use problem::grid::Edge as Ends;
use problem::kit::operator::Edge;
use problem::kit::shape::Shape;
use problem::kit::{Form, Kit};
use std::fmt::Write;

/// Width of the drawing of the domain, in pixels, and the room around it.
const WIDTH: f64 = 720.0;
const ROOM: f64 = 60.0;
/// Height of a line domain.
const BAND: f64 = 120.0;
/// Height of a line of the legend.
const LINE: f64 = 22.0;

/// From the domain to the drawing.
struct Plot {
    scale: f64,
    high: f64,
    line: bool,
}

impl Plot {
    fn at(&self, [x, y]: [f64; 2]) -> (f64, f64) {
        match self.line {
            true => (ROOM + self.scale * x, ROOM + 0.5 * BAND),
            false => (ROOM + self.scale * x, ROOM + self.scale * (self.high - y)),
        }
    }
}

pub fn draw(problem: &Problem, kit: &Kit) -> String {
    let grid = &problem.grid;
    let plot = Plot {
        scale: WIDTH / grid.extent(0),
        high: grid.high[1],
        line: grid.axes == 1,
    };
    let height = match plot.line {
        true => BAND,
        false => plot.scale * grid.extent(1),
    };
    let marks = marks(problem, kit);
    let legend = LINE * marks.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0}\" height=\"{:.0}\" font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        WIDTH + 2.0 * ROOM,
        height + 2.0 * ROOM + legend,
    );
    domain(&mut svg, problem, kit, &plot);
    disturbances(&mut svg, kit, &plot);
    agents(&mut svg, problem, &plot);
    words(&mut svg, problem, kit, &marks, height);
    svg += "</svg>\n";
    svg
}

fn colour(edge: Edge) -> &'static str {
    match edge {
        Edge::Fixed => "#c03028",
        Edge::Insulated => "#303030",
        Edge::Open => "#2878c8",
        Edge::Convective { .. } => "#d89018",
    }
}

/// Cells of the domain, and its edges in their colours.
fn domain(svg: &mut String, problem: &Problem, kit: &Kit, plot: &Plot) {
    let (grid, domain) = (&problem.grid, kit.domain(&problem.grid));
    let [rows, columns] = grid.points;
    if plot.line {
        let ((x0, _), (x1, _)) = (plot.at(grid.low), plot.at(grid.high));
        let _ = writeln!(
            svg,
            "<path d=\"M{x0:.1} {ROOM}H{x1:.1}V{:.1}H{x0:.1}Z\" fill=\"#e6ecf2\"/>",
            ROOM + BAND
        );
    }
    // A cell is there where all its corners are; beyond the last point of a periodic axis comes the first.
    let round = |axis: usize, at: usize| match grid.edges[axis] {
        Ends::Periodic if at == grid.points[axis] => 0,
        _ => at,
    };
    let wet = |i: usize, j: usize| {
        let (i, j) = (round(0, i), round(1, j));
        i < rows && j < columns && domain.wet(i * columns + j)
    };
    let corner = |i: usize, j: usize| plot.at([grid.coordinate(0, i), grid.coordinate(1, j)]);
    let cell =
        |i: usize, j: usize| wet(i, j) && wet(i + 1, j) && wet(i, j + 1) && wet(i + 1, j + 1);
    let mut path = String::new();
    for i in 0..rows {
        for j in (0..columns).filter(|&j| cell(i, j)) {
            let ((x0, y0), (x1, y1)) = (corner(i, j), corner(i + 1, j + 1));
            let _ = write!(path, "M{x0:.1} {y0:.1}H{x1:.1}V{y1:.1}H{x0:.1}Z");
        }
    }
    let _ = writeln!(svg, "<path d=\"{path}\" fill=\"#e6ecf2\"/>");
    let mut line = |a: (f64, f64), b: (f64, f64), side: usize| {
        let _ = writeln!(
            svg,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{}\" stroke-width=\"4\" stroke-linecap=\"round\"/>",
            a.0,
            a.1,
            b.0,
            b.1,
            colour(kit.edge(kit.driven, side)),
        );
    };
    for piece in domain.pieces() {
        let here = plot.at(grid.place(piece.node));
        if plot.line {
            line((here.0, ROOM), (here.0, ROOM + BAND), piece.side);
            continue;
        }
        // To the next node along the edge, where the domain lies on one side of that only.
        let (i, j) = (piece.node / columns, piece.node % columns);
        let (next, [first, second]) = match piece.axis {
            0 => ((i, j + 1), [(i.wrapping_sub(1), j), (i, j)]),
            _ => ((i + 1, j), [(i, j.wrapping_sub(1)), (i, j)]),
        };
        if wet(next.0, next.1) && cell(first.0, first.1) != cell(second.0, second.1) {
            line(here, corner(next.0, next.1), piece.side);
        }
    }
}

fn outline(svg: &mut String, shape: &Shape, plot: &Plot, style: &str) {
    let corners: Vec<[f64; 2]> = match shape {
        Shape::Disc { centre, radius } => {
            let (x, y) = plot.at(*centre);
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.1}\" {style}/>",
                plot.scale * radius
            );
            return;
        }
        Shape::Rectangle { low, high } => vec![*low, [high[0], low[1]], *high, [low[0], high[1]]],
        Shape::Polygon(corners) => corners.clone(),
    };
    let points: Vec<String> = corners
        .iter()
        .map(|&corner| {
            let (x, y) = plot.at(corner);
            format!("{x:.1},{y:.1}")
        })
        .collect();
    let _ = writeln!(svg, "<polygon points=\"{}\" {style}/>", points.join(" "));
}

fn disturbances(svg: &mut String, kit: &Kit, plot: &Plot) {
    let style = "fill=\"#e07b39\" fill-opacity=\"0.35\" stroke=\"#b0531a\"";
    for (name, form) in kit.disturbances() {
        let seat = match form {
            Form::Sharp(shape) => {
                outline(svg, shape, plot, style);
                let [low, high] = shape.bounds();
                [0.5 * (low[0] + high[0]), 0.5 * (low[1] + high[1])]
            }
            Form::Bell { centre, width } => {
                let disc = Shape::Disc {
                    centre: *centre,
                    radius: *width,
                };
                outline(svg, &disc, plot, style);
                *centre
            }
        };
        let (x, y) = plot.at(seat);
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#7a3408\">{}</text>",
            y + 4.0,
            escaped(name)
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// Where an actuator does more than at one standard deviation of a bell: three fifths of the most.
fn strongest(svg: &mut String, problem: &Problem, plot: &Plot, map: &[f64]) {
    let most = map.iter().fold(0.0, |most: f64, m| most.max(m.abs()));
    let size = |axis: usize| plot.scale * problem.grid.spacing(axis);
    let (width, height) = match plot.line {
        true => (size(0), BAND),
        false => (size(0), size(1)),
    };
    for (node, effect) in map.iter().enumerate() {
        if effect.abs() < 0.6 * most {
            continue;
        }
        let (x, y) = plot.at(problem.grid.place(node));
        let _ = writeln!(
            svg,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"#2f6db5\" fill-opacity=\"0.18\"/>",
            x - 0.5 * width,
            y - 0.5 * height,
        );
    }
}

fn agents(svg: &mut String, problem: &Problem, plot: &Plot) {
    let places = (problem.placement)(problem, problem.agents);
    let measured = problem.kit.is_some_and(Kit::has_influence);
    // Maps show themselves.
    let reach = match measured {
        true => 0.0,
        false => plot.scale * problem.actuation.width,
    };
    for disc in problem.keep_out {
        let shape = Shape::Disc {
            centre: disc.centre,
            radius: disc.radius,
        };
        outline(
            svg,
            &shape,
            plot,
            "fill=\"none\" stroke=\"#c03028\" stroke-dasharray=\"6 4\"",
        );
    }
    let maps = problem.kit.and_then(|kit| kit.influence(problem));
    for map in maps.iter().flatten() {
        strongest(svg, problem, plot, map);
    }
    for &place in &places {
        let (x, y) = plot.at(place);
        let _ = writeln!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{reach:.1}\" fill=\"#2f6db5\" fill-opacity=\"0.13\" stroke=\"#2f6db5\" stroke-opacity=\"0.5\"/><circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"#1d4f8c\"/>"
        );
    }
    // The window of one of them, in the middle of the list.
    let Some(&place) = places.get(places.len() / 2) else {
        return;
    };
    let (x, y) = plot.at(place);
    let points = (problem.sensing.window * problem.sensing.spacing) as f64;
    let half = |axis: usize| 0.5 * plot.scale * points * problem.grid.spacing(axis);
    let (width, height) = match plot.line {
        true => (half(0), 0.5 * BAND),
        false => (half(0), half(1)),
    };
    let _ = writeln!(
        svg,
        "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"none\" stroke=\"#1b7f4d\" stroke-width=\"2\" stroke-dasharray=\"5 3\"/>",
        x - width,
        y - height,
        2.0 * width,
        2.0 * height,
    );
}

/// What the colours mean that are there.
fn marks(problem: &Problem, kit: &Kit) -> Vec<(&'static str, &'static str)> {
    let moves = match problem.actuation.velocity_max {
        0.0 => "agents and the width of what they do",
        _ => "where agents begin, and the width of what they do",
    };
    let all = [
        (true, "#2f6db5", moves),
        (true, "#1b7f4d", "what one of them sees"),
        (
            kit.disturbances().next().is_some(),
            "#e07b39",
            "disturbances",
        ),
        (
            true,
            "#303030",
            "edges: black insulated, red held, ochre exchanging, blue open",
        ),
        (
            !problem.keep_out.is_empty(),
            "#c03028",
            "dashed red: where agents must not go",
        ),
    ];
    let there = all.into_iter().filter(|(there, ..)| *there);
    there.map(|(_, colour, text)| (colour, text)).collect()
}

/// Title, scales and the legend.
fn words(svg: &mut String, problem: &Problem, kit: &Kit, marks: &[(&str, &str)], height: f64) {
    let grid = &problem.grid;
    let size: Vec<String> = (0..grid.axes)
        .map(|axis| format!("{}", grid.extent(axis)))
        .collect();
    let _ = writeln!(
        svg,
        "<text x=\"{ROOM}\" y=\"30\" font-size=\"16\">{} · {} {}, {grid} points</text>",
        escaped(problem.name),
        size.join(" × "),
        escaped(&kit.units[0]),
    );
    for (k, (colour, text)) in marks.iter().enumerate() {
        let y = height + 2.0 * ROOM + LINE * k as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"{ROOM}\" y=\"{:.0}\" width=\"12\" height=\"12\" fill=\"{colour}\"/><text x=\"{:.0}\" y=\"{y:.0}\">{text}</text>",
            y - 11.0,
            ROOM + 22.0,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_legend_names_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let drawn = |change: &str| {
            let text = include_str!("../templates/heat-2d.toml");
            let (quiet, _) = text.split_once("[[disturbances]]").unwrap();
            let path = folder.path().join("plate.toml");
            std::fs::write(&path, format!("{quiet}{change}")).unwrap();
            let problem = problem::kit::load(&path).unwrap_or_else(|bad| panic!("{bad}"));
            draw(problem, problem.kit.unwrap())
        };
        assert!(!drawn("").contains("disturbances"));
        let bell = "bell = { centre = [6, 14], width = 2 }\nstrength = 3\n";
        assert!(drawn(&format!("[[disturbances]]\n{bell}")).contains(">disturbances<"));
    }
}
