//! An actuator on an output that is on for a share of each period: half of the time is no force, all of it the
//! most that the policy may ask for, none of it the most the other way.
//!
//! That is what a bridge wants that drives its load one way while the output is on and the other way while
//! it is off.

use agent_core::agent::Action;
use embedded_hal::pwm::SetDutyCycle;

use crate::hardware::Actuator;

/// A load at such an output.
pub struct Driven<P> {
    output: P,
    /// The most |force| that may be asked for; 0 where none may.
    most: f32,
}

impl<P: SetDutyCycle> Driven<P> {
    /// One that is not driven yet.
    pub fn new(output: P) -> Self {
        let mut driven = Self { output, most: 0.0 };
        driven.drive(0.0);
        driven
    }

    fn drive(&mut self, force: f32) {
        let share = match self.most > 0.0 {
            true => (force / self.most).clamp(-1.0, 1.0),
            false => 0.0,
        };
        let all = f32::from(self.output.max_duty_cycle());
        // Not more than all of it, which is the only error there is. Rounded to the nearest.
        let _ = self
            .output
            .set_duty_cycle((all * (0.5 + 0.5 * share) + 0.5) as u16);
    }
}

impl<P: SetDutyCycle> Actuator for Driven<P> {
    fn limit(&mut self, force: f32) {
        self.most = force;
        // What is on for another policy's limit means nothing by this one.
        self.drive(0.0);
    }

    fn apply(&mut self, action: &Action) {
        self.drive(action.force);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::agent::Mode;
    use core::convert::Infallible;
    use embedded_hal::pwm::ErrorType;

    struct Output(u16);

    impl ErrorType for Output {
        type Error = Infallible;
    }

    impl SetDutyCycle for Output {
        fn max_duty_cycle(&self) -> u16 {
            800
        }

        fn set_duty_cycle(&mut self, duty: u16) -> Result<(), Infallible> {
            self.0 = duty;
            Ok(())
        }
    }

    #[test]
    fn the_share_is_a_half_and_the_force_by_the_policys_limit() {
        let mut driven = Driven::new(Output(7));
        assert_eq!(driven.output.0, 400);
        let duty = |driven: &mut Driven<Output>, force| {
            let mut action = Action::none(Mode::Active);
            action.force = force;
            driven.apply(&action);
            driven.output.0
        };
        // No policy: nothing is driven.
        assert_eq!(duty(&mut driven, 5.0), 400);
        driven.limit(20.0);
        for (force, on) in [
            (0.0, 400),
            (-0.0, 400),
            (10.0, 600),
            (-10.0, 200),
            (20.0, 800),
            (-20.0, 0),
            (21.0, 800),
            (-1e30, 0),
            // 400 + 400 / 8 · 0.01 = 400.5, and less.
            (0.025, 401),
            (0.024, 400),
        ] {
            assert_eq!(duty(&mut driven, force), on, "{force}");
        }
        duty(&mut driven, 20.0);
        driven.limit(40.0);
        assert_eq!(driven.output.0, 400);
        assert_eq!(duty(&mut driven, 20.0), 600);
    }
}
