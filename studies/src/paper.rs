//! What the paper says, cited: its results table (Table `tab:fused_results`) and its planner's.

use crate::swarm_work::Setting;

/// A mean and its ± (two standard deviations), as printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cited {
    mean: &'static str,
    spread: &'static str,
}

impl Cited {
    /// The mean, to reckon with.
    pub fn mean(&self) -> f64 {
        self.mean.parse().expect("a number, as a test has seen")
    }

    /// Both, for tables.
    pub fn text(&self) -> String {
        format!("{} ± {}", self.mean, self.spread)
    }

    /// The mean alone.
    pub fn short(&self) -> &'static str {
        self.mean
    }
}

/// A row of the paper's table.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    /// Uncontrolled.
    pub none: Cited,
    /// Centralised.
    pub ppo: Cited,
    /// Centralised.
    pub td3: Cited,
    /// Decentralised.
    pub mappo: Cited,
    /// Decentralised.
    pub matd3: Cited,
    /// One network for all agents, trained through the equation.
    pub dpc: Cited,
    /// The paper's own policies.
    pub cinoc: Cited,
}

impl Figures {
    /// The best of PPO, TD3, MAPPO and MATD3, with the names of those that have it.
    pub fn best_rl(&self) -> String {
        let all = [
            ("PPO", self.ppo),
            ("TD3", self.td3),
            ("MAPPO", self.mappo),
            ("MATD3", self.matd3),
        ];
        let least = all.iter().map(|(_, cited)| *cited);
        let least = least.min_by(|a, b| a.mean().total_cmp(&b.mean()));
        let least = least.expect("there are four");
        let names = all.iter().filter(|(_, cited)| *cited == least);
        let names: Vec<&str> = names.map(|(name, _)| *name).collect();
        format!("{} ({})", least.text(), names.join(", "))
    }
}

/// A field that results tables have a row of.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The problem's name.
    pub problem: &'static str,
    /// The problem's variant, where it is one.
    pub variant: Option<&'static str>,
    /// What the paper's table says of it, if anything.
    pub figures: Option<Figures>,
}

impl Row {
    /// The problem with its variant.
    pub fn name(&self) -> String {
        let variant = self.variant.map(|v| format!(" {v}"));
        format!("{}{}", self.problem, variant.unwrap_or_default())
    }

    /// The row of that name.
    pub fn named(name: &str) -> anyhow::Result<&'static Self> {
        let found = ROWS.iter().find(|row| row.name() == name);
        found.ok_or_else(|| anyhow::anyhow!("the results table has no row '{name}'"))
    }

    /// The problem, changed as the variant says.
    pub fn setting(&self) -> anyhow::Result<Setting> {
        let setting = Setting::named(self.problem)?;
        match self.variant {
            None => Ok(setting),
            Some(variant) => setting.variant(variant),
        }
    }
}

const fn row(problem: &'static str, figures: [[&'static str; 2]; 7]) -> Row {
    const fn cited([mean, spread]: [&'static str; 2]) -> Cited {
        Cited { mean, spread }
    }
    let [none, ppo, td3, mappo, matd3, dpc, cinoc] = figures;
    Row {
        problem,
        variant: None,
        figures: Some(Figures {
            none: cited(none),
            ppo: cited(ppo),
            td3: cited(td3),
            mappo: cited(mappo),
            matd3: cited(matd3),
            dpc: cited(dpc),
            cinoc: cited(cinoc),
        }),
    }
}

/// All rows. The paper's turbulence is that of the authors' solver, whose advection is too weak.
#[rustfmt::skip]
pub static ROWS: [Row; 9] = [
    row("heat-1d", [
        ["0.390", "1.144"], ["0.016", "0.062"], ["0.006", "0.029"], ["0.001", "0.002"],
        ["0.016", "0.032"], ["7.9e-5", "1.1e-4"], ["2.9e-4", "4.3e-4"],
    ]),
    row("fkpp-1d", [
        ["0.103", "0.128"], ["0.053", "0.091"], ["0.010", "0.016"], ["0.004", "0.010"],
        ["0.022", "0.050"], ["1.4e-4", "1.9e-4"], ["4.6e-5", "7.5e-5"],
    ]),
    row("heat-2d", [
        ["0.176", "0.378"], ["0.015", "0.026"], ["0.009", "0.016"], ["0.006", "0.016"],
        ["0.022", "0.016"], ["2.1e-4", "2.2e-4"], ["1.5e-4", "1.8e-4"],
    ]),
    row("heat-2d-obstacles", [
        ["0.176", "0.378"], ["0.016", "0.023"], ["0.012", "0.014"], ["0.004", "0.015"],
        ["0.015", "0.012"], ["2.7e-4", "2.6e-4"], ["1.2e-4", "1.7e-4"],
    ]),
    row("ks-1d", [
        ["1.45", "0.69"], ["0.13", "0.13"], ["0.13", "0.13"], ["0.13", "0.13"],
        ["0.18", "0.18"], ["0.16", "0.15"], ["0.13", "0.12"],
    ]),
    row("ks-2d", [
        ["13.91", "4.61"], ["12.96", "4.24"], ["1.66", "0.58"], ["0.50", "0.24"],
        ["0.91", "0.27"], ["9.74", "2.32"], ["0.37", "0.19"],
    ]),
    Row { problem: "turbulence-2d", variant: None, figures: None },
    Row { variant: Some("as-published"), ..row("turbulence-2d", [
        ["50.49", "13.29"], ["34.52", "12.35"], ["5.57", "3.15"], ["4.48", "2.84"],
        ["3.71", "2.46"], ["3.28", "2.19"], ["3.23", "2.22"],
    ]) },
    row("density-2d", [
        ["0.027", "0.026"], ["0.005", "0.005"], ["0.021", "0.017"], ["0.008", "0.008"],
        ["0.021", "0.017"], ["0.002", "0.010"], ["0.002", "0.002"],
    ]),
];

/// Its planner on `ks-1d` (Table `tab:nmpc_ks1d_performance`): the mean error over the last 50 of 400 steps, and
/// that of decisions.
pub struct Planner {
    /// Mean, and one standard deviation over ten samples.
    pub error: [f64; 2],
    /// Milliseconds: mean, and at most.
    pub decision_ms: [f64; 2],
}

/// See [`Planner`].
pub const PLANNER: Planner = Planner {
    error: [1.3797e-4, 4.0648e-5],
    decision_ms: [592.09, 1730.05],
};

/// Its own policy's enstrophy among 1,024 agents in turbulence, over that among the 64 it was trained with (its
/// zero-shot table). Of policies that MARL trained it has a picture, without figures.
pub const TURBULENCE_AMONG_1024: f64 = 0.7589;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_a_number_of_a_problem_that_is_there() {
        for row in &ROWS {
            assert_eq!(Row::named(&row.name()).unwrap().name(), row.name());
            row.setting().unwrap();
            let Some(f) = row.figures else { continue };
            for cited in [f.none, f.ppo, f.td3, f.mappo, f.matd3, f.dpc, f.cinoc] {
                assert!(cited.mean() > 0.0 && cited.spread.parse::<f64>().is_ok());
            }
        }
        assert!(Row::named("heat-3d").is_err());
    }

    #[test]
    fn who_shares_the_best_figure_is_named() {
        let best = |name| Row::named(name).unwrap().figures.unwrap().best_rl();
        assert_eq!(best("heat-1d"), "0.001 ± 0.002 (MAPPO)");
        assert_eq!(best("ks-1d"), "0.13 ± 0.13 (PPO, TD3, MAPPO)");
    }
}
