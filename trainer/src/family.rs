//! Coefficients of the equation that every episode draws for itself, so that one policy holds on a
//! family of fields.

use problem::coefficient::Coefficients;
use problem::{BadProblem, NotImplemented, Problem};
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A coefficient and its values: one, or a range of which every episode draws its own. The logarithm is
/// drawn evenly: between 1 and 4 as many episodes have less than 2 as have more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    name: String,
    least: f64,
    most: f64,
}

impl Spread {
    /// Whether it is that of a coefficient and has a value of it.
    pub(crate) fn holds(&self, name: &str, value: f64) -> bool {
        self.name == name && (self.least..=self.most).contains(&value)
    }

    fn is_drawn(&self) -> bool {
        self.least < self.most
    }

    /// The published value where it is one of these, else the middle.
    fn usual(&self, published: f64) -> f64 {
        match (self.least..=self.most).contains(&published) {
            true => published,
            // Of a single value the root of the square is not always that value.
            false if !self.is_drawn() => self.least,
            false => (self.least * self.most).sqrt(),
        }
    }

    fn draw(&self, rng: &mut impl Rng) -> f64 {
        let drawn = rng.random_range(self.least.ln()..=self.most.ln()).exp();
        // Rounding must not lead out of the range.
        drawn.clamp(self.least, self.most)
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self { name, least, most } = self;
        match self.is_drawn() {
            true => write!(f, "{name}={least}..{most}"),
            false => write!(f, "{name}={least}"),
        }
    }
}

/// Why something is no spread of a coefficient.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{asked}' {fault}; write a value or a range, such as nu=0.004 or nu=0.0025..0.01")]
pub struct NotASpread {
    asked: String,
    fault: &'static str,
}

impl FromStr for Spread {
    type Err = NotASpread;

    fn from_str(text: &str) -> Result<Self, NotASpread> {
        let wrong = |fault| NotASpread {
            asked: text.to_owned(),
            fault,
        };
        let no_setting = || wrong("is no setting of a coefficient");
        let (name, values) = text.split_once('=').ok_or_else(no_setting)?;
        let (least, most) = values.split_once("..").unwrap_or((values, values));
        let number = |text: &str| text.trim().parse::<f64>().map_err(|_| no_setting());
        let (name, least, most) = (name.trim(), number(least)?, number(most)?);
        if name.is_empty() {
            return Err(no_setting());
        }
        if !(least > 0.0 && most.is_finite()) {
            return Err(wrong("has a value that is not above zero"));
        }
        if least > most {
            return Err(wrong("ends below where it begins"));
        }
        Ok(Self {
            name: name.to_owned(),
            least,
            most,
        })
    }
}

/// Why a problem has no such family.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoFamily {
    /// A coefficient that it does not have, or a value that its solver is not made for.
    #[error(transparent)]
    Coefficient(#[from] BadProblem),
    /// Another domain.
    #[error(transparent)]
    Domain(#[from] NotImplemented),
    /// One coefficient, two spreads.
    #[error("{0} is given twice; give each coefficient once")]
    Twice(String),
}

/// The forms of a problem that episodes of one closed loop have.
#[derive(Debug, Clone)]
pub struct Family {
    /// The form with the published coefficients, or with the middle of what is drawn instead.
    pub usual: Problem,
    /// All forms with each drawn coefficient at an end of its range; none where nothing is drawn.
    pub corners: Vec<Problem>,
    /// What is drawn, each with its place among the problem's coefficients.
    drawn: Vec<(usize, Spread)>,
}

impl Family {
    /// That of `problem` with these coefficients. All its forms have the same grid and take the same
    /// solver steps: as many as the problem, or as the one needs that needs most.
    pub fn new(problem: &Problem, spreads: &[Spread]) -> Result<Self, NoFamily> {
        for (k, spread) in spreads.iter().enumerate() {
            if spreads[..k].iter().any(|other| other.name == spread.name) {
                return Err(NoFamily::Twice(spread.name.clone()));
            }
        }
        let mut corners = vec![*problem];
        for Spread { name, least, most } in spreads {
            let ends = |form: &Problem| [*least, *most].map(|x| form.with_physics([(&**name, x)]));
            corners = corners.iter().flat_map(ends).collect::<Result<_, _>>()?;
        }
        let elsewhere =
            |form: &&Problem| (form.grid, form.sensors) != (problem.grid, problem.sensors);
        if let Some(form) = corners.iter().find(elsewhere) {
            return Err(NoFamily::Domain(NotImplemented {
                part: "the trainer",
                form: form.described(),
                remedy: "leave the size of the domain as it is",
            }));
        }
        let named = |spread: &Spread| {
            let place = problem
                .coefficients
                .iter()
                .position(|c| c.name == spread.name);
            place.expect("its ends could be set")
        };
        let usual = spreads.iter().map(|spread| {
            let published = problem.coefficients[named(spread)].published;
            (&*spread.name, spread.usual(published))
        });
        let mut usual = problem.with_physics(usual)?;
        let substeps = corners.iter().map(|form| form.substeps).max();
        usual.substeps = usual.substeps.max(substeps.unwrap_or(0));
        for form in &mut corners {
            form.substeps = usual.substeps;
        }
        let drawn: Vec<_> = (spreads.iter().filter(|spread| spread.is_drawn()))
            .map(|spread| (named(spread), spread.clone()))
            .collect();
        if drawn.is_empty() {
            corners.clear();
        }
        Ok(Self {
            usual,
            corners,
            drawn,
        })
    }

    /// The coefficients of an episode.
    pub fn draw(&self, rng: &mut impl Rng) -> Coefficients {
        let mut values = self.usual.physics;
        for (place, spread) in &self.drawn {
            values[*place] = spread.draw(rng);
        }
        values
    }

    /// The members that tell most about a policy beside the usual one: everything that is drawn at its
    /// least, and at its most.
    pub fn ends(&self) -> Vec<Coefficients> {
        let end = |of: fn(&Spread) -> f64| {
            let mut values = self.usual.physics;
            for (place, spread) in &self.drawn {
                values[*place] = of(spread);
            }
            values
        };
        match self.drawn.is_empty() {
            true => Vec::new(),
            false => vec![end(|spread| spread.least), end(|spread| spread.most)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use problem::published::{density_2d, fkpp_1d, ks_1d, turbulence_2d};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    fn family(problem: &Problem, spreads: &[&str]) -> Result<Family, NoFamily> {
        let spreads: Vec<Spread> = spreads.iter().map(|text| text.parse().unwrap()).collect();
        Family::new(problem, &spreads)
    }

    #[test]
    fn spreads_are_read_as_they_are_written() {
        for text in ["nu=0.004", "nu=0.0025..0.01", "rho=1.5..6"] {
            assert_eq!(text.parse::<Spread>().unwrap().to_string(), text);
        }
        assert_eq!("nu = 1 .. 1".parse::<Spread>().unwrap().to_string(), "nu=1");
        for (text, fault) in [
            ("", "no setting"),
            ("nu", "no setting"),
            ("=3", "no setting"),
            ("nu=", "no setting"),
            ("nu=..", "no setting"),
            ("nu=1..", "no setting"),
            ("nu=a..2", "no setting"),
            ("nu=-1..2", "not above zero"),
            ("nu=0", "not above zero"),
            ("nu=NaN", "not above zero"),
            ("nu=1..inf", "not above zero"),
            ("nu=0.01..0.0025", "ends below where it begins"),
        ] {
            let error = text.parse::<Spread>().unwrap_err().to_string();
            assert!(error.contains(fault), "{text}: {error}");
            assert!(error.contains("nu=0.0025..0.01"), "{text}: {error}");
        }
    }

    /// 4000 draws of two coefficients: every quarter of a logarithmic scale, and each quarter of one within
    /// the lower half of the other, within 4 standard deviations (110 and 83) of its share.
    #[test]
    fn values_are_drawn_evenly_on_a_logarithmic_scale_and_apart() {
        let family = family(&fkpp_1d::PROBLEM, &["rho=1.5..6", "nu=0.0025..0.01"]).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let (mut quarters, mut below) = ([0; 4], [0; 4]);
        for _ in 0..4000 {
            let [nu, rho, ..] = family.draw(&mut rng);
            assert!((0.0025..=0.01).contains(&nu) && (1.5..=6.0).contains(&rho));
            let quarter = ((4.0 * (nu / 0.0025).ln() / 4f64.ln()) as usize).min(3);
            quarters[quarter] += 1;
            below[quarter] += i32::from(rho < 3.0);
        }
        assert!(
            quarters.iter().all(|n: &i32| (n - 1000).abs() < 110),
            "{quarters:?}"
        );
        assert!(
            below.iter().all(|n: &i32| (n - 500).abs() < 83),
            "{below:?}"
        );
    }

    #[test]
    fn a_family_has_its_ends_and_the_published_value_or_the_middle() {
        let both = family(&fkpp_1d::PROBLEM, &["nu=0.0025..0.01", "rho=4..9"]).unwrap();
        assert_eq!(both.usual.physics[..2], [0.005, 6.0]);
        let ends: Vec<_> = both.ends().iter().map(|p| [p[0], p[1]]).collect();
        assert_eq!(ends, [[0.0025, 4.0], [0.01, 9.0]]);
        assert_eq!(both.corners.len(), 4);
        let one = family(&fkpp_1d::PROBLEM, &["nu=0.004"]).unwrap();
        assert_eq!(one.usual.physics[..2], [0.004, fkpp_1d::GROWTH]);
        assert!(one.ends().is_empty() && one.corners.is_empty());
        let none = family(&fkpp_1d::PROBLEM, &[]).unwrap();
        assert_eq!(none.usual.physics, fkpp_1d::PROBLEM.physics);
    }

    #[test]
    fn all_members_take_the_solver_steps_that_one_of_them_needs() {
        let thick = family(&turbulence_2d::PROBLEM, &["nu=0.001..0.05"]).unwrap();
        let need = turbulence_2d::PROBLEM.with_physics([("nu", 0.05)]).unwrap();
        assert!(need.substeps > turbulence_2d::PROBLEM.substeps);
        let mut all = thick.corners.iter().chain([&thick.usual]);
        assert!(all.all(|form| form.substeps == need.substeps));
    }

    #[test]
    fn families_that_a_problem_does_not_have_are_refused_by_name() {
        for (problem, spreads, words) in [
            (
                &fkpp_1d::PROBLEM,
                &["mu=1..2"][..],
                &["'mu'", "nu (diffusivity"][..],
            ),
            (
                &density_2d::PROBLEM,
                &["nu=0.01..9"],
                &["nu (diffusivity", "9"],
            ),
            (
                &ks_1d::PROBLEM,
                &["length=22..33"],
                &["length=33", "domain"],
            ),
            (
                &fkpp_1d::PROBLEM,
                &["nu=0.1", "nu=0.2"],
                &["nu is given twice"],
            ),
        ] {
            let message = family(problem, spreads).unwrap_err().to_string();
            for word in words {
                assert!(message.contains(word), "{spreads:?}: {message}");
            }
        }
    }
}
