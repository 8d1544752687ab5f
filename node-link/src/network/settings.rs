//! How a network is joined.

use super::{NetworkError, plain};
use std::fmt::Write;
use zenoh::Config;

/// Longest message that is put together of pieces; ours are a sixteenth of that.
const LONGEST_MESSAGE: usize = 16 << 20;

/// Where to listen, whom to connect to, and everything else in Zenoh's own words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Zenoh's configuration as JSON5; its defaults without.
    pub configuration: Option<String>,
    /// Where to listen besides: `tcp/127.0.0.1:7447`.
    pub listen: Vec<String>,
    /// Whom to connect to besides.
    pub connect: Vec<String>,
}

impl Settings {
    /// Zenoh's configuration with what is said here. Where it does not say otherwise, nobody is
    /// looked for by multicast, nobody can connect, and long messages are dropped.
    pub(super) fn configuration(&self) -> Result<Config, NetworkError> {
        let bad = |error: &zenoh::Error| NetworkError::Configuration(plain(error));
        let mut config = match &self.configuration {
            Some(text) => Config::from_json5(text).map_err(|error| bad(&error))?,
            None => Config::default(),
        };
        let default = Config::default();
        let mut unless_said = |key: &str, value: &str| {
            let said = |config: &Config| config.get_json(key).ok();
            match said(&config) == said(&default) {
                true => config.insert_json5(key, value).map_err(|error| bad(&error)),
                false => Ok(()),
            }
        };
        unless_said("scouting/multicast/enabled", "false")?;
        unless_said("listen/endpoints", "[]")?;
        unless_said(
            "transport/link/rx/max_message_size",
            &LONGEST_MESSAGE.to_string(),
        )?;
        // A host that comes back is found within a second.
        unless_said(
            "connect/retry",
            "{ period_init_ms: 250, period_max_ms: 1000 }",
        )?;
        for (key, endpoints) in [("listen", &self.listen), ("connect", &self.connect)] {
            if !endpoints.is_empty() {
                let key = format!("{key}/endpoints");
                let endpoints = list(endpoints);
                config
                    .insert_json5(&key, &endpoints)
                    .map_err(|error| bad(&error))?;
            }
        }
        Ok(config)
    }

    /// The same for somebody who listens nowhere, tries once and says why it does not work.
    pub(super) fn once(&self) -> Result<Config, NetworkError> {
        let alone = Self {
            listen: Vec::new(),
            ..self.clone()
        };
        let mut config = alone.configuration()?;
        for (key, value) in [
            ("listen/endpoints", "[]"),
            ("connect/timeout_ms", "0"),
            ("connect/exit_on_failure", "true"),
        ] {
            let inserted = config.insert_json5(key, value);
            inserted.map_err(|error| NetworkError::Configuration(plain(&error)))?;
        }
        Ok(config)
    }
}

/// Texts as a list of JSON5.
fn list(texts: &[String]) -> String {
    let mut list = String::from("[");
    for text in texts {
        let _ = write!(list, "{:?},", text);
    }
    list + "]"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(config: &Config, key: &str) -> String {
        config.get_json(key).unwrap()
    }

    #[test]
    fn nobody_is_looked_for_and_nobody_can_connect_unless_somebody_says_so() {
        let config = Settings::default().configuration().unwrap();
        assert_eq!(said(&config, "scouting/multicast/enabled"), "false");
        assert_eq!(said(&config, "listen/endpoints"), "[]");
        let text = "{ mode: 'client', scouting: { multicast: { enabled: true } }, \
                    listen: { endpoints: ['tcp/127.0.0.1:1'] } }";
        let settings = Settings {
            configuration: Some(text.to_owned()),
            connect: vec!["tcp/127.0.0.1:2".to_owned()],
            ..Settings::default()
        };
        let config = settings.configuration().unwrap();
        assert_eq!(said(&config, "scouting/multicast/enabled"), "true");
        assert!(said(&config, "listen/endpoints").contains("127.0.0.1:1"));
        assert!(said(&config, "connect/endpoints").contains("127.0.0.1:2"));
        assert!(said(&config, "mode").contains("client"));
    }

    #[test]
    fn what_is_no_configuration_and_what_is_no_endpoint_is_refused() {
        for (configuration, connect) in [
            (Some("{ mode: 'king' }"), "tcp/127.0.0.1:2"),
            (Some("no json"), "tcp/127.0.0.1:2"),
            (None, "somewhere"),
            (None, "\"]"),
        ] {
            let settings = Settings {
                configuration: configuration.map(str::to_owned),
                connect: vec![connect.to_owned()],
                ..Settings::default()
            };
            let refused = settings.configuration();
            assert!(
                matches!(refused, Err(NetworkError::Configuration(_))),
                "{settings:?}"
            );
        }
    }
}
