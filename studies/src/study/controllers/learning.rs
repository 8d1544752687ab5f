//! How errors fell in training, of `cargo xtask baselines` and of the trainer: `data/learning.csv`.

use super::method::{Method, Source};
use crate::paper::Row;
use crate::rows;
use anyhow::{Context, bail};

const MEASURED: &str = include_str!("../../../data/learning.csv");
const HEAD: &str = "problem,method,seed,seconds,agent_steps,updates,error";

/// A look at a training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Wall time since its beginning.
    pub seconds: f64,
    /// Steps of all agents together until then.
    pub agent_steps: f64,
    /// Mean error of the policy then.
    pub error: f64,
}

/// One training.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// The row of the results table, by name.
    pub row: String,
    /// Who trained.
    pub method: &'static Method,
    /// Of the training.
    pub seed: u64,
    /// What was seen of it, as it went on.
    pub looks: Vec<Look>,
}

impl Course {
    /// All of them.
    pub fn all() -> anyhow::Result<Vec<Self>> {
        read(MEASURED).context("data/learning.csv")
    }
}

fn read(text: &'static str) -> anyhow::Result<Vec<Course>> {
    let mut all: Vec<Course> = Vec::new();
    for (row, method, seed, look) in rows::read(text, HEAD, row)? {
        let same = |c: &&mut Course| c.row == row && c.method == method && c.seed == seed;
        match all.iter_mut().find(same) {
            None => all.push(Course {
                row,
                method,
                seed,
                looks: vec![look],
            }),
            Some(course) => {
                let last = course.looks.last().expect("made with one");
                if look.seconds < last.seconds || look.agent_steps < last.agent_steps {
                    let at = look.seconds;
                    bail!("{row}, {}, seed {seed} goes back at {at} s", method.name);
                }
                course.looks.push(look);
            }
        }
    }
    Ok(all)
}

fn row(line: &'static str) -> anyhow::Result<(String, &'static Method, u64, Look)> {
    let columns: [&str; 7] = rows::columns(line)?;
    let [problem, method, seed, seconds, agent_steps, updates, error] = columns;
    let place = Row::named(problem)?;
    let method = match method {
        "ours" | "dpc" => Method::named(method)?,
        _ => Method::of(Source::Rl, method)?,
    };
    // Not drawn, but a row without it is none.
    let _: u64 = updates.parse().context("updates")?;
    let since = |text: &str, what: &'static str| match text {
        "0" | "0.0" => Ok(0.0),
        text => rows::positive(text, what),
    };
    let look = Look {
        seconds: since(seconds, "seconds")?,
        agent_steps: since(agent_steps, "agent_steps")?,
        error: rows::error(error)?,
    };
    Ok((place.name(), method, seed.parse().context("seed")?, look))
}

#[cfg(test)]
pub(super) fn written(lines: &str) -> Vec<Course> {
    read(format!("{HEAD}\n{lines}").leak()).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rows_can_be_read() {
        Course::all().unwrap();
    }

    #[test]
    fn rows_of_a_training_are_one_course() {
        let courses = written(
            "heat-1d,ppo,1,0,0,0,0.4\nheat-1d,ppo,2,0,0,0,0.4\nheat-1d,ppo,1,9.5,1000,7,0.1\n\
             heat-1d,ours,1,5,1000,7,inf",
        );
        let lengths: Vec<usize> = courses.iter().map(|course| course.looks.len()).collect();
        assert_eq!(lengths, [2, 1, 1]);
        assert_eq!(courses[0].looks[1].agent_steps, 1000.0);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let refused = |row: &str, why: &str| {
            let said = rows::complaint(read, HEAD, row);
            assert!(said.contains(why), "{said}");
        };
        refused("heat-1d,ppo,1,5,1000,7", "6 columns");
        refused("heat-3d,ppo,1,5,1000,7,1e-3", "heat-3d,ppo,1,5");
        refused("heat-1d,nmpc,1,5,1000,7,1e-3", "no method 'nmpc'");
        refused("heat-1d,ppo,1,-5,1000,7,1e-3", "seconds: ");
        refused("heat-1d,ppo,1,5,1000,many,1e-3", "updates");
        refused("heat-1d,ppo,1,5,1000,7,0", "error: ");
        refused(
            "heat-1d,ppo,1,5,1000,7,1e-3\nheat-1d,ppo,1,4,2000,9,1e-3",
            "heat-1d, ppo, seed 1 goes back at 4 s",
        );
    }
}
