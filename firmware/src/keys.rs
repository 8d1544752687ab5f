//! Whom a node obeys and whose policies it runs: what its image was built with.
//!
//! | in the environment of a build | |
//! | --- | --- |
//! | `POLICY_KEY`, `POLICY_KEY_2` | Ed25519 public keys, 64 hexadecimal digits each: it runs only policies whose manifest the holder of either has signed. Two, so that one can take over from the other |
//! | `LINK_KEY` | 64 hexadecimal digits, secret: it obeys only hosts that have a key made from this one |
//! | `BUS_KEY` | 64 hexadecimal digits, secret: it believes only neighbours that have it too |
//! | `NODE_FLEET` | the fleet that it belongs to: it runs only policies for that fleet |

use trust::{BusKey, KeyId, LinkKey};

/// Whom a node obeys and whose policies it runs.
#[derive(Clone)]
pub struct Keys {
    /// Whose signature a policy must bear, if there are any.
    pub policy: [Option<[u8; 32]>; 2],
    /// The key of its link, if it asks for one.
    pub link: Option<LinkKey>,
    /// The key of the bus that it shares with its neighbours, if they have one.
    pub bus: Option<BusKey>,
    /// The fleet that it belongs to; empty for none.
    pub fleet: &'static str,
}

impl Keys {
    /// What this image was built with.
    pub const BUILT_IN: Self = Self {
        policy: [
            built_in(option_env!("POLICY_KEY")),
            built_in(option_env!("POLICY_KEY_2")),
        ],
        link: match built_in(option_env!("LINK_KEY")) {
            Some(key) => Some(LinkKey::new(key)),
            None => None,
        },
        bus: match built_in(option_env!("BUS_KEY")) {
            Some(key) => Some(BusKey::new(key)),
            None => None,
        },
        fleet: match option_env!("NODE_FLEET") {
            Some(fleet) => fleet,
            None => "",
        },
    };

    /// None: a node that obeys anybody.
    pub const NONE: Self = Self {
        policy: [None, None],
        link: None,
        bus: None,
        fleet: "",
    };

    /// Whether policies must be signed.
    pub fn guard_policies(&self) -> bool {
        self.policy.iter().any(Option::is_some)
    }

    /// The key of that name.
    pub fn policy_key(&self, id: KeyId) -> Option<&[u8; 32]> {
        self.policy
            .iter()
            .flatten()
            .find(|key| KeyId::of(key) == id)
    }
}

/// An image that was built without keys for policies does not carry the verifier either, all 17 KB of
/// it, and one without a key of its link no code that seals. The host, where keys are given to tests,
/// always does.
pub(crate) const HAS_VERIFIER: bool = Keys::BUILT_IN.policy[0].is_some()
    || Keys::BUILT_IN.policy[1].is_some()
    || cfg!(not(target_os = "none"));

/// See [`HAS_VERIFIER`].
pub(crate) const HAS_SEAL: bool = Keys::BUILT_IN.link.is_some() || cfg!(not(target_os = "none"));

/// The same of the key of its bus.
#[cfg(any(feature = "standalone", not(target_os = "none")))]
pub(crate) const HAS_BUS_SEAL: bool = Keys::BUILT_IN.bus.is_some() || cfg!(not(target_os = "none"));

const _: () = assert!(
    Keys::BUILT_IN.fleet.len() <= trust::manifest::NAME,
    "NODE_FLEET is longer than a name in a manifest may be"
);

const fn built_in(digits: Option<&str>) -> Option<[u8; 32]> {
    match digits {
        Some(digits) => Some(key(digits)),
        None => None,
    }
}

const fn key(digits: &str) -> [u8; 32] {
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else {
        panic!("a key is 64 hexadecimal digits");
    };
    assert!(pairs.len() == 32, "a key is 64 hexadecimal digits");
    let mut key = [0; 32];
    let mut at = 0;
    while at < key.len() {
        key[at] = 16 * digit(pairs[at][0]) + digit(pairs[at][1]);
        at += 1;
    }
    key
}

const fn digit(letter: u8) -> u8 {
    match (letter as char).to_digit(16) {
        Some(value) => value as u8,
        None => panic!("a key holds a letter that is no hexadecimal digit"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_from_its_digits() {
        let key = key("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025");
        assert_eq!((key[0], key[31]), (0xfc, 0x25));
    }

    #[test]
    #[should_panic(expected = "64 hexadecimal digits")]
    fn a_key_of_another_length_stops_the_build() {
        key("fc51cd8e");
    }

    #[test]
    #[should_panic(expected = "no hexadecimal digit")]
    fn a_key_with_other_letters_stops_the_build() {
        key("xc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025");
    }
}
