//! What the page shows.

use super::entry::Evidence;
use super::learning::{Course, Look};
use super::sheet::Sheet;
use crate::Scope;
use crate::findings::Picture;
use agent_sim::report::{Dots, Dotted, Line, Lines, Mark, Reference, dots_panels, lines_panels};

/// What marks stand for; the first three as [`Condition::SHOWN`](super::Condition::SHOWN).
const MARKS: [(Mark, &str); 4] = [
    (Mark::Disc, "published episodes"),
    (Mark::Cross, "30 % crashed half way"),
    (Mark::Square, "4 × the agents"),
    (Mark::Ring, "the paper's figure"),
];

/// Everybody's error on every problem.
pub fn errors(scope: &Scope, sheets: &[Sheet]) -> anyhow::Result<Picture> {
    let panel = |sheet: &Sheet| {
        let rows = sheet.lines.iter().map(|line| {
            let entries = MARKS.iter().zip(&line.entries);
            let found = entries.filter_map(|((mark, _), e)| Some((*mark, e.found()?.figure.mean)));
            let cited = line.cited.map(|cited| (MARKS[3].0, cited.mean()));
            Dotted {
                name: line.method.label.to_owned(),
                colour: line.method.colour,
                marks: found.chain(cited).collect(),
            }
        });
        Dots {
            title: sheet.row.name(),
            x_label: "mean error".to_owned(),
            rows: rows.filter(|row| !row.marks.is_empty()).collect(),
        }
    };
    let panels: Vec<Dots> = sheets.iter().map(panel).collect();
    Ok(Picture {
        name: "errors".to_owned(),
        caption: "Errors of all controllers, measured here and as in the paper".to_owned(),
        svg: dots_panels(&panels, &MARKS, &scope.foot())?,
    })
}

/// How errors fell in training, a picture for each problem that there are trainings of.
pub fn learning(
    scope: &Scope,
    sheets: &[Sheet],
    evidence: &Evidence,
) -> anyhow::Result<Vec<Picture>> {
    let mut pictures = Vec::new();
    for sheet in sheets {
        let name = sheet.row.name();
        let courses = evidence.courses.iter().filter(|course| course.row == name);
        let courses: Vec<&Course> = courses.collect();
        if courses.is_empty() {
            continue;
        }
        pictures.push(Picture {
            name: format!("learning-{}", name.replace(' ', "-")),
            caption: format!(
                "`{name}`: error in training, one line a seed, against wall time and agent-steps"
            ),
            svg: courses_picture(scope, &name, &courses, feedback(sheet))?,
        });
    }
    Ok(pictures)
}

/// The yardstick that needs no training.
fn feedback(sheet: &Sheet) -> Option<Reference> {
    let line = sheet.line("proportional")?;
    Some(Reference {
        name: "proportional feedback".to_owned(),
        y: line.entries[0].found()?.figure.mean,
    })
}

fn courses_picture(
    scope: &Scope,
    name: &str,
    courses: &[&Course],
    feedback: Option<Reference>,
) -> anyhow::Result<String> {
    let references: Vec<Reference> = feedback.into_iter().collect();
    let lines = |along: fn(&Look) -> f64| -> Vec<Line> {
        let line = |course: &&Course| Line {
            name: course.method.label.to_owned(),
            colour: course.method.colour,
            points: course
                .looks
                .iter()
                .map(|it| (along(it), it.error))
                .collect(),
        };
        courses.iter().map(line).collect()
    };
    let (seconds, steps) = (lines(|it| it.seconds), lines(|it| it.agent_steps));
    let panels = [
        ("seconds of training", &seconds),
        ("steps of all agents together", &steps),
    ];
    let panels = panels.map(|(x_label, lines)| Lines {
        title: name,
        x_label,
        y_label: "error",
        lines,
        references: &references,
    });
    Ok(lines_panels(&panels, &scope.foot())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mode;
    use crate::study::controllers::learning::written;

    #[test]
    fn seeds_share_a_name_and_a_colour() {
        let courses = written(
            "heat-1d,ppo,1,1,100,1,0.4\nheat-1d,ppo,1,60,9000,90,0.1\nheat-1d,ppo,2,1,100,1,0.3\n\
             heat-1d,ppo,2,60,9000,90,0.2\nheat-1d,ours,1,1,100,1,0.3\nheat-1d,ours,1,60,9000,90,1e-5",
        );
        let scope = Scope::new(Mode::Quick, 1, None, String::new());
        let courses: Vec<&Course> = courses.iter().collect();
        let text = courses_picture(&scope, "heat-1d", &courses, None).unwrap();
        // Once in each of the two panels.
        assert_eq!(text.matches(">\nPPO\n<").count(), 2, "{text}");
        assert_eq!(text.matches(">\nours\n<").count(), 2, "{text}");
    }
}
