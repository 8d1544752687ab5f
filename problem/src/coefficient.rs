//! Coefficients of a problem's equation that can be changed: the same task under other physics.

use crate::{BadProblem, Problem};

/// Most coefficients that a problem has.
pub const MAX_COEFFICIENTS: usize = 4;

/// The values of a problem's coefficients, in their order.
pub type Coefficients = [f64; MAX_COEFFICIENTS];

/// A coefficient of a problem's equation that can be changed.
#[derive(Debug, Clone, Copy)]
pub struct Coefficient {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is.
    pub meaning: &'static str,
    /// Its value unless it is changed.
    pub published: f64,
    /// The lowest and highest value that the solver and the draw of episodes are made for.
    pub range: [f64; 2],
    /// What else changes with it; [`NOTHING_ELSE`] where the solver alone reads it.
    pub adapt: fn(Problem) -> Problem,
}

/// For a coefficient or a form that only the solver reads.
pub const NOTHING_ELSE: fn(Problem) -> Problem = |problem| problem;

/// The values that a problem begins with.
///
/// # Panics
/// While compiling, if there are more than [`MAX_COEFFICIENTS`].
pub const fn published(coefficients: &[Coefficient]) -> Coefficients {
    let mut values = [0.0; MAX_COEFFICIENTS];
    let mut k = 0;
    while k < coefficients.len() {
        values[k] = coefficients[k].published;
        k += 1;
    }
    values
}

impl Problem {
    /// The problem in all forms that solvers of it are compared in: as it is, every variant, and both
    /// ends of each coefficient's range.
    pub fn forms(&self) -> Vec<Self> {
        let variants = self.variants.iter().map(|variant| variant.name);
        let variants = variants.map(|name| self.with_variant(name).expect("it is its own"));
        let mut forms: Vec<Self> = [*self].into_iter().chain(variants).collect();
        for coefficient in self.coefficients {
            let with = |value| {
                let changed = self.with_physics([(coefficient.name, value)]);
                changed.expect("it is within its range")
            };
            for end in coefficient.range {
                let form = with(end);
                // Where it is the domain that grows, a quarter more will do.
                let large = form.grid.len() > 2 * self.grid.len();
                forms.push(if large {
                    with(1.25 * coefficient.published)
                } else {
                    form
                });
            }
        }
        forms
    }

    /// The same problem with other coefficients, each given by name; solver steps are added where
    /// stability asks for them. A change of the domain sets the truth's grid anew, so a grid of
    /// one's own is chosen afterwards.
    pub fn with_physics<'a>(
        &self,
        values: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> Result<Self, BadProblem> {
        let mut changed = *self;
        for (name, value) in values {
            let known = self.coefficients.iter().enumerate();
            let Some((index, coefficient)) = known.into_iter().find(|(_, c)| c.name == name) else {
                return Err(self.unknown_coefficient(name));
            };
            let [low, high] = coefficient.range;
            if !(low..=high).contains(&value) {
                return Err(BadProblem::Coefficient {
                    problem: self.name,
                    name: coefficient.name,
                    meaning: coefficient.meaning,
                    value,
                    low,
                    high,
                });
            }
            changed.physics[index] = value;
            changed = (coefficient.adapt)(changed);
        }
        changed.substeps = changed.substeps.max(changed.fewest_substeps());
        Ok(changed)
    }

    /// The same with all coefficients as given.
    pub fn with_coefficients(&self, values: Coefficients) -> Result<Self, BadProblem> {
        let names = self.coefficients.iter().map(|c| c.name);
        self.with_physics(names.zip(values))
    }

    /// The value of a coefficient, for the equation that is made of it.
    ///
    /// # Panics
    /// If the problem has none of that name.
    pub fn coefficient(&self, name: &str) -> f64 {
        let named = self.coefficients.iter().position(|c| c.name == name);
        self.physics[named.unwrap_or_else(|| panic!("{} has no {name}", self.name))]
    }

    /// The coefficients that are not the published ones.
    pub fn changed_physics(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let named = self.coefficients.iter().zip(self.physics);
        named.filter_map(|(c, value)| (value != c.published).then_some((c.name, value)))
    }

    /// The problem's name with the coefficients that were changed, for titles and origins.
    pub fn title(&self) -> String {
        let changes: Vec<String> = self
            .changed_physics()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        match changes.is_empty() {
            true => self.name.to_owned(),
            false => format!("{} with {}", self.name, changes.join(", ")),
        }
    }

    /// The same with its form, its grid and its solver's steps where they are not the published ones:
    /// what a part of the program that lacks something names it by.
    pub fn described(&self) -> String {
        let mut text = self.title();
        if let Some(form) = self.form {
            text += &format!(" in its form '{form}'");
        }
        if self.grid.points != self.sensors.points {
            text += &format!(" on a grid of {}", self.grid);
        }
        text
    }

    fn unknown_coefficient(&self, asked: &str) -> BadProblem {
        let all = self.coefficients.iter().zip(self.physics);
        let known: Vec<String> = all
            .map(|(c, value)| format!("{} ({}, {value} as it is)", c.name, c.meaning))
            .collect();
        BadProblem::UnknownCoefficient {
            problem: self.name,
            asked: asked.to_owned(),
            known: match known.is_empty() {
                true => "none of its coefficients can be changed".to_owned(),
                false => format!("there is: {}", known.join(", ")),
            },
        }
    }
}

/// `name=value` as on the command line.
pub fn setting(text: &str) -> Result<(String, f64), String> {
    let wrong = || format!("'{text}' is no setting of a coefficient; write nu=0.001,rho=5");
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    let value = value.trim().parse().map_err(|_| wrong())?;
    Ok((name.trim().to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::{ALL, fkpp_1d, heat_1d, ks_1d, turbulence_2d};

    #[test]
    fn what_is_set_to_its_published_value_is_unchanged() {
        for problem in ALL {
            let same = problem.with_coefficients(problem.physics).unwrap();
            assert_eq!(same.title(), problem.name);
            assert_eq!(
                (same.grid, same.sensors, same.substeps, same.agents),
                (
                    problem.grid,
                    problem.sensors,
                    problem.substeps,
                    problem.agents
                )
            );
            assert_eq!(same.reach, problem.reach);
        }
    }

    #[test]
    fn both_ends_of_every_range_can_be_drawn_and_solved() {
        for problem in ALL {
            for coefficient in problem.coefficients {
                for value in coefficient.range {
                    let changed = problem.with_physics([(coefficient.name, value)]).unwrap();
                    // Drawing on a domain many times as large takes many times as long.
                    if coefficient.name != "length" || value < 2.0 * coefficient.published {
                        let mut rng = crate::random_field::episode_rng(1, 0);
                        let episode = (changed.draw)(&changed, &mut rng);
                        assert_eq!(episode.initial.len(), changed.sensors.len());
                        assert!(episode.initial.iter().all(|z| z.is_finite()));
                    }
                    let mut field = vec![0.1; changed.grid.len()];
                    let components = changed.components();
                    let force = vec![0.0; components * changed.grid.len()];
                    (changed.stepper)(&changed, 1).step(&mut field, &force);
                    assert!(field.iter().all(|z| z.is_finite()), "{}", changed.title());
                }
            }
        }
    }

    #[test]
    fn unknown_names_and_impossible_values_are_explained() {
        let refused = |problem: &Problem, name, value| {
            problem
                .with_physics([(name, value)])
                .unwrap_err()
                .to_string()
        };
        let unknown = refused(&fkpp_1d::PROBLEM, "mu", 1.0);
        assert!(unknown.contains("no coefficient 'mu'") && unknown.contains("nu (diffusivity"));
        let fixed = Problem {
            coefficients: &[],
            ..heat_1d::PROBLEM
        };
        let fixed = refused(&fixed, "nu", 1.0);
        assert!(fixed.contains("none of its coefficients"), "{fixed}");
        for value in [-1.0, 0.0, f64::NAN, f64::INFINITY] {
            let text = refused(&turbulence_2d::PROBLEM, "nu", value);
            assert!(
                text.contains("nu (viscosity") && text.contains("1e-5"),
                "{text}"
            );
        }
        assert!(setting("nu").unwrap_err().contains("nu=0.001,rho=5"));
        assert_eq!(setting("nu = 1e-3").unwrap(), ("nu".to_owned(), 1e-3));
    }

    #[test]
    fn a_longer_circle_keeps_the_spacing_of_sensors_and_agents() {
        let long = ks_1d::PROBLEM.with_physics([("length", 64.0)]).unwrap();
        // 64 · 128 / 22 = 372.4 and 64 · 8 / 22 = 23.3.
        assert_eq!((long.sensors.points[0], long.agents), (372, 23));
        let spacing = long.sensors.spacing(0) / ks_1d::PROBLEM.sensors.spacing(0);
        assert!((spacing - 1.0).abs() < 2e-3, "{spacing}");
        assert_eq!(long.reach[1][0], 64.0);
        let coarse = long.with_grid(256).unwrap();
        assert_eq!((coarse.grid.points[0], coarse.grid.high[0]), (256, 64.0));
        assert_eq!(coarse.sensors, long.sensors);
        let last = (long.placement)(&long, 30)[29][0];
        assert!((last - 64.0 * 29.5 / 30.0).abs() < 1e-12);
    }

    #[test]
    fn a_thicker_medium_gets_the_solver_steps_it_needs() {
        let thick = turbulence_2d::PROBLEM.with_physics([("nu", 0.05)]).unwrap();
        assert!(thick.substeps > turbulence_2d::SUBSTEPS);
        thick.with_substeps(thick.substeps).unwrap();
    }
}
